"""What a collection promises: ids once, texts embedded once, three ways to search, filters, models, versions."""

from __future__ import annotations

import json
from datetime import date, datetime, timezone
from types import SimpleNamespace

import numpy as np
import pytest

import twinvec
from collections_of_fakes import CountingEmbedder, contents, fake_collection, stored_vectors, vectors_of
from tiny import write_tiny_model
from twinvec.collection import Collection, Entry, own_id
from twinvec.collection import write as maintaining
from twinvec.collection import write as re_embedding
from twinvec.errors import CollectionError, InputError, MissingExtraError, TwinvecError, UnknownNameError
from twinvec.search import search as exact_search

pytest.importorskip("lancedb")

TEXTS = ["a cat sits", "the dog runs", "a bird sings", "cats and dogs", "stocks fell", "the river bank"]
IDS = list("abcdef")
YEARS = [{"year": 1990 + place} for place in range(6)]


@pytest.fixture
def filled(tmp_path):
    collection, model = fake_collection(tmp_path / "notes")
    collection.add(TEXTS, IDS, YEARS)
    return SimpleNamespace(collection=collection, model=model, path=tmp_path / "notes")


def ids_of(hits):
    return [hit.id for hit in hits]


def test_a_search_by_meaning_is_the_exact_search_over_the_same_vectors(filled):
    query = "a dog sits"
    expected = exact_search(vectors_of([query]), vectors_of(TEXTS), k=6)
    hits = filled.collection.search(query, 6)
    np.testing.assert_allclose([hit.score for hit in hits], expected.scores[0], atol=1e-6)
    by_id = {IDS[row]: score for row, score in zip(expected.ids[0], expected.scores[0], strict=True)}
    assert all(abs(by_id[hit.id] - hit.score) < 1e-6 for hit in hits)
    assert [hit.text for hit in hits] == [TEXTS[IDS.index(hit.id)] for hit in hits]


@pytest.mark.parametrize("similarity", ["dot", "euclidean"])
def test_scores_are_the_similarity_of_the_model(tmp_path, similarity):
    collection, _ = fake_collection(tmp_path / "c", similarity=similarity)
    collection.add(TEXTS, IDS)
    hits = collection.search("a dog sits", 6)
    expected = exact_search(vectors_of(["a dog sits"]), vectors_of(TEXTS), k=6, similarity=similarity)
    np.testing.assert_allclose([hit.score for hit in hits], expected.scores[0], atol=1e-5)


def test_a_search_by_words_finds_the_texts_that_have_one_in_whatever_form(filled):
    assert sorted(ids_of(filled.collection.search("Dogs running?", mode="text"))) == ["b", "d"]
    assert filled.collection.search("zebra", mode="text") == []
    assert filled.collection.search("the", mode="text") == []  # too common a word


def test_a_hybrid_search_fuses_both_rankings_by_rank(filled):
    hits = filled.collection.search("dogs", 6, mode="hybrid")
    dense, text = (ids_of(filled.collection.search("dogs", 6, mode=mode)) for mode in ("dense", "text"))
    expected = {
        each: sum(1 / (61 + ranking.index(each)) for ranking in (dense, text) if each in ranking) for each in IDS
    }
    assert {hit.id: pytest.approx(hit.score) for hit in hits} == expected
    assert [hit.score for hit in hits] == sorted((hit.score for hit in hits), reverse=True)


@pytest.mark.parametrize("mode", ["dense", "text", "hybrid"])
def test_an_empty_collection_returns_no_hits_without_an_error(tmp_path, mode):
    collection, _ = fake_collection(tmp_path / "c")
    assert collection.search("a cat", mode=mode) == []
    assert (len(collection), list(collection), collection.get(["x"]), collection.delete(["x"])) == (0, [], {}, 0)
    assert collection.reindex().n_texts == 0


def test_a_k_larger_than_the_collection_returns_all_texts(filled):
    assert sorted(ids_of(filled.collection.search("a cat", 10**12))) == IDS
    assert len(filled.collection.search("cat dog", 10**12, mode="text")) == 3


def test_a_text_without_any_token_is_near_nothing(filled):
    filled.collection.add([""], ["empty"])  # whose vector is of zeros
    assert sorted(ids_of(filled.collection.search("a cat", 100))) == IDS
    assert filled.collection.search("", 100) == []


