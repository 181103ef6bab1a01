"""Texts for the bilingual model: everyday English, English-Korean pairs, and Korean without translation.

No text of an evaluation file is among them. Which texts are taken is decided by their digests, so that the choice
does not depend on the order of the files.
"""

from __future__ import annotations

import csv
import gzip
import hashlib
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from texts.contamination import clash, evaluation_texts
from texts.written import PAIRS, TEXTS
from twinvec.model.tokenizer import read_sentencepiece

__all__ = ["EVERYDAY", "TRAIN_PART", "Pair", "Texts", "collect", "common_pieces", "read_rows"]

WRITTEN = Path(__file__).parents[1] / "written"  # texts written for this project
OURS_ENGLISH, OURS = (tuple(f"ours-{name}" for name in names) for names in (TEXTS, PAIRS))
EVERYDAY = ("tatoeba", "cataclysm", "stsb-train", *OURS)  # sources of everyday language, which are taken whole
MOST = {"cataclysm": 5_000}  # lines of a game, which are of few topics
OTHER_PAIRS = 4_000  # of each technical source, at most
KOREAN = {"chatbot": 8_000, "stylekqc": 10_000, "nsmc": 10_000, "assembly-bills": 6_000}
PREMISES = {"nli/snli-train-100k": 4_500, "nli/mnli-10k": 1_500}  # each with its hypotheses
LEAST_COUNT = 3  # of a piece in all texts of both languages; rarer ones are read in smaller pieces
TEXTS_PER_BLOCK = 4096
MAX_OTHER_WORDS = 24
MAX_WORDS = 40  # of an English text; the teachers are slow on longer ones
# The train part of the STS benchmark in both languages, row by row parallel. Its sentences are used without scores.
TRAIN_PART = "stsb-train"
TRAIN_FILES = "sts/stsb-train", "korean/korsts-train"
UNSCORED = frozenset(TRAIN_FILES)
# Most of these sentences come from STS 2012 to 2016, which therefore are not unseen by the model.
SEEN = UNSCORED | {f"sts/sts{year}" for year in range(12, 17)}


@dataclass(frozen=True, slots=True)
class Pair:
    """An English sentence and its Korean translation."""

    source: str
    english: str
    korean: str


@dataclass(frozen=True, slots=True)
class Texts:
    """The texts of a training. ``removed`` counts those that occur in an evaluation file, by source and file.

    ``pairs`` are of everyday language, ``others`` technical or old.
    """

    english: Mapping[str, str]  # text -> source
    pairs: tuple[Pair, ...]
    others: tuple[Pair, ...]
    korean: Mapping[str, str]  # text -> source
    removed: Mapping[str, int]

    def counts(self) -> dict[str, int]:
        """The number of texts or pairs of each source."""
        pairs, others = (Counter(pair.source for pair in part) for part in (self.pairs, self.others))
        english, korean = Counter(self.english.values()), Counter(self.korean.values())
        return {name: found[name] for found in (english, pairs, others, korean) for name in sorted(found)}


def collect(data: Path) -> Texts:
    """Choose the texts from the data folder, and remove those of evaluation files."""
    owners, owners_of_train = evaluation_texts(data, UNSCORED), evaluation_texts(data, SEEN)
    removed: Counter[str] = Counter()

    def is_free(source: str, *texts: str) -> bool:
        known = owners_of_train if source == TRAIN_PART else owners
        owner = next((found for text in texts if (found := clash(text, known))), None)
        if owner is not None:
            removed[f"{source}: {owner}"] += 1
        return owner is None

    english = {text: source for source, text in _english(data) if is_free(source, text)}
    pairs = [pair for pair in _pairs(data) if is_free(pair.source, pair.english, pair.korean)]
    korean = {text: source for source, text in _korean(data) if is_free(source, text)}
    in_pairs = {pair.english for pair in pairs}
    return Texts(
        english={text: source for text, source in english.items() if text not in in_pairs},
        pairs=tuple(pair for pair in pairs if pair.source in EVERYDAY),
        others=tuple(pair for pair in pairs if pair.source not in EVERYDAY),
        korean=korean,
        removed=dict(sorted(removed.items())),
    )


