"""Indexes by kind: create, save, load. The exact index is here; FAISS's are in ``faiss``."""

from __future__ import annotations

from dataclasses import asdict, fields
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike

from twinvec.errors import InputError
from twinvec.files import mapped_vectors, new_folder, read_json, write_json
from twinvec.json_checks import LARGEST_EXACT, JsonObject
from twinvec.ownership import INDEX
from twinvec.search.exact import Hits, search
from twinvec.search.faiss import FaissIndex
from twinvec.search.index import Index, IndexKind, IndexSettings
from twinvec.search.measures import check_widths, unit_rows_of
from twinvec.types import Array, Vectors
from twinvec.vectors import numeric_rows

__all__ = ["load_index", "new_index", "save_index"]

FILE = "vectors.npy"


class ExactIndex:
    """Vectors at length 1, compared one and all. What was read from a file stays there, mapped."""

    def __init__(self, settings: IndexSettings, width: int, vectors: Vectors) -> None:
        self.settings, self.width = settings, width
        self._parts = [vectors]

    @classmethod
    def empty(cls, settings: IndexSettings, width: int) -> ExactIndex:
        """An index without vectors."""
        return cls(settings, width, np.empty((0, width), dtype=np.float32))

    @classmethod
    def read(cls, folder: Path, settings: IndexSettings, width: int) -> ExactIndex:
        """The index in a folder."""
        vectors = mapped_vectors(folder / FILE, hint="Build the index again.")
        if vectors.shape[1] != width or vectors.dtype != np.float32:
            raise InputError(
                f"{folder / FILE} holds {vectors.dtype} of shape {vectors.shape}, but the index has the width {width}.",
                hint="Build the index again.",
            )
        return cls(settings, width, vectors)

    def __len__(self) -> int:
        return sum(len(part) for part in self._parts)

    @property
    def is_trained(self) -> bool:
        """There is nothing to learn."""
        return True

    def train(self, sample: Array) -> None:
        """There is nothing to learn."""

    def add(self, vectors: ArrayLike) -> None:
        """Add vectors ``(n, width)``."""
        rows = numeric_rows(vectors, "vectors")
        check_widths(rows, self._parts[0])
        units = unit_rows_of(rows)
        self._parts.append(units.copy() if units is rows else units)  # the caller's array may change

    def search(self, queries: ArrayLike, k: int = 10) -> Hits:
        """The nearest ``k`` to each query ``(n, width)``."""
        return search(queries, self.vectors(), k=k)

    def vectors(self) -> Vectors:
        """All vectors, ``(n, width)``."""
        parts = [part for part in self._parts if len(part)] or self._parts
        self._parts = [parts[0] if len(parts) == 1 else np.concatenate(parts)]
        return self._parts[0]

    def write(self, folder: Path) -> None:
        """Put the vectors into a folder."""
        np.save(folder / FILE, self.vectors())


SETTINGS_FILE = "index.json"

CLASSES: dict[IndexKind, type[ExactIndex] | type[FaissIndex]] = {
    "exact": ExactIndex,
    "flat": FaissIndex,
    "hnsw": FaissIndex,
    "ivf-sq8": FaissIndex,
    "ivf-pq": FaissIndex,
}
AGAIN = "Build the index again."


def new_index(settings: IndexSettings, width: int) -> Index:
    """An empty index."""
    return CLASSES[settings.kind].empty(settings, width)


def save_index(index: Index, folder: str | Path, *, replace: bool = False) -> None:
    """Write an index to a folder, which appears only when it is complete."""
    facts = {"format": INDEX.format, "settings": asdict(index.settings), "width": index.width, "n_vectors": len(index)}
    try:
        with new_folder(Path(folder), INDEX, replace=replace) as partial:
            index.write(partial)
            write_json(partial / SETTINGS_FILE, facts)
    except (OSError, RuntimeError) as error:  # the second is FAISS's
        reason = str(error).splitlines()[0]
        raise InputError(f"Cannot write the index {folder}: {reason}.", hint="Is the disk full?") from error


def load_index(folder: str | Path) -> Index:
    """An index that ``save_index`` has written."""
    path = Path(folder)
    facts = read_json(path / SETTINGS_FILE)
    if not facts:
        raise InputError(f"{path} holds no index: there is no {SETTINGS_FILE}.", hint="Write one with save_index.")
    checked = JsonObject(facts, path / SETTINGS_FILE, InputError, AGAIN)
    checked.only(("format", "settings", "width", "n_vectors")).word("format", choices=[INDEX.format])
    settings, width = _settings(checked.inner("settings")), checked.integer("width")
    n_vectors = checked.integer("n_vectors", least=0, most=LARGEST_EXACT)
    index: Index = CLASSES[settings.kind].read(path, settings, width)
    if len(index) != n_vectors:
        raise InputError(f"{path} holds {len(index)} vectors, but says {n_vectors}.", hint=AGAIN)
    return index


def _settings(content: JsonObject) -> IndexSettings:
    names = [each.name for each in fields(IndexSettings)]
    numbers = {name: content.only(names).integer(name) for name in names if name != "kind"}
    return IndexSettings(content.word("kind", choices=CLASSES), **numbers)
