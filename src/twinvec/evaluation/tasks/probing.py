"""Probing tasks: which surface properties can a small classifier predict from vectors?

See Conneau et al. (2018) and section VI of SBERT-WK. Three balanced, seeded tasks can be generated from any corpus:
sentence length, word content and bigram shift. SentEval's ten files can be read. All of them are transfer tasks with
splits, so ``run_transfer`` runs them.
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

LENGTHS = ((5, 8), (9, 12), (13, 16), (17, 20), (21, 25), (26, 28))  # in words, as in Conneau et al.
SPLIT_MARKS = {"tr": "train", "va": "dev", "te": "test"}
WORD = re.compile(r"\w+(?:['\N{RIGHT SINGLE QUOTATION MARK}-]\w+)*")


def sentence_length_task(
    texts: Sequence[str], *, bins: Sequence[tuple[int, int]] = LENGTHS, n_per_label: int | None = None, seed: int = 0
) -> TransferTask:
    """Predict the bin of the number of words, which are separated by white space. Other lengths are skipped."""
    names = {f"{low}-{high}": range(low, high + 1) for low, high in bins}
    by_label: dict[str, list[str]] = {name: [] for name in names}
    for text in _distinct(texts):
        for name, lengths in names.items():
            if len(text.split()) in lengths:
                by_label[name].append(text)
    return _balanced("sentence length", by_label, n_per_label=n_per_label, seed=seed)


def word_content_task(
    texts: Sequence[str], *, n_words: int = 50, skip: int = 200, n_per_label: int | None = None, seed: int = 0
) -> TransferTask:
    """Predict which of ``n_words`` words is in the text. Only texts with exactly one of them are used.

    The words follow the ``skip`` most frequent ones, mostly function words; frequency is the number of texts, ignoring
    case. Conneau et al. take the 2,001st to 3,000th word of a far larger corpus.
    """
    distinct = _distinct(texts)
    words = [set(WORD.findall(text.lower())) for text in distinct]
    counts = Counter(word for in_text in words for word in in_text if word.isalpha())
    targets = sorted(counts, key=lambda word: (-counts[word], word))[skip : skip + n_words]
    if len(targets) < max(n_words, 2):
        raise InputError(
            f"word content: the texts have {len(counts)} distinct words, too few to take {n_words} after {skip}.",
            hint="Use more texts or fewer words.",
        )
    by_label: dict[str, list[str]] = {word: [] for word in targets}
    for text, in_text in zip(distinct, words, strict=True):
        matches = in_text.intersection(targets)
        if len(matches) == 1:
            by_label[matches.pop()].append(text)
    return _balanced("word content", by_label, n_per_label=n_per_label, seed=seed)


def bigram_shift_task(
    texts: Sequence[str], *, min_words: int = 5, n_per_label: int | None = None, seed: int = 0
) -> TransferTask:
    """Predict whether two adjacent words were swapped. Every text is used once, original or swapped.

    The first and last words stay, because capitals and periods would reveal a swap; the two swapped words differ.
    """
    generator = np.random.default_rng(seed)
    usable = [text for text in _distinct(texts) if len(text.split()) >= min_words and _swaps(text.split())]
    by_label: dict[str, list[str]] = {"original": [], "shifted": []}
    for number, index in enumerate(generator.permutation(len(usable))):
        words = usable[index].split()
        if number % 2:
            first = int(generator.choice(_swaps(words)))
            words[first], words[first + 1] = words[first + 1], words[first]
        by_label["shifted" if number % 2 else "original"].append(" ".join(words))
    return _balanced("bigram shift", by_label, n_per_label=n_per_label, seed=seed)


def read_probing(path: str | Path) -> TransferTask:
    """Read a probing file of SentEval: tab-separated split (tr, va, te), label and text, without a header."""
    splits, labels, texts = [], [], []
    for number, line in decoded_lines(str(path)):
        fields = line.split("\t")
        if len(fields) != 3:
            problem = f"{path}, line {number}: {len(fields)} fields instead of 3."
            raise RowError(problem, hint="Separate split, label and text with tabs.")
        if fields[0] not in SPLIT_MARKS:
            raise UnknownNameError(f"split in {path}, line {number}:", fields[0], SPLIT_MARKS)
        splits.append(SPLIT_MARKS[fields[0]])
        labels.append(fields[1])
        texts.append(fields[2])
    if not texts:
        raise InputError(f"{path} has no rows.", hint="Use a probing file of SentEval.")
    return TransferTask(Path(path).name.split(".")[0], texts=texts, labels=labels, splits=splits)


def _balanced(name: str, by_label: Mapping[str, Sequence[str]], *, n_per_label: int | None, seed: int) -> TransferTask:
    """A task with the same number of texts for every label: 80 % train, 10 % dev, 10 % test."""
    rarest = min(by_label, key=lambda label: len(by_label[label]))
    n_texts = len(by_label[rarest]) if n_per_label is None else n_per_label
    if n_texts < 10 or n_texts > len(by_label[rarest]):
        raise InputError(
            f"{name}: the label {rarest!r} has {len(by_label[rarest])} texts; {max(n_texts, 10)} are required.",
            hint="Use more texts, fewer labels, or fewer texts per label (at least 10).",
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


def _distinct(texts: Iterable[str]) -> list[str]:
    return list(dict.fromkeys(" ".join(text.split()) for text in texts))


def _swaps(words: Sequence[str]) -> list[int]:
    """The indices of words that can be swapped with a different next word, keeping the first and last word."""
    return [index for index in range(1, len(words) - 2) if words[index].lower() != words[index + 1].lower()]
