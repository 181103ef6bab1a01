"""The ``Scorer`` protocol for anything that scores pairs of texts: a cross-encoder, BM25, or your own class."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import groupby
from operator import itemgetter
from typing import NamedTuple, Protocol, TypeGuard

import numpy as np
from numpy.typing import ArrayLike, NDArray

from twinvec.errors import InputError, check_at_least, shown

__all__ = [
    "FunctionScorer",
    "Pair",
    "Ranked",
    "RankingScorer",
    "RerankFunction",
    "Scorer",
    "checked_pairs",
    "checked_scores",
    "is_scorer",
    "rank_texts",
]

Pair = tuple[str, str]
RerankFunction = Callable[
    [str, Sequence[str]], ArrayLike
]  # takes a query and n texts, returns n scores; higher is better


class Scorer(Protocol):
    """Anything that scores pairs of texts; a higher score is better. Scores need not be symmetric.

    ``identity`` changes whenever the scores could.
    """

    @property
    def name(self) -> str:
        """A name for messages."""
        ...

    @property
    def identity(self) -> str:
        """A digest of everything that affects its scores."""
        ...

    def score(self, pairs: Sequence[Pair]) -> NDArray[np.float32]:
        """The score of each pair, ``(len(pairs),)``."""
        ...


class RankingScorer(Scorer, Protocol):
    """A scorer that also ranks texts."""

    def rank(self, query: str, texts: Sequence[str], k: int | None = None) -> Ranked:
        """The ``k`` best texts for a query, best first."""
        ...


def is_scorer(system: object) -> TypeGuard[Scorer]:
    """Whether an object scores pairs, and does not embed; ``only_scores`` decides if it has both methods.

    >>> is_scorer(FunctionScorer(lambda query, texts: [1.0 for _ in texts]))
    True
    """
    return hasattr(system, "score") and (not hasattr(system, "embed") or bool(getattr(system, "only_scores", False)))


@dataclass(frozen=True)
class FunctionScorer:
    """A scorer that calls a function of a query and a list of texts.

    >>> FunctionScorer(lambda query, texts: [len(text) for text in texts]).score([("a", "b"), ("a", "cd")]).tolist()
    [1.0, 2.0]
    """

    function: RerankFunction
    name: str = "The scorer"

    @property
    def identity(self) -> str:
        """The function's name; its code is not part of the digest."""
        return f"function-{getattr(self.function, '__qualname__', type(self.function).__qualname__)}"

    def score(self, pairs: Sequence[Pair]) -> NDArray[np.float32]:
        """The score of each pair, ``(len(pairs),)``; calls the function once per run of pairs with the same query."""
        groups = [(query, [text for _, text in group]) for query, group in groupby(pairs, key=itemgetter(0))]
        scores = [checked_scores(self.function(query, texts), len(texts), source=self.name) for query, texts in groups]
        return np.concatenate(scores) if scores else np.zeros(0, dtype=np.float32)


class Ranked(NamedTuple):
    """Ranked texts, best first: their rows in the list and their scores, ``(k,)`` each."""

    rows: NDArray[np.int64]
    scores: NDArray[np.float32]


def checked_pairs(pairs: Iterable[object]) -> list[Pair]:
    """The pairs as a list; raises InputError for the first that is not two texts.

    >>> checked_pairs([("a cat", "a kitten")])
    [('a cat', 'a kitten')]
    """
    checked: list[Pair] = []
    for row, pair in enumerate(pairs):
        parts = tuple(pair) if isinstance(pair, (tuple, list)) else ()
        if len(parts) != 2 or not all(isinstance(part, str) for part in parts):
            raise InputError(f"pairs[{row}] is {shown(pair)}, not two texts.", hint="Pass (first, second) tuples.")
        checked.append((parts[0], parts[1]))
    return checked


def checked_scores(found: ArrayLike, n_pairs: int, *, source: str) -> NDArray[np.float32]:
    """The scores returned by ``source`` as float32 ``(n_pairs,)``; raises InputError if they are not valid."""
    try:
        scores = np.asarray(found, dtype=np.float32)
    except (TypeError, ValueError, OverflowError) as error:
        raise InputError(f"{source} returned scores that are not numbers: {error}.") from error
    if scores.shape != (n_pairs,) or not np.isfinite(scores).all():
        raise InputError(
            f"{source} returned scores of shape {scores.shape} for {n_pairs} pairs, or NaN or infinity.",
            hint="Return one number per pair; higher is better.",
        )
    return scores


def rank_texts(scorer: Scorer, query: str, texts: Sequence[str], k: int | None = None) -> Ranked:
    """The ``k`` best texts for a query, best first; texts with equal scores keep their order.

    >>> class SharedWords:
    ...     name = identity = "shared words"
    ...     def score(self, pairs):
    ...         return [len(set(first.split()) & set(second.split())) for first, second in pairs]
    >>> rank_texts(SharedWords(), "a cat sits", ["rain falls", "a cat sleeps"], k=1).rows.tolist()
    [1]
    """
    if isinstance(texts, str) or not len(texts):
        raise InputError("There are no texts to rank.", hint="Pass a list with at least one text.")
    check_at_least(1, k=k)
    pairs = checked_pairs([(query, text) for text in texts])
    scores = checked_scores(scorer.score(pairs), len(texts), source=scorer.name)
    order = np.argsort(-scores, kind="stable")[:k]
    return Ranked(order, scores[order])
