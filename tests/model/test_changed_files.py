"""A model's files that are replaced, written into or cut short while the model is in use."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

import twinvec
from tiny import WIDTH, write_json, write_tiny_model
from twinvec import TwinvecError
from twinvec.engine import runtimes as onnx_runtime
from twinvec.engine.static import write_static
from twinvec.errors import ModelFolderError, WeightsError

TEXT = "the small cat sleeps under the old tree"
ZEBRA = "new words: 0123456789 zebra, river, moon!"  # tokens that were not read before the change

# Loads argv[1] in the runtime argv[2], changes its weights as argv[3] says, and asks for argv[4].
CHILD = """
import os, sys, twinvec
from twinvec.engine import runtimes as onnx_runtime
onnx_runtime.LARGE_BYTES = 0  # so that a tiny model is mapped as a large one is
folder, runtime, change, asked = sys.argv[1:]
encoder = twinvec.load(folder, runtime=runtime)
encoder.encode("the cat")
if change == "cut":
    os.truncate(folder + "/model.safetensors", 64)
else:
    size = os.path.getsize(folder + "/model.safetensors")
    with open(folder + "/model.safetensors", "r+b") as file:
        file.seek(size // 2)
        file.write(b"x" * (size - size // 2))
try:
    if asked == "layers":
        encoder.encode_layers(ZEBRA)
    elif asked == "save":
        encoder.save(folder + "-saved")
    else:
        encoder.encode(ZEBRA)
except twinvec.TwinvecError as error:
    print("refused:", error)
else:
    print("went on")
"""


def run_child(*arguments: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", f"ZEBRA = {ZEBRA!r}\n{CHILD}", *map(str, arguments)], capture_output=True, text=True
    )


@pytest.fixture
def model(tmp_path):
    return write_tiny_model(tmp_path / "model")


@pytest.fixture
def mapped(monkeypatch):
    """A tiny model's weights are mapped by onnxruntime as a large one's are."""
    monkeypatch.setattr(onnx_runtime, "LARGE_BYTES", 0)


@pytest.fixture
def static_model(tmp_path, model):
    table = np.random.default_rng(0).standard_normal((200, 64)).astype(np.float32)
    write_static(tmp_path / "static", model / "tokenizer.json", table)
    return tmp_path / "static"


def replace_weights(folder: Path) -> None:
    """Rename other weights of the same shapes over a model's own."""
    weights = load_file(folder / "model.safetensors")
    save_file({name: values[::-1].copy() for name, values in weights.items()}, folder / "new", {"format": "pt"})
    os.replace(folder / "new", folder / "model.safetensors")


@pytest.mark.parametrize("precision", ["float32", "int8"])
def test_layer_states_are_those_of_the_loaded_model_after_its_files_are_replaced(mapped, model, precision):
    expected = twinvec.load(model, precision=precision).encode_layers(TEXT)[0]
    encoder = twinvec.load(model, precision=precision)
    vector = encoder.encode(TEXT)
    replace_weights(model)
    assert np.array_equal(encoder.encode_layers(TEXT)[0], expected)
    assert np.array_equal(encoder.encode(TEXT), vector)
    assert not np.allclose(twinvec.load(model, precision=precision).encode_layers(TEXT)[0], expected, atol=0.1)


def test_a_replacement_at_the_moment_of_opening_gives_no_mixture(mapped, model, monkeypatch):
    expected = twinvec.load(model).encode_layers(TEXT)[0]
    encoder = twinvec.load(model)
    plain = onnx_runtime._give_weights

    def give(*arguments):
        if onnx_runtime._give_weights is not plain:
            monkeypatch.setattr(onnx_runtime, "_give_weights", plain)
            replace_weights(model)
        return plain(*arguments)

    monkeypatch.setattr(onnx_runtime, "_give_weights", give)
    assert np.array_equal(encoder.encode_layers(TEXT)[0], expected)


def test_a_loaded_model_works_after_its_folder_is_deleted(mapped, model):
    encoder = twinvec.load(model)
    expected = twinvec.load(model).encode_layers(TEXT)[0]
    shutil.rmtree(model)
    assert np.array_equal(encoder.encode_layers(TEXT)[0], expected)


@pytest.mark.parametrize("asked", ["vectors", "layers"])
@pytest.mark.parametrize("change", ["cut", "overwritten"])
def test_weights_overwritten_in_place_raise_an_error_instead_of_crashing(model, change, asked):
    result = run_child(model, "onnxruntime", change, asked)
    assert result.returncode == 0, result
    assert result.stdout.startswith("refused:") and "was changed while it was in use" in result.stdout


@pytest.mark.parametrize(("change", "asked"), [("cut", "vectors"), ("overwritten", "vectors"), ("cut", "layers")])
def test_a_static_table_overwritten_in_place_raises_an_error_instead_of_crashing(static_model, change, asked):
    result = run_child(static_model, "auto", change, asked)
    assert result.returncode == 0, result
    assert result.stdout.startswith("refused:") and "was changed while it was in use" in result.stdout


def test_a_static_table_that_is_cut_short_is_not_saved(static_model):
    result = run_child(static_model, "auto", "cut", "save")
    assert result.returncode == 0, result
    assert result.stdout.startswith("refused:")
    assert not Path(f"{static_model}-saved").exists()


@pytest.mark.parametrize("runtime", ["torch", "openvino"])
def test_no_runtime_dies_of_weights_that_are_cut_short(model, runtime):
    pytest.importorskip(runtime)
    if runtime == "torch":
        pytest.importorskip("transformers")
    result = run_child(model, runtime, "cut", "layers")
    assert result.returncode == 0, result
    assert result.stdout.startswith("refused:") and "was changed while it was in use" in result.stdout


def test_a_head_that_is_replaced_is_not_mixed_with_the_old_backbone(tmp_path):
    """openvino compiles anew in a child process, and reads the weights for it again."""
    pytest.importorskip("openvino")
    folder = write_tiny_model(tmp_path / "model", extra=("Dense",))
    head = folder / "2_Dense"
    write_json(head / "config.json", {"in_features": WIDTH, "out_features": WIDTH, "bias": False})
    matrix = np.random.default_rng(1).standard_normal((WIDTH, WIDTH)).astype(np.float32)
    save_file({"linear.weight": matrix}, head / "model.safetensors")
    encoder = twinvec.load(folder, runtime="openvino")
    vector = encoder.encode(TEXT)
    replace_weights(head)
    encoder.engine.runtime._requests.clear()  # as after a fork
    np.testing.assert_allclose(encoder.encode(TEXT), vector, atol=1e-6)


@pytest.mark.parametrize("changed", ["model.safetensors", "config.json", "tokenizer.json", "1_Pooling/config.json"])
def test_a_model_whose_files_have_changed_since_is_not_saved_as_if_it_were_the_same(model, tmp_path, changed):
    encoder = twinvec.load(model)
    (model / "new").write_bytes((model / changed).read_bytes())
    os.replace(model / "new", model / changed)
    with pytest.raises(ModelFolderError, match=r"was changed after the model was opened.*Load the model again"):
        encoder.save(tmp_path / "saved")
    assert not (tmp_path / "saved").exists()
    twinvec.load(model).save(tmp_path / "saved")


def test_a_model_replaced_while_it_is_being_loaded_is_refused(model, monkeypatch):
    plain = twinvec.loading.load_tokenizer

    def load_tokenizer(*arguments, **named):
        replace_weights(model)
        return plain(*arguments, **named)

    monkeypatch.setattr(twinvec.loading, "load_tokenizer", load_tokenizer)
    with pytest.raises(ModelFolderError, match="was changed after the model was opened"):
        twinvec.load(model)


def test_weights_replaced_between_their_check_and_their_reading_are_refused(model, monkeypatch):
    from twinvec.engine import weights

    plain = weights.safe_open

    def safe_open(*arguments, **named):
        replace_weights(model)
        return plain(*arguments, **named)

    monkeypatch.setattr(weights, "safe_open", safe_open)
    with pytest.raises(WeightsError, match="was replaced while it was being read"):
        weights.read_weights(model)


def test_a_file_that_is_added_or_read_is_not_a_change(model, tmp_path):
    encoder = twinvec.load(model)
    (model / "notes.json").write_text("{}")
    (model / "model.safetensors").read_bytes()
    encoder.save(tmp_path / "saved")
    assert np.array_equal(twinvec.load(tmp_path / "saved").encode(TEXT), encoder.encode(TEXT))


def test_an_encoder_leaves_no_descriptor_behind(model):
    if not Path("/proc/self/fd").is_dir():
        pytest.skip("needs /proc")
    twinvec.load(model).encode(TEXT)
    before = len(os.listdir("/proc/self/fd"))
    for _ in range(5):
        twinvec.load(model).encode_layers(TEXT)
    assert len(os.listdir("/proc/self/fd")) <= before


def test_the_identity_of_a_model_is_that_of_what_was_loaded(model):
    pytest.importorskip("lancedb")
    from twinvec.collection.model import as_model

    encoder = twinvec.load(model)
    replace_weights(model)
    with pytest.raises(TwinvecError, match="was changed after the model was opened"):
        as_model(encoder)


def test_an_evaluation_does_not_keep_vectors_under_the_identity_of_another_model(model):
    pytest.importorskip("scipy")
    from twinvec.embedder import ModelEmbedder

    subject = ModelEmbedder(str(model))
    assert subject.identity
    replace_weights(model)
    with pytest.raises(TwinvecError, match="was changed after the model was opened"):
        subject.embed([TEXT])
