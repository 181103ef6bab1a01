"""Bulk jobs: complete, once, whatever happens to the process, the disk or the source."""

from __future__ import annotations

import errno
import hashlib
import json
import os
import resource
import stat
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bulk_fakes import FakeModel, Interrupted, ListSource, content, fake_vectors, in_memory
from twinvec.bulk import BulkSettings, FileSource, embed_bulk, open_bulk, read_bulk
from twinvec.bulk import job as job_module
from twinvec.bulk import source as source_module
from twinvec.bulk.job import locked
from twinvec.bulk.rows import RowsWriter
from twinvec.errors import InputError, RowError, UnknownNameError

pytest.importorskip("pyarrow")

TEXTS = [f"text {i * i % 23}" for i in range(60)]  # 12 different ones
SMALL = BulkSettings(shard_rows=5)


@pytest.fixture
def ram():
    with in_memory() as folder:
        yield folder


def rows_of(folder, rows_per_batch=7):
    """All rows as the reader gives them: ids, texts, vectors."""
    batches = list(read_bulk(folder, rows_per_batch=rows_per_batch))
    ids = [each for batch in batches for each in batch.ids]
    return (
        ids,
        [text for batch in batches for text in batch.texts],
        np.concatenate([batch.vectors for batch in batches]),
    )


@pytest.mark.parametrize("shard_format", ["parquet", "arrow"])
def test_every_row_comes_back_in_its_order_with_the_vector_of_its_text(ram, shard_format):
    model = FakeModel()
    chosen = BulkSettings(shard_rows=5, shard_format=shard_format)
    report = embed_bulk(ListSource(TEXTS), ram / "out", model, settings=chosen)
    ids, texts, vectors = rows_of(ram / "out")
    assert (ids, texts) == (list(range(60)), TEXTS)
    by_text = {text: row for block in model.blocks for text, row in zip(block, fake_vectors(block), strict=True)}
    assert np.array_equal(vectors, np.stack([by_text[text] for text in TEXTS]))
    assert (report.n_rows, report.n_texts, report.n_embedded, report.n_repeated) == (60, 12, 12, 48)


def test_texts_that_repeat_are_embedded_once_also_far_apart(ram, monkeypatch):
    monkeypatch.setattr(source_module, "BLOCK_ROWS", 4)
    model = FakeModel()
    embed_bulk(ListSource(TEXTS), ram / "out", model, settings=SMALL)
    assert model.texts == list(dict.fromkeys(TEXTS))


@settings(max_examples=25, deadline=None)
@given(
    st.lists(st.text(alphabet="ab", max_size=3), min_size=1, max_size=40),
    st.lists(st.integers(0, 3), max_size=5),
    st.integers(1, 6),
)
def test_a_job_interrupted_anywhere_ends_with_the_bytes_of_one_that_was_not(texts, stops, shard_rows):
    chosen, asked = BulkSettings(shard_rows=shard_rows), []
    with in_memory() as folder:
        embed_bulk(ListSource(texts), folder / "whole", FakeModel(), settings=chosen)
        for stop in [*stops, None]:
            model = FakeModel(fail_at=stop)
            with suppress(Interrupted):
                embed_bulk(ListSource(texts), folder / "parts", model, settings=chosen)
            asked += model.texts
        assert content(folder / "parts") == content(folder / "whole")
    assert sorted(asked) == sorted(set(texts))  # never twice, never missing


