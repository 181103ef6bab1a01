"""Whether the best of many candidates beats what there was, although it was picked for being the best.

Of 100 candidates that are all as good as the old one, the best looks better on any data. So its lead is held against
the largest lead that chance gives to any of them: Westfall and Young's single-step max-T (1993), over paired resamples.

The lead of every candidate is counted in its own standard error, the deviation of its resampled leads. In a resample
all leads, less their means and in those units, move together as chance moves them; the p value of a lead is how often
the largest of them all is as high. The chance of any false "more than chance" is then at most 1 less the level,
and a candidate that resembles another one costs next to nothing. Correlations are compared as Fisher's z, ``arctanh``,
whose error depends less on their size.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from twinvec.errors import InputError
from twinvec.evaluation.resampling import Resamples

__all__ = ["Lead", "leads"]

Floats = NDArray[np.float64]

LEAST_ERROR = 1e-9  # of a lead in z; what is below is the same ranking
MOST_UNDEFINED = 0.05
HIGHEST = 1 - 1e-9  # a correlation beyond has no finite z


class Lead(NamedTuple):
    """How far a candidate is above the old one, at least how far at the level asked for, and the corrected p value.

    All in the units of the values, but ``p``. ``low`` holds for all candidates at once.
    """

    difference: float
    low: float
    p: float


def leads(old: Resamples, candidates: Sequence[Resamples], *, level: float = 0.95, scale: float = 100.0) -> list[Lead]:
    """The lead of each candidate over the old one, corrected for all of them; correlations times ``scale``."""
    if not candidates:
        return []
    start = _z(np.array([old.value]), scale)
    values = _z(np.array([each.value for each in candidates]), scale) - start
    moved = np.stack([_z(each.replicates, scale) for each in candidates]) - _z(old.replicates, scale)
    moved = moved[:, _checked(moved)]
    errors = moved.std(axis=1)
    is_other = errors > LEAST_ERROR
    leading = np.where(is_other, values, -np.inf) / np.where(is_other, errors, 1.0)
    shifted = (moved[is_other] - moved[is_other].mean(axis=1, keepdims=True)) / errors[is_other, None]
    largest = np.sort(shifted.max(axis=0)) if is_other.any() else np.zeros(moved.shape[1])
    n = len(largest)
    n_higher = n - np.searchsorted(largest, leading, side="left")
    margin = float(np.quantile(largest, level))
    lows = scale * np.tanh(start + values - margin * errors) - old.value
    return [
        Lead(each.value - old.value, float(low) if differs else 0.0, (1 + int(higher)) / (n + 1))
        for each, low, higher, differs in zip(candidates, lows, n_higher, is_other, strict=True)
    ]


def _z(values: Floats, scale: float) -> Floats:
    return np.asarray(np.arctanh(np.clip(values / scale, -HIGHEST, HIGHEST)))


def _checked(moved: Floats) -> NDArray[np.bool_]:
    """Which resamples give every candidate a value."""
    is_defined = np.asarray(np.isfinite(moved).all(axis=0))
    n_undefined = int((~is_defined).sum())
    if n_undefined > MOST_UNDEFINED * len(is_defined):
        raise InputError(
            f"No test: {n_undefined} of {len(is_defined)} resamples have no value, because too few items differ.",
            hint="Give more items.",
        )
    return is_defined
