"""Finding texts that mean the same: translations (bitext retrieval) and paraphrases, each by exact cosine.

Translations: the nearest text of the other language is the right one (Artetxe and Schwenk 2019, on Tatoeba), in both
directions. Paraphrases: each text is a query over all others, and its R paraphrases should be the R nearest. MAP@R
(Musgrave et al. 2020) counts how many of them are, and how early they come; R-precision counts them alone. Both look at
R neighbors only, so they have no depth to choose and cost little.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from twinvec.errors import InputError
from twinvec.evaluation.statistics import Outcome
from twinvec.evaluation.tasks.common import Embed, check_columns, embed_once, numbered
from twinvec.search import search
from twinvec.types import Ids, Vectors

__all__ = ["BitextTask", "ParaphraseTask", "precisions_at_r", "run_bitext", "run_paraphrases"]


@dataclass(frozen=True)
class BitextTask:
    """Texts and their translations, row by row; ``languages`` names the two sides."""

    name: str
    left: Sequence[str]
    right: Sequence[str]
    languages: tuple[str, str] = ("left", "right")

    def __post_init__(self) -> None:
        check_columns(self.name, {"left texts": self.left, "right texts": self.right}, at_least=2)


def run_bitext(task: BitextTask, embed: Embed) -> list[Outcome]:
    """One outcome per direction: 1 for each text whose nearest text of the other side is its translation, else 0.

    A text that occurs twice on the other side is right in both places.
    """
    left, right = embed_once(embed, task.left, task.right)
    one, other = task.languages
    return [
        _bitext_outcome(task.name, left, right, task.right, f"{one} to {other}"),
        _bitext_outcome(task.name, right, left, task.left, f"{other} to {one}"),
    ]


def _bitext_outcome(name: str, queries: Vectors, stored: Vectors, texts: Sequence[str], way: str) -> Outcome:
    nearest = search(queries, stored, k=1).ids[:, 0].tolist()
    is_right = [texts[found] == text for found, text in zip(nearest, texts, strict=True)]
    protocol = f"Accuracy x 100, {way}, nearest by cosine of {len(texts):,} texts"
    return Outcome(name, protocol, statistic="mean", predicted=np.array(is_right, dtype=np.float64))


@dataclass(frozen=True)
class ParaphraseTask:
    """Texts and the group of each; texts of one group mean the same. A group has at least two texts."""

    name: str
    texts: Sequence[str]
    groups: Sequence[str]

    def __post_init__(self) -> None:
        check_columns(self.name, {"texts": self.texts, "groups": self.groups}, at_least=2)
        alone = next((group for group, size in Counter(self.groups).items() if size < 2), None)
        if alone is not None:
            raise InputError(
                f"{self.name}: the group {alone!r} has one text only, so it has no paraphrase.",
                hint="Add a text to the group, or remove it.",
            )


def run_paraphrases(task: ParaphraseTask, embed: Embed) -> list[Outcome]:
    """MAP@R and R-precision, with one value per text: R is the number of its paraphrases."""
    (vectors,) = embed_once(embed, task.texts)
    groups = np.array(numbered(task.groups)[0])
    relevant = np.bincount(groups)[groups] - 1
    ids = _others(search(vectors, vectors, k=int(relevant.max()) + 1).ids)
    average, precision = precisions_at_r(groups[ids] == groups[:, None], relevant)
    how = f"R nearest by cosine of the {len(ids) - 1:,} other texts, R = number of paraphrases"
    return [
        Outcome(task.name, f"MAP@R x 100, {how}", statistic="mean", predicted=average),
        Outcome(task.name, f"R-precision x 100, {how}", statistic="mean", predicted=precision),
    ]


def _others(ids: Ids) -> Ids:
    """The neighbors of each row, ``(n, k)``, without the row itself, ``(n, k - 1)``.

    >>> _others(np.array([[0, 2, 1], [2, 0, 1], [1, 0, 2]])).tolist()
    [[2, 1], [2, 0], [1, 0]]
    """
    is_own = ids == np.arange(len(ids))[:, None]
    is_own[~is_own.any(axis=1), -1] = True  # copies of the text came before it: drop the last
    return np.asarray(ids[~is_own].reshape(len(ids), -1))


def precisions_at_r(is_relevant: NDArray[np.bool_], n_relevant: Ids) -> tuple[Vectors, Vectors]:
    """The average precision at R and the R-precision of rankings ``(n, k)``; R is ``n_relevant`` ``(n,)``.

    >>> average, precision = precisions_at_r(np.array([[True, False, True]]), np.array([3]))
    >>> average.round(4).tolist(), precision.round(4).tolist()
    ([0.5556], [0.6667])
    """
    ranks = np.arange(1, is_relevant.shape[1] + 1)
    counted = is_relevant & (ranks <= n_relevant[:, None])
    precisions = np.cumsum(counted, axis=1) / ranks
    return (precisions * counted).sum(axis=1) / n_relevant, counted.sum(axis=1) / n_relevant
