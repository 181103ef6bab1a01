"""Cross-encoders without torch: shapes, batches, bits, int8, saved folders, re-ranking, and what is refused."""

from __future__ import annotations

import json
import logging
import re

import numpy as np
import pytest
from click.testing import CliRunner

import twinvec
from tiny import CLASSIFIERS, WORDS, write_tiny_classifier, write_tiny_model
from twinvec.cli.app import main
from twinvec.errors import (
    InputError,
    ModelFolderError,
    TextTooLongError,
    UnknownNameError,
    UnknownScriptError,
    WeightsError,
)
from twinvec.metrics import spearman
from twinvec.pairs.cross_encoder import as_scorer

RNG = np.random.default_rng(0)


def random_text(longest):
    return " ".join(RNG.choice(WORDS, RNG.integers(0, longest + 1)))


PAIRS = [(random_text(16), random_text(16)) for _ in range(60)] + [("", ""), ("the cat", "")]
TEXTS = ["the cat sits", "a dog runs", "rain and river", "a small red house", "the old man reads a book"]


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    root = tmp_path_factory.mktemp("classifiers")
    return {family: write_tiny_classifier(root / family, family) for family in CLASSIFIERS}


@pytest.fixture(scope="module")
def three_labels(tmp_path_factory):
    labels = {"0": "contradiction", "1": "entailment", "2": "neutral"}
    return write_tiny_classifier(tmp_path_factory.mktemp("nli") / "m", n_labels=3, config={"id2label": labels})


@pytest.fixture(scope="module")
def scorer(folders):
    return twinvec.load_scorer(folders["bert"])


# --- scores


@pytest.mark.parametrize("family", CLASSIFIERS)
def test_a_score_does_not_depend_on_the_batch_or_the_threads(folders, family):
    one = twinvec.load_scorer(folders[family], activation="none", threads=1)
    three = twinvec.load_scorer(folders[family], activation="none", threads=3)
    together = one.score(PAIRS)
    np.testing.assert_allclose(np.concatenate([one.score([pair]) for pair in PAIRS]), together, atol=1e-5)
    np.testing.assert_allclose(three.score(PAIRS[::-1])[::-1], together, atol=1e-5)


@pytest.mark.parametrize("precision", ["float32", "int8"])
@pytest.mark.parametrize("family", ["bert", "roberta", "modernbert"])
def test_the_deterministic_mode_gives_a_pair_the_same_bits_everywhere(folders, family, precision):
    first = twinvec.load_scorer(folders[family], deterministic=True, precision=precision, threads=1)
    other = twinvec.load_scorer(folders[family], deterministic=True, precision=precision, threads=2)
    together = first.score(PAIRS)
    assert np.array_equal(np.concatenate([first.score([pair]) for pair in PAIRS]), together)
    assert np.array_equal(other.score(PAIRS[::-1])[::-1], together)


@pytest.mark.parametrize("family", CLASSIFIERS)
def test_int8_keeps_the_order_of_the_scores(folders, family):
    exact = twinvec.load_scorer(folders[family], activation="none").score(PAIRS)
    rough = twinvec.load_scorer(folders[family], activation="none", precision="int8").score(PAIRS)
    assert spearman(exact, rough) > 0.98


def test_int8_does_not_depend_on_the_batch(folders):
    scorer = twinvec.load_scorer(folders["bert"], activation="none", precision="int8")
    np.testing.assert_allclose(np.concatenate([scorer.score([p]) for p in PAIRS]), scorer.score(PAIRS), atol=1e-5)


def test_bfloat16_keeps_the_order_of_the_scores(folders):
    pytest.importorskip("openvino", reason="needs the extra 'fast'")
    exact = twinvec.load_scorer(folders["bert"], activation="none").score(PAIRS)
    rough = twinvec.load_scorer(folders["bert"], activation="none", precision="bfloat16").score(PAIRS)
    assert spearman(exact, rough) > 0.98


def test_shapes_follow_the_labels(scorer, three_labels):
    several = twinvec.load_scorer(three_labels)
    assert scorer.score(PAIRS).shape == (len(PAIRS),) and scorer.score([]).shape == (0,)
    assert several.score(PAIRS).shape == (len(PAIRS), 3) and several.score([]).shape == (0, 3)
    chosen = twinvec.load_scorer(three_labels, label="entailment")
    assert np.array_equal(chosen.score(PAIRS), several.score(PAIRS)[:, 1])
    assert chosen.rank("the cat", TEXTS).rows.shape == (len(TEXTS),)


def test_the_order_of_a_pair_matters(scorer):
    assert not np.allclose(scorer.score(PAIRS), scorer.score([(second, first) for first, second in PAIRS]))


