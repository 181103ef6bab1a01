"""Nothing acknowledged is lost and nothing is there twice: writers at once, kills, a full disk, damage."""

from __future__ import annotations

import os
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path
from threading import Thread

import pytest

from collections_of_fakes import CountingEmbedder, contents, fake_collection
from twinvec.collection import Collection
from twinvec.collection import store as locking
from twinvec.collection.store import Store, locate
from twinvec.errors import CollectionError, InputError

pytest.importorskip("lancedb")

ROOT = Path(__file__).parents[2]

TWO_WRITERS = """
import sys, time
from pathlib import Path
from collections_of_fakes import CountingEmbedder
from twinvec.collection import Collection
from twinvec.errors import InputError

folder, writer = Path(sys.argv[1]), sys.argv[2]
collection = Collection.open(folder, model=CountingEmbedder())
len(collection)
(folder.parent / f"ready-{writer}").touch()
while len(list(folder.parent.glob("ready-*"))) < 2:
    time.sleep(0.005)
for number in range(6):
    try:
        collection.add([f"{writer} adds {number} {i}" for i in range(3)], [f"both-{number}-{i}" for i in range(3)])
        print(f"both-{number}")
    except InputError as error:
        assert "already" in str(error)
    collection.upsert([f"{writer} writes {number}"], [f"shared-{number % 3}"], [{writer: number}])
    collection.add([f"{writer} has {number}"], [f"{writer}-{number}"])
"""


def environment():
    path = os.pathsep.join([str(ROOT / "src"), str(ROOT / "tests/support")])
    return {**os.environ, "PYTHONPATH": path}


def test_two_processes_that_write_at_once_leave_every_id_once(tmp_path):
    collection, _ = fake_collection(tmp_path / "c")
    command = [sys.executable, "-c", TWO_WRITERS, str(tmp_path / "c")]
    writers = {
        name: subprocess.Popen([*command, name], stdout=subprocess.PIPE, text=True, env=environment())
        for name in ("one", "other")
    }
    added = {name: process.communicate(timeout=600)[0].split() for name, process in writers.items()}
    assert [process.returncode for process in writers.values()] == [0, 0]
    found = contents(collection)
    assert sorted(added["one"] + added["other"]) == sorted(f"both-{number}" for number in range(6))  # one of them each
    for writer, batches in added.items():
        for batch in batches:
            number = batch.removeprefix("both-")
            assert [found[f"{batch}-{i}"][0] for i in range(3)] == [f"{writer} adds {number} {i}" for i in range(3)]
        assert all(found[f"{writer}-{number}"][0] == f"{writer} has {number}" for number in range(6))
    assert len(found) == 6 * 3 + 3 + 2 * 6
    assert collection.columns == {"one": "int", "other": "int"}


