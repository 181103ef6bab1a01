"""``twinvec data``: check training data, download data sets, mine hard negatives."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import click

from twinvec.cli.data_report import print_report
from twinvec.cli.options import (
    FORMATS,
    MODEL_OPTIONS,
    MODEL_VARIABLE,
    Decorator,
    ModelChoice,
    csv_safe_option,
    gathered,
    model_options,
)
from twinvec.cli.screen import CleanErrors, open_console, plain_table, print_json, say

if TYPE_CHECKING:
    from collections.abc import Sequence

    from twinvec.data.check_report import Survey
    from twinvec.data.sources import DataSet
    from twinvec.types import Ids

__all__ = [
    "data",
    "get",
    "negatives",
]

KINDS = ("labelled_pairs", "scored_pairs", "marked_pairs", "triplets", "ranked", "texts")
TEXTS_PER_BLOCK = 10_000  # tokenized at once; bounds the memory


@dataclass(frozen=True, slots=True)
class ExampleChoice:
    """Which file of examples, and how to read it."""

    file: str
    kind: str | None
    columns: dict[str, str | tuple[str, ...]]
    format: str | None
    labels: tuple[str, ...] | None
    ignore_labels: tuple[str, ...]
    score_range: tuple[float, float]

    def survey(self) -> Survey:
        """Read the file to its end; a kind that was not given is guessed from the names of the columns."""
        from twinvec.data.check_report import survey_examples
        from twinvec.data.read import open_table
        from twinvec.data.roles import DataSource, guess_kind

        table = open_table(self.file, format=self.format)
        kind = self.kind or guess_kind([*table.columns, *self.columns], source=table.name).name
        source = DataSource(
            self.file, kind, self.columns, self.format, self.labels, self.ignore_labels, self.score_range
        )
        return survey_examples(source, table)


def _roles(_: click.Context, __: click.Parameter, given: tuple[str, ...]) -> dict[str, str | tuple[str, ...]]:
    columns: dict[str, tuple[str, ...]] = {}
    for each in given:
        role, equals, column = each.partition("=")
        if not (role and equals and column):
            raise click.BadParameter(f"{each!r} is not of the form role=column, as in premise=sentence1.")
        columns[role] = (*columns.get(role, ()), column)
    return {role: names[0] if len(names) == 1 else names for role, names in columns.items()}


def _names(_: click.Context, __: click.Parameter, given: str | None) -> tuple[str, ...] | None:
    return None if given is None else tuple(name.strip() for name in given.split(","))


EXAMPLE_OPTIONS: dict[str, Decorator] = {
    "file": click.argument("file"),
    "kind": click.option(
        "--kind",
        type=click.Choice(KINDS),
        help="What the rows are. Default: guessed from the names of the columns.",
    ),
    "columns": click.option(
        "--columns",
        metavar="ROLE=COLUMN",
        multiple=True,
        callback=_roles,
        help="Read a role from this column; may be given several times. Default: the column of the role's name.",
    ),
    "format": click.option(
        "--format", type=click.Choice(FORMATS), help="Format of FILE. Default: by its ending; lines for '-'."
    ),
    "labels": click.option(
        "--labels", metavar="A,B,...", callback=_names, help="The labels there may be. Default: those found."
    ),
    "ignore_labels": click.option(
        "--ignore-label",
        "ignore_labels",
        metavar="LABEL",
        multiple=True,
        help="Leave rows with this label out; may be given several times.",
    ),
    "score_range": click.option(
        "--score-range",
        type=float,
        nargs=2,
        metavar="LOW HIGH",
        default=(0.0, 1.0),
        show_default=True,
        help="The lowest and the highest possible score.",
    ),
}
example_options = gathered(EXAMPLE_OPTIONS, "choice", build=ExampleChoice)


@click.group(cls=CleanErrors)
def data() -> None:
    """Look at files of examples before a model is trained on them."""


@data.command(short_help="Say what is in a file of examples, and what is wrong with it.")
@example_options
@click.option(
    "--against",
    metavar="FILE",
    multiple=True,
    help="An evaluation file: count its texts that are also in FILE; may be given several times.",
)
@click.option(
    "-m",
    "--model",
    metavar="MODEL",
    envvar=MODEL_VARIABLE,
    show_envvar=True,
    help="Count tokens as this model does, a folder or a name. No weights are loaded.",
)
@MODEL_OPTIONS["offline"]
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.pass_context
def check(
    context: click.Context,
    *,
    choice: ExampleChoice,
    against: tuple[str, ...],
    model: str | None,
    offline: bool,
    as_json: bool,
) -> None:
    """Say what is in a FILE of examples, and what is wrong with it.

    FILE is csv, tsv, jsonl or parquet (lines for texts), by its ending; all but parquet may be gzipped. The kinds
    of examples and the columns they are read from: labelled_pairs (premise, hypothesis, label), scored_pairs
    (text1, text2, score), marked_pairs (text1, text2, and a label that is 0 or 1), triplets (anchor, positive,
    negative), ranked (anchor, positive, and any number of negatives), texts (text).

    The exit code is 1 if training would refuse any of the rows.
    """
    from twinvec.data.check import check_examples, read_other_texts

    others = [read_other_texts(file, also=_column_names(choice)) for file in against]
    survey = choice.survey()
    lengths, limit = (None, 0) if model is None else _count_tokens(survey.examples.texts, model, offline=offline)
    report = check_examples(survey, against=others, lengths=lengths, limit=limit)
    if as_json:
        print_json(report.as_dict(), indent=2)
    else:
        print_report(report, is_guessed=choice.kind is None)
    context.exit(0 if report.is_usable else 1)


def _column_names(choice: ExampleChoice) -> list[str]:
    return [name for names in choice.columns.values() for name in ([names] if isinstance(names, str) else names)]


def _count_tokens(texts: Sequence[str], model: str, *, offline: bool) -> tuple[Ids, int]:
    """Tokens of each text as the model counts them, ``(n_texts,)``, and the most it reads."""
    import numpy as np

    from twinvec.engine.inspect import inspect_model
    from twinvec.model.folder import read_model_folder
    from twinvec.model.hub import find_model
    from twinvec.model.tokenizer import load_tokenizer
    from twinvec.progress import Progress

    folder = read_model_folder(find_model(model, offline=offline))
    tokenizer = load_tokenizer(folder.backbone, lower_case=folder.lower_case)
    lengths = np.empty(len(texts), dtype=np.int64)
    with Progress(len(texts), "counting tokens") as bar:
        for start in range(0, len(texts), TEXTS_PER_BLOCK):
            block = texts[start : start + TEXTS_PER_BLOCK]
            lengths[start : start + len(block)] = [len(ids) for ids in tokenizer.ids(block)]
            bar.advance(len(block))
    if folder.is_static:
        return lengths, tokenizer.limit or sys.maxsize
    return lengths + tokenizer.n_special, inspect_model(folder.path).max_tokens or 512


@data.command(short_help="Fetch public data sets for evaluation and training.")
@click.argument("names", metavar="[NAME]...", nargs=-1)
@click.option(
    "--data",
    type=click.Path(path_type=Path, file_okay=False),
    envvar="TWINVEC_DATA",
    show_envvar=True,
    help="Folder to put them in.",
)
@click.option("--list", "is_list", is_flag=True, help="List the data sets, and stop.")
@click.option("--force", is_flag=True, help="Fetch again what is there, and replace it.")
@click.option(
    "--from",
    "files_in",
    type=click.Path(path_type=Path, file_okay=False, exists=True),
    help="Fetch nothing: the files are in this folder already, named as in their addresses.",
)
@click.option(
    "--sha256",
    "trusted",
    metavar="HEX",
    multiple=True,
    help="A checksum that you trust, for a file whose own is not known; once for each file of one NAME.",
)
def get(
    *,
    names: tuple[str, ...],
    data: Path | None,
    is_list: bool,
    force: bool,
    files_in: Path | None,
    trusted: tuple[str, ...],
) -> None:
    """Fetch the data sets of these NAMEs from their owners' addresses into the data folder.

    Each is downloaded once, checked where its checksum is known, and written as gzipped tables. An interrupted
    download goes on when the same command is given again. Mind the licences: most are for research. Without a known
    checksum, nothing is fetched by plain http.
    """
    from twinvec.data.download import install
    from twinvec.data.sources import SOURCES
    from twinvec.errors import InputError

    if is_list:
        print_sources()
        return
    if not names:
        raise click.UsageError(f"No data set named. Choose from: {', '.join(SOURCES)}.")
    if data is None:
        raise InputError("No data folder was given.", hint="Name it with --data, or set TWINVEC_DATA.")
    if trusted and len(names) != 1:
        raise click.UsageError("--sha256 goes with one NAME.")
    for name in names:
        written = install(name, data, replace=force, sources=_sources(name, trusted), files_in=files_in)
        _say_written(name, written)


def _say_written(name: str, written: list[Path]) -> None:
    from twinvec.data.sources import SOURCES

    if not written:
        say(f"{name}: is there already.")
        return
    for file in written:
        say(f"{name}: wrote {file}")
    about = SOURCES[name]
    say(" ".join(part for part in (f"{name}: licence {about.licence}.", about.note) if part))


def _sources(name: str, trusted: tuple[str, ...]) -> Mapping[str, DataSet]:
    """The known data sets, one of them with checksums that the user trusts."""
    from twinvec.data.sources import SOURCES, with_checksums

    if not trusted or name not in SOURCES:
        return SOURCES
    return {name: with_checksums(SOURCES[name], trusted)}


def print_sources() -> None:
    """The data sets, with their licences and whether a download can be checked."""
    from twinvec.data.sources import SOURCES

    table = plain_table("name", "what", "licence", "checksum")
    for each in SOURCES.values():
        is_checked = all(download.sha256 for download in each.downloads)
        table.add_row(each.name, each.what, each.licence, "sha256" if is_checked else "not known")
    open_console().print(table)


COLUMNS = ("anchor", "positive", "negative")


@data.command(short_help="Find hard negatives for pairs, and write triplets to train on.")
@EXAMPLE_OPTIONS["file"]
@EXAMPLE_OPTIONS["columns"]
@EXAMPLE_OPTIONS["format"]
@model_options()
@click.option("-o", "--output", required=True, metavar="FILE", help="File of triplets: .tsv, .csv, .jsonl or .parquet.")
@click.option("--pool", metavar="FILE", help="More texts that may be negatives. Default: the positives alone.")
@click.option("-n", type=click.IntRange(min=1), default=1, show_default=True, help="Negatives for each pair.")
@click.option(
    "--margin",
    type=click.FloatRange(min=0),
    default=0.05,
    show_default=True,
    help="By how much a negative's cosine must be below the positive's: what is nearer may well be right.",
)
@click.option("--highest", type=float, help="No negative with a higher cosine than this.")
@click.option("--skip", type=click.IntRange(min=0), default=0, show_default=True, help="Pass over the hardest so many.")
@click.option(
    "--depth", type=click.IntRange(min=1), default=100, show_default=True, help="Candidates looked at for each anchor."
)
@csv_safe_option
@click.option("--force", is_flag=True, help="Replace the output if it exists.")
def negatives(
    *,
    file: str,
    columns: dict[str, str | tuple[str, ...]],
    format: str | None,
    model: ModelChoice,
    output: str,
    pool: str | None,
    csv_safe: bool,
    force: bool,
    **choices: float,
) -> None:
    """Find hard negatives for the pairs of FILE, which has the columns anchor and positive; write triplets.

    A negative is a text near the anchor by the model's cosine that is no positive of the same anchor, in whatever
    case and punctuation, and that scores lower than the pair by a margin. twinvec train reads the triplets.
    """
    from twinvec.data.examples import read_examples
    from twinvec.data.read import read_texts
    from twinvec.data.roles import DataSource
    from twinvec.data.write import check_rows_target, write_rows
    from twinvec.errors import InputError
    from twinvec.search import NegativeSettings, mine_triplets

    settings = NegativeSettings(**choices)  # type: ignore[arg-type] # click has made whole numbers of them
    check_rows_target(output, COLUMNS, replace=force)
    examples = read_examples(DataSource(file, "ranked", columns, format))
    places = zip(examples.places["anchor"].tolist(), examples.places["positive"].tolist(), strict=True)
    pairs = [(examples.texts[anchor], examples.texts[positive]) for anchor, positive in places]
    others = list(read_texts(pool)) if pool is not None else []
    found = mine_triplets(pairs, model.load().encode, pool=others, settings=settings)
    n_served = len({(triplet.anchor, triplet.positive) for triplet in found})
    if not found:
        raise InputError("No pair has a negative within these limits.", hint="Lower --margin, or raise --depth.")
    write_rows(found, COLUMNS, output, replace=force, csv_safe=csv_safe)
    say(f"Wrote {len(found):,} triplets to {output}; {n_served:,} of {len(set(pairs)):,} different pairs have one.")
