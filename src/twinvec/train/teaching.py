"""What a teacher says of every text: its vectors, made once and kept on disk, so that a resumed run has them."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from twinvec.engine.weights import weight_files
from twinvec.files import digest_files
from twinvec.hub import find_model
from twinvec.loading import load
from twinvec.model_folder import read_model_folder
from twinvec.tables import write_vectors
from twinvec.train.processes import Processes
from twinvec.types import Vectors
from twinvec.vectors import unit_rows

__all__ = ["teacher_vectors"]


def teacher_vectors(teachers: Sequence[str], texts: Sequence[str], work: Path, processes: Processes) -> Vectors:
    """A teacher's vectors of all texts, ``(texts, width)``. Several teachers: unit rows side by side.

    The cosine of two rows of several teachers is then the mean of the teachers' cosines.
    """
    paths = [work / f"teacher-{_name(teacher, texts)}.npy" for teacher in teachers]
    for teacher, path in zip(teachers, paths, strict=True):
        if processes.is_first and not path.is_file():
            work.mkdir(parents=True, exist_ok=True)
            vectors = load(teacher, long="cut").encode(texts)
            write_vectors(zip(texts, vectors, strict=True), path)
    processes.agree(0)
    parts = [np.load(path, mmap_mode="r") for path in paths]
    return parts[0] if len(parts) == 1 else np.concatenate([unit_rows(part) for part in parts], axis=1)


def _name(teacher: str, texts: Sequence[str]) -> str:
    """What the vectors depend on, in short: the teacher's weights and the texts."""
    weights = digest_files(weight_files(read_model_folder(find_model(teacher)).backbone))
    return hashlib.sha256("\0".join([weights, *texts]).encode()).hexdigest()[:16]
