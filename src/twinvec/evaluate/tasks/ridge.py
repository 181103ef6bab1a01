"""Ridge regression whose strength is chosen by leaving groups of training rows out, exactly and without refitting."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from twinvec.evaluate.tasks.scaling import fit_scale
from twinvec.types import Array, Vectors

__all__ = ["PENALTIES", "leave_out_errors", "predict_by_ridge"]

PENALTIES = tuple(4.0**power for power in range(10))  # on scaled features


def predict_by_ridge(
    features: Vectors, gold: Array, *, groups: Array, test: Vectors, penalties: Sequence[float] = PENALTIES
) -> Array:
    """Fit to ``(n, width)`` and ``(n,)``, then predict ``test``, ``(m, width)`` to ``(m,)``.

    The penalty is the one with the least squared error on rows whose ``groups``, ``(n,)``, was left out.

    >>> x = np.array([[0.0], [1.0], [2.0], [3.0]])
    >>> predict_by_ridge(x, 2 * x[:, 0], groups=np.arange(4), test=np.array([[1.5]])).round(3).tolist()
    [3.0]
    """
    scale = fit_scale(features)
    rows = scale.apply(features).astype(np.float64)
    values, axes = np.linalg.eigh(rows.T @ rows)
    turned, values = rows @ axes, np.maximum(values, 0)
    errors = [leave_out_errors(turned / np.sqrt(values + each), gold, groups=groups) for each in penalties]
    penalty = penalties[int(np.argmin([np.square(error).sum() for error in errors]))]
    weights = axes @ (turned.T @ (gold - gold.mean()) / (values + penalty))
    return np.asarray(scale.apply(test) @ weights + gold.mean())


def leave_out_errors(factor: Array, gold: Array, *, groups: Array) -> Array:
    """Gold less what a fit without the row's group predicts, ``(n,)``; ``factor`` is ``(n, width)``.

    The fit is the linear smoother ``H = factor factor' + 1/n``, the constant being free. Leaving a block out turns
    its residuals ``r`` into ``(I - H_block)^-1 r``, so one decomposition of all rows serves every group and penalty.
    """
    residuals = gold - gold.mean() - factor @ (factor.T @ gold)
    errors = np.empty(len(gold))
    for group in np.unique(groups):
        block = np.flatnonzero(groups == group)
        smoother = factor[block] @ factor[block].T + 1 / len(gold)
        errors[block] = np.linalg.solve(np.eye(len(block)) - smoother, residuals[block])
    return errors