ACTIVATIONS = [
    ({"problem_type": "regression"}, "none"),
    ({"problem_type": "single_label_classification"}, "softmax"),
    ({"problem_type": "multi_label_classification"}, "sigmoid"),
    ({"sentence_transformers": {"activation_fn": "torch.nn.modules.activation.Sigmoid"}}, "sigmoid"),
    ({"problem_type": "regression", "sbert_ce_default_activation_function": "torch.nn.Sigmoid"}, "sigmoid"),
    ({}, "none"),
]


@pytest.mark.parametrize(("config", "expected"), ACTIVATIONS)
def test_the_activation_comes_from_the_config(tmp_path, config, expected):
    folder = write_tiny_classifier(tmp_path / "m", n_labels=3, config=config)
    scorer = twinvec.load_scorer(folder)
    raw = twinvec.load_scorer(folder, activation="none").score(PAIRS).astype(np.float64)
    shares = np.exp(raw) / np.exp(raw).sum(axis=1, keepdims=True)
    wanted = {"none": raw, "sigmoid": 1 / (1 + np.exp(-raw)), "softmax": shares}
    assert scorer.activation == expected
    np.testing.assert_allclose(scorer.score(PAIRS), wanted[expected], atol=1e-6)
    scorer.save(tmp_path / "out")
    assert np.array_equal(twinvec.load_scorer(tmp_path / "out").score(PAIRS), scorer.score(PAIRS))


def test_an_activation_that_is_not_of_torch_is_not_run(tmp_path, caplog):
    config = {"sentence_transformers": {"activation_fn": "os.system"}}
    assert twinvec.load_scorer(write_tiny_classifier(tmp_path / "m", config=config)).activation == "sigmoid"
    assert "'os.system'" in caplog.text and "is ignored" in caplog.text
    config = {"sentence_transformers": {"activation_fn": "torch.nn.modules.activation.Softplus"}}
    with pytest.raises(UnknownNameError, match="Softplus"):
        twinvec.load_scorer(write_tiny_classifier(tmp_path / "n", config=config))


# --- long pairs


LONG = [("the cat sits " * 20, "a dog"), ("a", "b"), ("the dog " * 30, "rain " * 50)]


def test_long_pairs_are_cut_with_one_warning_that_counts_them(folders, caplog):
    scorer = twinvec.load_scorer(folders["bert"])
    with caplog.at_level(logging.WARNING):
        scorer.score(LONG)
    (record,) = caplog.records
    assert (
        "2 pairs were longer than the model's limit of 40 tokens" in record.message and "113 tokens" in record.message
    )
    caplog.clear()
    twinvec.load_scorer(folders["bert"], long="cut").score(LONG)
    assert not caplog.records


def test_pairs_in_a_script_without_words_are_counted_or_refused(folders, caplog):
    pairs = [("the cat", "환불 정책이 뭔가요?"), ("the cat", "a dog")]
    twinvec.load_scorer(folders["bert"]).score(pairs)
    (record,) = caplog.records
    assert "1 of 2 pairs is in a script that this model has no words for: Hangul (1)" in record.message
    with pytest.raises(UnknownScriptError, match=r"pairs\[0\] is in Hangul"):
        twinvec.load_scorer(folders["bert"], unknown="error").score(pairs)


def test_long_pairs_can_be_refused(folders):
    scorer = twinvec.load_scorer(folders["bert"], long="error")
    with pytest.raises(TextTooLongError, match=r"pairs\[0\] has 65 tokens; the model's limit is 40"):
        scorer.score(LONG[:2])
    with pytest.raises(InputError, match="chunk"):
        twinvec.load_scorer(folders["bert"], long="chunk")


@pytest.mark.parametrize("limit", [0, 4, 41, 2.5, True, "8"])
def test_a_limit_that_the_model_cannot_have_is_refused(folders, limit):
    with pytest.raises(InputError, match="max_tokens must be a whole number from 5 to 40"):
        twinvec.load_scorer(folders["bert"], max_tokens=limit)


# --- folders


@pytest.mark.parametrize("family", CLASSIFIERS)
@pytest.mark.parametrize("precision", ["float32", "int8"])
def test_a_saved_model_gives_the_same_bits(folders, tmp_path, family, precision):
    scorer = twinvec.load_scorer(folders[family], max_tokens=20, long="cut", precision=precision, deterministic=True)
    scorer.save(tmp_path / "out")
    again = twinvec.load_scorer(tmp_path / "out", long="cut", precision=precision, deterministic=True)
    assert (again.max_tokens, again.activation, again.labels) == (20, scorer.activation, scorer.labels)
    assert np.array_equal(again.score(PAIRS), scorer.score(PAIRS))
    with pytest.raises(InputError):
        scorer.save(tmp_path / "out")


