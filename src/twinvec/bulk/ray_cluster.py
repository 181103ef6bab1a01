"""Connecting to a Ray cluster, and running functions there; or here, without Ray, in the same way."""

from __future__ import annotations

import socket
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from types import ModuleType
from typing import Any, TypeVar

from twinvec.errors import InputError, TwinvecError
from twinvec.extras import require

__all__ = ["connected", "last_line", "own_error", "run_tasks"]

Result = TypeVar("Result")

LOCAL = "local"  # what Ray calls a cluster that is started on this machine, for this process
KNOCK_S = 5.0
TASKS_AHEAD = 64  # handed to the cluster before the first is done


@contextmanager
def connected(address: str) -> Iterator[ModuleType]:
    """The package ray, connected to a cluster; a connection that was there already is used, and left as it is."""
    ray = require("ray", extra="ray", feature="Working on many machines")
    if ray.is_initialized():
        yield ray
        return
    also = {"include_dashboard": False} if address == LOCAL else {}
    try:
        _knock(address)
        ray.init(address=address, log_to_driver=False, logging_level="ERROR", **also)
    except (RuntimeError, ValueError, OSError) as error:  # OSError: also what a connection raises
        reason = str(error).partition(". ")[0].rstrip(".") or type(error).__name__
        raise InputError(
            f"There is no Ray cluster at {address!r}: {reason}.",
            hint="Start one with: ray start --head; its output says the address.",
        ) from error
    try:
        yield ray
    finally:
        ray.shutdown()


def _knock(address: str) -> None:
    """Try an address of the form host:port: Ray itself would wait for minutes."""
    host, _, port = address.rpartition(":")
    if host and port.isdigit() and "/" not in host:
        socket.create_connection((host.strip("[]"), int(port)), timeout=KNOCK_S).close()


def own_error(error: BaseException) -> TwinvecError | None:
    """What of our own a task raised on another machine; None if it was something else."""
    cause = getattr(error, "cause", None)
    return cause if isinstance(cause, TwinvecError) else None


def run_tasks(
    function: Callable[..., Result], shared: object, arguments: Iterable[tuple[Any, ...]], *, ray: str | None = None
) -> Iterator[Result]:
    """``function(shared, *each)`` for each of the arguments: here and in order, or in any order from a Ray cluster.

    ``ray`` is the cluster's address. What is shared goes to each machine once. A task whose machine dies is run again
    on another.

    >>> list(run_tasks(pow, 2, [(3,), (5,)]))
    [8, 32]
    """
    if ray is None:
        yield from (function(shared, *each) for each in arguments)
        return
    with connected(ray) as package:
        yield from _run_remotely(package, function, package.put(shared), arguments)


def _run_remotely(
    ray: ModuleType, function: Callable[..., Result], shared: object, arguments: Iterable[tuple[Any, ...]]
) -> Iterator[Result]:
    task = ray.remote(function).options(num_cpus=1, max_retries=-1)
    todo = iter(arguments)
    pending: list[Any] = []
    try:
        while True:
            while len(pending) < TASKS_AHEAD and (each := next(todo, None)) is not None:
                pending.append(task.remote(shared, *each))
            if not pending:
                return
            done, pending = ray.wait(pending, num_returns=1)
            yield ray.get(done[0])
    except ray.exceptions.RayError as error:
        own = own_error(error)
        if own is None and isinstance(error, ray.exceptions.RayTaskError):
            raise  # a fault in the work, not in the cluster
        raise own or InputError(f"The Ray cluster failed: {last_line(error)}", hint="Run it again.") from error


def last_line(error: BaseException) -> str:
    """The end of an error's message, where Ray puts the reason.

    >>> last_line(RuntimeError("The actor died.\\n  ValueError: no such file\\n"))
    'ValueError: no such file'
    """
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return lines[-1] if lines else type(error).__name__
