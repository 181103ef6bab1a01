"""SBERT-WK as a model's readout: in the encoder, in model folders, in every runtime."""

from __future__ import annotations

import json
import logging
from dataclasses import asdict

import numpy as np
import pytest
from click.testing import CliRunner

import twinvec
from tiny import WIDTH, WORDS, write_json, write_plain_model, write_tiny_model
from twinvec.cli import main
from twinvec.embedder import ModelEmbedder
from twinvec.engine.inspect import inspect_model
from twinvec.errors import InputError, ModelFolderError, UnknownNameError
from twinvec.model.folder import WK, Normalize, read_model_folder
from twinvec.wk import WKSettings, sentence_vectors

TEXTS = ["the cat sits on the mat", "a dog", "", "rain in the old city and sun on the river", "a dog"]
NAMES = "wk", "max", "wk", "wk"
SETTINGS = WKSettings("reference", layer_start=0, window=1, omega=0.25)


@pytest.fixture(scope="module")
def wk(tiny_bert):
    return twinvec.load(tiny_bert, readout="wk")


def by_hand(encoder, texts, settings=None):
    """Vectors from the layers that the encoder shows, one text at a time."""
    vectors = []
    for layers in encoder.encode_layers(texts):
        mask = np.ones((1, layers.shape[1]), dtype=np.int64)
        vectors.append(sentence_vectors(layers[:, None], mask, settings or WKSettings())[0])
    return twinvec.unit_rows(np.stack(vectors))


@pytest.mark.parametrize("family", ["bert", "mpnet", "albert", "modernbert"])
def test_vectors_are_sbert_wk_of_the_layers(tiny_folders, family):
    encoder = twinvec.load(tiny_folders[family], readout=SETTINGS)
    np.testing.assert_allclose(encoder.encode(TEXTS), by_hand(encoder, TEXTS, SETTINGS), atol=2e-6)


def test_wk_differs_from_mean_pooling_and_a_pooling_name_overrides_it(tiny_bert, encoder, wk):
    assert np.abs(wk.encode(TEXTS) - encoder.encode(TEXTS)).max() > 0.01
    assert np.array_equal(twinvec.load(tiny_bert, readout="mean").encode(TEXTS), encoder.encode(TEXTS))
    with pytest.raises(UnknownNameError, match="Did you mean 'mean'"):
        twinvec.load(tiny_bert, readout="meen")


@pytest.mark.parametrize("runtime", ["openvino", "torch"])
def test_every_runtime_gives_the_same_vectors(tiny_bert, wk, runtime):
    pytest.importorskip({"openvino": "openvino", "torch": "transformers"}[runtime])
    other = twinvec.load(tiny_bert, readout="wk", runtime=runtime)
    assert other.engine.runtime.name == runtime
    np.testing.assert_allclose(other.encode(TEXTS), wk.encode(TEXTS), atol=1e-5)


def test_int8_stays_near(tiny_bert, wk):
    vectors = twinvec.load(tiny_bert, readout="wk", precision="int8").encode(TEXTS)
    assert twinvec.similarity_pairwise(vectors, wk.encode(TEXTS)).min() > 0.97


def test_deterministic_bits_depend_neither_on_the_batch_nor_on_threads(tiny_bert):
    texts = [" ".join(WORDS[i % 7 : 1 + i % 20]) for i in range(60)]
    one, two = (twinvec.load(tiny_bert, readout="wk", deterministic=True, threads=n) for n in (1, 2))
    together = two.encode(texts)
    assert np.array_equal(one.encode(texts[::-1])[::-1], together)
    assert np.array_equal(one.encode(texts[5]), together[5])


def test_long_texts_are_read_in_windows(tiny_bert):
    encoder = twinvec.load(tiny_bert, readout="wk", long="chunk")
    words = [*WORDS, *WORDS]
    parts = encoder.encode([" ".join(words[a:b]) for a, b in [(0, 22), (17, 39), (18, 40)]])
    np.testing.assert_allclose(encoder.encode(" ".join(words[:40])), twinvec.unit_rows(parts.mean(axis=0)), atol=1e-5)


def test_a_prompt_that_is_not_pooled_is_not_read(tmp_path):
    pooling = {"pooling_mode_mean_tokens": True, "include_prompt": False}
    encoder = twinvec.load(write_tiny_model(tmp_path / "model", pooling=pooling), readout="wk")
    layers = encoder.encode_layers("the man sleeps")[0]
    mask = np.array([[0, 0, 0, 1, 1]])  # [CLS] the man | sleeps [SEP]
    expected = twinvec.unit_rows(sentence_vectors(layers[:, None], mask, WKSettings()))[0]
    np.testing.assert_allclose(encoder.encode("sleeps", prompt="the man "), expected, atol=1e-5)