def test_a_scorer_of_pairs_orders_the_candidates(filled):
    asked = []

    def scorer(query, texts):
        asked.append((query, list(texts)))
        return np.array([len(text) for text in texts])

    hits = filled.collection.search("cat", 2, rerank=scorer, candidates=4)
    assert (
        ids_of(hits) == sorted(ids_of(filled.collection.search("cat", 4)), key=lambda x: -len(TEXTS[IDS.index(x)]))[:2]
    )
    assert asked[0][0] == "cat" and len(asked[0][1]) == 4
    assert hits[0].score == len(hits[0].text)
    with pytest.raises(InputError, match=r"returned scores of shape \(1,\) for 6 pairs"):
        filled.collection.search("cat", rerank=lambda query, texts: [1.0])


def test_adding_an_id_that_is_there_is_refused_by_name_and_changes_nothing(filled):
    before = filled.collection.versions()
    with pytest.raises(
        InputError, match=r"The id 'c' .* already exists in .*notes. So do 1 more of these ids. Use upsert"
    ):
        filled.collection.add(["new", "x", "y"], ["n", "c", "d"])
    assert filled.collection.versions() == before
    assert "new" not in filled.model.texts  # nor is anything embedded


def test_upsert_replaces_texts_with_their_metadata(filled):
    written = filled.collection.upsert(["a cat sleeps", "a fish"], ["a", "g"], [{"genre": "pets"}, {}])
    assert (written.n_added, written.n_replaced, written.n_unchanged, written.n_embedded) == (1, 1, 0, 2)
    assert contents(filled.collection)["a"] == ("a cat sleeps", {"genre": "pets"})
    assert len(filled.collection) == 7
    assert "a" not in ids_of(filled.collection.search("sits", mode="text"))  # the words of the old text are gone


def test_texts_that_are_there_are_not_embedded_again_whatever_their_ids(filled):
    filled.model.texts.clear()
    texts = [*TEXTS[:3], TEXTS[0], "new", "new"]
    written = filled.collection.upsert(texts, ["a", "b", "x", "y", "z", "c"], [*YEARS[:1], {"year": 1}, {}, {}, {}, {}])
    assert filled.model.texts == ["new"]
    assert (written.n_added, written.n_replaced, written.n_unchanged, written.n_embedded) == (3, 2, 1, 1)
    vectors = stored_vectors(filled.collection)
    assert np.array_equal(vectors["y"], vectors["a"]) and np.array_equal(vectors["z"], vectors["c"])


def test_a_second_run_over_the_same_texts_writes_nothing(filled):
    before = filled.collection.versions()
    assert filled.collection.upsert(TEXTS, IDS, YEARS).n_unchanged == 6
    assert filled.collection.versions() == before


def test_many_rows_are_compared_as_few_are(tmp_path):
    collection, model = fake_collection(tmp_path / "c")
    texts = [f"cat {number}" for number in range(1500)]
    collection.add(texts)
    model.texts.clear()
    written = collection.upsert([*texts, "dog"])
    assert (written.n_added, written.n_unchanged, model.texts) == (1, 1500, ["dog"])
    assert collection.delete(written.ids[:1200]) == 1200
    assert len(collection) == 301


def test_a_text_without_an_id_is_its_own_id(tmp_path):
    collection, _ = fake_collection(tmp_path / "c")
    assert collection.add(["a cat"]).ids == (own_id("a cat"),)
    assert collection.upsert(["a cat"]).n_unchanged == 1
    with pytest.raises(InputError, match=r"texts\[0\] and texts\[2\] are equal"):
        collection.upsert(["x", "y", "x"])


def test_texts_are_removed_by_id_and_by_condition(filled):
    assert filled.collection.delete(["a", "nobody", "it's"]) == 1
    assert filled.collection.delete(where="year > 1993") == 2
    assert sorted(contents(filled.collection)) == ["b", "c", "d"]
    assert filled.collection.delete([]) == 0
    for call in (lambda: filled.collection.delete(), lambda: filled.collection.delete(["b"], where="year > 1")):
        with pytest.raises(InputError, match="either ids or where"):
            call()


def test_ids_may_hold_quotes_and_any_script(tmp_path):
    collection, _ = fake_collection(tmp_path / "c")
    ids = ["it's", 'a "b"', "`", "日本", "a b", "%", "--", "x'); drop"]
    collection.add([f"text {place}" for place in range(len(ids))], ids)
    assert sorted(collection.get(ids)) == sorted(ids)
    assert collection.delete(ids[:4]) == 4
    assert sorted(contents(collection)) == sorted(ids[4:])


