"""What a teacher says of every text: its vectors, made once and kept on disk, so that a resumed run has them."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path

import numpy as np

from twinvec.files import digest_files
from twinvec.hub import find_model
from twinvec.loading import load
from twinvec.model_folder import model_files
from twinvec.progress import Progress
from twinvec.tables import write_vectors
from twinvec.train.processes import Processes
from twinvec.types import Vectors
from twinvec.vectors import unit_rows

__all__ = ["joined_vectors", "teacher_vectors"]


def teacher_vectors(
    teachers: Sequence[str], texts: Sequence[str], *, work: Path, processes: Processes
) -> tuple[Vectors, ...]:
    """The vectors of all texts by each teacher, ``(texts, width)``, mapped from files in ``work``."""
    paths = [work / f"teacher-{_name(teacher, texts)}.npy" for teacher in teachers]
    for teacher, path in zip(teachers, paths, strict=True):
        processes.first(partial(_make, teacher, texts, path))
    return tuple(np.load(path, mmap_mode="r") for path in paths)


def joined_vectors(parts: Sequence[Vectors]) -> Vectors:
    """What several teachers say of some texts: unit rows side by side, so that cosines are the mean of theirs.

    >>> joined_vectors([np.array([[2.0, 0.0]]), np.array([[0.0, 3.0]])]).tolist()
    [[1.0, 0.0, 0.0, 1.0]]
    """
    if len(parts) == 1:
        return np.array(parts[0], dtype=np.float32)
    return np.concatenate([unit_rows(part) for part in parts], axis=1)


def _make(teacher: str, texts: Sequence[str], path: Path) -> None:
    if path.is_file():
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    with Progress(len(texts), f"vectors of {Path(teacher).name}") as bar:
        write_vectors(_counted(texts, load(teacher, long="cut").encode_iter(texts), bar), path)


def _counted(texts: Sequence[str], vectors: Iterator[Vectors], bar: Progress) -> Iterator[tuple[str, Vectors]]:
    for row in zip(texts, vectors, strict=True):
        bar.advance(1)
        yield row


def _name(teacher: str, texts: Sequence[str]) -> str:
    """What the vectors depend on, in short: the teacher's files and the texts."""
    state = hashlib.sha256(digest_files(model_files(find_model(teacher))).encode())
    for text in texts:
        data = text.encode()
        state.update(len(data).to_bytes(8, "little") + data)
    return state.hexdigest()[:16]
