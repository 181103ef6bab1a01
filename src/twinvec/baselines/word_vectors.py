"""The average of word vectors as an embedder: GloVe, word2vec or fastText, with SIF weights if wanted.

A folder of word vectors is opened without reading it: the vectors and a sorted index of the words are mapped files.
SIF (Arora et al. 2017) weights a word by a / (a + p), where p is how frequent it is, and removes from all vectors the
direction that most of them share.
"""

from __future__ import annotations

import hashlib
import json
import logging
import os
import re
import shutil
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
from numpy.lib.format import write_array_header_1_0
from numpy.typing import NDArray

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
from twinvec.vector_store import cache_folder

__all__ = ["WordSettings", "WordVectors", "convert_word_vectors", "open_word_vectors"]

logger = logging.getLogger(__name__)

KIND = "word-vectors"
VECTORS, WORDS, INDEX, WEIGHTS, COMPONENTS = "vectors.npy", "words.txt", "index.npy", "weights.npy", "components.npy"
TEXTS_AT_ONCE = 4096
MOST_REMEMBERED = 1 << 20  # parts of texts whose rows are kept in memory
FEW_CAPITALS = 0.01  # share of words with capitals below which texts are lower-cased
AGAIN = "Convert the word vectors again: twinvec words."
# What a part of a text without spaces is split into, if it is not a word itself: do + n't, dog + 's, dog + .
PIECES = re.compile(r"\w+?(?=n't\b)|n't\b|'(?:s|m|d|re|ve|ll)\b|[^\W_]+|[^\w\s]|_", re.IGNORECASE)
HAS_LETTER = re.compile(r"[^\W_]")


