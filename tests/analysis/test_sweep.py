"""The pooling lab: every readout is what the model would give, and what is saved scores as in the sweep."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner
from hypothesis import given, settings
from hypothesis import strategies as st

import twinvec
from tiny import WIDTH, WORDS, write_json, write_tiny_model
from twinvec.analysis.readouts import Candidate, Readout, list_candidates, pool, read_vectors, why_not_saved, wk_choices
from twinvec.analysis.saving import fit_whitening, save_readout, shrunk_covariance
from twinvec.analysis.sweep import sweep_readouts
from twinvec.choices import POOLINGS
from twinvec.cli import main
from twinvec.data.examples import Examples
from twinvec.engine.runtimes import OnnxRuntime
from twinvec.engine.static import write_static
from twinvec.engine.weights import is_packed
from twinvec.errors import InputError, UnknownNameError
from twinvec.evaluation.resampling import Resampling
from twinvec.metrics import spearman
from twinvec.model.folder import Pooling
from twinvec.wk import WKSettings, sentence_vectors

FEW = Resampling(n_resamples=100)
N_PAIRS = 30


def some_pairs(n=N_PAIRS, seed=0):
    """Pairs of random texts, scored by the words that they share."""
    rng = np.random.default_rng(seed)
    texts = [" ".join(rng.choice(WORDS, rng.integers(2, 12))) for _ in range(n + 5)]
    texts = list(dict.fromkeys(texts))
    left, right = np.arange(n) % len(texts), (np.arange(n) * 7 + 3) % len(texts)
    shared = [set(texts[a].split()) & set(texts[b].split()) for a, b in zip(left, right, strict=True)]
    scores = np.array([len(each) + 0.01 * i for i, each in enumerate(shared)], dtype=np.float32)
    return Examples("mine.tsv", "scored_pairs", texts, {"text1": left, "text2": right}, scores / scores.max())


PAIRS = some_pairs()


def score_of(encoder, pairs=PAIRS):
    vectors = encoder.encode(pairs.texts)
    left, right = (vectors[pairs.indices[role]] for role in ("text1", "text2"))
    return 100 * spearman(twinvec.similarity_pairwise(left, right), pairs.targets)


@pytest.fixture(scope="module")
def found(encoder):
    return sweep_readouts(encoder, PAIRS, model="tiny", resampling=FEW)


@pytest.mark.parametrize("mode", POOLINGS)
def test_numpy_poolings_are_the_engines(tmp_path_factory, tiny_bert, mode):
    encoder = twinvec.load(tiny_bert, readout=mode)
    with read_vectors(encoder, PAIRS.texts, [Readout((mode,), (3,))]) as vectors:
        found = vectors.of(Readout((mode,), (3,)))
    np.testing.assert_allclose(found, encoder.encode(PAIRS.texts), atol=2e-6)


def test_a_prompt_that_is_not_pooled_is_excluded_from_every_readout(tmp_path):
    folder = write_tiny_model(tmp_path / "model", pooling={"pooling_mode_mean_tokens": True, "include_prompt": False})
    prompts = {"prompts": {"ask": "the man "}, "default_prompt_name": "ask"}
    write_json(folder / "config_sentence_transformers.json", prompts)
    for name, readout in (("cls", Readout(("cls",), (3,))), ("wk", Readout(wk=WKSettings(layer_start=1)))):
        encoder = twinvec.load(folder, readout=name)
        with read_vectors(encoder, PAIRS.texts[:4], [readout]) as vectors:
            np.testing.assert_allclose(vectors.of(readout), encoder.encode(PAIRS.texts[:4]), atol=2e-6)


@pytest.mark.parametrize("layers", [(0,), (2,), (2, 3), (1, 2, 3)])
def test_readouts_of_other_layers_are_those_of_the_states_one_by_one(encoder, layers):
    readouts = [Readout((mode,), layers) for mode in ("mean", "max")] + [Readout(wk=WKSettings("reference", 1))]
    with read_vectors(encoder, PAIRS.texts, readouts) as vectors:
        mean, highest, wk = (vectors.of(each) for each in readouts)
    for row, states in enumerate(encoder.encode_layers(PAIRS.texts)):
        chosen = states[list(layers)].mean(axis=0)
        np.testing.assert_allclose(mean[row], twinvec.unit_rows(chosen.mean(axis=0)), atol=1e-5)
        np.testing.assert_allclose(highest[row], twinvec.unit_rows(chosen.max(axis=0)), atol=1e-5)
        mask = np.ones((1, states.shape[1]), dtype=np.int64)
        expected = sentence_vectors(states[:, None], mask, WKSettings("reference", 1))[0]
        np.testing.assert_allclose(wk[row], twinvec.unit_rows(expected), atol=1e-5)


def test_every_text_goes_through_the_model_once(tiny_bert, monkeypatch):
    n_rows = []
    layers = OnnxRuntime.layers
    monkeypatch.setattr(OnnxRuntime, "layers", lambda self, batch: n_rows.append(len(batch.ids)) or layers(self, batch))
    monkeypatch.setattr("twinvec.analysis.readouts.TEXTS_PER_BLOCK", 8)
    encoder = twinvec.load(tiny_bert)
    sweep_readouts(encoder, PAIRS, model="tiny", resampling=FEW)
    assert sum(n_rows) == len(PAIRS.texts) + 2  # and two looks at how many layers there are, and how wide


def test_the_models_own_readout_scores_as_its_encoder_does(found, encoder):
    assert found.own.candidate == Candidate(Readout(("mean",), (3,)))
    assert found.own.value == pytest.approx(score_of(encoder), abs=1e-6)
    assert found.own.interval.low < found.own.value < found.own.interval.high
    assert found.n_pairs == N_PAIRS and found.n_texts == len(PAIRS.texts)


def test_a_readout_with_equal_vectors_for_all_texts_has_no_score(found):
    undefined = [each.candidate.name for each in found.scored if each.value is None]
    assert undefined == ["cls of layer 0", "cls of layer 0, whitened"]
    assert all(each.candidate.readout.layers != (0,) or each.why_not_saved for each in found.scored)


def test_parts_can_be_left_out(encoder):
    folder = encoder.folder
    whole = list_candidates(folder, 3)
    assert len(whole) == len(set(whole)) == 2 * (5 * 7 + len(wk_choices(3)))
    names = [each.name for each in list_candidates(folder, 3, without=("layers", "wk", "whitening"))]
    assert names == [f"{mode} of layer 3" for mode in ("mean", "cls", "max", "weightedmean", "lasttoken")]
    assert [each.name for each in list_candidates(folder, 3, without=("poolings", "layers", "wk", "whitening"))] == [
        "mean of layer 3"
    ]
    with pytest.raises(UnknownNameError, match="Did you mean 'wk'"):
        list_candidates(folder, 3, without=("wkk",))


CHOSEN = [
    Candidate(Readout(("mean",), (3,)), is_whitened=True),
    Candidate(Readout(("cls",), (2,))),
    Candidate(Readout(("max",), (1,)), is_whitened=True),
    Candidate(Readout(wk=WKSettings("reference", 1)), is_whitened=True),
]


@pytest.mark.parametrize("candidate", CHOSEN, ids=lambda each: each.name)
def test_a_saved_readout_scores_the_same_when_it_is_loaded_again(encoder, found, tmp_path, candidate):
    (scored,) = [each for each in found.scored if each.candidate == candidate]
    with read_vectors(encoder, PAIRS.texts, [candidate.readout]) as vectors:
        read = vectors.of(candidate.readout)
    whitening = fit_whitening(read) if candidate.is_whitened else None
    save_readout(encoder, candidate, tmp_path / "saved", card="# Mine\n", whitening=whitening)
    again = twinvec.load(tmp_path / "saved")
    expected = twinvec.unit_rows(whitening(read)) if whitening else read
    np.testing.assert_allclose(twinvec.unit_rows(again.encode(PAIRS.texts)), expected, atol=1e-4)
    assert score_of(again) == pytest.approx(scored.value, abs=0.02)
    assert again.max_tokens == encoder.max_tokens
    assert (tmp_path / "saved/README.md").read_text() == "# Mine\n"


@pytest.mark.parametrize("family", ["roberta", "distilbert", "mpnet", "electra"])
def test_layers_are_cut_off_in_every_family_that_can_be(tiny_folders, tmp_path, family):
    encoder = twinvec.load(tiny_folders[family])
    candidate = Candidate(Readout(("mean",), (2,)))
    save_readout(encoder, candidate, tmp_path / "saved", card="")
    again = twinvec.load(tmp_path / "saved")
    states = [layers[2].mean(axis=0) for layers in encoder.encode_layers(PAIRS.texts[:6])]
    np.testing.assert_allclose(again.encode(PAIRS.texts[:6]), twinvec.unit_rows(np.stack(states)), atol=1e-5)
    assert (tmp_path / "saved/model.safetensors").stat().st_size < Path(
        tiny_folders[family], "model.safetensors"
    ).stat().st_size


def test_the_shipped_model_whose_weights_are_int8_is_cut_and_saved_as_float32(tmp_path):
    encoder = twinvec.load()
    save_readout(encoder, Candidate(Readout(("mean",), (1,))), tmp_path / "saved", card="")
    again = twinvec.load(tmp_path / "saved")
    states = [layers[1].mean(axis=0) for layers in encoder.encode_layers(PAIRS.texts[:3])]
    np.testing.assert_allclose(again.encode(PAIRS.texts[:3]), twinvec.unit_rows(np.stack(states)), atol=1e-5)
    assert not is_packed(tmp_path / "saved")


@pytest.mark.parity
def test_sentence_transformers_loads_a_cut_and_whitened_model(encoder, tmp_path):
    sentence_transformers = pytest.importorskip("sentence_transformers")
    candidate = CHOSEN[2]
    with read_vectors(encoder, PAIRS.texts, [candidate.readout]) as vectors:
        whitening = fit_whitening(vectors.of(candidate.readout))
    save_readout(encoder, candidate, tmp_path / "saved", card="", whitening=whitening)
    other = sentence_transformers.SentenceTransformer(str(tmp_path / "saved"), device="cpu")
    ours = twinvec.load(tmp_path / "saved").encode(PAIRS.texts)
    np.testing.assert_allclose(other.encode(PAIRS.texts), ours, atol=2e-4)


def test_readouts_that_a_folder_cannot_store_are_refused_with_the_reason(tiny_folders, encoder, tmp_path):
    reasons = {
        ("bert", (2, 3)): "averages layers",
        ("bert", (0,)): "at least one layer",
        ("modernbert", (2,)): "cannot be removed",
        ("albert", (2,)): "cannot be removed",  # its layers share weights in groups
    }
    for (family, layers), reason in reasons.items():
        folder = twinvec.load(tiny_folders[family]).folder
        assert reason in why_not_saved(Readout(("mean",), layers), folder, 4 if family != "bert" else 3)
    with pytest.raises(InputError, match="cannot be saved: no module of a model folder averages layers"):
        save_readout(encoder, Candidate(Readout(("mean",), (2, 3))), tmp_path / "saved", card="")
    assert not (tmp_path / "saved").exists()


def dense_model(folder, pooling):
    from safetensors.numpy import save_file

    write_tiny_model(folder, pooling=pooling, extra=("Dense",))
    width = WIDTH * len(pooling)
    config = {"in_features": width, "out_features": 8, "bias": False, "activation_function": "torch.nn.modules.Tanh"}
    write_json(folder / "2_Dense/config.json", config)
    matrix = np.random.default_rng(0).standard_normal((8, width)).astype(np.float32)
    save_file({"linear.weight": matrix}, folder / "2_Dense/model.safetensors")
    return folder


def test_layers_behind_the_pooling_stay_and_decide_which_readouts_fit(tmp_path):
    one = twinvec.load(dense_model(tmp_path / "one", {"pooling_mode_mean_tokens": True}))
    found = sweep_readouts(one, PAIRS, model="one", without=("wk", "layers"), resampling=FEW)
    assert found.own.value == pytest.approx(score_of(one), abs=1e-6)
    both = {"pooling_mode_mean_tokens": True, "pooling_mode_cls_token": True}
    two = twinvec.load(dense_model(tmp_path / "two", both))
    readouts = {each.readout for each in list_candidates(two.folder, 3)}
    assert {each.modes for each in readouts} == {("cls", "mean")} and len(readouts) == 7
    save_readout(two, Candidate(Readout(("cls", "mean"), (3,))), tmp_path / "saved", card="")
    np.testing.assert_array_equal(twinvec.load(tmp_path / "saved").encode(PAIRS.texts), two.encode(PAIRS.texts))


def test_models_that_cut_their_vectors_are_scored_and_saved_so(tiny_bert, tmp_path):
    encoder = twinvec.load(tiny_bert, truncate_dim=8)
    found = sweep_readouts(encoder, PAIRS, model="cut", without=("wk", "layers"), resampling=FEW)
    assert found.own.value == pytest.approx(score_of(encoder), abs=1e-6)
    candidate = Candidate(Readout(("max",), (3,)), is_whitened=True)
    with read_vectors(encoder, PAIRS.texts, [candidate.readout]) as vectors:
        whitening = fit_whitening(vectors.of(candidate.readout))
    save_readout(encoder, candidate, tmp_path / "saved", card="", whitening=whitening)
    (scored,) = [each for each in found.scored if each.candidate == candidate]
    again = twinvec.load(tmp_path / "saved")
    assert again.width == 8 and score_of(again) == pytest.approx(scored.value, abs=0.02)


@settings(max_examples=30, deadline=None)
@given(st.integers(3, 40), st.integers(1, 12), st.integers(0, 1000))
def test_the_shrunk_covariance_is_scikit_learns(n, width, seed):
    covariance = pytest.importorskip("sklearn.covariance")
    values = np.random.default_rng(seed).standard_normal((n, width)) * np.arange(1, width + 1)
    centered = values - values.mean(axis=0)
    expected, _ = covariance.ledoit_wolf(centered, assume_centered=True)
    np.testing.assert_allclose(shrunk_covariance(centered), expected, rtol=1e-8, atol=1e-10)


def test_whitened_vectors_do_not_correlate_and_vary_alike():
    rng = np.random.default_rng(0)
    vectors = (rng.standard_normal((4000, 6)) @ rng.standard_normal((6, 6)) + 5).astype(np.float32)
    whitened = fit_whitening(vectors)(vectors)
    np.testing.assert_allclose(whitened.mean(axis=0), 0, atol=1e-3)
    np.testing.assert_allclose(np.cov(whitened.T), np.eye(6), atol=0.1)


def test_fewer_texts_than_values_still_keep_near_texts_near():
    rng = np.random.default_rng(0)
    topics = rng.standard_normal((10, 64))
    vectors = (np.repeat(topics, 2, axis=0) + 0.3 * rng.standard_normal((20, 64))).astype(np.float32)
    whitened = twinvec.unit_rows(fit_whitening(vectors)(vectors))
    scores = whitened @ whitened.T
    near = scores[np.arange(0, 20, 2), np.arange(1, 20, 2)]
    assert near.min() > scores[0, 2:].max() + 0.2
    with pytest.raises(InputError, match="are equal"):
        fit_whitening(np.ones((5, 4), dtype=np.float32))


def test_joined_poolings_stand_in_their_order():
    states = np.random.default_rng(0).standard_normal((2, 3, 4, 5)).astype(np.float32)
    mask = np.array([[1, 1, 0, 0], [1, 1, 1, 1], [0, 1, 1, 0]])
    joined = pool(states, mask, ("cls", "lasttoken"))
    np.testing.assert_array_equal(joined[:, 2, :5], states[:, 2, 1])
    np.testing.assert_array_equal(joined[:, 2, 5:], states[:, 2, 2])


def test_a_model_with_sbert_wk_is_compared_with_it(tiny_bert):
    encoder = twinvec.load(tiny_bert, readout="wk")
    found = sweep_readouts(encoder, PAIRS, model="wk", without=("layers", "whitening"), resampling=FEW)
    assert found.own.candidate.readout.wk == WKSettings(layer_start=1)
    assert found.own.value == pytest.approx(score_of(encoder), abs=1e-6)
    assert isinstance(twinvec.load(tiny_bert).folder.readout, Pooling)


def run(*arguments):
    return CliRunner().invoke(main, [str(each) for each in arguments], prog_name="twinvec")


@pytest.fixture(scope="module")
def pair_file(tmp_path_factory):
    path = tmp_path_factory.mktemp("pairs") / "mine.tsv"
    rows = [
        f"{PAIRS.texts[a]}\t{PAIRS.texts[b]}\t{5 * score:.5f}"
        for a, b, score in zip(PAIRS.indices["text1"], PAIRS.indices["text2"], PAIRS.targets, strict=True)
    ]
    path.write_text("\n".join(["text1\ttext2\tscore", *rows]) + "\n")
    return path


def test_the_command_prints_the_best_writes_a_report_and_saves(pair_file, tiny_bert, tmp_path):
    pytest.importorskip("matplotlib")
    report, saved = tmp_path / "report", tmp_path / "saved"
    result = run("sweep", tiny_bert, "--pairs", pair_file, "-o", report, "--save", saved)
    assert result.exit_code == 0, result.output
    assert sorted(file.name for file in report.iterdir()) == [".twinvec.json", "report.html", "sweep.json", "sweep.png"]
    numbers = json.loads((report / "sweep.json").read_text())
    assert numbers["verdict"] in result.output.replace("\n", " ")
    scores = [each["score"] for each in numbers["readouts"] if each["score"] is not None]
    assert scores == sorted(scores, reverse=True) and len(scores) == len(numbers["readouts"]) - 2
    (row,) = [each for each in numbers["readouts"] if each["name"] == numbers["best_that_can_be_saved"]]
    again = twinvec.load(saved)
    assert score_of(again) == pytest.approx(row["score"], abs=0.02)
    card = (saved / "README.md").read_text()
    assert row["name"] in card and "Nothing was trained" in card and f"{row['score']:.2f}" in card
    assert "fitted on the texts of these pairs" in result.output.lower()


def test_the_command_prints_json(pair_file, tiny_bert):
    options = "--json", "--without", "layers", "--without", "whitening", "--without", "wk"
    result = run("sweep", tiny_bert, "--pairs", pair_file, *options)
    numbers = json.loads(result.output)
    assert len(numbers["readouts"]) == 5 and numbers["own"] == "mean of layer 3"
    assert all(0 < each["p_corrected"] <= 1 for each in numbers["readouts"])


def test_bad_input_is_said_before_any_work_and_leaves_nothing(pair_file, tiny_bert, tmp_path):
    few = tmp_path / "few.tsv"
    few.write_text("text1\ttext2\tscore\na cat\ta dog\t1\na\tb\t2\n")
    equal = tmp_path / "equal.tsv"
    equal.write_text("text1\ttext2\tscore\n" + "a cat\ta dog\t3\n" * 20)
    write_static(tmp_path / "static", tiny_bert / "tokenizer.json", np.ones((200, 4), dtype=np.float32))
    (tmp_path / "full").mkdir()
    (tmp_path / "full/mine").touch()
    cases = {
        "too few for a sweep": (tiny_bert, "--pairs", few),
        "scores of equal.tsv are equal": (tiny_bert, "--pairs", equal),
        "has no layers": (tmp_path / "static", "--pairs", pair_file),
        "--score-range": (tiny_bert, "--pairs", pair_file, "--score-range", 0, 1),
        "exists already": (tiny_bert, "--pairs", pair_file, "--save", tmp_path / "full"),
        "holds 'mine', which Twinvec did not write": (
            tiny_bert,
            "--pairs",
            pair_file,
            "-o",
            tmp_path / "full",
            "--force",
        ),
        "no column for the role": (tiny_bert, "--pairs", pair_file, "--columns", "score=points"),
    }
    for message, arguments in cases.items():
        result = (
            run("sweep", *arguments, "-o", tmp_path / "report") if "-o" not in arguments else run("sweep", *arguments)
        )
        assert result.exit_code == 1 and message in result.output, result.output
        assert not (tmp_path / "report").exists()
