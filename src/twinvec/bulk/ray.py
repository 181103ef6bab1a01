"""Run a bulk job on a Ray cluster: one actor per node, which loads the model once."""

from __future__ import annotations

import logging
import socket
import time
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path
from tempfile import TemporaryDirectory
from types import ModuleType
from typing import Any, TypeVar

from twinvec.bulk.plan import NewShard
from twinvec.bulk.shards import ShardFile, ShardStore, StoredShard, embedded_shard
from twinvec.choices import OutputType, ShardFormat
from twinvec.embedder import ModelEmbedder
from twinvec.errors import InputError, TwinvecError
from twinvec.extras import require
from twinvec.loading import load
from twinvec.model.identity import engine_versions, model_files

__all__ = ["RayWorkers", "connected", "run_tasks"]

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


logger = logging.getLogger(__name__)

SHARDS_AHEAD = 2  # that an actor has: one at work, one waiting
MAX_STARTS = 3  # of an actor on one machine, before it is left alone
LOOK_EVERY_S = 5.0  # for machines that joined
PATIENCE_S = 120.0  # without any actor
DEFAULT_SHARD_BYTES = 64 << 20


@dataclass(frozen=True)
class ShippedModel:
    """A model as the content of its files, and how to run it: what a machine that does not have it needs."""

    files: Mapping[str, bytes] = field(repr=False)
    arguments: Mapping[str, Any]
    prompts: dict[str, Any]
    output: OutputType

    def opened(self, *, threads: int) -> ModelEmbedder:
        """Write the files to a temporary folder, and load it; then the folder goes, as workers end without notice."""
        with TemporaryDirectory(prefix="twinvec-model-", ignore_cleanup_errors=True) as folder:
            for name, content in self.files.items():
                path = Path(folder, name)
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(content)
            arguments = {**self.arguments, "threads": threads}
            arguments.pop("revision", None)
            return ModelEmbedder(load(folder, **arguments), **self.prompts)


def shipped(model: ModelEmbedder, output: OutputType) -> ShippedModel:
    """A model with its files, to be sent to another machine."""
    files = {file.relative_to(model.folder).as_posix(): file.read_bytes() for file in model_files(model.folder)}
    return ShippedModel(files, model.arguments, model.prompts, output)


class ShardWorker:
    """What runs on a machine of the cluster."""

    def __init__(self, model: ShippedModel, threads: int) -> None:
        self._model, self._output = model.opened(threads=threads), model.output

    def versions(self) -> dict[str, str]:
        """What computes vectors here."""
        return engine_versions()

    def embed(self, shard: NewShard, format: ShardFormat) -> ShardFile:
        """The file of a shard."""
        return embedded_shard(shard, self._model, self._output, format)


@dataclass
class _Actor:
    """An actor, and what it is at. ``start`` is set until it has loaded the model."""

    node: str
    handle: Any
    start: Any
    shards: dict[Any, NewShard] = field(default_factory=dict)


class RayWorkers:
    """Embeds on a Ray cluster. ``threads`` is how many cores of each machine to use; None takes all."""

    def __init__(
        self, model: ModelEmbedder, address: str, *, output: OutputType = "float32", threads: int | None = None
    ) -> None:
        self._model, self._output, self._address, self._threads = model, output, address, threads

    def shard_bytes(self, shard_rows: int) -> int:
        """A shard comes as a file, whose width is not known here before."""
        return DEFAULT_SHARD_BYTES

    def run(self, shards: Iterator[NewShard], store: ShardStore, format: ShardFormat) -> Iterator[StoredShard]:
        """Every shard once it is on the disk, as they are done."""
        first = next(shards, None)
        if first is None:
            return  # nothing is new: no cluster is needed
        with connected(self._address) as ray:
            crew = _Crew(ray, ray.put(shipped(self._model, self._output)), self._threads)
            for file in crew.files(chain([first], shards), format):
                yield store.put(file)


