"""What a model folder may hold beside its config.json: modules, names, JSON itself; and what saving leaves behind."""

from __future__ import annotations

import errno
import json
import shutil
import subprocess
import sys

import numpy as np
import pytest
from safetensors.numpy import save_file

import twinvec
from tiny import WIDTH, write_json, write_plain_model, write_tiny_model
from twinvec.engine.static import read_table
from twinvec.errors import InputError, ModelFolderError, ModelNotFoundError, TwinvecError, WeightsError
from twinvec.json_checks import JsonObject

TEXTS = ["the cat sits on the mat", "rain", ""]


def edit(path, **changes):
    write_json(path, json.loads(path.read_text()) | changes)


def dense(folder, n_in, n_out, seed):
    rng = np.random.default_rng(seed)
    write_json(folder / "config.json", {"in_features": n_in, "out_features": n_out})
    weights = {"linear.weight": rng.standard_normal((n_out, n_in)), "linear.bias": rng.standard_normal(n_out)}
    save_file({name: values.astype(np.float32) for name, values in weights.items()}, folder / "model.safetensors")
    return weights


def test_two_dense_modules_in_folders_of_one_name_are_two(tmp_path):
    folder = write_tiny_model(tmp_path / "model", extra=())
    states = twinvec.load(folder).encode(TEXTS)
    rows = json.loads((folder / "modules.json").read_text())
    kind = "sentence_transformers.models.Dense"
    for place, (path, sizes) in enumerate({"a/Dense": (WIDTH, 8), "b/Dense": (8, 8)}.items()):
        weights = dense(folder / path, *sizes, seed=place)
        states = np.tanh(states @ weights["linear.weight"].T + weights["linear.bias"])
        rows.append({"idx": 2 + place, "name": str(2 + place), "path": path, "type": kind})
    write_json(folder / "modules.json", rows)
    encoder = twinvec.load(folder)
    np.testing.assert_allclose(encoder.encode(TEXTS), states, atol=1e-5)
    encoder.save(tmp_path / "copy")
    assert np.array_equal(twinvec.load(tmp_path / "copy").encode(TEXTS), encoder.encode(TEXTS))


def test_an_activation_that_is_not_torchs_is_refused(tmp_path):
    folder = write_tiny_model(tmp_path / "model", extra=("Dense",))
    dense(folder / "2_Dense", WIDTH, 8, 0)
    edit(folder / "2_Dense/config.json", activation_function="evil.Tanh")
    with pytest.raises(ModelFolderError, match=r"evil.Tanh is not part of torch, so it is not run"):
        twinvec.load(folder)


@pytest.mark.parametrize("file", ["config.json", "modules.json", "tokenizer_config.json", "1_Pooling/config.json"])
@pytest.mark.parametrize(
    ("content", "problem"),
    [
        ("[" * 100_000, "not valid JSON"),
        ('{"a":' * 900 + "1" + "}" * 900, "nested"),
        ('{"max_seq_length": Infinity}', "Infinity"),
        ('{"x": NaN}', "NaN"),
        ('{"x": 1e999}', "1e999"),
        ('{"x": ' + "9" * 5000 + "}", "not valid JSON"),
        ('"\\ud800', "not valid JSON"),
        ("3", "holds a int|must be a list"),
    ],
)
def test_json_that_breaks_its_readers_is_refused(tmp_path, file, content, problem):
    folder = write_tiny_model(tmp_path / "model")
    (folder / file).write_text(content)
    with pytest.raises(ModelFolderError, match=problem):
        twinvec.load(folder)


def test_a_json_file_larger_than_any_config_is_not_read(tmp_path, monkeypatch):
    monkeypatch.setattr("twinvec.files.MAX_JSON_BYTES", 1000)
    folder = write_tiny_model(tmp_path / "model")
    (folder / "config.json").write_text("[" + " " * 1000)
    with pytest.raises(ModelFolderError, match="larger than"):
        twinvec.load(folder)


