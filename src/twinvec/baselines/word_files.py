"""Read word vectors: the text formats of GloVe, word2vec and fastText, and .npy files with a .parquet of words."""

from __future__ import annotations

import gzip
import warnings
import zlib
from collections import Counter
from collections.abc import Iterator
from itertools import chain, islice
from pathlib import Path
from typing import IO, NamedTuple

import numpy as np

from twinvec.errors import InputError
from twinvec.extras import require
from twinvec.files import mapped_vectors
from twinvec.types import Vectors

__all__ = ["Words", "find_pair", "is_vector_text", "read_frequencies", "read_words"]

EXTENSIONS = (".txt", ".vec", ".glove", ".gz")
LINES_AT_ONCE = 8192
MAX_LINE = 1 << 20  # bytes; a line of 4,096 numbers has a tenth of that
FORMAT = "Each line must be a word and its numbers, separated by spaces, in UTF-8."
GZIP = b"\x1f\x8b"


class Words(NamedTuple):
    """Words in file order, and their vectors, ``(n, width)``."""

    words: list[str]
    vectors: Vectors


def is_vector_text(file: Path) -> bool:
    """Whether a file contains word vectors, judged by its extension or else by its first line."""
    if not file.is_file():
        return False
    if file.suffix.lower() in EXTENSIONS:
        return True
    with file.open("rb") as stream:
        first = stream.readline(MAX_LINE)
    try:
        return bool(_header(first)) or _width(first, file) > 1
    except InputError:
        return False


def find_pair(path: Path) -> tuple[Path, Path] | None:
    """The .npy and the .parquet file of word vectors, given the .npy or a folder with one of each."""
    if path.is_file() and path.suffix == ".npy":
        arrays, folder = [path], path.parent
    elif path.is_dir() and not any((path / mark).is_file() for mark in ("modules.json", "config.json")):
        arrays, folder = list(path.glob("*.npy")), path
    else:
        return None
    tables = list(folder.glob("*.parquet"))
    return (arrays[0], tables[0]) if len(arrays) == len(tables) == 1 else None


def read_words(source: Path) -> Iterator[Words]:
    """Yield the words of a file or of a pair of files in blocks. All vectors have the same width and are finite."""
    pair = find_pair(source)
    return _read_pair(*pair) if pair else _read_text(source)


def read_frequencies(file: Path) -> Counter[str]:
    """Read word counts from lines of a word and its count; counts of repeated words are added up."""
    counts: Counter[str] = Counter()
    with _opened(file) as stream:
        for number, line in _lines(stream, file):
            fields = line.rsplit(maxsplit=1)
            if len(fields) != 2 or not fields[1].isdigit():
                raise InputError(f"{file}, line {number}: {_cut(line)} is not a word and its count.")
            counts[_decoded(fields[0].strip(), number, file)] += int(fields[1])
    if not counts.total():
        raise InputError(f"{file} has no word counts.", hint="Each line must be a word and its count.")
    return counts


def _read_text(file: Path) -> Iterator[Words]:
    with _opened(file) as stream:
        lines = _lines(stream, file)
        first = next(lines, None)
        if first is None:
            raise InputError(f"{file} is empty.", hint=FORMAT)
        expected = _header(first[1])
        n_words, width = expected or (None, _width(first[1], file))
        remaining = lines if expected else chain([first], lines)
        n_read = 0
        while block := list(islice(remaining, LINES_AT_ONCE)):
            yield _parsed(block, width, file)
            n_read += len(block)
    if n_words is not None and n_read != n_words:
        raise InputError(
            f"{file} has {n_read:,} words, but its first line says {n_words:,}.", hint="Download the file again."
        )


def _parsed(lines: list[tuple[int, bytes]], width: int, file: Path) -> Words:
    split = [_split(line, width, number, file) for number, line in lines]
    numbers = _numbers(b" ".join(rest for _, rest in split))
    if numbers.size != len(lines) * width or not np.isfinite(numbers).all():
        _raise_bad_line(lines, split, width, file)
    words = [_decoded(word, number, file) for (number, _), (word, _) in zip(lines, split, strict=True)]
    return Words(words, numbers.reshape(len(lines), width))


