"""Averaged word vectors as an embedder: GloVe, word2vec or fastText, optionally with SIF weights.

The vectors and a sorted index of the words are memory-mapped, so a folder opens fast. SIF (Arora et al. 2017) weights
a word by a / (a + p), where p is its relative frequency, and removes the first principal component from all vectors.
"""

from __future__ import annotations

import hashlib
import logging
import os
import re
import shutil
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
from numpy.lib.format import write_array_header_1_0
from numpy.typing import NDArray

from twinvec.baselines.converted import converted
from twinvec.baselines.word_files import Words, find_pair, read_frequencies, read_words
from twinvec.choices import Role
from twinvec.engine.static import mean_rows
from twinvec.errors import InputError, ModelFolderError, check_at_least
from twinvec.files import digest_files, mapped_vectors, read_json, saved_folder, write_json
from twinvec.json_checks import JsonObject
from twinvec.model.folder import EMBEDDER_FILE
from twinvec.model.identity import model_digest
from twinvec.model.tokenizer import check_texts
from twinvec.ownership import MODEL
from twinvec.progress import Progress
from twinvec.types import Array, Ids, Vectors

__all__ = ["WordSettings", "WordVectors", "convert_word_vectors", "open_word_vectors", "write_words"]

logger = logging.getLogger(__name__)

VectorsOf = Callable[[NDArray[np.int32], Ids], Vectors]  # rows of words, and their number per text

KIND = "word-vectors"
VECTORS, WORDS, INDEX, WEIGHTS, COMPONENTS = "vectors.npy", "words.txt", "index.npy", "weights.npy", "components.npy"
TEXTS_AT_ONCE = 4096
MAX_CACHED = 1 << 20  # tokens whose rows are kept in memory
FEW_CAPITALS = 0.01  # share of words with capitals; below it, texts are lowercased
HINT = "Convert the word vectors again: twinvec words."
# How to split a token that is not a word itself: do + n't, dog + 's, dog + .
PIECES = re.compile(r"\w+?(?=n't\b)|n't\b|'(?:s|m|d|re|ve|ll)\b|[^\W_]+|[^\w\s]|_", re.IGNORECASE)
HAS_LETTER = re.compile(r"[^\W_]")


@dataclass(frozen=True, slots=True)
class WordSettings:
    """How to average word vectors.

    Args:
        lower_case: Lowercase texts first; None does so if fewer than 1 % of the words have capitals.
        sif: The a of SIF weights a / (a + p), such as 0.001; None gives all words the same weight.
        n_components: The number of principal components to remove from the vectors; SIF removes 1.
    """

    lower_case: bool | None = None
    sif: float | None = None
    n_components: int = 0

    def __post_init__(self) -> None:
        if self.sif is not None and not 0 < self.sif < float("inf"):
            raise InputError(f"sif must be more than 0, got {self.sif}.", hint="A common value is 0.001.")
        check_at_least(0, n_components=self.n_components)


