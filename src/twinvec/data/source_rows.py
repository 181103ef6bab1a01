"""Parse the original files of public data sets into tables, with one function per file format.

Each takes the downloaded files and yields tables. Archives are not extracted to disk.
"""

from __future__ import annotations

import io
import json
import re
import tarfile
import zipfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from twinvec.errors import InputError

__all__ = [
    "RawTable",
    "Reader",
    "read_cranfield",
    "read_klue_sts",
    "read_kornli",
    "read_korsts",
    "read_mrpc",
    "read_nli",
    "read_parakqc",
    "read_reviews",
    "read_sick",
    "read_sst2",
    "read_sts_year",
    "read_stsb",
    "read_tatoeba",
    "read_trec",
]


class RawTable(NamedTuple):
    """A table for the data folder: its path (without extension), columns and rows."""

    path: str
    columns: tuple[str, ...]
    rows: Iterable[Sequence[str]]


Reader = Callable[[Sequence[Path]], Iterator[RawTable]]

NLI = "label", "premise", "hypothesis"
SCORED = "score", "text1", "text2"
# folder, negative file, positive file; for subj, "positive" means subjective
REVIEWS = {
    "mr": ("rt10662", "rt-polarity.neg", "rt-polarity.pos"),
    "cr": ("customerr", "custrev.neg", "custrev.pos"),
    "subj": ("subj", "subj.objective", "subj.subjective"),
    "mpqa": ("mpqa", "mpqa.neg", "mpqa.pos"),
}


def read_nli(stem: str, splits: dict[str, str]) -> Reader:
    """A reader of SNLI or MultiNLI: a zip with ``<stem>/<stem>_<split>.jsonl``, stored as the names in ``splits``."""

    def tables(files: Sequence[Path]) -> Iterator[RawTable]:
        for split, path in splits.items():
            text = _zipped(files[0], f"{stem}_{split}.jsonl")
            items = (json.loads(line) for line in _lines(text))
            rows = ((item["gold_label"], item["sentence1"], item["sentence2"]) for item in items)
            yield RawTable(f"nli/{path}", NLI, (row for row in rows if row[0] != "-"))

    return tables


def read_sts_year(name: str) -> Reader:
    """A reader of one SemEval year: a zip with ``STS.input.<subset>.txt`` and ``STS.gs.<subset>.txt``."""

    def tables(files: Sequence[Path]) -> Iterator[RawTable]:
        with zipfile.ZipFile(files[0]) as archive:
            names = [each for each in archive.namelist() if "__MACOSX" not in each]
        pattern = re.compile(r"STS\d*\.input\.(.+)\.txt$")
        found = {match[1]: each for each in names if (match := pattern.search(each))}
        subsets = {subset: found[subset] for subset in sorted(found) if subset != "ALL"}
        yield RawTable(f"sts/{name}", ("subset", *SCORED), _year_rows(files[0], subsets))

    return tables


def _year_rows(archive: Path, subsets: dict[str, str]) -> Iterator[Sequence[str]]:
    for subset, member in subsets.items():
        texts = _lines(_zipped(archive, member), keep_empty=True)
        gold = _lines(_zipped(archive, member.replace(".input.", ".gs.")), keep_empty=True)
        if len(texts) != len(gold):
            raise InputError(f"{archive.name}: {subset} has {len(texts)} pairs, but {len(gold)} scores.")
        for pair, score in zip(texts, gold, strict=True):
            if score.strip():  # pairs without a score have an empty line
                yield (subset, score.strip(), *pair.split("\t")[:2])


def read_stsb(files: Sequence[Path]) -> Iterator[RawTable]:
    """STS benchmark: a tar with three files of genre, file, year, id, score, text, text; no header, no quotes."""
    for split in ("train", "dev", "test"):
        cells = (line.split("\t") for line in _lines(_tarred(files[0], f"sts-{split}.csv")))
        rows = ((row[0], row[4], row[5], row[6]) for row in cells)
        yield RawTable(f"sts/stsb-{split}", ("genre", *SCORED), rows)


def read_korsts(files: Sequence[Path]) -> Iterator[RawTable]:
    """KorSTS: as STSb, with a header, one file per split."""
    for split, file in zip(("train", "dev", "test"), files, strict=True):
        cells = [line.split("\t") for line in _lines(_text(file.read_bytes()))[1:]]
        yield RawTable(f"korean/korsts-{split}", ("genre", *SCORED), ((r[0], r[4], r[5], r[6]) for r in cells))


def read_kornli(files: Sequence[Path]) -> Iterator[RawTable]:
    """XNLI in Korean: sentence1, sentence2, gold_label, with a header."""
    for split, file in zip(("dev", "test"), files, strict=True):
        cells = [line.split("\t") for line in _lines(_text(file.read_bytes()))[1:]]
        yield RawTable(f"korean/kornli-{split}", NLI, ((row[2], row[0], row[1]) for row in cells))


def read_klue_sts(files: Sequence[Path]) -> Iterator[RawTable]:
    """KLUE STS: a JSON list; the score is the unrounded mean."""
    items = json.loads(_text(files[0].read_bytes()))
    rows = ((item["source"], str(item["labels"]["real-label"]), item["sentence1"], item["sentence2"]) for item in items)
    yield RawTable("korean/klue-sts-dev", ("source", *SCORED), rows)


def read_tatoeba(files: Sequence[Path]) -> Iterator[RawTable]:
    """Tatoeba's sentences: one file per language, English first, parallel by line."""
    english, korean = (_lines(_text(file.read_bytes())) for file in files)
    yield RawTable("korean/tatoeba-ko-en", ("en", "ko"), zip(english, korean, strict=True))


