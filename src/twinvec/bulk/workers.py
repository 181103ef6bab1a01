"""Who embeds the shards. Here: this process; ``ray_workers`` has the other way."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Protocol

from twinvec.bulk.model import BulkModel, OpenModel
from twinvec.bulk.planning import NewShard
from twinvec.bulk.shard_file import ShardFormat, shard_file
from twinvec.bulk.store import ShardStore, StoredShard
from twinvec.encoder import Block

__all__ = ["LocalWorkers", "Workers"]


class Workers(Protocol):
    """Embeds shards and stores them, drawing the next as there is someone to do it."""

    def shard_bytes(self, shard_rows: int) -> int:
        """The size of a shard's vectors in the memory of this process."""
        ...

    def run(self, shards: Iterator[NewShard], store: ShardStore, format: ShardFormat) -> Iterator[StoredShard]:
        """Every shard once it is on the disk, in any order."""
        ...


class LocalWorkers:
    """Embeds in this process; while a shard is embedded, the one before it is written."""

    def __init__(self, model: BulkModel) -> None:
        self._model = model
        self._opened: OpenModel | None = None

    @property
    def opened(self) -> OpenModel:
        """The model, loaded when it is first needed."""
        if self._opened is None:
            self._opened = self._model.open()
        return self._opened

    def shard_bytes(self, shard_rows: int) -> int:
        """The size of a shard's vectors; the model is loaded to know it, and is in the memory from then on."""
        return 4 * self.opened.width * shard_rows

    def run(self, shards: Iterator[NewShard], store: ShardStore, format: ShardFormat) -> Iterator[StoredShard]:
        """Every shard once it is on the disk, in order."""

        def write(shard: NewShard, block: Block) -> StoredShard:
            return store.put(shard_file(shard, block, format))

        writing: deque[Future[StoredShard]] = deque()
        with ThreadPoolExecutor(1) as writer:
            for shard in shards:
                block = self.opened.embed(shard.texts)
                while writing:  # one at a time: two shards are held, not more
                    yield writing.popleft().result()
                writing.append(writer.submit(write, shard, block))
            while writing:
                yield writing.popleft().result()