class _Crew:
    """The actors of one job."""

    def __init__(self, ray: ModuleType, model: Any, threads: int | None) -> None:  # noqa: ANN401 - a reference
        self._ray, self._model, self._threads = ray, model, threads
        self._actors: list[_Actor] = []
        self._starts: Counter[str] = Counter()
        self._returned: deque[NewShard] = deque()  # of actors that died
        self._looked_s = self._worked_s = time.monotonic()
        self._last_error = "no machine has a core to spare"

    def files(self, shards: Iterator[NewShard], format: ShardFormat) -> Iterator[ShardFile]:
        """The files of all shards, as they are done."""
        self._hire()
        is_more = True
        while True:
            is_more = self._hand_out(shards, format) and is_more
            if not is_more and not self._returned and not any(actor.shards for actor in self._actors):
                return
            self._check_patience()
            yield from self._done()

    def _hand_out(self, shards: Iterator[NewShard], format: ShardFormat) -> bool:
        """Give every actor that is ready its share; False once there are no more shards."""
        for n_held in range(SHARDS_AHEAD):  # first one for each, then the second
            for actor in self._actors:
                if actor.start is None and len(actor.shards) == n_held:
                    shard = self._returned.popleft() if self._returned else next(shards, None)
                    if shard is None:
                        return False
                    actor.shards[actor.handle.embed.remote(shard, format)] = shard
        return True

    def _done(self) -> Iterator[ShardFile]:
        """Wait for something to be done, and give the files that are."""
        owners = {reference: actor for actor in self._actors for reference in actor.shards}
        owners |= {actor.start: actor for actor in self._actors if actor.start is not None}
        if not owners:
            time.sleep(1)
            self._hire()
            return
        done, _ = self._ray.wait(list(owners), num_returns=1, timeout=LOOK_EVERY_S)
        for reference in done:
            file = self._result(owners[reference], reference)
            if file is not None:
                yield file
        if time.monotonic() - self._looked_s > LOOK_EVERY_S:
            self._hire()

    def _result(self, actor: _Actor, reference: Any) -> ShardFile | None:  # noqa: ANN401 - Ray's
        try:
            found = self._ray.get(reference)
        except self._ray.exceptions.RayTaskError as error:  # the work itself is wrong, not the machine
            own = own_error(error)
            if own is None:
                raise
            raise own from error
        except self._ray.exceptions.RayError as error:
            self._dismiss(actor, error)
            return None
        self._worked_s = time.monotonic()
        if reference == actor.start:
            actor.start = None
            _warn_of_versions(found)
            return None
        del actor.shards[reference]
        file: ShardFile = found
        return file

    def _dismiss(self, actor: _Actor, error: Exception) -> None:
        if actor not in self._actors:
            return  # another of its shards has told us
        rest = f"; others do its {len(actor.shards)} shards" if actor.shards else ""
        logger.warning("A worker was lost (%s)%s.", type(error).__name__, rest)
        self._last_error = last_line(error)
        self._actors.remove(actor)
        self._returned.extend(actor.shards.values())

    def _hire(self) -> None:
        """An actor for every machine that has cores and no actor yet."""
        self._looked_s = time.monotonic()
        staffed = {actor.node for actor in self._actors}
        for node in self._ray.nodes():
            name, n_cores = node["NodeID"], int(node["Resources"].get("CPU", 0))
            if not node["Alive"] or not n_cores or name in staffed or self._starts[name] >= MAX_STARTS:
                continue
            self._starts[name] += 1
            self._actors.append(self._started(name, min(n_cores, self._threads or n_cores)))

    def _started(self, node: str, n_cores: int) -> _Actor:
        from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

        strategy = NodeAffinitySchedulingStrategy(node, soft=False)
        kind = self._ray.remote(ShardWorker).options(num_cpus=n_cores, max_restarts=0, scheduling_strategy=strategy)
        handle = kind.remote(self._model, n_cores)
        return _Actor(node, handle, handle.versions.remote())

    def _check_patience(self) -> None:
        is_over = time.monotonic() - self._worked_s > PATIENCE_S
        is_given_up = not self._actors and any(count >= MAX_STARTS for count in self._starts.values())
        if (is_over and not any(actor.start is None for actor in self._actors)) or is_given_up:
            raise InputError(
                f"No machine of the Ray cluster takes up the work: {self._last_error}",
                hint="Look at it with: ray status. Run the same command again to go on.",
            )


def _warn_of_versions(found: dict[str, str]) -> None:
    own = engine_versions()
    changed = [
        f"{name} {own[name]} here, {found[name]} there" for name in own if found.get(name, own[name]) != own[name]
    ]
    if changed:
        logger.warning(
            "A machine has other versions (%s): vectors may differ in their last digits.", "; ".join(changed)
        )
