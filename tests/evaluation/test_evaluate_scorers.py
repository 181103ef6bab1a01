"""Scorers under test: cross-encoders, and any object that scores pairs."""

from __future__ import annotations

import numpy as np
import pytest
from click.testing import CliRunner

import twinvec
from tiny import write_tiny_classifier
from twinvec.cli.app import main
from twinvec.errors import InputError
from twinvec.evaluation.evaluate import run_scorer
from twinvec.evaluation.tasks.retrieval import RetrievalTask, run_retrieval
from twinvec.evaluation.tasks.triplets import TripletTask
from twinvec.metrics import spearman

STS = [
    (5.0, "a cat", "a cat sleeps"),
    (2.0, "a dog", "the old man"),
    (4.0, "a house", "a red house"),
    (0.5, "rain", "b"),
    (3.0, "the river", "rain and river"),
    (1.0, "the book", "a small dog"),
]


class SharedWords:
    name, identity = "shared words", "shared-words"

    def score(self, pairs):
        return np.array([len({*first.split()} & {*second.split()}) for first, second in pairs], dtype=np.float32)


@pytest.fixture
def data(tmp_path):
    (tmp_path / "sts").mkdir()
    rows = "".join(f"toy\t{gold}\t{left}\t{right}\n" for gold, left, right in STS)
    (tmp_path / "sts/sts12.tsv").write_text(f"subset\tscore\ttext1\ttext2\n{rows}")
    return tmp_path


@pytest.fixture(scope="module")
def cross(tmp_path_factory):
    return write_tiny_classifier(tmp_path_factory.mktemp("cross") / "m")


def test_a_cross_encoder_folder_is_evaluated_by_its_scores(cross, data):
    found = twinvec.evaluate(cross, "sts12", data, cache=None)
    scores = twinvec.load_scorer(cross).score([(left, right) for _, left, right in STS])
    (result,) = found.results
    assert result.protocol == "Spearman of score x 100, all pairs together"
    assert result.value == pytest.approx(100 * spearman(scores, [gold for gold, _, _ in STS]))
    assert found.identity == twinvec.load_scorer(cross).identity
    assert found.settings == {"precision": "float32"}


def test_the_command_evaluates_and_compares_cross_encoders(cross, data, tmp_path):
    arguments = ["evaluate", str(cross), "--tasks", "sts12", "--data", str(data), "--no-cache"]
    result = CliRunner().invoke(main, [*arguments, "--json", str(tmp_path / "a.json")])
    assert result.exit_code == 0, result.output
    assert "Spearman of score" in result.output
    compared = CliRunner().invoke(
        main, ["compare", str(tmp_path / "a.json"), "twinvec-mini", "--tasks", "sts12", "--data", str(data)]
    )
    assert compared.exit_code == 0, compared.output


def test_any_scorer_object_is_evaluated(data):
    found = twinvec.evaluate(SharedWords(), "sts12", data, cache=None)
    assert found.system == "shared words"
    assert found.results[0].value == pytest.approx(100 * spearman([2, 0, 2, 0, 1, 0], [gold for gold, _, _ in STS]))


def test_triplets_by_score_count_ties_as_wrong():
    task = TripletTask("toy", ["a b", "a b"], ["a b", "c"], ["a", "d"])
    (run,) = run_scorer({"toy": task}, SharedWords(), first=None)
    assert run.results[0].value == 50.0


def test_tasks_that_need_vectors_are_refused_before_anything_is_scored(cross, data):
    (data / "transfer").mkdir()
    (data / "transfer/mr.tsv").write_text("label\ttext\n" + "".join(f"{i % 2}\ttext {i}\n" for i in range(40)))
    with pytest.raises(InputError, match="mr requires vectors"):
        twinvec.evaluate(cross, "sts12,mr", data, cache=None)


def test_settings_of_vectors_are_refused_for_a_scorer(cross, data):
    choice = twinvec.SystemChoice(str(cross), settings={"truncate_dim": 8})
    with pytest.raises(InputError, match="--truncate-dim can be set for"):
        twinvec.evaluate(choice, "sts12", data, cache=None)


def test_a_readout_gives_the_vectors_of_a_cross_encoders_backbone(cross, data):
    choice = twinvec.SystemChoice(str(cross), settings={"readout": "mean"})
    found = twinvec.evaluate(choice, "sts12", data, cache=None)
    assert found.results[0].protocol.startswith("Spearman of cosine")


def embed_lengths(texts):
    return np.array([[len(text), 1.0] for text in texts], dtype=np.float32)


TASK = RetrievalTask(
    "toy",
    {"q": "red house"},
    {f"d{i}": text for i, text in enumerate(["xx yy zz", "house", "a red house", "blue sea"])},
    {"q": {"d2": 2.0, "d1": 1.0}},
)


def test_reranking_orders_the_first_hits_by_score():
    outcomes = run_retrieval(TASK, embed_lengths, rerank=SharedWords())
    assert outcomes[0].predicted.tolist() == [1.0]  # d2 (two words), d1 (one word), then the rest
    assert outcomes[0].protocol.endswith("over all 4 documents, the first 100 re-ranked by shared words")


def test_documents_after_the_first_hits_keep_their_places(monkeypatch):
    monkeypatch.setattr("twinvec.evaluation.tasks.retrieval.RERANKED", 2)
    plain = run_retrieval(TASK, embed_lengths)
    ranked = run_retrieval(TASK, embed_lengths, rerank=SharedWords())
    recall = [outcomes[-1].predicted.tolist() for outcomes in (plain, ranked)]
    assert recall[0] == recall[1] == [1.0]


def test_rerank_requires_a_retrieval_task_and_an_embedder(cross, data):
    with pytest.raises(InputError, match="rerank requires a retrieval task"):
        twinvec.evaluate("twinvec-mini", "sts12", data, rerank=SharedWords(), cache=None)
    with pytest.raises(InputError, match="nothing to re-rank"):
        twinvec.evaluate(cross, "sts12", data, rerank=SharedWords(), cache=None)
