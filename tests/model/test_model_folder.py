"""The many shapes a good model folder has, and what must not be read as another than it is."""

from __future__ import annotations

import json
import logging
import shutil
from itertools import islice

import ml_dtypes
import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

import twinvec
from tiny import VOCABULARY, WIDTH, WORDS, write_json, write_plain_model, write_tiny_model
from twinvec.engine.inspect import inspect_model
from twinvec.errors import InputError, ModelFolderError, UnknownNameError, WeightsError

TEXTS = ["the cat sits on the mat", "A Dog!", "", "rain in the old city and sun on the river"]


@pytest.fixture
def folder(tmp_path):
    return write_tiny_model(tmp_path / "model")


@pytest.fixture
def expected(encoder):
    return encoder.encode(TEXTS)


def change(path, **values):
    content = json.loads(path.read_text()) if path.exists() else {}
    write_json(path, content | values)


def test_weights_in_shards_are_read(folder, expected):
    weights = load_file(folder / "model.safetensors")
    (folder / "model.safetensors").unlink()
    names = sorted(weights)
    places = {}
    for i, part in enumerate((names[::2], names[1::2]), start=1):
        file = f"model-0000{i}-of-00002.safetensors"
        save_file({name: weights[name] for name in part}, folder / file)
        places |= dict.fromkeys(part, file)
    write_json(folder / "model.safetensors.index.json", {"weight_map": places})
    assert np.array_equal(twinvec.load(folder).encode(TEXTS), expected)
    twinvec.load(folder).save(folder.parent / "copy")
    assert np.array_equal(twinvec.load(folder.parent / "copy").encode(TEXTS), expected)


def test_an_index_that_leaves_the_folder_is_refused(folder):
    (folder / "model.safetensors").rename(folder.parent / "outside.safetensors")
    write_json(folder / "model.safetensors.index.json", {"weight_map": {"x": "../outside.safetensors"}})
    with pytest.raises(WeightsError, match=r"names the file .*, which is outside the folder"):
        twinvec.load(folder)


def test_a_pickle_in_shards_is_refused_too(folder):
    (folder / "model.safetensors").rename(folder / "pytorch_model-00001-of-00001.bin")
    write_json(folder / "pytorch_model.bin.index.json", {"weight_map": {"x": "pytorch_model-00001-of-00001.bin"}})
    with pytest.raises(WeightsError, match="is a pickle"):
        twinvec.load(folder)


def test_half_precision_weights_are_read(folder, expected):
    weights = load_file(folder / "model.safetensors")
    save_file({name: array.astype(np.float16) for name, array in weights.items()}, folder / "model.safetensors")
    np.testing.assert_allclose(twinvec.load(folder).encode(TEXTS), expected, atol=5e-3)


def test_bfloat16_weights_are_read(folder):
    weights = load_file(folder / "model.safetensors")
    halves = {name: array.astype(ml_dtypes.bfloat16) for name, array in weights.items()}
    save_file({name: array.astype(np.float32) for name, array in halves.items()}, folder / "model.safetensors")
    expected = twinvec.load(folder).encode(TEXTS)
    save_file(halves, folder / "model.safetensors")
    assert np.array_equal(twinvec.load(folder).encode(TEXTS), expected)


def test_prefixes_heads_and_tensors_of_other_types_do_not_disturb(folder, expected):
    weights = {f"bert.{name}": array for name, array in load_file(folder / "model.safetensors").items()}
    weights["cls.predictions.bias"] = np.zeros(7, dtype=np.float32)
    weights["bert.embeddings.position_ids"] = np.arange(40, dtype=np.int64)
    weights["scales"] = np.zeros(3, dtype=np.int32)
    save_file(weights, folder / "model.safetensors")
    assert np.array_equal(twinvec.load(folder).encode(TEXTS), expected)


def test_the_oldest_layout_keeps_its_backbone_in_a_folder(folder, expected, tmp_path):
    inner = tmp_path / "old/0_BERT"
    inner.mkdir(parents=True)
    for file in folder.iterdir():
        shutil.move(file, (tmp_path / "old" if file.name in ("modules.json", "1_Pooling") else inner) / file.name)
    rows = json.loads((tmp_path / "old/modules.json").read_text())
    rows[0]["path"] = "0_BERT"
    write_json(tmp_path / "old/modules.json", rows)
    assert np.array_equal(twinvec.load(tmp_path / "old").encode(TEXTS), expected)
    twinvec.load(tmp_path / "old").save(tmp_path / "new")
    assert np.array_equal(twinvec.load(tmp_path / "new").encode(TEXTS), expected)


def test_a_vocabulary_alone_makes_the_same_tokenizer(folder, expected):
    (folder / "tokenizer.json").unlink()
    (folder / "vocab.txt").write_text("\n".join(VOCABULARY) + "\n")
    assert np.array_equal(twinvec.load(folder).encode(TEXTS), expected)
    write_json(folder / "added_tokens.json", {"zebra": 5})
    with pytest.raises(ModelFolderError, match=r"vocab.txt alone is not enough"):
        twinvec.load(folder)


def test_the_case_of_the_tokenizers_config_counts(folder):
    change(folder / "tokenizer_config.json", tokenizer_class="BertTokenizer", do_lower_case=False)
    cased = twinvec.load(folder)
    assert not np.allclose(cased.encode("Cat"), cased.encode("cat"))


