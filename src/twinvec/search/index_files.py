"""Create, save and load an index of any kind. The exact index is here; the FAISS ones are in ``faiss``."""

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
from twinvec.search.measures import check_width, unit_rows_of
from twinvec.types import Array, Vectors
from twinvec.vectors import numeric_rows

__all__ = ["load_index", "new_index", "save_index"]

FILE = "vectors.npy"
SETTINGS_FILE = "index.json"
REBUILD = "Rebuild the index."


class ExactIndex:
    """Exact search over vectors scaled to length 1. Vectors loaded from a file stay memory-mapped."""

    def __init__(self, settings: IndexSettings, width: int, vectors: Vectors) -> None:
        self.settings, self.width = settings, width
        self._parts = [vectors]

    @classmethod
    def empty(cls, settings: IndexSettings, width: int) -> ExactIndex:
        """Create an index without vectors."""
        return cls(settings, width, np.empty((0, width), dtype=np.float32))

    @classmethod
    def read(cls, folder: Path, settings: IndexSettings, width: int) -> ExactIndex:
        """Load the index from a folder."""
        vectors = mapped_vectors(folder / FILE, hint=REBUILD)
        if vectors.shape[1] != width or vectors.dtype != np.float32:
            raise InputError(
                f"{folder / FILE} has {vectors.dtype} of shape {vectors.shape}, but needs float32 of width {width}.",
                hint=REBUILD,
            )
        return cls(settings, width, vectors)

    def __len__(self) -> int:
        return sum(len(part) for part in self._parts)

    @property
    def is_trained(self) -> bool:
        """Always true: nothing to train."""
        return True

    def train(self, sample: Array) -> None:
        """Do nothing: there is nothing to train."""

    def add(self, vectors: ArrayLike) -> None:
        """Add vectors ``(n, width)``."""
        rows = numeric_rows(vectors, "vectors")
        check_width(rows, self.width)
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
        """Write the vectors to a folder."""
        np.save(folder / FILE, self.vectors())


CLASSES: dict[IndexKind, type[ExactIndex] | type[FaissIndex]] = {
    "exact": ExactIndex,
    "flat": FaissIndex,
    "hnsw": FaissIndex,
    "ivf-sq8": FaissIndex,
    "ivf-pq": FaissIndex,
}


def new_index(settings: IndexSettings, width: int) -> Index:
    """Create an empty index."""
    return CLASSES[settings.kind].empty(settings, width)


def save_index(index: Index, folder: str | Path, *, replace: bool = False) -> None:
    """Write an index to a folder, which appears only once it is complete."""
    facts = {"format": INDEX.format, "settings": asdict(index.settings), "width": index.width, "n_vectors": len(index)}
    try:
        with new_folder(Path(folder), INDEX, replace=replace) as partial:
            index.write(partial)
            write_json(partial / SETTINGS_FILE, facts)
    except (OSError, RuntimeError) as error:  # FAISS raises RuntimeError
        reason = str(error).splitlines()[0]
        raise InputError(
            f"Cannot write the index {folder}: {reason}.", hint="Check the disk space and the permissions."
        ) from error


def load_index(folder: str | Path) -> Index:
    """Load an index written by ``save_index``."""
    path = Path(folder)
    facts = read_json(path / SETTINGS_FILE)
    if not facts:
        raise InputError(f"{path} is not an index: it has no {SETTINGS_FILE}.", hint="Create one with save_index.")
    checked = JsonObject(facts, path / SETTINGS_FILE, InputError, REBUILD)
    checked.only(("format", "settings", "width", "n_vectors")).word("format", choices=[INDEX.format])
    settings, width = _settings(checked.inner("settings")), checked.integer("width")
    n_vectors = checked.integer("n_vectors", least=0, most=LARGEST_EXACT)
    index: Index = CLASSES[settings.kind].read(path, settings, width)
    if len(index) != n_vectors:
        raise InputError(f"{path} has {len(index)} vectors, but {SETTINGS_FILE} says {n_vectors}.", hint=REBUILD)
    return index


def _settings(content: JsonObject) -> IndexSettings:
    names = [each.name for each in fields(IndexSettings)]
    numbers = {name: content.only(names).integer(name) for name in names if name != "kind"}
    return IndexSettings(content.word("kind", choices=CLASSES), **numbers)
