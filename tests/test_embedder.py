"""Cached vectors survive kills, are asked for once, and are never those of another text."""

import multiprocessing
import os
import subprocess
import sys
import time

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from twinvec.embedder import CachedEmbedder
from twinvec.errors import InputError
from twinvec.vector_store import VectorStore, cache_folder, text_key


class Lengths:
    """Embeds a text as its length and its number of words; keeps what it was asked."""

    name = "lengths"
    identity = "lengths-1"
    similarity, settings = "cosine", {}

    def __init__(self, width=2):
        self.width = width
        self.calls = []

    def embed(self, texts, *, role="text"):
        self.calls.append(list(texts))
        rows = [[len(text), len(text.split()), *range(self.width - 2)] for text in texts]
        return np.array(rows, dtype=np.float32).reshape(len(texts), self.width)


TEXTS = ["a", "a b", "", "ü ü ü", "a b", "\ud800 lone"]


def test_every_different_text_is_embedded_once_and_rows_stay_in_order(tmp_path):
    subject = Lengths()
    embed = CachedEmbedder(subject, tmp_path).embed
    assert np.array_equal(embed(TEXTS), Lengths().embed(TEXTS))
    assert subject.calls == [["a", "a b", "", "ü ü ü", "\ud800 lone"]]
    assert np.array_equal(embed(["a b", "new"]), Lengths().embed(["a b", "new"]))
    assert subject.calls[1:] == [["new"]]
    again = Lengths()
    assert np.array_equal(CachedEmbedder(again, tmp_path).embed(TEXTS), Lengths().embed(TEXTS))
    assert again.calls == []


def test_no_texts_and_one_string(tmp_path):
    embed = CachedEmbedder(Lengths(), tmp_path).embed
    assert embed([]).shape == (0, 0)
    embed(["a"])
    assert embed([]).shape == (0, 2)
    with pytest.raises(InputError, match="Put it in a list"):
        embed("a text")


