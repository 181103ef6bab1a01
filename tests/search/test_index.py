"""Every kind of index keeps the same promises; approximate ones reach a recall that is measured, not assumed."""

import json
from dataclasses import replace

import numpy as np
import pytest
from click.testing import CliRunner
from hypothesis import given, settings
from hypothesis import strategies as st

import twinvec
from fakes import replace_models
from twinvec.cli import main
from twinvec.errors import InputError, UnknownNameError
from twinvec.search import (
    IndexSettings,
    approximate_duplicates,
    approximate_pairs,
    build_index,
    choose_index,
    duplicate_rows,
    fill_index,
    load_index,
    measure_recall,
    most_similar_pairs,
    new_index,
    pairs_above,
    save_index,
    search,
    search_index,
    tune_effort,
)
from twinvec.search import approximate as building
from twinvec.search.index import MOST_CELLS, index_bytes
from twinvec.search.texts import pair_index

pytest.importorskip("faiss")

rng = np.random.default_rng(0)
WIDTH = 32
CENTERS = rng.normal(size=(60, WIDTH))
VECTORS = (CENTERS[rng.integers(60, size=6000)] + 0.5 * rng.normal(size=(6000, WIDTH))).astype(np.float32)
QUERIES = VECTORS[::100] + 0.1 * rng.normal(size=(60, WIDTH)).astype(np.float32)
TRUTH = search(QUERIES, VECTORS).ids

# kind -> settings, and the least recall@10 without and with exact scoring
KINDS = {
    "exact": (IndexSettings("exact"), 1.0, 1.0),
    "flat": (IndexSettings("flat"), 1.0, 1.0),
    "hnsw": (IndexSettings("hnsw"), 0.98, 0.98),
    "ivf-sq8": (IndexSettings("ivf-sq8", n_cells=64, effort=16), 0.9, 0.98),
    "ivf-pq": (IndexSettings("ivf-pq", n_cells=64, effort=16, code_bytes=8, oversample=20), 0.3, 0.97),
}


@pytest.fixture(scope="module", params=KINDS)
def case(request):
    chosen, raw, rescored = KINDS[request.param]
    return build_index(VECTORS, chosen, progress=False), raw, rescored


def test_recall_is_as_good_as_the_kind_promises(case):
    index, raw, rescored = case
    measured = measure_recall(index, QUERIES, VECTORS, truth=TRUTH)
    assert measured.raw >= raw and measured.rescored >= rescored
    assert measured.query_ms > 0 and f"recall@10 {measured.rescored:.3f}" in measured.describe()


def test_scores_after_exact_scoring_are_the_cosines(case):
    index, _, _ = case
    hits = search_index(index, QUERIES, k=5, vectors=VECTORS)
    cosines = np.take_along_axis(twinvec.similarity(QUERIES, VECTORS), hits.ids, axis=1)
    np.testing.assert_allclose(hits.scores, cosines, atol=1e-6)
    assert (np.diff(hits.scores, axis=1) <= 0).all()


def test_the_length_of_queries_and_vectors_does_not_matter(case):
    index, _, _ = case
    longer = build_index(7 * VECTORS, index.settings, progress=False)
    assert np.array_equal(index.search(QUERIES[:5]).ids, longer.search(3 * QUERIES[:5]).ids)


def test_saved_and_loaded_it_finds_the_same(case, tmp_path):
    index, _, _ = case
    save_index(index, tmp_path / "index")
    loaded = load_index(tmp_path / "index")
    assert (loaded.settings, loaded.width, len(loaded)) == (index.settings, WIDTH, 6000)
    assert np.array_equal(loaded.search(QUERIES).ids, index.search(QUERIES).ids)
    with pytest.raises(InputError, match="exists already"):
        save_index(index, tmp_path / "index")
    save_index(index, tmp_path / "index", replace=True)


def test_a_loaded_index_takes_more_vectors(case, tmp_path):
    index, _, _ = case
    save_index(index, tmp_path / "index")
    loaded = load_index(tmp_path / "index")
    loaded.add(10 * VECTORS[:1])
    assert len(loaded) == 6001 and {0, 6000} <= set(loaded.search(VECTORS[:1], 20).ids[0])


