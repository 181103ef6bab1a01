"""Numbers of outcomes, their intervals and comparisons: right by hand, by scipy, and by simulation.

The simulations are seeded, so they pass or fail for good. Their bounds are narrow enough to catch a real fault:
intervals four fifths as wide are shown to fail, and tests without paired resamples would.
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from twinvec.errors import InputError, UnknownNameError
from twinvec.evaluation.compare import compare_all, compare_outcomes, holm, mcnemar, williams, williams_t
from twinvec.evaluation.resampling import Resampling, distinct_rows, interval, interval_of, p_value_of, resample
from twinvec.evaluation.result_file import score
from twinvec.evaluation.statistics import STATISTICS, Outcome, value_of

stats = pytest.importorskip("scipy.stats")

QUICK = Resampling(n_resamples=250)


def outcome_of(statistic, predicted, gold=None, **others):
    gold = None if gold is None else np.asarray(gold)
    return Outcome("task", "protocol", statistic, np.asarray(predicted), gold, **others)


def correlated(rng, n, rho):
    """Two lists of normal numbers with the correlation ``rho``."""
    x, y = rng.normal(size=(2, n))
    return x, rho * x + math.sqrt(1 - rho**2) * y


def spearman_of_normals(rho):
    """Spearman's correlation x 100 of normal numbers whose Pearson correlation is ``rho``."""
    return 100 * 6 / math.pi * math.asin(rho / 2)


def samples(rng, statistic, n):
    """Random items with ties, such as each statistic takes."""
    if statistic in ("spearman", "pearson"):
        return rng.integers(0, 8, n) / 2, rng.normal(size=n).round(1)
    if statistic == "mean":
        return rng.random(n), None
    if statistic == "average_precision":
        return rng.normal(size=n).round(1), rng.integers(0, 2, n)
    return rng.integers(0, 2, n), rng.integers(0, 2, n)


@pytest.mark.parametrize("name", STATISTICS)
def test_counting_items_is_the_same_as_repeating_them(name):
    rng = np.random.default_rng(1)
    statistic, n_undefined = STATISTICS[name], 0
    for n in (2, 3, 5, 40):
        predicted, gold = samples(rng, name, n)
        if len(set(predicted)) == 1 or (gold is not None and len(set(gold)) == 1):
            predicted[0], gold[0] = predicted[0] + 1, 1 - gold[0]
        counts = rng.multinomial(n, np.full(n, 1 / n), size=50).T.astype(np.float64)
        found = statistic.recount(predicted, gold)(counts)
        for column, value in zip(counts.T.astype(int), found, strict=True):
            again = np.repeat(predicted, column), None if gold is None else np.repeat(gold, column)
            try:
                assert value == pytest.approx(statistic.of(*again), abs=1e-9)
            except InputError:
                assert np.isnan(value)
                n_undefined += 1
    assert (n_undefined > 0) == (name not in ("mean", "accuracy", "v_measure"))


def test_all_numbers_are_shown_times_100_and_subsets_are_averaged_as_asked():
    right = np.array([1, 1, 1, 0, 1, 0])
    parts = {"groups": np.array([0, 0, 0, 0, 1, 1]), "group_names": ("news", "web")}
    outcome = outcome_of("mean", right, **parts)
    assert {each.name: each.value for each in score(outcome).subsets} == {"news": 75, "web": 50}
    assert value_of(outcome) == pytest.approx(100 * 4 / 6)
    assert value_of(replace(outcome, aggregation="mean")) == pytest.approx(62.5)
    assert value_of(replace(outcome, aggregation="weighted mean")) == pytest.approx(100 * 4 / 6)
    assert value_of(outcome_of("spearman", [1, 2, 3], [1, 4, 9])) == pytest.approx(100)
    assert score(outcome_of("mean", right)).subsets == ()


def test_an_inconsistent_outcome_is_refused_with_a_message():
    numbers = [1.0, 2.0]
    with pytest.raises(UnknownNameError, match=r"Unknown statistic 'sperman'\. Did you mean 'spearman'"):
        value_of(outcome_of("sperman", numbers, numbers))
    with pytest.raises(InputError, match="'pearson' requires gold values"):
        value_of(outcome_of("pearson", numbers))
    with pytest.raises(InputError, match="'mean' uses the predictions only"):
        value_of(outcome_of("mean", numbers, numbers))
    with pytest.raises(InputError, match="task: The correlation is undefined: all 2 values of the second"):
        value_of(outcome_of("spearman", numbers, [3, 3]))
    with pytest.raises(InputError, match="mean of no items"):
        value_of(outcome_of("mean", []))
    with pytest.raises(InputError, match="1 of 2 values are not finite"):
        value_of(outcome_of("mean", [1, math.nan]))
    parts = {"groups": np.array([0, 0]), "aggregation": "mean"}
    with pytest.raises(InputError, match="no items in the subset 'b'"):
        value_of(outcome_of("mean", numbers, group_names=("a", "b"), **parts))
    with pytest.raises(InputError, match="indices 0 to 0, but 0 subsets are named"):
        value_of(outcome_of("mean", numbers, **parts))


