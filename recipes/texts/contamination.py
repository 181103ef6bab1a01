"""Remove texts that are used for evaluation, so that no model is trained on them.

Every table in the data folder counts as evaluation data, except the named training files. All text columns are read;
each cell counts as a whole and sentence by sentence.
"""

from __future__ import annotations

import csv
import gzip
from collections import Counter
from collections.abc import Collection, Iterable, Iterator
from pathlib import Path

from texts.cleaning import key_of
from twinvec.data.sentences import split_sentences
from twinvec.errors import InputError

__all__ = ["TRAINING_FILES", "clash", "evaluation_texts", "remove", "verify"]

TRAINING_FILES = frozenset(
    {"nli/snli-train", "nli/snli-train-100k", "nli/mnli-train", "nli/mnli-10k", "parallel/en-ko", "parallel/ko"}
)
NO_TEXT_COLUMNS = frozenset({"id", "label", "score", "subset", "genre", "source", "topic", "query", "doc", "grade"})
MIN_KEY = 8  # characters; a sentence with a shorter key ("Yes.", "I see.") within a longer text is not compared


def evaluation_texts(folder: Path, without: Collection[str] = ()) -> dict[str, str]:
    """The key of each evaluation text and sentence -> the first file that has it, as ``folder/name``.

    The files ``without`` do not count, like those for training.
    """
    files = sorted(folder.glob("*/*.tsv.gz"))
    if not files:
        raise InputError(f"{folder} contains no data sets.", hint="Pass the folder with the evaluation data.")
    owners: dict[str, str] = {}
    for file in files:
        name = f"{file.parent.name}/{file.name.removesuffix('.tsv.gz')}"
        if name not in TRAINING_FILES and name not in without:
            for cell in _cells(file):
                for key in _keys(cell):
                    owners.setdefault(key, name)
    return owners


def _cells(file: Path) -> Iterator[str]:
    with gzip.open(file, "rt", encoding="utf-8", newline="") as lines:
        for row in csv.DictReader(lines, delimiter="\t", quoting=csv.QUOTE_NONE):
            yield from (cell for column, cell in row.items() if column not in NO_TEXT_COLUMNS and cell)


def clash(text: str, owners: dict[str, str]) -> str | None:
    """The evaluation file that contains this text or one of its sentences, or None."""
    return next((owners[key] for key in _keys(text) if key in owners), None)


def _keys(text: str) -> Iterator[str]:
    """The key of a text as a whole, and those of its sentences that are not too short."""
    if whole := key_of(text):
        yield whole
    yield from (key for part in split_sentences(text) if len(key := key_of(part)) >= MIN_KEY)


def remove(texts: Iterable[str], owners: dict[str, str]) -> tuple[list[str], Counter[str]]:
    """The texts that are not in an evaluation file, in order, and the number removed for each evaluation file."""
    kept: list[str] = []
    lost: Counter[str] = Counter()
    for text in texts:
        if owner := clash(text, owners):
            lost[owner] += 1
        else:
            kept.append(text)
    return kept, lost


def verify(texts: Iterable[str], owners: dict[str, str]) -> None:
    """Fail if a text is in an evaluation file."""
    for text in texts:
        if owner := clash(text, owners):
            raise InputError(
                f"{text!r} is a text of {owner}. Nothing was written.", hint="This is a bug; please report it."
            )