def test_k_larger_than_the_number_of_vectors_returns_all(case):
    index, _, _ = case
    some = build_index(VECTORS[:200], replace(index.settings, n_cells=2, effort=200), progress=False)
    hits = search_index(some, QUERIES[0], k=500, vectors=VECTORS[:200])
    assert hits.ids.shape == (1, 200) and sorted(hits.ids[0]) == list(range(200))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda index: search_index(index, np.ones(5)), f"width 5, but the vectors have width {WIDTH}"),
        (lambda index: search_index(index, QUERIES, k=0), "at least 1, got 0"),
        (lambda index: search_index(index, QUERIES * np.nan), "holds NaN"),
        (lambda index: index.add(np.ones((2, 5))), "width 5"),
        (lambda index: index.add(np.full((2, WIDTH), np.nan)), "Row 0 of vectors holds NaN"),
        (lambda index: measure_recall(index, np.empty((0, WIDTH)), VECTORS), "at least one query"),
    ],
)
def test_unusable_input_is_refused_and_nothing_is_added(case, call, message):
    index, _, _ = case
    with pytest.raises(InputError, match=message):
        call(index)
    assert len(index) == 6000


def test_vectors_of_another_index_are_refused(case):
    index, _, _ = case
    for call in (
        lambda: search_index(index, QUERIES, vectors=VECTORS[:5]),
        lambda: pairs_above(VECTORS[:5], 0.5, index=index),
        lambda: measure_recall(index, QUERIES, VECTORS[:5]),
    ):
        with pytest.raises(InputError, match="has 6000 vectors, but 5 were passed"):
            call()


def test_a_disk_that_is_full_leaves_no_index_and_keeps_the_old_one(case, tmp_path, monkeypatch):
    index, _, _ = case
    save_index(index, tmp_path / "index")

    def write(folder):
        (folder / "half").write_bytes(b"...")
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(index, "write", write)
    for name in ("index", "new"):
        with pytest.raises(InputError, match=r"No space left on device.* Check the disk space"):
            save_index(index, tmp_path / name, replace=True)
    assert [path.name for path in tmp_path.iterdir()] == ["index"] and len(load_index(tmp_path / "index")) == 6000


@pytest.mark.parametrize("facts", [{"settings": {"kind": "exact"}}, {"width": 3}, {"settings": {"knd": "exact"}}])
def test_settings_that_are_damaged_or_of_a_later_version_are_refused(tmp_path, facts):
    (tmp_path / "index.json").write_text(json.dumps(facts))
    with pytest.raises(InputError, match=r"index\.json.* (lacks|has|is) .*Rebuild the index"):
        load_index(tmp_path)


def test_an_empty_corpus_has_neither_pairs_nor_duplicates():
    nothing = np.empty((0, WIDTH))
    assert len(build_index(nothing, progress=False)) == 0
    assert len(approximate_pairs(nothing).left) == len(pairs_above(nothing, 0.5).left) == 0
    assert len(approximate_duplicates(nothing).kept) == 0
    with pytest.raises(InputError, match="per_text must be at least 1, got 0"):
        approximate_pairs(VECTORS[:9], per_text=0)


@pytest.mark.parametrize("kind", KINDS)
def test_no_vectors_make_an_index_that_finds_nothing(kind):
    index = new_index(replace(KINDS[kind][0], n_cells=1), WIDTH)
    assert len(index) == 0 and search_index(index, QUERIES[:2]).ids.shape == (2, 0)


class Generated:
    """Vectors that are made when asked for, and count how many at most were asked for at once."""

    shape = (6000, WIDTH)

    def __init__(self):
        self.most = 0

    def __getitem__(self, rows):
        self.most = max(self.most, rows.stop - rows.start)
        return VECTORS[rows].copy()


@pytest.mark.parametrize("dtype", [np.float16, np.float32])
def test_vectors_larger_than_memory_are_read_in_blocks(tmp_path, monkeypatch, dtype):
    monkeypatch.setattr(building, "BLOCK_ROWS", 500)
    monkeypatch.setattr(building, "sample_size", lambda settings, n: 4000)
    source = Generated()
    index = build_index(source, KINDS["ivf-pq"][0], progress=False)
    assert source.most == 500
    np.save(tmp_path / "v.npy", VECTORS.astype(dtype))
    mapped = np.load(tmp_path / "v.npy", mmap_mode="r")
    hits = search_index(index, QUERIES, vectors=mapped)
    assert np.mean([len(set(a) & set(b)) for a, b in zip(hits.ids, TRUTH, strict=True)]) > 9.5