class WordVectors:
    """An embedder: the vector of a text is the (weighted) mean of the vectors of its words.

    ``folder`` is from :func:`convert_word_vectors`. A text without any known word gets a zero vector; ``n_empty``
    counts such texts, and the first call with any logs a warning.
    """

    similarity = "cosine"

    def __init__(self, folder: str | os.PathLike[str], name: str | None = None) -> None:
        self.folder = Path(folder)
        self.name = name or str(self.folder)
        self.n_empty = 0
        about = JsonObject(read_json(self.folder / EMBEDDER_FILE), self.folder / EMBEDDER_FILE, hint=HINT)
        about.word("kind", choices=(KIND,))
        self.width: int = about.integer("width")
        self.n_words: int = about.integer("words")
        self.lower_case = about.flag("lower_case")
        self.settings: dict[str, Any] = {
            "lower_case": self.lower_case,
            "sif": about.value("sif", None) and about.number("sif"),
            "n_components": about.integer("n_components", least=0),
        }
        self.vectors: Vectors = self._mapped(VECTORS, (self.n_words, self.width), np.float32)
        hashes, rows = self._mapped(INDEX, (2, self.n_words), np.uint64)
        self._hashes, self._rows = hashes, rows
        if int(rows.max()) >= self.n_words:
            raise ModelFolderError(f"{self.folder / INDEX} contains rows that do not exist.", hint=HINT)
        self._weights: Vectors | None = None
        if self.settings["sif"]:
            self._weights = self._mapped(WEIGHTS, (1, self.n_words), np.float32)[0]
        self._components: Vectors = np.zeros((0, self.width), dtype=np.float32)
        if n_components := self.settings["n_components"]:
            self._components = self._mapped(COMPONENTS, (n_components, self.width), np.float32)
        self._known: dict[str, tuple[int, ...]] = {}

    def _mapped(self, file: str, shape: tuple[int, int], dtype: type) -> Array:
        mapped = np.asarray(mapped_vectors(self.folder / file, hint=HINT))
        if mapped.shape != shape or mapped.dtype != dtype:
            raise ModelFolderError(
                f"{self.folder / file} has {mapped.dtype} of shape {mapped.shape}, not {np.dtype(dtype)} of {shape}.",
                hint=HINT,
            )
        return mapped

    @cached_property
    def identity(self) -> str:
        """A digest of the folder's files."""
        return f"{KIND}-{model_digest(self.folder)}"

    @cached_property
    def words(self) -> list[str]:
        """All words, in row order of ``vectors``."""
        return (self.folder / WORDS).read_bytes().decode().split("\n")[:-1]

    def embed(self, texts: Sequence[str], *, role: Role = "text") -> Vectors:
        """Vectors of the texts, ``(len(texts), width)``; a vector does not depend on the other texts."""
        return self.embed_rows(texts, self.means, self.width)

    def embed_rows(self, texts: Sequence[str], vectors_of: VectorsOf, width: int) -> Vectors:
        """Vectors that ``vectors_of`` computes from :meth:`token_rows`, ``(len(texts), width)``; counts empty texts."""
        if isinstance(texts, str):
            raise InputError("Expected a list of texts, got one text.", hint="Put it in a list.")
        listed = check_texts(texts)
        vectors = np.zeros((len(listed), width), dtype=np.float32)
        n_empty = 0
        for first in range(0, len(listed), TEXTS_AT_ONCE):
            ids, counts = self.token_rows(listed[first : first + TEXTS_AT_ONCE])
            vectors[first : first + TEXTS_AT_ONCE] = vectors_of(ids, counts)
            n_empty += int((counts == 0).sum())
        if n_empty and not self.n_empty:
            share = f"{n_empty:,} of {len(listed):,}"
            logger.warning("%s texts have no word that is in %s; their vectors are zero.", share, self.name)
        self.n_empty += n_empty
        return vectors

    def token_rows(self, texts: Sequence[str]) -> tuple[NDArray[np.int32], Ids]:
        """The rows of the known words of all texts, concatenated, and their number per text."""
        parts = [(text.lower() if self.lower_case else text).split() for text in texts]
        known = self._known = self._known if len(self._known) < MAX_CACHED else {}
        self._learn(list(set(chain.from_iterable(parts)).difference(known)), known)
        rows = [list(chain.from_iterable(map(known.__getitem__, words))) for words in parts]
        counts = np.fromiter(map(len, rows), dtype=np.int64, count=len(rows))
        return np.fromiter(chain.from_iterable(rows), dtype=np.int32, count=int(counts.sum())), counts

    def rows_of(self, words: Sequence[str]) -> Ids:
        """The row of each word, ``(len(words),)``; -1 for a word without a vector."""
        wanted = _hashes(words)
        found = np.minimum(np.searchsorted(self._hashes, wanted), self.n_words - 1)
        return np.where(self._hashes[found] == wanted, self._rows[found].astype(np.int64), -1)

    def _learn(self, parts: list[str], known: dict[str, tuple[int, ...]]) -> None:
        """Look up tokens and cache their rows: each as a whole, or else its pieces."""
        whole = self.rows_of(parts).tolist()
        pieces = {
            part: PIECES.findall(part.replace("’", "'")) if row < 0 else [part]  # noqa: RUF001
            for part, row in zip(parts, whole, strict=True)
            if HAS_LETTER.search(part)
        }
        flat = list({piece for each in pieces.values() for piece in each if HAS_LETTER.search(piece)})
        rows = {piece: row for piece, row in zip(flat, self.rows_of(flat).tolist(), strict=True) if row >= 0}
        for part in parts:
            known[part] = tuple(rows[piece] for piece in pieces.get(part, ()) if piece in rows)

    def means(self, ids: NDArray[np.int32], counts: Ids) -> Vectors:
        """Vectors of texts from their :meth:`token_rows`, ``(len(counts), width)``; zero where a count is 0."""
        distinct, indices = np.unique(ids, return_inverse=True)
        table = self.vectors[distinct]
        if self._weights is not None:
            table *= self._weights[distinct, None]
        if not len(ids):
            return np.zeros((len(counts), self.width), dtype=np.float32)
        means = mean_rows(table, indices.astype(np.int32), np.cumsum(counts) - counts, counts)
        for component in self._components:
            means -= (means * component).sum(axis=1, keepdims=True) * component
        return means