def test_metadata_comes_back_as_it_was_given(tmp_path):
    collection, _ = fake_collection(tmp_path / "c")
    moment = datetime(2020, 1, 2, 3, 4, 5, 6, tzinfo=timezone.utc)
    row = {"yes": True, "n": 3, "x": 0.5, "word": "naïve", "day": date(2020, 1, 2), "moment": moment, "two words": "x"}
    collection.add(["one", "two"], ["1", "2"], [row, {"n": None}])
    assert collection.columns == {
        "yes": "bool",
        "n": "int",
        "x": "float",
        "word": "text",
        "day": "date",
        "moment": "datetime",
        "two words": "text",
    }
    assert contents(collection) == {"1": ("one", row), "2": ("two", {})}
    assert collection.upsert(["one"], ["1"], [row]).n_unchanged == 1
    assert collection.get(["2", "x"]) == {"2": Entry("2", "two")}
    condition = "yes and n = 3 and day > date '2019-01-01' and moment < timestamp '2021-01-01' and `two words` = 'x'"
    assert ids_of(collection.search("one", where=condition)) == ["1"]


@pytest.mark.parametrize("mode", ["dense", "text", "hybrid"])
def test_a_filter_holds_before_the_best_are_chosen(filled, mode):
    hits = filled.collection.search("cats and dogs", 1, mode=mode, where="year = 1991 or year = 1995")
    assert ids_of(hits) == ["b"]
    assert ids_of(filled.collection.search("the dog", where="YEAR in (1990) or lower(text) like '%river%'")) in (
        ["a", "f"],
        ["f", "a"],
    )


@pytest.mark.parametrize(
    ("where", "message"),
    [
        ("yaer > 1990", "Unknown column 'yaer'. Did you mean 'year'\\? Choose from: id, text, year."),
        ("vector is null", "Unknown column 'vector'"),
        ('"the id" = 1', "Unknown column 'the id'.* Put strings in single quotes."),
        ("year = 'a'", r"Invalid filter .*'Int64'.* The columns are id \(text\), text \(text\), year \(int\)"),
        ("year >", "Invalid filter"),
        ("year", "Invalid filter"),
        ("year = 1; delete", "contains ';'"),
        ("year = 1 -- x", "contains '--'"),
        ("id = 'open", 'contains "\'"'),
        (" ", "The filter is ' '"),
    ],
)
def test_an_invalid_filter_is_refused_with_a_hint(filled, where, message):
    for call in (lambda: filled.collection.search("x", where=where), lambda: filled.collection.delete(where=where)):
        with pytest.raises((InputError, UnknownNameError), match=message):
            call()
    assert len(filled.collection) == 6


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("a cat",), "texts must be a list, got one text"),
        ((["a", 3],), r"texts\[1\] is 3, of type int"),
        ((["a", "\ud800"],), "lone surrogate"),
        ((["a"], ["1", "2"]), "There are 1 texts but 2 ids"),
        ((["a"], ["1"], []), "There are 1 texts but 0 metadata"),
        ((["a"], [1]), r"ids\[0\] is 1, of type int. Use str\(id\)"),
        ((["a"], [""]), r"ids\[0\] is empty"),
        ((["a"], "1"), "ids must be a list"),
        ((["a", "b"], ["1", "1"]), r"The id '1' appears twice, as ids\[0\] and ids\[1\]"),
        ((["a"], ["1"], ["x"]), r"metadata\[0\] is 'x', not a dict"),
        ((["a"], ["1"], [{"year": "1990"}]), r"'1990', of type text, but the column has the type int"),
        ((["a"], ["1"], [{"year": 0.5}]), r"0.5, of type float, but the column has the type int"),
        ((["a"], ["1"], [{"Year": 1}]), r"the column 'year' differs only in case"),
        ((["a"], ["1"], [{"x": [1]}]), r"of type list. Metadata can be: bool, int"),
        ((["a"], ["1"], [{"x": 2**70}]), "does not fit in 64 bits"),
        ((["a"], ["1"], [{"Vector": 1}]), "has the reserved column name"),
        ((["a"], ["1"], [{"_x": 1}]), "has the invalid column name"),
        ((["a", "b"], ["1", "2"], [{"new": 1}, {"new": "x"}]), "of type text, but the column has the type int"),
    ],
)
def test_rows_that_cannot_be_are_refused_and_nothing_is_written(filled, arguments, message):
    before = filled.collection.versions(), filled.collection.columns
    for write in (filled.collection.add, filled.collection.upsert):
        with pytest.raises(InputError, match=message):
            write(*arguments)
    assert (filled.collection.versions(), filled.collection.columns) == before


