"""What scores two texts together, behind one protocol: a cross-encoder, a poly-encoder, BM25, or a user's own class."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import groupby
from operator import itemgetter
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from twinvec.errors import InputError, check_at_least, shown

__all__ = [
    "FunctionScorer",
    "Pair",
    "Ranked",
    "RerankFunction",
    "Scorer",
    "checked_pairs",
    "checked_scores",
    "rank_texts",
]

Pair = tuple[str, str]
RerankFunction = Callable[[str, Sequence[str]], ArrayLike]  # of a query and n texts: n scores, higher is better


class Scorer(Protocol):
    """Anything that scores pairs of texts; a higher score is better. Scores need not be symmetric.

    ``identity`` changes whenever the scores could.
    """

    @property
    def name(self) -> str:
        """What people call it."""
        ...

    @property
    def identity(self) -> str:
        """A digest of everything that decides its scores."""
        ...

    def score(self, pairs: Sequence[Pair]) -> NDArray[np.float32]:
        """The score of each pair, ``(len(pairs),)``."""
        ...


@dataclass(frozen=True)
class FunctionScorer:
    """A function of a query and a list of texts as a scorer.

    >>> FunctionScorer(lambda query, texts: [len(text) for text in texts]).score([("a", "b"), ("a", "cd")]).tolist()
    [1.0, 2.0]
    """

    function: RerankFunction
    name: str = "The scorer"

    @property
    def identity(self) -> str:
        """The function's own name; a digest of what it does cannot be had."""
        return f"function-{getattr(self.function, '__qualname__', type(self.function).__qualname__)}"

    def score(self, pairs: Sequence[Pair]) -> NDArray[np.float32]:
        """The score of each pair, ``(len(pairs),)``; the function is called once for each query."""
        groups = [(query, [text for _, text in group]) for query, group in groupby(pairs, key=itemgetter(0))]
        found = [checked_scores(self.function(query, texts), len(texts), source=self.name) for query, texts in groups]
        return np.concatenate(found) if found else np.zeros(0, dtype=np.float32)


class Ranked(NamedTuple):
    """Texts in the order of their scores, best first: their rows in the list, and the scores, ``(k,)`` each."""

    rows: NDArray[np.int64]
    scores: NDArray[np.float32]


def checked_pairs(pairs: Iterable[object]) -> list[Pair]:
    """The pairs as a list, or an error that names the first that is not two texts.

    >>> checked_pairs([("a cat", "a kitten")])
    [('a cat', 'a kitten')]
    """
    checked: list[Pair] = []
    for row, pair in enumerate(pairs):
        parts = tuple(pair) if isinstance(pair, (tuple, list)) else ()
        if len(parts) != 2 or not all(isinstance(part, str) for part in parts):
            raise InputError(f"pairs[{row}] is {shown(pair)}, not two texts.", hint="Give (first, second) tuples.")
        checked.append((parts[0], parts[1]))
    return checked


def checked_scores(found: ArrayLike, n_pairs: int, *, source: str) -> NDArray[np.float32]:
    """Scores that ``source`` returned for some pairs as float32 ``(n_pairs,)``, or an error that names it."""
    try:
        scores = np.asarray(found, dtype=np.float32)
    except (TypeError, ValueError, OverflowError) as error:
        raise InputError(f"{source} returned what is not numbers: {error}.") from error
    if scores.shape != (n_pairs,) or not np.isfinite(scores).all():
        raise InputError(
            f"{source} returned scores of shape {scores.shape} for {n_pairs} pairs, or NaN or infinity.",
            hint="Return one number per pair; higher is better.",
        )
    return scores


def rank_texts(scorer: Scorer, query: str, texts: Sequence[str], k: int | None = None) -> Ranked:
    """Score every text for a query and return the best ``k``, best first; equal scores keep the order of the list.

    >>> class SharedWords:
    ...     name = identity = "shared words"
    ...     def score(self, pairs):
    ...         return [len(set(first.split()) & set(second.split())) for first, second in pairs]
    >>> rank_texts(SharedWords(), "a cat sits", ["rain falls", "a cat sleeps"], k=1).rows.tolist()
    [1]
    """
    if isinstance(texts, str) or not len(texts):
        raise InputError("There are no texts to rank.", hint="Give a list with at least one text.")
    check_at_least(1, k=k)
    pairs = checked_pairs([(query, text) for text in texts])
    scores = checked_scores(scorer.score(pairs), len(texts), source=scorer.name)
    order = np.argsort(-scores, kind="stable")[:k]
    return Ranked(order, scores[order])
