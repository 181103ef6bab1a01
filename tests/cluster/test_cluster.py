"""Clusters: what is promised of them, beside scikit-learn and sentence-transformers on the same vectors."""

import tracemalloc
import unicodedata
from types import ModuleType

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import twinvec
from twinvec.cluster import (
    Agglomerative,
    AgglomerativeSettings,
    Communities,
    CommunitySettings,
    KMeans,
    KMeansSettings,
    agglomerative,
    describe_clusters,
    key_words,
    kmeans,
    map_vectors,
)
from twinvec.cluster.agglomerative import by_size
from twinvec.cluster.describe import words_of
from twinvec.data.korean import without_particles
from twinvec.errors import InputError, MissingExtraError, UnknownNameError
from twinvec.metrics import v_measure
from twinvec.search import IndexSettings, build_index

patient = settings(deadline=None)
seeds = st.integers(0, 2**32 - 1)


def groups(seed=0, n_groups=6, size=50, width=24, noise=0.35):
    """Rows around some directions, shuffled, and the group of each."""
    rng = np.random.default_rng(seed)
    centers = rng.normal(size=(n_groups, width))
    centers /= np.linalg.norm(centers, axis=1, keepdims=True)
    truth = rng.permutation(np.repeat(np.arange(n_groups), size))
    return (centers[truth] + noise * rng.normal(size=(len(truth), width)) / np.sqrt(width)).astype(np.float32), truth


CLUSTERERS = {
    "kmeans": lambda: KMeans(KMeansSettings(6)),
    "agglomerative": lambda: Agglomerative(AgglomerativeSettings(0.5)),
    "communities": lambda: Communities(CommunitySettings(0.7)),
}


@pytest.fixture(params=CLUSTERERS)
def clusterer(request):
    return CLUSTERERS[request.param]()


def test_groups_that_lie_apart_are_found(clusterer):
    vectors, truth = groups()
    assert v_measure(clusterer.fit(vectors).labels_, truth) > 0.99


def test_the_length_of_vectors_does_not_matter(clusterer):
    vectors, _ = groups(1)
    labels = clusterer.fit(vectors).labels_
    lengths = np.random.default_rng(0).uniform(0.1, 9, size=(len(vectors), 1))
    assert np.array_equal(clusterer.fit(vectors * lengths).labels_, labels)


def test_larger_clusters_come_first_and_labels_have_no_gaps(clusterer):
    vectors = np.concatenate([groups(seed, 1, size)[0] for seed, size in ((1, 20), (2, 60), (3, 40))])
    labels = clusterer.fit(vectors).labels_
    counts = np.bincount(labels[labels >= 0])
    assert (counts > 0).all() and (np.diff(counts) <= 0).all()


def test_fitting_again_forgets(clusterer):
    first, second = groups(3)[0], groups(4)[0]
    again = clusterer.fit(first).fit(second).labels_
    assert np.array_equal(again, clusterer.fit(second).labels_)


@pytest.mark.parametrize(
    ("vectors", "message"),
    [
        (np.empty((0, 4)), "no vectors to cluster"),
        (np.ones(4), r"shape \(n, width\)"),
        (np.where(np.eye(9) > 0, np.nan, 1.0), "Row 0 of vectors holds NaN"),
    ],
)
def test_unusable_vectors_are_refused(clusterer, vectors, message):
    with pytest.raises(InputError, match=message):
        clusterer.fit(vectors)


def test_one_vector_is_a_cluster_or_none():
    one = np.ones((1, 4))
    assert KMeans(KMeansSettings(1)).fit(one).labels_.tolist() == [0]
    assert Agglomerative().fit(one).labels_.tolist() == [0]
    assert Communities().fit(one).labels_.tolist() == [-1]
    assert Communities(CommunitySettings(min_size=1)).fit(one).labels_.tolist() == [0]


# --- k-means


