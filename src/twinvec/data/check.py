"""Check a file of examples: duplicates, contradictions, overlap with other files."""

from __future__ import annotations

import sys
import unicodedata
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np

from twinvec.choices import DEFAULT_SCORE_RANGE
from twinvec.data.check_report import (
    N_SHOWN,
    Contradiction,
    DataReport,
    Finding,
    Overlap,
    Scores,
    Survey,
    TokenLengths,
    survey_examples,
)
from twinvec.data.examples import Examples
from twinvec.data.read import open_table
from twinvec.data.roles import TEXT_ROLES, DataSource, find_kind, guess_kind
from twinvec.engine.inspect import inspect_model
from twinvec.errors import InputError, RowError
from twinvec.model.folder import read_model_folder
from twinvec.model.hub import find_model
from twinvec.model.tokenizer import load_tokenizer
from twinvec.progress import Progress
from twinvec.types import Ids

__all__ = ["check_examples", "count_tokens", "find_duplicates", "text_key"]


@dataclass(frozen=True, slots=True)
class OtherTexts:
    """The name of another file and the keys of its texts."""

    name: str
    keys: frozenset[str]


def text_key(text: str) -> str:
    """A text without case, punctuation and white space, so that tokenized and plain texts have equal keys.

    >>> text_key("It 's  a dog .") == text_key("it's a Dog")
    True
    """
    return text.casefold().translate(_dropped())


@cache
def _dropped() -> dict[int, None]:
    """The ignored characters: punctuation (P), separators (Z), white space, and the backtick, used as a quote."""
    characters = map(chr, range(sys.maxunicode + 1))
    return {ord(c): None for c in characters if unicodedata.category(c)[0] in "PZ" or c.isspace() or c == "`"}


def read_other_texts(path: str | Path, *, also: Collection[str] = ()) -> OtherTexts:
    """The texts of the columns named like a role or in ``also``; if there are none, of all columns with strings."""
    table = open_table(path)
    named = [column for column in table.columns if column in TEXT_ROLES or column in also]
    columns = named or table.columns
    keys: set[str] = set()
    for row in table.rows(columns) if columns else ():
        if isinstance(row, RowError):
            raise row
        for value in row.values.values():
            values = value if isinstance(value, list) else [value]
            keys.update(text_key(each) for each in values if isinstance(each, str))
    keys.discard("")
    if not keys:
        raise InputError(f"{table.name} has no texts to compare with.", hint="Use a file with columns of texts.")
    return OtherTexts(Path(path).name, frozenset(keys))


def text_grid(examples: Examples) -> Ids:
    """Indices of the texts of each row, ``(n, texts per row)``, in the order of the roles."""
    return np.column_stack(list(examples.indices.values()))


def equal_rows(grid: Ids) -> Ids:
    """For each row of ``(n, m)``, the index of the first equal row, ``(n,)``.

    >>> equal_rows(np.array([[1, 2], [3, 4], [1, 2]]))
    array([0, 1, 0])
    """
    order = np.lexsort(grid.T[::-1])  # stable: the first row of a group stays first
    is_new = np.ones(len(grid), dtype=bool)
    is_new[1:] = (grid[order][1:] != grid[order][:-1]).any(axis=1)
    first = np.empty(len(grid), dtype=np.int64)
    first[order] = order[is_new][np.cumsum(is_new) - 1]
    return first


def find_duplicates(examples: Examples) -> Ids:
    """Rows, ``(n_duplicates,)``, that equal an earlier row, including the target."""
    first = equal_rows(np.column_stack([text_grid(examples), _target_codes(examples)]))
    return np.flatnonzero(first != np.arange(len(first)))


def find_contradictions(examples: Examples) -> Ids:
    """Two rows, ``(n_pairs, 2)``, for each group of texts with different targets: the first and one that differs.

    In a symmetric kind, swapped texts belong to the same group.
    """
    grid = text_grid(examples)
    if find_kind(examples.kind).is_symmetric:
        grid = np.sort(grid, axis=1)
    group, codes = equal_rows(grid), _target_codes(examples)
    others = np.flatnonzero(codes != codes[group])
    _, firsts = np.unique(group[others], return_index=True)
    second = np.sort(others[firsts])
    return np.column_stack([group[second], second])


def _target_codes(examples: Examples) -> Ids:
    if examples.targets is None:
        return np.zeros(len(examples), dtype=np.int64)
    return np.unique(examples.targets, return_inverse=True)[1].astype(np.int64).reshape(-1)


N_BINS = 10
TEXTS_PER_BLOCK = 10_000  # tokenized at a time, to limit memory


