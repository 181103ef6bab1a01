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

LOCAL = "local"  # Ray's address for a new cluster on this machine, for this process
PROBE_S = 5.0
TASKS_AHEAD = 64  # submitted to the cluster before the first is done


@contextmanager
def connected(address: str) -> Iterator[ModuleType]:
    """Yield the package ray, connected to a cluster. An existing connection is reused and left open."""
    ray = require("ray", extra="ray", feature="Working on many machines")
    if ray.is_initialized():
        yield ray
        return
    also = {"include_dashboard": False} if address == LOCAL else {}
    try:
        _probe(address)
        ray.init(address=address, log_to_driver=False, logging_level="ERROR", **also)
    except (RuntimeError, ValueError, OSError) as error:  # OSError includes ConnectionError
        reason = str(error).partition(". ")[0].rstrip(".") or type(error).__name__
        raise InputError(
            f"No Ray cluster found at {address!r}: {reason}.",
            hint="Start one with: ray start --head; its output shows the address.",
        ) from error
    try:
        yield ray
    finally:
        ray.shutdown()


def _probe(address: str) -> None:
    """Try to connect to a host:port address first, because Ray itself waits for minutes."""
    host, _, port = address.rpartition(":")
    if host and port.isdigit() and "/" not in host:
        socket.create_connection((host.strip("[]"), int(port)), timeout=PROBE_S).close()


def own_error(error: BaseException) -> TwinvecError | None:
    """The TwinvecError that a remote task raised; None if it raised something else."""
    cause = getattr(error, "cause", None)
    return cause if isinstance(cause, TwinvecError) else None


def run_tasks(
    function: Callable[..., Result], shared: object, arguments: Iterable[tuple[Any, ...]], *, ray: str | None = None
) -> Iterator[Result]:
    """Yield ``function(shared, *each)`` for each of the arguments: in order locally, in any order on a Ray cluster.

    ``ray`` is the address of the cluster. ``shared`` is sent to each machine once. If a machine dies, its tasks run
    again on another one.

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
            raise  # the task failed, not the cluster
        raise own or InputError(f"The Ray cluster failed: {last_line(error)}", hint="Try again.") from error


def last_line(error: BaseException) -> str:
    """The last line of an error's message, where Ray puts the reason.

    >>> last_line(RuntimeError("The actor died.\\n  ValueError: no such file\\n"))
    'ValueError: no such file'
    """
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return lines[-1] if lines else type(error).__name__


logger = logging.getLogger(__name__)

SHARDS_AHEAD = 2  # shards per actor: one running, one waiting
MAX_STARTS = 3  # actors started on one machine before giving it up
LOOK_EVERY_S = 5.0  # interval for finding new machines
PATIENCE_S = 120.0  # time allowed without any working actor
DEFAULT_SHARD_BYTES = 64 << 20


@dataclass(frozen=True)
class ShippedModel:
    """The content of a model's files and its settings, for machines that do not have the model."""

    files: Mapping[str, bytes] = field(repr=False)
    arguments: Mapping[str, Any]
    prompts: dict[str, Any]
    output: OutputType

    def opened(self, *, threads: int) -> ModelEmbedder:
        """Load the model from a temporary folder, removed immediately because workers can be killed at any time."""
        with TemporaryDirectory(prefix="twinvec-model-", ignore_cleanup_errors=True) as folder:
            for name, content in self.files.items():
                path = Path(folder, name)
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(content)
            arguments = {**self.arguments, "threads": threads}
            arguments.pop("revision", None)
            return ModelEmbedder(load(folder, **arguments), **self.prompts)


def shipped(model: ModelEmbedder, output: OutputType) -> ShippedModel:
    """Read a model's files, to send them to other machines."""
    files = {file.relative_to(model.folder).as_posix(): file.read_bytes() for file in model_files(model.folder)}
    return ShippedModel(files, model.arguments, model.prompts, output)


