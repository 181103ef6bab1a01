"""Vectors on disk, keyed by text content: a folder of small immutable files.

Each addition is a new file, written under a temporary name, synced and renamed. So a kill at any moment leaves a
readable store, and any number of processes can add concurrently; a text added twice is stored twice and read once.
A file with a wrong length or header (lost by the disk) is removed, and its texts are embedded again.

A file is: magic, n, width, crc32 of the keys (little-endian, 20 bytes), n keys (sha256 of the text, 32 bytes each),
then the vectors as float32, row by row.
"""

from __future__ import annotations

import hashlib
import logging
import os
import re
import struct
import sys
import time
import zlib
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from uuid import uuid4

import numpy as np
from numpy.typing import ArrayLike

from twinvec.errors import InputError
from twinvec.files import whole_file
from twinvec.progress import Progress
from twinvec.types import Array, Ids, Vectors
from twinvec.vectors import checked_vectors

__all__ = ["VectorStore", "cache_folder", "embed_missing", "text_key"]

logger = logging.getLogger(__name__)

MAGIC = b"twinvec1"
HEAD = struct.Struct("<8sIII")
KEY_BYTES = 32
ENDING = ".vectors"
LEFTOVER_AGE_S = 24 * 3600
# Only files with these names are ever removed.
OWN_NAME = re.compile(r"[0-9a-f]{32}\.vectors|\.[0-9a-f]{32}\.vectors\.partial-[0-9a-f]+")
CACHE_VARIABLE = "TWINVEC_CACHE"


def cache_folder() -> Path:
    """The cache folder for vectors: TWINVEC_CACHE, or a folder in the system's cache directory."""
    if folder := os.environ.get(CACHE_VARIABLE):
        return Path(folder).expanduser()
    home = Path.home()
    if sys.platform == "win32":
        base = Path(os.environ.get("LOCALAPPDATA") or home / "AppData" / "Local")
    elif sys.platform == "darwin":
        base = home / "Library" / "Caches"
    else:
        base = Path(os.environ.get("XDG_CACHE_HOME") or home / ".cache")
    return base / "twinvec" / "vectors"


def text_key(text: str) -> bytes:
    """The storage key of a text: the sha256 of its UTF-8 bytes."""
    return hashlib.sha256(text.encode("utf-8", errors="surrogatepass")).digest()


class VectorStore:
    """Vectors of one width by text. ``folder=None`` keeps them in memory only."""

    def __init__(self, folder: Path | None) -> None:
        self.folder = folder
        self.width: int | None = None
        self._blocks: list[Array | _FileBlock] = []  # each (n, width); file blocks are read on demand
        self._starts: list[int] = []  # first row of each block
        self._rows: dict[bytes, int] = {}
        self._n_rows = 0
        if folder is not None and folder.is_dir():
            for file in sorted(folder.glob(f"*{ENDING}")):
                with suppress(FileNotFoundError):  # another process may have removed a damaged file
                    self._read(file)
            _clear_leftovers(folder)

    def __len__(self) -> int:
        return len(self._rows)

    def rows(self, keys: Sequence[bytes]) -> Ids:
        """The row of each key, ``(n,)``; -1 if it is not stored."""
        return np.fromiter((self._rows.get(key, -1) for key in keys), dtype=np.int64, count=len(keys))

    def missing(self, texts: Iterable[str]) -> dict[bytes, str]:
        """The distinct texts that are not stored, by key."""
        keyed = {text_key(text): text for text in texts}
        return {key: text for key, text in keyed.items() if key not in self._rows}

    def of(self, texts: Sequence[str]) -> Vectors:
        """The vectors of stored texts, ``(len(texts), width)``."""
        return self.vectors(self.rows([text_key(text) for text in texts]))

    def vectors(self, rows: Ids) -> Vectors:
        """The vectors of some rows, ``(n, width)``."""
        vectors = np.empty((len(rows), self.width or 0), dtype=np.float32)
        block_of = np.searchsorted(np.asarray(self._starts), rows, side="right") - 1
        for block in np.unique(block_of):
            here = block_of == block
            vectors[here] = self._blocks[block][rows[here] - self._starts[block]]
        return vectors

    def add(self, keys: Sequence[bytes], vectors: Vectors) -> None:
        """Store vectors ``(n, width)`` under their keys. If the disk fails, they stay in memory, with a warning."""
        self._check_width(vectors.shape[1])
        self._keep(keys, vectors)
        if self.folder is None or not len(keys):
            return
        try:
            self._write(b"".join(keys), vectors)
        except OSError as error:
            logger.warning("%s cannot be written (%s); vectors are not cached.", self.folder, error.strerror or error)
            self.folder = None

    def _keep(self, keys: Sequence[bytes], vectors: Array | _FileBlock) -> None:
        self._starts.append(self._n_rows)
        self._blocks.append(vectors)
        self._rows.update(zip(keys, range(self._n_rows, self._n_rows + len(keys)), strict=True))
        self._n_rows += len(keys)

    def _write(self, keys: bytes, vectors: Vectors) -> None:
        assert self.folder is not None
        self.folder.mkdir(parents=True, exist_ok=True)
        with whole_file(self.folder / f"{uuid4().hex}{ENDING}") as file:
            file.write(HEAD.pack(MAGIC, len(vectors), vectors.shape[1], zlib.crc32(keys)))
            file.write(keys)
            file.write(np.ascontiguousarray(vectors, dtype="<f4").data)

    def _read(self, file: Path) -> None:
        content = _read_block(file)
        if content is None:
            logger.warning("%s is damaged; it is removed, and its texts are embedded again.", file)
            if OWN_NAME.fullmatch(file.name):
                file.unlink(missing_ok=True)
            return
        keys, block = content
        self._check_width(block.width)
        self._keep(keys, block)

    def _check_width(self, width: int) -> None:
        if self.width is not None and width != self.width:
            raise InputError(
                f"Got vectors of width {width}; earlier vectors have width {self.width}.",
                hint="All vectors of a model must have the same width."
                + (f" If the model has changed, remove {self.folder}." if self.folder else ""),
            )
        self.width = width


