"""The storage of a collection: its location, its lock, and its Lance table."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType

from twinvec.collection.indexes import (
    UNREACHED,
    ArrowBatch,
    ArrowSchema,
    LanceDatabase,
    LanceTable,
    lance_errors,
    make_text_index,
)
from twinvec.collection.schema import Header, read_header, table_schema
from twinvec.errors import CollectionError, InputError, shown
from twinvec.extras import require
from twinvec.files import check_path, new_folder, sync_folder, sync_path, try_lock
from twinvec.ownership import COLLECTION

__all__ = ["Location", "Store", "create_store", "is_collection", "locate"]

TABLE = "texts"


@dataclass(frozen=True, slots=True)
class Location:
    """The address ``uri`` for Lance, the ``folder`` (None for an object store), and options of the store."""

    uri: str
    folder: Path | None
    storage: dict[str, str] | None = field(default=None, repr=False)  # may hold credentials


def locate(path: str | os.PathLike[str], storage: dict[str, str] | None = None) -> Location:
    """The location of a path or address.

    >>> locate("s3://bucket/notes").folder is None, locate("notes").folder.name
    (True, 'notes')
    """
    if not isinstance(path, (str, os.PathLike)) or isinstance(os.fspath(path), bytes):
        raise InputError(f"The path of the collection is {shown(path)}, not a string.", hint="Use a folder.")
    text = os.fspath(path)
    if not text or "\0" in text:
        raise InputError(f"The path of the collection is {shown(text)}.", hint="Use a folder.")
    _check_storage(storage)
    if "://" in text and not text.startswith("file://"):
        return Location(text.rstrip("/"), None, storage)
    folder = Path(text.removeprefix("file://")).expanduser().absolute()
    check_path(folder)
    return Location(str(folder), folder, storage)


def _check_storage(storage: object) -> None:
    if storage is None:
        return
    if not isinstance(storage, dict) or not all(isinstance(each, str) for pair in storage.items() for each in pair):
        raise InputError(  # without the values: they may be credentials
            f"storage must be a dict of strings to strings, got a {type(storage).__name__}.",
            hint='Pass a dict such as {"region": "eu-west-1"}.',
        )


LOCK = "writer.lock"
PATIENCE_S = 60.0
PAUSE_S = 0.02


@contextmanager
def writer_lock(folder: Path, *, patience_s: float | None = None) -> Iterator[None]:
    """Hold the writer lock of a folder; wait for another writer for up to ``patience_s``."""
    deadline = time.monotonic() + (PATIENCE_S if patience_s is None else patience_s)
    try:
        handle = os.open(folder / LOCK, os.O_RDWR | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0), 0o666)
    except OSError as error:
        raise CollectionError(
            f"Cannot write to {folder}: {error.strerror}.", hint="Check that it exists, and its permissions."
        ) from error
    try:
        while not try_lock(handle):
            if time.monotonic() > deadline:
                raise CollectionError(
                    f"Another process is writing to {folder}.", hint="Wait until it is done, then try again."
                )
            time.sleep(PAUSE_S)
        yield
    finally:
        os.close(handle)


def sync_changes(folder: Path, since: float) -> None:
    """Sync files written after ``since`` (seconds since 1970) to disk, because Lance does not."""
    folders = {folder}
    for file in folder.rglob("*"):
        with suppress(OSError):  # such as a file that another process just removed
            if file.is_file() and file.stat().st_mtime >= since:
                folders.add(file.parent)
                sync_path(file)
    for each in folders:
        sync_folder(each)


CLOCK_STEP_S = 1.0  # resolution of file times


class Store:
    """An existing table. Any number of threads may use it; each table handle stays at one version."""

    def __init__(self, location: Location) -> None:
        if not is_collection(location):
            raise InputError(
                f"There is no collection at {location.uri}.",
                hint="Check the path, or create one with Collection.create or: twinvec index FILE --out FOLDER",
            )
        self.location = location
        with lance_errors(f"open {location.uri}"):
            self._database = _connect(location)
        read_header(self.table().schema, location.uri)

    def table(self, version: int | None = None) -> LanceTable:
        """Return a handle on a version of the table, by default the newest."""
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
        """Lock the collection, yield the newest version, and sync the changes to disk at the end of the block.

        Object stores have no lock; there, Lance checks every commit for conflicts.
        """
        folder = self.location.folder
        with nullcontext() if folder is None else writer_lock(folder):
            started = time.time() - CLOCK_STEP_S
            yield self.table()
            if folder is not None:
                sync_changes(folder / f"{TABLE}.lance", started)

    def overwrite(self, schema: ArrowSchema, batches: Iterator[ArrowBatch]) -> LanceTable:
        """Replace all rows and the schema in one commit; return a handle on the new version."""
        reader = require("pyarrow", extra="search", feature="A collection").RecordBatchReader
        with lance_errors(f"write {self.location.uri}"):
            return self._database.create_table(TABLE, data=reader.from_batches(schema, batches), mode="overwrite")


def is_collection(location: Location) -> bool:
    """Whether a location has a table of texts, intact or not."""
    if location.folder is not None:
        try:
            return (location.folder / f"{TABLE}.lance").is_dir()
        except OSError as error:  # such as a name that is too long
            raise InputError(f"Cannot access {location.folder}: {error.strerror or error}.") from error
    with lance_errors(f"reach {location.uri}", hint=UNREACHED):
        return TABLE in _connect(location).list_tables().tables


def create_store(location: Location, header: Header) -> Store:
    """Create an empty table with a full-text index; a folder appears only when it is complete."""
    _lancedb()  # fail before a folder is created
    if location.folder is None:
        _create(location, header)
    else:
        try:
            with new_folder(location.folder, COLLECTION) as partial:
                _create(Location(str(partial), partial), header)
        except OSError as error:
            raise CollectionError(f"Cannot create {location.folder}: {error.strerror or error}.") from error
    return Store(location)


def _create(location: Location, header: Header) -> None:
    with lance_errors(f"create {location.uri}", hint=UNREACHED if location.folder is None else None):
        table = _connect(location).create_table(TABLE, schema=table_schema(header, {}))
        make_text_index(table, header.language)


def _connect(location: Location) -> LanceDatabase:
    return _lancedb().connect(location.uri, storage_options=location.storage)


def _lancedb() -> ModuleType:
    return require("lancedb", extra="search", feature="A collection")