def test_without_a_lock_as_in_an_object_store_ids_stay_unique(tmp_path, monkeypatch):
    collection, _ = fake_collection(tmp_path / "c")
    monkeypatch.setattr("twinvec.collection.store.writer_lock", no_lock)
    monkeypatch.setattr("twinvec.collection.store.sync_changes", lambda *_: None)
    errors = []

    def write():
        own = Collection.open(tmp_path / "c", model=CountingEmbedder())
        for number in range(8):
            try:
                own.upsert([f"cat {number}", f"dog {number}"], [f"a{number}", f"b{number}"])
            except CollectionError as error:  # a conflict that Lance gave up on, said as such
                errors.append(str(error))

    threads = [Thread(target=write) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(contents(collection)) == 16
    assert [error for error in errors if "Do it again" not in error] == []


@contextmanager
def no_lock(*_):
    yield


def test_a_writer_that_waits_too_long_says_who_it_waits_for(tmp_path, monkeypatch):
    collection, _ = fake_collection(tmp_path / "c")
    monkeypatch.setattr(locking, "PATIENCE_S", 0.05)
    with Store(locate(tmp_path / "c")).writing():
        with pytest.raises(CollectionError, match="Another process is writing to"):
            collection.add(["x"])
        assert collection.search("x") == []  # readers do not wait
    assert collection.add(["x"]).n_added == 1


def test_changes_by_another_writer_during_embedding_are_seen(tmp_path):
    collection, model = fake_collection(tmp_path / "c")
    other = Collection.open(tmp_path / "c", model=CountingEmbedder())
    documents = model.documents

    def meanwhile(texts):
        model.documents = documents
        other.add(["theirs"], ["x"])
        return documents(texts)

    model.documents = meanwhile
    with pytest.raises(InputError, match=r"The id 'x' .* already"):
        collection.add(["ours", "more"], ["x", "y"])
    assert contents(collection) == {"x": ("theirs", {})}


def test_killed_at_any_moment_nothing_is_lost_and_nothing_is_half_written(tmp_path):
    script = ROOT / "benchmarks" / "kill_collection.py"  # kills twenty by itself
    command = [sys.executable, str(script), "--kills", "2", "--folder", str(tmp_path / "c"), "--no-result"]
    result = subprocess.run(command, capture_output=True, text=True, check=False, env=environment(), timeout=900)
    assert result.returncode == 0, result.stdout + result.stderr
    assert "2 kills" in result.stdout


@contextmanager
def small_files(n_bytes):
    """No file can grow beyond so many bytes, as on a disk that is full."""
    resource = pytest.importorskip("resource")
    old = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (n_bytes, old[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, old)


@pytest.mark.parametrize("n_bytes", [50, 3000])
def test_a_full_disk_changes_nothing_and_writing_goes_on_when_there_is_room(tmp_path, n_bytes):
    collection, _ = fake_collection(tmp_path / "c")
    collection.add(["a cat", "a dog"], ["a", "b"])
    before = contents(collection), collection.columns
    texts = [f"text number {number} " * 5 for number in range(300)]
    with small_files(n_bytes), pytest.raises(CollectionError, match=r"too large.* Free some disk space; nothing was"):
        collection.add(texts, metadata=[{"new": number} for number in range(300)])
    assert (contents(collection), collection.columns) == before
    with small_files(50), pytest.raises(CollectionError, match="Free some disk space"):
        collection.delete(["a"])
    assert contents(collection) == before[0]
    assert collection.upsert(texts, metadata=[{"new": "a text now"}] * 300).n_added == 300
    assert collection.search("cat", 1, mode="text")[0].id == "a"


def test_a_disk_that_is_full_from_the_start_leaves_no_folder(tmp_path):
    with small_files(50), pytest.raises(CollectionError, match="Free some disk space"):
        fake_collection(tmp_path / "c")
    assert list(tmp_path.iterdir()) == []


def test_of_two_processes_that_create_the_same_collection_the_first_wins(tmp_path, monkeypatch):
    from twinvec.collection import store

    make = store._create

    def slower(*arguments):
        monkeypatch.setattr(store, "_create", make)
        first, _ = fake_collection(tmp_path / "c")
        first.add(["theirs"], ["a"])
        make(*arguments)

    monkeypatch.setattr(store, "_create", slower)
    with pytest.raises(InputError, match="c exists already"):
        fake_collection(tmp_path / "c")
    assert contents(Collection.open(tmp_path / "c")) == {"a": ("theirs", {})}
    assert [file.name for file in tmp_path.iterdir()] == ["c"]


def test_columns_of_a_batch_that_failed_are_taken_back(tmp_path, monkeypatch):
    collection, _ = fake_collection(tmp_path / "c")

    def failing(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("lancedb.table.LanceTable.merge_insert", failing)
    with pytest.raises(CollectionError, match="Free some disk space"):
        collection.add(["x"], ["a"], [{"year": 1}])
    monkeypatch.undo()
    assert collection.columns == {}
    collection.add(["x"], ["a"], [{"year": "1990"}])


def newest_manifest(table):
    return max((table / "_versions").glob("*.manifest"), key=lambda file: file.stat().st_mtime_ns)


def spoil(files):
    for file in files:
        file.write_bytes(b"\x00" * file.stat().st_size)


DAMAGES = {
    "no manifest": lambda table: [file.unlink() for file in (table / "_versions").iterdir()],
    "half a manifest": lambda table: os.truncate(newest_manifest(table), 20),
    "an empty manifest": lambda table: os.truncate(newest_manifest(table), 0),
    "no data": lambda table: [file.unlink() for file in (table / "data").iterdir()],
    "half the data": lambda table: [os.truncate(file, 100) for file in (table / "data").iterdir()],
    "zeros for data": lambda table: spoil((table / "data").iterdir()),
    "no index": lambda table: [file.unlink() for file in (table / "_indices").rglob("*.lance")],
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_folder_is_reported_as_damaged(tmp_path, damage):
    collection, model = fake_collection(tmp_path / "c")
    collection.add(["a cat", "a dog"], ["a", "b"])
    collection.reindex()
    DAMAGES[damage](tmp_path / "c" / "texts.lance")
    with pytest.raises(CollectionError, match=r"Cannot (read|search) .*missing or damaged"):
        Collection.open(tmp_path / "c", model=model).search("cat", mode="hybrid")
