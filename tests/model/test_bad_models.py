"""Model folders that are broken, hostile or not what they say: each gets an error that says so."""

from __future__ import annotations

import json
import os
import pickle
import shutil
import subprocess
import sys

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

import twinvec
from tiny import tiny_tokenizer, write_plain_model, write_tiny_model
from twinvec.engine.inspect import inspect_model
from twinvec.errors import ModelFolderError, ModelNotFoundError, UnknownNameError, WeightsError


@pytest.fixture
def folder(tmp_path):
    return write_tiny_model(tmp_path / "model")


def edit(path, **changes):
    content = json.loads(path.read_text())
    content.update(changes)
    path.write_text(json.dumps(content))


def change_weights(folder, change):
    weights = load_file(folder / "model.safetensors")
    change(weights)
    save_file(weights, folder / "model.safetensors")


def test_missing_weights_are_named(folder):
    (folder / "model.safetensors").unlink()
    with pytest.raises(WeightsError, match=r"contains no weights \(model.safetensors\)"):
        twinvec.load(folder)


@pytest.mark.parametrize("keep", [0, 4, 100, 0.5, -1])
def test_truncated_weights_are_refused(folder, keep):
    path = folder / "model.safetensors"
    whole = path.read_bytes()
    path.write_bytes(whole[: int(len(whole) * keep) if isinstance(keep, float) else keep])
    with pytest.raises(WeightsError, match="not a complete safetensors file"):
        twinvec.load(folder)


def test_corrupt_weights_are_refused(folder):
    (folder / "model.safetensors").write_bytes(os.urandom(5000))
    with pytest.raises(WeightsError, match="not a complete safetensors file"):
        twinvec.load(folder)


def test_a_missing_parameter_is_named(folder):
    change_weights(folder, lambda weights: weights.pop("encoder.layer.1.output.dense.bias"))
    with pytest.raises(WeightsError, match=r"lacks 1 parameters: blocks.1.outer.bias"):
        twinvec.load(folder)


def test_a_config_of_another_size_is_refused(folder):
    edit(folder / "config.json", intermediate_size=128)
    with pytest.raises(WeightsError, match=r"intermediate.dense.weight has the shape \(64, 32\).*\(128, 32\)"):
        twinvec.load(folder)


def test_a_config_of_another_architecture_is_refused(folder):
    edit(folder / "config.json", model_type="mpnet")
    with pytest.raises(WeightsError, match=r"lacks \d+ parameters"):
        twinvec.load(folder)


def test_a_config_without_a_needed_size_is_refused(folder):
    content = json.loads((folder / "config.json").read_text())
    del content["num_attention_heads"]
    (folder / "config.json").write_text(json.dumps(content))
    with pytest.raises(ModelFolderError, match="lacks 'num_attention_heads'"):
        twinvec.load(folder)


def test_heads_that_do_not_divide_the_width_are_refused(folder):
    edit(folder / "config.json", num_attention_heads=5)
    with pytest.raises(ModelFolderError, match="width 32 is not a multiple of 5 heads"):
        twinvec.load(folder)


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_values_that_are_not_finite_are_refused(folder, value):
    def spoil(weights):
        weights["embeddings.word_embeddings.weight"][7, 3] = value

    change_weights(folder, spoil)
    with pytest.raises(WeightsError, match=r"word_embeddings.weight contains NaN or infinity"):
        twinvec.load(folder)


class Bomb:
    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return os.mkdir, (str(self.path),)


def test_a_pickle_is_refused_and_none_of_its_code_runs(folder, tmp_path):
    (folder / "model.safetensors").unlink()
    (folder / "pytorch_model.bin").write_bytes(pickle.dumps(Bomb(tmp_path / "ran")))
    with pytest.raises(WeightsError, match=r"is a pickle, which can run code.*trust_pickle=True"):
        twinvec.load(folder)
    assert not (tmp_path / "ran").exists()
    assert "pickle" in inspect_model(folder).warnings[0]


def test_a_trusted_pickle_loads(folder):
    torch = pytest.importorskip("torch", reason="reading a pickle needs the extra 'train'")
    expected = twinvec.load(folder).encode("the cat")
    weights = {name: torch.from_numpy(array) for name, array in load_file(folder / "model.safetensors").items()}
    torch.save(weights, folder / "pytorch_model.bin")
    (folder / "model.safetensors").unlink()
    assert np.array_equal(twinvec.load(folder, trust_pickle=True).encode("the cat"), expected)


