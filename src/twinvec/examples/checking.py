"""What is in a file of examples, and what is wrong with it: counts, and the first few of each sort to look at."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from twinvec.examples.data import Examples
from twinvec.examples.overlap import OtherTexts, text_key
from twinvec.examples.repeats import find_contradictions, find_duplicates, text_grid
from twinvec.examples.report import Contradiction, DataReport, Finding, Overlap, Scores, TokenLengths
from twinvec.examples.roles import find_kind
from twinvec.examples.survey import N_SHOWN, Survey
from twinvec.types import Ids

__all__ = ["check_examples"]

N_BINS = 10


def check_examples(
    survey: Survey, *, against: Sequence[OtherTexts] = (), lengths: Ids | None = None, limit: int = 0
) -> DataReport:
    """Describe what was read from a file.

    Args:
        against: the texts of evaluation files, which should not be trained on.
        lengths: tokens of each of the different texts, ``(n_texts,)``.
        limit: the most tokens that the model reads of a text.
    """
    examples, found = survey.examples, survey.found
    grid = text_grid(examples)
    n_bad = sum(fault.count for fault in survey.faults)
    contradictory = find_contradictions(examples)
    is_empty = np.array([not text or text.isspace() for text in examples.texts], dtype=bool)
    return DataReport(
        file=found.file,
        kind=examples.kind,
        columns=found.columns,
        unit=found.unit,
        n_rows=len(examples) + found.n_ignored + n_bad,
        n_good=len(examples),
        n_ignored=found.n_ignored,
        n_texts=len(examples.texts),
        faults=survey.faults,
        refusal=survey.refusal,
        labels=_label_counts(examples),
        scores=_scores(survey),
        duplicates=_finding(find_duplicates(examples), found.numbers),
        equal_texts=_finding(_rows_with_equal(grid), found.numbers),
        empty_texts=_finding(np.flatnonzero(is_empty[grid].any(axis=1)), found.numbers),
        n_contradictions=len(contradictory),
        contradictions=tuple(_contradiction(survey, pair, places=grid[pair[0]]) for pair in contradictory[:N_SHOWN]),
        overlaps=_overlaps(examples, grid, against=against),
        tokens=None if lengths is None or not len(lengths) else _token_lengths(lengths, limit),
    )


def _finding(rows: Ids, numbers: Ids) -> Finding:
    return Finding(len(rows), tuple(numbers[rows[:N_SHOWN]].tolist()))


def _rows_with_equal(grid: Ids) -> Ids:
    """The rows of ``(n, texts in a row)`` of which two texts are the same."""
    return np.flatnonzero((np.diff(np.sort(grid, axis=1), axis=1) == 0).any(axis=1))


def _label_counts(examples: Examples) -> dict[str, int]:
    values = find_kind(examples.kind).values
    if examples.targets is None or values == "numbers":
        return {}
    names = ("0", "1") if values == "marks" else examples.labels
    counts = np.bincount(examples.targets.astype(np.int64), minlength=len(names))
    return dict(zip(names, counts.tolist(), strict=True))


def _scores(survey: Survey) -> Scores | None:
    targets = survey.examples.targets
    if find_kind(survey.source.kind).values != "numbers" or targets is None or not len(targets):
        return None
    low, high = survey.source.score_range
    values = low + targets.astype(np.float64) * (high - low)
    counts, _ = np.histogram(targets, bins=N_BINS, range=(0, 1))
    least, mean, highest = (round(float(value), 4) for value in (values.min(), values.mean(), values.max()))
    return Scores(low, high, least, mean, highest, tuple(counts.tolist()))


def _contradiction(survey: Survey, pair: Ids, *, places: Ids) -> Contradiction:
    first, second = pair.tolist()
    return Contradiction(
        texts=tuple(survey.examples.texts[place] for place in places.tolist()),
        rows=(int(survey.found.numbers[first]), int(survey.found.numbers[second])),
        targets=(_target(survey, first), _target(survey, second)),
    )


def _target(survey: Survey, row: int) -> str:
    """The target of a row as the file may have it."""
    assert survey.examples.targets is not None  # only rows with targets contradict each other
    target = survey.examples.targets[row]
    if survey.examples.labels:
        return survey.examples.labels[int(target)]
    low, high = survey.source.score_range
    return f"{low + float(target) * (high - low):.4g}"


def _overlaps(examples: Examples, grid: Ids, *, against: Sequence[OtherTexts]) -> tuple[Overlap, ...]:
    keys = [text_key(text) for text in examples.texts] if against else []
    return tuple(_overlap(examples, grid, keys=keys, other=other) for other in against)


def _overlap(examples: Examples, grid: Ids, *, keys: Sequence[str], other: OtherTexts) -> Overlap:
    is_shared = np.array([key in other.keys for key in keys], dtype=bool)
    shared: list[int] = np.flatnonzero(is_shared).tolist()
    return Overlap(
        file=other.name,
        n_texts=len(other.keys),
        n_shared=len({keys[place] for place in shared}),
        n_rows=int(is_shared[grid].any(axis=1).sum()),
        shown=tuple(examples.texts[place] for place in shared[:N_SHOWN]),
    )


def _token_lengths(lengths: Ids, limit: int) -> TokenLengths:
    return TokenLengths(
        limit=limit,
        mean=round(float(lengths.mean()), 2),
        percentile_95=int(np.percentile(lengths, 95, method="higher")),
        longest=int(lengths.max()),
        n_cut=int((lengths > limit).sum()),
    )