@pytest.mark.parametrize("bad", [np.full((1, 16), np.nan), np.ones((1, 15)), np.ones((2, 16))])
def test_invalid_vectors_change_nothing(filled, monkeypatch, bad):
    before = filled.collection.versions()
    monkeypatch.setattr(filled.model._encoder, "encode_document", lambda texts: bad)
    with pytest.raises(InputError, match=r"NaN|width 15; earlier vectors have width 16|returned 2 vectors for 1 texts"):
        filled.collection.add(["something new"], ["n"], [{"also": "new"}])
    assert filled.collection.versions() == before


def test_unusable_queries_are_refused(filled):
    for arguments, options, message in [
        (("x", 0), {}, "k must be at least 1, got 0"),
        (("x",), {"candidates": 0}, "candidates must be at least 1"),
        (("x",), {"mode": "hybird"}, "Did you mean 'hybrid'"),
        ((3,), {}, "query is 3, of type int"),
    ]:
        with pytest.raises(TwinvecError, match=message):
            filled.collection.search(*arguments, **options)


def test_another_model_is_refused_with_both_names(filled):
    with pytest.raises(
        CollectionError, match=r"was created with the model 'hash', not with 'other'.*reindex\(model='other'\)"
    ):
        Collection.open(filled.path, model=CountingEmbedder("other"))


def test_a_model_that_has_changed_under_its_name_is_refused(tmp_path):
    write_tiny_model(tmp_path / "model", seed=0)
    Collection.create(tmp_path / "c", model=tmp_path / "model").add(["the cat"])
    write_tiny_model(tmp_path / "model", seed=1)
    collection = Collection.open(tmp_path / "c")
    with pytest.raises(CollectionError, match="created with another model named"):
        collection.search("cat")
    assert len(collection.search("cat", mode="text")) == 1  # which needs no model


def test_a_collection_finds_its_model_again_with_its_settings(tmp_path, tiny_bert):
    encoder = twinvec.load(tiny_bert, truncate_dim=8, readout="max", long="cut")
    texts = ["the cat sits", "a dog runs"]
    Collection.create(tmp_path / "c", model=encoder).add(texts, ["0", "1"])
    hits = Collection.open(tmp_path / "c").search("the cat sits")
    assert hits[0].id == "0" and hits[0].score == pytest.approx(1, abs=1e-5)
    expected = encoder.similarity(encoder.encode(texts[:1]), encoder.encode(texts))[0]
    np.testing.assert_allclose(sorted(hit.score for hit in hits), sorted(expected), atol=1e-5)
    with pytest.raises(CollectionError, match="the files or settings differ"):
        Collection.open(tmp_path / "c", model=tiny_bert)


@pytest.mark.parametrize("name", ["twinvec-mini", "twinvec-static"])
def test_shipped_models_are_remembered_by_name(tmp_path, name):
    Collection.create(tmp_path / "c", model=twinvec.load(name)).add(
        ["A cat sits on a mat.", "Stocks fell."], ["0", "1"]
    )
    opened = Collection.open(tmp_path / "c")
    assert opened.model.name == name
    assert ids_of(opened.search("a kitten", 1)) == ["0"]


def test_a_model_whose_measure_lance_lacks_is_refused(tmp_path):
    with pytest.raises(InputError, match="uses the similarity manhattan"):
        fake_collection(tmp_path / "c", similarity="manhattan")


def test_texts_can_be_embedded_again_by_another_model(filled):
    other = CountingEmbedder("other", sign=-1)
    before, old = contents(filled.collection), stored_vectors(filled.collection)
    version = filled.collection.versions()[-1].number
    assert filled.collection.reindex(other).n_embedded == 6
    assert contents(filled.collection) == before
    assert filled.collection.model.name == "other" and filled.collection.columns == {"year": "int"}
    new = stored_vectors(filled.collection)
    assert all(np.array_equal(new[each], -old[each]) for each in IDS)
    assert sorted(ids_of(filled.collection.search("dogs", mode="text"))) == ["b", "d"]
    assert filled.collection.reindex(other).n_embedded == 0
    assert Collection.open(filled.path, version=version).model.name == "hash"


