"""Make training data for a re-ranker from gathered texts: a sentence, the passage that it opened, and similar passages.

    python recipes/reranking_data.py recipes/texts.tsv.gz OUT.tsv --teacher gte --teacher granite

The first sentence of a long text is the query, the rest its passage. The negatives of a query are passages that the
first teacher finds similar to it. The margin of a triplet is by how much more similar the teachers find the query and
its own passage: the mean of their cosines, each standardized over all pairs, since their cosines differ in spread.
Writes anchor, positive, negative and margin; a seeded part of the queries goes to OUT.dev.tsv instead.
"""

from __future__ import annotations

import gzip
import hashlib
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path

import click
import numpy as np
from numpy.typing import NDArray

from twinvec.data.write import write_rows
from twinvec.embedder import ModelEmbedder
from twinvec.search import NegativeSettings, hard_negatives
from twinvec.vectors import similarity_pairwise

QUERY_WORDS = 4, 40
PASSAGE_WORDS = 20, 110  # fewer are refused, more are cut
MOST_PER_SOURCE = 1500
DEV_SHARE = 20  # one in so many queries


def sentence_and_rest(text: str) -> tuple[str, str] | None:
    """The first sentence and the rest, or None if either is too short or the sentence too long.

    >>> sentence_and_rest("Too short. " + "word " * 30) is None
    True
    """
    head, dot, rest = text.partition(". ")
    words = rest.split()
    if not dot or not QUERY_WORDS[0] <= len(head.split()) <= QUERY_WORDS[1] or len(words) < PASSAGE_WORDS[0]:
        return None
    return head, " ".join(words[: PASSAGE_WORDS[1]])


def read_pairs(path: Path) -> list[tuple[str, str]]:
    """Queries with their passages, at most ``MOST_PER_SOURCE`` of a source, chosen and ordered by their digest."""
    by_source: dict[str, dict[str, str]] = defaultdict(dict)
    for line in gzip.decompress(path.read_bytes()).decode("utf-8").splitlines()[1:]:
        source, _, text = line.partition("\t")
        found = sentence_and_rest(text)
        if found is not None:
            by_source[source].setdefault(*found)
    return [pair for pairs in by_source.values() for pair in sorted(pairs.items(), key=_digest)[:MOST_PER_SOURCE]]


def _digest(pair: tuple[str, str]) -> bytes:
    return hashlib.sha256("\t".join(pair).encode("utf-8")).digest()


def margins(
    vectors: Sequence[tuple[NDArray[np.float32], NDArray[np.float32]]],
    own: NDArray[np.int64],
    other: NDArray[np.int64],
) -> NDArray[np.float64]:
    """The margin of each triplet: query and own passage are row ``own[i]``, the negative is passage ``other[i]``."""
    total = np.zeros(len(own))
    for queries, passages in vectors:
        near = similarity_pairwise(queries[own], passages[own]).astype(np.float64)
        far = similarity_pairwise(queries[own], passages[other]).astype(np.float64)
        total += (near - far) / np.concatenate([near, far]).std()
    return total / len(vectors)


@click.command(help=__doc__)
@click.argument("texts", type=click.Path(path_type=Path, exists=True))
@click.argument("out", type=click.Path(path_type=Path))
@click.option("--teacher", "teachers", multiple=True, required=True, help="A model folder or name. Repeatable.")
@click.option("--negatives", default=2, show_default=True, help="Negatives per query.")
def main(texts: Path, out: Path, teachers: tuple[str, ...], negatives: int) -> None:
    """Embed, mine and write."""
    pairs = read_pairs(texts)
    print(f"{len(pairs):,} queries with a passage")
    vectors = []
    for name in teachers:
        teacher = ModelEmbedder(name, {"precision": "int8", "long": "cut"})
        queries, passages = ([pair[i] for pair in pairs] for i in (0, 1))
        vectors.append((teacher.embed(queries, role="query"), teacher.embed(passages, role="document")))
        print(f"{name}: embedded")
    rows = np.arange(len(pairs))
    first_queries, first_passages = vectors[0]
    mined = hard_negatives(
        first_queries,
        first_passages,
        first_passages,
        known=(rows, rows),
        settings=NegativeSettings(n=negatives, margin=0.0, skip=0, depth=100),
    )
    found = margins(vectors, mined.pairs, mined.ids)
    parts: dict[bool, list[tuple[object, ...]]] = {True: [], False: []}
    for row, other, margin in zip(mined.pairs.tolist(), mined.ids.tolist(), found.tolist(), strict=True):
        query, passage = pairs[row]
        is_dev = _digest(pairs[row])[0] % DEV_SHARE == 0
        parts[is_dev].append((query, passage, pairs[other][1], round(margin, 4)))
    names = ("anchor", "positive", "negative", "margin")
    for is_dev, path in ((False, out), (True, out.with_suffix(".dev" + out.suffix))):
        write_rows(parts[is_dev], names, path)
        print(f"{path}: {len(parts[is_dev]):,} triplets")


if __name__ == "__main__":
    main()