def _hashes(words: Sequence[str]) -> NDArray[np.uint64]:
    """64 bits of each word, ``(len(words),)``: with 2 million words, one lookup in 10**13 is a false match."""
    digests = b"".join(hashlib.blake2b(word.encode(), digest_size=8).digest() for word in words)
    return np.frombuffer(digests, dtype="<u8")


def convert_word_vectors(
    source: str | os.PathLike[str],
    folder: str | os.PathLike[str],
    settings: WordSettings | None = None,
    *,
    texts: Iterable[str] | None = None,
    frequencies: str | os.PathLike[str] | None = None,
) -> WordVectors:
    """Convert word vectors to a folder that works as ``model=`` of all functions and opens fast.

    Args:
        source: A text file of GloVe, word2vec or fastText, plain or .gz; a .npy of vectors next to a .parquet of words,
            or a folder with the two; or a folder from this function, to change its weights.
        settings: How to average the words; by default all words have the same weight.
        texts: The texts to estimate word frequencies (for SIF) and principal components from.
        frequencies: A file with a word and its count on each line, for SIF weights instead of ``texts``.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = Path(folder, "tiny.txt").write_text("cat 1 0\\nkitten 0.5 0.5\\nrain 0 1\\n")
    ...     vectors = convert_word_vectors(f"{folder}/tiny.txt", f"{folder}/tiny").embed(["A cat, a kitten."])
    >>> vectors.tolist()
    [[0.75, 0.25]]
    """
    chosen, path = settings or WordSettings(), Path(source).expanduser()
    listed = None if texts is None else check_texts(texts)
    if chosen.sif is not None and listed is None and frequencies is None:
        raise InputError("SIF weights require word frequencies.", hint="Pass texts or frequencies.")
    if chosen.n_components and not listed:
        raise InputError("n_components requires texts.", hint="Pass texts like those you want to embed.")
    with saved_folder(Path(folder), MODEL) as target:
        about = _copied(path, target) if (path / EMBEDDER_FILE).is_file() else _converted(path, target)
        about |= {"sif": None, "n_components": 0}
        if chosen.lower_case is not None:
            about["lower_case"] = chosen.lower_case
        write_json(target / EMBEDDER_FILE, about)
        if chosen.sif is not None:
            _weigh(target, chosen.sif, listed or [], None if frequencies is None else Path(frequencies))
            write_json(target / EMBEDDER_FILE, about := about | {"sif": chosen.sif})
        if chosen.n_components:
            np.save(target / COMPONENTS, _components(WordVectors(target), listed or [], chosen.n_components))
            write_json(target / EMBEDDER_FILE, about | {"n_components": chosen.n_components})
    return WordVectors(folder)


def _converted(source: Path, target: Path) -> dict[str, Any]:
    if not source.exists():
        raise InputError(f"There is no file {source!s:.200}.", hint="Check the path.")
    if source.is_dir() and find_pair(source) is None:
        raise InputError(
            f"{source} is not a folder of word vectors.",
            hint="Pass a file, or a folder with one .npy and one .parquet file.",
        )
    words, n_read, width = _write_vectors(read_words(source), target / VECTORS)
    (target / WORDS).write_bytes("".join(f"{word}\n" for word in words).encode())
    hashes = _hashes(words)
    order = np.argsort(hashes, kind="stable")
    if (hashes[order][1:] == hashes[order][:-1]).any():
        raise InputError(f"Two words in {source} have the same hash.", hint="They were made to collide; remove one.")
    np.save(target / INDEX, np.stack([hashes[order], order.astype(np.uint64)]))
    files = find_pair(source) or (source,)
    return {
        "kind": KIND,
        "width": width,
        "words": len(words),
        "repeated": n_read - len(words),
        "lower_case": sum(word != word.lower() for word in words) < FEW_CAPITALS * len(words),
        "source": " + ".join(file.name for file in files),
        "source_sha256": digest_files(files),
    }


