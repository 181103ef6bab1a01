"""One contract for every runtime, and the architectures that only torch runs."""

from __future__ import annotations

import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import twinvec
from tiny import VOCABULARY, WORDS, tiny_tokenizer, write_json, write_tiny_model
from twinvec.engine.batches import EngineSettings, pad
from twinvec.engine.graph import GraphBuilder
from twinvec.engine.linear import add_packing
from twinvec.engine.runtimes import open_session
from twinvec.errors import InputError, MissingExtraError

NEEDS = {"onnxruntime": "onnxruntime", "openvino": "openvino", "torch": "transformers"}
TEXTS = [" ".join(WORDS[i : i + 1 + i % 13]) for i in range(30)]


@pytest.fixture(params=NEEDS)
def runtime(request):
    pytest.importorskip(NEEDS[request.param], reason=f"the runtime {request.param} is an extra")
    return request.param


def test_every_runtime_gives_the_same_vectors_tokens_and_layers(tiny_folders, runtime):
    for family in ("bert", "mpnet", "modernbert"):
        exact = twinvec.load(tiny_folders[family], runtime="onnxruntime")
        other = twinvec.load(tiny_folders[family], runtime=runtime)
        assert other.engine.runtime.name == runtime
        np.testing.assert_allclose(other.encode(TEXTS), exact.encode(TEXTS), atol=1e-5)
        for ours, theirs in zip(exact.encode_layers(TEXTS), other.encode_layers(TEXTS), strict=True):
            assert ours.shape == theirs.shape
            np.testing.assert_allclose(ours[-1], theirs[-1], atol=1e-4)


def test_every_runtime_is_deterministic_when_asked(tiny_bert, runtime):
    encoder = twinvec.load(tiny_bert, runtime=runtime, deterministic=True)
    together = encoder.encode(TEXTS)
    assert np.array_equal(encoder.encode(TEXTS[::-1])[::-1], together)
    assert np.array_equal(encoder.encode(TEXTS[7]), together[7])


@settings(max_examples=25, deadline=None)
@given(st.lists(st.integers(1, 30), min_size=1, max_size=6))
def test_a_padded_batch_gives_each_text_the_vector_it_has_alone(tiny_bert, lengths):
    rows = [[2, *range(5, 4 + length)] for length in lengths]
    for precision in ("float32", "int8"):
        run = twinvec.load(tiny_bert, precision=precision).engine.runtime.vectors
        alone = np.concatenate([run(pad([row])) for row in rows])
        np.testing.assert_allclose(run(pad(rows)), alone, atol=2e-6)


def test_packing_names_the_cells_of_real_tokens_and_the_token_of_each_cell():
    builder = GraphBuilder()
    packing = add_packing(builder, "mask")
    outputs = {name: (builder.add("Cast", getattr(packing, name), to=1), ["n"]) for name in packing._fields}
    session = open_session(builder.build(outputs, ["mask"]))
    found = session.run(None, {"mask": np.array([[1, 1, 0], [1, 0, 0]])})
    assert [array.tolist() for array in found] == [[0, 1, 3], [0, 1, 1, 2, 2, 2]]


@pytest.fixture
def deberta(tmp_path):
    """A sentence model around an architecture that has no graph of ours."""
    transformers = pytest.importorskip("transformers", reason="needs the extra 'train'")
    folder = write_tiny_model(tmp_path / "deberta")
    config = transformers.DebertaV2Config(
        vocab_size=len(VOCABULARY),
        hidden_size=32,
        num_hidden_layers=2,
        num_attention_heads=4,
        intermediate_size=64,
        max_position_embeddings=40,
        type_vocab_size=0,
    )
    (folder / "model.safetensors").unlink()
    transformers.DebertaV2Model(config).save_pretrained(folder)
    tiny_tokenizer({"pad_token_id": 0}).save(str(folder / "tokenizer.json"))
    return folder


def test_other_architectures_run_in_torch(deberta):
    sentence_transformers = pytest.importorskip("sentence_transformers")
    encoder = twinvec.load(deberta)
    assert encoder.engine.runtime.name == "torch"
    expected = sentence_transformers.SentenceTransformer(str(deberta), device="cpu").encode(TEXTS)
    np.testing.assert_allclose(encoder.encode(TEXTS), expected, atol=1e-5)
    with pytest.raises(InputError, match="'deberta-v2' run only in torch and float32"):
        twinvec.load(deberta, precision="int8")


def test_the_encoder_of_an_encoder_decoder_runs(tmp_path):
    transformers = pytest.importorskip("transformers", reason="needs the extra 'train'")
    sentence_transformers = pytest.importorskip("sentence_transformers")
    folder = write_tiny_model(tmp_path / "t5")
    config = transformers.T5Config(
        vocab_size=len(VOCABULARY), d_model=32, d_kv=8, d_ff=64, num_layers=2, num_heads=4, decoder_start_token_id=0
    )
    (folder / "model.safetensors").unlink()
    transformers.T5Model(config).save_pretrained(folder)
    encoder = twinvec.load(folder)
    expected = sentence_transformers.SentenceTransformer(str(folder), device="cpu").encode(TEXTS)
    np.testing.assert_allclose(encoder.encode(TEXTS), expected, atol=1e-5)
    encoder.save(tmp_path / "copy")
    assert np.array_equal(twinvec.load(tmp_path / "copy").encode(TEXTS), encoder.encode(TEXTS))


def test_other_architectures_without_torch_say_what_to_install(tiny_bert, tmp_path, monkeypatch):
    folder = write_tiny_model(tmp_path / "model")
    config = json.loads((folder / "config.json").read_text())
    write_json(folder / "config.json", config | {"model_type": "deberta-v2"})
    monkeypatch.setitem(__import__("sys").modules, "torch", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'twinvec\[train\]'"):
        twinvec.load(folder)


def test_a_precision_goes_only_with_the_runtime_that_has_it(tiny_bert):
    with pytest.raises(InputError, match="int8' runs only in onnxruntime"):
        twinvec.load(tiny_bert, precision="int8", runtime="openvino")
    with pytest.raises(InputError, match="runs on the CPU only"):
        EngineSettings(precision="int8", device="cuda")
