"""Indexes by their kind, new or from a folder on the disk."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import cast

from twinvec.errors import InputError
from twinvec.files import new_folder, read_json, write_json
from twinvec.json_checks import Check, check_object, is_count, is_map, is_positive, one_of
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
MOST = 2**31 - 1  # what FAISS counts by
AGAIN = "Build the index again."


def _is_setting(value: object) -> bool:
    return is_positive(value) and cast(int, value) <= MOST


FACTS: dict[str, Check] = {
    "format": one_of(INDEX.format),
    "settings": is_map,
    "width": _is_setting,
    "n_vectors": is_count,
}
SETTINGS: dict[str, Check] = {
    "kind": one_of(*CLASSES),
    "n_links": _is_setting,
    "n_cells": _is_setting,
    "code_bytes": _is_setting,
    "effort": _is_setting,
    "oversample": _is_setting,
}


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
    where = f"{path / SETTINGS_FILE} cannot be read: it"
    check_object(facts, FACTS, where, hint=AGAIN)
    settings = IndexSettings(**check_object(facts["settings"], SETTINGS, f"{where}s 'settings'", hint=AGAIN))
    index: Index = CLASSES[settings.kind].read(path, settings, facts["width"])
    if len(index) != facts["n_vectors"]:
        raise InputError(f"{path} holds {len(index)} vectors, but says {facts['n_vectors']}.", hint=AGAIN)
    return index