def test_texts_are_cut_on_the_side_the_tokenizer_says(folder):
    words = " ".join(WORDS[:40])
    change(folder / "tokenizer_config.json", truncation_side="left")
    encoder = twinvec.load(folder, long="cut")
    np.testing.assert_allclose(encoder.encode(words), encoder.encode(" ".join(WORDS[18:40])), atol=1e-6)


def test_a_null_prompt_is_no_prompt(folder, expected):
    write_json(folder / "config_sentence_transformers.json", {"prompts": {"query": None}})
    np.testing.assert_allclose(twinvec.load(folder).encode_query(TEXTS), expected, atol=1e-6)


def test_a_prompt_stands_in_the_first_window_only_and_is_left_out_of_the_pooling_there_only(folder):
    change(folder / "1_Pooling/config.json", include_prompt=False)
    encoder = twinvec.load(folder, long="chunk")
    words = ["man", *WORDS[:30]]  # 31 tokens, 22 to a window: [0, 22) and [9, 31)
    first = encoder.encode(" ".join(words[1:22]), prompt="man ")
    second = encoder.encode(" ".join(words[9:31]))
    expected = twinvec.unit_rows((first + second) / 2)
    np.testing.assert_allclose(encoder.encode(" ".join(words[1:]), prompt="man "), expected, atol=1e-5)


@pytest.mark.parametrize("kind", ["custom_st.Transformer", "custom_code.Pooling"])
def test_a_models_own_classes_are_not_taken_for_ours(folder, kind):
    rows = json.loads((folder / "modules.json").read_text())
    rows[0 if kind.endswith("Transformer") else 1]["type"] = kind
    write_json(folder / "modules.json", rows)
    with pytest.raises((UnknownNameError, ModelFolderError), match=kind):
        twinvec.load(folder)


@pytest.mark.parametrize("option", [{"use_residual": True}, {"module_output_name": "other"}])
def test_a_dense_layer_that_does_more_is_refused(tmp_path, option):
    folder = write_tiny_model(tmp_path / "model", extra=("Dense",))
    write_json(folder / "2_Dense/config.json", {"in_features": WIDTH, "out_features": 8, **option})
    with pytest.raises(ModelFolderError, match=f"{next(iter(option))}=.* is not supported"):
        twinvec.load(folder)


@pytest.mark.parametrize(
    ("file", "values"),
    [
        ("config_sentence_transformers.json", {"prompts": ["a"]}),
        ("config_sentence_transformers.json", {"truncate_dim": "wide"}),
        ("config_sentence_transformers.json", {"similarity_fn_name": ["cosine"]}),
        ("sentence_bert_config.json", {"max_seq_length": "long"}),
        ("1_Pooling/config.json", {"pooling_mode": 5}),
    ],
)
def test_a_value_of_the_wrong_type_gives_no_traceback(folder, file, values):
    change(folder / file, **values)
    with pytest.raises(ModelFolderError, match=r"\.json: .* is .*, not an? "):
        twinvec.load(folder)


def test_a_saved_plain_model_is_still_no_sentence_model(tmp_path):
    folder = write_plain_model(tmp_path / "plain", "bert")
    encoder = twinvec.load(folder)
    encoder.save(tmp_path / "copy")
    assert "Not a sentence model" in inspect_model(tmp_path / "copy").warnings[0]
    assert np.array_equal(twinvec.load(tmp_path / "copy").encode(TEXTS), encoder.encode(TEXTS))


def test_a_stopped_iteration_still_says_what_was_cut(encoder, caplog):
    with caplog.at_level(logging.WARNING):
        vectors = encoder.encode_iter(["cat " * 50] * 3)
        next(islice(vectors, 1))
        vectors.close()
    assert "3 texts are longer" in caplog.text


def test_invalid_choices_are_refused_before_any_work(encoder):
    with pytest.raises(UnknownNameError, match="Unknown output 'int4'"):
        encoder.encode(["a"], output="int4")
    with pytest.raises(InputError, match="prompt is 5, of type int"):
        encoder.encode("a", prompt=5)
    with pytest.raises(InputError, match="Both prompt and prompt_name"):
        encoder.encode("a", prompt="x", prompt_name="query")
    with pytest.raises(InputError, match="has no prompts"):
        encoder.encode("a", prompt_name="query")


def test_values_cut_by_int8_output_are_said(caplog):
    twinvec.quantize_vectors(np.array([[0.5, 3.0]], dtype=np.float32), "int8")
    assert "up to 3.00" in caplog.text
    caplog.clear()
    twinvec.quantize_vectors(np.array([[0.5, 3.0]], dtype=np.float32), "int8", ranges=np.array([[0, 0], [1, 4]]))
    assert not caplog.text


def test_large_weights_are_read_from_their_file_also_through_a_link(folder, expected, tmp_path, monkeypatch):
    monkeypatch.setattr("twinvec.engine.runtimes.LARGE_BYTES", 1)
    blobs = tmp_path / "blobs ü"
    blobs.mkdir()
    shutil.move(folder / "model.safetensors", blobs / "0123abcd")
    (folder / "model.safetensors").symlink_to(blobs / "0123abcd")
    assert np.array_equal(twinvec.load(folder).encode(TEXTS), expected)
    monkeypatch.chdir(folder.parent)
    assert np.array_equal(twinvec.load(folder.name).encode(TEXTS), expected)
