"""Shared by the kill benchmarks: start a process, kill it with SIGKILL, and compare files."""

from __future__ import annotations

import argparse
import hashlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path

POLL_S = 0.002


def kill_arguments(description: str | None) -> argparse.ArgumentParser:
    """A parser with their common options."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--kills", type=int, default=20, help="number of kills (default: 20)")
    parser.add_argument("--seed", type=int, default=0, help="random seed of the moments of the kills")
    parser.add_argument("--no-result", action="store_true", help="do not write a result file")
    return parser


def kill_command(command: Sequence[str], after_s: float) -> bool:
    """Start a command and kill it after some time; False if it finished before."""
    with subprocess.Popen(command, stderr=subprocess.DEVNULL) as process:
        try:
            process.wait(after_s)
        except subprocess.TimeoutExpired:
            process.send_signal(signal.SIGKILL)
            process.wait()
            return True
    assert process.returncode == 0, process.returncode
    return False


def kill_fork(work: Callable[[], object], after_s: float | None) -> bool:
    """Run ``work`` in a fork of this process and kill it after some time; False if it finished before.

    A fork has all packages loaded, so the kill hits the work, not the start of Python. None waits for the end.
    """
    sys.stdout.flush()
    sys.stderr.flush()
    child = os.fork()
    if not child:
        status = 1
        try:
            work()
            status = 0
        finally:
            os._exit(status)
    deadline = None if after_s is None else time.monotonic() + after_s
    while True:
        done, status = os.waitpid(child, 0 if deadline is None else os.WNOHANG)
        if done:
            assert status == 0, f"the work exited on its own, with status {status}"
            return False
        if deadline is not None and time.monotonic() >= deadline:
            os.kill(child, signal.SIGKILL)
            _, status = os.waitpid(child, 0)
            return status == signal.SIGKILL  # it may have finished at that moment
        time.sleep(POLL_S)


def digests(folder: Path, *, ignore: Sequence[str] = ()) -> dict[str, str]:
    """The checksum of every file, except those with an ignored name."""
    files = sorted(path for path in folder.rglob("*") if path.is_file() and path.name not in ignore)
    return {str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest() for path in files}