def test_without_a_folder_nothing_is_written_and_texts_are_still_embedded_once(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    subject = Lengths()
    embed = CachedEmbedder(subject, None).embed
    embed(["a"]), embed(["a", "b"])
    assert subject.calls == [["a"], ["b"]]
    assert list(tmp_path.iterdir()) == []


def test_another_identity_has_other_vectors(tmp_path):
    CachedEmbedder(Lengths(), tmp_path).embed(["a"])
    other = Lengths()
    other.identity = "lengths-2"
    CachedEmbedder(other, tmp_path).embed(["a"])
    assert other.calls == [["a"]]


def test_calls_are_large_but_bounded_so_that_a_kill_costs_little(tmp_path):
    subject = Lengths()
    texts = [f"text {i}" for i in range(10)]

    class Killed(BaseException):
        pass

    def embed(part, role):
        if len(subject.calls) == 2:
            raise Killed
        return Lengths.embed(subject, part)

    subject.embed = embed
    with pytest.raises(Killed):
        CachedEmbedder(subject, tmp_path, at_once=4).embed(texts)
    after = Lengths()
    CachedEmbedder(after, tmp_path, at_once=4).embed(texts)
    assert after.calls == [texts[8:]]


def test_another_width_is_refused(tmp_path):
    CachedEmbedder(Lengths(), tmp_path).embed(["a"])
    with pytest.raises(InputError, match="width 3; earlier vectors have width 2"):
        CachedEmbedder(Lengths(width=3), tmp_path).embed(["b"])


def test_vectors_that_are_no_numbers_are_refused(tmp_path):
    subject = Lengths()
    subject.embed = lambda texts, role: np.full((len(texts), 2), np.nan, dtype=np.float32)
    with pytest.raises(InputError, match="lengths returned NaN or infinity, the first for the text 'a'"):
        CachedEmbedder(subject, tmp_path).embed(["a"])


def test_the_folder_of_the_cache(monkeypatch, tmp_path):
    monkeypatch.setenv("TWINVEC_CACHE", str(tmp_path))
    assert cache_folder() == tmp_path
    monkeypatch.delenv("TWINVEC_CACHE")
    assert "twinvec" in cache_folder().parts


def test_a_folder_that_cannot_be_written_is_named(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match="--no-cache"):
        CachedEmbedder(Lengths(), tmp_path / "file" / "cache")


def test_thirty_thousand_vectors_load_in_well_under_a_second(tmp_path):
    keys = [text_key(str(i)) for i in range(30_000)]
    vectors = np.random.default_rng(0).standard_normal((30_000, 384)).astype(np.float32)
    store = VectorStore(tmp_path)
    for start in range(0, 30_000, 4096):
        store.add(keys[start : start + 4096], vectors[start : start + 4096])
    started = time.perf_counter()
    again = VectorStore(tmp_path)
    found = again.vectors(again.rows(keys))
    assert time.perf_counter() - started < 1.0
    assert np.array_equal(found, vectors)


def fill(folder):
    """A store of three files; returns keys and vectors."""
    keys = [text_key(str(i)) for i in range(12)]
    vectors = np.arange(60, dtype=np.float32).reshape(12, 5)
    store = VectorStore(folder)
    for start in range(0, 12, 4):
        store.add(keys[start : start + 4], vectors[start : start + 4])
    return keys, vectors


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(place=st.integers(0, 2), share=st.floats(0, 1), damage=st.sampled_from(["cut", "flip", "extend"]))
def test_a_damaged_file_costs_its_own_vectors_only(tmp_path_factory, place, share, damage):
    folder = tmp_path_factory.mktemp("store")
    keys, vectors = fill(folder)
    file = sorted(folder.glob("*.vectors"))[place]
    content = bytearray(file.read_bytes())
    n_head = 20 + 4 * 32
    if damage == "cut":
        content = content[: int(share * (len(content) - 1))]
    elif damage == "flip":
        content[int(share * (n_head - 1))] ^= 0xFF
    else:
        content += b"more"
    file.write_bytes(bytes(content))
    store = VectorStore(folder)
    rows = store.rows(keys)
    assert (rows >= 0).sum() == 8
    assert np.array_equal(store.vectors(rows[rows >= 0]), vectors[rows >= 0])
    lost = np.flatnonzero(rows < 0)
    store.add([keys[i] for i in lost], vectors[lost])
    whole = VectorStore(folder)
    assert np.array_equal(whole.vectors(whole.rows(keys)), vectors)


def test_files_of_a_killed_writer_are_not_read(tmp_path):
    keys, vectors = fill(tmp_path)
    new, old = (tmp_path / f".{letter * 32}.vectors.partial-0123456789abcdef" for letter in "ab")
    others = tmp_path / ".mine.partial"
    for file in (new, old, others):
        file.write_bytes(b"half a fi")
        os.utime(file, None if file == new else (0, 0))
    store = VectorStore(tmp_path)
    assert sorted(tmp_path.glob(".*.partial*")) == sorted([new, others])
    assert np.array_equal(store.vectors(store.rows(keys)), vectors)


def _add_many(folder, start):
    store = VectorStore(folder)
    for i in range(start, start + 20):
        store.add([text_key(str(i))], np.full((1, 4), i, dtype=np.float32))


def test_two_processes_write_at_once(tmp_path):
    context = multiprocessing.get_context("spawn")
    processes = [context.Process(target=_add_many, args=(tmp_path, start)) for start in (0, 10)]
    for process in processes:
        process.start()
    for process in processes:
        process.join(60)
    store = VectorStore(tmp_path)
    rows = store.rows([text_key(str(i)) for i in range(30)])
    assert np.array_equal(store.vectors(rows)[:, 0], np.arange(30))


def test_a_disk_error_loses_the_cache_but_not_the_work(tmp_path, caplog):
    store = VectorStore(tmp_path / "file" / "store")
    (tmp_path / "file").write_text("")
    store.add([text_key("a")], np.ones((1, 2), dtype=np.float32))
    assert "vectors are not cached" in caplog.text
    assert store.vectors(store.rows([text_key("a")])).tolist() == [[1, 1]]


FEW_FILES = """
import resource, sys
from pathlib import Path
import numpy as np
resource.setrlimit(resource.RLIMIT_NOFILE, (40, 40))
from twinvec.vector_store import VectorStore, text_key
folder, n = Path(sys.argv[1]), 100
store = VectorStore(folder)
for i in range(n):
    store.add([text_key(str(i))], np.full((1, 4), i, dtype=np.float32))
again = VectorStore(folder)
rows = again.rows([text_key(str(i)) for i in range(n)])
assert np.array_equal(again.vectors(rows)[:, 0], np.arange(n))
"""


def test_a_store_may_have_more_files_than_a_process_may_open(tmp_path):
    pytest.importorskip("resource")
    result = subprocess.run([sys.executable, "-c", FEW_FILES, str(tmp_path)], capture_output=True, text=True)
    assert result.returncode == 0, result.stderr
    assert len(list(tmp_path.glob("*.vectors"))) == 100


@pytest.mark.parametrize("damage", ["removed", "cut"])
def test_a_file_that_goes_while_its_store_is_in_use_is_an_error_that_says_so(tmp_path, damage):
    keys, _ = fill(tmp_path)
    store = VectorStore(tmp_path)
    file = sorted(tmp_path.glob("*.vectors"))[1]
    file.unlink() if damage == "removed" else os.truncate(file, 100)
    with pytest.raises(InputError, match="was changed or removed while it was in use"):
        store.vectors(store.rows(keys))
    assert (VectorStore(tmp_path).rows(keys) >= 0).sum() == 8