def test_a_build_that_was_stopped_is_continued_as_if_it_had_not_been(case, tmp_path, monkeypatch):
    whole, _, _ = case
    monkeypatch.setattr(building, "BLOCK_ROWS", 500)
    index = new_index(whole.settings, WIDTH)
    if not index.is_trained:
        index.train(VECTORS)
    fill_index(index, VECTORS, stop=2300, progress=False)
    assert len(index) == 2300
    save_index(index, tmp_path / "index")
    continued = load_index(tmp_path / "index")
    fill_index(continued, Generated(), progress=False)
    assert len(continued) == 6000
    fill_index(continued, VECTORS, progress=False)  # there is nothing left to add
    assert len(continued) == 6000
    both = zip(whole.search(QUERIES).ids, continued.search(QUERIES).ids, strict=True)
    shared = [len(set(a) & set(b)) for a, b in both]
    assert np.mean(shared) > (9.8 if whole.settings.kind == "hnsw" else 9.99)  # threads link a graph in any order
    with pytest.raises(InputError, match="already has 6000 vectors, but only 10 were passed"):
        fill_index(continued, VECTORS[:10])


def test_a_sample_is_read_in_pieces_from_all_over():
    sample = building.sample_rows(np.arange(10_000)[:, None], 1000)
    assert len(sample) == 1000 and sample.min() == 0 and sample.max() > 9900
    assert len(building.sample_rows(VECTORS, 10**6)) == 6000


def test_many_cells_are_learnt_in_two_levels_and_found_by_a_graph(monkeypatch):
    monkeypatch.setattr("twinvec.search.faiss.CELLS_OF_A_LIST", 16)
    index = build_index(VECTORS, IndexSettings("ivf-sq8", n_cells=64, effort=16), progress=False)
    assert measure_recall(index, QUERIES, VECTORS, truth=TRUTH).rescored > 0.97


def test_effort_is_raised_until_the_recall_is_reached():
    index = build_index(VECTORS, IndexSettings("ivf-sq8", n_cells=64, effort=1), progress=False)
    before = measure_recall(index, QUERIES, VECTORS, truth=TRUTH).rescored
    reached = tune_effort(index, QUERIES, VECTORS, recall=0.995)
    assert before < 0.995 <= reached.rescored and index.settings.effort > 1


@settings(deadline=None)
@given(st.integers(0, 10**9), st.integers(1, 2000), st.none() | st.integers(10**7, 10**11))
def test_a_choice_keeps_within_the_memory_or_says_what_is_needed(n, width, max_memory):
    try:
        chosen = choose_index(n, width, max_memory)
    except InputError as error:
        assert max_memory is not None and "needs at least" in str(error)
        return
    assert max_memory is None or index_bytes(chosen, n, width) <= max_memory
    assert 1 <= chosen.n_cells <= MOST_CELLS and chosen.describe()
    if chosen.kind == "ivf-pq":
        assert width % (2 * chosen.code_bytes) == 0


def test_forty_million_vectors_fit_into_sixteen_gigabytes():
    chosen = choose_index(40_000_000, 384, 16 * 2**30)
    assert chosen.kind == "ivf-pq" and index_bytes(chosen, 40_000_000, 384) < 16 * 2**30
    assert chosen.describe().startswith("16,384 cells (IVF)")


def test_an_index_by_the_neighbors_finds_nearly_all_pairs():
    exact = most_similar_pairs(VECTORS, 2000)
    index = build_index(VECTORS, KINDS["hnsw"][0], progress=False)
    found = approximate_pairs(VECTORS, 2000, per_text=20, index=index)
    both = set(zip(*exact[:2], strict=True)) & set(zip(*found[:2], strict=True))
    assert len(both) > 0.97 * 2000
    np.testing.assert_allclose(
        found.scores, twinvec.similarity_pairwise(VECTORS[found.left], VECTORS[found.right]), atol=1e-6
    )


def test_rows_with_many_likes_are_searched_deeper():
    copies = np.repeat(VECTORS[:3], 90, axis=0) + 1e-4 * rng.normal(size=(270, WIDTH)).astype(np.float32)
    rows = np.concatenate([copies, VECTORS[:2000]])
    index = build_index(rows, KINDS["hnsw"][0], progress=False)
    exact, found = most_similar_pairs(rows, None, threshold=0.99), pairs_above(rows, 0.99, index=index)
    assert len(exact.scores) > 3 * 90 * 89 / 2 and len(found.scores) > 0.99 * len(exact.scores)
    duplicates = approximate_duplicates(rows, 0.99, index=index)
    assert duplicates.kept.tolist() == duplicate_rows(rows, 0.99).kept.tolist()


