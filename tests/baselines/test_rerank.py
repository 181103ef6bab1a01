"""Baselines and re-ranking together: a scorer sorts what word vectors find, and BM25 is a scorer."""

from __future__ import annotations

import json

import pytest
from click.testing import CliRunner

import twinvec
from tiny import write_tiny_classifier
from twinvec.baselines.lexical import Bm25Scorer
from twinvec.cli.app import main
from twinvec.errors import ModelFolderError

TEXTS = ["the cat sits", "the dog sits", "rain and river", "the cat", "a river"]
QUERY = "the cat"
WORDS = "the 1 0 0\ncat 0 1 0\ndog 0 0.9 0.1\nsits 0.2 0.5 0\nrain 0 0 1\nriver 0.1 0 1\n"


@pytest.fixture(scope="module")
def words(tmp_path_factory):
    root = tmp_path_factory.mktemp("words")
    (root / "words.txt").write_text(WORDS)
    twinvec.convert_word_vectors(root / "words.txt", root / "words")
    return root / "words"


@pytest.fixture(scope="module")
def cross_encoder(tmp_path_factory):
    return write_tiny_classifier(tmp_path_factory.mktemp("scorer") / "bert")


def ids(*arguments):
    shown = CliRunner().invoke(main, [str(argument) for argument in arguments])
    assert shown.exit_code == 0, shown.output
    return [json.loads(line)["id"] for line in shown.stdout.splitlines()]


def test_search_in_a_file_reranks_what_word_vectors_find(words, cross_encoder, tmp_path):
    (tmp_path / "texts.txt").write_text("\n".join(TEXTS))
    search = ["search", tmp_path / "texts.txt", QUERY, "-m", words, "-k", "4"]
    found = ids(*search)
    candidates = [TEXTS[int(row)] for row in found]
    ranked = [candidates[row] for row in twinvec.load_scorer(cross_encoder).rank(QUERY, candidates).rows]
    assert [TEXTS[int(row)] for row in ids(*search, "--rerank", cross_encoder, "--candidates", "4")] == ranked
    assert found[0] == "3" and ranked != candidates


def test_search_in_a_collection_of_word_vectors_reranks(words, cross_encoder, tmp_path):
    pytest.importorskip("lancedb")
    twinvec.Collection.create(tmp_path / "c", model=words).add(TEXTS, [str(row) for row in range(len(TEXTS))])
    ranked = twinvec.load_scorer(cross_encoder).rank(QUERY, TEXTS).rows.tolist()
    search = ["search", tmp_path / "c", QUERY]
    assert ids(*search, "--rerank", cross_encoder) == [str(row) for row in ranked]
    assert ids(*search, "--rerank", cross_encoder, "--candidates", "1", "-k", "1") == ids(*search, "-k", "1")


def test_bm25_reranks(words):
    scorer = Bm25Scorer(TEXTS)
    hits = twinvec.search_texts(QUERY, TEXTS, 2, model=words, rerank=scorer)
    assert [hit.score for hit in hits] == pytest.approx(scorer.rank(QUERY, TEXTS, 2).scores.tolist())
    assert hits[0].text == "the cat"


def test_a_baseline_is_not_a_cross_encoder(words):
    with pytest.raises(ModelFolderError, match="is not a cross-encoder"):
        twinvec.search_texts(QUERY, TEXTS, rerank=words)
