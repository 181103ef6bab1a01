"""Hard negatives: texts that a model scores as similar to an anchor although they are not its positives.

A text that scores as high as the true positive is more likely an unlabeled positive than a mistake of the model, so a
negative must score lower than the positive by a margin.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from twinvec.choices import DEFAULT_MODEL
from twinvec.data.check import text_key
from twinvec.data.examples import read_examples
from twinvec.data.read import read_texts
from twinvec.data.roles import DataSource
from twinvec.data.write import check_rows_target, write_rows
from twinvec.embedder import Embedder, ModelLike, as_embedder
from twinvec.errors import InputError, check_at_least
from twinvec.search.exact import search
from twinvec.types import Ids, Vectors
from twinvec.vectors import checked_rows, numeric_rows, similarity_pairwise

__all__ = ["Mined", "NegativeSettings", "hard_negatives", "mine_negatives", "mine_triplets"]


@dataclass(frozen=True, slots=True)
class NegativeSettings:
    """How negatives are chosen.

    ``n`` per pair, each at least ``margin`` below the score of the pair and at most ``highest``, if set. The best
    ``skip`` of these are skipped. ``depth`` candidates are examined per anchor.
    """

    n: int = 1
    margin: float = 0.05
    highest: float | None = None
    skip: int = 0
    depth: int = 100

    def __post_init__(self) -> None:
        check_at_least(1, n=self.n, depth=self.depth)
        check_at_least(0, skip=self.skip)
        if not (np.isfinite(self.margin) and self.margin >= 0):
            raise InputError(f"margin must be a finite number of at least 0, got {self.margin}.")
        if self.n + self.skip > self.depth:
            raise InputError(
                f"n + skip is {self.n + self.skip}, more than the depth of {self.depth}.",
                hint="Raise depth, or lower n or skip.",
            )


class Negatives(NamedTuple):
    """Negative ``i`` of pair ``pairs[i]`` is row ``ids[i]`` of the pool; by pair, hardest first. All ``(n,)``."""

    pairs: Ids
    ids: Ids
    scores: NDArray[np.float32]


class Triplet(NamedTuple):
    """A training example as ``twinvec train`` reads it."""

    anchor: str
    positive: str
    negative: str


def hard_negatives(
    anchors: ArrayLike,
    positives: ArrayLike,
    pool: ArrayLike,
    *,
    known: tuple[ArrayLike, ArrayLike],
    settings: NegativeSettings | None = None,
) -> Negatives:
    """Rows of ``pool`` ``(m, width)`` that are similar to an anchor but not among its positives.

    ``anchors`` and ``positives`` are ``(n, width)``, pair by pair. ``known`` are two lists of equal length, pairs and
    rows of the pool, to exclude: the positives of the same anchor. A pair may get fewer than ``n`` negatives.
    """
    settings = settings or NegativeSettings()
    anchor_rows, stored = checked_rows(anchors, "anchors"), numeric_rows(pool, "pool")
    highest = similarity_pairwise(anchor_rows, checked_rows(positives, "positives")) - np.float32(settings.margin)
    if settings.highest is not None:
        highest = np.minimum(highest, np.float32(settings.highest))
    hits = search(anchor_rows, stored, k=settings.depth)
    flat = np.arange(len(hits.ids))[:, None] * len(stored) + hits.ids
    taken = np.asarray(known[0], dtype=np.int64) * len(stored) + np.asarray(known[1], dtype=np.int64)
    is_allowed = (hits.scores <= highest[:, None]) & ~np.isin(flat, taken)
    rank = np.cumsum(is_allowed, axis=1) - 1
    pairs, columns = np.nonzero(is_allowed & (rank >= settings.skip) & (rank < settings.skip + settings.n))
    return Negatives(pairs, hits.ids[pairs, columns], hits.scores[pairs, columns])


def mine_triplets(
    pairs: Sequence[tuple[str, str]],
    embed: Callable[[Sequence[str]], Vectors],
    *,
    pool: Sequence[str] = (),
    settings: NegativeSettings | None = None,
) -> list[Triplet]:
    """Triplets from pairs of an anchor and its positive; negatives come from all positives and from ``pool``.

    Texts that differ only in case, punctuation and white space count as equal. No negative equals the anchor or one of
    its positives.
    """
    if not pairs:
        raise InputError("There are no pairs to mine negatives for.")
    candidates = list(dict.fromkeys([*(positive for _, positive in pairs), *pool]))
    texts = list(dict.fromkeys([*(anchor for anchor, _ in pairs), *candidates]))
    vectors, row_of = embed(texts), {text: row for row, text in enumerate(texts)}
    found = hard_negatives(
        vectors[[row_of[anchor] for anchor, _ in pairs]],
        vectors[[row_of[positive] for _, positive in pairs]],
        vectors[[row_of[text] for text in candidates]],
        known=_known_rows(pairs, candidates),
        settings=settings,
    )
    return [
        Triplet(pairs[pair][0], pairs[pair][1], candidates[row])
        for pair, row in zip(found.pairs.tolist(), found.ids.tolist(), strict=True)
    ]


def _known_rows(pairs: Sequence[tuple[str, str]], candidates: Sequence[str]) -> tuple[list[int], list[int]]:
    """Pairs, and the candidate rows that equal the pair's anchor or one of that anchor's positives."""
    rows: dict[str, list[int]] = {}
    for row, text in enumerate(candidates):
        rows.setdefault(text_key(text), []).append(row)
    keys = [(text_key(anchor), text_key(positive)) for anchor, positive in pairs]
    same: dict[str, set[str]] = {}
    for anchor, positive in keys:
        same.setdefault(anchor, {anchor}).add(positive)
    known = [(pair, row) for pair, (anchor, _) in enumerate(keys) for key in same[anchor] for row in rows.get(key, ())]
    return [pair for pair, _ in known], [row for _, row in known]


class Mined(NamedTuple):
    """The number of triplets written, and of distinct pairs with a negative (``n_served`` of ``n_pairs``)."""

    n_triplets: int
    n_served: int
    n_pairs: int


def mine_negatives(
    source: DataSource | str | Path,
    target: str | Path,
    model: ModelLike | Embedder = DEFAULT_MODEL,
    *,
    pool: str | Path | None = None,
    settings: NegativeSettings | None = None,
    replace: bool = False,
    csv_safe: bool = False,
) -> Mined:
    """Read pairs from a file, find hard negatives for them, and write triplets to train on.

    ``source`` has the columns anchor and positive, or is a ``DataSource`` of the kind ranked that names them.
    ``pool`` is a file of additional candidate texts. The settings are those of :func:`mine_triplets`.

    >>> import tempfile
    >>> folder = Path(tempfile.mkdtemp())
    >>> rows = "anchor\\tpositive\\na cat\\ta kitten\\na car\\tan automobile\\n"
    >>> _ = (folder / "pairs.tsv").write_text(rows)
    >>> mine_negatives(folder / "pairs.tsv", folder / "triplets.tsv")
    Mined(n_triplets=2, n_served=2, n_pairs=2)
    """
    check_rows_target(target, Triplet._fields, replace=replace)
    examples = read_examples(source if isinstance(source, DataSource) else DataSource(source, "ranked"))
    rows = zip(examples.indices["anchor"].tolist(), examples.indices["positive"].tolist(), strict=True)
    pairs = [(examples.texts[anchor], examples.texts[positive]) for anchor, positive in rows]
    others = list(read_texts(str(pool))) if pool is not None else []
    found = mine_triplets(pairs, as_embedder(model).embed, pool=others, settings=settings)
    if not found:
        raise InputError("No negative was found within these limits.", hint="Lower --margin, or raise --depth.")
    write_rows(found, Triplet._fields, target, replace=replace, csv_safe=csv_safe)
    n_served = len({(triplet.anchor, triplet.positive) for triplet in found})
    return Mined(len(found), n_served, len(set(pairs)))