def test_without_an_index_one_is_built():
    assert approximate_pairs(VECTORS[:300], 5).scores.tolist() == most_similar_pairs(VECTORS[:300], 5).scores.tolist()


def test_too_many_pairs_are_refused(monkeypatch):
    monkeypatch.setattr("twinvec.search.approximate.MOST_PAIRS", 10)
    with pytest.raises(InputError, match="More than 10 pairs"):
        pairs_above(np.ones((50, 4)), 0.5)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda path: IndexSettings("hnsw", effort=0), "effort must be at least 1"),
        (lambda path: new_index(IndexSettings("ivf-pq", code_bytes=5), WIDTH), "divisible by 10"),
        (lambda path: new_index(IndexSettings("ivf-sq8", n_cells=9), WIDTH).add(VECTORS), "must be trained"),
        (
            lambda path: new_index(IndexSettings("ivf-sq8", n_cells=9), WIDTH).train(VECTORS[:3]),
            "too few to train 9 cells",
        ),
        (lambda path: load_index(path), "is not an index"),
        (lambda path: build_index(np.ones(3)), r"shape \(n, width\)"),
    ],
)
def test_an_index_that_cannot_be_built_or_read_is_refused(tmp_path, call, message):
    with pytest.raises(InputError, match=message):
        call(tmp_path)


def test_an_unknown_kind_is_refused_with_a_guess():
    with pytest.raises(UnknownNameError, match="Did you mean 'hnsw'"):
        IndexSettings("hsnw")


@pytest.mark.parametrize("kind", ["exact", "hnsw"])
def test_a_damaged_file_is_refused(tmp_path, kind):
    save_index(build_index(VECTORS[:50], IndexSettings(kind), progress=False), tmp_path / "index")
    file = next(path for path in (tmp_path / "index").iterdir() if path.suffix != ".json")
    file.write_bytes(file.read_bytes()[:100])
    with pytest.raises(InputError, match="Rebuild the index"):
        load_index(tmp_path / "index")


def test_commands_say_which_index_they_use_and_its_recall(tmp_path, monkeypatch):
    replace_models(monkeypatch)
    (tmp_path / "in.txt").write_text("a cat\na cat sits\nblue sky\nCat a\n")
    result = CliRunner().invoke(main, ["dedup", str(tmp_path / "in.txt"), "--method", "index"])
    assert result.stdout == "a cat\na cat sits\nblue sky\n"
    assert "Index of 4 vectors: exact search" in result.stderr and "recall@10 1.000" in result.stderr
    result = CliRunner().invoke(main, ["pairs", str(tmp_path / "in.txt"), "--method", "index", "-k", "1"])
    assert json.loads(result.stdout)["rows"] == [0, 3]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--method", "index", "--max-memory", "10"], "needs at least "),
        (["--max-memory", "much"], "Invalid size 'much'. Write it like 4GB or 512MiB."),
        (["--method", "exact", "--max-memory", "1GB"], "--max-memory is for an index, not for --method exact."),
    ],
)
@pytest.mark.parametrize("command", ["dedup", "pairs"])
def test_an_index_beyond_the_memory_is_refused(tmp_path, monkeypatch, command, arguments, message):
    replace_models(monkeypatch)
    (tmp_path / "in.txt").write_text("a cat\na cat sits\nblue sky\nCat a\n")
    result = CliRunner().invoke(main, [command, str(tmp_path / "in.txt"), *arguments])
    assert result.exit_code in (1, 2) and result.stdout == "" and message in result.stderr


def test_less_memory_gives_a_smaller_index():
    vectors = np.tile(VECTORS, (10, 1))
    limit = index_bytes(IndexSettings("hnsw"), *vectors.shape) - 1
    told = []
    index = pair_index(vectors, "index", max_memory=limit, tell=told.append)
    assert index is not None and index.settings.kind == "ivf-sq8"
    assert "one byte per value" in told[0] and "recall@10" in told[1]


def test_the_refusal_names_the_least_memory_of_all_kinds():
    with pytest.raises(InputError, match=r"needs at least 3.07 kB, but the limit is 10 B"):
        choose_index(2, 384, 10)
    assert choose_index(2, 384, 3072).kind == "exact"
