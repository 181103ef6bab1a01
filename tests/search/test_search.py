"""The blocked, running searches against the obvious ones that make the whole matrix."""

import tracemalloc

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from twinvec.errors import InputError, UnknownNameError
from twinvec.search import exact, most_similar_pairs, search, top_k
from twinvec.search import pairs as mining
from twinvec.search.exact import best_order, by_query, first_thresholds
from twinvec.search.pairs import triangle_blocks
from twinvec.vectors import SIMILARITIES

# Small integers: products and sums are exact in float32, so ties are real ties in any block.
integers = st.integers(-3, 3)
patient = settings(deadline=None)


def matrices(width=3, max_rows=30, min_rows=0):
    shape = st.tuples(st.integers(min_rows, max_rows), st.just(width))
    return hnp.arrays(np.float32, shape, elements=integers)


def naive_order(scores):
    return np.argsort(-scores, axis=1, kind="stable")


def naive_pairs(vectors):
    """All pairs with their cosine in float64, best first, then by left and right."""
    rows = vectors.astype(np.float64)
    norms = np.linalg.norm(rows, axis=1, keepdims=True)
    rows = rows / np.where(norms == 0, 1, norms)
    scores = rows @ rows.T
    pairs = [(i, j) for i in range(len(rows)) for j in range(i + 1, len(rows))]
    return sorted(((float(scores[i, j]), i, j) for i, j in pairs), key=lambda p: (-p[0], p[1], p[2]))


@pytest.fixture(autouse=True)
def small_blocks(request, monkeypatch):
    if "full_blocks" in request.fixturenames:
        return
    monkeypatch.setattr(exact, "QUERY_ROWS", 4)
    monkeypatch.setattr(exact, "VECTOR_ROWS", 5)
    monkeypatch.setattr(mining, "BLOCK_ROWS", 4)


@pytest.fixture
def full_blocks():
    """The block sizes users get."""


@patient
@given(hnp.arrays(np.float32, hnp.array_shapes(min_dims=2, max_dims=2, max_side=12), elements=integers))
def test_top_k_is_the_start_of_a_stable_sort(scores):
    for k in (1, 2, scores.shape[1], scores.shape[1] + 3):
        hits = top_k(scores, k)
        assert np.array_equal(hits.ids, naive_order(scores)[:, :k])
        assert np.array_equal(hits.scores, np.take_along_axis(scores, hits.ids, axis=1))


@settings(max_examples=50, deadline=None)
@given(matrices(max_rows=9), matrices(), st.integers(1, 12))
@pytest.mark.parametrize("measure", ["dot", "manhattan"])
def test_blocked_search_equals_the_whole_matrix(measure, queries, vectors, k):
    scores = SIMILARITIES[measure](queries, vectors)
    hits = search(queries, vectors, k=k, similarity=measure)
    assert np.array_equal(hits.ids, naive_order(scores)[:, :k])


@pytest.mark.parametrize("measure", ["cosine", "euclidean"])
def test_search_finds_the_neighbors_of_every_measure(measure):
    rng = np.random.default_rng(0)
    queries, vectors = rng.normal(size=(11, 8)), rng.normal(size=(203, 8))
    scores = SIMILARITIES[measure](queries.astype(np.float32), vectors.astype(np.float32))
    hits = search(queries, vectors, k=7, similarity=measure)
    assert np.array_equal(hits.ids, naive_order(scores)[:, :7])
    np.testing.assert_allclose(hits.scores, -np.sort(-scores, axis=1)[:, :7], atol=1e-6)


def test_the_length_of_a_query_does_not_matter():
    rng = np.random.default_rng(1)
    queries, vectors = rng.normal(size=(5, 8)), rng.normal(size=(50, 8))
    assert np.array_equal(search(queries, vectors).ids, search(7 * queries, vectors).ids)


def test_one_query_without_a_batch_axis_gives_one_row():
    assert search([1.0, 0.0], [[0.0, 1.0], [1.0, 0.0]], k=5).ids.tolist() == [[1, 0]]


def test_vectors_may_be_a_memory_mapped_file(tmp_path):
    vectors = np.random.default_rng(2).normal(size=(40, 4)).astype(np.float32)
    np.save(tmp_path / "v.npy", vectors)
    mapped = np.load(tmp_path / "v.npy", mmap_mode="r")
    assert np.array_equal(search(vectors[:3], mapped, k=2).ids, search(vectors[:3], vectors, k=2).ids)