def _write_vectors(blocks: Iterator[Words], path: Path) -> tuple[list[str], int, int]:
    """Write vectors block by block, the first one of repeated words. Returns the words, the number read, the width."""
    rows: dict[str, None] = {}
    n_read = width = 0
    with path.open("wb") as file, Progress(None, "words") as bar:
        for words, vectors in blocks:
            if not n_read:
                width = vectors.shape[1]
                _write_header(file, 0, width)
            is_new = np.zeros(len(words), dtype=bool)
            for index, word in enumerate(words):
                if word not in rows:
                    rows[word], is_new[index] = None, True
            file.write(vectors[is_new].astype("<f4").tobytes())
            n_read += len(words)
            bar.advance(len(words))
        if not rows:
            raise InputError("The source has no word vectors.", hint="Pass a file with at least one word.")
        file.seek(0)
        _write_header(file, len(rows), width)  # numpy reserves space for a larger number
    return list(rows), n_read, width


def _write_header(file: Any, n: int, width: int) -> None:  # noqa: ANN401 - numpy's own type
    write_array_header_1_0(file, {"descr": "<f4", "fortran_order": False, "shape": (n, width)})


def _copied(source: Path, target: Path) -> dict[str, Any]:
    """Copy the files of word vectors that do not depend on settings."""
    WordVectors(source)
    for name in (VECTORS, WORDS, INDEX):
        shutil.copyfile(source / name, target / name)
    return read_json(source / EMBEDDER_FILE)


def write_words(words: WordVectors, target: Path, vectors: Vectors) -> None:
    """Write word vectors without weights to ``target``, an existing empty folder, with other ``vectors``."""
    about = _copied(words.folder, target) | {"sif": None, "n_components": 0}
    np.save(target / VECTORS, vectors)
    write_json(target / EMBEDDER_FILE, about)


def _weigh(folder: Path, a: float, texts: list[str], frequencies: Path | None) -> None:
    """Write the weight of each word: a / (a + p)."""
    words = WordVectors(folder)
    counts = np.zeros(words.n_words)
    if frequencies is None:
        for first in range(0, len(texts), TEXTS_AT_ONCE):
            ids, _ = words.token_rows(texts[first : first + TEXTS_AT_ONCE])
            counts += np.bincount(ids, minlength=words.n_words)
        total = counts.sum()
    else:
        counted = read_frequencies(frequencies)
        names = [word.lower() if words.lower_case else word for word in counted]
        rows, values = words.rows_of(names), np.fromiter(counted.values(), dtype=np.float64)
        np.add.at(counts, rows[rows >= 0], values[rows >= 0])
        total = values.sum()
    if not counts.any():
        raise InputError("None of the counted words has a vector.", hint="Use texts in the language of the vectors.")
    np.save(folder / WEIGHTS, (a / (a + counts / total)).astype(np.float32)[None])


def _components(words: WordVectors, texts: list[str], n: int) -> Vectors:
    """The first right singular vectors of the texts' vectors, ``(n, width)``, not centered, as in SIF."""
    if n >= words.width:
        raise InputError(f"Cannot remove {n} components from vectors of width {words.width}.")
    products = np.zeros((words.width, words.width))
    for first in range(0, len(texts), TEXTS_AT_ONCE):
        vectors = words.means(*words.token_rows(texts[first : first + TEXTS_AT_ONCE])).astype(np.float64)
        products += vectors.T @ vectors
    if not products.any():
        raise InputError("No word of the texts has a vector.", hint="Use texts in the language of the vectors.")
    return np.ascontiguousarray(np.linalg.eigh(products)[1][:, ::-1][:, :n].T.astype(np.float32))


def open_word_vectors(source: Path) -> WordVectors:
    """Open the word vectors of a file or a pair of files; they are converted in the cache folder at first use."""
    files = find_pair(source) or (source,)
    return WordVectors(converted(files, KIND, partial(convert_word_vectors, source)), str(source))
