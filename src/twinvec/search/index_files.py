"""Indexes by their kind, new or from a folder on the disk."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path

from twinvec.errors import InputError
from twinvec.files import new_folder, read_json, write_json
from twinvec.ownership import INDEX
from twinvec.search.exact_index import ExactIndex
from twinvec.search.faiss_index import FaissIndex
from twinvec.search.index import Index
from twinvec.search.index_settings import IndexKind, IndexSettings

__all__ = ["load_index", "new_index", "save_index"]

SETTINGS_FILE = "index.json"

CLASSES: dict[IndexKind, type[ExactIndex] | type[FaissIndex]] = {
    "exact": ExactIndex,
    "flat": FaissIndex,
    "hnsw": FaissIndex,
    "ivf-sq8": FaissIndex,
    "ivf-pq": FaissIndex,
}


def new_index(settings: IndexSettings, width: int) -> Index:
    """An empty index."""
    return CLASSES[settings.kind].empty(settings, width)


def save_index(index: Index, folder: str | Path, *, replace: bool = False) -> None:
    """Write an index to a folder, which appears only when it is complete."""
    facts = {"settings": asdict(index.settings), "width": index.width, "n_vectors": len(index)}
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
    try:
        settings = IndexSettings(**facts["settings"])
        width, n_vectors = facts["width"], facts["n_vectors"]
    except (KeyError, TypeError) as error:
        raise InputError(
            f"{path / SETTINGS_FILE} cannot be read: {type(error).__name__}: {error}.", hint="Build the index again."
        ) from error
    index: Index = CLASSES[settings.kind].read(path, settings, width)
    if len(index) != n_vectors:
        raise InputError(f"{path} holds {len(index)} vectors, but says {n_vectors}.", hint="Build the index again.")
    return index
