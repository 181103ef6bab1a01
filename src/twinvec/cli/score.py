"""``twinvec score`` and ``twinvec rank``: score two texts, or rank texts for a query, with a cross- or poly-encoder."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

import click

from twinvec.choices import LONG_POLICIES, SCORE_ACTIVATIONS
from twinvec.cli.options import (
    MODEL_OPTIONS,
    Decorator,
    TextSource,
    column_option,
    format_option,
    json_lines_option,
    option_group,
)
from twinvec.cli.search import Hit, print_hits

if TYPE_CHECKING:
    from twinvec.scorer import RankingScorer

__all__ = ["rank", "score"]


@dataclass(frozen=True, slots=True)
class ScorerChoice:
    """Which scorer to load, and how to run it."""

    name: str
    label: str | None
    activation: str | None
    max_tokens: int | None
    long: str
    unknown: str
    precision: str
    threads: int | None
    deterministic: bool
    trust_pickle: bool
    offline: bool

    def load(self) -> RankingScorer:
        """Load the scorer; click has checked the values."""
        import twinvec

        arguments = asdict(self)
        return twinvec.load_scorer(arguments.pop("name"), **arguments)


SCORER_OPTIONS: dict[str, Decorator] = {
    "name": click.option(
        "-m",
        "--model",
        "name",
        metavar="MODEL",
        required=True,
        help="Folder or name of a cross- or poly-encoder, or of BM25; or the address of a server.",
    ),
    "label": click.option("--label", help="Label to score, if the model has several."),
    "activation": click.option(
        "--activation",
        type=click.Choice(SCORE_ACTIVATIONS),
        help="How to turn logits into scores. Default: the model's own.",
    ),
    "max_tokens": click.option(
        "--max-tokens", type=click.IntRange(min=1), help="Maximum number of tokens of a pair. Default: the model's own."
    ),
    "long": click.option(
        "--long",
        type=click.Choice([policy for policy in LONG_POLICIES if policy != "chunk"]),
        default="warn",
        help="What to do with pairs longer than the limit: cut (the longer text first) with a warning, fail, or cut.",
    ),
    **{
        name: MODEL_OPTIONS[name]
        for name in ("unknown", "precision", "threads", "deterministic", "trust_pickle", "offline")
    },
}
scorer_options = option_group(SCORER_OPTIONS, "scorer", build=ScorerChoice)


@click.command()
@click.argument("first", metavar="A")
@click.argument("second", metavar="B")
@scorer_options
def score(*, first: str, second: str, scorer: ScorerChoice) -> None:
    """Print the score of the texts A and B from a cross-encoder, which reads both together, or a poly-encoder.

    Their order matters: A is the query. A cross-encoder with several labels prints one line per label: the label, a
    tab, and its score.
    """
    loaded = scorer.load()
    scores = loaded.score([(first, second)])
    if scores.ndim == 1:
        click.echo(f"{scores[0]:.6f}")
        return
    for label, value in zip(getattr(loaded, "labels", ()), scores[0].tolist(), strict=True):
        click.echo(f"{label}\t{value:.6f}")


@click.command()
@click.argument("query")
@click.argument("file", metavar="[FILE]", default="-")
@click.option("-k", type=click.IntRange(min=1), help="Number of results. Default: all texts.")
@column_option
@format_option
@json_lines_option
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
    """Print the texts of FILE that match QUERY best, best first, scored by a cross- or poly-encoder.

    The model runs once per text; for many texts, twinvec search --rerank is faster. On a terminal the output is a
    table; in a file or a pipe it is JSON lines. The id of a text is its row, counted from 0.
    """
    texts = list(TextSource(file, column, format).texts())
    ranked = scorer.load().rank(query, texts, k)
    best = zip(ranked.rows.tolist(), ranked.scores.tolist(), strict=True)
    print_hits([Hit(value, str(row), texts[row]) for row, value in best], as_json=as_json)