@dataclass(frozen=True, slots=True)
class WordSettings:
    """How word vectors are averaged.

    Args:
        lower_case: lower-case texts first; None does so if fewer than 1 % of the words have capitals.
        sif: the a of SIF weights a / (a + p), such as 0.001; None weights all words alike.
        n_components: how many directions to remove that the vectors of most texts share; SIF removes 1.
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

    ``folder`` is one that :func:`convert_word_vectors` wrote. A text without a known word gets a vector of zeros;
    ``n_empty`` counts them, and the first is logged.
    """

    similarity = "cosine"

    def __init__(self, folder: str | os.PathLike[str], name: str | None = None) -> None:
        self.folder = Path(folder)
        self.name = name or str(self.folder)
        self.n_empty = 0
        about = JsonObject(read_json(self.folder / EMBEDDER_FILE), self.folder / EMBEDDER_FILE, hint=AGAIN)
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
            raise ModelFolderError(f"{self.folder / INDEX} names rows that are not there.", hint=AGAIN)
        self._weights: Vectors | None = None
        if self.settings["sif"]:
            self._weights = self._mapped(WEIGHTS, (1, self.n_words), np.float32)[0]
        self._components: Vectors = np.zeros((0, self.width), dtype=np.float32)
        if n_components := self.settings["n_components"]:
            self._components = self._mapped(COMPONENTS, (n_components, self.width), np.float32)
        self._known: dict[str, tuple[int, ...]] = {}

    def _mapped(self, file: str, shape: tuple[int, int], dtype: type) -> Array:
        found = np.asarray(mapped_vectors(self.folder / file, hint=AGAIN))
        if found.shape != shape or found.dtype != dtype:
            raise ModelFolderError(
                f"{self.folder / file} holds {found.dtype} of shape {found.shape}, not {np.dtype(dtype)} of {shape}.",
                hint=AGAIN,
            )
        return found

    @cached_property
    def identity(self) -> str:
        """A digest of the folder's files."""
        return f"{KIND}-{model_digest(self.folder)}"

    @cached_property
    def words(self) -> list[str]:
        """All words, in the order of the rows of ``vectors``."""
        return (self.folder / WORDS).read_bytes().decode().split("\n")[:-1]

    def embed(self, texts: Sequence[str], *, role: Role = "text") -> Vectors:
        """Vectors of the texts, ``(len(texts), width)``, each the same whatever the other texts are."""
        if isinstance(texts, str):
            raise InputError("One text was given where a list is needed.", hint="Put it in a list.")
        listed = check_texts(texts)
        vectors = np.zeros((len(listed), self.width), dtype=np.float32)
        n_empty = 0
        for first in range(0, len(listed), TEXTS_AT_ONCE):
            ids, counts = self.token_rows(listed[first : first + TEXTS_AT_ONCE])
            vectors[first : first + TEXTS_AT_ONCE] = self.means(ids, counts)
            n_empty += int((counts == 0).sum())
        if n_empty and not self.n_empty:
            found = f"{n_empty:,} of {len(listed):,}"
            logger.warning("%s knows no word of %s texts; their vectors are zero.", self.name, found)
        self.n_empty += n_empty
        return vectors

    def token_rows(self, texts: Sequence[str]) -> tuple[NDArray[np.int32], Ids]:
        """The rows of the known words of all texts, one text after the other, and how many each text has."""
        parts = [(text.lower() if self.lower_case else text).split() for text in texts]
        known = self._known = self._known if len(self._known) < MOST_REMEMBERED else {}
        self._learn(list(set(chain.from_iterable(parts)).difference(known)), known)
        rows = [list(chain.from_iterable(map(known.__getitem__, words))) for words in parts]
        counts = np.fromiter(map(len, rows), dtype=np.int64, count=len(rows))
        return np.fromiter(chain.from_iterable(rows), dtype=np.int32, count=int(counts.sum())), counts

    def rows_of(self, words: Sequence[str]) -> Ids:
        """The row of each word, ``(len(words),)``; -1 for one that has no vector."""
        wanted = _hashes(words)
        found = np.minimum(np.searchsorted(self._hashes, wanted), self.n_words - 1)
        return np.where(self._hashes[found] == wanted, self._rows[found].astype(np.int64), -1)

    def _learn(self, parts: list[str], known: dict[str, tuple[int, ...]]) -> None:
        """Look parts of texts up, all at once: each as it is, or else the pieces that it consists of."""
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
        different, places = np.unique(ids, return_inverse=True)
        table = self.vectors[different]
        if self._weights is not None:
            table *= self._weights[different, None]
        if not len(ids):
            return np.zeros((len(counts), self.width), dtype=np.float32)
        means = mean_rows(table, places.astype(np.int32), np.cumsum(counts) - counts, counts)
        for component in self._components:
            means -= (means * component).sum(axis=1, keepdims=True) * component
        return means