def test_the_same_seed_gives_the_same_clusters_and_another_seed_may_not():
    vectors = np.random.default_rng(0).normal(size=(500, 8))
    runs = [KMeans(KMeansSettings(20, n_restarts=1, seed=seed)).fit(vectors) for seed in (1, 1, 2)]
    assert np.array_equal(runs[0].labels_, runs[1].labels_) and np.array_equal(runs[0].centers_, runs[1].centers_)
    assert not np.array_equal(runs[0].labels_, runs[2].labels_)


def test_blocks_do_not_change_the_clusters(monkeypatch):
    vectors, _ = groups(5, noise=1.5)
    whole = KMeans(KMeansSettings(6)).fit(vectors).labels_
    monkeypatch.setattr(kmeans, "BLOCK_ROWS", 7)
    assert np.array_equal(KMeans(KMeansSettings(6)).fit(vectors).labels_, whole)


def test_first_centers_from_a_sample_find_the_groups_too(monkeypatch):
    monkeypatch.setattr(kmeans, "SAMPLE_ROWS", 100)
    monkeypatch.setattr(kmeans, "SAMPLE_PER_CLUSTER", 1)
    vectors, truth = groups(6)
    assert v_measure(KMeans(KMeansSettings(6, n_restarts=5)).fit(vectors).labels_, truth) > 0.99


@patient
@given(seeds, st.integers(1, 12), st.integers(0, 20))
def test_every_row_is_with_its_nearest_center(seed, n_clusters, more):
    vectors = np.random.default_rng(seed).normal(size=(n_clusters + more, 3))
    found = KMeans(KMeansSettings(n_clusters, n_restarts=1)).fit(vectors)
    scores = twinvec.similarity(vectors, found.centers_)
    np.testing.assert_allclose(scores[np.arange(len(vectors)), found.labels_], scores.max(axis=1), atol=1e-5)
    assert found.score_ == pytest.approx(scores.max(axis=1).mean(), abs=1e-5)


def test_more_restarts_are_never_worse():
    vectors = np.random.default_rng(7).normal(size=(400, 6))
    scores = [KMeans(KMeansSettings(15, n_restarts=n)).fit(vectors).score_ for n in (1, 3, 6)]
    assert scores == sorted(scores)


@pytest.mark.parity
def test_k_means_is_as_good_as_that_of_scikit_learn():
    sklearn = pytest.importorskip("sklearn.cluster")
    vectors = twinvec.unit_rows(groups(8, n_groups=30, size=20, noise=1.0)[0])
    ours = KMeans(KMeansSettings(30, n_restarts=5)).fit(vectors)
    theirs = sklearn.KMeans(30, n_init=5, random_state=0).fit(vectors)
    centers = twinvec.unit_rows(np.stack([vectors[theirs.labels_ == label].mean(axis=0) for label in range(30)]))
    their_score = twinvec.similarity(vectors, centers).max(axis=1).mean()
    assert ours.score_ > their_score - 0.002


def test_fewer_distinct_rows_than_clusters_work():
    found = KMeans(KMeansSettings(4)).fit(np.repeat(np.eye(2), 5, axis=0))
    assert len(np.unique(found.labels_)) == 2 and found.score_ == pytest.approx(1)


def test_more_clusters_than_rows_are_refused():
    with pytest.raises(InputError, match="3 vectors are too few for 8 clusters"):
        KMeans().fit(np.eye(3))


# --- agglomerative


@pytest.mark.parity
@pytest.mark.parametrize("linkage", ["average", "complete"])
@pytest.mark.parametrize("threshold", [-0.5, 0.0, 0.2, 0.5, 0.9])
def test_agglomerative_clusters_are_those_of_scikit_learn(linkage, threshold):
    sklearn = pytest.importorskip("sklearn.cluster")
    vectors = groups(9, noise=1.2)[0].astype(np.float64)
    ours = Agglomerative(AgglomerativeSettings(threshold, linkage)).fit(vectors)
    theirs = sklearn.AgglomerativeClustering(
        None, metric="cosine", linkage=linkage, distance_threshold=1 - threshold
    ).fit(vectors)
    assert ours.n_clusters_ == theirs.n_clusters_
    assert v_measure(ours.labels_, theirs.labels_) == pytest.approx(1)