def read_parakqc(files: Sequence[Path]) -> Iterator[RawTable]:
    """ParaKQC: topic, kind, text; ten lines in a row are paraphrases."""
    texts = (line.split("\t")[2] for line in _lines(_text(files[0].read_bytes())))
    yield RawTable("korean/parakqc", ("group", "text"), ((str(i // 10), text) for i, text in enumerate(texts)))


def read_sick(files: Sequence[Path]) -> Iterator[RawTable]:
    """SICK: one table with a header; the last column names the split."""
    head, *lines = (line.split("\t") for line in _lines(_zipped(files[0], "SICK.txt")))
    indices = [head.index(c) for c in ("entailment_label", "relatedness_score", "sentence_A", "sentence_B")]
    split_index = head.index("SemEval_set")
    for split in ("train", "trial", "test"):
        chosen = [line for line in lines if line[split_index].strip().lower() == split]
        rows = [(line[indices[0]].lower(), *(line[index] for index in indices[1:])) for line in chosen]
        yield RawTable(f"sts/sick-{split}", ("label", *SCORED), rows)


def read_trec(files: Sequence[Path]) -> Iterator[RawTable]:
    """TREC questions: "DESC:manner How did ...", in Latin-1; the label is the coarse one."""
    for split, file in zip(("train", "test"), files, strict=True):
        lines = _lines(_text(file.read_bytes(), "latin-1"))
        rows = ((line.partition(":")[0], line.partition(" ")[2]) for line in lines)
        yield RawTable(f"transfer/trec-{split}", ("label", "text"), rows)


def read_mrpc(files: Sequence[Path]) -> Iterator[RawTable]:
    """MSR paraphrases: quality, two ids, two texts; a header, no quotes."""
    for split, file in zip(("train", "test"), files, strict=True):
        cells = [line.split("\t") for line in _lines(_text(file.read_bytes()))[1:]]
        rows = ((row[0], row[3], row[4]) for row in cells)
        yield RawTable(f"transfer/mrpc-{split}", ("label", "text1", "text2"), rows)


def read_sst2(files: Sequence[Path]) -> Iterator[RawTable]:
    """SST-2 in the version of SentEval: text, tab, label."""
    for split, file in zip(("train", "dev", "test"), files, strict=True):
        cells = [line.rpartition("\t") for line in _lines(_text(file.read_bytes()))]
        yield RawTable(f"transfer/sst2-{split}", ("label", "text"), ((label, text) for text, _, label in cells))


def read_reviews(files: Sequence[Path]) -> Iterator[RawTable]:
    """MR, CR, SUBJ and MPQA: a zip with one file of lines per class."""
    for name, (folder, negative, positive) in REVIEWS.items():
        rows = [
            (str(label), line)
            for label, member in enumerate((negative, positive))
            for line in _lines(_zipped(files[0], f"{folder}/{member}", encoding="cp1252"))
        ]
        yield RawTable(f"transfer/{name}", ("label", "text"), rows)


def read_cranfield(files: Sequence[Path]) -> Iterator[RawTable]:
    """Cranfield in the SMART format (.I .T .A .B .W). Query ids are positions, as in the relevance judgments."""
    documents = _smart(_tarred(files[0], "cran.all.1400"))
    rows = ((each["I"], each.get("T", ""), each.get("W", "")) for each in documents)
    yield RawTable("search/cranfield-docs", ("id", "title", "text"), rows)
    queries = _smart(_tarred(files[0], "cran.qry"))
    texts = ((str(number), each.get("W", "")) for number, each in enumerate(queries, start=1))
    yield RawTable("search/cranfield-queries", ("id", "text"), texts)
    judged = (line.split()[:3] for line in _lines(_tarred(files[0], "cranqrel")))
    # -1 marks one document per query and counts as 1, the most relevant grade
    grades = ((query, document, "1" if grade == "-1" else grade) for query, document, grade in judged)
    yield RawTable("search/cranfield-qrels", ("query", "doc", "grade"), grades)


def _smart(text: str) -> Iterator[dict[str, str]]:
    """The records of a file in the SMART format, as fields."""
    for record in re.split(r"^\.I ", text, flags=re.MULTILINE)[1:]:
        number, _, rest = record.partition("\n")
        parts = re.split(r"^\.([A-Z])[ \t]*\n", rest, flags=re.MULTILINE)
        yield {"I": number.strip(), **dict(zip(parts[1::2], parts[2::2], strict=True))}


def _lines(text: str, *, keep_empty: bool = False) -> list[str]:
    """Split at line feeds only: texts may contain the other characters at which ``splitlines`` breaks."""
    lines = [line.removesuffix("\r") for line in text.split("\n")]
    if keep_empty:
        return lines[:-1] if not lines[-1] else lines
    return [line for line in lines if line.strip()]


def _text(content: bytes, encoding: str = "utf-8-sig") -> str:
    return content.decode(encoding, errors="replace")


def _zipped(file: Path, ending: str, *, encoding: str = "utf-8-sig") -> str:
    with zipfile.ZipFile(file) as archive:
        for name in archive.namelist():
            if name.endswith(ending) and "__MACOSX" not in name:
                return _text(archive.read(name), encoding)
    raise _no_member(file, ending)


def _tarred(file: Path, ending: str) -> str:
    with tarfile.open(file) as archive:
        for member in archive:
            if member.isfile() and member.name.endswith(ending):
                return _text((archive.extractfile(member) or io.BytesIO()).read())
    raise _no_member(file, ending)


def _no_member(file: Path, ending: str) -> InputError:
    return InputError(f"{file.name} has no file {ending}.", hint="The archive is not the expected one.")
