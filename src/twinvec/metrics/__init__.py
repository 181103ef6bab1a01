"""How well predictions agree with what people said. Pure functions on arrays, in float64, numpy only.

Every number is a fraction (a correlation of 0.77, not 77). A number that is undefined, such as the correlation
of a constant, is an ``InputError`` that says why; none of these functions returns NaN.
"""

from twinvec.metrics.classification import (
    Threshold,
    accuracy,
    average_precision,
    best_f1_threshold,
    best_threshold,
    f1,
)
from twinvec.metrics.clustering import completeness, homogeneity, v_measure
from twinvec.metrics.correlation import pearson, ranks, spearman
from twinvec.metrics.ranking import average_precision_of_hits, ndcg, recall_at_k, reciprocal_rank

__all__ = [
    "Threshold",
    "accuracy",
    "average_precision",
    "average_precision_of_hits",
    "best_f1_threshold",
    "best_threshold",
    "completeness",
    "f1",
    "homogeneity",
    "ndcg",
    "pearson",
    "ranks",
    "recall_at_k",
    "reciprocal_rank",
    "spearman",
    "v_measure",
]
