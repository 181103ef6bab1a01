"""Every different text is embedded once: now, in this run, or never again while the subject stays the same."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from pathlib import Path

from twinvec.errors import InputError
from twinvec.evaluation.systems.system import Subject, checked_vectors
from twinvec.files import whole_file
from twinvec.progress import Progress
from twinvec.types import Vectors
from twinvec.vector_store import VectorStore, text_key

__all__ = ["CachedEmbed"]

TEXTS_PER_CALL = 4096  # what a kill can cost; enough for the engine to sort by length


class CachedEmbed:
    """Embeds texts through a store: ``CachedEmbed(subject, folder)(texts)`` gives ``(len(texts), width)``.

    ``folder`` is the cache's; each identity has a store of its own in it. With None, vectors are kept in memory.
    ``texts_per_call`` is the most texts given to the subject at once; None gives it all.
    """

    def __init__(self, subject: Subject, folder: Path | None, *, texts_per_call: int | None = TEXTS_PER_CALL) -> None:
        self.subject = subject
        self.n_embedded = 0
        self._texts_per_call = texts_per_call
        self._store = VectorStore(None if folder is None else _store_folder(subject, folder))

    @property
    def width(self) -> int | None:
        """Size of a vector, once it is known."""
        return self._store.width or self.subject.width

    def __call__(self, texts: Sequence[str]) -> Vectors:
        """Vectors of the texts, ``(len(texts), width)``, row ``i`` for text ``i``."""
        if isinstance(texts, str):
            raise InputError("One text was given where a list is needed.", hint="Put it in a list.")
        keys = [text_key(text) for text in texts]
        rows = self._store.rows(keys)
        if (rows < 0).any():
            missing = {key: text for key, text, row in zip(keys, texts, rows, strict=True) if row < 0}
            self._embed(missing)
            rows = self._store.rows(keys)
        return self._store.vectors(rows)

    def _embed(self, missing: dict[bytes, str]) -> None:
        keys, texts = list(missing), list(missing.values())
        step = self._texts_per_call or len(texts)
        with Progress(len(texts), "embedding") as bar:
            for start in range(0, len(texts), step):
                part = texts[start : start + step]
                found = self.subject.embed(part)
                vectors = checked_vectors(found, len(part), width=self.width, source=self.subject.name)
                self._store.add(keys[start : start + step], vectors)
                self.n_embedded += len(part)
                bar.advance(len(part))


def _store_folder(subject: Subject, folder: Path) -> Path:
    """The folder of the subject's store, with a file that tells people whose it is."""
    identity = subject.identity
    store = folder / hashlib.sha256(identity.encode()).hexdigest()[:32]
    about = store / "about.json"
    try:
        if not about.is_file():
            store.mkdir(parents=True, exist_ok=True)
            told = json.dumps({"name": subject.name, "identity": identity}, indent=2)
            with whole_file(about) as file:
                file.write(f"{told}\n".encode())
    except OSError as error:
        raise InputError(
            f"The cache folder {folder} cannot be written: {error.strerror or error}.",
            hint="Give another with --cache, or none with --no-cache.",
        ) from error
    return store