def _numbers(text: bytes) -> Vectors:
    """Parse numbers; returns too few of them if the text contains anything else."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # from older versions of numpy
        try:
            return np.fromstring(text, dtype=np.float32, sep=" ")
        except ValueError:
            return np.zeros(0, dtype=np.float32)


def _split(line: bytes, width: int, number: int, file: Path) -> tuple[bytes, bytes]:
    """Split a line into the word and its numbers. The word may contain spaces, as some in GloVe do."""
    n_spaces = line.count(b" ")
    if n_spaces == width:
        word, _, rest = line.partition(b" ")
    else:
        fields = line.split()
        if len(fields) <= width:
            raise InputError(
                f"{file}, line {number}: {_cut(line)} has {len(fields) - 1} numbers, not {width}.", hint=FORMAT
            )
        word, rest = b" ".join(fields[:-width]), b" ".join(fields[-width:])
    if not word:
        raise InputError(f"{file}, line {number}: {_cut(line)} has no word.", hint=FORMAT)
    return word, rest


def _raise_bad_line(lines: list[tuple[int, bytes]], split: list[tuple[bytes, bytes]], width: int, file: Path) -> None:
    for (number, line), (_, rest) in zip(lines, split, strict=True):
        numbers = _numbers(rest)
        if numbers.size != width or not np.isfinite(numbers).all():
            raise InputError(f"{file}, line {number}: {_cut(line)} does not have {width} finite numbers.", hint=FORMAT)


def _header(line: bytes) -> tuple[int, int] | None:
    """The number of words and the width, if the line is a header; otherwise None."""
    fields = line.split()
    if len(fields) != 2 or not all(field.isdigit() for field in fields):
        return None
    n_words, width = int(fields[0]), int(fields[1])
    return (n_words, width) if width else None


def _width(line: bytes, file: Path) -> int:
    """The number of values after the word in the first line."""
    numbers = line.split()[1:]
    try:
        [float(number) for number in numbers]
    except ValueError:
        numbers = []
    if not numbers:
        raise InputError(f"{file}, line 1: {_cut(line)} is not a word and its numbers.", hint=FORMAT)
    return len(numbers)


def _lines(stream: IO[bytes], file: Path) -> Iterator[tuple[int, bytes]]:
    """Yield the number and content of each line. Empty lines are allowed only at the end."""
    n_empty = 0
    try:
        for number, raw in enumerate(iter(lambda: stream.readline(MAX_LINE), b""), 1):
            line = raw.rstrip(b" \t\r\n")
            if not line:
                n_empty = n_empty or number
                continue
            if n_empty:
                raise InputError(f"{file}, line {n_empty} is empty.", hint=FORMAT)
            if len(raw) == MAX_LINE:
                raise InputError(f"{file}, line {number} is longer than {MAX_LINE:,} bytes.", hint=FORMAT)
            yield number, line.replace(b"\t", b" ")
    except (OSError, EOFError, zlib.error) as error:
        raise InputError(f"{file} cannot be read: {error}.", hint="Check the file, or download it again.") from error


def _opened(file: Path) -> IO[bytes]:
    try:
        with file.open("rb") as stream:
            is_packed = stream.read(2) == GZIP
        return gzip.open(file) if is_packed else file.open("rb")  # type: ignore[return-value] # both read bytes
    except OSError as error:
        raise InputError(f"{file} cannot be read: {error.strerror or error}.", hint="Check the path.") from error


def _decoded(word: bytes, number: int, file: Path) -> str:
    try:
        return word.decode()
    except UnicodeDecodeError as error:
        raise InputError(
            f"{file}, line {number}: the word {_cut(word)} is not UTF-8.",
            hint="The binary format of word2vec is not supported.",
        ) from error


def _cut(line: bytes) -> str:
    shown = line[:40].decode(errors="replace")
    return repr(f"{shown}..." if len(line) > 40 else shown)


def _read_pair(array: Path, table: Path) -> Iterator[Words]:
    words = _column(table)
    try:
        vectors = np.load(array, mmap_mode="r", allow_pickle=False)
    except (OSError, ValueError, EOFError):
        vectors = mapped_vectors(array, hint="Save it with numpy.save.")  # raises the error
    if vectors.ndim != 2 or vectors.dtype.kind != "f" or len(vectors) != len(words):
        raise InputError(
            f"{array} has {vectors.dtype} of shape {vectors.shape}, but {table} has {len(words):,} words.",
            hint="Row i of the vectors must belong to word i.",
        )
    for first in range(0, len(words), LINES_AT_ONCE):
        part = np.ascontiguousarray(vectors[first : first + LINES_AT_ONCE], dtype=np.float32)
        bad = np.flatnonzero(~np.isfinite(part).all(axis=1))
        if bad.size:
            raise InputError(f"{array}, row {first + int(bad[0])} contains NaN or infinity.")
        yield Words(words[first : first + LINES_AT_ONCE], part)


def _column(table: Path) -> list[str]:
    """The words of a parquet file: its only text column."""
    pq = require("pyarrow.parquet", extra="tables", feature="Reading parquet")
    arrow = require("pyarrow", extra="tables", feature="Reading parquet")
    try:
        read = pq.read_table(table)
    except (OSError, arrow.ArrowException) as error:
        raise InputError(f"{table} cannot be read: {str(error).splitlines()[0]}.") from error
    texts = [
        name for name in read.column_names if read.schema.field(name).type in (arrow.string(), arrow.large_string())
    ]
    if len(texts) != 1:
        raise InputError(f"{table} has {len(texts)} text columns, but must have exactly one.")
    words: list[str] = read[texts[0]].to_pylist()
    bad = next((row for row, word in enumerate(words) if not word or "\n" in word), None)
    if bad is not None:
        raise InputError(f"{table}, row {bad} has no word: {words[bad]!r:.40}.")
    return words
