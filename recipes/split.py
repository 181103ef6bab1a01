"""Split the collected texts: one part for both teachers, of which the larger is slow, and the rest for the first one.

    python recipes/split.py recipes/texts.tsv.gz

Writes texts.both.tsv.gz and texts.one.tsv.gz to the same folder. The digest of a text decides, so that a text always
gets into the same part, whatever the other texts are.
"""

from __future__ import annotations

import gzip
import hashlib
import sys
from pathlib import Path

ONE_IN = 3  # of the short texts
MOST_WORDS = 40  # longer texts take the larger teacher too long


def split(path: Path) -> None:
    """Write each row of a file to one of two files, in order."""
    head, *rows = gzip.decompress(path.read_bytes()).decode("utf-8").splitlines(keepends=True)
    both = [is_for_both(row.rstrip("\n").partition("\t")[2]) for row in rows]
    for name, wanted in (("both", True), ("one", False)):
        chosen = [row for row, is_both in zip(rows, both, strict=True) if is_both is wanted]
        out = path.with_name(path.name.replace(".tsv.gz", f".{name}.tsv.gz"))
        out.write_bytes(gzip.compress("".join([head, *chosen]).encode("utf-8"), mtime=0))
        print(f"{out}: {len(chosen):,} texts")


def is_for_both(text: str) -> bool:
    """Whether the text is for both teachers.

    >>> is_for_both("A man plays a guitar."), is_for_both("A dog runs on the beach.")
    (False, True)
    """
    number = int.from_bytes(hashlib.sha256(text.encode("utf-8")).digest()[:8], "big")
    return number % ONE_IN == 0 and len(text.split()) <= MOST_WORDS


if __name__ == "__main__":
    if len(sys.argv) != 2 or not sys.argv[1].endswith(".tsv.gz"):
        sys.exit(__doc__)
    split(Path(sys.argv[1]))
