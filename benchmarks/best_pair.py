"""The time that a system takes to find the most similar pair among n texts, as in section 1 of the SBERT paper."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import combinations
from typing import Any, Protocol

import numpy as np
from common import alternate

import twinvec
from twinvec.embedder import Embedder
from twinvec.pairs.poly_encoder import PolyEncoder, attended_scores
from twinvec.scorer import Scorer
from twinvec.vectors import unit_rows

SIZES = 100, 1_000, 10_000
SAMPLE = 500  # pairs that a scorer is timed on, if n texts have more
ROUNDS = 5
POLY_QUERIES = 200  # queries that a poly-encoder is timed on, if there are more


class Timed(Protocol):
    """Seconds for some texts, and whether they are extrapolated."""

    def __call__(self, texts: Sequence[str]) -> tuple[float, bool]: ...


def seconds_of(run: Callable[[], object]) -> float:
    """The median of some rounds, after a warm-up."""
    return alternate({"run": run}, ROUNDS)["run"]


def by_vectors(embedder: Embedder) -> Timed:
    """Embed every text, then compare all vectors."""
    return lambda texts: (seconds_of(lambda: twinvec.find_pairs(texts, 1, model=embedder)), False)


def by_scores(scorer: Scorer) -> Timed:
    """Score every pair: the time of a seeded sample of pairs, extrapolated to all of them if there are more."""

    def timed(texts: Sequence[str]) -> tuple[float, bool]:
        count = len(texts) * (len(texts) - 1) // 2
        pairs = list(combinations(texts, 2)) if count <= SAMPLE else _sampled(texts)
        return seconds_of(lambda: scorer.score(pairs)) * count / len(pairs), count > len(pairs)

    return timed


def _sampled(texts: Sequence[str]) -> list[tuple[str, str]]:
    rng = np.random.default_rng(0)
    rows = (rng.choice(len(texts), 2, replace=False) for _ in range(SAMPLE))
    return [(texts[left], texts[right]) for left, right in rows]


def by_codes(scorer: PolyEncoder) -> Timed:
    """Embed every text as a candidate and as a query, then score every query with all candidates.

    Of many queries, the first are timed, and their share of the time is extrapolated.
    """

    def timed(texts: Sequence[str]) -> tuple[float, bool]:
        embed = seconds_of(lambda: scorer.candidates.embed(list(texts), role="document"))
        vectors = unit_rows(scorer.candidates.embed(list(texts), role="document"))
        queries = list(texts[:POLY_QUERIES])

        def score() -> list[int]:
            several = scorer.query_vectors(queries)
            return [int(attended_scores(each, vectors, scorer.scale).argmax()) for each in several]

        return embed + seconds_of(score) * len(texts) / len(queries), len(texts) > len(queries)

    return timed


def timed_sizes(systems: dict[str, Timed], texts: Sequence[str], sizes: Sequence[int] = SIZES) -> list[dict[str, Any]]:
    """A row per system: its seconds for each number of texts, and for which they are extrapolated."""
    rows = []
    for name, system in systems.items():
        found = {size: system(texts[:size]) for size in sizes}
        rows.append(
            {
                "name": name,
                "seconds": {str(size): float(f"{seconds:.3g}") for size, (seconds, _) in found.items()},
                "extrapolated": [size for size, (_, is_guess) in found.items() if is_guess],
            }
        )
    return rows