def test_an_undefined_subset_matters_only_when_subsets_are_averaged():
    parts = {"groups": np.array([0, 0, 0, 1, 1]), "group_names": ("good", "flat")}
    outcome = outcome_of("spearman", [1, 2, 3, 4, 5], [1, 2, 3, 4, 4], **parts)
    good, flat = score(outcome).subsets
    assert good.value == pytest.approx(100) and flat.value is None
    assert flat.problem.startswith("The correlation is undefined")
    with pytest.raises(InputError, match="task, subset 'flat': The correlation is undefined"):
        value_of(replace(outcome, aggregation="mean"))


def coverage(make, truth, n_sets=300, quick=QUICK):
    """Shares of data sets whose interval holds the truth, and whose interval shrunk to four fifths does."""
    held = np.zeros(2)
    for seed in range(n_sets):
        outcome = make(np.random.default_rng([7, seed]))
        low, high = interval(outcome, replace(quick, seed=seed))
        middle, half = (low + high) / 2, (high - low) / 2
        held += low <= truth <= high, abs(truth - middle) <= 0.8 * half
    return held / n_sets


def of_subsets(rng):
    """Three subsets of other sizes and correlations, whose numbers are averaged."""
    pairs = [correlated(rng, n, rho) for n, rho in ((50, 0.9), (70, 0.5), (40, 0.7))]
    predicted, gold = (np.concatenate(lists) for lists in zip(*pairs, strict=True))
    groups = np.repeat([0, 1, 2], [50, 70, 40])
    return outcome_of("spearman", predicted, gold, groups=groups, group_names=("a", "b", "c"), aggregation="mean")


def clustered(rng, n=300, n_classes=15):
    classes = rng.integers(0, n_classes, n)
    return outcome_of("v_measure", np.where(rng.random(n) < 0.6, classes, rng.integers(0, n_classes, n)), classes)


SIMULATED = {
    "spearman": (
        lambda rng: outcome_of("spearman", *correlated(rng, 100, 0.9)),
        spearman_of_normals(0.9),
    ),
    "pearson": (lambda rng: outcome_of("pearson", *correlated(rng, 100, 0.5)), 50),
    "accuracy": (lambda rng: outcome_of("accuracy", rng.random(300) < 0.85, np.ones(300, dtype=bool)), 85),
    "skewed mean": (lambda rng: outcome_of("mean", rng.beta(0.3, 0.9, 200)), 25),
    "mean of subsets": (of_subsets, np.mean([spearman_of_normals(rho) for rho in (0.9, 0.5, 0.7)])),
}


@pytest.mark.parametrize("name", SIMULATED)
def test_intervals_hold_the_truth_as_often_as_they_say(name):
    as_is, shrunk = coverage(*SIMULATED[name])
    assert 0.92 <= as_is <= 0.975
    assert shrunk < 0.92


def test_intervals_of_v_measure_hold_its_mean_for_that_many_texts():
    values = [value_of(clustered(np.random.default_rng([8, seed]))) for seed in range(400)]
    as_is, shrunk = coverage(clustered, np.mean(values), quick=Resampling(n_resamples=100))
    assert 0.92 <= as_is <= 0.975
    assert shrunk < 0.92


def test_percentiles_of_resamples_would_not_hold_v_measure():
    """Why V-measure has a method of its own: a resample of the same texts looks better than the texts."""
    found = resample([clustered(np.random.default_rng(0), n=500, n_classes=20)], QUICK)[0]
    assert np.quantile(found.replicates, 0.025) > found.value


def test_intervals_are_scipys_bca():
    """On so skewed a sample that percentiles lie elsewhere, by a quarter of a standard error and more."""
    many = Resampling(n_resamples=20_000)
    values = np.random.default_rng(2).lognormal(size=40) / 10
    ours = interval(outcome_of("mean", values), many)
    bca, percentiles = (
        stats.bootstrap((values,), np.mean, n_resamples=20_000, method=method, rng=0)
        for method in ("BCa", "percentile")
    )
    error = 100 * bca.standard_error
    assert np.allclose(ours, 100 * np.array(bca.confidence_interval), atol=0.12 * error, rtol=0)
    assert (np.abs(np.array(ours) - 100 * np.array(percentiles.confidence_interval)) > 0.25 * error).all()


