"""Stored vectors as a system under test: a .npy file with one row for every line of a text file."""

from __future__ import annotations

import os
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from zipfile import BadZipFile

import numpy as np

from twinvec.choices import Role
from twinvec.data.read import read_texts
from twinvec.errors import InputError
from twinvec.files import digest_files
from twinvec.types import Vectors
from twinvec.vectors import checked_vectors

__all__ = ["StoredEmbedder"]


class StoredEmbedder:
    """A .npy file ``(n, width)`` and a file of ``n`` texts. It can embed only these texts."""

    similarity = "cosine"

    def __init__(self, vectors: Path, texts: Path) -> None:
        for file in (vectors, texts):
            if not os.path.isfile(file):
                raise InputError(f"There is no file {file!s:.200}.", hint="Check the path.")
        self._files = vectors, texts
        self.settings = {"vectors": vectors.name, "texts": texts.name}
        rows = list(read_texts(str(texts)))
        try:
            loaded = np.load(vectors, allow_pickle=False)
        except (ValueError, EOFError, OSError, BadZipFile) as error:
            raise InputError(f"{vectors} is not a .npy file of numbers: {error}.") from error
        if not isinstance(loaded, np.ndarray):
            raise InputError(f"{vectors} contains several arrays.", hint="Save only the vectors, with numpy.save.")
        if loaded.ndim == 2 and len(loaded) != len(rows):
            raise InputError(
                f"{vectors} has {len(loaded)} rows, but {texts} has {len(rows)} texts.",
                hint="Row i of the vectors must belong to line i of the texts.",
            )
        self._vectors = checked_vectors(loaded, rows, width=None, source=str(vectors))
        self._rows = {text: row for row, text in reversed(list(enumerate(rows)))}  # equal texts: the first row wins

    @property
    def name(self) -> str:
        """The name of the vector file."""
        return self._files[0].name

    @cached_property
    def identity(self) -> str:
        """A digest of both files."""
        return f"stored-{digest_files(self._files)}-{self._files[0].stat().st_size}"

    @property
    def width(self) -> int | None:
        """The size of a vector."""
        return int(self._vectors.shape[1])

    def embed(self, texts: Sequence[str], *, role: Role = "text") -> Vectors:
        """Vectors of the texts, ``(len(texts), width)``."""
        missing = [text for text in texts if text not in self._rows]
        if missing:
            raise InputError(
                f"{len(missing):,} of {len(texts):,} texts are not in {self._files[1]}; the first is {missing[0]!r}.",
                hint="The texts must match the data exactly, including white space.",
            )
        found: Vectors = self._vectors[[self._rows[text] for text in texts]]
        return found