def common_pieces(source: Path, data: Path) -> list[str]:
    """The pieces of the encoder that occur at least so many times in the training files."""
    fast, counts = read_sentencepiece(source / "sp.model"), Counter[int]()
    texts = iter(dict.fromkeys(_all_texts(data)))
    while block := list(islice(texts, TEXTS_PER_BLOCK)):
        for found in fast.encode_batch_fast(block, add_special_tokens=False):
            counts.update(found.ids)
    return [fast.id_to_token(index) for index, count in sorted(counts.items()) if count >= LEAST_COUNT]


def _all_texts(data: Path) -> Iterator[str]:
    """The whole parallel text, the NLI sentences, and the Korean sentences."""
    for row in read_rows(data, "parallel/en-ko"):
        yield from (row["en"], row["ko"])
    for row in read_rows(data, "parallel/ko"):
        yield row["text"]
    for source in (*OURS_ENGLISH, *OURS):
        for row in _written(source):
            yield from row.values()
    for name in PREMISES:
        for row in read_rows(data, name):
            yield from (row["premise"], row["hypothesis"])


def _english(data: Path) -> Iterator[tuple[str, str]]:
    """Source and text of English without translation."""
    for name, most in PREMISES.items():
        yield from (("SNLI and MultiNLI", text) for text in _nli(data, name, most))
    for source in OURS_ENGLISH:
        yield from ((source, row["text"]) for row in _written(source) if len(row["text"].split()) <= MAX_WORDS)


def _nli(data: Path, name: str, most: int) -> list[str]:
    """Some premises, each followed by its hypotheses, so that there are texts of similar meaning."""
    groups: dict[str, list[str]] = {}
    for row in read_rows(data, name):
        groups.setdefault(row["premise"], [row["premise"]]).append(row["hypothesis"])
    chosen = sorted(groups, key=_number)[:most]
    return [text for premise in chosen for text in groups[premise] if len(text.split()) <= MAX_WORDS]


def _pairs(data: Path) -> list[Pair]:
    by_source: dict[str, list[Pair]] = {}
    parallel = (Pair(row["source"], row["en"], row["ko"]) for row in read_rows(data, "parallel/en-ko"))
    for pair in (*parallel, *_train_part(data), *_ours()):
        if len(pair.english.split()) <= (MAX_WORDS if pair.source in EVERYDAY else MAX_OTHER_WORDS):
            by_source.setdefault(pair.source, []).append(pair)
    chosen: list[Pair] = []
    for source, found in sorted(by_source.items()):
        pairs = list({pair.english: pair for pair in found}.values()) if source == TRAIN_PART else found
        most = MOST.get(source, len(pairs) if source in EVERYDAY else OTHER_PAIRS)
        chosen += sorted(pairs, key=lambda pair: _number(pair.english))[:most]
    return chosen


def _ours() -> Iterator[Pair]:
    for source in OURS:
        yield from (Pair(source, row["english"], row["korean"]) for row in _written(source))


def _written(source: str) -> Iterator[dict[str, str]]:
    with (WRITTEN / f"{source.removeprefix('ours-')}.tsv").open(encoding="utf-8", newline="") as lines:
        yield from csv.DictReader(lines, delimiter="\t", quoting=csv.QUOTE_NONE)


def _train_part(data: Path) -> Iterator[Pair]:
    english, korean = (read_rows(data, name) for name in TRAIN_FILES)
    for left, right in zip(english, korean, strict=True):
        yield from (Pair(TRAIN_PART, left[column], right[column]) for column in ("text1", "text2"))


def _korean(data: Path) -> list[tuple[str, str]]:
    by_source: dict[str, list[str]] = {source: [] for source in KOREAN}
    for row in read_rows(data, "parallel/ko"):
        by_source[row["source"]].append(row["text"])
    return [(source, text) for source, most in KOREAN.items() for text in sorted(by_source[source], key=_number)[:most]]


def _number(text: str) -> int:
    return int.from_bytes(hashlib.sha256(text.encode("utf-8")).digest()[:8], "big")


def read_rows(data: Path, name: str) -> Iterator[dict[str, str]]:
    """The rows of a table in the data folder, as dicts."""
    with gzip.open(data / f"{name}.tsv.gz", "rt", encoding="utf-8", newline="") as lines:
        yield from csv.DictReader(lines, delimiter="\t", quoting=csv.QUOTE_NONE)
