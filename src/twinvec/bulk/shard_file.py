"""One shard as a file: numbers, keys, texts and vectors, in Parquet or in Arrow's own format.

Parquet is smaller and read by everything; an Arrow file is mapped into memory as it stands, so single vectors cost
nothing to fetch. The same texts and vectors give the same bytes.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from types import ModuleType
from typing import Any, Literal

import numpy as np

from twinvec.bulk.keys import KEY_BYTES
from twinvec.bulk.planning import NewShard
from twinvec.encoder import Block
from twinvec.errors import InputError
from twinvec.extras import require
from twinvec.types import Array

__all__ = ["COLUMNS", "ENDINGS", "ShardFile", "ShardFormat", "pyarrow", "shard_file"]

ShardFormat = Literal["parquet", "arrow"]
COLUMNS = "number", "key", "text", "vector"
ROWS_PER_GROUP = 2048  # what is read of a Parquet shard to get at one row


@dataclass(frozen=True, slots=True)
class ShardFile:
    """A shard as it will stand on the disk."""

    start: int
    n: int
    n_cut: int
    longest: int
    content: bytes

    @property
    def sha256(self) -> str:
        """The digest of the content."""
        return hashlib.sha256(self.content).hexdigest()


def shard_file(shard: NewShard, block: Block, format: ShardFormat) -> ShardFile:
    """The file of some texts and their vectors, ``(n, width)``."""
    vectors = block.vectors
    if len(vectors) != len(shard.texts):
        raise InputError(f"The model gave {len(vectors)} vectors for {len(shard.texts)} texts.")
    if vectors.dtype.kind == "f" and not np.isfinite(vectors).all():
        row = int(np.flatnonzero(~np.isfinite(vectors).all(axis=1))[0])
        raise InputError(f"The model gave NaN or infinity for the text {shard.texts[row]!r:.80}.")
    table = _table(shard, vectors, metadata={"n_cut": str(block.n_cut), "longest": str(block.longest)})
    return ShardFile(shard.start, len(shard.texts), block.n_cut, block.longest, WRITERS[format](table))


def pyarrow(part: str = "") -> ModuleType:
    """The package pyarrow, or a part of it such as ``.parquet``."""
    return require(f"pyarrow{part}", extra="tables", feature="Bulk embedding")


def _table(shard: NewShard, vectors: Array, *, metadata: dict[str, str]) -> Any:  # noqa: ANN401 - pyarrow's
    arrow = pyarrow()
    n, width = vectors.shape
    element = arrow.field("element", arrow.from_numpy_dtype(vectors.dtype), nullable=False)
    kinds = arrow.int64(), arrow.binary(KEY_BYTES), arrow.string(), arrow.list_(element, width)
    fields = [arrow.field(name, kind, nullable=False) for name, kind in zip(COLUMNS, kinds, strict=True)]
    values = arrow.array(np.ascontiguousarray(vectors).ravel())
    columns = [
        arrow.array(np.arange(shard.start, shard.start + n)),
        arrow.FixedSizeBinaryArray.from_buffers(kinds[1], n, [None, arrow.py_buffer(shard.keys.tobytes())]),
        arrow.array(shard.texts, arrow.string()),
        arrow.FixedSizeListArray.from_arrays(values, type=kinds[3]),
    ]
    return arrow.Table.from_arrays(columns, schema=arrow.schema(fields, metadata=metadata))


def _parquet(table: Any) -> bytes:  # noqa: ANN401 - pyarrow's
    sink = pyarrow().BufferOutputStream()
    pyarrow(".parquet").write_table(
        table,
        sink,
        row_group_size=ROWS_PER_GROUP,
        compression={"number": "ZSTD", "text": "ZSTD"},  # keys and vectors would not get smaller
        use_dictionary=False,
        write_page_checksum=True,
    )
    content: bytes = sink.getvalue().to_pybytes()
    return content


def _arrow(table: Any) -> bytes:  # noqa: ANN401 - pyarrow's
    sink = pyarrow().BufferOutputStream()
    with pyarrow(".ipc").new_file(sink, table.schema) as writer:
        writer.write_table(table.combine_chunks(), max_chunksize=max(len(table), 1))
    content: bytes = sink.getvalue().to_pybytes()
    return content


WRITERS: dict[ShardFormat, Callable[[Any], bytes]] = {"parquet": _parquet, "arrow": _arrow}
ENDINGS: dict[ShardFormat, str] = {"parquet": ".parquet", "arrow": ".arrow"}
