"""Metrics: equal to scipy's and scikit-learn's on random data with ties, worked by hand elsewhere, and never NaN."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from twinvec.errors import InputError
from twinvec.metrics import (
    accuracy,
    average_precision,
    best_f1_threshold,
    completeness,
    f1,
    homogeneity,
    ndcg,
    pearson,
    ranks,
    reciprocal_rank,
    spearman,
    v_measure,
)

stats = pytest.importorskip("scipy.stats")
sklearn_metrics = pytest.importorskip("sklearn.metrics")

few = settings(max_examples=60, deadline=None)
NUMBERS = st.one_of(st.integers(-3, 3).map(float), st.floats(-1e6, 1e6).map(lambda x: round(x, 3)))


def lists_of(*elements, least=2):
    """Equally long lists, one for each kind of element."""
    return st.lists(st.tuples(*elements), min_size=least, max_size=40).map(lambda rows: list(zip(*rows, strict=True)))


@few
@given(lists_of(NUMBERS, NUMBERS))
def test_ranks_and_correlations_are_scipys(lists):
    left, right = lists
    assert np.array_equal(ranks(left), stats.rankdata(left))
    assume(np.ptp(left) > 0 and np.ptp(right) > 0)
    assert spearman(left, right) == pytest.approx(stats.spearmanr(left, right).statistic, abs=1e-12)
    assert pearson(left, right) == pytest.approx(stats.pearsonr(left, right).statistic, abs=1e-9)


@pytest.mark.parametrize("size", [1e-200, 1e-3, 1e200])
def test_a_correlation_knows_no_unit(size):
    left = size * np.array([1.0, 2.0, 3.0])
    assert pearson(left, [2, 4, 7]) == pytest.approx(pearson([1, 2, 3], [2, 4, 7]), rel=1e-12)


def test_undefined_correlations_are_refused_in_words():
    with pytest.raises(InputError, match="undefined: all 3 values of the second list are equal"):
        spearman([1, 2, 3], [5, 5, 5])
    with pytest.raises(InputError, match="at least 2, got shapes"):
        pearson([1], [1])
    for wrong in (math.nan, math.inf):
        for correlation in (pearson, spearman):
            with pytest.raises(InputError, match="finite numbers; the first list"):
                correlation([1, wrong, 3], [1, 2, 3])
    with pytest.raises(InputError, match="1 of 2 values are NaN"):
        ranks([1, math.nan])


@few
@given(lists_of(st.integers(0, 1), st.integers(0, 1), least=1))
def test_accuracy_and_f1_are_scikit_learns(lists):
    predicted, gold = lists
    assert accuracy(predicted, gold) == pytest.approx(sklearn_metrics.accuracy_score(gold, predicted))
    assume(any(predicted) or any(gold))
    assert f1(predicted, gold) == pytest.approx(sklearn_metrics.f1_score(gold, predicted, zero_division=0))


@few
@given(lists_of(NUMBERS, st.integers(0, 1)))
def test_average_precision_is_scikit_learns(lists):
    scores, labels = lists
    assume(any(labels))
    assert average_precision(scores, labels) == pytest.approx(sklearn_metrics.average_precision_score(labels, scores))


@few
@given(lists_of(NUMBERS, st.integers(0, 1)))
def test_no_threshold_is_better_than_the_best(lists):
    scores, labels = np.array(lists[0]), np.array(lists[1])
    tried = np.append(scores, scores.max() + 1)  # each way to cut the list, and taking none
    assume(labels.any())
    found = best_f1_threshold(scores, labels)
    assert found.value == pytest.approx(max(f1(scores >= cut, labels) for cut in tried))
    assert found.value == f1(scores >= found.threshold, labels)


def test_a_threshold_lies_between_scores_that_have_nothing_between_them():
    scores = np.array([1.0, np.nextafter(1.0, 2.0)])
    assert best_f1_threshold(scores, [0, 1]) == (scores[1], 1.0)
    assert best_f1_threshold([0.3, 0.4], [1, 1]) == (0.3, 1.0)


def test_undefined_classifications_are_refused_in_words():
    with pytest.raises(InputError, match="F1 is undefined: none of the 2 items is positive"):
        f1([0, 0], [0, 0])
    with pytest.raises(InputError, match="none of the 2 labels is 1"):
        average_precision([0.1, 0.2], [0, 0])
    with pytest.raises(InputError, match="must be 0 or 1, but 1 are not, such as 2"):
        best_f1_threshold([0.1, 0.2], [2, 1])
    with pytest.raises(InputError, match="1 of 2 scores are not finite"):
        best_f1_threshold([0.1, math.nan], [0, 1])
    with pytest.raises(InputError, match=r"not empty, got shapes \(0,\) and \(0,\)"):
        accuracy([], [])
    with pytest.raises(InputError, match="equally long"):
        accuracy([1, 2], [1])


@few
@given(st.lists(st.tuples(st.integers(0, 3), st.floats(0, 1)), min_size=2, max_size=30), st.integers(1, 12))
def test_ndcg_is_scikit_learns_with_linear_gains(judged, k):
    gains = np.array([gain for gain, _ in judged])
    scores = np.array([score for _, score in judged])
    assume(gains.any() and len(set(scores)) == len(scores))  # scikit-learn averages over ties
    ranked = gains[np.argsort(-scores)]
    assert ndcg(ranked, gains, k=k) == pytest.approx(sklearn_metrics.ndcg_score([gains], [scores], k=k))


def test_ndcg_by_hand():
    # places 1 to 3 gain 0, 2, 1: 2 / log2(3) + 1 / log2(4); best is 3, 2, 1 with a text of 3 that was not found
    expected = (2 / math.log2(3) + 1 / 2) / (3 + 2 / math.log2(3) + 1 / 2)
    assert ndcg([0, 2, 1], [1, 2, 3], k=10) == pytest.approx(expected)
    assert ndcg([0, 2, 1], [1, 2, 3], k=1) == 0
    assert ndcg([], [1], k=10) == 0


def test_rankings_by_hand():
    hits = [0, 1, 0, 1]
    assert reciprocal_rank(hits) == 0.5
    assert reciprocal_rank(hits, k=1) == 0
    assert reciprocal_rank([]) == 0


def test_impossible_rankings_are_refused_in_words():
    with pytest.raises(InputError, match="nDCG is undefined for a query without relevant texts"):
        ndcg([0, 0], [0, 0], k=10)
    with pytest.raises(InputError, match="gains more than the best possible"):
        ndcg([1, 1], [1], k=10)
    with pytest.raises(InputError, match=r"numbers from 0 up, got shape \(2,\) with lowest -1"):
        ndcg([-1, 1], [1], k=10)
    with pytest.raises(InputError, match="k must be at least 1, got 0"):
        reciprocal_rank([1], k=0)
    with pytest.raises(InputError, match="list of 0 and 1"):
        reciprocal_rank([0.5])


@few
@given(lists_of(st.integers(0, 4), st.integers(0, 3), least=1))
def test_v_measure_is_scikit_learns(lists):
    clusters, classes = lists
    expected = sklearn_metrics.homogeneity_completeness_v_measure(classes, clusters)
    found = homogeneity(clusters, classes), completeness(clusters, classes), v_measure(clusters, classes)
    assert found == pytest.approx(expected, abs=1e-9)


def test_v_measure_does_not_care_for_names():
    assert v_measure(["x", "y", "y"], [7, 3, 3]) == 1
    with pytest.raises(InputError, match=r"not empty, got \(0,\) and \(0,\)"):
        v_measure([], [])
