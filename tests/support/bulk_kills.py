"""Kill a bulk job with SIGKILL right before one of its file operations, and continue it.

    python bulk_kills.py each SOURCE FOLDER     one job per operation, killed once there and then completed
    python bulk_kills.py often SOURCE FOLDER    one job, killed repeatedly until it is complete

Prints a line of JSON: the number of kills, and the number of texts that the model embedded in each job.
"""

from __future__ import annotations

import json
import os
import random
import signal
import sys
from contextlib import suppress
from importlib import import_module
from pathlib import Path

import pyarrow.ipc
import pyarrow.parquet  # noqa: F401 - loaded here, so that the children need not

from bulk_fakes import FakeModel
from twinvec.bulk import BulkSettings, embed_bulk
from twinvec.model.identity import engine_versions

WATCHED = {"open", "os.rename", "os.remove", "os.mkdir"}  # fsync and write raise no audit event; renames follow both


def run_until(kill_at, source, folder, log):
    """Run the job in a child that is killed before its ``kill_at``-th operation in the folder; True if it was."""
    child = os.fork()
    if child:
        _, status = os.waitpid(child, 0)
        assert status in (0, signal.SIGKILL), status
        return status == signal.SIGKILL
    n_events = 0

    def watch(event, arguments):
        nonlocal n_events
        if event in WATCHED and str(folder) in str(arguments[0]):
            n_events += 1
            if n_events == kill_at:
                os.kill(os.getpid(), signal.SIGKILL)

    class Logged(FakeModel):
        def embed_block(self, texts):
            with log.open("a") as file:
                file.write(f"{len(texts)}\n")
            return super().embed_block(texts)

    sys.addaudithook(watch)
    status = 1
    try:
        embed_bulk(str(source), folder, Logged(), settings=BulkSettings(shard_rows=2))
        status = 0
    finally:
        os._exit(status)


def embedded(log):
    return sum(map(int, log.read_text().split())) if log.exists() else 0


def main(mode, source, folder):
    kills, n_embedded = 0, []
    engine_versions()  # cached, so that the children need not compute it
    with suppress(ImportError):
        import_module("pandas")  # pyarrow imports it, if installed, with its first table
    if mode == "each":
        for kill_at in range(1, 10_000):
            target, log = folder / str(kill_at), folder / f"{kill_at}.log"
            if not run_until(kill_at, source, target, log):
                break
            kills += 1
            assert not run_until(0, source, target, log)
            n_embedded.append(embedded(log))
    else:
        rng, log = random.Random(0), folder / "log"
        while run_until(rng.randint(10, 40), source, folder / "job", log):
            kills += 1
        n_embedded.append(embedded(log))
    print(json.dumps({"kills": kills, "embedded": n_embedded}))


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]), Path(sys.argv[3]))