@patient
@given(seeds, st.integers(1, 25), st.floats(-1, 1))
def test_rows_of_a_complete_cluster_are_all_alike(seed, n, threshold):
    vectors = np.random.default_rng(seed).normal(size=(n, 3))
    labels = Agglomerative(AgglomerativeSettings(threshold, "complete")).fit(vectors).labels_
    cosines = twinvec.similarity(vectors, vectors)
    assert (cosines[labels[:, None] == labels] >= threshold - 1e-5).all()


def test_equal_rows_are_joined_and_the_chain_ends():
    assert Agglomerative(AgglomerativeSettings(0.99)).fit(np.ones((40, 3))).n_clusters_ == 1
    grid = np.array([[np.cos(a), np.sin(a)] for a in np.linspace(0, 6, 37)])
    assert Agglomerative(AgglomerativeSettings(0.9)).fit(grid).n_clusters_ > 2


def test_too_many_rows_are_refused_with_a_way_out(monkeypatch):
    monkeypatch.setattr(agglomerative, "MOST_ROWS", 10)
    with pytest.raises(InputError, match=r"11 vectors are too many .*Use communities or k-means"):
        Agglomerative().fit(np.ones((11, 2)))


@patient
@given(st.lists(st.integers(0, 5), min_size=1, max_size=30))
def test_renumbering_labels_by_size_keeps_the_clusters(marks):
    labels = by_size(np.array(marks))
    assert v_measure(labels, marks) == pytest.approx(1)
    assert (np.diff(np.bincount(labels)) <= 0).all()


# --- communities


@pytest.mark.parity
@pytest.mark.parametrize(("threshold", "min_size"), [(0.75, 10), (0.6, 3), (0.4, 2), (0.2, 25), (0.9, 1)])
def test_communities_are_those_of_sentence_transformers(threshold, min_size):
    util = pytest.importorskip("sentence_transformers.util")
    vectors, _ = groups(10, n_groups=12, size=30, noise=0.9)
    theirs = util.community_detection(vectors, threshold=threshold, min_community_size=min_size)
    ours = Communities(CommunitySettings(threshold, min_size)).fit(vectors)
    assert [set(members) for members in theirs] == [set(members.tolist()) for members in ours.communities_]
    assert [members[0] for members in theirs] == ours.center_rows_.tolist()
    if min_size > 1:
        assert len(ours.communities_) > 1


@patient
@given(seeds, st.integers(1, 40), st.floats(-0.5, 0.99), st.integers(1, 6))
def test_members_are_near_their_center_and_nearest_first(seed, n, threshold, min_size):
    vectors = np.random.default_rng(seed).normal(size=(n, 3))
    found = Communities(CommunitySettings(threshold, min_size)).fit(vectors)
    cosines = twinvec.similarity(vectors, vectors)
    for label, members in enumerate(found.communities_):
        assert len(members) >= min_size and (found.labels_[members] == label).all()
        scores = cosines[members[0], members[1:]]
        assert (scores >= threshold - 1e-6).all() and (np.diff(scores) <= 1e-6).all()
    assert sum(map(len, found.communities_)) == np.count_nonzero(found.labels_ >= 0)


def test_communities_by_an_index_are_the_same_where_it_finds_all():
    pytest.importorskip("faiss")
    vectors, _ = groups(11)
    index = build_index(vectors, IndexSettings("flat"), progress=False)
    exact, found = (Communities(CommunitySettings(0.5)).fit(vectors, index=each).labels_ for each in (None, index))
    assert np.array_equal(exact, found)