def test_the_identity_follows_content_and_settings(folders, tmp_path):
    scorer = twinvec.load_scorer(folders["bert"])
    assert scorer.identity == twinvec.load_scorer(folders["bert"], threads=1, long="cut").identity
    others = [
        twinvec.load_scorer(folders["bert"], precision="int8"),
        twinvec.load_scorer(folders["bert"], activation="none"),
        twinvec.load_scorer(folders["bert"], max_tokens=20),
        twinvec.load_scorer(write_tiny_classifier(tmp_path / "m", seed=9)),
    ]
    assert len({scorer.identity, *(other.identity for other in others)}) == 5


def test_a_sentence_model_is_refused_as_a_scorer_and_the_reverse(folders, tiny_bert, tmp_path):
    with pytest.raises(ModelFolderError, match=r"is a sentence model.*twinvec\.load "):
        twinvec.load_scorer(tiny_bert)
    with pytest.raises(ModelFolderError, match=r"is a cross-encoder.*twinvec\.load_scorer"):
        twinvec.load(folders["bert"])
    with pytest.raises(ModelFolderError, match=r"is a cross-encoder.*twinvec\.load_scorer"):
        twinvec.find_pairs(TEXTS, model=folders["bert"])
    assert twinvec.load(folders["bert"], readout="mean").width == 32  # asked for by name, its backbone embeds
    around = write_tiny_model(tmp_path / "m")
    config = json.loads((around / "config.json").read_text())
    (around / "config.json").write_text(json.dumps({**config, "architectures": ["BertForSequenceClassification"]}))
    assert twinvec.load(around).width == 32  # modules.json decides
    with pytest.raises(ModelFolderError, match="is a sentence model"):
        twinvec.load_scorer(around)


def test_what_is_no_cross_encoder_is_said_to_be_none(tmp_path, folders):
    plain = write_tiny_model(tmp_path / "plain")
    (plain / "modules.json").unlink()
    with pytest.raises(ModelFolderError, match="its architecture is BertModel"):
        twinvec.load_scorer(plain)
    (tmp_path / "empty").mkdir()
    with pytest.raises(ModelFolderError, match=r"has no config\.json"):
        twinvec.load_scorer(tmp_path / "empty")
    other = write_tiny_classifier(tmp_path / "other", config={"model_type": "deberta-v2"})
    with pytest.raises(UnknownNameError, match=r"deberta-v2.*albert"):
        twinvec.load_scorer(other)


CONFIGS = [
    ({"id2label": {"0": "a", "2": "b"}}, "id2label"),
    ({"id2label": {"0": 5}}, "not a text"),
    ({"id2label": {"0": "a", "1": "b"}}, "has the shape"),
    ({"id2label": {}, "num_labels": 0}, "num_labels"),
    ({"id2label": None}, "has the shape"),  # transformers takes two labels for the default
    ({"problem_type": "unknown"}, "problem_type"),
    ({"sentence_transformers": 3}, "sentence_transformers"),
]


@pytest.mark.parametrize(("config", "said"), CONFIGS)
def test_a_config_that_cannot_be_is_refused(tmp_path, config, said):
    with pytest.raises(ModelFolderError, match=said):
        twinvec.load_scorer(write_tiny_classifier(tmp_path / "m", config=config))


def test_a_head_that_is_missing_is_refused(tmp_path, tiny_bert):
    folder = write_tiny_classifier(tmp_path / "m")
    (folder / "model.safetensors").write_bytes((tiny_bert / "model.safetensors").read_bytes())
    with pytest.raises(WeightsError, match=r"lacks the parameter"):
        twinvec.load_scorer(folder)


def test_a_prompt_is_refused(tmp_path):
    folder = write_tiny_classifier(tmp_path / "m")
    (folder / "config_sentence_transformers.json").write_text(json.dumps({"default_prompt_name": "query"}))
    with pytest.raises(ModelFolderError, match="default_prompt_name"):
        twinvec.load_scorer(folder)


def test_inspect_says_that_a_folder_is_a_cross_encoder(three_labels, tiny_bert):
    found = twinvec.inspect_model(three_labels)
    rows = dict(found.rows())
    assert rows["kind"].startswith("cross-encoder") and found.warnings == ()
    assert rows["labels"] == "3: contradiction, entailment, neutral" and rows["activation"] == "none"
    assert "kind" not in dict(twinvec.inspect_model(tiny_bert).rows())


# --- what is given


@pytest.mark.parametrize(
    "pairs",
    [
        "ab",
        [("a", "b"), "ab"],
        [("a", "b", "c")],
        [("a",)],
        [("a", None)],
        [("a", b"b")],
        [(1, 2)],
        [["a", ["b"]]],
        ("a", "b"),
        5,
        None,
        [("a", "\ud800")],
    ],
    ids=repr,
)
def test_pairs_of_another_shape_are_refused(scorer, pairs):
    with pytest.raises(InputError, match="pairs"):
        scorer.score(pairs)


