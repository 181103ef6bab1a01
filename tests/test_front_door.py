"""The functions at the top of the package that work on texts: what each returns, and what it refuses."""

import json
from pathlib import Path

import numpy as np
import pytest

import twinvec
from twinvec.bulk import BulkSettings, FileSource, open_bulk
from twinvec.choices import MOST_ALL_PAIRS
from twinvec.cluster import AgglomerativeSettings, CommunitySettings, KMeansSettings
from twinvec.collection import Collection, ImportSource
from twinvec.errors import CollectionError, InputError, UnknownNameError
from twinvec.search import duplicate_rows, most_similar_pairs, neighbor_pairs, neighbors
from twinvec.search import texts as search_module

ROOT = Path(__file__).parents[1]
TEXTS = ["the cat sits", "a dog runs", "the cat sits here", "rain and river", "a dog runs"]


class CountedWords:
    """An embedder that is not a sentence model: it counts how often some words occur in a text."""

    name = identity = "words"
    width, similarity, settings = 4, "cosine", {}

    def embed(self, texts, *, role="text"):
        words = ("cat", "dog", "rain", "here")
        return np.array([[1e-3 + text.split().count(word) for word in words] for text in texts], dtype=np.float32)


@pytest.fixture
def source(tmp_path):
    path = tmp_path / "in.jsonl"
    path.write_text("".join(json.dumps({"key": str(i), "text": text}) + "\n" for i, text in enumerate(TEXTS)))
    return path


# --- embed_file


@pytest.mark.parametrize("output", ["float32", "int8"])
def test_a_file_gets_the_vectors_of_its_texts_in_order(source, tmp_path, tiny_bert, output):
    target = tmp_path / "v.npy"
    done = twinvec.embed_file(source, target, tiny_bert, settings=BulkSettings(output=output))
    assert (done.n_rows, done.bulk) == (5, None)
    assert np.array_equal(np.load(target), twinvec.load(tiny_bert).encode(TEXTS, output=output))


def test_a_folder_gets_each_distinct_text_once_and_reports_progress(source, tmp_path, tiny_bert):
    pytest.importorskip("pyarrow")
    states = []
    rows = FileSource(str(source), id_column="key")
    done = twinvec.embed_file(rows, tmp_path / "out", tiny_bert, watch=states.append)
    assert (done.n_rows, done.bulk.n_texts, done.bulk.n_embedded) == (5, 4, 4)
    assert states[-1].n_embedded == 4 and open_bulk(tmp_path / "out").result.rows == 5
    assert twinvec.embed_file(rows, tmp_path / "out", tiny_bert).bulk.n_embedded == 0


def test_prompts_and_arguments_come_with_the_model(source, tmp_path, tiny_bert):
    model = twinvec.ModelEmbedder(tiny_bert, {"truncate_dim": 8}, prompt="the ")
    twinvec.embed_file(source, tmp_path / "v.npy", model)
    wanted = twinvec.load(tiny_bert, truncate_dim=8).encode(TEXTS, prompt="the ")
    assert np.array_equal(np.load(tmp_path / "v.npy"), wanted)


def test_any_embedder_can_fill_a_file(source, tmp_path):
    twinvec.embed_file(source, tmp_path / "v.npy", CountedWords())
    assert np.array_equal(np.load(tmp_path / "v.npy"), CountedWords().embed(TEXTS))


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ({"settings": BulkSettings(shard_rows=3)}, "shard_rows"),
        ({"settings": BulkSettings(max_memory_bytes=10**9)}, "max_memory_bytes"),
        ({"ray": "auto"}, "ray"),
        ({"source": FileSource("in.jsonl", id_column="key")}, "id_column"),
    ],
)
def test_folder_options_are_refused_for_a_file_before_any_work(tmp_path, change, named):
    with pytest.raises(InputError, match=f"^{named} requires a folder"):
        twinvec.embed_file(**{"source": "in.jsonl", "target": tmp_path / "v.npy", "model": "no/such/model", **change})


def test_a_target_that_exists_is_refused_before_a_model_is_looked_for(source, tmp_path):
    (tmp_path / "v.npy").write_text("mine")
    model = twinvec.ModelEmbedder("no/such/model")
    with pytest.raises(InputError, match="exists already"):
        twinvec.embed_file(source, tmp_path / "v.npy", model)
    with pytest.raises(InputError, match="File not found"):
        twinvec.embed_file(tmp_path / "none.txt", tmp_path / "w.npy", model)


def test_only_a_sentence_model_can_be_sent_to_a_cluster(source, tmp_path):
    with pytest.raises(InputError, match="words cannot be sent"):
        twinvec.embed_file(source, tmp_path / "out", CountedWords(), ray="auto")


# --- find_pairs, find_duplicates, search_texts


