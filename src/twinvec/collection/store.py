"""The Lance table of a collection: made, opened, locked. Every change of it is one commit: whole or not there."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from types import ModuleType

from twinvec.collection.indexes import make_text_index
from twinvec.collection.lance_errors import UNREACHED, lance_errors
from twinvec.collection.lance_types import ArrowBatch, ArrowSchema, LanceDatabase, LanceTable
from twinvec.collection.location import TABLE, Location
from twinvec.collection.locking import sync_changes, writer_lock
from twinvec.collection.schema import Header, read_header, table_schema
from twinvec.errors import CollectionError, InputError
from twinvec.extras import require
from twinvec.files import new_folder
from twinvec.ownership import COLLECTION

__all__ = ["Store", "create_store", "is_collection"]

CLOCK_STEP_S = 1.0  # how coarse the times of files may be


class Store:
    """A table that is there. Any number of threads may use it; every handle it gives sees one version for ever."""

    def __init__(self, location: Location) -> None:
        if not is_collection(location):
            raise InputError(
                f"There is no collection at {location.uri}.",
                hint="Check the path, or make one with Collection.create or: twinvec index FILE --out FOLDER",
            )
        self.location = location
        with lance_errors(f"open {location.uri}"):
            self._database = _connect(location)
        read_header(self.table().schema, location.uri)

    def table(self, version: int | None = None) -> LanceTable:
        """A handle on a version of the table, by default the newest."""
        with lance_errors(f"read {self.location.uri}"):
            table = self._database.open_table(TABLE)
        if version is not None:
            try:
                table.checkout(version)
            except (ValueError, RuntimeError) as error:
                raise InputError(
                    f"{self.location.uri} has no version {version}.", hint="Collection.versions lists them."
                ) from error
        return table

    def header(self, table: LanceTable) -> Header:
        """The header of a version of the table."""
        return read_header(table.schema, self.location.uri)

    @contextmanager
    def writing(self) -> Iterator[LanceTable]:
        """The newest version, to be changed by nobody else meanwhile, and on disk when the block has ended.

        Object stores have no lock; there Lance's own check of every commit has to do.
        """
        folder = self.location.folder
        with nullcontext() if folder is None else writer_lock(folder):
            started = time.time() - CLOCK_STEP_S
            yield self.table()
            if folder is not None:
                sync_changes(folder / f"{TABLE}.lance", started)

    def overwrite(self, schema: ArrowSchema, batches: Iterator[ArrowBatch]) -> LanceTable:
        """Replace all rows, and the schema with them, in one commit; returns a handle on the new version."""
        reader = require("pyarrow", extra="search", feature="A collection").RecordBatchReader
        with lance_errors(f"write {self.location.uri}"):
            return self._database.create_table(TABLE, data=reader.from_batches(schema, batches), mode="overwrite")


def is_collection(location: Location) -> bool:
    """Whether there is a table of texts, in whatever state."""
    if location.folder is not None:
        try:
            return (location.folder / f"{TABLE}.lance").is_dir()
        except OSError as error:  # such as a name that is too long
            raise InputError(f"{location.folder} cannot be looked at: {error.strerror or error}.") from error
    with lance_errors(f"reach {location.uri}", hint=UNREACHED):
        return TABLE in _connect(location).list_tables().tables


def create_store(location: Location, header: Header) -> Store:
    """Make an empty table with a full-text index; a folder appears only when it is complete."""
    _lancedb()  # before a folder is made
    if location.folder is None:
        _make(location, header)
    else:
        try:
            with new_folder(location.folder, COLLECTION) as partial:
                _make(Location(str(partial), partial), header)
        except OSError as error:
            raise CollectionError(f"Cannot make {location.folder}: {error.strerror or error}.") from error
    return Store(location)


def _make(location: Location, header: Header) -> None:
    with lance_errors(f"make {location.uri}", hint=UNREACHED if location.folder is None else None):
        table = _connect(location).create_table(TABLE, schema=table_schema(header, {}))
        make_text_index(table, header.language)


def _connect(location: Location) -> LanceDatabase:
    return _lancedb().connect(location.uri, storage_options=location.storage)


def _lancedb() -> ModuleType:
    return require("lancedb", extra="search", feature="A collection")