def test_nothing_to_rank_is_refused(scorer, three_labels):
    for texts in ([], "a text"):
        with pytest.raises(InputError, match="no texts to rank"):
            scorer.rank("the cat", texts)
    with pytest.raises(InputError, match="k must be at least 1"):
        scorer.rank("the cat", TEXTS, 0)
    with pytest.raises(InputError, match=r"returns 3 scores per pair \(contradiction, .*label='contradiction'"):
        twinvec.load_scorer(three_labels).rank("the cat", TEXTS)
    with pytest.raises(UnknownNameError, match="entailment"):
        twinvec.load_scorer(three_labels, label="entail")


# --- re-ranking


def test_the_best_texts_are_ordered_anew(scorer, folders):
    ranked = scorer.rank("the cat", TEXTS)
    assert np.array_equal(ranked.scores, np.sort(scorer.score([("the cat", text) for text in TEXTS]))[::-1])

    def function(query, texts):
        return scorer.score([(query, text) for text in texts])

    for rerank in (scorer, folders["bert"], str(folders["bert"]), function):
        hits = twinvec.search_texts("the cat", TEXTS, 3, rerank=rerank)
        assert [hit.row for hit in hits] == ranked.rows[:3].tolist()
        assert [hit.score for hit in hits] == pytest.approx(ranked.scores[:3].tolist(), abs=1e-6)
    first = twinvec.search_texts("the cat", TEXTS, 2)
    two = twinvec.search_texts("the cat", TEXTS, 2, rerank=scorer, candidates=2)
    assert {hit.row for hit in two} == {hit.row for hit in first}
    assert twinvec.search_texts("the cat", [], rerank=scorer) == []


def test_a_collection_is_ordered_anew(scorer, folders, tiny_bert, tmp_path):
    pytest.importorskip("lancedb")
    collection = twinvec.Collection.create(tmp_path / "c", model=tiny_bert)
    collection.add(TEXTS, [str(row) for row in range(len(TEXTS))])
    ranked = scorer.rank("the cat", TEXTS)
    for rerank in (scorer, folders["bert"], str(folders["bert"])):
        hits = collection.search("the cat", 3, rerank=rerank)
        assert [hit.id for hit in hits] == [str(row) for row in ranked.rows[:3]]
    command = ["search", str(tmp_path / "c"), "the cat", "-k", "3", "--rerank", str(folders["bert"])]
    shown = CliRunner().invoke(main, command)
    assert [json.loads(line)["id"] for line in shown.stdout.splitlines()] == [hit.id for hit in hits]


@pytest.mark.parametrize("rerank", [5, b"x", [1], object()])
def test_what_is_no_scorer_is_refused(rerank):
    with pytest.raises(InputError, match="The scorer is"):
        as_scorer(rerank)


def test_a_scorer_of_several_labels_cannot_rerank(three_labels):
    with pytest.raises(InputError, match="3 scores per pair"):
        twinvec.search_texts("the cat", TEXTS, rerank=three_labels)


# --- commands


def run(*arguments):
    return CliRunner().invoke(main, [str(each) for each in arguments])


def test_score_prints_a_score_or_one_for_each_label(scorer, folders, three_labels):
    shown = run("score", "the cat", "a dog", "-m", folders["bert"])
    assert shown.stdout == f"{scorer.score([('the cat', 'a dog')])[0]:.6f}\n"
    lines = run("score", "the cat", "a dog", "-m", three_labels).stdout.splitlines()
    assert [line.split("\t")[0] for line in lines] == ["contradiction", "entailment", "neutral"]
    chosen = run("score", "the cat", "a dog", "-m", three_labels, "--label", "neutral")
    assert chosen.stdout.strip() == lines[2].split("\t")[1]
    failed = run("score", "a", "b", "-m", "twinvec-mini")
    assert failed.exit_code == 1 and "is a sentence model" in failed.output
    assert run("score", "a", "b").exit_code == 2


def test_rank_and_search_print_the_texts_of_a_file(scorer, folders, tmp_path):
    file = tmp_path / "texts.txt"
    file.write_text("\n".join(TEXTS))
    ranked = scorer.rank("the cat", TEXTS)
    for command in (
        ("rank", "the cat", file, "-m", folders["bert"]),
        ("search", file, "the cat", "--rerank", folders["bert"]),
    ):
        rows = [json.loads(line) for line in run(*command).stdout.splitlines()]
        assert [int(row["id"]) for row in rows] == ranked.rows.tolist()
        assert [row["score"] for row in rows] == pytest.approx(ranked.scores.tolist(), abs=1e-5)
    assert len(run("rank", "the cat", file, "-m", folders["bert"], "-k", 2).stdout.splitlines()) == 2
    file.write_text("")
    failed = run("rank", "the cat", file, "-m", folders["bert"])
    assert failed.exit_code == 1 and re.search("no text", failed.output)
