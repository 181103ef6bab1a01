"""tf-idf and BM25 beside scikit-learn, bm25s and sums by hand."""

import math

import numpy as np
import pytest
from click.testing import CliRunner
from hypothesis import given, settings
from hypothesis import strategies as st

import twinvec
from twinvec.cli.app import main
from twinvec.embedder import as_embedder
from twinvec.errors import InputError, ModelFolderError, UnknownNameError

pytest.importorskip("sklearn")
bm25s = pytest.importorskip("bm25s")

from sklearn.feature_extraction.text import TfidfVectorizer  # noqa: E402
from sklearn.metrics.pairwise import cosine_similarity  # noqa: E402

from twinvec.baselines.lexical import Bm25Scorer, TfidfEmbedder, TfidfScorer  # noqa: E402

CORPUS = ["The cat sits on the mat.", "A dog runs.", "Rain falls on the cat and the dog.", "", "Stocks fell again."]
TEXTS = [*CORPUS, "the cat", "unknown words only", "dog dog dog"]


def test_tfidf_is_scikit_learns_own_cosine():
    vectorizer = TfidfVectorizer().fit(CORPUS)
    rows = vectorizer.transform(TEXTS)
    expected = cosine_similarity(rows)
    pairs = [(left, right) for left in TEXTS for right in TEXTS]
    found = TfidfScorer(CORPUS).score(pairs).reshape(len(TEXTS), -1)
    np.testing.assert_allclose(found, expected, atol=1e-6)
    embedder = TfidfEmbedder.fit(CORPUS)
    assert embedder.width == len(vectorizer.vocabulary_)
    vectors = embedder.embed(TEXTS)
    assert vectors.dtype == np.float32 and (vectors[3] == 0).all() and (vectors[6] == 0).all()
    np.testing.assert_allclose(vectors, rows.toarray(), atol=1e-6)
    assert embedder.embed([]).shape == (0, embedder.width) and TfidfScorer(CORPUS).score([]).shape == (0,)


def test_tfidf_keeps_the_most_frequent_terms_and_its_folder_gives_the_same_bits(tmp_path):
    embedder = TfidfEmbedder.fit(CORPUS, 3)
    assert embedder.width == 3
    embedder.save(tmp_path / "tfidf")
    again = as_embedder(tmp_path / "tfidf")
    assert again.identity == embedder.identity != TfidfEmbedder.fit(CORPUS).identity
    assert np.array_equal(again.embed(TEXTS), embedder.embed(TEXTS))
    assert twinvec.inspect_model(tmp_path / "tfidf").kind == "tfidf"
    assert twinvec.search_texts("the cat", CORPUS, 1, model=tmp_path / "tfidf")[0].row in (0, 2)
    (tmp_path / "tfidf/terms.json").write_text('["cat", "cat", 3]')
    with pytest.raises(ModelFolderError, match="do not have 3 terms"):
        as_embedder(tmp_path / "tfidf")


@pytest.mark.parametrize("fit", [TfidfEmbedder.fit, TfidfScorer, Bm25Scorer])
def test_what_cannot_be_fitted_is_refused(fit):
    for texts in ([], ["", "..."]):
        with pytest.raises(InputError, match="have no words"):
            fit(texts)
    with pytest.raises(InputError, match="Put it in a list"):
        fit("one text")


@pytest.mark.parametrize("kind", [TfidfScorer, Bm25Scorer])
def test_pairs_of_the_wrong_shape_are_refused(kind):
    with pytest.raises(InputError, match=r"pairs\[1\] is .*, not two texts"):
        kind(CORPUS).score([("a", "b"), ("a", "b", "c")])


def test_bm25_as_worked_by_hand():
    """Two texts of 2 and 4 words, mean 3; "cat" is in one, "the" in both."""
    scorer = Bm25Scorer(["the cat", "The dog, the rain"])
    rare, common = math.log(1 + 1.5 / 1.5), math.log(1 + 0.5 / 2.5)
    short, long = 1.5 * (0.25 + 0.75 * 2 / 3), 1.5 * (0.25 + 0.75 * 4 / 3)
    expected = [
        rare * 1 / (1 + short) + common * 1 / (1 + short),
        common * 2 / (2 + long),
        0.0,
        2 * rare * 1 / (1 + short),
    ]
    pairs = [("the cat", "the cat"), ("THE", "the dog the rain"), ("zebra", "zebra"), ("cat cat", "cat zebra")]
    np.testing.assert_allclose(scorer.score(pairs), expected, rtol=1e-6)


WORD = st.sampled_from(["cat", "dog", "rain", "sits", "the", "a", "zebra"])
SENTENCE = st.lists(WORD, max_size=8).map(" ".join)


