"""``twinvec embed FILE --out FOLDER`` with real models, the sums of docs/scale.md, and vectors that never vary."""

from __future__ import annotations

import json
import re
import runpy
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

import twinvec
from bulk_fakes import content, in_memory
from twinvec.bulk import BulkState, open_bulk, read_bulk
from twinvec.bulk.ray import shipped
from twinvec.choices import parse_size
from twinvec.cli import main
from twinvec.cli.embed import progress_line
from twinvec.embedder import ModelEmbedder
from twinvec.errors import InputError

pytest.importorskip("pyarrow")

ROOT = Path(__file__).parents[2]
TEXTS = [f"the {a} {b}" for a in ("cat", "dog", "old man") for b in ("sits", "runs", "sleeps on the mat")] * 2


@pytest.fixture
def ram():
    with in_memory() as folder:
        (folder / "in.txt").write_text("".join(f"{text}\n" for text in TEXTS))
        yield folder


def run(*arguments):
    return CliRunner().invoke(main, [str(argument) for argument in arguments], prog_name="twinvec")


def embed(ram, model, *options, out="out/"):
    return run("embed", ram / "in.txt", "-m", model, "--out", f"{ram}/{out}", *options)


@pytest.mark.parametrize("out", ["out/", "out"])
def test_a_folder_is_written_and_a_second_run_has_nothing_to_do(ram, tiny_bert, out):
    result = embed(ram, tiny_bert, "--shard-rows", 4, out=out)
    assert (result.exit_code, result.stdout) == (0, "")
    assert "18 rows with 9 distinct texts: 0 from earlier runs, 9 embedded in " in result.stderr
    batch = next(read_bulk(ram / "out"))
    assert batch.texts == TEXTS
    assert np.allclose(batch.vectors, twinvec.load(tiny_bert).encode(TEXTS), atol=2e-6)
    assert "9 from earlier runs, 0 embedded in" in embed(ram, tiny_bert).stderr


def test_options_reach_the_job(ram, tiny_bert):
    options = "--as int8 --prompt q: --truncate-dim 16 --shards arrow --max-memory 8GB --long chunk --precision float32"
    assert embed(ram, tiny_bert, *options.split()).exit_code == 0
    bulk = open_bulk(ram / "out")
    assert (bulk.result.width, bulk.result.type, bulk.manifest.job.shard_format) == (16, "int8", "arrow")
    assert bulk.manifest.job.settings["prompt"] == "q:" and bulk.manifest.job.settings["long"] == "chunk"
    wanted = twinvec.load(tiny_bert, truncate_dim=16).encode(TEXTS[:9], prompt="q:", output="int8")
    assert np.array_equal(bulk.take(range(9))[1], wanted)


def test_another_model_is_refused_with_what_to_do(ram, tiny_folders):
    embed(ram, tiny_folders["bert"])
    result = embed(ram, tiny_folders["roberta"])
    assert (result.exit_code, result.stdout) == (1, "")
    assert re.search(
        r"Error: .* was started with other settings: the model was .*, now .* --force\.",
        result.stderr.replace("\n", " "),
    )
    assert embed(ram, tiny_folders["roberta"], "--force").exit_code == 0


def test_options_of_a_folder_are_refused_for_a_file(ram, tiny_bert):
    result = embed(ram, tiny_bert, "--shard-rows", 4, out="vectors.npy")
    assert result.exit_code == 2 and "--out FOLDER/" in result.stderr
    assert embed(ram, tiny_bert, "--max-memory", "lots").exit_code == 1


def test_texts_that_are_too_long_are_reported_and_counted(ram, tiny_bert, caplog):
    (ram / "in.txt").write_text("the cat\n" + "the cat sits " * 60 + "\n")
    result = embed(ram, tiny_bert)
    assert "1 texts exceed the model's limit (the longest has" in result.stderr
    assert "only their beginning is used" in caplog.text
    assert embed(ram, tiny_bert, "--long", "error", out="strict").exit_code == 1


def test_texts_in_a_script_without_words_are_reported_and_counted(ram, caplog):
    (ram / "in.txt").write_text("환불 정책이 뭔가요?\na cat\n비밀번호를 잊었어요\n", encoding="utf-8")
    result = embed(ram, "twinvec-static")
    assert "2 texts are in a script that the model has no words for." in result.stderr
    assert [record.message.startswith("Some texts are in a script") for record in caplog.records] == [True]
    strict = embed(ram, "twinvec-static", "--unknown", "error", out="strict")
    assert strict.exit_code == 1 and "Hangul" in strict.stderr


