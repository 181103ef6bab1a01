"""Write the texts as a gzipped table, whose bytes depend only on its content, and a record of the sources.

Scripts that choose texts from such a table for training read it here, and write them.
"""

from __future__ import annotations

import gzip
import hashlib
import json
import sys
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path

from texts.cleaning import LONG_WORDS
from texts.gathering import Gathered
from twinvec.files import new_file

__all__ = ["Rows", "derive", "write"]

Rows = Sequence[tuple[str, str]]  # source and text


def write(gathered: Sequence[Gathered], out: Path) -> None:
    """Write ``out`` (source, text) and the record of the sources next to it."""
    lines = [f"{each.source.name}\t{text}\n" for each in gathered for text in each.texts]
    content = ("source\ttext\n" + "".join(lines)).encode()
    out.parent.mkdir(parents=True, exist_ok=True)
    _write_packed(out, content)
    note = json.dumps(record(gathered, content), indent=2) + "\n"
    with new_file(record_path(out), replace=True) as raw:
        raw.write(note.encode())


def _write_packed(out: Path, content: bytes) -> None:
    with new_file(out, replace=True) as raw, gzip.GzipFile(fileobj=raw, mode="wb", filename="", mtime=0) as file:
        file.write(content)


def record_path(out: Path) -> Path:
    """The path of the record of ``out``: ``texts.tsv.gz`` -> ``texts.sources.json``."""
    return out.with_name(out.name.removesuffix(".gz").removesuffix(".tsv") + ".sources.json")


def record(gathered: Sequence[Gathered], content: bytes) -> dict[str, object]:
    """The number of texts of each source, its license, and the number of removed evaluation texts."""
    removed: Counter[str] = sum((each.removed for each in gathered), Counter())
    return {
        "texts": sum(len(each.texts) for each in gathered),
        "sha256": hashlib.sha256(content).hexdigest(),
        "removed": removed.total(),
        "removed_by_file": dict(sorted(removed.items())),
        "sources": [_source_record(each) for each in gathered],
    }


def _source_record(each: Gathered) -> dict[str, object]:
    package = each.source.package
    return {
        "name": each.source.name,
        "kind": each.source.kind,
        "registry": package.registry,
        "package": package.name,
        "version": package.version,
        "licence": package.license,
        "texts": len(each.texts),
        "long_texts": sum(len(text.split()) >= LONG_WORDS for text in each.texts),
        "words": sum(len(text.split()) for text in each.texts),
        "removed": each.removed.total(),
    }


def derive(usage: str | None, choose: Callable[[Rows], Mapping[str, Collection[str]]]) -> None:
    """The main function of a script: read the table that its argument names, and write files of texts beside it."""
    if len(sys.argv) != 2 or not sys.argv[1].endswith(".tsv.gz"):
        sys.exit(usage)
    path = Path(sys.argv[1])
    if not path.is_file():
        sys.exit(f"{path} is missing. Write it with recipes/gather.py. Nothing was written.")
    lines = gzip.decompress(path.read_bytes()).decode("utf-8").splitlines()[1:]
    rows = [(source, text) for source, _, text in (line.partition("\t") for line in lines)]
    for name, texts in choose(rows).items():
        out = path.with_name(f"{name}.tsv.gz")
        _write_packed(out, "".join(f"{text}\n" for text in ("text", *texts)).encode())
        print(f"{out}: {len(texts):,} texts")
