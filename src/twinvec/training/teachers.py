"""What teachers say of every text: their vectors, made once, and kept on disk by text.

Vectors go to the same kind of store as those of evaluations, a few thousand at a time, so that a kill costs little and
another run over some of the same texts, of another student or seed, embeds only what is new.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path

import numpy as np

from twinvec.choices import Precision
from twinvec.data.write import write_vectors
from twinvec.errors import TrainingError
from twinvec.files import mapped_vectors
from twinvec.loading import load
from twinvec.model.hub import find_model
from twinvec.model.identity import model_digest
from twinvec.progress import Progress
from twinvec.training.processes import Processes
from twinvec.types import Vectors
from twinvec.vector_store import VectorStore, cache_folder, text_key
from twinvec.vectors import unit_rows

__all__ = ["joined_vectors", "teacher_vectors"]

TEXTS_PER_CALL = 4096  # what a kill can cost


def teacher_vectors(
    teachers: Sequence[str], texts: Sequence[str], *, precision: Precision, work: Path, processes: Processes
) -> tuple[Vectors, ...]:
    """The vectors of all texts by each teacher, ``(texts, width)``, mapped from files in ``work``."""
    paths = []
    for teacher in teachers:
        identity = _identity(teacher, precision)
        paths.append(work / f"teacher-{_name(identity, texts)}.npy")
        processes.first(partial(_make, teacher, precision, texts, store=cache_folder() / identity, path=paths[-1]))
    found = tuple(mapped_vectors(path, hint="Start over with --force.") for path in paths)
    for path, vectors in zip(paths, found, strict=True):
        if len(vectors) != len(texts) or vectors.dtype != np.float32:
            raise TrainingError(
                f"{path} does not hold the vectors of {len(texts)} texts.", hint="Start over with --force."
            )
    return found


def joined_vectors(parts: Sequence[Vectors]) -> Vectors:
    """What several teachers say of some texts: unit rows side by side, so that cosines are the mean of theirs.

    >>> joined_vectors([np.array([[2.0, 0.0]]), np.array([[0.0, 3.0]])]).tolist()
    [[1.0, 0.0, 0.0, 1.0]]
    """
    if len(parts) == 1:
        return np.array(parts[0], dtype=np.float32)
    return np.concatenate([unit_rows(part) for part in parts], axis=1)


def _make(teacher: str, precision: Precision, texts: Sequence[str], *, store: Path, path: Path) -> None:
    if path.is_file():
        return
    stored = VectorStore(store)
    _embed_missing(stored, teacher, precision, texts)
    path.parent.mkdir(parents=True, exist_ok=True)
    write_vectors(_stored_rows(stored, texts), path)


def _embed_missing(stored: VectorStore, teacher: str, precision: Precision, texts: Sequence[str]) -> None:
    """Embed and store the texts that the store lacks."""
    known = stored.rows([text_key(text) for text in texts]) >= 0
    missing = list(dict.fromkeys(text for text, is_known in zip(texts, known, strict=True) if not is_known))
    if not missing:
        return
    encoder = load(teacher, precision=precision, long="cut")
    with Progress(len(missing), f"vectors of {Path(teacher).name}") as bar:
        for part in _blocks(missing):
            stored.add([text_key(text) for text in part], encoder.encode(part, progress=False))
            bar.advance(len(part))


def _stored_rows(stored: VectorStore, texts: Sequence[str]) -> Iterator[tuple[str, Vectors]]:
    for part in _blocks(texts):
        rows = stored.rows([text_key(text) for text in part])
        yield from zip(part, stored.vectors(rows), strict=True)


def _blocks(texts: Sequence[str]) -> Iterator[Sequence[str]]:
    for start in range(0, len(texts), TEXTS_PER_CALL):
        yield texts[start : start + TEXTS_PER_CALL]


def _identity(teacher: str, precision: Precision) -> str:
    """What a teacher's vectors depend on, as the name of a folder."""
    digest = model_digest(find_model(teacher))
    return f"teacher-{hashlib.sha256(f'{digest} {precision}'.encode()).hexdigest()[:32]}"


def _name(identity: str, texts: Sequence[str]) -> str:
    """A name for one teacher's vectors of just these texts."""
    state = hashlib.sha256(identity.encode())
    for text in texts:
        state.update(text_key(text))
    return state.hexdigest()[:16]
