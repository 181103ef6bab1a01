"""Numbers and shards: every text once, every row somewhere, and the same after any interruption."""

from __future__ import annotations

import sys
import tracemalloc
from itertools import islice

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from twinvec.bulk import plan as lookup_module
from twinvec.bulk.plan import BYTES_PER_TEXT, Lookup, Planner, ShardLimits, free_ranges, keys_of

TEXTS = st.lists(st.text(alphabet="abc", max_size=4), max_size=60)
QUICK = settings(max_examples=40, deadline=None)
LIMITS = st.builds(ShardLimits, rows=st.integers(1, 9), characters=st.integers(1, 20))


def planned(texts, limits, kept=(), block=7, memory_bytes=1 << 20, scratch=None):
    """Shards by their start, and every row's number; ``kept`` are the shards that are there already."""
    lookup = Lookup(scratch, memory_bytes)
    for shard in kept:
        lookup.add(shard.keys, np.arange(shard.start, shard.start + len(shard.texts)))
    planner = Planner(lookup, [range(shard.start, shard.start + len(shard.texts)) for shard in kept], limits)
    shards, numbers = list(kept), []
    for start in range(0, len(texts), block):
        given_numbers, filled = planner.take(texts[start : start + block])
        numbers.extend(given_numbers.tolist())
        shards.extend(filled)
    shards.extend(planner.rest())
    return {shard.start: shard.texts for shard in shards}, numbers, shards


@QUICK
@given(TEXTS, LIMITS, st.integers(1, 20))
def test_every_text_is_in_exactly_one_shard_and_every_row_finds_its_own(texts, limits, block):
    by_start, numbers, _ = planned(texts, limits, block=block)
    stored = {start + i: text for start, part in by_start.items() for i, text in enumerate(part)}
    assert sorted(stored.values()) == sorted(set(texts))
    assert sorted(stored) == list(range(len(set(texts))))
    assert [stored[number] for number in numbers] == texts
    assert list(stored[number] for number in sorted(stored)) == list(dict.fromkeys(texts))


@QUICK
@given(TEXTS, LIMITS)
def test_a_shard_ends_when_it_is_full_and_not_before(texts, limits):
    by_start, _, _ = planned(texts, limits)
    for start, part in by_start.items():
        assert len(part) <= limits.rows
        assert sum(map(len, part[:-1])) < limits.characters
        if start != max(by_start):
            assert len(part) == limits.rows or sum(map(len, part)) >= limits.characters


@QUICK
@given(TEXTS, LIMITS, st.integers(1, 20), st.data())
def test_a_plan_is_the_same_whichever_shards_exist(texts, limits, block, data):
    by_start, numbers, shards = planned(texts, limits)
    kept = [shard for shard in shards if data.draw(st.booleans())]
    assert planned(texts, limits, kept, block=block)[:2] == (by_start, numbers)


@QUICK
@given(TEXTS, TEXTS, LIMITS)
def test_a_changed_source_adds_only_texts_that_are_not_there(old, new, limits):
    before, _, shards = planned(old, limits)
    after, numbers, _ = planned(new, limits, shards)
    assert {start: after[start] for start in before} == before
    added = [text for start, part in after.items() if start not in before for text in part]
    assert sorted(added) == sorted(set(new) - set(old))
    stored = {start + i: text for start, part in after.items() for i, text in enumerate(part)}
    assert [stored[number] for number in numbers] == new


@QUICK
@given(st.lists(st.integers(1, 5), max_size=8), st.data())
def test_free_ranges_and_shards_together_hold_every_number_once(sizes, data):
    starts = np.cumsum([0, *sizes])
    spans = [range(int(start), int(start) + size) for start, size in zip(starts, sizes, strict=False)]
    taken = data.draw(st.permutations([span for span in spans if data.draw(st.booleans())]))
    free = list(free_ranges(taken))
    assert free[-1].stop == sys.maxsize
    held = [number for span in taken for number in span]
    held += [number for span in free for number in islice(span, 50) if number < starts[-1] + 1]
    assert sorted(held) == list(range(int(starts[-1]) + 1))


@QUICK
@given(st.lists(st.integers(0, 300), max_size=400, unique=True), st.integers(0, 4000), st.integers(1, 40))
def test_the_lookup_finds_what_was_added_and_nothing_else(tmp_path_factory, wanted, memory_bytes, block):
    texts = [str(number) for number in wanted]
    lookup = Lookup(tmp_path_factory.getbasetemp(), memory_bytes)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(lookup_module, "PIECE_TEXTS", 5)
        for start in range(0, len(texts), block):
            lookup.add(keys_of(texts[start : start + block]), np.array(wanted[start : start + block]))
    assert len(lookup) == len(texts)
    asked = [str(number) for number in range(301)]
    assert lookup.find(keys_of(asked)).tolist() == [number if number in set(wanted) else -1 for number in range(301)]


def test_a_key_may_end_in_zero_bytes(tmp_path):
    keys = np.frombuffer(b"\0" * 16 + b"a" + b"\0" * 15 + b"a" * 16, dtype="S16")
    lookup = Lookup(tmp_path, 0)
    lookup.add(keys, np.arange(3))
    assert lookup.find(keys[::-1]).tolist() == [2, 1, 0]


def test_the_lookup_stays_within_its_memory_and_leaves_no_files(tmp_path):
    n, allowed = 200_000, 1 << 19
    rng = np.random.default_rng(0)
    lookup = Lookup(tmp_path, allowed)
    tracemalloc.start()
    try:
        for start in range(0, n, 4096):
            size = min(4096, n - start)
            lookup.add(np.frombuffer(rng.bytes(16 * size), dtype="S16"), np.arange(start, start + size))
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert len(lookup) == n and n * BYTES_PER_TEXT > 8 * allowed
    assert lookup.memory_bytes <= allowed
    assert peak < allowed + 8 * lookup_module.PIECE_TEXTS * BYTES_PER_TEXT  # what is merged at once
    assert list(tmp_path.iterdir()) == []