def test_an_interval_depends_on_the_seed_alone():
    outcome = outcome_of("spearman", *correlated(np.random.default_rng(0), 200, 0.5))
    assert interval(outcome, QUICK) == interval(outcome, QUICK) != interval(outcome, replace(QUICK, seed=1))
    wide, narrow = (interval(outcome, replace(QUICK, level=level)) for level in (0.99, 0.8))
    assert wide.low < narrow.low < value_of(outcome) < narrow.high < wide.high


def test_many_equal_items_are_drawn_as_few_cells_with_the_same_spread():
    right = (np.random.default_rng(0).random(200_000) < 0.8).astype(int)
    found = resample([outcome_of("mean", right)], QUICK)[0]
    assert found.replicates.std() == pytest.approx(100 * right.std() / math.sqrt(200_000), rel=0.15)
    first, cells = distinct_rows([right])
    assert len(first) == 2 and np.array_equal(right[first][cells], right)


def test_all_right_has_an_interval_too():
    low, high = interval(outcome_of("accuracy", np.ones(20), np.ones(20)))
    assert low == pytest.approx(100 * stats.binomtest(20, 20).proportion_ci(method="wilson").low)
    assert high == 100
    assert interval(outcome_of("mean", np.zeros(20))) == pytest.approx((0, 100 - low))
    parts = {"groups": np.repeat([0, 1], [5, 15]), "group_names": ("a", "b")}
    pooled = interval(outcome_of("mean", np.ones(20), **parts, aggregation="weighted mean"))
    assert pooled == pytest.approx((low, 100))
    assert interval(outcome_of("mean", np.ones(20), **parts, aggregation="mean")).low < low


def test_too_few_items_for_an_interval_are_refused_in_words():
    with pytest.raises(InputError, match="resamples have no value, because too few items differ"):
        interval(outcome_of("spearman", [1, 2, 3], [1, 3, 2]))
    with pytest.raises(InputError, match="n_resamples must be at least 100, got 10"):
        Resampling(n_resamples=10)
    with pytest.raises(InputError, match=r"level must be at least 0\.5 and below 1, got 95"):
        Resampling(level=95)


def test_williams_t_by_hand():
    """Gold 1, systems 2 and 3: r12 = 0.8, r13 = 0.6, r23 = 0.5, of 28 items.

    R = 1 - 0.64 - 0.36 - 0.25 + 2 * 0.8 * 0.6 * 0.5 = 0.23
    2 R (n - 1) / (n - 3) = 0.46 * 27 / 25 = 0.4968
    m^2 (1 - r23)^3 = 0.7^2 * 0.5^3 = 0.49 * 0.125 = 0.06125
    (n - 1) (1 + r23) = 27 * 1.5 = 40.5
    t = 0.2 * sqrt(40.5 / 0.55805) = 0.2 * sqrt(72.5742) = 0.2 * 8.51905 = 1.70381, 25 degrees of freedom
    """
    assert williams_t(0.8, 0.6, r23=0.5, n=28) == pytest.approx(1.70381, abs=1e-5)
    assert williams(0.8, 0.6, r23=0.5, n=28) == pytest.approx(2 * stats.t.sf(1.70381, 25), abs=1e-6)
    assert williams_t(0.6, 0.8, r23=0.5, n=28) == -williams_t(0.8, 0.6, r23=0.5, n=28)


# What the R packages psych (r.test) and cocor (williams1959) print for these correlations, which are rounded. The
# first is the example of psych's manual, after Steiger (1980); the cocor ones are from published analyses.
PRINTED = [
    ((0.4, 0.5, 0.1, 103), -0.89, 0.005),
    ((-0.11, 0.06, 0.41, 187), -2.15, 0.005),
    ((0.8066, 0.2383, 0.2255, 177), 9.3823, 0.002),
    ((0.5447, 0.8, 0.0729, 70), -2.8114, 0.002),
    ((-0.1741, 0.2015, 0.3734, 646), -9.0340, 0.002),
    ((0.7245, 0.7108, 0.8972, 15549), 5.5544, 0.02),
]


