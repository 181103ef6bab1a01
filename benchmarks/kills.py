"""What the scripts that kill have in common: a process to start and to kill with SIGKILL, and the files to compare."""

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
    """Options that all of them have."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--kills", type=int, default=20, help="how many processes to kill (default: 20)")
    parser.add_argument("--seed", type=int, default=0, help="of the moments at which they are killed")
    parser.add_argument("--no-result", action="store_true", help="write no result file")
    return parser


def kill_command(command: Sequence[str], after_s: float) -> bool:
    """Start a command and kill it after some time; False if it was done before."""
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
    """Do some work in a fork of this process and kill it after some time; False if it was done before.

    A fork has all packages loaded, so the kill hits the work and not the start of Python. None lets it end.
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
            assert status == 0, f"the work ended by itself, with status {status}"
            return False
        if deadline is not None and time.monotonic() >= deadline:
            os.kill(child, signal.SIGKILL)
            _, status = os.waitpid(child, 0)
            return status == signal.SIGKILL  # it may have ended at that very moment
        time.sleep(POLL_S)


def digests(folder: Path, *, but: Sequence[str] = ()) -> dict[str, str]:
    """The checksum of every file, except those of some names."""
    files = sorted(path for path in folder.rglob("*") if path.is_file() and path.name not in but)
    return {str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest() for path in files}