def test_wk_is_saved_with_the_model_and_read_back(tiny_bert, tmp_path):
    encoder = twinvec.load(tiny_bert, readout=SETTINGS)
    encoder.save(tmp_path / "copy")
    assert read_model_folder(tmp_path / "copy").modules == (WK(SETTINGS), Normalize())
    again = twinvec.load(tmp_path / "copy")
    assert np.array_equal(again.encode(TEXTS), encoder.encode(TEXTS))
    assert "SBERT-WK (reference, from layer 0 on, window 1, omega 0.25)" in inspect_model(tmp_path / "copy").modules
    rows = json.loads((tmp_path / "copy/modules.json").read_text())
    assert [row["type"] for row in rows] == [
        "sentence_transformers.models.Transformer",
        "twinvec.WK",
        "sentence_transformers.models.Normalize",
    ]


def test_sentence_transformers_refuses_such_a_folder_by_the_modules_name(wk, tmp_path):
    sentence_transformers = pytest.importorskip("sentence_transformers")
    wk.save(tmp_path / "copy")
    with pytest.raises((ImportError, AttributeError, ValueError), match="twinvec"):
        sentence_transformers.SentenceTransformer(str(tmp_path / "copy"), device="cpu")


def test_a_plain_model_becomes_a_sentence_model_with_wk(tmp_path, caplog):
    with caplog.at_level(logging.WARNING):
        encoder = twinvec.load(write_plain_model(tmp_path / "plain", "bert"), readout="wk")
    assert "is not a sentence model" in caplog.text and "The readout wk is used" in caplog.text
    encoder.save(tmp_path / "copy")
    assert np.array_equal(twinvec.load(tmp_path / "copy").encode(TEXTS), encoder.encode(TEXTS))


def test_layers_behind_it_are_run(tmp_path):
    from safetensors.numpy import save_file

    folder = write_tiny_model(tmp_path / "model", extra=("Dense", "Normalize"))
    identity = "torch.nn.modules.linear.Identity"
    dense = {"in_features": WIDTH, "out_features": 8, "bias": False, "activation_function": identity}
    write_json(folder / "2_Dense/config.json", dense)
    matrix = np.random.default_rng(0).standard_normal((8, WIDTH)).astype(np.float32)
    save_file({"linear.weight": matrix}, folder / "2_Dense/model.safetensors")
    encoder = twinvec.load(folder, readout="wk")
    expected = twinvec.unit_rows(by_hand(encoder, TEXTS) @ matrix.T)
    np.testing.assert_allclose(encoder.encode(TEXTS), expected, atol=1e-5)
    with pytest.raises(InputError, match="has Dense after its pooling"):
        encoder.explain_pair("a cat", "a dog")


def test_a_start_behind_the_last_layer_is_refused_when_the_model_is_loaded(tiny_bert):
    with pytest.raises(InputError, match="layer_start=4 is beyond the last of 3 layers"):
        twinvec.load(tiny_bert, readout=WKSettings(layer_start=4))


@pytest.mark.parametrize(
    ("config", "message"),
    [({"windw": 2}, "Did you mean 'window'"), ({"omega": 3}, "omega must be a number from 0 to 1")],
)
def test_a_wrong_setting_in_a_folder_is_named_with_its_file(wk, tmp_path, config, message):
    wk.save(tmp_path / "copy")
    write_json(tmp_path / "copy/1_WK/config.json", config)
    with pytest.raises((ModelFolderError, UnknownNameError), match=message) as caught:
        twinvec.load(tmp_path / "copy")
    assert "1_WK/config.json" in str(caught.value)


def test_static_models_refuse_wk(tmp_path, tiny_bert):
    from twinvec.engine.static import write_static

    table = np.ones((200, 4), dtype=np.float32)
    write_static(tmp_path / "static", tiny_bert / "tokenizer.json", table)
    with pytest.raises(InputError, match="is a static model"):
        twinvec.load(tmp_path / "static", readout="wk")


def test_an_evaluation_tells_the_readout_and_keeps_its_vectors_apart(tiny_bert):
    readouts = None, "wk", "max", WKSettings(), SETTINGS
    subjects = [ModelEmbedder(str(tiny_bert), {"readout": each}) for each in readouts]
    assert len({subject.identity for subject in subjects}) == len(subjects)
    assert [subject.name.removeprefix(str(tiny_bert)) for subject in subjects] == ["", *(f" ({n})" for n in NAMES)]
    assert subjects[-1].settings["readout"] == {"wk": asdict(SETTINGS)}


def test_the_command_reads_all_layers_when_asked(tiny_bert, wk, tmp_path):
    (tmp_path / "in.txt").write_text("\n".join(TEXTS[:2]))
    arguments = ["embed", tmp_path / "in.txt", "-m", tiny_bert, "--readout", "wk", "-o", tmp_path / "out.npy"]
    result = CliRunner().invoke(main, [str(each) for each in arguments])
    assert result.exit_code == 0
    np.testing.assert_allclose(np.load(tmp_path / "out.npy"), wk.encode(TEXTS[:2]), atol=1e-6)