class ShardWorker:
    """The Ray actor that embeds shards on one machine."""

    def __init__(self, model: ShippedModel, threads: int) -> None:
        self._model, self._output = model.opened(threads=threads), model.output

    def versions(self) -> dict[str, str]:
        """The versions of the packages that compute vectors on this machine."""
        return engine_versions()

    def embed(self, shard: NewShard, format: ShardFormat) -> ShardFile:
        """Embed a shard, and return the content of its file."""
        return embedded_shard(shard, self._model, self._output, format)


@dataclass
class _Actor:
    """An actor and its current shards. ``start`` is set until the actor has loaded the model."""

    node: str
    handle: Any
    start: Any
    shards: dict[Any, NewShard] = field(default_factory=dict)


class RayWorkers:
    """Embeds on a Ray cluster, with ``threads`` cores of each machine; None uses all."""

    def __init__(
        self, model: ModelEmbedder, address: str, *, output: OutputType = "float32", threads: int | None = None
    ) -> None:
        self._model, self._output, self._address, self._threads = model, output, address, threads

    def shard_bytes(self, shard_rows: int) -> int:
        """An estimate of a shard's size; its width is only known once a worker has loaded the model."""
        return DEFAULT_SHARD_BYTES

    def run(self, shards: Iterator[NewShard], store: ShardStore, format: ShardFormat) -> Iterator[StoredShard]:
        """Yield every shard once it is on disk, in order of completion."""
        first = next(shards, None)
        if first is None:
            return  # no new texts, so no cluster is needed
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
        self._last_error = "no machine has a free core"

    def files(self, shards: Iterator[NewShard], format: ShardFormat) -> Iterator[ShardFile]:
        """Yield the files of all shards in order of completion."""
        self._hire()
        is_more = True
        while True:
            is_more = self._hand_out(shards, format) and is_more
            if not is_more and not self._returned and not any(actor.shards for actor in self._actors):
                return
            self._check_patience()
            yield from self._done()

    def _hand_out(self, shards: Iterator[NewShard], format: ShardFormat) -> bool:
        """Assign shards to all ready actors; return False once there are no more shards."""
        for n_held in range(SHARDS_AHEAD):  # one shard for each actor, then a second
            for actor in self._actors:
                if actor.start is None and len(actor.shards) == n_held:
                    shard = self._returned.popleft() if self._returned else next(shards, None)
                    if shard is None:
                        return False
                    actor.shards[actor.handle.embed.remote(shard, format)] = shard
        return True

    def _done(self) -> Iterator[ShardFile]:
        """Wait for a result, and yield the files that are done."""
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
        except self._ray.exceptions.RayTaskError as error:  # the task failed, not the machine
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
            return  # already dismissed for another of its shards
        rest = f"; other workers take over its {len(actor.shards)} shards" if actor.shards else ""
        logger.warning("Lost a worker (%s)%s.", type(error).__name__, rest)
        self._last_error = last_line(error)
        self._actors.remove(actor)
        self._returned.extend(actor.shards.values())

    def _hire(self) -> None:
        """Start an actor on every machine that has cores and no actor yet."""
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
        is_late = time.monotonic() - self._worked_s > PATIENCE_S
        has_given_up = not self._actors and any(count >= MAX_STARTS for count in self._starts.values())
        if (is_late and not any(actor.start is None for actor in self._actors)) or has_given_up:
            raise InputError(
                f"No machine of the Ray cluster can start working: {self._last_error}",
                hint="Check the cluster with: ray status. Then run the same command again to continue.",
            )


def _warn_of_versions(found: dict[str, str]) -> None:
    own = engine_versions()
    changed = [
        f"{name} {own[name]} here, {found[name]} there" for name in own if found.get(name, own[name]) != own[name]
    ]
    if changed:
        logger.warning("Versions differ (%s): vectors may differ in their last digits.", "; ".join(changed))