def test_a_collection_that_was_open_sees_that_the_model_is_another_one(filled):
    opened = Collection.open(filled.path, model=filled.model)
    filled.collection.reindex(CountingEmbedder("other"))
    for call in (lambda: opened.search("x"), lambda: opened.add(["new"])):
        with pytest.raises(CollectionError, match="was created with the model 'other', not with 'hash'"):
            call()


def test_embedding_again_goes_on_where_it_was_stopped(filled, monkeypatch):
    monkeypatch.setattr(re_embedding, "BATCH_ROWS", 2)
    other = CountingEmbedder("other")
    documents = other.documents

    def failing(texts):
        if len(other.texts) >= 4:
            raise KeyboardInterrupt
        return documents(texts)

    broken = CountingEmbedder("other")
    broken.documents = failing
    with pytest.raises(KeyboardInterrupt):
        filled.collection.reindex(broken)
    assert filled.collection.model.name == "hash" and len(filled.collection.search("cat")) == 6
    assert filled.collection.reindex(other).n_embedded == 2
    assert len(other.texts) == 6 and len(set(other.texts)) == 6
    assert not (filled.path / re_embedding.FOLDER).exists()


def test_words_are_found_also_if_reindexing_was_stopped_before_their_index(filled, monkeypatch):
    def stopped(*_):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr("twinvec.collection.collection.rebuild", stopped)
        with pytest.raises(KeyboardInterrupt):
            filled.collection.reindex(CountingEmbedder("other"))
    opened = Collection.open(filled.path, model=CountingEmbedder("other"))
    assert sorted(ids_of(opened.search("dogs", mode="text"))) == ["b", "d"]


def test_an_old_version_can_be_read_but_not_written(filled):
    number = filled.collection.versions()[-1].number
    filled.collection.delete(["a"])
    filled.collection.upsert(["changed"], ["b"])
    old = Collection.open(filled.path, version=number, model=filled.model)
    assert contents(old) == {each: (text, row) for each, text, row in zip(IDS, TEXTS, YEARS, strict=True)}
    assert ids_of(old.search("a cat sits", 1)) == ["a"]
    assert sorted(ids_of(old.search("dogs", mode="text"))) == ["b", "d"]
    counts = {version.number: version.n_texts for version in filled.collection.versions()}
    assert counts[number] == 6 and list(counts.values())[-1] == len(filled.collection) == 5
    assert [version.number for version in old.versions()] == list(counts)  # an old one knows of the newer ones
    for call in (lambda: old.add(["x"]), lambda: old.delete(["a"]), lambda: old.reindex()):
        with pytest.raises(InputError, match=f"open at version {number}, which is read-only"):
            call()
    with pytest.raises(InputError, match="has no version 999"):
        Collection.open(filled.path, version=999)


def test_above_a_size_an_index_finds_almost_all_pairs_and_reports_its_recall(tmp_path, monkeypatch):
    monkeypatch.setattr(maintaining, "FLAT_ROWS", 500)
    monkeypatch.setattr("twinvec.collection.indexes.ROWS_PER_PARTITION", 20)
    collection, _ = fake_collection(tmp_path / "c")
    rng = np.random.default_rng(0)
    words = [f"w{number}" for number in range(200)]
    texts = [" ".join(rng.choice(words, 8)) for _ in range(1200)]
    collection.add([*texts, ""], [str(place) for place in range(1201)])  # one vector of zeros
    assert collection.delete(["1200"]) == 1
    report = collection.reindex()
    assert (report.index, report.n_texts) == ("ivf", 1200) and 0.8 < report.recall <= 1
    collection.add(["w1 w2 w3 unseen"], ["later"])  # in no index yet
    assert collection.search("w1 w2 w3 unseen", 1)[0].id == "later"
    exact = exact_search(vectors_of(texts[:20]), vectors_of([*texts, "w1 w2 w3 unseen"]), k=1)
    found = [collection.search(text, 1)[0].score for text in texts[:20]]
    np.testing.assert_allclose(found, exact.scores[:, 0], atol=1e-5)
    assert collection.delete(where="id != 'later'") == 1200
    assert collection.reindex().index == "flat"
    assert ids_of(collection.search("unseen", mode="hybrid")) == ["later"]


def test_tidying_leaves_one_file_and_no_text_without_index(filled):
    filled.collection.add(["one more"], ["g"])
    filled.collection.tidy()
    table = filled.collection._table()
    assert table.stats()["fragment_stats"]["num_fragments"] == 1
    assert table.index_stats("text_idx").num_unindexed_rows == 0
    assert len(contents(filled.collection)) == 7


