"""``twinvec score`` and ``twinvec rank``: two texts, or a query and many texts, scored by a cross-encoder."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

import click

from twinvec.choices import LONG_POLICIES, SCORE_ACTIVATIONS
from twinvec.cli.options import MODEL_OPTIONS, Decorator, TextSource, column_option, format_option, gathered
from twinvec.cli.search import Found, print_found

if TYPE_CHECKING:
    from twinvec.pairs.cross_encoder import CrossEncoder

__all__ = ["rank", "score"]


@dataclass(frozen=True, slots=True)
class ScorerChoice:
    """Which cross-encoder to load, and how to run it."""

    name: str
    label: str | None
    activation: str | None
    max_tokens: int | None
    long: str
    precision: str
    threads: int | None
    deterministic: bool
    trust_pickle: bool
    offline: bool

    def load(self) -> CrossEncoder:
        """The cross-encoder; click has checked the words."""
        import twinvec

        arguments = asdict(self)
        return twinvec.load_scorer(arguments.pop("name"), **arguments)


SCORER_OPTIONS: dict[str, Decorator] = {
    "name": click.option(
        "-m", "--model", "name", metavar="MODEL", required=True, help="Folder of the cross-encoder, or its name."
    ),
    "label": click.option("--label", help="For a classifier of several labels: the one to score."),
    "activation": click.option(
        "--activation",
        type=click.Choice(SCORE_ACTIVATIONS),
        help="What makes scores of the raw outputs. Default: what the model says.",
    ),
    "max_tokens": click.option(
        "--max-tokens", type=click.IntRange(min=1), help="Most tokens of a pair. Default: what the model says."
    ),
    "long": click.option(
        "--long",
        type=click.Choice([policy for policy in LONG_POLICIES if policy != "chunk"]),
        default="warn",
        show_default=True,
        help="Pairs beyond the limit: warn and cut the longer text first, refuse, or cut.",
    ),
    **{name: MODEL_OPTIONS[name] for name in ("precision", "threads", "deterministic", "trust_pickle", "offline")},
}
scorer_options = gathered(SCORER_OPTIONS, "scorer", build=ScorerChoice)


@click.command()
@click.argument("first", metavar="A")
@click.argument("second", metavar="B")
@scorer_options
def score(*, first: str, second: str, scorer: ScorerChoice) -> None:
    """Print the score of the texts A and B, read together by a cross-encoder. The order of the two matters.

    A classifier of several labels prints one line for each: the label, a tab, and its score.
    """
    loaded = scorer.load()
    found = loaded.score([(first, second)])
    if found.ndim == 1:
        click.echo(f"{found[0]:.6f}")
        return
    for label, value in zip(loaded.labels, found[0].tolist(), strict=True):
        click.echo(f"{label}\t{value:.6f}")


@click.command()
@click.argument("query")
@click.argument("file", metavar="[FILE]", default="-")
@click.option("-k", type=click.IntRange(min=1), help="How many texts. Default: all.")
@column_option
@format_option
@click.option("--json", "as_json", is_flag=True, help="Print JSON lines also on a terminal.")
@scorer_options
def rank(
    *,
    query: str,
    file: str,
    k: int | None,
    column: str | None,
    format: str | None,
    as_json: bool,
    scorer: ScorerChoice,
) -> None:
    """Print the texts of FILE that answer QUERY best, best first; a cross-encoder reads each together with QUERY.

    Every text is one run of the model: for many texts, search with --rerank is faster. The id of a text is its row,
    counted from 0. A terminal gets a table; a file or a pipe gets JSON lines.
    """
    texts = list(TextSource(file, column, format).texts())
    ranked = scorer.load().rank(query, texts, k)
    best = zip(ranked.rows.tolist(), ranked.scores.tolist(), strict=True)
    print_found([Found(value, str(row), texts[row]) for row, value in best], as_json=as_json)
