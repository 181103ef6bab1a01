"""Split the collected texts: one part for both teachers, of which the larger is slow, and the rest for the first one.

    python recipes/split.py recipes/texts.tsv.gz [ONE_IN MOST_WORDS LONG_ONE_IN]

Writes texts.both.tsv.gz and texts.one.tsv.gz to the same folder. Both teachers get one in ONE_IN (3) of the texts with
at most MOST_WORDS (40) words. Of the texts with 60 or more words, one in LONG_ONE_IN (1) is kept: a batch of them takes
as long as ten others. The digest of a text decides, so that a text always gets into the same part, whatever the other
texts are.
"""

from __future__ import annotations

import gzip
import hashlib
import sys
from pathlib import Path

ONE_IN, MOST_WORDS, LONG_ONE_IN = 3, 40, 1
LONG_WORDS = 60


def split(path: Path, one_in: int = ONE_IN, most_words: int = MOST_WORDS, long_one_in: int = LONG_ONE_IN) -> None:
    """Write the rows of a file to two files, in order."""
    head, *rows = gzip.decompress(path.read_bytes()).decode("utf-8").splitlines(keepends=True)
    rows = [row for row in rows if is_kept(text_of(row), long_one_in)]
    both = [is_for_both(text_of(row), one_in, most_words) for row in rows]
    for name, wanted in (("both", True), ("one", False)):
        chosen = [row for row, is_both in zip(rows, both, strict=True) if is_both is wanted]
        out = path.with_name(path.name.replace(".tsv.gz", f".{name}.tsv.gz"))
        out.write_bytes(gzip.compress("".join([head, *chosen]).encode("utf-8"), mtime=0))
        print(f"{out}: {len(chosen):,} texts")


def text_of(row: str) -> str:
    """The text of a row."""
    return row.rstrip("\n").partition("\t")[2]


def number_of(text: str) -> int:
    """A number that depends on the text alone."""
    return int.from_bytes(hashlib.sha256(text.encode("utf-8")).digest()[:8], "big")


def is_kept(text: str, long_one_in: int) -> bool:
    """Whether the text is in one of the parts.

    >>> is_kept("A man plays a guitar.", 3), is_kept("A dog runs on the beach. " * 10, 3)
    (True, False)
    """
    return len(text.split()) < LONG_WORDS or number_of(text) % long_one_in == 0


def is_for_both(text: str, one_in: int = ONE_IN, most_words: int = MOST_WORDS) -> bool:
    """Whether the text is for both teachers.

    >>> is_for_both("A man plays a guitar."), is_for_both("A dog runs on the beach.")
    (False, True)
    """
    return number_of(text) % one_in == 0 and len(text.split()) <= most_words


if __name__ == "__main__":
    if len(sys.argv) not in (2, 5) or not sys.argv[1].endswith(".tsv.gz"):
        sys.exit(__doc__)
    split(Path(sys.argv[1]), *map(int, sys.argv[2:]))