def embed_missing(
    store: VectorStore,
    texts: Iterable[str],
    embed: Callable[[list[str]], ArrayLike],
    *,
    source: str,
    at_once: int | None = None,
    label: str | None = None,
) -> int:
    """Embed and store the distinct texts that a store lacks; returns their number.

    ``at_once`` is the largest number of texts per call of ``embed``, which a kill can lose; None means no limit.
    Errors about wrong vectors name ``source``. With a ``label``, long work shows a progress bar.
    """
    missing = store.missing(texts)
    keys, new = list(missing), list(missing.values())
    step = at_once or max(len(new), 1)
    with Progress(len(new), label or "", shown=None if label else False) as bar:
        for start in range(0, len(new), step):
            part = new[start : start + step]
            vectors = checked_vectors(embed(part), part, width=store.width, source=source)
            store.add(keys[start : start + step], vectors)
            bar.advance(len(part))
    return len(new)


def _clear_leftovers(folder: Path) -> None:
    """Remove old partial files of killed writers."""
    for file in folder.glob(".*.partial*"):
        with suppress(OSError):
            if OWN_NAME.fullmatch(file.name) and time.time() - file.stat().st_mtime > LEFTOVER_AGE_S:
                file.unlink()


@dataclass(frozen=True, slots=True)
class _FileBlock:
    """The vectors ``(n, width)`` of a file, opened only while reading, as there may be many files."""

    file: Path
    n: int
    width: int

    @property
    def size(self) -> int:
        return self.start + self.n * self.width * 4

    @property
    def start(self) -> int:
        return HEAD.size + self.n * KEY_BYTES

    def __getitem__(self, rows: Ids) -> Vectors:
        try:
            with self.file.open("rb") as stream:
                if os.fstat(stream.fileno()).st_size != self.size:
                    raise OSError("its size has changed")
                shape = self.n, self.width
                mapped = np.memmap(stream, dtype="<f4", mode="r", offset=self.start, shape=shape)
                return np.asarray(mapped[rows])
        except OSError as error:
            raise InputError(
                f"{self.file} was changed or removed while it was in use: {error.strerror or error}.",
                hint="Try again: missing vectors are embedded again.",
            ) from error


def _read_block(file: Path) -> tuple[list[bytes], _FileBlock] | None:
    """Keys and vectors ``(n, width)`` of a file; None if it is incomplete. The vectors are not read yet."""
    with file.open("rb") as stream:
        size = os.fstat(stream.fileno()).st_size
        head = stream.read(HEAD.size)
        if len(head) < HEAD.size:
            return None
        magic, n, width, checksum = HEAD.unpack(head)
        block = _FileBlock(file, n, width)
        if magic != MAGIC or size != block.size or not n * width:
            return None
        keys = stream.read(n * KEY_BYTES)
    if zlib.crc32(keys) != checksum:
        return None
    return [keys[i : i + KEY_BYTES] for i in range(0, len(keys), KEY_BYTES)], block
