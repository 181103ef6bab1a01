"""The models of the package keep the quality that their pages promise, in int8, on real data."""

from __future__ import annotations

from statistics import mean

import pytest

import twinvec
from twinvec.choices import KOREAN_MODEL, TASK_GROUPS
from twinvec.evaluation.statistics import value_of
from twinvec.evaluation.tasks import load_task, run_bitext, run_retrieval, run_sts

LEAST_STS = 80.8  # all-MiniLM-L6-v2, which has half as many layers again: 78.94
LEAST_SHARE = 0.97  # of that model's nDCG@10
LEAST_STATIC = {"sts": 76.0, "cranfield": 43.0}
LEAST_KOREAN = {"korsts": 75.5, "klue-sts": 77.0, "korsts-cross": 70.9}
LEAST_TRANSLATIONS = 84.5


@pytest.fixture(scope="module")
def own():
    return twinvec.load(precision="int8", long="cut")


@pytest.mark.data
def test_similarity_is_no_worse_than_that_of_the_model_it_was_cut_from(own, data):
    assert _sts_average(own, data) >= LEAST_STS


@pytest.mark.weights
@pytest.mark.data
def test_long_texts_are_found_almost_as_well_as_by_the_model_it_was_cut_from(own, models, data):
    task = load_task("cranfield", data)
    whole = twinvec.load(models / "minilm", precision="int8", long="cut")
    ours, theirs = (_gain(run_retrieval(task, encoder.encode)) for encoder in (own, whole))
    assert ours >= LEAST_SHARE * theirs


@pytest.mark.data
def test_a_table_of_token_vectors_is_good_enough_where_only_speed_matters(data):
    encoder = twinvec.load("twinvec-static")
    assert _sts_average(encoder, data) >= LEAST_STATIC["sts"]
    assert _gain(run_retrieval(load_task("cranfield", data), encoder.encode)) >= LEAST_STATIC["cranfield"]


@pytest.fixture(scope="module")
def korean():
    return twinvec.load(KOREAN_MODEL, precision="int8")


@pytest.mark.data
@pytest.mark.parametrize("name", LEAST_KOREAN)
def test_korean_similarity(korean, data, name):
    (outcome,) = run_sts(load_task(name, data), korean.encode)
    assert value_of(outcome) >= LEAST_KOREAN[name]


@pytest.mark.data
def test_translations_are_found(korean, data):
    outcomes = run_bitext(load_task("tatoeba-ko", data), korean.encode)
    assert min(map(value_of, outcomes)) >= LEAST_TRANSLATIONS


def _sts_average(encoder, data):
    outcomes = [run_sts(load_task(name, data), encoder.encode) for name in TASK_GROUPS["sts"]]
    return mean(value_of(outcome) for (outcome,) in outcomes)


def _gain(outcomes):
    (found,) = [outcome for outcome in outcomes if outcome.protocol.startswith("nDCG@10")]
    return value_of(found)