def test_a_folder_from_before_unknown_texts_were_counted_is_read_and_continued(ram, tiny_bert):
    assert embed(ram, tiny_bert).exit_code == 0
    path = ram / "out" / "manifest.json"
    content = json.loads(path.read_text())
    for shard in content["result"]["shards"]:
        del shard["n_unknown"]
    path.write_text(json.dumps(content))
    assert open_bulk(ram / "out").manifest.result.shards[0].n_unknown == 0
    assert "9 from earlier runs, 0 embedded in" in embed(ram, tiny_bert).stderr


def test_ids_and_columns(ram, tiny_bert):
    (ram / "rows.csv").write_text("key,sentence\na,the cat\nb,the dog\n")
    result = run("embed", ram / "rows.csv", "-m", tiny_bert, "-o", f"{ram}/out/", "--id-column", "key")
    assert result.exit_code == 0
    assert next(read_bulk(ram / "out"))[:2] == (["a", "b"], ["the cat", "the dog"])


@pytest.mark.parametrize("precision", ["float32", "int8"])
def test_the_same_list_gives_the_same_bits_with_any_number_of_threads(tiny_bert, precision):
    texts = [" ".join(["cat", "dog", "moon", "river"][: 1 + i % 4] * (1 + i % 3)) + f" {i}" for i in range(1100)]
    for n in (3, 1100):
        blocks = [
            twinvec.load(tiny_bert, threads=threads, precision=precision).encode_block(texts[:n])
            for threads in (1, 2, 5)
        ]
        assert all(np.array_equal(blocks[0].vectors, block.vectors) for block in blocks)


def test_a_model_shipped_to_a_ray_worker_gives_the_same_vectors(tiny_bert):
    model = ModelEmbedder(str(tiny_bert), {"threads": 2})
    there = shipped(model, "float32").opened(threads=1)
    assert np.array_equal(there.embed_block(TEXTS).vectors, model.embed_block(TEXTS).vectors)
    assert not there.folder.exists()  # what was written of it is removed again


def test_threads_and_where_the_model_came_from_do_not_change_the_job(tiny_bert, tmp_path):
    shutil.copytree(tiny_bert, tmp_path / "copy")
    one, other = ModelEmbedder(str(tiny_bert), {"threads": 1, "long": "warn"}), ModelEmbedder(str(tmp_path / "copy"))
    assert (one.content, one.settings, one.identity) == (other.content, other.settings, other.identity)
    (tmp_path / "copy" / "config.json").write_text((tiny_bert / "config.json").read_text() + " ")
    assert one.content != ModelEmbedder(str(tmp_path / "copy")).content


def test_sizes_are_read_as_people_write_them():
    assert parse_size("2 gb") == 2_000_000_000 and parse_size("100") == 100
    for wrong in ("", "GB", "-1GB", "1 XB", "1ib"):
        with pytest.raises(InputError, match="Invalid size"):
            parse_size(wrong)


def test_a_line_of_progress_tells_the_time_left():
    state = BulkState(n_rows=700, total_rows=1600, n_new=600, n_embedded=500)
    line = progress_line(state, 10.0, 100, now=20.0)
    assert line == "600 of about 1,600 rows done, 500 texts embedded, 50 rows per second, about 20 s left."
    assert "left" not in progress_line(BulkState(700, None, 600, 500), 10.0, 100, now=20.0)


def test_the_pages_of_scale_are_in_step_with_the_measurements():
    command = [sys.executable, str(ROOT / "scripts/scale_sums.py"), "--check"]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr


def test_the_sums_add_machines_up_to_what_one_driver_feeds(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "scripts"))
    sums = runpy.run_path(str(ROOT / "scripts/scale_sums.py"))
    row = {"name": "m", "encoder_per_second": 110.0, "bulk_per_second": 100.0, "share": 0.9, "bytes_per_text": 1600.0}
    driver = {"no_model": 5000, "again": 9000, "read": 9000, "compared": 10**8, "pairs": 10**9}
    machine = {"processor": "p", "cores": 2, "abilities": []}
    result = {
        "n_texts": 9,
        "n_driver_texts": 9,
        "rows": [row],
        "driver": driver,
        "peak_mb": 1,
        "machine": machine,
        "commit": "c",
    }
    page = sums["rendered"]("<!-- sums: machines -->\n<!-- end -->\n<!-- sums: scans -->\n<!-- end -->", result)
    assert "| m, 1 billion texts | 116 days | 12 days | 2.3 days | 1.6 TB | 50 |" in page
    assert "| 100 queries, 40 million texts | 40 s | 4 s | 0.4 s |" in page
    assert "90%" in sums["rendered"]("<!-- sums: rates -->\n<!-- end -->", result)


def test_the_folder_does_not_depend_on_how_it_is_named(ram, tiny_bert):
    embed(ram, tiny_bert, out="a/")
    embed(ram, tiny_bert, "--threads", 1, out="b")
    assert content(ram / "a") == content(ram / "b")
