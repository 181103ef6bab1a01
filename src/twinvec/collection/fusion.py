"""Several rankings of the same things to one. Pure, on ids.

Cormack, Clarke and Büttcher, *Reciprocal Rank Fusion outperforms Condorcet and individual rank learning methods*, 2009:
a thing scores the sum of ``1 / (60 + place)`` over the rankings that have it. Scores of the rankings themselves, which
have no common scale, are not needed.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Sequence
from typing import TypeVar

__all__ = ["reciprocal_rank_fusion"]

Id = TypeVar("Id", bound=Hashable)

SMOOTHING = 60  # the paper's k


def reciprocal_rank_fusion(rankings: Sequence[Sequence[Id]], *, smoothing: float = SMOOTHING) -> list[tuple[Id, float]]:
    """All ids of the rankings with their fused scores, best first.

    Each ranking has its best first and each id once. Equal scores are in the order of their first appearance: along the
    first ranking, then the second.

    >>> reciprocal_rank_fusion([["a", "b"], ["b", "c"]], smoothing=0)
    [('b', 1.5), ('a', 1.0), ('c', 0.5)]
    """
    scores: defaultdict[Id, float] = defaultdict(float)
    for ranking in rankings:
        for place, each in enumerate(ranking, start=1):
            scores[each] += 1 / (smoothing + place)
    return sorted(scores.items(), key=lambda item: -item[1])