@patient
@given(matrices(width=2, max_rows=25), st.integers(1, 40))
def test_pairs_equal_those_of_the_whole_matrix(vectors, k):
    found, expected = most_similar_pairs(vectors, k), naive_pairs(vectors)[:k]
    # float32 blocks may order scores within 1e-6 of each other differently, so compare score by score
    np.testing.assert_allclose(found.scores, [score for score, _, _ in expected], atol=2e-6)
    assert np.all(found.left < found.right)
    assert len(set(zip(found.left.tolist(), found.right.tolist(), strict=True))) == len(expected)


def test_pairs_of_random_vectors_are_exactly_the_best_ones():
    vectors = np.random.default_rng(3).normal(size=(60, 8)).astype(np.float32)
    found, expected = most_similar_pairs(vectors, 50), naive_pairs(vectors)[:50]
    assert list(zip(found.left, found.right, strict=True)) == [(i, j) for _, i, j in expected]


def test_equal_rows_score_one_and_come_in_the_order_of_their_ids():
    vectors = np.repeat(np.random.default_rng(4).normal(size=(1, 7)), 6, axis=0)
    pairs = most_similar_pairs(vectors, 100)
    assert pairs.scores.tolist() == [1.0] * 15
    places = list(zip(pairs.left.tolist(), pairs.right.tolist(), strict=True))
    assert places == [(i, j) for i in range(6) for j in range(i + 1, 6)]


def test_a_threshold_keeps_only_pairs_at_least_that_near():
    vectors = np.random.default_rng(5).normal(size=(40, 4))
    pairs = most_similar_pairs(vectors, 10_000, threshold=0.5)
    assert len(pairs.scores) == sum(score >= 0.5 for score, _, _ in naive_pairs(vectors)) > 0
    assert most_similar_pairs(vectors, threshold=1.5).scores.shape == (0,)


@pytest.mark.parametrize("n", [0, 1])
def test_fewer_than_two_vectors_have_no_pairs(n):
    assert [len(part) for part in most_similar_pairs(np.ones((n, 3)))] == [0, 0, 0]


def test_no_vectors_and_no_queries_give_empty_hits():
    assert search(np.ones((2, 3)), np.ones((0, 3))).ids.shape == (2, 0)
    assert search(np.ones((0, 3)), np.ones((9, 3)), k=4).ids.shape == (0, 4)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: search(np.ones((1, 2)), np.ones((4, 3))), "width 2, but the vectors have width 3"),
        (lambda: search(np.ones((1, 2)), np.ones((4, 2)), k=0), "at least 1, got 0"),
        (lambda: search(np.ones((1, 2)), np.array([[0, np.nan]])), "Row 0 of vectors holds NaN"),
        (lambda: search(["a text"], np.ones((4, 2))), r"numbers of shape \(n, width\)"),
        (lambda: most_similar_pairs(np.ones(4)), r"got float64 of shape \(4,\)"),
        (lambda: most_similar_pairs(np.ones((4, 2)), 0), "k must be at least 1"),
    ],
)
def test_unusable_input_is_refused_with_a_reason(call, message):
    with pytest.raises(InputError, match=message):
        call()


def test_an_unknown_similarity_is_refused_with_a_guess():
    with pytest.raises(UnknownNameError, match="Did you mean 'cosine'"):
        search(np.ones((1, 2)), np.ones((1, 2)), similarity="cosin")


def test_all_pairs_of_ten_thousand_vectors_need_no_matrix_of_all(full_blocks):
    vectors = np.random.default_rng(6).normal(size=(10_000, 384)).astype(np.float32)
    vectors[7777] = vectors[42]
    tracemalloc.start()
    pairs = most_similar_pairs(vectors, 10)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert (pairs.left[0], pairs.right[0]) == (42, 7777)
    assert peak < 120e6  # the rows once more, and a block of scores; all scores would be 400 MB


