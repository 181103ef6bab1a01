"""Tables from parquet and vectors to parquet, through pyarrow."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from itertools import chain, islice
from pathlib import Path
from types import ModuleType
from typing import IO, Any

import numpy as np

from twinvec.errors import InputError
from twinvec.extras import require
from twinvec.tables.formats import STDIN
from twinvec.tables.lines import check_file
from twinvec.tables.table import Record, Table
from twinvec.types import Array

__all__ = ["open_parquet", "write_parquet"]

READ_ROWS, WRITE_ROWS = 1024, 8192  # rows held at once; a written row group of width 384 is 12 MB


def open_parquet(source: str) -> Table:
    """A parquet file, read batch by batch, and of it only the columns asked for."""
    if source == STDIN:
        raise InputError("Parquet cannot be read from standard input.", hint="Save it to a file first.")
    path = check_file(source)
    with _opened(path) as file:
        names = tuple(file.schema_arrow.names)
    return Table(source, names, "row", partial(_records, path))


def _records(path: Path, columns: Sequence[str]) -> Iterator[Record]:
    with _opened(path) as file:
        batches = file.iter_batches(batch_size=READ_ROWS, columns=list(columns))
        rows = (zip(*(batch.column(name).to_pylist() for name in columns), strict=True) for batch in batches)
        yield from enumerate(chain.from_iterable(rows), start=1)


@contextmanager
def _opened(path: Path) -> Iterator[Any]:
    arrow = _pyarrow("Reading parquet")
    parquet = require("pyarrow.parquet", extra="tables", feature="Reading parquet")
    try:
        with parquet.ParquetFile(path) as file:
            yield file
    except (arrow.ArrowInvalid, OSError) as error:
        reason = str(error).splitlines()[0].rstrip(".")
        raise InputError(f"{path} cannot be read as parquet: {reason}.", hint="Check the file.") from error


def write_parquet(rows: Iterable[tuple[str, Array]], file: IO[bytes]) -> int:
    """Write columns ``text`` and ``vector`` (a list of fixed size); returns the number of rows."""
    arrow = _pyarrow("Writing parquet")
    parquet = require("pyarrow.parquet", extra="tables", feature="Writing parquet")
    rows = iter(rows)
    first = next(rows)
    kind = arrow.list_(arrow.from_numpy_dtype(first[1].dtype), len(first[1]))
    schema = arrow.schema([("text", arrow.string()), ("vector", kind)])
    n_rows = 0
    with parquet.ParquetWriter(file, schema) as writer:
        rows = chain([first], rows)
        while chunk := list(islice(rows, WRITE_ROWS)):
            writer.write_table(_table(chunk, schema, arrow=arrow))
            n_rows += len(chunk)
    return n_rows


def _table(chunk: list[tuple[str, Array]], schema: Any, *, arrow: ModuleType) -> Any:  # noqa: ANN401 - pyarrow's
    texts, vectors = zip(*chunk, strict=True)
    values = arrow.array(np.stack(vectors).ravel())
    lists = arrow.FixedSizeListArray.from_arrays(values, schema.field("vector").type.list_size)
    return arrow.Table.from_arrays([arrow.array(texts, arrow.string()), lists], schema=schema)


def _pyarrow(feature: str) -> ModuleType:
    return require("pyarrow", extra="tables", feature=feature)
