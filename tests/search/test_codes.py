"""Vectors in fewer bits: what their scores are, and that exact scores bring the right neighbours back."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from twinvec.errors import InputError, UnknownNameError
from twinvec.search import Codes, codes, encode_codes, search, search_codes
from twinvec.vectors import quantize_vectors, unit_rows

rng = np.random.default_rng(0)
CENTERS = rng.normal(size=(40, 96))
VECTORS = (CENTERS[rng.integers(40, size=3000)] + 0.7 * rng.normal(size=(3000, 96))).astype(np.float32)
QUERIES = VECTORS[::100] + 0.3 * rng.normal(size=(30, 96)).astype(np.float32)


def recall(found, k=10):
    exact = search(QUERIES, VECTORS, k=k).ids
    return np.mean([len(set(a) & set(b)) / k for a, b in zip(found.ids.tolist(), exact.tolist(), strict=True)])


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch):
    monkeypatch.setattr(codes, "BLOCK_ROWS", 700)
    monkeypatch.setattr(codes, "QUERY_ROWS", 13)


def test_int8_codes_lose_little_and_exact_scores_bring_all_back():
    stored = encode_codes(VECTORS, "int8")
    assert stored.values.nbytes == VECTORS.nbytes / 4
    assert recall(search_codes(QUERIES, stored)) > 0.97
    found = search_codes(QUERIES, stored, vectors=VECTORS)
    assert np.array_equal(found.ids, search(QUERIES, VECTORS).ids)
    np.testing.assert_allclose(found.scores, search(QUERIES, VECTORS).scores, atol=1e-6)


def test_sign_bits_find_most_neighbors_once_candidates_are_scored_exactly():
    stored = encode_codes(VECTORS, "binary")
    assert stored.values.nbytes == VECTORS.nbytes / 32
    plain, again = search_codes(QUERIES, stored), search_codes(QUERIES, stored, vectors=VECTORS, oversample=10)
    assert recall(plain) < recall(again) > 0.97


def test_scores_of_sign_bits_are_cosines_of_the_signs():
    signs = np.where(VECTORS > 0, 1.0, -1.0)
    asked = np.where(QUERIES > 0, 1.0, -1.0)
    found, expected = search_codes(QUERIES, encode_codes(VECTORS, "binary"), k=25), search(asked, signs, k=25)
    assert np.array_equal(found.ids, expected.ids)
    np.testing.assert_allclose(found.scores, expected.scores, atol=1e-6)


def test_the_bits_of_embed_as_ubinary_can_be_searched_as_they_are():
    packed = quantize_vectors(unit_rows(VECTORS), "ubinary")
    found = search_codes(QUERIES, Codes("binary", packed, 96))
    assert np.array_equal(found.ids, search_codes(QUERIES, encode_codes(VECTORS, "binary")).ids)


@pytest.mark.parametrize("width", [1, 7, 8, 63, 65])
@pytest.mark.parametrize("kind", ["int8", "binary"])
def test_any_width_works(kind, width):
    rows = np.random.default_rng(width).normal(size=(20, width))
    found = search_codes(rows, encode_codes(rows, kind), k=20, vectors=rows)
    assert np.array_equal(found.ids, search(rows, rows, k=20).ids)


@settings(deadline=None)
@given(st.lists(st.integers(0, 2**64 - 1), min_size=1, max_size=20))
def test_counting_bits_without_numpy_2_gives_the_same(numbers):
    words = np.array(numbers, dtype=np.uint64)
    table = codes._bit_table()[words.view(np.uint16)].reshape(-1, 4).sum(axis=1)
    assert table.tolist() == [number.bit_count() for number in numbers] == codes.count_bits(words).tolist()


def test_zero_rows_and_empty_input_work():
    stored = encode_codes(np.zeros((2, 8)), "int8")
    assert search_codes(np.ones(8), stored, k=5).scores.tolist() == [[0.0, 0.0]]
    for kind in ("int8", "binary"):
        assert search_codes(np.ones((3, 8)), encode_codes(np.empty((0, 8)), kind)).ids.shape == (3, 0)
        assert search_codes(np.ones((0, 8)), encode_codes(np.ones((4, 8)), kind)).ids.shape == (0, 4)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda c: search_codes(np.ones((1, 5)), c), "width 5, but the vectors have width 96"),
        (lambda c: search_codes(QUERIES, c, k=0), "at least 1, got 0"),
        (lambda c: search_codes(QUERIES, c, vectors=VECTORS[:5]), "5 vectors for 3000 codes"),
        (lambda c: encode_codes([[1.0, np.nan]], "int8"), "Row 0 of vectors holds NaN"),
        (lambda c: Codes("int8", np.ones((2, 3)), 3), "int8 of shape"),
        (lambda c: Codes("int8", np.ones((2, 3), dtype=np.int8), 3), "need a step size for every row"),
    ],
)
def test_unusable_codes_are_refused_with_a_reason(call, message):
    with pytest.raises(InputError, match=message):
        call(encode_codes(VECTORS, "int8"))


def test_an_unknown_kind_of_codes_is_refused_with_a_guess():
    with pytest.raises(UnknownNameError, match="Did you mean 'int8'"):
        encode_codes(VECTORS, "int4")