def test_equal_rows_reach_a_threshold_of_one():
    rows = np.random.default_rng(0).standard_normal((40, 384)).astype(np.float32)
    pairs = most_similar_pairs(np.concatenate([rows, rows * 3]), k=1000, threshold=0.9999999)
    assert sorted(zip(pairs.left.tolist(), pairs.right.tolist(), strict=True)) == [(i, i + 40) for i in range(40)]


def test_a_threshold_that_is_not_a_number_is_refused():
    with pytest.raises(InputError, match="threshold must be a finite number, got nan"):
        most_similar_pairs(np.eye(3), threshold=float("nan"))


def exact_order(queries, vectors):
    """Ids by cosine in float64, rounded to float32 as scores are, then by id."""
    a, b = (each / np.linalg.norm(each, axis=1, keepdims=True) for each in (queries, vectors))
    return naive_order((a @ b.T).astype(np.float32))


@patient
@given(st.integers(1, 60), st.integers(1, 12), st.integers(0, 2**32 - 1))
def test_copies_of_a_vector_are_found_in_the_order_of_their_ids(n, k, seed):
    """Where a copy stands in its block decides how float32 rounds its score; that must not decide its place."""
    rng = np.random.default_rng(seed)
    rows = rng.normal(size=(5, 48)).astype(np.float32)
    vectors, queries = rows[rng.integers(5, size=n)], rng.normal(size=(3, 48)).astype(np.float32)
    hits = search(queries, vectors, k=k)
    assert np.array_equal(hits.ids, exact_order(queries.astype(np.float64), vectors.astype(np.float64))[:, :k])


def test_copies_in_blocks_of_the_usual_size_keep_their_order(full_blocks):
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(1500, 96)).astype(np.float32)
    vectors, queries = np.concatenate([rows] * 6), rng.normal(size=(200, 96)).astype(np.float32)
    hits = search(queries, vectors, k=20)
    assert np.array_equal(hits.ids, exact_order(queries.astype(np.float64), vectors.astype(np.float64))[:, :20])


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64, np.int8, np.uint8])
def test_vectors_may_have_any_type_of_number(dtype):
    vectors = np.random.default_rng(7).integers(0, 100, size=(30, 8))
    assert (
        search(vectors[:4], vectors.astype(dtype), k=3).ids.tolist() == search(vectors[:4], vectors, k=3).ids.tolist()
    )


@pytest.mark.parametrize("scale", [1e-30, 1e-12, 1e12, 1e30])
def test_neither_tiny_nor_huge_vectors_lose_their_direction(scale):
    vectors = np.random.default_rng(8).normal(size=(30, 8))
    scaled = (scale * vectors).astype(np.float32)
    assert np.array_equal(search(scaled[:5], scaled, k=4).ids, search(vectors[:5], vectors, k=4).ids)
    assert np.array_equal(most_similar_pairs(scaled, 9).right, most_similar_pairs(vectors, 9).right)


@pytest.mark.parametrize("call", [lambda v: search(v[:1], v), lambda v: most_similar_pairs(v)])
def test_a_row_that_is_not_finite_is_named_in_every_block(call):
    vectors = np.ones((23, 4), dtype=np.float32)
    vectors[17, 2] = np.inf
    with pytest.raises(InputError, match="Row 17 of vectors holds NaN or infinity"):
        call(vectors)


@patient
@given(st.integers(0, 40), st.integers(1, 9), st.integers(1, 9))
def test_the_blocks_of_the_triangle_hold_every_pair_once(n, n_rows, n_columns):
    seen = np.zeros((n, n), dtype=int)
    for block in triangle_blocks(n, n_rows, n_columns):
        part = seen[block.left, block.right]
        assert part.shape[0] <= n_rows and (part.shape[1] <= n_columns or block.is_diagonal)
        part += np.triu(np.ones(part.shape, dtype=int), 1) if block.is_diagonal else 1
    assert np.array_equal(seen, np.triu(np.ones((n, n), dtype=int), 1))


def test_a_threshold_guessed_too_high_loses_no_pair(monkeypatch):
    vectors = np.random.default_rng(9).normal(size=(60, 8))
    expected = most_similar_pairs(vectors, 50)
    monkeypatch.setattr(mining, "likely_floor", lambda rows, k: 0.99)
    assert all(np.array_equal(*both) for both in zip(most_similar_pairs(vectors, 50), expected, strict=True))


