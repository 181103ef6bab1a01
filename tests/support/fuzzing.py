"""Corrupt files of valid folders, and check that each gives the right result or raises a TwinvecError.

Cases run in worker processes with a memory limit and a time limit per case. A case that breaks its worker is a finding
with its number, and the other cases continue. Case ``n`` of a seed is always the same.
"""

from __future__ import annotations

import json
import logging
import os
import signal
import subprocess
import sys
import traceback
import warnings
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from threading import Timer
from typing import Any

import numpy as np

CASE_S = 20  # ten times what any case takes, even on a busy machine
START_S = 180  # for the imports of a worker, including torch
ROOM = 3 << 30  # bytes of address space for a worker, beyond its imports
CHECK_SHARE = 0.2  # share of the loaded cases that are also saved and loaded again


@dataclass
class Findings:
    """The outcomes of a run: counts and failures."""

    outcomes: Counter = field(default_factory=Counter)
    checked: Counter = field(default_factory=Counter)
    failures: list[dict] = field(default_factory=list)

    def add(self, row: dict) -> None:
        """Count one case."""
        self.outcomes[row["outcome"]] += 1
        self.checked.update(row.get("checked", ()))
        if row["outcome"] == "FAILED":
            self.failures.append(row)


def run(
    count: int, seed: int, *, workers: int = 2, first: int = 0, kinds: str = "", keep: Path | None = None
) -> Findings:
    """Run ``count`` cases of a seed from ``first`` on; failing files are saved in ``keep``."""
    findings = Findings()

    def drain(worker: int) -> None:
        at = first + worker
        while at < first + count:
            at = _run_worker(findings, seed, range(at, first + count, workers), kinds, keep) + workers

    with ThreadPoolExecutor(workers) as pool:
        list(pool.map(drain, range(workers)))
    return findings


def _run_worker(findings: Findings, seed: int, cases: range, kinds: str, keep: Path | None) -> int:
    """Run cases in a process until it finishes or breaks; return the last case that was started."""
    arguments = [str(seed), str(cases.start), str(cases.stop), str(cases.step), kinds, str(keep or "")]
    process = subprocess.Popen(
        [sys.executable, __file__, *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert process.stdout is not None and process.stderr is not None
    at, done, limit = cases.start, cases.start - cases.step, START_S
    with process, ThreadPoolExecutor(1) as pool:
        errors = pool.submit(process.stderr.read)
        while True:
            timer = Timer(limit, process.kill)
            timer.start()
            line = process.stdout.readline()
            timer.cancel()
            if not line:
                break
            row, limit = json.loads(line), 3 * CASE_S
            at = row["case"]
            if "outcome" in row:
                done = at
                findings.add(row)
        code = process.wait()
        if done < cases[-1]:
            why = f"the worker ended with {code}: {errors.result()[-1500:]}"
            findings.add({"case": at, "outcome": "FAILED", "why": why, **_described(seed, at, kinds)})
    return cases[-1] if done >= cases[-1] else at


def _described(seed: int, case: int, kinds: str) -> dict:
    _, kind, file = _choose(seed, case, kinds)
    return {"kind": kind.name, "file": file}


def _choose(seed: int, case: int, kinds: str) -> tuple[Random, Any, str]:
    from fuzz_kinds import KINDS

    chosen = [kind for kind in KINDS if not kinds or kind.name in kinds.split(",")]
    random = Random(f"{seed}-{case}")
    kind = chosen[case % len(chosen)]
    return random, kind, random.choice(kind.files)


class TooLong(BaseException):
    """A case exceeded its time limit."""


class Bench:
    """The valid folders of one worker, each made once, and their results."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.made: dict[str, tuple[Path, Any]] = {}

    def folder(self, kind: Any) -> tuple[Path, Any]:
        """The folder of a kind, and its result."""
        if kind.name not in self.made:
            folder = kind.make(self.root / kind.name)
            self.made[kind.name] = folder, kind.use(folder)
        return self.made[kind.name]


def run_case(bench: Bench, seed: int, case: int, kinds: str = "", keep: Path | None = None) -> dict:
    """Run one case: corrupt the file, use the folder, compare, restore the file."""
    from fuzz_mutations import mutate

    random, kind, file = _choose(seed, case, kinds)
    folder, expected = bench.folder(kind)
    original = (folder / file).read_bytes()
    mutation = mutate(original, random)
    row = {"case": case, "kind": kind.name, "file": file, "note": mutation.note}
    signal.signal(signal.SIGALRM, _interrupt)
    signal.alarm(CASE_S)
    try:
        (folder / file).write_bytes(mutation.content)
        row |= _outcome(kind, folder, file, expected, mutation.path, random)
    except BaseException as error:  # a panic in a compiled package is not an Exception
        row |= {"outcome": "FAILED", "why": f"{type(error).__name__}: {error!s:.300}", "trace": traceback.format_exc()}
    finally:
        signal.alarm(0)
        (folder / file).write_bytes(original)
    if row["outcome"] == "FAILED" and keep is not None:
        target = keep / f"{seed}-{case}-{kind.name}" / file
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(mutation.content)
    return row


def _interrupt(*_: object) -> None:
    raise TooLong(f"more than {CASE_S} seconds")


def _outcome(kind: Any, folder: Path, file: str, expected: Any, path: tuple | None, random: Random) -> dict:
    from fuzz_kinds import CLOSE, TwinvecError

    try:
        result = kind.use(folder)
    except TwinvecError as error:
        str(error).encode()  # the message must be printable
        return {"outcome": type(error).__name__}
    checked = []
    if path and kind.harmless(file, path):
        checked.append("harmless")
        if not np.array_equal(result, expected):
            raise AssertionError("a value without effect changed the result")
    if random.random() < CHECK_SHARE:
        kind.check(folder, result)
        checked.append("saved again")
    with suppress(TwinvecError):
        other = kind.reference(folder, file)
        if other is not None:
            checked.append("reference")
            if other.shape != result.shape or np.abs(other - result).max() > CLOSE:
                raise AssertionError(f"differs from the reference by {np.abs(other - result).max()}")
    return {"outcome": "loaded", "checked": checked}


def main() -> None:
    """A worker: prints the start and the outcome of each case."""
    seed, start, stop, step = map(int, sys.argv[1:5])
    kinds, keep = sys.argv[5], Path(sys.argv[6]) if sys.argv[6] else None
    logging.disable(logging.CRITICAL)
    warnings.simplefilter("ignore")
    with TemporaryDirectory() as root:
        bench = Bench(Path(root))
        _limit_memory()
        for case in range(start, stop, step):
            print(json.dumps({"case": case}), flush=True)
            print(json.dumps(run_case(bench, seed, case, kinds, keep)), flush=True)


def _limit_memory() -> None:
    try:
        import torch  # noqa: F401 - takes its address space before the limit is set
        import transformers  # noqa: F401
    except ImportError:
        pass
    import resource

    pages = int(Path("/proc/self/statm").read_text().split()[0]) if Path("/proc/self/statm").exists() else 0
    if pages:
        room = pages * os.sysconf("SC_PAGE_SIZE") + ROOM
        resource.setrlimit(resource.RLIMIT_AS, (room, room))


if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parent))
    main()