def kill(mode, folder, texts):
    """Run the killing script; gives how often it killed and how many texts were embedded in each job."""
    pytest.importorskip("fcntl")
    source = folder / "source.txt"
    source.write_text("".join(f"{text}\n" for text in texts))
    embed_bulk(source, folder / "whole", FakeModel(), settings=BulkSettings(shard_rows=2))
    (folder / mode).mkdir()
    script = Path(__file__).parents[1] / "support" / "bulk_kills.py"
    done = subprocess.run(
        [sys.executable, str(script), mode, str(source), str(folder / mode)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_a_kill_before_any_file_operation_loses_at_most_one_shard(ram):
    told = kill("each", ram, ["a", "b", "a", "c"])
    assert told["kills"] > 20
    for kill_at in range(1, told["kills"] + 1):
        assert content(ram / "each" / str(kill_at)) == content(ram / "whole"), kill_at
    assert all(3 <= n <= 3 + 2 for n in told["embedded"])


def test_a_job_killed_again_and_again_is_complete_in_the_end(ram):
    texts = [f"text {i}" for i in range(30)]
    told = kill("often", ram, texts)
    assert told["kills"] >= 3
    assert content(ram / "often" / "job") == content(ram / "whole")
    assert told["embedded"][0] <= 30 + 2 * told["kills"]


def test_a_later_run_embeds_only_what_is_new(ram):
    embed_bulk(ListSource(TEXTS), ram, FakeModel(), settings=SMALL)
    old = content(ram)
    changed = ["a new first row", *TEXTS[:30], "another one", *TEXTS[31:]]
    model = FakeModel()
    report = embed_bulk(ListSource(changed), ram, model)
    assert model.texts == ["a new first row", "another one"]
    assert report.n_embedded == 2
    ids, texts, _ = rows_of(ram)
    assert (ids, texts) == (list(range(61)), changed)
    new = content(ram)
    assert all(new[name] == data for name, data in old.items() if name.startswith("texts/"))
    assert len(list(ram.glob("rows-*"))) == 1


def test_texts_that_are_gone_are_counted_and_come_back_for_nothing(ram):
    embed_bulk(ListSource(["a", "b", "c", "d"]), ram, FakeModel(), settings=SMALL)
    report = embed_bulk(ListSource(["d", "b", "d"]), ram, FakeModel())
    assert (report.n_texts, report.n_unused, report.n_embedded) == (2, 2, 0)
    assert rows_of(ram)[1] == ["d", "b", "d"]
    again = embed_bulk(ListSource(["a", "b", "c", "d"]), ram, FakeModel())
    assert (again.n_embedded, again.n_unused) == (0, 0)


def test_a_run_with_nothing_new_changes_no_byte_and_loads_no_model(ram):
    embed_bulk(ListSource(TEXTS), ram, FakeModel(), settings=SMALL)
    before, model = content(ram), FakeModel(fail_at=0)
    model.open = lambda: pytest.fail("the model was loaded")
    assert embed_bulk(ListSource(TEXTS), ram, model).n_embedded == 0
    assert content(ram) == before


DAMAGES = {
    "a changed byte": lambda path: path.write_bytes(path.read_bytes()[:-9] + b"x" + path.read_bytes()[-8:]),
    "a lost end": lambda path: path.write_bytes(path.read_bytes()[:-30]),
    "nothing in it": lambda path: path.write_bytes(b""),
    "the file is gone": Path.unlink,
}


@pytest.mark.parametrize("damage", DAMAGES)
@pytest.mark.parametrize("shard_format", ["parquet", "arrow"])
def test_a_damaged_shard_is_found_and_redone_as_it_was(ram, damage, shard_format, caplog):
    chosen = BulkSettings(shard_rows=5, shard_format=shard_format)
    embed_bulk(ListSource(TEXTS), ram, FakeModel(), settings=chosen)
    whole = content(ram)
    shards = sorted((ram / "texts").iterdir())
    DAMAGES[damage](shards[1])
    model = FakeModel()
    report = embed_bulk(ListSource(TEXTS), ram, model)
    assert model.texts == list(dict.fromkeys(TEXTS))[5:10]
    assert report.n_damaged == (damage != "the file is gone")
    assert (str(shards[1]) in caplog.text) == (damage != "the file is gone")
    assert content(ram) == whole


def test_a_reader_notices_a_damaged_vector(ram):
    embed_bulk(ListSource(TEXTS), ram, FakeModel(), settings=SMALL)
    shard = sorted((ram / "texts").iterdir())[0]
    data = bytearray(shard.read_bytes())
    place = bytes(data).find(fake_vectors(list(dict.fromkeys(TEXTS))[:5])[0].tobytes())
    data[place] ^= 1
    shard.write_bytes(bytes(data))
    with pytest.raises(InputError, match="damaged or missing"):
        rows_of(ram)


def test_a_damaged_byte_of_the_rows_never_gives_other_rows(ram):
    ids = [f"id {i}" for i in range(60)]
    embed_bulk(ListSource(TEXTS, ids), ram, FakeModel(), settings=SMALL)
    whole, (rows,) = content(ram), ram.glob("rows-*")
    data, n_said = rows.read_bytes(), 0
    for place in range(len(data)):
        rows.write_bytes(data[:place] + bytes([data[place] ^ 64]) + data[place + 1 :])
        try:
            assert rows_of(ram, 100)[:2] == (ids, TEXTS), place  # some bytes decide nothing
        except InputError:
            n_said += 1
    assert n_said > len(data) / 2
    embed_bulk(ListSource(TEXTS, ids), ram, FakeModel())
    assert content(ram) == whole


@pytest.mark.parametrize(
    ("model", "chosen", "said"),
    [
        (FakeModel("other"), SMALL, "the model was fake .*, now other"),
        (FakeModel(settings={"precision": "int8"}), SMALL, "precision was 'float32', now 'int8'"),
        (FakeModel(settings={"prompt": "q: "}), SMALL, "prompt was None, now 'q: '"),
        (FakeModel(), BulkSettings(shard_rows=6), "rows per shard was 5, now 6"),
        (FakeModel(), BulkSettings(shard_format="arrow"), "shard format was 'parquet', now 'arrow'"),
    ],
)
def test_another_model_or_another_way_to_run_it_is_refused(ram, model, chosen, said):
    embed_bulk(ListSource(TEXTS), ram, FakeModel(), settings=SMALL)
    before = content(ram)
    with pytest.raises(InputError, match=said) as caught:
        embed_bulk(ListSource(TEXTS), ram, model, settings=chosen)
    assert "--force" in str(caught.value)
    assert content(ram) == before


def test_force_starts_over_and_removes_nothing_of_others(ram):
    embed_bulk(ListSource(TEXTS), ram, FakeModel(), settings=SMALL)
    (ram / "notes.md").write_text("mine")
    before = content(ram)
    model = FakeModel("other")
    with pytest.raises(InputError, match=r"holds 'notes\.md', which Twinvec did not write"):
        embed_bulk(ListSource(TEXTS), ram, model, settings=BulkSettings(shard_rows=6, force=True))
    assert content(ram) == before and not model.texts
    (ram / "notes.md").unlink()
    embed_bulk(ListSource(TEXTS), ram, model, settings=BulkSettings(shard_rows=6, force=True))
    assert len(model.texts) == 12
    assert rows_of(ram)[1] == TEXTS


def test_two_writers_at_once_are_refused(ram):
    pytest.importorskip("fcntl")
    with locked(ram), pytest.raises(InputError, match="Another process is writing"):
        embed_bulk(ListSource(TEXTS), ram, FakeModel())
    embed_bulk(ListSource(TEXTS), ram, FakeModel())


def test_a_full_disk_is_reported_and_loses_no_finished_work(ram, monkeypatch):
    embed_bulk(ListSource(TEXTS), ram / "whole", FakeModel(), settings=SMALL)
    n_left, fsync = 4, os.fsync  # the marker, the manifest, and two shards

    def fill(handle):
        nonlocal n_left
        n_left -= stat.S_ISREG(os.fstat(handle).st_mode)
        if n_left < 0:
            raise OSError(errno.ENOSPC, "No space left on device")
        fsync(handle)

    monkeypatch.setattr(os, "fsync", fill)
    with pytest.raises(
        InputError, match=r"No space left on device\. All earlier shards are safe\. Free some disk space"
    ):
        embed_bulk(ListSource(TEXTS), ram / "out", FakeModel(), settings=SMALL)
    monkeypatch.setattr(os, "fsync", fsync)
    assert not list(ram.rglob("*partial*"))
    model = FakeModel()
    embed_bulk(ListSource(TEXTS), ram / "out", model, settings=SMALL)
    assert model.texts == list(dict.fromkeys(TEXTS))[10:]
    assert content(ram / "out") == content(ram / "whole")


@pytest.mark.parametrize("limit", [2000, 40_000])
def test_a_file_that_may_not_grow_further_is_an_error_and_no_half_file(ram, limit):
    texts = [f"{i} {'word ' * 40}" for i in range(3000)]
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    try:
        resource.setrlimit(resource.RLIMIT_FSIZE, (limit, before[1]))
        with pytest.raises(InputError, match="Cannot write"):
            embed_bulk(ListSource(texts, [f"id {i}" for i in range(3000)]), ram, FakeModel())
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert not list(ram.rglob("*partial*")) and not list(ram.glob("rows-*"))
    embed_bulk(ListSource(texts), ram, FakeModel())
    assert rows_of(ram, 500)[1] == texts


def test_readers_see_the_old_result_until_the_new_one_is_complete(ram):
    with pytest.raises(InputError, match="is not the folder of a bulk job"):
        open_bulk(ram)
    with pytest.raises(Interrupted):
        embed_bulk(ListSource(["a", "b"]), ram, FakeModel(fail_at=0), settings=SMALL)
    with pytest.raises(InputError, match=r"is not complete\. Run the same command again"):
        open_bulk(ram)
    embed_bulk(ListSource(["a", "b"]), ram, FakeModel())
    with pytest.raises(Interrupted):
        embed_bulk(ListSource(["c", "b", *TEXTS]), ram, FakeModel(fail_at=1))
    assert rows_of(ram)[1] == ["a", "b"]


def test_a_watcher_sees_progress_up_to_all_rows(ram):
    states = []
    embed_bulk(ListSource(TEXTS), ram, FakeModel(), settings=SMALL, watch=states.append)
    done = [state.n_done for state in states]
    assert done == sorted(done) and done[0] == 48 and done[-1] == states[-1].total_rows == 60


def test_a_bad_row_stops_the_job_but_keeps_what_is_done(ram):
    source = ram / "rows.jsonl"
    source.write_text("".join(f'{{"text": "row {i}"}}\n' for i in range(30)) + '{"text": 7}\n')
    with pytest.MonkeyPatch.context() as patch, pytest.raises(RowError, match="line 31"):
        patch.setattr(source_module, "BLOCK_ROWS", 10)
        embed_bulk(source, ram / "out", FakeModel(), settings=SMALL)
    source.write_text("".join(f'{{"text": "row {i}"}}\n' for i in range(31)))
    model = FakeModel()
    embed_bulk(source, ram / "out", model)
    assert model.texts == ["row 30"]


@pytest.mark.parametrize("ending", ["txt", "csv", "tsv", "jsonl", "parquet"])
def test_every_format_gives_the_same_shards(ram, ending):
    import pyarrow
    from pyarrow import parquet

    path = ram / f"in.{ending}"
    if ending == "parquet":
        parquet.write_table(pyarrow.table({"text": TEXTS}), path, row_group_size=7)
    else:
        rows = {"txt": TEXTS, "jsonl": [json.dumps({"text": text}) for text in TEXTS]}.get(ending, ["text", *TEXTS])
        path.write_text("".join(f"{row}\n" for row in rows))
    report = embed_bulk(path, ram / ending, FakeModel(), settings=SMALL)
    embed_bulk(ListSource(TEXTS), ram / "list", FakeModel(), settings=SMALL)
    shards = [content(ram / name / "texts") for name in (ending, "list")]
    assert shards[0] == shards[1] and report.n_rows == len(TEXTS)
    about = FileSource(str(path)).n_rows()
    assert about == len(TEXTS) + (ending in ("csv", "tsv"))


def test_ids_of_the_source_come_back_as_text(ram):
    source = ram / "in.jsonl"
    source.write_text('{"key": 7, "text": "a"}\n{"key": "x", "text": "b"}\n{"key": 9, "text": "a"}\n')
    embed_bulk(FileSource(str(source), id_column="key"), ram / "out", FakeModel())
    assert rows_of(ram / "out")[:2] == (["7", "x", "9"], ["a", "b", "a"])
    with pytest.raises(UnknownNameError, match="Did you mean 'key'"):
        embed_bulk(FileSource(str(source), id_column="kay"), ram / "other", FakeModel())
    assert not (ram / "other").exists()


def test_bad_input_is_refused_before_anything_is_written(ram):
    (ram / "empty.txt").write_text("")
    (ram / "taken").mkdir()
    (ram / "taken" / "photo.jpg").write_text("")
    for source, folder, said in [
        (ram / "none.txt", "out", "File not found"),
        (ram / "empty.txt", "out", "has no texts"),
        (ListSource([]), "out", "has no rows"),
        (ListSource(["a", "\ud800"]), "out", "lone surrogate"),
        (ListSource(TEXTS), "taken", "is not the folder of a bulk job: it holds 'photo.jpg'"),
        (ListSource(TEXTS), "empty.txt", "is a file"),
    ]:
        with pytest.raises(InputError, match=said):
            embed_bulk(source, ram / folder, FakeModel())
    assert sorted(path.name for path in ram.rglob("*")) == ["empty.txt", "photo.jpg", "taken"]
    with pytest.raises(InputError, match="shard_rows must be at least 1"):
        BulkSettings(shard_rows=0)
    with pytest.raises(UnknownNameError, match="arrow, parquet"):
        BulkSettings(shard_format="lance")


def test_vectors_that_are_no_numbers_are_refused(ram):
    model = FakeModel()
    model.embed_block = lambda texts: FakeModel.embed_block(model, texts)._replace(
        vectors=np.full((len(texts), 8), np.nan)
    )
    with pytest.raises(InputError, match="NaN or infinity, the first for the text 'text 0'"):
        embed_bulk(ListSource(TEXTS), ram, model)


def test_an_invalid_manifest_is_reported_and_can_be_overwritten_with_force(ram):
    embed_bulk(ListSource(TEXTS), ram, FakeModel(), settings=SMALL)
    (ram / "manifest.json").write_text('{"format": "twinvec-bulk-1", "job": []}')
    with pytest.raises(InputError, match=r"manifest\.json.* is .*, not an? .*start over with --force"):
        embed_bulk(ListSource(TEXTS), ram, FakeModel())
    embed_bulk(ListSource(TEXTS), ram, FakeModel(), settings=BulkSettings(force=True))
    assert rows_of(ram)[1] == TEXTS


@pytest.mark.parametrize("name", ["../other.parquet", "/etc/x.parquet", "a/b.parquet", "..", "", 5, "C:\\\\x.arrow"])
def test_a_manifest_cannot_name_files_outside_its_folder(ram, name):
    embed_bulk(ListSource(TEXTS), ram, FakeModel(), settings=SMALL)
    content = json.loads((ram / "manifest.json").read_text())
    for part in (content["result"]["shards"][0], content["result"]["rows_file"]):
        kept, part["name"] = part["name"], name
        (ram / "manifest.json").write_text(json.dumps(content))
        with pytest.raises(InputError, match=r"manifest\.json.* is .*, not an? .*start over with --force"):
            rows_of(ram)
        part["name"] = kept


def test_an_id_that_is_not_a_text_is_refused_with_its_place(ram, tmp_path):
    (tmp_path / "a.jsonl").write_text('{"text": "a", "id": "\\ud800"}\n')
    with pytest.raises(InputError, match=r"line 1: the id in 'id' holds a lone surrogate"):
        embed_bulk(FileSource(str(tmp_path / "a.jsonl"), "text", "id"), ram, FakeModel())


def test_the_manifest_says_what_the_folder_holds(ram):
    embed_bulk(ListSource([*TEXTS, "long " * 10]), ram, FakeModel(), settings=SMALL)
    manifest = json.loads((ram / "manifest.json").read_text())
    assert manifest["job"]["model_sha256"] == FakeModel().identity
    assert manifest["job"]["settings"] == {"precision": "float32", "output": "float32"}
    result = manifest["result"]
    assert (result["rows"], result["texts"], result["width"], result["type"]) == (61, 13, 8, "float32")
    for shard in result["shards"]:
        data = (ram / "texts" / shard["name"]).read_bytes()
        assert len(data) == shard["size_bytes"]
        assert hashlib.sha256(data).hexdigest() == shard["sha256"]
    assert sum(shard["n"] for shard in result["shards"]) == 13
    assert sum(shard["n_cut"] for shard in result["shards"]) == 1


def test_other_versions_are_reported_but_not_refused(ram, caplog, monkeypatch):
    embed_bulk(ListSource(["a"]), ram, FakeModel())
    monkeypatch.setattr(job_module, "engine_versions", lambda: {"onnxruntime": "99"})
    embed_bulk(ListSource(["a", "b"]), ram, FakeModel())
    assert "onnxruntime" in caplog.text and "to 99" in caplog.text


def test_single_texts_are_taken_by_number_in_any_order(ram):
    embed_bulk(ListSource(TEXTS), ram, FakeModel(), settings=SMALL)
    bulk, different = open_bulk(ram), list(dict.fromkeys(TEXTS))
    texts, vectors = bulk.take([11, 0, 11, 4, 5])
    assert texts == [different[number] for number in (11, 0, 11, 4, 5)]
    assert vectors.shape == (5, 8) and np.array_equal(vectors[0], vectors[2])
    with pytest.raises(InputError, match="no text with the number 12"):
        bulk.take([3, 12])


def test_long_texts_end_a_shard_before_it_is_too_large_for_memory(ram, monkeypatch):
    monkeypatch.setattr(job_module, "SHARD_CHARACTERS", 100)
    monkeypatch.setattr(source_module, "BLOCK_CHARACTERS", 70)
    model = FakeModel()
    embed_bulk(ListSource([f"{i:050d}" for i in range(5)]), ram, model)
    assert [len(block) for block in model.blocks] == [2, 2, 1]


def test_rows_are_written_in_groups_of_one_size_whatever_the_blocks(ram, monkeypatch):
    from twinvec.bulk import rows as rows_module

    monkeypatch.setattr(rows_module, "ROWS_PER_GROUP", 8)
    digests = set()
    for block in (1, 3, 20):
        with RowsWriter(ram, has_ids=False) as writer:
            for start in range(0, 20, block):
                writer.add(np.arange(start, min(start + block, 20)), [])
            digests.add(writer.finish().sha256)
    assert len(digests) == 1


MEMORY = """
import sys
from pathlib import Path
import numpy as np
from bulk_fakes import ListSource, FakeModel
from twinvec.bulk import BulkSettings, embed_bulk
from twinvec.bulk.plan import used_bytes
from twinvec.encoder import Block

N, WIDTH = 60_000, 512

class Source(ListSource):
    def __init__(self): pass
    has_ids = False
    def rows(self): return ((f"a text of some length with the number {i}", "") for i in range(N))
    def n_rows(self): return N

class Model(FakeModel):
    width = WIDTH
    def embed_block(self, texts): return Block(np.ones((len(texts), WIDTH), dtype=np.float32), 0, 0)

embed_bulk(ListSource(["warm"]), Path(sys.argv[1]) / "warm", Model())
before = used_bytes()
chosen = BulkSettings(1000, max_memory_bytes=before + 200_000_000)
embed_bulk(Source(), Path(sys.argv[1]) / "out", Model(), settings=chosen)
peak = int(next(line for line in open("/proc/self/status") if line.startswith("VmHWM")).split()[1]) * 1024
print(N * WIDTH * 4, peak - before)
"""


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="needs /proc")
def test_memory_does_not_grow_with_the_number_of_rows(tmp_path):
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run(
        [sys.executable, "-c", MEMORY, str(tmp_path)], capture_output=True, text=True, check=False, env=environment
    )
    assert done.returncode == 0, done.stderr
    written, grown = map(int, done.stdout.split())
    assert written > 120_000_000 and grown < 60_000_000


def test_too_little_memory_is_reported_before_the_work(ram):
    with pytest.raises(InputError, match=r"The job needs about .* --max-memory"):
        embed_bulk(ListSource(TEXTS), ram / "out", FakeModel(), settings=BulkSettings(max_memory_bytes=10_000_000))
    assert not (ram / "out").exists()
