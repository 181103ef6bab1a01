"""Indexes by their kind, new or from a folder on the disk."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path

from twinvec.errors import InputError
from twinvec.files import new_folder, read_json, write_json
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
    with new_folder(Path(folder), replace=replace) as partial:
        index.write(partial)
        facts = {"settings": asdict(index.settings), "width": index.width, "n_vectors": len(index)}
        write_json(partial / SETTINGS_FILE, facts)


def load_index(folder: str | Path) -> Index:
    """An index that ``save_index`` has written."""
    path = Path(folder)
    facts = read_json(path / SETTINGS_FILE)
    if not facts:
        raise InputError(f"{path} holds no index: there is no {SETTINGS_FILE}.", hint="Write one with save_index.")
    settings = IndexSettings(**facts["settings"])
    index: Index = CLASSES[settings.kind].read(path, settings, facts["width"])
    if len(index) != facts["n_vectors"]:
        raise InputError(
            f"{path} holds {len(index)} vectors, but says {facts['n_vectors']}.", hint="Build the index again."
        )
    return index
