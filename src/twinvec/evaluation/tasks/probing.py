"""Probing tasks: what surface facts can a small classifier read off the vectors? (Conneau et al. 2018; SBERT-WK's VI.)

Three tasks are generated from any corpus, balanced and seeded: sentence length, word content and bigram shift. The ten
files of SentEval can be read. All are transfer tasks with splits, so ``run_transfer`` runs them.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import numpy as np

from twinvec.data.table import decoded_lines
from twinvec.errors import InputError, RowError, UnknownNameError
from twinvec.evaluation.tasks.transfer import TransferTask

__all__ = ["bigram_shift_task", "read_probing", "sentence_length_task", "word_content_task"]

LENGTHS = ((5, 8), (9, 12), (13, 16), (17, 20), (21, 25), (26, 28))  # words, as Conneau et al. have them
SPLIT_MARKS = {"tr": "train", "va": "dev", "te": "test"}
WORD = re.compile(r"\w+(?:['\N{RIGHT SINGLE QUOTATION MARK}-]\w+)*")


def sentence_length_task(
    texts: Sequence[str], *, bins: Sequence[tuple[int, int]] = LENGTHS, n_per_label: int | None = None, seed: int = 0
) -> TransferTask:
    """In which bin is the number of words (parted by white space)? Texts of other lengths are left out."""
    names = {f"{low}-{high}": range(low, high + 1) for low, high in bins}
    by_label: dict[str, list[str]] = {name: [] for name in names}
    for text in _different(texts):
        for name, lengths in names.items():
            if len(text.split()) in lengths:
                by_label[name].append(text)
    return _balanced("sentence length", by_label, n_per_label=n_per_label, seed=seed)


def word_content_task(
    texts: Sequence[str], *, n_words: int = 50, skip: int = 200, n_per_label: int | None = None, seed: int = 0
) -> TransferTask:
    """Which of ``n_words`` words is in the text? Only texts with exactly one of them are used.

    The words are the next commonest (by texts, without regard to case) after the ``skip`` commonest, which are
    mostly function words. Conneau et al. take the 2,001st to 3,000th of a far larger corpus.
    """
    distinct = _different(texts)
    words = [set(WORD.findall(text.lower())) for text in distinct]
    counts = Counter(word for found in words for word in found if word.isalpha())
    ranked = sorted(counts, key=lambda word: (-counts[word], word))[skip : skip + n_words]
    if len(ranked) < max(n_words, 2):
        raise InputError(
            f"word content: the texts have {len(counts)} different words, too few to take {n_words} after {skip}.",
            hint="Give more texts, or ask for fewer words.",
        )
    by_label: dict[str, list[str]] = {word: [] for word in ranked}
    wanted = set(ranked)
    for text, found in zip(distinct, words, strict=True):
        if len(found & wanted) == 1:
            by_label[min(found & wanted)].append(text)
    return _balanced("word content", by_label, n_per_label=n_per_label, seed=seed)


def bigram_shift_task(
    texts: Sequence[str], *, min_words: int = 5, n_per_label: int | None = None, seed: int = 0
) -> TransferTask:
    """Were two neighbouring words swapped? Every text is used once, either as it is or swapped.

    The first and the last word stay, as capitals and full stops would tell; the two words differ.
    """
    generator = np.random.default_rng(seed)
    usable = [text for text in _different(texts) if len(text.split()) >= min_words and _swaps(text.split())]
    by_label: dict[str, list[str]] = {"original": [], "shifted": []}
    for number, index in enumerate(generator.permutation(len(usable))):
        words = usable[index].split()
        if number % 2:
            first = int(generator.choice(_swaps(words)))
            words[first], words[first + 1] = words[first + 1], words[first]
        by_label["shifted" if number % 2 else "original"].append(" ".join(words))
    return _balanced("bigram shift", by_label, n_per_label=n_per_label, seed=seed)


def read_probing(path: str | Path) -> TransferTask:
    """A probing file of SentEval: without a header, tab separated, the split (tr, va, te), the label and the text."""
    splits, labels, texts = [], [], []
    for number, line in decoded_lines(str(path)):
        fields = line.split("\t")
        if len(fields) != 3:
            raise RowError(
                f"{path}, line {number}: {len(fields)} fields, not 3.", hint="Write split, label and text, with tabs."
            )
        if fields[0] not in SPLIT_MARKS:
            raise UnknownNameError(f"split in {path}, line {number}:", fields[0], SPLIT_MARKS)
        splits.append(SPLIT_MARKS[fields[0]])
        labels.append(fields[1])
        texts.append(fields[2])
    if not texts:
        raise InputError(f"{path} holds no rows.", hint="Give a probing file of SentEval.")
    return TransferTask(Path(path).name.split(".")[0], texts=texts, labels=labels, splits=splits)


def _balanced(name: str, by_label: Mapping[str, Sequence[str]], *, n_per_label: int | None, seed: int) -> TransferTask:
    """The same number of texts for every label: of ten, eight to train on, one for dev, one to test."""
    scarcest = min(by_label, key=lambda label: len(by_label[label]))
    n_texts = len(by_label[scarcest]) if n_per_label is None else n_per_label
    if n_texts < 10 or n_texts > len(by_label[scarcest]):
        raise InputError(
            f"{name}: the label {scarcest!r} has {len(by_label[scarcest])} texts; {max(n_texts, 10)} are needed.",
            hint="Give more texts, or ask for fewer labels or texts per label (10 or more).",
        )
    generator = np.random.default_rng(seed)
    tenth = n_texts // 10
    marks = ["train"] * (n_texts - 2 * tenth) + ["dev"] * tenth + ["test"] * tenth
    rows = []
    for label, texts in by_label.items():
        chosen = generator.permutation(len(texts))[:n_texts]
        rows += [(texts[index], label, mark) for index, mark in zip(chosen, marks, strict=True)]
    columns = list(zip(*rows, strict=True))
    return TransferTask(name, texts=columns[0], labels=columns[1], splits=columns[2])


def _different(texts: Iterable[str]) -> list[str]:
    return list(dict.fromkeys(" ".join(text.split()) for text in texts))


def _swaps(words: Sequence[str]) -> list[int]:
    """The indices of words, neither first nor next to last, that differ from the word after them."""
    return [index for index in range(1, len(words) - 2) if words[index].lower() != words[index + 1].lower()]