def test_by_dot_product_all_vectors_are_compared_however_many(tmp_path, monkeypatch):
    monkeypatch.setattr(maintaining, "FLAT_ROWS", 3)
    collection, _ = fake_collection(tmp_path / "c", similarity="dot")
    collection.add(TEXTS, IDS)
    assert collection.reindex().index == "flat"


def test_files_are_joined_before_they_are_too_many(tmp_path, monkeypatch):
    monkeypatch.setattr(maintaining, "LEAST_FRAGMENTS", 5)
    collection, _ = fake_collection(tmp_path / "c")
    for number in range(14):
        collection.add([f"cat {number}"], [str(number)])
    assert collection._table().stats()["fragment_stats"]["num_fragments"] <= 6
    assert sorted(ids_of(collection.search("cat", 100, mode="text")), key=int) == [str(n) for n in range(14)]


def test_a_language_decides_which_words_are_the_same(tmp_path):
    german = Collection.create(tmp_path / "de", model=CountingEmbedder(), language="German")
    plain = Collection.create(tmp_path / "x", model=CountingEmbedder(), language=None)
    for collection in (german, plain):
        collection.add(["Die Häuser am Fluss", "the house"], ["0", "1"])
    assert ids_of(german.search("Haus", mode="text")) == ["0"]
    assert (plain.search("Haus", mode="text"), ids_of(plain.search("the", mode="text"))) == ([], ["1"])
    with pytest.raises(UnknownNameError, match=r"Unknown language 'german'. Did you mean 'German'"):
        Collection.create(tmp_path / "y", language="german")


KOREAN_TEXTS = ["비밀번호를 재설정하는 방법", "환불 정책이 뭔가요?", "물이 맑다", "password reset"]


def test_korean_words_are_found_with_their_particles(tmp_path):
    korean = Collection.create(tmp_path / "ko", model=CountingEmbedder(), language="Korean")
    korean.add(KOREAN_TEXTS, ["0", "1", "2", "3"])
    found = {query: ids_of(korean.search(query, 1, mode="text")) for query in ("비밀번호", "정책", "물", "Password")}
    assert found == {"비밀번호": ["0"], "정책": ["1"], "물": ["2"], "Password": ["3"]}
    assert ids_of(korean.search("날씨", mode="text")) == []
    korean.tidy()
    assert ids_of(Collection.open(korean.path, model=CountingEmbedder()).search("정책", 1, mode="text")) == ["1"]


@pytest.mark.parametrize(
    ("texts", "query", "found"), [(KOREAN_TEXTS, "환불정책", ["1"]), (["the houses"], "house", ["0"])]
)
def test_the_language_of_an_imported_file_follows_its_letters(tmp_path, texts, query, found):
    file = tmp_path / "texts.jsonl"
    file.write_text("".join(json.dumps({"id": str(i), "text": text}) + "\n" for i, text in enumerate(texts)))
    twinvec.index_file(file, tmp_path / "notes", CountingEmbedder())
    collection = Collection.open(tmp_path / "notes", model=CountingEmbedder())
    assert ids_of(collection.search(query, 1, mode="text")) == found


def test_an_existing_or_missing_collection_is_reported(tmp_path, filled):
    with pytest.raises(InputError, match="notes exists already"):
        fake_collection(filled.path)
    with pytest.raises(InputError, match=r"There is no collection at .*nowhere"):
        Collection.open(tmp_path / "nowhere")
    assert not (tmp_path / "nowhere").exists()
    (tmp_path / "file").write_text("x")
    with pytest.raises(InputError, match="There is no collection"):
        Collection.open(tmp_path / "file")


@pytest.mark.parametrize("call", [Collection.open, lambda path: Collection.create(path, model=CountingEmbedder())])
def test_an_unreachable_store_is_not_reported_as_damaged(call):
    with pytest.raises(CollectionError, match=r"Cannot (reach|create) nowhere://x/notes: .* Check the address"):
        call("nowhere://x/notes")


def test_a_table_that_is_not_a_collection_is_reported(tmp_path):
    import lancedb

    lancedb.connect(tmp_path / "t").create_table("texts", data=[{"a": 1}])
    with pytest.raises(CollectionError, match="is a Lance table, but not a collection"):
        Collection.open(tmp_path / "t")


def test_without_lancedb_the_extra_is_named_and_no_folder_is_made(tmp_path, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "lancedb", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'twinvec\[search\]'"):
        fake_collection(tmp_path / "c")
    assert list(tmp_path.iterdir()) == []