@pytest.fixture(scope="module")
def encoder(tiny_bert):
    return twinvec.load(tiny_bert)


def assert_same(found, wanted):
    for one, other in zip(found, wanted, strict=True):
        assert np.array_equal(one, other)


def test_pairs_are_those_of_the_vectors(encoder):
    vectors = encoder.encode(TEXTS)
    assert_same(twinvec.find_pairs(TEXTS, 3, model=encoder), most_similar_pairs(vectors, 3))
    assert_same(
        twinvec.find_pairs(TEXTS, model=encoder, threshold=0.99), most_similar_pairs(vectors, 20, threshold=0.99)
    )
    assert_same(twinvec.find_pairs(TEXTS, model=encoder, per_text=1), neighbor_pairs(neighbors(vectors, 1)))


def test_duplicates_are_rows_of_all_texts_and_equal_ones_repeat_the_first(encoder):
    found = twinvec.find_duplicates(TEXTS, 1.0, model=encoder)
    assert (found.kept.tolist(), found.removed.tolist(), found.repeated.tolist()) == ([0, 1, 2, 3], [4], [1])
    longest = twinvec.find_duplicates(["cat", "cat here", "cat here rain"], 0.5, model=CountedWords(), keep="longest")
    wanted = duplicate_rows(
        CountedWords().embed(["cat", "cat here", "cat here rain"]), 0.5, keep="longest", lengths=[3, 8, 13]
    )
    assert_same(longest, wanted)


def test_an_index_reports_its_recall_and_finds_the_same_pairs(encoder):
    pytest.importorskip("faiss")
    texts, told = [f"{text} {word}" for text in TEXTS for word in ("one", "two", "three")], []
    found = twinvec.find_pairs(texts, 2, model=encoder, method="index", tell=told.append)
    assert_same(found, twinvec.find_pairs(texts, 2, model=encoder, method="exact"))
    assert told[0].startswith("Index of 15 vectors: ") and "recall@10" in told[1]
    assert len(twinvec.find_duplicates(texts, 1.0, model=encoder, method="index").kept) == 12


def test_an_index_is_used_automatically_only_above_200_000_texts(monkeypatch):
    built = []
    monkeypatch.setattr(search_module, "build_index", lambda vectors, **_: built.append(len(vectors)))
    few, many = np.empty((MOST_ALL_PAIRS, 0)), np.empty((MOST_ALL_PAIRS + 1, 0))
    for vectors, method in ((few, "auto"), (many, "exact"), (many, "auto"), (few[:9], "index")):
        search_module.pair_index(vectors, method, max_memory=None, tell=None)
    assert built == [MOST_ALL_PAIRS + 1, 9]


def test_searching_texts_gives_rows_texts_and_scores_best_first(encoder):
    hits = twinvec.search_texts("a dog runs", TEXTS, 2, model=encoder)
    assert [(hit.row, hit.text, round(hit.score, 5)) for hit in hits] == [(1, "a dog runs", 1), (4, "a dog runs", 1)]
    assert twinvec.search_texts("rain", iter(TEXTS), 1, model=CountedWords())[0].row == 3


@pytest.mark.parametrize("found", [[[1.0, 2.0]], [[1.0, float("nan")]] * 5, ["no numbers"] * 5])
def test_vectors_that_an_embedder_should_not_give_are_refused_with_its_name(monkeypatch, tmp_path, source, found):
    monkeypatch.setattr(CountedWords, "embed", lambda *_, **__: found)
    for work in (
        lambda: twinvec.find_pairs(TEXTS, model=CountedWords()),
        lambda: twinvec.search_texts("rain", TEXTS, model=CountedWords()),
        lambda: twinvec.embed_file(source, tmp_path / "v.npy", CountedWords()),
    ):
        with pytest.raises(InputError, match=r"^words returned "):
            work()


@pytest.mark.parametrize("function", [twinvec.find_pairs, twinvec.find_duplicates, twinvec.cluster_texts])
def test_one_text_is_not_a_list_and_unknown_methods_are_named(function):
    with pytest.raises(InputError, match="must be a list of texts, not a single string"):
        function("a text", model=CountedWords())
    settings = {"settings": CommunitySettings()} if function is twinvec.cluster_texts else {}
    with pytest.raises(UnknownNameError, match="Did you mean 'exact'"):
        function(TEXTS, model=CountedWords(), method="exat", **settings)


# --- cluster_texts


@pytest.mark.parametrize(
    "settings",
    [KMeansSettings(n_clusters=3), AgglomerativeSettings(threshold=0.5), CommunitySettings(threshold=0.5, min_size=2)],
)
def test_the_type_of_the_settings_says_which_algorithm_clusters(settings):
    found = twinvec.cluster_texts(TEXTS, settings, model=CountedWords(), n_words=1)
    assert found.labels[0] == found.labels[2] and found.labels[1] == found.labels[4] != found.labels[0]
    assert found.clusters.method == settings.describe() and found.map is None


