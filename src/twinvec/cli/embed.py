"""``twinvec embed``: texts of a file to vectors, in a file or in a folder of shards."""

from __future__ import annotations

import os
import sys
import time
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

import click

from twinvec.choices import OUTPUT_TYPES, SHARD_FORMATS, parse_size
from twinvec.cli.options import (
    Decorator,
    ModelChoice,
    PromptChoice,
    TextSource,
    gathered,
    model_options,
    out_option,
    prompt_options,
    text_options,
)
from twinvec.cli.screen import if_interrupted, say, show_seconds

if TYPE_CHECKING:
    from twinvec.bulk import BulkReport, BulkState
    from twinvec.choices import OutputType, ShardFormat

__all__ = ["BulkChoice", "bulk_options", "embed"]

STDOUT = "-"
TELL_EVERY_S = 60.0  # where no person is watching a bar


@dataclass(frozen=True, slots=True)
class BulkChoice:
    """How to write a folder of shards; nothing of it applies to a single file."""

    id_column: str | None
    shard_rows: int | None
    shard_format: ShardFormat | None
    max_memory: str | None
    ray: str | None

    def refuse_for_file(self) -> None:
        """Say that these options need a folder."""
        if any(value is not None for value in asdict(self).values()):
            raise click.UsageError(
                "--id-column, --shard-rows, --shards, --max-memory and --ray are for a folder of shards: --out FOLDER/."
            )


BULK_OPTIONS: dict[str, Decorator] = {
    "id_column": click.option("--id-column", help="With a folder: column of the rows' ids."),
    "shard_rows": click.option(
        "--shard-rows",
        type=click.IntRange(min=1),
        help="With a folder: texts in a shard, which is what a kill can cost. Default: 16384, or as it was begun.",
    ),
    "shard_format": click.option(
        "--shards",
        "shard_format",
        type=click.Choice(SHARD_FORMATS),
        help="With a folder: format of the shards; arrow ones can be mapped into memory. Default: parquet, or as it "
        "was begun.",
    ),
    "max_memory": click.option(
        "--max-memory", metavar="SIZE", help="With a folder: memory for the whole process, such as 4GB."
    ),
    "ray": click.option(
        "--ray", metavar="ADDRESS", help="With a folder: embed on the Ray cluster at this address (auto finds one)."
    ),
}
bulk_options = gathered(BULK_OPTIONS, "bulk", build=BulkChoice)


@click.command()
@text_options
@model_options()
@prompt_options
@out_option(
    "FILE|FOLDER",
    "File to write: .npy (vectors only), .jsonl or .parquet (text and vector); '-' is jsonl to stdout. "
    "A name that ends in / or has no ending is a folder of shards.",
    default=STDOUT,
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
    out: str,
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
    import twinvec
    from twinvec.bulk import BulkSettings, FileSource
    from twinvec.bulk.embed_file import is_folder

    if out != STDOUT and is_folder(out):
        if_interrupted(f"what was embedded stays in {out}, and the same command goes on.")
        os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    else:
        bulk.refuse_for_file()
        _announce(source, out)
    started = time.perf_counter()
    with _Screen() as screen:
        done = twinvec.embed_file(
            FileSource(source.file, source.column, bulk.id_column, source.format),
            out,
            model.embedder(prompt),
            settings=BulkSettings(
                shard_rows=bulk.shard_rows,
                shard_format=bulk.shard_format,
                max_memory_bytes=None if bulk.max_memory is None else parse_size(bulk.max_memory),
                force=force,
                output=output_type,
            ),
            ray=bulk.ray,
            watch=screen.show,
        )
    took = time.perf_counter() - started
    if done.bulk is not None:
        _say_report(done.bulk, out, took)
    elif out != STDOUT:
        say(f"Wrote {done.n_rows:,} vector{'s' * (done.n_rows != 1)} to {out} in {show_seconds(took)}.")


def _announce(source: TextSource, out: str) -> None:
    """Say what is about to be embedded into a file, and what an interrupt would leave."""
    source.announce()
    if sys.stderr.isatty() and source.file != STDOUT:
        say(f"Embedding the texts of {source.file} ...")
    if out != STDOUT:
        if_interrupted(f"{out} was not written.")


def _say_report(report: BulkReport, output: str, seconds: float) -> None:
    n_kept = report.n_texts - report.n_embedded
    say(
        f"{output} holds {report.n_rows:,} rows with {report.n_texts:,} different texts: {n_kept:,} were there, "
        f"{report.n_embedded:,} embedded in {show_seconds(seconds)}."
    )
    if report.n_damaged:
        say(f"Damaged shards that were found and redone: {report.n_damaged:,}.")
    if report.n_unused:
        say(f"{report.n_unused:,} texts of earlier runs are in no row any more; they are kept, and not searched.")
    if report.n_cut:
        say(f"{report.n_cut:,} texts are longer than the model reads (the longest has {report.longest:,} tokens).")


class _Screen:
    """A bar for a person; for a log, a line a minute."""

    def __init__(self) -> None:
        from twinvec.progress import Progress

        self._bar: Progress | None = None
        self._n_shown = 0
        self._told_s = time.monotonic()
        self._first: tuple[float, int] | None = None  # when the first shard was done, and after how many rows

    def __enter__(self) -> _Screen:
        return self

    def __exit__(self, *_: object) -> None:
        if self._bar is not None:
            self._bar.__exit__(None, None, None)

    def show(self, state: BulkState) -> None:
        """Show how far the job is."""
        if sys.stderr.isatty():
            self._advance(state)
            return
        now = time.monotonic()
        if self._first is None and state.n_embedded:
            self._first = now, state.n_done
        if now - self._told_s >= TELL_EVERY_S:
            self._told_s = now
            say(progress_line(state, *(self._first or (now, state.n_done)), now=now))

    def _advance(self, state: BulkState) -> None:
        from twinvec.progress import Progress

        if self._bar is None:
            self._bar = Progress(state.total_rows, "rows", shown=True)
        self._bar.advance(state.n_done - self._n_shown)
        self._n_shown = state.n_done


def progress_line(state: BulkState, since_s: float, since_rows: int, *, now: float) -> str:
    """How far a job is, how fast, and how long it still takes, going by the rows since its first shard."""
    rate = (state.n_done - since_rows) / max(now - since_s, 1e-9)
    whole = "" if state.total_rows is None else f" of about {state.total_rows:,}"
    line = f"{state.n_done:,}{whole} rows done, {state.n_embedded:,} texts embedded"
    if rate > 0:
        line += f", {rate:,.0f} rows a second"
        if state.total_rows is not None:
            line += f", about {show_seconds(max(state.total_rows - state.n_done, 0) / rate)} left"
    return f"{line}."
