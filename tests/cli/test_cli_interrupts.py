"""Ctrl-C, sent to real processes: a line, the exit code of an interrupt, and never a traceback."""

from __future__ import annotations

import gzip
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from tiny import WORDS

pytestmark = pytest.mark.skipif(os.name == "nt", reason="sends SIGINT")

# A shell says 130 of both: the second is what Python does after an interrupt inside exec, as dataclasses use it.
INTERRUPTED = {130, -signal.SIGINT}


def interrupt(arguments, when, env, seconds=120):
    """Start the command, send SIGINT once ``when`` holds, and give exit code and standard error."""
    command = [sys.executable, "-m", "twinvec.cli", *map(str, arguments)]
    with subprocess.Popen(command, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True, env=env) as run:
        try:
            end = time.monotonic() + seconds
            while not when():
                assert run.poll() is None and time.monotonic() < end, run.stderr.read()
                time.sleep(0.02)
            run.send_signal(signal.SIGINT)
            _, errors = run.communicate(timeout=seconds)
        finally:
            run.kill()
    return run.returncode, errors


@pytest.fixture
def env(tmp_path):
    return {**os.environ, "TWINVEC_CACHE": str(tmp_path / "cache"), "TWINVEC_DATA": str(tmp_path / "data")}


@pytest.fixture
def texts(tmp_path):
    """More texts than any command here is done with before the signal comes."""
    rng = np.random.default_rng(0)
    file = tmp_path / "texts.txt"
    lines = (" ".join(rng.choice(WORDS, size=20)) + f" {i}" for i in range(60_000))
    file.write_text("\n".join(lines) + "\n")
    return file


def test_index_says_what_is_kept_and_the_same_command_continues(tmp_path, texts, env):
    pytest.importorskip("lancedb")
    folder = tmp_path / "notes"
    done = lambda: any(folder.rglob("*.lance"))  # noqa: E731
    code, errors = interrupt(["index", texts, "-o", folder], done, env)
    assert code in INTERRUPTED
    assert (
        errors == f"Interrupted. The texts added so far are kept in {folder}; run the same command again to continue.\n"
    )
    few = tmp_path / "few.txt"
    few.write_text("".join(texts.read_text().splitlines(keepends=True)[:50]))
    again = subprocess.run(
        [sys.executable, "-m", "twinvec.cli", "index", str(few), "-o", str(folder)], capture_output=True, text=True
    )
    assert again.returncode == 0, again.stderr


def test_embed_into_a_folder_says_what_is_kept(tmp_path, texts, env):
    pytest.importorskip("pyarrow")
    folder = tmp_path / "shards"
    command = ["embed", texts, "--out", folder, "--shard-rows", "500"]
    code, errors = interrupt(command, lambda: any(folder.rglob("*.parquet")), env)
    assert code in INTERRUPTED
    assert errors == f"Interrupted. Finished shards are kept in {folder}; run the same command again to continue.\n"


def test_embed_into_a_file_says_that_it_was_not_written(tmp_path, texts, env):
    target = tmp_path / "vectors.npy"
    code, errors = interrupt(["embed", texts, "-o", target], lambda: any(tmp_path.glob(".vectors.npy*")), env)
    assert code in INTERRUPTED
    assert errors == f"Interrupted. {target} was not written.\n"
    assert not any(tmp_path.glob("*vectors.npy*"))


def test_evaluate_says_what_is_kept(tmp_path, env):
    pytest.importorskip("scipy")
    rng = np.random.default_rng(0)
    rows = [f"x\t{i % 5}\t{' '.join(rng.choice(WORDS, size=12))} {i}\t{i}\n" for i in range(30_000)]
    (tmp_path / "data/sts").mkdir(parents=True)
    table = "".join(["subset\tscore\ttext1\ttext2\n", *rows])
    (tmp_path / "data/sts/sts12.tsv.gz").write_bytes(gzip.compress(table.encode(), 1))
    cache = tmp_path / "cache"
    code, errors = interrupt(["evaluate", "--tasks", "sts12"], lambda: any(cache.rglob("*.vectors")), env)
    assert code in INTERRUPTED
    assert errors == f"Interrupted. Vectors are cached in {cache}; run the same command again to continue.\n"


def test_train_says_what_is_kept(tmp_path, tiny_bert, env):
    pytest.importorskip("torch")
    pytest.importorskip("transformers")
    rng = np.random.default_rng(0)
    file = tmp_path / "pairs.csv"
    rows = (f"{' '.join(rng.choice(WORDS, 9))},{' '.join(rng.choice(WORDS, 9))},{i % 5}\n" for i in range(5000))
    file.write_text("text1,text2,score\n" + "".join(rows))
    log = tmp_path / "model.run/log.jsonl"
    command = ["train", "sts", file, "-m", tiny_bert, "-o", tmp_path / "model", "--epochs", 50, "--batch-size", 4]
    code, errors = interrupt(command, lambda: log.is_file() and log.read_text().count("\n") > 3, env)
    assert code in INTERRUPTED and "Traceback" not in errors
    last = f"Interrupted. Run the same command again to continue from the last checkpoint of {tmp_path / 'model'}."
    assert errors.splitlines()[-1] == last


# Raises KeyboardInterrupt, as a signal would, at the moment the module argv[1] is imported.
AT_IMPORT = """
import runpy, sys
class Stop:
    def __init__(self, name):
        self.name = name
    def find_spec(self, name, *_):
        if name == self.name:
            sys.meta_path.remove(self)
            raise KeyboardInterrupt
sys.meta_path.insert(0, Stop(sys.argv.pop(1)))
runpy.run_module("twinvec.cli", run_name="__main__", alter_sys=True)
"""


@pytest.mark.parametrize("module", ["twinvec.cli.app", "click", "twinvec.loading", "numpy", "onnxruntime"])
def test_an_interrupt_while_modules_are_imported_is_as_quiet(module):
    command = [sys.executable, "-c", AT_IMPORT, module, "similarity", "a", "b"]
    result = subprocess.run(command, capture_output=True, text=True)
    assert result.returncode in INTERRUPTED
    assert (result.stdout, result.stderr) == ("", "Interrupted.\n")


def test_the_installed_command_is_the_one_that_ends_quietly():
    tomllib = pytest.importorskip("tomllib")
    project = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text())["project"]
    assert project["scripts"]["twinvec"] == "twinvec.cli.__main__:run"