@pytest.mark.parametrize("correlations, printed, rounding", PRINTED)
def test_williams_t_is_that_of_other_software(correlations, printed, rounding):
    r12, r13, r23, n = correlations
    assert williams_t(r12, r13, r23=r23, n=n) == pytest.approx(printed, abs=rounding)
    assert williams(0.5447, 0.8, r23=0.0729, n=70) == pytest.approx(0.0065, abs=5e-5)


def test_williams_test_at_its_limits():
    assert williams(0.7, 0.7, r23=1.0, n=50) == 1
    assert williams(1.0, 0.5, r23=0.5, n=50) < 1e-6
    with pytest.raises(InputError, match=r"exact opposite of the other\. Is one a distance"):
        williams(0.7, -0.7, r23=-1.0, n=50)
    with pytest.raises(InputError, match="at least 4 items, got 3"):
        williams(0.7, 0.6, r23=0.5, n=3)


def test_mcnemar_is_the_binomial_test_of_the_items_that_differ():
    for n_left in range(25):
        for n_right in range(25 - n_left):
            if n_left + n_right:
                expected = stats.binomtest(n_left, n_left + n_right).pvalue
                assert mcnemar(n_left, n_right) == pytest.approx(expected)
    assert mcnemar(0, 0) == mcnemar(40, 40) == 1
    # (|150 - 86| - 1)^2 / (150 + 86) = 3969 / 236 = 16.82 with one degree of freedom
    assert mcnemar(150, 86) == pytest.approx(stats.chi2.sf(3969 / 236, 1))
    assert mcnemar(150, 86) == pytest.approx(stats.binomtest(86, 236).pvalue, rel=0.2)


def test_holm_by_hand():
    # sorted 0.005 * 4, 0.01 * 3, 0.03 * 2, 0.04 * 1, none below the one before it
    assert holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.03, 0.06, 0.06, 0.02])
    assert holm([0.6, 0.7]) == [1.0, 1.0]
    assert holm([]) == []


def two_systems(rng, statistic, n=100, gain=0.0):
    """Two systems whose errors are alike in part; with ``gain`` 0 they are equally good."""
    gold, shared, own, other = rng.normal(size=(4, n))
    left, right = gold + (1 - gain) * (shared + own), gold + shared + other
    if statistic == "accuracy":
        return [outcome_of("accuracy", each > 0, gold > 0) for each in (left, right)]
    return [outcome_of(statistic, each, gold) for each in (left, right)]


def rejections(statistic, test, gain=0.0, n_sets=300):
    """Shares of pairs of systems that a test, and the bootstrap, call different at 5 %."""
    found = [
        compare_outcomes(*two_systems(np.random.default_rng([9, seed]), statistic, gain=gain), resampling=QUICK)
        for seed in range(n_sets)
    ]
    by_test = np.mean([each.p_values[test] < 0.05 for each in found])
    by_bootstrap = np.mean([each.p_values["bootstrap"] < 0.05 for each in found])
    return by_test, by_bootstrap


@pytest.mark.parametrize("statistic", ["spearman", "pearson"])
def test_equal_systems_are_called_different_as_rarely_as_promised(statistic):
    for share in rejections(statistic, "williams"):
        assert 0.025 <= share <= 0.08


def test_equal_accuracies_are_called_different_as_rarely_as_promised():
    by_mcnemar, by_bootstrap = rejections("accuracy", "mcnemar")
    assert 0.005 <= by_mcnemar <= 0.06  # the exact test keeps below its level
    assert 0.025 <= by_bootstrap <= 0.08


def test_a_better_system_is_found():
    for share in rejections("spearman", "williams", gain=0.5, n_sets=50):
        assert share > 0.9


def test_a_comparison_in_words():
    worse, _ = two_systems(np.random.default_rng(3), "spearman")
    better = replace(worse, predicted=worse.gold + 0.5 * (worse.predicted - worse.gold))
    found = compare_outcomes(worse, better, names=("A", "B"), resampling=QUICK)
    assert found.left == pytest.approx(value_of(worse))
    assert found.difference == pytest.approx(found.left - found.right) and found.low < found.difference < found.high < 0
    sure = f"95 % interval {-found.high:.2f} to {-found.low:.2f}"
    assert found.verdict == (
        f"B is higher by {-found.difference:.2f} ({sure}); more than chance (Williams' test, p < 0.001)."
    )


