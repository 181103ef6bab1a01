"""Search and pairs over shards: the same as over all vectors at once, whatever the shards."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bulk_fakes import FakeModel, ListSource, in_memory
from twinvec.bulk import BulkSettings, embed_bulk, open_bulk, pairs_of_shards, search_shards
from twinvec.bulk import search as pairs_module
from twinvec.bulk.plan import Marks
from twinvec.bulk.search import merge_hits
from twinvec.encoder import Block
from twinvec.errors import InputError, UnknownNameError
from twinvec.search import Hits, most_similar_pairs, search

pytest.importorskip("pyarrow")

N, WIDTH = 300, 16
VECTORS = np.random.default_rng(0).standard_normal((N, WIDTH)).astype(np.float32)
QUERIES = np.random.default_rng(1).standard_normal((7, WIDTH)).astype(np.float32)


class TableModel(FakeModel):
    """The text "12" has row 12 of a table."""

    def __init__(self, table=VECTORS, **settings):
        super().__init__(settings=settings)
        self._table, self.width = table, table.shape[1]

    def embed_block(self, texts):
        return Block(self._table[[int(text) for text in texts]], 0, 0)


@pytest.fixture(params=["parquet", "arrow"])
def bulk(request):
    with in_memory() as folder:
        chosen = BulkSettings(shard_rows=37, shard_format=request.param)
        embed_bulk(ListSource([str(i) for i in range(N)]), folder, TableModel(), settings=chosen)
        yield folder


@pytest.mark.parametrize("similarity", ["cosine", "dot", "euclidean"])
@pytest.mark.parametrize("k", [1, 10, 1000])
def test_hits_are_those_of_a_search_over_all_vectors(bulk, similarity, k):
    found = search_shards(bulk, QUERIES, k=k, similarity=similarity)
    wanted = search(QUERIES, VECTORS, k=min(k, N), similarity=similarity)
    assert np.allclose(found.scores, wanted.scores, atol=1e-5)
    assert np.mean(found.ids == wanted.ids) > 0.99  # nearly equal scores may change places


@pytest.mark.parametrize(("k", "threshold"), [(1, None), (500, None), (10_000, 0.5), (44_850, None)])
def test_pairs_are_those_of_all_vectors(bulk, monkeypatch, k, threshold):
    monkeypatch.setattr(pairs_module, "BLOCK_TEXTS", 80)
    monkeypatch.setattr(pairs_module, "TILE_ROWS", 33)
    found = pairs_of_shards(bulk, k=k, threshold=threshold)
    wanted = most_similar_pairs(VECTORS, k=k, threshold=threshold)
    assert np.allclose(found.scores, wanted.scores, atol=1e-6)
    assert set(zip(found.left, found.right, strict=True)) == set(zip(wanted.left, wanted.right, strict=True))
    assert (found.left < found.right).all()


def test_texts_of_earlier_runs_are_not_found(bulk):
    kept = [i for i in range(N) if i % 3]
    embed_bulk(ListSource([str(i) for i in kept]), bulk, TableModel())
    hits = search_shards(bulk, QUERIES, k=20)
    wanted = search(QUERIES, VECTORS[kept], k=20)
    assert np.array_equal(hits.ids, np.array(kept)[wanted.ids])
    pairs, best = pairs_of_shards(bulk, k=50), most_similar_pairs(VECTORS[kept], k=50)
    assert np.allclose(pairs.scores, best.scores, atol=1e-6)
    assert not (pairs.left % 3 == 0).any() and not (pairs.right % 3 == 0).any()


def test_numbers_lead_to_texts(bulk):
    hits = search_shards(bulk, VECTORS[[42]], k=1)
    assert open_bulk(bulk).take(hits.ids[0])[0] == ["42"]


def test_shards_load_into_a_lance_table_as_they_are(bulk, tmp_path):
    lancedb = pytest.importorskip("lancedb")
    from pyarrow import dataset

    shards = dataset.dataset(bulk / "texts", format="ipc" if list(bulk.glob("texts/*.arrow")) else "parquet")
    table = lancedb.connect(tmp_path).create_table("texts", shards.to_batches(), schema=shards.schema)
    assert table.count_rows() == N
    assert table.search(VECTORS[42]).limit(1).to_list()[0]["text"] == "42"


def test_int8_vectors_are_searched_and_binary_ones_refused():
    with in_memory() as folder:
        for output in ("int8", "binary"):
            unit = VECTORS / np.linalg.norm(VECTORS, axis=1, keepdims=True)
            chosen = BulkSettings(output=output)
            embed_bulk(ListSource([str(i) for i in range(N)]), folder / output, TableModel(unit), settings=chosen)
        assert search_shards(folder / "int8", VECTORS[:5], k=1).ids[:, 0].tolist() == [0, 1, 2, 3, 4]
        with pytest.raises(InputError, match="Cannot search the binary vectors"):
            pairs_of_shards(folder / "binary")


def test_bad_queries_are_refused(bulk):
    for arguments, said in [
        ({"queries": QUERIES[:, :5]}, "the width 16"),
        ({"queries": QUERIES, "k": 0}, "k must be at least 1"),
        ({"queries": QUERIES * np.nan}, "NaN"),
    ]:
        with pytest.raises(InputError, match=said):
            search_shards(bulk, **arguments)
    with pytest.raises(UnknownNameError, match="cosine"):
        search_shards(bulk, QUERIES, similarity="cosinus")
    with pytest.raises(InputError, match="threshold must be a number"):
        pairs_of_shards(bulk, threshold=float("nan"))
    with pytest.raises(InputError, match="k must be at least 1"):
        pairs_of_shards(bulk, k=0)


@settings(max_examples=40, deadline=None)
@given(st.lists(st.integers(0, 4), min_size=1, max_size=30), st.integers(1, 12), st.data())
def test_hits_may_be_merged_in_any_order(scores, k, data):
    parts = [Hits(np.array([[i]]), np.array([[score]], dtype=np.float32)) for i, score in enumerate(scores)]
    best = Hits(np.empty((1, 0), dtype=np.int64), np.empty((1, 0), dtype=np.float32))
    for part in data.draw(st.permutations(parts)):
        best = merge_hits(best, part, k)
    wanted = sorted(range(len(scores)), key=lambda i: (-scores[i], i))[:k]
    assert best.ids[0].tolist() == wanted


@settings(max_examples=40, deadline=None)
@given(st.integers(1, 100), st.lists(st.integers(0, 120), max_size=60), st.data())
def test_marks_remember_what_was_seen(n, numbers, data):
    marks = Marks(n)
    for start in range(0, len(numbers), 7):
        marks.add(np.array(numbers[start : start + 7], dtype=np.int64))
    seen = {number for number in numbers if number < n}
    assert marks.count() == len(seen)
    first = data.draw(st.integers(0, n - 1))
    last = data.draw(st.integers(first, n))
    assert marks.seen(range(first, last)).tolist() == [number in seen for number in range(first, last)]


FEW_FILES = """
import resource, sys
import numpy as np
from bulk_fakes import FakeModel, ListSource
from twinvec.bulk import BulkSettings, embed_bulk, pairs_of_shards, read_bulk, search_shards
resource.setrlimit(resource.RLIMIT_NOFILE, (128, 128))
folder, kind, texts = sys.argv[1], sys.argv[2], [str(i) for i in range(200)]
chosen = BulkSettings(shard_rows=1, shard_format=kind)
embed_bulk(ListSource(texts), folder, FakeModel(), settings=chosen)
again = FakeModel()
embed_bulk(ListSource(texts), folder, again, settings=chosen)
assert not again.texts
assert [text for batch in read_bulk(folder) for text in batch.texts] == texts
assert search_shards(folder, np.ones((1, 8), dtype=np.float32), k=200).ids.shape == (1, 200)
assert len(pairs_of_shards(folder, k=50).scores) == 50
"""


@pytest.mark.parametrize("kind", ["parquet", "arrow"])
def test_a_folder_may_have_more_shards_than_a_process_may_open(kind):
    pytest.importorskip("resource")
    with in_memory() as folder:
        command = [sys.executable, "-c", FEW_FILES, str(folder), kind]
        places = os.pathsep.join([str(Path(__file__).parents[1] / "support"), *sys.path])
        environment = {**os.environ, "PYTHONPATH": places}
        result = subprocess.run(command, capture_output=True, text=True, env=environment)
        assert result.returncode == 0, result.stderr
        assert len(list(folder.rglob(f"*.{kind}"))) >= 200
