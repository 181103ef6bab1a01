"""Metrics: equal to scipy's and scikit-learn's on random data with ties, worked by hand elsewhere, and never NaN."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from twinvec.errors import InputError
from twinvec.evaluation.tasks.pairs import best_accuracy_threshold, best_f1_threshold
from twinvec.evaluation.tasks.retrieval import average_precision_of, ndcg, recall, reciprocal_rank
from twinvec.metrics import (
    accuracy,
    average_precision,
    completeness,
    f1,
    homogeneity,
    pearson,
    ranks,
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
def test_a_correlation_does_not_depend_on_the_unit(size):
    left = size * np.array([1.0, 2.0, 3.0])
    assert pearson(left, [2, 4, 7]) == pytest.approx(pearson([1, 2, 3], [2, 4, 7]), rel=1e-12)


def test_undefined_correlations_are_refused_in_words():
    with pytest.raises(InputError, match="undefined: all 3 values of the second list are equal"):
        spearman([1, 2, 3], [5, 5, 5])
    with pytest.raises(InputError, match="equal length, 2 or more, got shapes"):
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
    tried = np.append(scores, scores.min() - 1)  # each way to cut the list, and taking all
    found = accuracy(scores > best_accuracy_threshold(scores, labels), labels == 1)
    assert found == pytest.approx(max(accuracy(scores > cut, labels == 1) for cut in tried))
    assume(labels.any())
    found = f1(scores > best_f1_threshold(scores, labels), labels)
    assert found == pytest.approx(max(f1(scores > cut, labels) for cut in tried))


def test_a_threshold_lies_between_scores_or_beyond_all():
    assert best_accuracy_threshold(np.array([0.25, 0.75]), np.array([0, 1])) == 0.5
    assert best_accuracy_threshold(np.array([0.3, 0.4]), np.array([0, 0])) == np.inf  # none taken
    assert best_accuracy_threshold(np.array([0.3, 0.4]), np.array([1, 1])) == -np.inf
    close = np.array([1.0, np.nextafter(np.float32(1), np.float32(2))], dtype=np.float32)  # nothing between in float32
    assert (close > best_accuracy_threshold(close, np.array([0, 1]))).tolist() == [False, True]


def test_undefined_classifications_are_refused_in_words():
    with pytest.raises(InputError, match="F1 is undefined: none of the 2 items is positive"):
        f1([0, 0], [0, 0])
    with pytest.raises(InputError, match="none of the 2 labels is 1"):
        average_precision([0.1, 0.2], [0, 0])
    with pytest.raises(InputError, match="must be 0 or 1, but 1 are not, such as 2"):
        average_precision([0.1, 0.2], [2, 1])
    with pytest.raises(InputError, match="1 of 2 scores are not finite"):
        average_precision([0.1, math.nan], [0, 1])
    with pytest.raises(InputError, match=r"non-empty lists of equal length, got shapes \(0,\) and \(0,\)"):
        accuracy([], [])
    with pytest.raises(InputError, match="lists of equal length"):
        accuracy([1, 2], [1])


@few
@given(st.lists(st.tuples(st.integers(0, 3), st.floats(0, 1)), min_size=2, max_size=30), st.integers(1, 12))
def test_ndcg_is_scikit_learns_with_linear_gains(graded, k):
    gains = np.array([gain for gain, _ in graded])
    scores = np.array([score for _, score in graded])
    assume(gains.any() and len(set(scores)) == len(scores))  # scikit-learn averages over ties
    ranked = gains[np.argsort(-scores)]
    assert ndcg(ranked, gains, k=k) == pytest.approx(sklearn_metrics.ndcg_score([gains], [scores], k=k))


def test_ndcg_by_hand():
    # places 1 to 3 gain 0, 2, 1: 2 / log2(3) + 1 / log2(4); best is 3, 2, 1 with a text of 3 that was not found
    expected = (2 / math.log2(3) + 1 / 2) / (3 + 2 / math.log2(3) + 1 / 2)
    assert ndcg([0, 2, 1], [1, 2, 3], k=10) == pytest.approx(expected)
    assert ndcg([0, 2, 1], [1, 2, 3], k=1) == 0
    assert ndcg([], [1], k=10) == 0


@few
@given(st.lists(st.booleans(), min_size=1, max_size=20))
def test_the_average_precision_of_a_full_ranking_is_that_of_its_scores(hits):
    assume(any(hits))
    scores = -np.arange(len(hits))
    assert average_precision_of(hits, sum(hits)) == pytest.approx(average_precision(scores, hits))


def test_rankings_by_hand():
    hits = [0, 1, 0, 1]
    assert average_precision_of(hits, 2) == pytest.approx((1 / 2 + 2 / 4) / 2)
    assert average_precision_of(hits[:3], 2) == pytest.approx(1 / 4)
    assert recall(hits, 4, k=3) == 0.25
    assert reciprocal_rank(hits, k=10) == 0.5
    assert reciprocal_rank(hits, k=1) == 0
    assert reciprocal_rank([], k=10) == 0


@few
@given(lists_of(st.integers(0, 4), st.integers(0, 3), least=1))
def test_v_measure_is_scikit_learns(lists):
    clusters, classes = lists
    expected = sklearn_metrics.homogeneity_completeness_v_measure(classes, clusters)
    found = homogeneity(clusters, classes), completeness(clusters, classes), v_measure(clusters, classes)
    assert found == pytest.approx(expected, abs=1e-9)


def test_v_measure_does_not_depend_on_label_names():
    assert v_measure(["x", "y", "y"], [7, 3, 3]) == 1
    with pytest.raises(InputError, match=r"non-empty lists of equal length, got shapes \(0,\) and \(0,\)"):
        v_measure([], [])