@pytest.mark.parametrize("path", ["../outside", "/etc", "1_Pooling/../../outside"])
def test_a_module_path_that_leaves_the_folder_is_refused(folder, path):
    rows = json.loads((folder / "modules.json").read_text())
    rows[1]["path"] = path
    (folder / "modules.json").write_text(json.dumps(rows))
    with pytest.raises(ModelFolderError, match="outside the folder"):
        twinvec.load(folder)


@pytest.mark.parametrize("kind", ["sentence_transformers.models.LSTM", "os.system", "Poolling"])
def test_an_unknown_module_type_is_named(folder, kind):
    rows = json.loads((folder / "modules.json").read_text())
    rows[1]["type"] = kind
    (folder / "modules.json").write_text(json.dumps(rows))
    with pytest.raises(UnknownNameError, match=f"Unknown module type .*{kind.rsplit('.')[-1]}"):
        twinvec.load(folder)


def test_an_unknown_pooling_is_named(folder):
    edit(folder / "1_Pooling/config.json", pooling_mode="meen")
    with pytest.raises(UnknownNameError, match="Did you mean 'mean'"):
        twinvec.load(folder)


def test_broken_json_names_the_file(folder):
    (folder / "1_Pooling/config.json").write_text("{")
    with pytest.raises(ModelFolderError, match=r"1_Pooling/config.json is not valid JSON"):
        twinvec.load(folder)


def test_a_tokenizer_larger_than_the_vocabulary_is_refused(folder):
    tokenizer = tiny_tokenizer(json.loads((folder / "config.json").read_text()))
    tokenizer.add_tokens(["zebra", "giraffe"])
    tokenizer.save(str(folder / "tokenizer.json"))
    with pytest.raises(ModelFolderError, match=r"has \d+ tokens, but the model has vectors for \d+"):
        twinvec.load(folder)


def test_a_broken_tokenizer_is_refused(folder):
    (folder / "tokenizer.json").write_text('{"version": "1.0"}')
    with pytest.raises(ModelFolderError, match="cannot be read as a tokenizer"):
        twinvec.load(folder)
    (folder / "tokenizer.json").unlink()
    with pytest.raises(ModelFolderError, match=r"has no tokenizer.json and no vocab.txt"):
        twinvec.load(folder)


def test_a_dense_layer_of_the_wrong_width_is_refused(tmp_path):
    folder = write_tiny_model(tmp_path / "model", extra=("Dense",))
    (folder / "2_Dense").mkdir()
    (folder / "2_Dense/config.json").write_text(json.dumps({"in_features": 99, "out_features": 8}))
    with pytest.raises(ModelFolderError, match="expects vectors of width 99, but gets 32"):
        twinvec.load(folder)


def test_a_missing_folder_or_one_without_a_model_is_reported(tmp_path):
    with pytest.raises(ModelNotFoundError, match="There is no model folder"):
        twinvec.load(tmp_path / "nowhere")
    with pytest.raises(ModelFolderError, match=r"neither modules.json nor config.json"):
        twinvec.load(tmp_path)


def test_a_plain_backbone_loads_with_a_warning_that_it_is_not_a_sentence_model(tmp_path, caplog):
    folder = write_plain_model(tmp_path / "plain", "bert")
    encoder = twinvec.load(folder)
    assert encoder.encode("the cat").shape == (32,)
    assert [record.getMessage() for record in caplog.records if "not a sentence model" in record.getMessage()]
    assert len(caplog.records) == 1
    assert "Not a sentence model" in inspect_model(folder).warnings[0]


OFFLINE = """
import socket, sys
def refuse(*args, **kwargs): raise SystemExit("network was used")
socket.socket.connect = refuse
socket.getaddrinfo = refuse
import twinvec
print(twinvec.load(sys.argv[1], offline=len(sys.argv) > 2).encode("the cat").shape)
"""


def run_offline(arguments, **environment):
    command = [sys.executable, "-c", OFFLINE, *arguments]
    return subprocess.run(command, env={**os.environ, **environment}, capture_output=True, text=True, timeout=120)


def test_local_and_cached_models_make_no_network_call(folder, tmp_path):
    assert "(32,)" in run_offline([str(folder)]).stdout
    snapshot = tmp_path / "hub/models--owner--tiny/snapshots/abc"
    snapshot.parent.mkdir(parents=True)
    shutil.copytree(folder, snapshot)
    refs = tmp_path / "hub/models--owner--tiny/refs"
    refs.mkdir()
    (refs / "main").write_text("abc")
    result = run_offline(["owner/tiny"], HF_HUB_CACHE=str(tmp_path / "hub"))
    assert "(32,)" in result.stdout, result.stderr
    result = run_offline(["owner/other", "offline"], HF_HUB_CACHE=str(tmp_path / "hub"))
    assert "offline mode is on" in result.stderr