def test_a_map_is_drawn_on_request():
    found = twinvec.cluster_texts(TEXTS, KMeansSettings(n_clusters=2), model=CountedWords(), projection="pca")
    assert found.map.places.shape == (5, 2) and found.map.projection == "pca"


def test_the_pair_method_is_only_for_communities():
    with pytest.raises(InputError, match="apply only to communities"):
        twinvec.cluster_texts(TEXTS, model=CountedWords(), method="index")


# --- index_file and Collection.import_file


@pytest.fixture
def lance():
    return pytest.importorskip("lancedb")


def test_a_file_makes_a_collection_and_a_second_run_embeds_nothing(lance, source, tmp_path, tiny_bert):
    rows = ImportSource(str(source), id_column="key")
    done = twinvec.index_file(rows, tmp_path / "c", default_model=tiny_bert)
    assert (done.n_added, done.n_embedded, done.n_texts) == (5, 4, 5)
    again = twinvec.index_file(rows, tmp_path / "c", default_model="no/such/model")
    assert (again.n_unchanged, again.n_embedded, again.n_texts) == (5, 0, 5)
    assert Collection.open(tmp_path / "c").get(["3"])["3"].text == TEXTS[3]


def test_an_open_collection_imports_a_file(lance, source, tmp_path, encoder):
    collection = Collection.create(tmp_path / "c", model=encoder)
    done = collection.import_file(ImportSource(str(source), metadata=()))
    assert (done.n_added, done.n_repeated, len(collection)) == (4, 1, 4)
    done = collection.import_file(source)
    assert done.n_replaced == 4 and collection.columns == {"key": "text"}


def test_bad_rows_make_no_collection_and_no_model_is_looked_for(lance, tmp_path):
    (tmp_path / "bad.csv").write_text("id,text,vector\n1,a,3\n")
    with pytest.raises(InputError, match="has the reserved column name 'vector'"):
        twinvec.index_file(tmp_path / "bad.csv", tmp_path / "c", "no/such/model")
    assert not (tmp_path / "c").exists()


def test_another_model_is_refused_or_embeds_all_texts_again(lance, source, tmp_path, tiny_folders):
    twinvec.index_file(source, tmp_path / "c", tiny_folders["bert"])
    with pytest.raises(CollectionError, match="was created with the model"):
        twinvec.index_file(source, tmp_path / "c", tiny_folders["roberta"])
    told = []
    twinvec.index_file(source, tmp_path / "c", tiny_folders["roberta"], re_embed=True, tell=told.append)
    assert told[0].startswith("Embedding all 4 texts of ")
    assert Collection.open(tmp_path / "c").search("a dog runs", 1)[0].text == "a dog runs"


def test_arguments_say_how_to_run_the_model_a_collection_has(lance, source, tmp_path, tiny_bert, encoder):
    twinvec.index_file(source, tmp_path / "c", tiny_bert)
    one, two = (Collection.open(tmp_path / "c", arguments=each) for each in ({}, {"threads": 1}))
    assert one.search("cat") == two.search("cat")
    with pytest.raises(CollectionError, match="the files or settings differ"):
        Collection.open(tmp_path / "c", arguments={"truncate_dim": 8})
    for model in (encoder, CountedWords()):
        with pytest.raises(InputError, match="does not take arguments"):
            Collection.open(tmp_path / "c", model=model, arguments={"threads": 1})


# --- explain, and who may import the commands


def test_explain_takes_one_text_or_two(encoder, tiny_bert):
    one = twinvec.explain("the cat sits", model=tiny_bert)
    assert isinstance(one, twinvec.Explanation)
    assert np.array_equal(one.vector, encoder.explain("the cat sits").vector)
    pair = twinvec.explain("the cat", "a dog", model=twinvec.ModelEmbedder(tiny_bert, prompt="here "))
    assert np.array_equal(pair.contributions, encoder.explain_pair("the cat", "a dog", prompt="here ").contributions)
    with pytest.raises(InputError, match="words is not a sentence model"):
        twinvec.explain("the cat", model=CountedWords())


@pytest.mark.parametrize("folder", ["recipes", "scripts", "benchmarks", "src/twinvec"])
def test_nothing_but_the_commands_imports_the_commands(folder):
    files = [file for file in (ROOT / folder).rglob("*.py") if "cli" not in file.parts]
    assert files
    wrong = [
        file.name for file in files if "from twinvec.cli" in (text := file.read_text()) or "import twinvec.cli" in text
    ]
    assert wrong == []
