"""``twinvec embed``: texts of a file to vectors in a file, or in a folder of shards."""

from __future__ import annotations

import sys
import time
from collections import deque
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import click

from twinvec.cli.bulk import BulkChoice, bulk_options, embed_folder, is_folder
from twinvec.cli.group import if_interrupted
from twinvec.cli.options import (
    ModelChoice,
    PromptChoice,
    TextSource,
    model_options,
    prompt_options,
    text_options,
)
from twinvec.cli.screen import say, show_seconds

if TYPE_CHECKING:
    from twinvec.types import Array, OutputType

__all__ = ["embed"]

OUTPUT_TYPES = ("float32", "int8", "uint8", "binary", "ubinary")
STDOUT = "-"


@click.command(short_help="Embed the texts of a file.")
@text_options
@model_options()
@prompt_options
@click.option(
    "-o",
    "--out",
    "--output",
    "output",
    default=STDOUT,
    metavar="FILE|FOLDER",
    help="File to write: .npy (vectors only), .jsonl or .parquet (text and vector); '-' is jsonl to stdout. "
    "A name that ends in / or has no ending is a folder of shards.",
    show_default=True,
)
@click.option(
    "--as",
    "output_type",
    type=click.Choice(OUTPUT_TYPES),
    default="float32",
    show_default=True,
    help="Numbers in the output. The binary ones hold a sign bit per value, eight to a byte.",
)
@bulk_options
@click.option(
    "--force", is_flag=True, help="Replace the output if it exists; the folder of a bulk job is started over."
)
def embed(
    *,
    source: TextSource,
    model: ModelChoice,
    prompt: PromptChoice,
    output: str,
    output_type: OutputType,
    bulk: BulkChoice,
    force: bool,
) -> None:
    """Embed the texts of FILE (default: '-', standard input).

    FILE is plain lines, csv, tsv, jsonl or parquet, by its ending; all but parquet may be gzipped. In a file
    of lines every line is a text, an empty one too, so that row i of the output is line i. Files of any size
    are read and written as a stream, and the output appears only when it is complete.

    With a FOLDER, texts are written in shards as they are embedded, each different text once. Run the same command
    again after a stop or a kill, and it goes on; after rows have changed, and it embeds the new texts only.
    """
    from twinvec.tables import check_target, write_format, write_vectors

    if output != STDOUT and is_folder(output):
        embed_folder(source, output, model=model, prompt=prompt, output_type=output_type, bulk=bulk, force=force)
        return
    bulk.refuse_for_file()

    if output != STDOUT:
        write_format(output)
        check_target(Path(output), replace=force)
    texts = source.texts()
    started = time.perf_counter()
    if sys.stderr.isatty() and source.file != STDOUT:
        say(f"Embedding the texts of {source.file} ...")
    rows = _embedded(texts, model, prompt=prompt, output_type=output_type)
    if output == STDOUT:
        _print_rows(rows)
        return
    if_interrupted(f"{output} was not written.")
    n_rows = write_vectors(rows, output, replace=force)
    took = time.perf_counter() - started
    say(f"Wrote {n_rows:,} vector{'s' * (n_rows != 1)} to {output} in {show_seconds(took)}.")


def _embedded(
    texts: Iterator[str], model: ModelChoice, *, prompt: PromptChoice, output_type: OutputType
) -> Iterator[tuple[str, Array]]:
    """Every text with its vector. Only the texts that the encoder has read ahead are held."""
    from twinvec.progress import Progress

    encoder = model.load()
    waiting: deque[str] = deque()

    def remembered() -> Iterator[str]:
        for text in texts:
            waiting.append(text)
            yield text

    vectors = encoder.encode_iter(
        remembered(), prompt=prompt.prompt, prompt_name=prompt.prompt_name, output=output_type
    )
    with Progress(None, "embedding") as bar:
        for vector in vectors:
            yield waiting.popleft(), vector
            bar.advance(1)


def _print_rows(rows: Iterator[tuple[str, Array]]) -> None:
    from twinvec.tables import jsonl_row
    from twinvec.terminal import standard_output

    stdout = standard_output()
    for text, vector in rows:
        stdout.write(jsonl_row(text, vector))
    stdout.flush()