def check_examples(
    file: str | Path,
    kind: str | None = None,
    *,
    columns: Mapping[str, str | tuple[str, ...]] | None = None,
    format: str | None = None,
    labels: tuple[str, ...] | None = None,
    ignore_labels: tuple[str, ...] = (),
    score_range: tuple[float, float] = DEFAULT_SCORE_RANGE,
    against: Sequence[str | Path] = (),
    model: str | None = None,
    offline: bool = False,
) -> DataReport:
    """Read a whole file of examples, and report its content and what training would reject.

    The file settings are those of :class:`twinvec.data.roles.DataSource`.

    Args:
        kind: The kind of examples; guessed from the column names by default.
        against: Evaluation files, whose texts should not be in the training data.
        model: Count tokens with the tokenizer of this model. Its weights are not loaded.
        offline: Never download the model.

    >>> import tempfile
    >>> file = Path(tempfile.mkdtemp()) / "pairs.tsv"
    >>> _ = file.write_text("text1\\ttext2\\tscore\\na cat\\ta kitten\\t4.5\\na cat\\ta car\\t9\\n")
    >>> report = check_examples(file)
    >>> report.kind, report.n_good, report.faults[0].name
    ('scored_pairs', 1, 'score out of range')
    """
    columns = columns or {}
    named = [name for names in columns.values() for name in ([names] if isinstance(names, str) else names)]
    others = [read_other_texts(other, also=named) for other in against]
    table = open_table(file, format=format)
    kind = kind or guess_kind([*table.columns, *columns], source=table.name).name
    survey = survey_examples(DataSource(file, kind, columns, format, labels, ignore_labels, score_range), table)
    lengths, limit = (None, 0) if model is None else count_tokens(survey.examples.texts, model, offline=offline)
    return report_on(survey, against=others, lengths=lengths, limit=limit)


def count_tokens(texts: Sequence[str], model: str, *, offline: bool = False) -> tuple[Ids, int]:
    """The number of tokens of each text, ``(n_texts,)``, and the model's limit."""
    folder = read_model_folder(find_model(model, offline=offline))
    tokenizer = load_tokenizer(folder.backbone, lower_case=folder.lower_case)
    lengths = np.empty(len(texts), dtype=np.int64)
    with Progress(len(texts), "counting tokens") as bar:
        for start in range(0, len(texts), TEXTS_PER_BLOCK):
            block = texts[start : start + TEXTS_PER_BLOCK]
            lengths[start : start + len(block)] = [len(ids) for ids in tokenizer.ids(block)]
            bar.advance(len(block))
    if folder.is_static:
        return lengths, tokenizer.limit or sys.maxsize
    if folder.is_use:
        return lengths + tokenizer.n_special, sys.maxsize
    return lengths + tokenizer.n_special, inspect_model(folder.path).max_tokens or 512


def report_on(
    survey: Survey, *, against: Sequence[OtherTexts] = (), lengths: Ids | None = None, limit: int = 0
) -> DataReport:
    """Report what was read from a file.

    Args:
        against: The texts of evaluation files, which should not be in the training data.
        lengths: The number of tokens of each distinct text, ``(n_texts,)``.
        limit: The largest number of tokens that the model reads.
    """
    examples, found = survey.examples, survey.found
    grid = text_grid(examples)
    n_bad = sum(fault.count for fault in survey.faults)
    contradictory = find_contradictions(examples)
    keys = [text_key(text) for text in examples.texts] if against else []
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
        contradictions=tuple(_contradiction(survey, pair, texts=grid[pair[0]]) for pair in contradictory[:N_SHOWN]),
        overlaps=tuple(_overlap(examples, grid, keys=keys, other=other) for other in against),
        tokens=None if lengths is None or not len(lengths) else _token_lengths(lengths, limit),
    )


def _finding(rows: Ids, numbers: Ids) -> Finding:
    return Finding(len(rows), tuple(numbers[rows[:N_SHOWN]].tolist()))


def _rows_with_equal(grid: Ids) -> Ids:
    """The rows of ``(n, texts per row)`` in which two texts are equal."""
    return np.flatnonzero((np.diff(np.sort(grid, axis=1), axis=1) == 0).any(axis=1))


def _label_counts(examples: Examples) -> dict[str, int]:
    values = find_kind(examples.kind).values
    if examples.targets is None or values not in ("names", "marks"):
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


def _contradiction(survey: Survey, pair: Ids, *, texts: Ids) -> Contradiction:
    first, second = pair.tolist()
    return Contradiction(
        texts=tuple(survey.examples.texts[index] for index in texts.tolist()),
        rows=(int(survey.found.numbers[first]), int(survey.found.numbers[second])),
        targets=(_target(survey, first), _target(survey, second)),
    )


def _target(survey: Survey, row: int) -> str:
    """The target of a row in the terms of the file."""
    assert survey.examples.targets is not None  # only rows with targets contradict each other
    target = survey.examples.targets[row]
    if survey.examples.labels:
        return survey.examples.labels[int(target)]
    is_scaled = find_kind(survey.source.kind).values == "numbers"
    low, high = survey.source.score_range if is_scaled else (0.0, 1.0)
    return f"{low + float(target) * (high - low):.4g}"


def _overlap(examples: Examples, grid: Ids, *, keys: Sequence[str], other: OtherTexts) -> Overlap:
    is_shared = np.array([key in other.keys for key in keys], dtype=bool)
    shared: list[int] = np.flatnonzero(is_shared).tolist()
    return Overlap(
        file=other.name,
        n_texts=len(other.keys),
        n_shared=len({keys[index] for index in shared}),
        n_rows=int(is_shared[grid].any(axis=1).sum()),
        shown=tuple(examples.texts[index] for index in shared[:N_SHOWN]),
    )


def _token_lengths(lengths: Ids, limit: int) -> TokenLengths:
    return TokenLengths(
        limit=limit,
        mean=round(float(lengths.mean()), 2),
        percentile_95=int(np.percentile(lengths, 95, method="higher")),
        longest=int(lengths.max()),
        n_cut=int((lengths > limit).sum()),
    )
