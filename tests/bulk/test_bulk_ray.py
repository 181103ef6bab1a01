"""The bulk job on a real Ray cluster: node processes, one killed at work, and the same bytes as without Ray."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from tempfile import mkdtemp

import pytest

from bulk_fakes import in_memory
from twinvec.bulk import BulkSettings, embed_bulk
from twinvec.bulk.ray import run_tasks
from twinvec.errors import InputError

ray = pytest.importorskip("ray")
psutil = pytest.importorskip("psutil")
pytest.importorskip("pyarrow")

WORDS = ["cat", "dog", "bird", "house", "river", "moon", "rain", "book", "letter", "city"]


@pytest.fixture
def ray_folder():
    """Where Ray keeps its files; a short name, as it holds sockets. No process that names it outlives the test."""
    folder = mkdtemp(prefix="twv", dir="/tmp")
    yield folder
    for process in psutil.process_iter(["cmdline"]):
        if any(folder in word for word in process.info["cmdline"] or []):
            process.kill()
    shutil.rmtree(folder, ignore_errors=True)


def test_a_cluster_that_loses_nodes_at_work_writes_and_finds_what_one_machine_does(tiny_bert, ray_folder):
    with in_memory() as folder:
        source = folder / "source.txt"
        source.write_text("".join(f"the {WORDS[i % 10]} and {i % 997} {WORDS[i % 7]}\n" for i in range(4000)))
        embed_bulk(source, folder / "local", str(tiny_bert), settings=BulkSettings(shard_rows=100))
        script = Path(__file__).parents[1] / "support" / "bulk_ray.py"
        environment = {
            **os.environ,
            "PYTHONPATH": os.pathsep.join(filter(None, sys.path)),
            "RAY_TMPDIR": ray_folder,
            "TMPDIR": ray_folder,
            "RAY_USAGE_STATS_ENABLED": "0",
            "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0",  # it then listens on 127.0.0.1 only, here too
        }
        done = subprocess.run(
            [sys.executable, str(script), str(source), str(tiny_bert), str(folder / "local"), str(folder / "ray")],
            capture_output=True,
            text=True,
            check=False,
            env=environment,
            timeout=900,
        )
    assert done.returncode == 0, done.stderr[-3000:]
    told = json.loads(done.stdout.splitlines()[-1])
    assert told["searched_again"] >= 1
    assert told["killed"] and any("other workers take over its" in message for message in told["messages"])
    assert (told["same_bytes"], told["same_hits"], told["same_pairs"]) == (True, True, True)
    assert not list(Path(ray_folder).glob("twinvec-*"))  # no copy of the model stays on a machine


def test_an_address_without_a_cluster_is_reported_immediately():
    with pytest.raises(InputError, match=r"No Ray cluster found at '127.0.0.1:9'.*refused"):
        next(run_tasks(pow, 1, [(2,)], ray="127.0.0.1:9"))


def test_a_missing_ray_cluster_is_reported(monkeypatch):
    def refuse(**_):
        raise ConnectionError("Could not find any running Ray instance.")

    monkeypatch.setattr(ray, "init", refuse)
    with pytest.raises(InputError, match=r"No Ray cluster found at 'auto'.*ray start --head"):
        next(run_tasks(pow, 1, [(2,)], ray="auto"))
