"""Pairs for a bi-encoder to learn from: similar texts, scored by a cross- or poly-encoder (augmented SBERT)."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from twinvec.data.examples import Examples
from twinvec.embedder import CachedEmbedder, ModelEmbedder
from twinvec.errors import InputError, TrainingError
from twinvec.files import mapped_vectors, new_file
from twinvec.pairs.cross_encoder import as_scorer, load_scorer
from twinvec.scorer import Scorer
from twinvec.search.neighbors import neighbors
from twinvec.training.processes import Processes
from twinvec.training.recipe import DataPart
from twinvec.training.teachers import file_name
from twinvec.vector_store import cache_folder

__all__ = ["scored_pairs"]

SCORE_SLACK = 0.5  # a regression may leave 0 .. 1 by a little


def scored_pairs(part: DataPart, examples: Examples, *, work: Path, processes: Processes) -> Examples:
    """Pairs of similar texts, with the mean score that the teachers give them; kept in a file in ``work``.

    Each text is paired with its nearest text by the miner's vectors, and those of rank 2, 4, 8 and so on, so that there
    are pairs of every degree of similarity. Thakur et al. (2021, arXiv 2010.08240), section 3.1, with semantic search.
    """
    teachers = [load_scorer(name, precision=part.teacher_precision, long="cut") for name in part.teachers]
    miner = ModelEmbedder(part.miner, {"precision": part.teacher_precision, "long": "cut"})
    key = [*(teacher.identity for teacher in teachers), str(part.mined), examples.digest()]
    path = work / f"teacher-{file_name(miner.identity, key)}.npy"
    processes.first(lambda: _make_pairs(part, examples, miner, [as_scorer(each) for each in teachers], path=path))
    found = np.asarray(mapped_vectors(path, hint="Start over with --force."))
    if found.ndim != 2 or found.shape[1] != 3:
        raise TrainingError(f"{path} does not hold scored pairs.", hint="Start over with --force.")
    left, right = (found[:, column].astype(np.int64) for column in (0, 1))
    scores = found[:, 2]
    if part.objective == "cosine":
        low, high = float(scores.min()), float(scores.max())
        if low < -SCORE_SLACK or high > 1 + SCORE_SLACK:
            raise InputError(
                f"The teachers' scores of {examples.name} are from {low:.3g} to {high:.3g}, not from 0 to 1.",
                hint="Use the objective cosent, which needs only their order.",
            )
        scores = np.clip(scores, 0, 1)
    name = f"pairs of {examples.name}"
    return Examples(name, "scored_pairs", examples.texts, {"text1": left, "text2": right}, scores.astype(np.float32))


def _make_pairs(
    part: DataPart, examples: Examples, miner: ModelEmbedder, teachers: Sequence[Scorer], *, path: Path
) -> None:
    if path.is_file():
        return
    texts = examples.texts
    cached = CachedEmbedder(miner, cache_folder())
    cached.prepare(texts)
    ranks = [2**i for i in range(part.mined) if 2**i < len(texts)]
    if not ranks:
        raise InputError(f"{examples.name} has only one text, so there are no pairs to mine.")
    nearest = neighbors(cached.store.of(texts), max(ranks)).ids
    pairs = {
        (min(row, int(other)), max(row, int(other))): None
        for row in range(len(texts))
        for other in nearest[row, [rank - 1 for rank in ranks]]
    }
    rows = np.array(list(pairs), dtype=np.int64)
    named = [(texts[left], texts[right]) for left, right in rows]
    scores = np.mean([teacher.score(named) for teacher in teachers], axis=0)
    path.parent.mkdir(parents=True, exist_ok=True)
    with new_file(path, replace=True) as file:
        np.save(file, np.column_stack([rows, scores]))
