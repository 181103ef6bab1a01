"""Examples for training and evaluation: strict, so that nothing is trained on that was not meant."""

from __future__ import annotations

from typing import NoReturn

from twinvec.errors import InputError, RowError
from twinvec.examples.data import Examples
from twinvec.examples.gathering import Gathered, gather_examples
from twinvec.examples.roles import find_kind
from twinvec.examples.source import DataSource
from twinvec.examples.values import range_hint
from twinvec.tables import open_table

__all__ = ["check_whole", "read_examples"]

LEAST_ROWS = 20  # for a judgement about the range of the scores
LOW_PART = 0.2
ROUNDING = 1e-6  # of float32


def read_examples(source: DataSource) -> Examples:
    """All examples of a file. The first row that cannot be used is an error that names its place."""
    found = gather_examples(source, open_table(source.file, format=source.format), on_bad=_refuse)
    check_whole(found, source)
    return found.examples


def _refuse(error: RowError) -> NoReturn:
    raise error


def check_whole(found: Gathered, source: DataSource) -> None:
    """Refuse a file whose rows are all ignored, or all at the bottom of the range of the scores."""
    if not len(found.examples):
        raise InputError(
            f"All {found.n_ignored:,} rows of {found.file} have an ignored label: {', '.join(source.ignore_labels)}.",
            hint="Take labels out of ignore_labels (--ignore-label), or give another file.",
        )
    scores = found.examples.targets
    if find_kind(source.kind).values != "numbers" or scores is None or len(scores) < LEAST_ROWS:
        return
    low, high = source.score_range
    # Six digits, so that what float32 adds to a score of 5 does not make it more than 5.
    least, highest = (float(f"{low + float(end) * (high - low):.6g}") for end in (scores.min(), scores.max()))
    if float(scores.max()) <= LOW_PART + ROUNDING:
        raise InputError(
            f"The highest of the {len(scores):,} scores of {found.file} is {highest:g}, far below the top of their "
            f"range, {low:g} to {high:g}: the range is probably wrong.",
            hint=range_hint(least, highest),
        )
