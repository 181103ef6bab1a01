"""Kill the writer of a collection at random moments, and check that nothing is lost, duplicated or half-written.

    python benchmarks/kill_collection.py [--kills 20] [--seed 0]

A process adds, replaces and removes batches of texts, rebuilds the indexes, and sometimes embeds all texts again with
another model. It announces the start and the end of each step, and is killed (SIGKILL) at a random moment. Then every
finished step must be in the collection, the interrupted step must be there completely or not at all, every vector must
belong to its text, and a new writer must be able to continue. Meanwhile a reader reads all rows, directly and by word
search, and must only see complete batches. The model is a fake without weights.
"""

from __future__ import annotations

import argparse
import random
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from threading import Event, Thread
from typing import Any

import numpy as np
from common import write_result
from kills import kill_arguments

from twinvec.choices import Role
from twinvec.collection import Collection
from twinvec.errors import TwinvecError
from twinvec.types import Vectors

WIDTH, BATCH = 8, 7
PAUSE_S = 0.1  # between reads, so that the reader does not slow down the writer
LONGEST_S = 2.0  # longest life of a writer, after it has opened the collection
State = dict[str, tuple[str, int]]  # id -> text, batch


class NamedModel:
    """A fake model whose vectors depend on its name."""

    width, similarity = WIDTH, "cosine"

    def __init__(self, name: str) -> None:
        self.name, self.identity = name, f"{name:0<32}"
        self.settings: dict[str, Any] = {}

    def embed(self, texts: Sequence[str], *, role: Role = "text") -> Vectors:
        rows = [np.random.default_rng([*f"{self.name} {text}".encode()]).normal(size=WIDTH) for text in texts]
        return np.array(rows, dtype=np.float32)


def steps(first: int) -> Iterator[tuple[str, int]]:
    """The steps of a writer, starting with batch ``first``."""
    for number in range(first, sys.maxsize):
        yield "add", number
        if number % 3 == 0:
            yield "replace", number - 1
        if number % 4 == 0:
            yield "remove", number - 3
        if number % 10 == 9:
            yield "rebuild", number
        if number % 15 == 14:
            yield "embed", number


def batch_of(step: str, number: int) -> State:
    """The rows of a batch after a step."""
    return {f"{number}-{i}": (f"{step} {number} {i}", number) for i in range(BATCH)}


def after(state: State, step: str, number: int) -> State:
    """The state after a step."""
    if step == "remove":
        return {name: row for name, row in state.items() if row[1] != number}
    return state | batch_of(step, number) if step in ("add", "replace") else state


def do(collection: Collection, step: str, number: int) -> None:
    if step == "remove":
        collection.delete(where=f"batch = {number}")
    elif step == "rebuild":
        collection.reindex()
    elif step == "embed":
        collection.reindex(NamedModel("B" if collection.model.name == "A" else "A"))
    else:
        rows = batch_of(step, number)
        write = collection.add if step == "add" else collection.upsert
        write([text for text, _ in rows.values()], list(rows), [{"batch": number}] * BATCH)


def write(folder: str, first: int) -> None:
    """The process that is killed."""
    collection = Collection.open(folder)
    collection = Collection.open(folder, model=NamedModel(collection.model.name))
    print("ready", flush=True)
    for step, number in steps(first):
        print("try", step, number, flush=True)
        do(collection, step, number)
        print("done", step, number, flush=True)


def read_state(folder: Path) -> State:
    """All rows. Every id must be unique and have the vector of its text, and every batch must be complete."""
    collection = Collection.open(folder)
    table = collection._table()  # rows and model of one version
    name = collection._header(table).model.name
    found = table.search().select(["id", "text", "batch", "vector"]).to_list() if "batch" in table.schema.names else []
    state = {row["id"]: (row["text"], row["batch"]) for row in found}
    assert len(state) == len(found), f"{len(found) - len(state)} ids are duplicated"
    vectors = np.array([row["vector"] for row in found], dtype=np.float32).reshape(-1, WIDTH)
    expected = np.asarray(NamedModel(name).embed([row["text"] for row in found])).reshape(-1, WIDTH)
    assert np.allclose(vectors, expected, atol=1e-6), "a vector does not belong to its text"
    check_whole(state)
    return state