def test_communities_need_no_matrix_of_all_pairs():
    vectors = np.repeat(np.random.default_rng(12).normal(size=(800, 16)), 10, axis=0).astype(np.float32)
    tracemalloc.start()
    found = Communities(CommunitySettings(0.95)).fit(vectors)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert found.n_clusters_ == 800 and peak < 100e6  # a block of scores; all scores are 256 MB


# --- what is in clusters


def test_representative_texts_are_different_and_nearest_to_the_middle():
    angles = np.radians([0, 0, 10, 20, 90, 100])
    vectors = np.stack([np.cos(angles), np.sin(angles)], axis=1)
    texts = ["zero", "zero", "ten", "twenty", "ninety", "hundred"]
    found = describe_clusters(texts, vectors, np.array([0, 0, 0, 0, -1, 1]), method="by hand", n_texts=2)
    assert found.clusters[0].texts == ("ten", "zero") and found.clusters[0].rows == (2, 0)
    assert [(each.label, each.size) for each in found.clusters] == [(0, 4), (1, 1)]
    assert found.n_alone == 1 and found.clusters[1].closeness == 1
    assert found.as_dict()["clusters"][0]["words"] == ("zero", "ten", "twenty")


def test_key_words_tell_a_cluster_from_the_others():
    texts = ["The red cat sat.", "A red cat, a dog!", "The blue sky is red.", "Blue, blue sky", "noise words"]
    assert key_words(texts, [0, 0, 1, 1, -1], 2, n=2) == [["cat", "red"], ["blue", "sky"]]


KOREAN_TEXTS = [
    "비밀번호를 어떻게 재설정하나요?",
    "비밀번호가 기억나지 않아요",
    "고양이가 잔다",
    "고양이는 생선을 먹는다",
    "The cat sleeps",
]


def test_key_words_in_korean_have_no_particles(monkeypatch):
    monkeypatch.setattr("twinvec.cluster.describe.korean_nouns", lambda: None)
    assert key_words(KOREAN_TEXTS, [0, 0, 1, 1, 2], 3, n=1) == [["비밀번호"], ["고양이"], ["cat"]]
    decomposed = [unicodedata.normalize("NFD", text) for text in KOREAN_TEXTS]
    assert key_words(decomposed, [0, 0, 1, 1, 2], 3, n=1) == [["비밀번호"], ["고양이"], ["cat"]]


@pytest.mark.parametrize(
    ("words", "stems"),
    [
        ("학교 학교에서 학교가", "학교 학교 학교"),
        ("서울로 서울에", "서울 서울"),  # 로 after l
        ("전문가 전문", "전문가 전문"),  # 가 never follows a consonant
        ("나무 나무로 나무는", "나무 나무 나무"),
        ("마을 가을 회의", "마을 가을 회의"),  # too short without the last syllable
        ("제주도", "제주도"),  # no evidence that 도 is a particle
        ("사용자들을 사용자는", "사용자 사용자"),
        ("api를 pdf로 b형간염 reset", "api pdf b형간염 reset"),
    ],
)
def test_particles_are_removed_only_where_they_are_particles(words, stems):
    stem = without_particles(words.split())
    assert " ".join(map(stem, words.split())) == stems


def test_kiwi_finds_the_nouns_if_it_is_installed():
    pytest.importorskip("kiwipiepy")
    assert key_words(KOREAN_TEXTS, [0, 0, 1, 1, 2], 3, n=2) == [
        ["비밀번호", "재설정"],
        ["고양이", "생선"],
        ["cat", "sleeps"],
    ]


def test_key_words_weigh_as_the_paper_says():
    counts = {"cat": 2, "red": 1}  # of three words in the cluster; four words in the two clusters, so A = 2
    weight = {word: n / 3 * np.log(1 + 2 / {"cat": 2, "red": 2}[word]) for word, n in counts.items()}
    assert weight["cat"] > weight["red"]
    assert key_words(["cat cat red", "red"], [0, 1], 2) == [["cat", "red"], ["red"]]


