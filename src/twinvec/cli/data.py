"""``twinvec data``: a look at files of examples before a model is trained on them."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING

import click

from twinvec.cli.data_report import print_report
from twinvec.cli.group import CleanErrors
from twinvec.cli.options import FORMATS, MODEL_OPTIONS, MODEL_VARIABLE, Decorator, gathered
from twinvec.cli.screen import print_json

if TYPE_CHECKING:
    from collections.abc import Sequence

    from twinvec.examples import Survey
    from twinvec.types import Ids

__all__ = ["data"]

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
        from twinvec.examples import DataSource, guess_kind, survey_examples
        from twinvec.tables import open_table

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


@click.group(cls=CleanErrors, short_help="Look at files of examples before training on them.")
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
    from twinvec.examples import check_examples, read_other_texts

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

    from twinvec.hub import find_model
    from twinvec.inspection import inspect_model
    from twinvec.model_folder import read_model_folder
    from twinvec.progress import Progress
    from twinvec.text import load_tokenizer

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
