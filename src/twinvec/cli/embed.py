"""``twinvec embed``: embed the texts of a file into a file or a folder of shards."""

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
    model_options,
    option_group,
    out_option,
    prompt_options,
    text_options,
)
from twinvec.cli.screen import QUIET_S, if_interrupted, say, show_seconds

if TYPE_CHECKING:
    from twinvec.bulk import BulkReport, BulkState
    from twinvec.choices import OutputType, ShardFormat

__all__ = ["embed"]

STDOUT = "-"


@dataclass(frozen=True, slots=True)
class BulkChoice:
    """Options for a folder of shards; none applies to a single file."""

    id_column: str | None
    shard_rows: int | None
    shard_format: ShardFormat | None
    max_memory: str | None
    ray: str | None

    def refuse_for_file(self) -> None:
        """Refuse these options when the output is a file."""
        if any(value is not None for value in asdict(self).values()):
            raise click.UsageError(
                "--id-column, --shard-rows, --shards, --max-memory and --ray require a folder of shards: --out FOLDER/."
            )


BULK_OPTIONS: dict[str, Decorator] = {
    "id_column": click.option("--id-column", help="Folder output: column with the ids of the rows."),
    "shard_rows": click.option(
        "--shard-rows",
        type=click.IntRange(min=1),
        help="Folder output: texts per shard, the most work a crash can lose. Default: 16384, or the job's value.",
    ),
    "shard_format": click.option(
        "--shards",
        "shard_format",
        type=click.Choice(SHARD_FORMATS),
        help="Folder output: shard format; arrow shards can be memory-mapped. Default: parquet, or the job's value.",
    ),
    "max_memory": click.option(
        "--max-memory", metavar="SIZE", help="Folder output: memory limit of the whole process, such as 4GB."
    ),
    "ray": click.option(
        "--ray", metavar="ADDRESS", help="Folder output: embed on the Ray cluster at this address; auto finds one."
    ),
}
bulk_options = option_group(BULK_OPTIONS, "bulk", build=BulkChoice)


@click.command()
@text_options
@model_options()
@prompt_options
@out_option(
    "FILE|FOLDER",
    "File to write: .npy (vectors only), .jsonl or .parquet (text and vector); '-' is jsonl to standard output. "
    "A name that ends in / or has no extension is a folder of shards.",
    default=STDOUT,
)
@click.option(
    "--as",
    "output_type",
    type=click.Choice(OUTPUT_TYPES),
    default="float32",
    help="Number type of the output. binary and ubinary store the sign of each value, eight to a byte.",
)
@bulk_options
@click.option("--force", is_flag=True, help="Overwrite the output if it exists; a folder of shards is started over.")
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

    FILE is plain lines, csv, tsv, jsonl or parquet, as its extension says; all but parquet may be gzipped. In a file
    of plain lines every line is a text, even an empty one, so row i of the output is line i. Files of any size are
    streamed, and the output file appears only when it is complete.

    With a FOLDER, texts are written in shards as they are embedded, each distinct text once. After an interruption or
    a crash, run the same command again to continue. After rows have changed, run it again to embed only the new texts.
    """
    import twinvec
    from twinvec.bulk import BulkSettings, FileSource
    from twinvec.bulk.embed_file import is_folder

    if out != STDOUT and is_folder(out):
        if_interrupted(f"Finished shards are kept in {out}; run the same command again to continue.")
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
    """Announce a job that writes a file, and what an interrupt leaves behind."""
    source.announce()
    if sys.stderr.isatty() and source.file != STDOUT:
        say(f"Embedding the texts of {source.file} ...")
    if out != STDOUT:
        if_interrupted(f"{out} was not written.")


def _say_report(report: BulkReport, output: str, seconds: float) -> None:
    n_kept = report.n_texts - report.n_embedded
    say(
        f"{output} holds {report.n_rows:,} rows with {report.n_texts:,} distinct texts: {n_kept:,} from earlier runs, "
        f"{report.n_embedded:,} embedded in {show_seconds(seconds)}."
    )
    if report.n_damaged:
        say(f"Damaged shards embedded again: {report.n_damaged:,}.")
    if report.n_unused:
        say(f"{report.n_unused:,} texts of earlier runs are no longer in any row; they are kept, but not searched.")
    if report.n_cut:
        say(f"{report.n_cut:,} texts exceed the model's limit (the longest has {report.longest:,} tokens).")
    if report.n_unknown:
        say(f"{report.n_unknown:,} texts are in a script that the model has no words for.")


class _Screen:
    """Shows a progress bar on a terminal, and a line per minute elsewhere."""

    def __init__(self) -> None:
        from twinvec.progress import Progress

        self._bar: Progress | None = None
        self._n_shown = 0
        self._reported_s = time.monotonic()
        self._first: tuple[float, int] | None = None  # time and number of rows at the end of the first shard

    def __enter__(self) -> _Screen:
        return self

    def __exit__(self, *_: object) -> None:
        if self._bar is not None:
            self._bar.__exit__(None, None, None)

    def show(self, state: BulkState) -> None:
        """Show the progress of the job."""
        if sys.stderr.isatty():
            self._advance(state)
            return
        now = time.monotonic()
        if self._first is None and state.n_embedded:
            self._first = now, state.n_done
        if now - self._reported_s >= QUIET_S:
            self._reported_s = now
            say(progress_line(state, *(self._first or (now, state.n_done)), now=now))

    def _advance(self, state: BulkState) -> None:
        from twinvec.progress import Progress

        if self._bar is None:
            self._bar = Progress(state.total_rows, "rows", shown=True)
        self._bar.advance(state.n_done - self._n_shown)
        self._n_shown = state.n_done


def progress_line(state: BulkState, since_s: float, since_rows: int, *, now: float) -> str:
    """The progress, speed and remaining time of a job, from the rows since its first shard."""
    rate = (state.n_done - since_rows) / max(now - since_s, 1e-9)
    whole = "" if state.total_rows is None else f" of about {state.total_rows:,}"
    line = f"{state.n_done:,}{whole} rows done, {state.n_embedded:,} texts embedded"
    if rate > 0:
        line += f", {rate:,.0f} rows per second"
        if state.total_rows is not None:
            line += f", about {show_seconds(max(state.total_rows - state.n_done, 0) / rate)} left"
    return f"{line}."