def test_words_of_other_languages_are_words():
    assert words_of("Größe, naïve 東京 don't 42 x") == ["größe", "naïve", "東京"]


def test_clusters_without_words_have_none():
    assert key_words(["1 2 3", "", "cat"], [0, 0, 1], 3) == [[], ["cat"], []]


def test_lists_of_other_lengths_are_refused():
    with pytest.raises(InputError, match="2 texts, 3 vectors and 3 labels"):
        describe_clusters(["a", "b"], np.eye(3), np.zeros(3, dtype=int), method="")


# --- the map


def test_the_map_is_that_of_principal_components():
    vectors, _ = groups(13)
    rows = twinvec.unit_rows(vectors).astype(np.float64)
    places = map_vectors(vectors, "pca")
    _, values, _ = np.linalg.svd(rows - rows.mean(axis=0), full_matrices=False)
    np.testing.assert_allclose(np.linalg.norm(places, axis=0), values[:2], rtol=1e-4)
    assert abs(places.sum()) < 1e-2 and abs(places[:, 0] @ places[:, 1]) < 1e-2


@pytest.mark.parametrize("shape", [(1, 5), (2, 1), (3, 2)])
def test_few_or_narrow_vectors_also_have_a_map(shape):
    places = map_vectors(np.random.default_rng(0).normal(size=shape), "pca")
    assert places.shape == (shape[0], 2) and np.isfinite(places).all()


def test_umap_is_used_where_it_is_installed_and_asked_for_by_name(monkeypatch):
    from twinvec.cluster import describe as mapping

    monkeypatch.setattr(mapping, "find_spec", lambda name: None)
    assert mapping.choose_projection("auto", 100) == "pca"
    monkeypatch.setattr(mapping, "find_spec", lambda name: object())
    assert mapping.choose_projection("auto", 100) == "umap"
    assert mapping.choose_projection("auto", 3) == "pca"
    with pytest.raises(UnknownNameError, match="Did you mean 'umap'"):
        mapping.choose_projection("unap", 100)


def test_too_few_vectors_for_umap_are_refused_rather_than_drawn_otherwise(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "umap", ModuleType("umap"))
    with pytest.raises(InputError, match=r"UMAP needs at least 4 vectors, got 3\. Use pca"):
        map_vectors(np.eye(3), "umap")


@pytest.mark.parity
def test_umap_keeps_groups_together():
    pytest.importorskip("umap")
    vectors, truth = groups(14, n_groups=3, size=20)
    places = map_vectors(vectors, "umap")
    assert places.shape == (60, 2) and np.isfinite(places).all()
    assert np.array_equal(places, map_vectors(vectors, "umap"))
    middles = np.stack([places[truth == group].mean(axis=0) for group in range(3)])
    nearest = np.linalg.norm(places[:, None] - middles, axis=2).argmin(axis=1)
    assert (nearest == truth).mean() > 0.95


def test_umap_that_is_missing_is_named_with_its_extra(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "umap", None)
    with pytest.raises(MissingExtraError, match=r"twinvec\[map\]"):
        map_vectors(np.eye(5), "umap")


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: KMeansSettings(0), "n_clusters must be at least 1"),
        (lambda: KMeansSettings(tolerance=1), "tolerance must be"),
        (lambda: CommunitySettings(min_size=0), "min_size must be at least 1"),
        (lambda: CommunitySettings(float("nan")), "threshold must be a finite number"),
        (lambda: AgglomerativeSettings(float("inf")), "threshold must be a finite number"),
    ],
)
def test_settings_without_sense_are_refused(call, message):
    with pytest.raises(InputError, match=message):
        call()


def test_an_unknown_linkage_is_refused_with_a_guess():
    with pytest.raises(UnknownNameError, match="Did you mean 'average'"):
        AgglomerativeSettings(linkage="averge")