@settings(max_examples=50, deadline=None)
@given(
    texts=st.lists(SENTENCE, min_size=1, max_size=8).filter(any),
    query=SENTENCE,
    k1=st.floats(0.1, 3),
    b=st.floats(0, 1),
)
def test_scores_of_pairs_are_those_of_bm25s_and_rank_is_their_order(texts, query, k1, b):
    scorer = Bm25Scorer(texts, k1=k1, b=b)
    found = scorer.score([(query, text) for text in texts])
    oracle = bm25s.BM25(method="lucene", k1=k1, b=b)
    oracle.index([text.split() for text in texts], show_progress=False)
    known = [word for word in query.split() if word in oracle.vocab_dict]
    expected = oracle.get_scores(known) if known else np.zeros(len(texts))
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-6)
    ranked = scorer.rank(query)
    assert sorted(ranked.rows.tolist()) == list(range(len(texts)))
    np.testing.assert_allclose(ranked.scores, found[ranked.rows], rtol=1e-4, atol=1e-6)
    assert (np.diff(ranked.scores) <= 0).all()
    assert np.array_equal(scorer.rank(query, k=2).rows, ranked.rows[:2])


def test_rank_takes_other_texts_and_refuses_none():
    scorer = Bm25Scorer(CORPUS)
    assert scorer.rank("cat", ["a dog", "cat cat", "cat and more words"], 2).rows.tolist() == [1, 2]
    with pytest.raises(InputError, match="no texts to rank"):
        scorer.rank("cat", [])
    with pytest.raises(InputError, match="k must be at least 1"):
        scorer.rank("cat", k=0)
    with pytest.raises(InputError, match="b from 0 to 1"):
        Bm25Scorer(CORPUS, b=2)


def test_identities_change_with_what_decides_scores():
    found = {Bm25Scorer(CORPUS).identity, Bm25Scorer(CORPUS, k1=1).identity, Bm25Scorer(CORPUS[:3]).identity}
    assert len(found) == 3 and Bm25Scorer(CORPUS).identity in found


def test_a_bm25_folder_scores_ranks_and_is_evaluated_like_the_fitted_scorer(tmp_path):
    texts = ["A cat sits.", "Rain falls.", "The cat and the dog.", "a dog"]
    (tmp_path / "texts.txt").write_text("\n".join(texts) + "\n")
    result = CliRunner().invoke(main, ["lexical", "bm25", str(tmp_path / "texts.txt"), "-o", str(tmp_path / "bm25")])
    assert result.exit_code == 0, result.output
    fitted, opened = Bm25Scorer(texts), twinvec.load_scorer(tmp_path / "bm25")
    pairs = [(query, text) for query in ("a cat", "the dog", "unknown") for text in texts]
    assert opened.identity == fitted.identity
    assert opened.score(pairs).tobytes() == fitted.score(pairs).tobytes()
    ranked = CliRunner().invoke(
        main, ["rank", "the dog", str(tmp_path / "texts.txt"), "-m", str(tmp_path / "bm25"), "-k", "1"]
    )
    assert ranked.exit_code == 0 and "The cat and the dog." in ranked.output, ranked.output


def test_a_tfidf_folder_from_the_command_embeds_like_the_fitted_embedder(tmp_path):
    texts = ["A cat sits.", "Rain falls."]
    (tmp_path / "texts.txt").write_text("\n".join(texts) + "\n")
    result = CliRunner().invoke(main, ["lexical", "tfidf", str(tmp_path / "texts.txt"), "-o", str(tmp_path / "tfidf")])
    assert result.exit_code == 0, result.output
    opened = as_embedder(tmp_path / "tfidf")
    assert opened.embed(texts).tobytes() == TfidfEmbedder.fit(texts).embed(texts).tobytes()


def test_a_scorer_folder_is_no_model_and_a_model_folder_no_scorer(tmp_path):
    twinvec.fit_lexical(["a cat", "a dog"], tmp_path / "bm25", "bm25")
    with pytest.raises(ModelFolderError, match="scores pairs and has no vectors"):
        as_embedder(tmp_path / "bm25")
    twinvec.fit_lexical(["a cat", "a dog"], tmp_path / "tfidf")
    with pytest.raises(ModelFolderError):
        twinvec.load_scorer(tmp_path / "tfidf")
    with pytest.raises(UnknownNameError, match="kind 'bm26'"):
        twinvec.fit_lexical(["a"], tmp_path / "x", "bm26")


def test_inspect_says_what_a_bm25_folder_is(tmp_path):
    twinvec.fit_lexical(["a cat", "a dog"], tmp_path / "bm25", "bm25")
    result = CliRunner().invoke(main, ["inspect", str(tmp_path / "bm25")])
    assert result.exit_code == 0 and "bm25" in result.output and "none: it scores pairs" in result.output


@pytest.mark.parametrize("content", ["{}", "[1]", '"a"', "[]", '["..."]'])
def test_a_damaged_bm25_folder_is_refused(tmp_path, content):
    twinvec.fit_lexical(["a cat", "a dog"], tmp_path / "bm25", "bm25")
    (tmp_path / "bm25/texts.json").write_text(content)
    with pytest.raises(ModelFolderError, match=r"list of texts|no words"):
        twinvec.load_scorer(tmp_path / "bm25")