def test_a_comparison_says_when_it_is_chance_or_on_the_edge():
    equal = compare_outcomes(*two_systems(np.random.default_rng(0), "spearman"), resampling=QUICK)
    assert "; could well be chance (Williams' test, p = 0." in equal.verdict
    torn = replace(equal, p_values={"williams": 0.04, "bootstrap": 0.06}, p=0.04, low=-1.0, high=3.0)
    assert torn.verdict.endswith("borderline (Williams' test, p = 0.040, but the interval includes 0).")
    torn = replace(torn, p=0.06, low=0.1)
    assert torn.verdict.endswith("but the interval does not include 0).")
    outcome = two_systems(np.random.default_rng(0), "spearman")[0]
    same = compare_outcomes(outcome, outcome, names=("A", "B"), resampling=QUICK)
    assert same.verdict == "A and B are equal (95 % interval 0.00 to 0.00)."
    assert same.p == 1


def test_each_statistic_is_tested_by_what_fits_it():
    rng = np.random.default_rng(4)

    def tests_of(statistic, **others):
        predicted, gold = samples(rng, statistic, 60)
        one = outcome_of(statistic, predicted, gold, **others)
        return set(compare_outcomes(one, replace(one, predicted=rng.permutation(predicted)), resampling=QUICK).p_values)

    parts = {"groups": np.repeat([0, 1], 30), "group_names": ("a", "b")}
    assert tests_of("spearman") == {"williams", "bootstrap"}
    assert tests_of("spearman", **parts, aggregation="mean") == {"bootstrap"}
    assert (
        tests_of("accuracy") == tests_of("accuracy", **parts, aggregation="weighted mean") == {"mcnemar", "bootstrap"}
    )
    assert tests_of("accuracy", **parts, aggregation="mean") == {"bootstrap"}
    assert tests_of("v_measure") == {"jackknife"}
    for statistic in ("mean", "f1", "average_precision"):
        assert tests_of(statistic) == {"bootstrap"}


def test_several_tasks_at_once_are_corrected_for():
    pairs = [two_systems(np.random.default_rng(seed), "spearman") for seed in range(4)]
    better = two_systems(np.random.default_rng(9), "spearman", gain=0.5)
    left, right = zip(*pairs, better, strict=True)
    found = compare_all(left, right, resampling=QUICK)
    alone = [each.p_values["williams"] for each in found]
    assert [each.p for each in found] == holm(alone)
    assert "more than chance (Williams' test" in found[-1].verdict
    assert "after Holm's correction for 5 tasks p" in found[-1].verdict
    near = replace(found[0], p_values={"williams": 0.02, "bootstrap": 0.02}, p=0.1)
    assert "; could be chance, as 5 tasks were compared (Williams' test, p = 0.020" in near.verdict
    with pytest.raises(InputError, match="left has 5 outcomes, but right has 4"):
        compare_all(left, right[:4])


def test_incomparable_results_are_not_compared():
    outcome = outcome_of("spearman", [1.0, 2, 3, 4], [1.0, 3, 2, 4])
    with pytest.raises(InputError, match="their task differs, 'task' and 'STS12'"):
        compare_outcomes(outcome, replace(outcome, task="STS12"))
    with pytest.raises(InputError, match="their protocol differs"):
        compare_outcomes(outcome, replace(outcome, protocol="Pearson"))
    with pytest.raises(InputError, match="their statistic differs, 'spearman' and 'pearson'"):
        compare_outcomes(outcome, replace(outcome, statistic="pearson"))
    with pytest.raises(InputError, match="one outcome has 4 items, the other 3"):
        compare_outcomes(outcome, outcome_of("spearman", [1.0, 2, 3], [1.0, 3, 2]))
    with pytest.raises(InputError, match="differ in gold"):
        compare_outcomes(outcome, replace(outcome, gold=outcome.gold[::-1]))
    with pytest.raises(InputError, match="differ in groups"):
        compare_outcomes(outcome, replace(outcome, groups=np.zeros(4, dtype=int)))


@pytest.mark.parametrize("statistic", ["pearson", "spearman"])
def test_the_p_value_is_the_level_at_which_the_interval_reaches_0(statistic):
    one, other = resample(two_systems(np.random.default_rng(5), statistic, gain=0.2), replace(QUICK, n_resamples=2000))
    found = one - other
    p = p_value_of(found)
    low, high = interval_of(found, level=1 - p)
    assert 0.001 < p < 0.5
    assert min(abs(low), abs(high)) < 0.05 * found.replicates.std()


def test_p_values_and_intervals_of_a_constant_difference():
    outcome = outcome_of("mean", np.repeat([1.0, 0.5], 30))
    one, other = resample([outcome, replace(outcome, predicted=outcome.predicted - 0.25)], QUICK)
    assert interval_of(one - other) == pytest.approx((25, 25))
    assert p_value_of(one - other) == pytest.approx(2 / 251)
    assert p_value_of(one - one) == 1
