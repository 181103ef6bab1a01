"""How good the ranking of one query is. All follow trec_eval, and so BEIR and MTEB; average over queries yourself.

``hits`` is a ranking, best first: 1 where the text at that place is relevant, ``(n_ranked,)``. ``n_relevant`` is how
many relevant texts there are in all, ranked or not. A query without relevant texts has no value: leave it out.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from twinvec.errors import InputError

__all__ = ["average_precision_of_hits", "ndcg", "recall_at_k", "reciprocal_rank"]


def ndcg(gains: ArrayLike, ideal_gains: ArrayLike, *, k: int) -> float:
    """Discounted gain of the first ``k`` places, relative to that of the best possible ranking.

    ``sum gain_i / log2(i + 1)`` over places ``i`` from 1. Gains are linear, the judged relevance itself, as in
    trec_eval and Järvelin & Kekäläinen (2002), not ``2^relevance - 1``; the two agree where relevance is 0 or 1.
    ``gains`` are those of the ranking, best first, ``(n_ranked,)``; ``ideal_gains`` those of all judged texts in
    any order, ``(n_judged,)``.

    >>> round(ndcg([0, 1], [1], k=10), 4)  # 1 / log2(3)
    0.6309
    """
    _check_k(k)
    given, ideal = _gains(gains), np.sort(_gains(ideal_gains))[::-1]
    best = _discounted(ideal, k)
    if best == 0:
        raise InputError("nDCG is undefined for a query without relevant texts.", hint="Leave such queries out.")
    value = _discounted(given, k) / best
    if value > 1 + 1e-9:
        raise InputError(
            f"The ranking gains more than the best possible one (nDCG {value:.4f}).",
            hint="Give the gains of all judged texts as ideal_gains, and rank no text twice.",
        )
    return min(value, 1.0)


def average_precision_of_hits(hits: ArrayLike, n_relevant: int, *, k: int | None = None) -> float:
    """Sum of the precisions at the places of relevant texts, by the number of all relevant texts (trec_eval's map).

    >>> round(average_precision_of_hits([1, 0, 1], 4), 4)  # (1/1 + 2/3) / 4
    0.4167
    """
    found = _hits(hits, k, n_relevant=n_relevant)
    precisions = np.cumsum(found) / np.arange(1, len(found) + 1)
    return float(precisions[found].sum() / n_relevant)


def recall_at_k(hits: ArrayLike, n_relevant: int, *, k: int) -> float:
    """Share of the relevant texts that are among the first ``k``.

    >>> recall_at_k([1, 0, 1], 4, k=2)
    0.25
    """
    return float(_hits(hits, k, n_relevant=n_relevant).sum() / n_relevant)


def reciprocal_rank(hits: ArrayLike, *, k: int | None = None) -> float:
    """1 by the place of the first relevant text; 0 if there is none among the first ``k``.

    >>> reciprocal_rank([0, 1, 1])
    0.5
    """
    places = np.flatnonzero(_hits(hits, k))
    return float(1 / (places[0] + 1)) if len(places) else 0.0


def _discounted(gains: NDArray[np.float64], k: int) -> float:
    gains = gains[:k]
    return float(gains @ (1 / np.log2(np.arange(2, len(gains) + 2))))


def _gains(values: ArrayLike) -> NDArray[np.float64]:
    gains = np.asarray(values, dtype=np.float64)
    if gains.ndim != 1 or not np.isfinite(gains).all() or (gains < 0).any():
        raise InputError(
            f"Gains must be a list of numbers from 0 up, got shape {gains.shape} with lowest "
            f"{gains.min() if gains.size else 'none'}.",
            hint="Give 0 to texts that are judged not relevant.",
        )
    return gains


def _hits(values: ArrayLike, k: int | None, *, n_relevant: int | None = None) -> NDArray[np.bool_]:
    hits = np.asarray(values)
    if hits.ndim != 1 or not np.isin(hits, (0, 1)).all():
        raise InputError(f"Hits must be a list of 0 and 1, best place first, got shape {hits.shape}.")
    n_hits = int(hits.sum())
    if n_relevant is not None and n_relevant < 1:
        raise InputError(
            f"A query needs at least one relevant text, got n_relevant {n_relevant}.", hint="Leave such queries out."
        )
    if n_relevant is not None and n_hits > n_relevant:
        raise InputError(f"The ranking has {n_hits} hits, but only {n_relevant} texts are relevant.")
    if k is not None:
        _check_k(k)
    return hits[:k].astype(bool)


def _check_k(k: int) -> None:
    if k < 1:
        raise InputError(f"k must be at least 1, got {k}.")
