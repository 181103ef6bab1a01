"""The model of the package keeps the quality that its page promises, in int8, on real data."""

from __future__ import annotations

from statistics import mean

import pytest

import twinvec
from twinvec.choices import TASK_GROUPS
from twinvec.evaluation.statistics import value_of
from twinvec.evaluation.tasks import load_task, run_retrieval, run_sts

LEAST_STS = 79.0  # all-MiniLM-L6-v2, which has half as many layers again: 78.94
LEAST_SHARE = 0.97  # of that model's nDCG@10


@pytest.fixture(scope="module")
def own():
    return twinvec.load(precision="int8", long="cut")


@pytest.mark.data
def test_similarity_is_no_worse_than_that_of_the_model_it_was_cut_from(own, data):
    outcomes = [run_sts(load_task(name, data), own.encode) for name in TASK_GROUPS["sts"]]
    assert mean(value_of(outcome) for (outcome,) in outcomes) >= LEAST_STS


@pytest.mark.weights
@pytest.mark.data
def test_long_texts_are_found_almost_as_well_as_by_the_model_it_was_cut_from(own, models, data):
    task = load_task("cranfield", data)
    whole = twinvec.load(models / "minilm", precision="int8", long="cut")
    ours, theirs = (_gain(run_retrieval(task, encoder.encode)) for encoder in (own, whole))
    assert ours >= LEAST_SHARE * theirs


def _gain(outcomes):
    (found,) = [outcome for outcome in outcomes if outcome.protocol.startswith("nDCG@10")]
    return value_of(found)