def search_state(folder: Path) -> State:
    """All rows, through a word search. Every batch must be complete here too."""
    hits = Collection.open(folder).search("add replace", sys.maxsize, mode="text")
    state = {hit.id: (hit.text, hit.metadata["batch"]) for hit in hits}
    assert len(state) == len(hits), f"{len(hits) - len(state)} ids are found twice"
    check_whole(state)
    return state


def check_whole(state: State) -> None:
    """Check that every batch has all its rows, and that all are as added or all as replaced."""
    for number, size in Counter(batch for _, batch in state.values()).items():
        assert size == BATCH, f"batch {number} has {size} of {BATCH} rows"
        kinds = {text.split()[0] for text, batch in state.values() if batch == number}
        assert len(kinds) == 1, f"batch {number} is half replaced"


class Reader(Thread):
    """Reads continuously and records partial states."""

    def __init__(self, folder: Path) -> None:
        super().__init__(daemon=True)
        self.folder, self.n_reads = folder, 0
        self.faults: list[str] = []
        self.stop = Event()

    def run(self) -> None:
        while not self.stop.is_set():
            try:
                read_state(self.folder)
                search_state(self.folder)
            except (AssertionError, TwinvecError) as error:
                self.faults.append(str(error))
            self.n_reads += 1
            time.sleep(PAUSE_S)


def kill_one(folder: Path, first: int, seconds: float) -> list[tuple[str, str, int]]:
    """Start a writer at batch ``first``, kill it after some time, and return its announcements."""
    command = [sys.executable, __file__, "--write", str(folder), "--first", str(first)]
    writer = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert writer.stdout is not None
    assert writer.stdout.readline() == "ready\n", "the writer could not open the collection"
    time.sleep(seconds)
    writer.kill()
    said = [line.split() for line in writer.stdout if line.endswith("\n")]
    writer.wait()
    assert writer.returncode == -9, f"the writer exited on its own, with code {writer.returncode}"
    return [(what, step, int(number)) for what, step, number in said]


def main() -> int:
    parser = kill_arguments(__doc__)
    parser.add_argument("--folder", type=Path, help="folder for the collection (default: a temporary one)")
    parser.add_argument("--write", metavar="FOLDER", help=argparse.SUPPRESS)
    parser.add_argument("--first", type=int, default=0, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.write:
        write(options.write, options.first)
    with tempfile.TemporaryDirectory() as work:
        result = run(options.folder or Path(work) / "collection", options.kills, options.seed)
    counts = ", ".join(f"{count} {step}" for step, count in result["steps_done"].items())
    print(
        f"{result['kills']} kills, {result['in_flight']} of them during a step ({result['in_flight_done']} took effect)"
    )
    print(f"steps acknowledged: {counts or 'none'}; {result['n_texts']} texts at the end; {result['reads']} reads")
    print(f"lost: {result['lost']}; partial states seen: {len(result['faults'])}")
    for fault in result["faults"][:5]:
        print(f"  {fault}", file=sys.stderr)
    if not options.no_result:
        write_result("kill_collection", result)
    return int(bool(result["lost"] or result["faults"]))


def run(folder: Path, kills: int, seed: int) -> dict[str, Any]:
    """Kill this many writers and count the outcomes."""
    rng = random.Random(seed)
    started = time.perf_counter()
    Collection.create(folder, model=NamedModel("A"))
    state: State = {}
    done: Counter[str] = Counter()
    first = lost = in_flight = in_flight_done = 0
    reader = Reader(folder)
    reader.start()
    for _ in range(kills):
        said = kill_one(folder, first, rng.uniform(0, LONGEST_S))
        for what, step, number in said:
            if what == "done":
                state = after(state, step, number)
                done[step] += 1
        found = read_state(folder)
        if said and said[-1][0] == "try":
            in_flight += 1
            possible = after(state, *said[-1][1:])
            if possible != state and found == possible:
                in_flight_done += 1
                state = possible
        lost += found != state or search_state(folder) != found
        state, first = found, max((number for _, _, number in said), default=first - 1) + 1
    reader.stop.set()
    reader.join()
    return {
        "kills": kills,
        "in_flight": in_flight,
        "in_flight_done": in_flight_done,
        "steps_done": dict(sorted(done.items())),
        "n_texts": len(state),
        "reads": reader.n_reads,
        "lost": lost,
        "faults": reader.faults,
        "seconds": round(time.perf_counter() - started),
    }


if __name__ == "__main__":
    sys.exit(main())