def test_the_guessed_threshold_admits_slightly_more_pairs_than_needed(full_blocks):
    rng = np.random.default_rng(10)
    rows = np.repeat(rng.normal(size=(50, 16)), 40, axis=0) + rng.normal(size=(2000, 16))  # sorted by topic
    rows = (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float32)
    floor = mining.likely_floor(rows, 20_000)
    assert 20_000 < len(most_similar_pairs(rows, None, threshold=floor).scores) < 40_000


def test_all_pairs_above_a_threshold_need_no_count():
    vectors = np.random.default_rng(11).normal(size=(50, 4))
    pairs = most_similar_pairs(vectors, None, threshold=0.7)
    expected = [(i, j) for score, i, j in naive_pairs(vectors) if score >= 0.7]
    assert list(zip(pairs.left.tolist(), pairs.right.tolist(), strict=True)) == expected
    with pytest.raises(InputError, match="Set k, threshold, or both"):
        most_similar_pairs(vectors, None)


@patient
@given(hnp.arrays(np.float32, st.integers(0, 30), elements=st.sampled_from([-2.0, -0.5, -0.0, 0.0, 1e-40, 0.5, 3.0])))
def test_sorting_scores_as_whole_numbers_is_a_stable_sort(scores):
    assert best_order(scores).tolist() == np.argsort(-scores, kind="stable").tolist()
    queries = np.arange(len(scores)) % 3
    assert by_query(queries, scores).tolist() == np.lexsort((-scores, queries)).tolist()


@patient
@given(hnp.arrays(np.float32, st.tuples(st.integers(1, 4), st.integers(1, 60)), elements=integers), st.data())
def test_at_least_k_scores_reach_the_first_threshold(scores, data):
    k = data.draw(st.integers(1, scores.shape[1]))
    assert ((scores >= first_thresholds(scores, k)[:, None]).sum(axis=1) >= k).all()


@pytest.mark.parity
def test_the_pairs_are_those_of_paraphrase_mining(full_blocks):
    util = pytest.importorskip("sentence_transformers.util")
    torch = pytest.importorskip("torch")
    vectors = np.random.default_rng(12).normal(size=(700, 16)).astype(np.float32)
    theirs = util.paraphrase_mining_embeddings(torch.tensor(vectors), max_pairs=5000, top_k=700)
    ours = most_similar_pairs(vectors, 5000)
    assert {(i, j) for _, i, j in theirs} == set(zip(ours.left.tolist(), ours.right.tolist(), strict=True))
    np.testing.assert_allclose(ours.scores, [score for score, _, _ in theirs], atol=1e-6)


def test_queries_beyond_one_block_are_all_answered(full_blocks):
    rng = np.random.default_rng(13)
    queries, vectors = rng.normal(size=(2500, 8)), rng.normal(size=(300, 8))
    assert np.array_equal(search(queries, vectors, k=3).ids, exact_order(queries, vectors)[:, :3])


def test_more_ties_than_can_be_kept_cost_neither_time_nor_memory(full_blocks):
    """Rounding gives copies scores that differ in the last bit, and all of them are as good as any."""
    vectors = np.repeat(np.random.default_rng(14).normal(size=(1, 64)), 9000, axis=0).astype(np.float32)
    hits = search(vectors[:70], vectors, k=5)
    assert hits.scores.tolist() == [[1.0] * 5] * 70
    assert all(len(set(row)) == 5 for row in hits.ids.tolist())
    tracemalloc.start()
    pairs = most_similar_pairs(vectors, 50)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert pairs.scores.tolist() == [1.0] * 50 and len(set(zip(*pairs[:2], strict=True))) == 50
    assert peak < 400e6  # a block of scores and of places; all pairs would take 800 MB


def test_settling_close_scores_takes_little_memory_however_large_k_is(full_blocks):
    draw = np.random.default_rng(5)
    vectors = (1 + 1e-5 * draw.normal(size=(2000, 512))).astype(np.float32)  # too close for float32
    queries = draw.normal(size=(100, 512)).astype(np.float32)
    tracemalloc.start()
    hits = search(queries, vectors, k=2000)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert np.array_equal(hits.ids, exact_order(queries.astype(np.float64), vectors.astype(np.float64)))
    assert peak < 200e6  # all 200,000 pairs in float64 take 1.6 GB