def test_names_longer_than_a_file_can_have_are_refused(tmp_path):
    with pytest.raises(ModelNotFoundError, match="too long"):
        twinvec.load("x" * 300)
    with pytest.raises(ModelNotFoundError):
        twinvec.load("a\0b")
    folder = write_tiny_model(tmp_path / "model")
    rows = json.loads((folder / "modules.json").read_text())
    for path in ("y" * 300, "a\0b", "\ud800"):
        rows[1]["path"] = path
        write_json(folder / "modules.json", rows)
        with pytest.raises(ModelFolderError):
            twinvec.load(folder)
    (folder / "modules.json").unlink()
    (folder / "model.safetensors").unlink()
    for name in ("z" * 300 + ".safetensors", "a\0b.safetensors", "\ud800.safetensors"):
        write_json(folder / "model.safetensors.index.json", {"weight_map": {"x": name}})
        with pytest.raises(WeightsError, match="which is not a valid file name"):
            twinvec.load(folder)
    with pytest.raises(InputError, match="File name too long"):
        twinvec.load(write_tiny_model(tmp_path / "other")).save(tmp_path / ("w" * 300))


@pytest.mark.parametrize("value", ["8", 8.0, True, [8], 0, -1, WIDTH + 1])
def test_a_width_to_cut_to_is_a_whole_number_of_the_models(tmp_path, value):
    folder = write_tiny_model(tmp_path / "model")
    with pytest.raises(InputError, match=f"truncate_dim must be a whole number from 1 to {WIDTH}"):
        twinvec.load(folder, truncate_dim=value)
    write_json(folder / "config_sentence_transformers.json", {"truncate_dim": value})
    with pytest.raises(TwinvecError, match="truncate_dim"):
        twinvec.load(folder)


@pytest.mark.parametrize(
    "values",
    [
        {"config_args": {"num_hidden_layers": 1}},
        {"model_args": {"subfolder": "other"}},
        {"transformer_task": "fill-mask"},
        {"processing_kwargs": {"text": {"padding_side": "left"}}},
        {"module_output_name": "sentence_embedding"},
    ],
)
def test_settings_that_would_load_another_backbone_are_refused(tmp_path, values):
    folder = write_tiny_model(tmp_path / "model")
    edit(folder / "sentence_bert_config.json", **values)
    with pytest.raises(ModelFolderError, match=rf"sentence_bert_config.json: {next(iter(values))}.*not supported"):
        twinvec.load(folder)


def test_newer_spellings_of_default_settings_are_read(tmp_path):
    folder = write_tiny_model(tmp_path / "model")
    expected = twinvec.load(folder).encode(TEXTS)
    modality = {"text": {"method": "forward", "method_output_name": "last_hidden_state"}}
    edit(
        folder / "sentence_bert_config.json",
        transformer_task="feature-extraction",
        modality_config=modality,
        module_output_name="token_embeddings",
        model_args={"attn_implementation": "sdpa"},
    )
    assert np.array_equal(twinvec.load(folder).encode(TEXTS), expected)


@pytest.mark.parametrize("field", ["type_id", "twice"])
def test_a_tokenizer_that_does_more_than_put_special_tokens_around_is_refused(tmp_path, field):
    folder = write_tiny_model(tmp_path / "model")
    content = json.loads((folder / "tokenizer.json").read_text())
    part = {"Sequence": {"id": "A", "type_id": int(field == "type_id")}}
    single = [part] if field == "type_id" else [part, {"SpecialToken": {"id": "[SEP]", "type_id": 0}}, part]
    content["post_processor"] = {
        "type": "TemplateProcessing",
        "single": single,
        "pair": [part, {"Sequence": {"id": "B", "type_id": 1}}],
        "special_tokens": {"[SEP]": {"id": "[SEP]", "ids": [3], "tokens": ["[SEP]"]}},
    }
    write_json(folder / "tokenizer.json", content)
    with pytest.raises(ModelFolderError, match="does more than add special tokens around"):
        twinvec.load(folder)


