"""A fake model and a fake source for bulk jobs, which record their calls."""

from __future__ import annotations

import hashlib
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from twinvec.encoder import Block


class FakeModel:
    """Vectors that depend on the hash of the text and, as in a real model, slightly on its batch."""

    width, similarity = 8, "cosine"

    def __init__(self, name="fake", settings=None, fail_at=None):
        self.name, self.settings, self._fail_at = name, settings or {"precision": "float32"}, fail_at
        self.identity = hashlib.sha256(name.encode()).hexdigest()
        self.blocks = []

    def embed(self, texts, *, role="text"):
        return self.embed_block(texts).vectors

    def embed_block(self, texts):
        if self._fail_at is not None and len(self.blocks) >= self._fail_at:
            raise Interrupted
        self.blocks.append(list(texts))
        return Block(fake_vectors(texts), sum(len(text) > 40 for text in texts), max(map(len, texts)))

    @property
    def texts(self):
        """All embedded texts, in order."""
        return [text for block in self.blocks for text in block]


class Interrupted(BaseException):
    """Like KeyboardInterrupt: not an Exception, so no handler catches it."""


def fake_vectors(texts):
    digests = b"".join(hashlib.sha256(text.encode()).digest() for text in texts)
    numbers = np.frombuffer(digests, dtype=np.uint32).reshape(len(texts), 8).astype(np.float64)
    batch = hashlib.sha256("\n".join(texts).encode()).digest()[0] * 1e-9
    return (numbers / 2**31 - 1 + batch).astype(np.float32)


class ListSource:
    """Texts in memory."""

    def __init__(self, texts, ids=None):
        self._texts, self._ids = texts, ids

    @property
    def has_ids(self):
        return self._ids is not None

    def rows(self):
        return zip(self._texts, self._ids or [""] * len(self._texts), strict=True)

    def n_rows(self):
        return len(self._texts)

    def describe(self):
        return {"name": "list"}


def content(folder):
    """The bytes of all files in a folder, except the lock."""
    files = (path for path in folder.rglob("*") if path.is_file() and path.name != ".lock")
    return {str(path.relative_to(folder)): path.read_bytes() for path in files}


@contextmanager
def in_memory():
    """A folder in memory if the system has one, because jobs sync every file and disks are slow."""
    memory = Path("/dev/shm")
    with TemporaryDirectory(prefix="twinvec-", dir=memory if memory.is_dir() else None) as folder:
        yield Path(folder)
