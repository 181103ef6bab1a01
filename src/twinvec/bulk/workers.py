"""Who embeds the shards. Here: this process; ``ray_workers`` has the other way."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol

from twinvec.bulk.model import BulkModel, OpenModel
from twinvec.bulk.planning import NewShard
from twinvec.bulk.shard_file import ShardFormat, shard_file
from twinvec.bulk.store import ShardStore, StoredShard

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
    """Embeds in this process, one shard after the other."""

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
        """Every shard once it is on the disk, in order: the next is not begun before, so a kill costs one at most."""
        for shard in shards:
            yield store.put(shard_file(shard, self.opened.embed(shard.texts), format))