def test_a_plain_model_keeps_its_width_when_it_is_saved(tmp_path):
    folder = write_plain_model(tmp_path / "plain", "bert")
    encoder = twinvec.load(folder, truncate_dim=8)
    encoder.save(tmp_path / "copy")
    copy = twinvec.load(tmp_path / "copy")
    assert copy.truncate_dim == copy.width == 8
    assert np.array_equal(copy.encode(TEXTS), encoder.encode(TEXTS))


@pytest.mark.parametrize("family", ["bert", "static"])
def test_a_full_disk_is_our_error_and_leaves_nothing(tmp_path, family, monkeypatch):
    encoder = twinvec.load(write_tiny_model(tmp_path / "model")) if family == "bert" else twinvec.load("twinvec-static")

    def refuse(source, target):
        raise OSError(errno.ENOSPC, "No space left on device", str(target))

    monkeypatch.setattr(shutil, "copyfile", refuse)
    (tmp_path / "saved").mkdir()
    with pytest.raises(InputError, match=r"cannot be written: .*No space left on device.*No partial files remain"):
        encoder.save(tmp_path / "saved/model")
    assert list((tmp_path / "saved").iterdir()) == []


LIMITED = """
import resource, signal, sys
import twinvec
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
encoder = twinvec.load(sys.argv[1])
resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))
try:
    encoder.save(sys.argv[2])
except twinvec.TwinvecError as error:
    print("refused", error)
"""


@pytest.mark.parametrize("family", ["bert", "static"])
def test_a_file_that_cannot_grow_is_our_error_and_leaves_nothing(tmp_path, family):
    pytest.importorskip("resource")
    model = write_tiny_model(tmp_path / "model") if family == "bert" else "twinvec-static"
    (tmp_path / "saved").mkdir()
    command = [sys.executable, "-c", LIMITED, str(model), str(tmp_path / "saved/model")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert done.stdout.startswith("refused") and "cannot be written" in done.stdout, done.stderr
    assert list((tmp_path / "saved").iterdir()) == []


@pytest.mark.parametrize(("part", "values"), [("mapping", [0, 3]), ("mapping", [0, -1]), ("weights", [1.0, 2.0])])
def test_parts_of_a_table_that_do_not_fit_it_are_refused(tmp_path, part, values):
    table = np.zeros((3, 4), dtype=np.float32)
    save_file({"embeddings": table, part: np.array(values)}, tmp_path / "model.safetensors")
    with pytest.raises(WeightsError, match="do not fit the table"):
        read_table(tmp_path)


def test_values_are_read_by_their_kind():
    values = JsonObject({"n": 3, "x": 0.5, "yes": True, "word": "b", "none": None, "inner": {"k": 1}}, "a.json")
    assert values.integer("n") == 3 and values.integer("m", None) is None and values.integer("none", None) is None
    assert values.number("x", least=0, most=1) == 0.5
    assert values.flag("yes") is True and values.word("word", choices=("a", "b")) == "b"
    assert values.inner("inner").integer("k") == 1 and values.inner("absent", {}).content == {}
    with pytest.raises(ModelFolderError, match=r"a.json lacks 'm'"):
        values.integer("m")
    with pytest.raises(ModelFolderError, match=r"a.json: 'n' is 3, not .* from 4 to 9"):
        values.integer("n", least=4, most=9)
    with pytest.raises(InputError, match="'word' is 'b', not one of x, y"):
        JsonObject({"word": "b"}, "a.json", InputError).word("word", choices=("x", "y"))


def test_a_special_token_that_the_model_has_no_vector_for_is_refused(tmp_path):
    folder = write_tiny_model(tmp_path / "model")
    content = json.loads((folder / "tokenizer.json").read_text())
    content["post_processor"]["sep"][1] = 2**31
    write_json(folder / "tokenizer.json", content)
    with pytest.raises(ModelFolderError, match="but the model has vectors for"):
        twinvec.load(folder).encode("the cat")
