"""Divide the gathered texts: a part for two teachers, of which the larger is slow, and the rest for the first alone.

    python recipes/split.py recipes/texts.tsv.gz

Writes texts.both.tsv.gz and texts.one.tsv.gz beside it. A text's own digest decides, so that the same text always
falls on the same side, whatever else was gathered.
"""

from __future__ import annotations

import gzip
import hashlib
import sys
from pathlib import Path

ONE_IN = 3  # of the texts that are short enough
MOST_WORDS = 40  # longer ones take the larger teacher too long


def split(path: Path) -> None:
    """Write each row of a gathered file to one of two files, in its order."""
    head, *rows = gzip.decompress(path.read_bytes()).decode("utf-8").splitlines(keepends=True)
    both = [is_for_both(row.rstrip("\n").partition("\t")[2]) for row in rows]
    for name, wanted in (("both", True), ("one", False)):
        chosen = [row for row, is_both in zip(rows, both, strict=True) if is_both is wanted]
        out = path.with_name(path.name.replace(".tsv.gz", f".{name}.tsv.gz"))
        out.write_bytes(gzip.compress("".join([head, *chosen]).encode("utf-8"), mtime=0))
        print(f"{out}: {len(chosen):,} texts")


def is_for_both(text: str) -> bool:
    """Whether the slower teacher is asked too.

    >>> is_for_both("A man plays a guitar."), is_for_both("A dog runs on the beach.")
    (False, True)
    """
    drawn = int.from_bytes(hashlib.sha256(text.encode("utf-8")).digest()[:8], "big")
    return drawn % ONE_IN == 0 and len(text.split()) <= MOST_WORDS


if __name__ == "__main__":
    if len(sys.argv) != 2 or not sys.argv[1].endswith(".tsv.gz"):
        sys.exit(__doc__)
    split(Path(sys.argv[1]))
