"""Batches: every row once, those that share a text together, the same for the same seed."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

pytest.importorskip("torch", reason="training needs the extra 'train'")

from twinvec.training.batches import SampledSet, n_batches, plan_epoch, shuffled_batches
from twinvec.training.processes import Processes
from twinvec.training.recipe import TrainSettings, learning_rate


@given(st.lists(st.tuples(st.integers(1, 60), st.integers(0, 9)), min_size=1, max_size=200), st.integers(1, 20))
def test_every_row_is_planned_once(rows, batch_size):
    lengths, groups = (np.array(each) for each in zip(*rows, strict=True))
    batches = shuffled_batches(SampledSet(lengths, groups), batch_size, np.random.default_rng(0))
    assert sorted(np.concatenate(batches).tolist()) == list(range(len(rows)))
    assert sum(len(batch) < batch_size for batch in batches) <= 1
    assert max(len(batch) for batch in batches) <= batch_size


def test_rows_that_share_a_text_share_a_batch():
    groups = np.repeat(np.arange(400), 3)
    data = SampledSet(np.random.default_rng(1).integers(5, 40, 1200), np.random.default_rng(2).permutation(groups))
    batches = shuffled_batches(data, 16, np.random.default_rng(0))
    n_texts = sum(len(np.unique(data.groups[batch])) for batch in batches)
    assert n_texts < 1.2 * 400  # at best each text once; a batch's end may part a group


def test_a_text_that_is_in_all_rows_does_not_fill_a_batch():
    groups = np.array([0] * 64 + list(range(1, 193)))
    data = SampledSet(np.full(256, 9), groups)
    batches = shuffled_batches(data, 16, np.random.default_rng(3))
    assert max((data.groups[batch] == 0).sum() for batch in batches) < 16


def test_batches_hold_rows_of_like_length():
    lengths = np.random.default_rng(0).integers(5, 100, 4000)
    batches = shuffled_batches(SampledSet(lengths), 16, np.random.default_rng(0))
    padded = sum(lengths[batch].max() * len(batch) for batch in batches)
    assert padded < 1.1 * lengths.sum()
    assert np.corrcoef(np.arange(len(batches)), [lengths[batch].mean() for batch in batches])[0, 1] < 0.2


@given(st.integers(0, 5), st.integers(0, 3), st.sampled_from(["proportional", "in turn"]))
def test_a_plan_follows_from_seed_and_epoch(seed, epoch, mixing):
    sets = [SampledSet(np.arange(1, 50)), SampledSet(np.arange(1, 20), share=2.0)]
    one, other = (plan_epoch(sets, 8, mixing=mixing, seed=seed, epoch=epoch) for _ in range(2))
    assert len(one) == n_batches(sets, 8, mixing)
    assert all(a.data_set == b.data_set and np.array_equal(a.rows, b.rows) for a, b in zip(one, other, strict=True))
    third = plan_epoch(sets, 8, mixing=mixing, seed=seed, epoch=epoch + 1)
    assert any(not np.array_equal(a.rows, b.rows) for a, b in zip(one, third, strict=True))


def test_in_turn_repeats_the_smaller_set_and_in_proportion_does_not():
    sets = [SampledSet(np.ones(80, dtype=int)), SampledSet(np.ones(16, dtype=int))]
    turns = [batch.data_set for batch in plan_epoch(sets, 8, mixing="in turn")]
    assert turns == [0, 1] * 10
    mixed = plan_epoch(sets, 8, mixing="proportional")
    assert sorted(batch.data_set for batch in mixed) == [0] * 10 + [1] * 2
    seen = np.concatenate([batch.rows for batch in mixed if batch.data_set == 1])
    assert sorted(seen.tolist()) == list(range(16))


def test_a_share_of_two_uses_every_row_twice():
    plan = plan_epoch([SampledSet(np.ones(24, dtype=int), share=2.0)], 8)
    assert np.bincount(np.concatenate([batch.rows for batch in plan])).tolist() == [2] * 24


@given(st.lists(st.integers(1, 100), max_size=40), st.integers(1, 5))
def test_every_text_is_encoded_by_one_process(lengths, count):
    shares = [Processes(rank, count).share(np.array(lengths, dtype=int)) for rank in range(count)]
    assert sorted(np.concatenate(shares).tolist()) == list(range(len(lengths)))
    assert max(map(len, shares)) - min(map(len, shares)) <= 1


@given(st.integers(1, 300), st.floats(0, 1))
def test_the_rate_rises_then_falls_and_is_never_zero(n_steps, warmup):
    settings = TrainSettings(learning_rate=1e-3, warmup=warmup)
    rates = [learning_rate(step, n_steps, settings) for step in range(n_steps)]
    top = int(np.argmax(rates))
    assert all(0 < rate <= 1e-3 for rate in rates)
    assert rates[: top + 1] == sorted(rates[: top + 1]) and rates[top:] == sorted(rates[top:], reverse=True)
