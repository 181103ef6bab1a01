"""Folders of ours whose files went wrong either give what they gave before, or an error of ours."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from bulk_fakes import FakeModel, ListSource
from mutations import Case, failures
from twinvec.bulk import BulkSettings, embed_bulk, open_bulk, search_shards
from twinvec.errors import TwinvecError
from twinvec.search import IndexSettings, build_index, load_index, save_index

TEXTS = [f"text {i % 13}" for i in range(20)]
VECTORS = np.random.default_rng(0).normal(size=(200, 8)).astype(np.float32)
N_FILES = 100  # of each case


def make_bulk(folder: Path) -> None:
    embed_bulk(ListSource(TEXTS[3:]), folder, FakeModel(), settings=BulkSettings(shard_rows=4))
    embed_bulk(ListSource(TEXTS), folder, FakeModel())


def use_bulk(folder: Path) -> object:
    bulk = open_bulk(folder)
    rows = [(list(batch.ids), batch.texts, batch.vectors.tolist()) for batch in bulk.rows(7)]
    hits = search_shards(folder, VECTORS[:2], k=3)
    return rows, hits.ids.tolist(), hits.scores.tolist()


def make_index(kind: str, **settings: int):
    return lambda folder: save_index(build_index(VECTORS, IndexSettings(kind, **settings), progress=False), folder)


def use_index(folder: Path) -> object:
    index = load_index(folder)
    hits = index.search(VECTORS[:3], 4)
    return len(index), index.width, hits.ids[:, 0].tolist()


CASES = [
    Case("bulk", make_bulk, ("manifest.json",), use_bulk),
    Case("exact index", make_index("exact"), ("index.json",), use_index),
    Case("exact vectors", make_index("exact"), ("vectors.npy",), use_index, head=128),
    Case("graph", make_index("hnsw"), ("index.json",), use_index),
    Case("cells", make_index("ivf-sq8", n_cells=4, effort=4), ("index.json",), use_index),
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_a_damaged_folder_raises_a_twinvec_error_or_makes_no_difference(case, tmp_path):
    if case.name in ("graph", "cells"):
        pytest.importorskip("faiss")
    assert failures(case, tmp_path / "folder", N_FILES, 0, (TwinvecError,)) == []
