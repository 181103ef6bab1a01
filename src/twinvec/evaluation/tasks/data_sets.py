"""The known data sets: their files, and how to read the columns as a task."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TypeAlias, TypeVar

from twinvec.data.read import read_rows
from twinvec.data.table import Row
from twinvec.errors import InputError, RowError, UnknownNameError
from twinvec.evaluation.tasks.argument import GRADES, ArgumentTask
from twinvec.evaluation.tasks.clustering import ClusteringTask
from twinvec.evaluation.tasks.documents import READERS, read_documents
from twinvec.evaluation.tasks.pairs import PairTask
from twinvec.evaluation.tasks.paraphrases import BitextTask, ParaphraseTask
from twinvec.evaluation.tasks.probing import bigram_shift_task, sentence_length_task, word_content_task
from twinvec.evaluation.tasks.retrieval import RetrievalTask
from twinvec.evaluation.tasks.sts import RelatednessTask, StsTask
from twinvec.evaluation.tasks.transfer import TransferTask
from twinvec.evaluation.tasks.triplets import TripletTask, build_triplets

__all__ = ["KNOWN", "Task", "load_task"]

DOWNLOAD = "Download it with: twinvec data get. Set another data folder with TWINVEC_DATA."
BUILT = {"search/documents-": "Build it with: python recipes/documents.py FOLDER. Then pass --data FOLDER."}
MAY_BE_EMPTY = ("text", "text1", "text2", "title")  # an empty text is a text

Value = TypeVar("Value")


def data_file(folder: str | Path, name: str) -> Path:
    """The file of a data set, such as ``sts/sts12``, compressed or not."""
    for ending in (".tsv.gz", ".tsv"):
        path = Path(folder, name + ending)
        if path.is_file():
            return path
    hint = next((hint for start, hint in BUILT.items() if name.startswith(start)), DOWNLOAD)
    raise InputError(f"There is no file {Path(folder, name)}.tsv.gz.", hint=hint)


def read_data(folder: str | Path, name: str, *, columns: Sequence[str]) -> list[Row]:
    """All rows of a data set with some of its columns; only texts and titles may be empty."""
    rows = list(read_rows(data_file(folder, name), columns))
    for row in rows:
        for column, value in row.values.items():
            if value == "" and column not in MAY_BE_EMPTY:
                raise RowError(f"{row.where}: {column!r} is empty.", hint="Fill in the value or remove the row.")
    return rows


def text_in(rows: Sequence[Row], column: str) -> list[str]:
    """A column as strings.

    >>> text_in([Row("a.tsv, line 2", {"text": "Hello."}, 2)], "text")
    ['Hello.']
    """
    return [str(row.values[column]) for row in rows]


def numbers_in(rows: Sequence[Row], column: str, *, low: float, high: float) -> list[float]:
    """A column of numbers from ``low`` to ``high``.

    >>> numbers_in([Row("a.tsv, line 2", {"score": "4.5"}, 2)], "score", low=0, high=5)
    [4.5]
    """
    numbers = []
    for row in rows:
        try:
            number = float(str(row.values[column]))
        except ValueError:
            number = math.nan
        if not low <= number <= high:
            raise RowError(
                f"{row.where}: {column!r} is {row.values[column]!r}, not a number from {low:g} to {high:g}.",
                hint="Correct the value or remove the row.",
            )
        numbers.append(number)
    return numbers


def values_in(rows: Sequence[Row], column: str, *, known: Mapping[str, Value]) -> list[Value]:
    """A column of known values, each mapped by ``known``.

    >>> values_in([Row("a.tsv, line 2", {"label": "HS"}, 2)], "label", known={"HS": 2.0, "NS": 0.0})
    [2.0]
    """
    for row in rows:
        if row.values[column] not in known:
            raise RowError(
                f"{row.where}: {column!r} is {row.values[column]!r}, not one of {', '.join(known)}.",
                hint="Correct the value or remove the row.",
            )
    return [known[str(row.values[column])] for row in rows]


Task: TypeAlias = (
    StsTask
    | PairTask
    | TripletTask
    | TransferTask
    | RelatednessTask
    | ArgumentTask
    | RetrievalTask
    | ClusteringTask
    | BitextTask
    | ParaphraseTask
)

BINARY = {"0": "0", "1": "1"}
QUESTION_TYPES = {name: name for name in ("ABBR", "DESC", "ENTY", "HUM", "LOC", "NUM")}
ENTAILMENT = {name: name for name in ("contradiction", "entailment", "neutral")}
CORPORA = ("transfer/mr", "transfer/subj")  # source of the probing texts, short and long
DOCUMENTS = "documents"  # the folder of the documents from which triplets are built
CRANFIELD_GAINS = {"1": 4.0, "2": 3.0, "3": 2.0, "4": 1.0}  # Cranfield's code 1 is a complete answer, 4 the weakest
DOCUMENT_GAINS = {"1": 1.0}  # one relevant document for each query


def load_task(name: str, folder: str | Path) -> Task:
    """Read a known data set from a folder of data sets."""
    if name not in KNOWN:
        raise UnknownNameError("data set", name, KNOWN)
    return KNOWN[name](folder)


def _sts(folder: str | Path, *, name: str, files: Sequence[str], subset: str | None, low: float = 0) -> StsTask:
    columns = [subset, "score", "text1", "text2"] if subset else ["score", "text1", "text2"]
    rows = [row for file in files for row in read_data(folder, file, columns=columns)]
    return StsTask(
        name,
        left=text_in(rows, "text1"),
        right=text_in(rows, "text2"),
        gold=numbers_in(rows, "score", low=low, high=5),
        subsets=text_in(rows, subset) if subset else (),
    )


def _cross_sts(folder: str | Path) -> StsTask:
    """English texts of the STS benchmark with the Korean second texts of KorSTS, its translation row by row."""
    english, korean = (_sts(folder, name="korsts-cross", files=[file], subset="genre") for file in CROSS)
    if list(english.gold) != list(korean.gold):
        raise InputError(
            f"{Path(folder, CROSS[0])} and {CROSS[1]} are not the same pairs in the same order: their scores differ.",
            hint="Download both again: twinvec data get stsb korsts.",
        )
    return replace(english, right=korean.right)


def _tatoeba(folder: str | Path) -> BitextTask:
    rows = read_data(folder, "korean/tatoeba-ko-en", columns=["en", "ko"])
    return BitextTask("tatoeba-ko", text_in(rows, "en"), text_in(rows, "ko"), ("English", "Korean"))


def _parakqc(folder: str | Path) -> ParaphraseTask:
    rows = read_data(folder, "korean/parakqc", columns=["group", "text"])
    return ParaphraseTask("parakqc", text_in(rows, "text"), text_in(rows, "group"))


def _split_rows(folder: str | Path, files: dict[str, str], columns: Sequence[str]) -> tuple[list[Row], list[str]]:
    """The rows of several files, and the split of each row."""
    parts = {split: read_data(folder, file, columns=columns) for split, file in files.items()}
    rows = [row for part in parts.values() for row in part]
    return rows, [split for split, part in parts.items() for _ in part]


def _transfer(folder: str | Path, *, name: str, files: dict[str, str], known: dict[str, str]) -> TransferTask:
    rows, splits = _split_rows(folder, files, ["label", "text"])
    labels = values_in(rows, "label", known=known)
    return TransferTask(name, text_in(rows, "text"), labels, splits=splits if len(files) > 1 else ())


def _paired_transfer(
    folder: str | Path, *, name: str, files: dict[str, str], known: dict[str, str], positive: str | None
) -> TransferTask:
    rows, splits = _split_rows(folder, files, ["label", "text1", "text2"])
    labels, others = values_in(rows, "label", known=known), text_in(rows, "text2")
    return TransferTask(name, text_in(rows, "text1"), labels, others=others, splits=splits, positive=positive)


def _relatedness(folder: str | Path, *, name: str, files: dict[str, str], bounds: tuple[int, int]) -> RelatednessTask:
    rows, splits = _split_rows(folder, files, ["score", "text1", "text2"])
    gold = numbers_in(rows, "score", low=bounds[0], high=bounds[1])
    return RelatednessTask(name, text_in(rows, "text1"), text_in(rows, "text2"), gold, splits, bounds)


def _mrpc_pairs(folder: str | Path) -> PairTask:
    rows = read_data(folder, "transfer/mrpc-test", columns=["label", "text1", "text2"])
    marks = values_in(rows, "label", known={"0": 0, "1": 1})
    return PairTask("mrpc-pairs", text_in(rows, "text1"), text_in(rows, "text2"), marks)


def _argument(folder: str | Path) -> ArgumentTask:
    rows = read_data(folder, "argument/ukp-aspect", columns=["topic", "label", "text1", "text2"])
    grades = values_in(rows, "label", known=GRADES)
    return ArgumentTask("argument", text_in(rows, "text1"), text_in(rows, "text2"), grades, text_in(rows, "topic"))


def _trec_clusters(folder: str | Path) -> ClusteringTask:
    rows, _ = _split_rows(folder, TREC, ["label", "text"])
    return ClusteringTask("trec-clusters", text_in(rows, "text"), values_in(rows, "label", known=QUESTION_TYPES))


def _retrieval(folder: str | Path, *, name: str, files: str, gains: Mapping[str, float]) -> RetrievalTask:
    documents = read_data(folder, f"{files}-docs", columns=["id", "text"])
    queries = read_data(folder, f"{files}-queries", columns=["id", "text"])
    grades = read_data(folder, f"{files}-qrels", columns=["query", "doc", "grade"])
    relevant: dict[str, dict[str, float]] = {}
    for row, gain in zip(grades, values_in(grades, "grade", known=gains), strict=True):
        relevant.setdefault(str(row.values["query"]), {})[str(row.values["doc"])] = gain
    return RetrievalTask(name, _by_id(queries), _by_id(documents), relevant)


def _probing(folder: str | Path, *, make: Callable[[Sequence[str]], TransferTask]) -> TransferTask:
    return make([text for name in CORPORA for text in text_in(read_data(folder, name, columns=["text"]), "text")])


def _sections(folder: str | Path) -> TripletTask:
    path = Path(folder, DOCUMENTS)
    endings = tuple(ending + packed for ending in READERS for packed in ("", ".gz", ".bz2"))
    files = sorted(file for file in path.glob("*") if file.name.lower().endswith(endings)) if path.is_dir() else []
    if not files:
        raise InputError(f"There are no documents in {path}.", hint=f"Add files with sections: {', '.join(READERS)}.")
    return build_triplets(document for file in files for document in read_documents(file))


def _by_id(rows: Sequence[Row]) -> dict[str, str]:
    texts: dict[str, str] = {}
    for row in rows:
        key = str(row.values["id"])
        if key in texts:
            raise InputError(f"{row.where}: duplicate id {key!r}.", hint="Give each row its own id.")
        texts[key] = str(row.values["text"])
    return texts


SICK = {"train": "sts/sick-train", "dev": "sts/sick-trial", "test": "sts/sick-test"}
STSB = {split: f"sts/stsb-{split}" for split in ("train", "dev", "test")}
CROSS = STSB["test"], "korean/korsts-test"
SST2 = {split: f"transfer/sst2-{split}" for split in ("train", "dev", "test")}
TREC = {split: f"transfer/trec-{split}" for split in ("train", "test")}
MRPC = {split: f"transfer/mrpc-{split}" for split in ("train", "test")}

KNOWN: dict[str, Callable[[str | Path], Task]] = {
    **{
        f"sts{year}": partial(_sts, name=f"sts{year}", files=[f"sts/sts{year}"], subset="subset")
        for year in range(12, 17)
    },
    "stsb": partial(_sts, name="stsb", files=[STSB["test"]], subset="genre"),
    "stsb-dev": partial(_sts, name="stsb-dev", files=[STSB["dev"]], subset="genre"),
    "sick-r": partial(_sts, name="sick-r", files=list(SICK.values()), subset=None, low=1),
    "sick-r-test": partial(_sts, name="sick-r-test", files=[SICK["test"]], subset=None, low=1),
    "korsts": partial(_sts, name="korsts", files=["korean/korsts-test"], subset="genre"),
    "klue-sts": partial(_sts, name="klue-sts", files=["korean/klue-sts-dev"], subset="source"),
    "korsts-cross": _cross_sts,
    "tatoeba-ko": _tatoeba,
    "parakqc": _parakqc,
    "stsb-trained": partial(_relatedness, name="stsb-trained", files=STSB, bounds=(0, 5)),
    "sick-r-trained": partial(_relatedness, name="sick-r-trained", files=SICK, bounds=(1, 5)),
    **{
        name: partial(_transfer, name=name, files={"all": f"transfer/{name}"}, known=BINARY)
        for name in ("mr", "cr", "subj", "mpqa")
    },
    "sst2": partial(_transfer, name="sst2", files=SST2, known=BINARY),
    "trec": partial(_transfer, name="trec", files=TREC, known=QUESTION_TYPES),
    "mrpc": partial(_paired_transfer, name="mrpc", files=MRPC, known=BINARY, positive="1"),
    "sick-e": partial(_paired_transfer, name="sick-e", files=SICK, known=ENTAILMENT, positive=None),
    "mrpc-pairs": _mrpc_pairs,
    "argument": _argument,
    "trec-clusters": _trec_clusters,
    "cranfield": partial(_retrieval, name="cranfield", files="search/cranfield", gains=CRANFIELD_GAINS),
    # In no group: its files are not downloaded but built, so a group with it would fail where they are missing.
    "documents-retrieval": partial(
        _retrieval, name="documents-retrieval", files="search/documents", gains=DOCUMENT_GAINS
    ),
    "sentence-length": partial(_probing, make=sentence_length_task),
    "word-content": partial(_probing, make=word_content_task),
    "bigram-shift": partial(_probing, make=bigram_shift_task),
    "sections": _sections,
}