def _hashes(words: Sequence[str]) -> NDArray[np.uint64]:
    """64 bits of each word, ``(len(words),)``: 2 million words take a false match in one of 10**13 look-ups."""
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
    """Write word vectors as a folder that every function with ``model=`` takes, and that opens at once.

    Args:
        source: a file of GloVe, word2vec or fastText in text format, plain or .gz; a .npy of vectors beside a .parquet
            of words, or a folder with the two; or a folder of word vectors, to be weighted anew.
        settings: how words are averaged; by default all alike.
        texts: to count words in for SIF weights, and to find the components to remove by.
        frequencies: a file with a word and its count on each line, for SIF weights instead of counts in ``texts``.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = Path(folder, "tiny.txt").write_text("cat 1 0\\nkitten 0.5 0.5\\nrain 0 1\\n")
    ...     found = convert_word_vectors(f"{folder}/tiny.txt", f"{folder}/tiny").embed(["A cat, a kitten."])
    >>> found.tolist()
    [[0.75, 0.25]]
    """
    chosen, path = settings or WordSettings(), Path(source).expanduser()
    listed = None if texts is None else check_texts(texts)
    if chosen.sif is not None and listed is None and frequencies is None:
        raise InputError("SIF weights need to know how frequent words are.", hint="Give texts, or frequencies.")
    if chosen.n_components and not listed:
        raise InputError("The components to remove are found by texts.", hint="Give texts like those to embed.")
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
            hint="Give one that holds one .npy and one .parquet, or a file.",
        )
    words, n_read, width = _write_vectors(read_words(source), target / VECTORS)
    (target / WORDS).write_bytes("".join(f"{word}\n" for word in words).encode())
    hashes = _hashes(words)
    order = np.argsort(hashes, kind="stable")
    if (hashes[order][1:] == hashes[order][:-1]).any():
        raise InputError(f"Two words of {source} have one hash.", hint="Remove one of them; they were made to collide.")
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
    """Write vectors as they come; of a repeated word the first counts. Returns the words, all read, and the width."""
    rows: dict[str, None] = {}
    n_read = width = 0
    with path.open("wb") as file, Progress(None, "words") as bar:
        for words, vectors in blocks:
            if not n_read:
                width = vectors.shape[1]
                _write_header(file, 0, width)
            is_new = np.zeros(len(words), dtype=bool)
            for place, word in enumerate(words):
                if word not in rows:
                    rows[word], is_new[place] = None, True
            file.write(vectors[is_new].astype("<f4").tobytes())
            n_read += len(words)
            bar.advance(len(words))
        if not rows:
            raise InputError("There are no word vectors in it.", hint="Give a file with at least one word.")
        file.seek(0)
        _write_header(file, len(rows), width)  # numpy leaves room for a larger number
    return list(rows), n_read, width


def _write_header(file: Any, n: int, width: int) -> None:  # noqa: ANN401 - as numpy takes it
    write_array_header_1_0(file, {"descr": "<f4", "fortran_order": False, "shape": (n, width)})


def _copied(source: Path, target: Path) -> dict[str, Any]:
    """The parts of a folder of word vectors that do not depend on settings, in another folder."""
    WordVectors(source)
    for name in (VECTORS, WORDS, INDEX):
        shutil.copyfile(source / name, target / name)
    return read_json(source / EMBEDDER_FILE)


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
        found = read_frequencies(frequencies)
        names = [word.lower() if words.lower_case else word for word in found]
        rows, values = words.rows_of(names), np.fromiter(found.values(), dtype=np.float64)
        np.add.at(counts, rows[rows >= 0], values[rows >= 0])
        total = values.sum()
    if not counts.any():
        raise InputError("None of the words whose frequency is given has a vector.", hint="Give texts in its language.")
    np.save(folder / WEIGHTS, (a / (a + counts / total)).astype(np.float32)[None])


def _components(words: WordVectors, texts: list[str], n: int) -> Vectors:
    """The first right singular vectors of the texts' vectors, ``(n, width)``, not centered, as SIF has it."""
    if n >= words.width:
        raise InputError(f"{n} components cannot be removed from vectors of width {words.width}.")
    products = np.zeros((words.width, words.width))
    for first in range(0, len(texts), TEXTS_AT_ONCE):
        vectors = words.means(*words.token_rows(texts[first : first + TEXTS_AT_ONCE])).astype(np.float64)
        products += vectors.T @ vectors
    if not products.any():
        raise InputError("No word of the texts has a vector.", hint="Give texts in its language.")
    return np.ascontiguousarray(np.linalg.eigh(products)[1][:, ::-1][:, :n].T.astype(np.float32))


def open_word_vectors(source: Path) -> WordVectors:
    """The word vectors of a file or a pair of files, converted in the cache folder when it is first used."""
    files = [file.resolve() for file in find_pair(source) or (source,)]
    states = [(str(file), file.stat().st_size, file.stat().st_mtime_ns) for file in files]
    target = cache_folder() / KIND / hashlib.sha256(json.dumps(states).encode()).hexdigest()[:32]
    if not (target / EMBEDDER_FILE).is_file():
        try:
            convert_word_vectors(source, target)
        except InputError:
            if not (target / EMBEDDER_FILE).is_file():  # unless another process was quicker
                raise
    return WordVectors(target, str(source))
