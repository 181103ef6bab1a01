"""The Universal Sentence Encoder with tiny seeded weights: against the obvious way, stored, reduced, in torch."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys

import numpy as np
import pytest
from click.testing import CliRunner
from safetensors.numpy import load_file, save_file

import twinvec
from tiny_use import BRANCH, LEFT, LETTERS, PIECES, TEXTS, WIDTH, tiny_tokenizer, tiny_weights
from twinvec.baselines.use import UseEmbedder, read_use, reduce_use, write_use
from twinvec.cli.app import main
from twinvec.engine.model import UseConfig
from twinvec.engine.weights import pack_int8
from twinvec.errors import InputError, ModelFolderError, WeightsError


@pytest.fixture(scope="module", params=["separate", "joined"])
def folder(request, tmp_path_factory):
    path = tmp_path_factory.mktemp("use") / request.param
    write_use(path, UseConfig(norm=request.param), tiny_weights(), tiny_tokenizer())
    return path


@pytest.fixture(scope="module")
def embedder(folder):
    return UseEmbedder(folder, threads=1)


@pytest.fixture
def copy(folder, tmp_path):
    return shutil.copytree(folder, tmp_path / "copy")


def layer_norm(states, weight, bias):
    centered = states - states.mean(axis=-1, keepdims=True)
    return centered / np.sqrt((centered**2).mean(axis=-1, keepdims=True) + 1e-12) * weight + bias


def obvious(ids, weights, norm, orders=(2, 3, 5)):
    """One text, token by token, in float64."""
    w = {name: array.astype(np.float64) for name, array in weights.items()}
    pieces = w["embedding.weight"][ids]
    states = pieces @ w["project.weight"].T + w["project.bias"]
    spans = [slice(i * BRANCH, (i + 1) * BRANCH) for i in range(len(orders))]
    if norm == "joined":
        states = layer_norm(states, w["norm.weight"], w["norm.bias"])
    else:
        parts = [layer_norm(states[:, span], w["norm.weight"][span], w["norm.bias"][span]) for span in spans]
        states = np.concatenate(parts, axis=1)
    joined = [pieces]
    for order, span in zip(orders, spans, strict=True):
        branch = states[:, span]
        for step in (0, 1):
            found = np.zeros_like(branch)
            for token in range(len(ids)):
                window = np.zeros((order, BRANCH))
                for place in range(order):
                    at = token - LEFT[order] + place
                    if 0 <= at < len(ids):
                        window[place] = branch[at]
                name = f"ngram.{order}.{step}"
                found[token] = np.maximum(w[f"{name}.weight"] @ window.reshape(-1) + w[f"{name}.bias"], 0)
            branch = branch + found
        joined.append(branch)
    normed = layer_norm(np.concatenate(joined, axis=1), w["join_norm.weight"], w["join_norm.bias"])
    pooled = (normed @ w["pool.weight"].T + w["pool.bias"]).sum(axis=0) / np.sqrt(len(ids))
    first = np.maximum(w["hidden.0.weight"] @ pooled, 0)
    second = np.maximum(w["hidden.1.weight"] @ first + w["skip.1.weight"] @ pooled, 0)
    third = np.maximum(w["hidden.2.weight"] @ second, 0)
    last = np.tanh(w["hidden.3.weight"] @ third + w["skip.3.weight"] @ second)
    return last / np.linalg.norm(last)


def test_vectors_are_those_of_the_obvious_way(folder, embedder):
    found = embedder.embed(TEXTS)
    expected = [obvious(ids, tiny_weights(), folder.name) for ids in read_use(folder).ids(TEXTS)]
    assert found.dtype == np.float32 and found.shape == (len(TEXTS), WIDTH)
    np.testing.assert_allclose(found, expected, atol=2e-6)


def test_other_orders_than_the_usual_ones(tmp_path):
    write_use(tmp_path / "m", UseConfig(orders=(3, 1)), tiny_weights((3, 1)), tiny_tokenizer())
    expected = [obvious(ids, tiny_weights((3, 1)), "separate", (3, 1)) for ids in read_use(tmp_path / "m").ids(TEXTS)]
    np.testing.assert_allclose(UseEmbedder(tmp_path / "m").embed(TEXTS), expected, atol=2e-6)


def test_neighbors_order_and_threads_change_no_vector(folder, embedder):
    texts = TEXTS * 40 + ["the cat " * n for n in range(1, 60)]
    together = embedder.embed(texts)
    order = np.random.default_rng(0).permutation(len(texts))
    np.testing.assert_allclose(embedder.embed([texts[i] for i in order]), together[order], atol=1e-6)
    np.testing.assert_allclose(UseEmbedder(folder, threads=3).embed(texts), together, atol=1e-6)
    alone = np.concatenate([embedder.embed([text]) for text in TEXTS])
    np.testing.assert_allclose(alone, together[: len(TEXTS)], atol=1e-6)


def test_empty_lists_and_texts_without_pieces(embedder):
    assert embedder.embed([]).shape == (0, WIDTH)
    empty, blank, unknown = embedder.embed(["", " \t", "☃"])
    assert np.array_equal(empty, blank) and np.isfinite(unknown).all()
    np.testing.assert_allclose(np.linalg.norm([empty, unknown], axis=1), 1, atol=1e-6)
    assert np.array_equal(embedder.embed(["a"], role="query"), embedder.embed(["a"]))


def test_special_names_in_a_text_are_only_letters(folder):
    assert read_use(folder).ids(["<s> </s> <unk>"])[0].count(1) == 1


def test_it_is_an_embedder(folder, embedder, tmp_path):
    assert (embedder.width, embedder.similarity, embedder.name) == (WIDTH, "cosine", str(folder))
    assert UseEmbedder(folder, "use").name == "use"
    assert embedder.settings["norm"] == folder.name and json.dumps(embedder.settings)
    hits = twinvec.search_texts("the cat", TEXTS, 1, model=embedder)
    assert hits[0].text == "the cat"
    again = shutil.copytree(folder, tmp_path / "same")
    assert UseEmbedder(again).identity == embedder.identity
    settings = json.loads((again / "embedder.json").read_text())
    (again / "embedder.json").write_text(json.dumps({**settings, "epsilon": 1e-6}))
    assert UseEmbedder(again).identity != embedder.identity


def test_load_opens_it_like_any_other_model(folder, embedder, tmp_path):
    encoder = twinvec.load(folder, threads=1, precision="int8")
    np.testing.assert_allclose(encoder.encode(TEXTS), embedder.embed(TEXTS), atol=1e-6)
    assert encoder.width == WIDTH and encoder.lengths(["the cat"]).n_tokens.tolist() == [4]
    encoder.save(tmp_path / "copy")
    assert np.array_equal(twinvec.load(tmp_path / "copy", threads=1).encode(TEXTS), encoder.encode(TEXTS))
    found = twinvec.inspect_model(folder)
    assert found.width == WIDTH and found.runs_without_torch and ("longest text", "no limit") in found.rows()
    with pytest.raises(InputError, match="cannot store truncate_dim"):
        twinvec.load(folder, truncate_dim=4).save(tmp_path / "short")


def test_no_torch_is_loaded(folder):
    code = (
        "import sys; from twinvec.baselines.use import UseEmbedder; UseEmbedder(sys.argv[1]).embed(['a']);"
        "print([name for name in ('torch', 'transformers', 'sentencepiece', 'openvino') if name in sys.modules])"
    )
    result = subprocess.run([sys.executable, "-c", code, str(folder)], capture_output=True, text=True, check=True)
    assert result.stdout.strip() == "[]"


def test_int8_storage_is_read_as_it_would_be_unpacked(tmp_path):
    packed = pack_int8(tiny_weights())
    write_use(tmp_path / "small", UseConfig(), packed, tiny_tokenizer())
    whole = {n: a * packed[f"{n}.scale"][:, None] if a.dtype == np.int8 else a for n, a in packed.items()}
    whole = {name: array for name, array in whole.items() if not name.endswith(".scale")}
    write_use(tmp_path / "whole", UseConfig(), whole, tiny_tokenizer())
    found = UseEmbedder(tmp_path / "small").embed(TEXTS)
    np.testing.assert_allclose(found, UseEmbedder(tmp_path / "whole").embed(TEXTS), atol=1e-6)
    stored = load_file(tmp_path / "small/model.safetensors")
    assert stored["embedding.weight"].dtype == np.int8


@pytest.mark.parametrize("texts", ["a text", ["a", 3], [b"a"], ["\ud800"]])
def test_what_is_not_a_list_of_texts_is_refused(embedder, texts):
    with pytest.raises(InputError):
        embedder.embed(texts)


BAD_SETTINGS = {
    "'kind' is 'tfidf', not one of use": {"kind": "tfidf"},
    "'orders' is": {"orders": [2, 2, 5]},
    "'orders' is \\[\\]": {"orders": []},
    "'orders' is \\['2'\\]": {"orders": ["2"]},
    "'norm' is 'both', not one of separate, joined": {"norm": "both"},
    "'epsilon' is -1": {"epsilon": -1},
    "lacks the weights ngram.4": {"orders": [2, 3, 4]},
}


@pytest.mark.parametrize("message", BAD_SETTINGS)
def test_bad_settings_are_refused(copy, message):
    settings = json.loads((copy / "embedder.json").read_text())
    (copy / "embedder.json").write_text(json.dumps(settings | BAD_SETTINGS[message]))
    with pytest.raises(ModelFolderError, match=message):
        UseEmbedder(copy)


BAD_WEIGHTS = {
    "has no table of pieces": lambda w: w.pop("embedding.weight"),
    "neither float32 nor int8": lambda w: w.update({"embedding.weight": w["embedding.weight"].astype(np.int8)}),
    "neither float32 nor int8 ": lambda w: w.update({"embedding.weight.scale": np.ones(3, dtype=np.float32)}),
    "lacks the weights hidden.2.weight": lambda w: w.pop("hidden.2.weight"),
    "lacks the weights pool.weight": lambda w: w.pop("pool.weight"),
    "pool.bias has the shape": lambda w: w.update({"pool.bias": w["pool.bias"][:-1].copy()}),
    "skip.1.weight contains NaN": lambda w: w.update({"skip.1.weight": w["skip.1.weight"] * np.nan}),
    "embedding.weight contains NaN": lambda w: w.update({"embedding.weight": w["embedding.weight"] * np.nan}),
    "pieces, but the model": lambda w: w.update({"embedding.weight": w["embedding.weight"][:-1].copy()}),
}


@pytest.mark.parametrize("message", BAD_WEIGHTS)
def test_bad_weights_are_refused(copy, message):
    weights = load_file(copy / "model.safetensors")
    BAD_WEIGHTS[message](weights)
    save_file(weights, copy / "model.safetensors")
    with pytest.raises(ModelFolderError, match=message.strip()):
        UseEmbedder(copy)


def test_folders_without_a_part_are_refused(copy, tiny_bert, tmp_path):
    for name, error in (("tokenizer.json", ModelFolderError), ("model.safetensors", WeightsError)):
        (copy / name).rename(tmp_path / "away")
        with pytest.raises(error, match=rf"{name}"):
            UseEmbedder(copy)
        (tmp_path / "away").rename(copy / name)
    shutil.copyfile(tiny_bert / "tokenizer.json", copy / "tokenizer.json")
    with pytest.raises(ModelFolderError, match="is not one of unigram pieces"):
        UseEmbedder(copy)
    with pytest.raises(ModelFolderError, match="not a Universal Sentence Encoder"):
        UseEmbedder(tiny_bert)
    with pytest.raises(InputError, match="exists already"):
        write_use(copy, UseConfig(), tiny_weights(), tiny_tokenizer())


def test_a_table_that_is_written_into_is_noticed(copy):
    embedder = UseEmbedder(copy)
    with (copy / "model.safetensors").open("r+b") as file:
        file.truncate(400)
    with pytest.raises(WeightsError, match="was changed while it was in use"):
        embedder.embed(["a"])


# --- reduce


@pytest.mark.parametrize("pack", [dict, pack_int8])
def test_a_reduced_model_gives_the_same_bits_for_the_texts_it_was_reduced_to(tmp_path, pack):
    write_use(tmp_path / "m", UseConfig(), pack(tiny_weights()), tiny_tokenizer())
    texts = ["the cat sits", "고양이 ☃ at"]
    done = reduce_use(tmp_path / "m", tmp_path / "small", iter(texts))
    before, after = UseEmbedder(tmp_path / "m"), UseEmbedder(tmp_path / "small")
    assert np.array_equal(after.embed(texts), before.embed(texts))
    assert done == (len(PIECES), len(after._model.stored["embedding.weight"])) and done.n_pieces < done.n_before
    vocabulary = after._model.tokenizer.fast.get_vocab()
    assert {*LETTERS, "▁", "▁the", "▁cat", "▁sits"} <= set(vocabulary) and "▁dog" not in vocabulary
    assert np.isfinite(after.embed(TEXTS)).all()  # the others are read in smaller pieces


def test_reducing_needs_texts(folder, tmp_path):
    for texts in ([], "one text"):
        with pytest.raises(InputError, match="no texts"):
            reduce_use(folder, tmp_path / "small", texts)
    assert not (tmp_path / "small").exists()


def test_the_command_reduces(folder, tmp_path):
    (tmp_path / "texts.txt").write_text("the cat sits\na dog\n", encoding="utf-8")
    target = tmp_path / "small"
    arguments = ["reduce", str(folder), str(tmp_path / "texts.txt"), "-o", str(target)]
    result = CliRunner().invoke(main, arguments)
    assert result.exit_code == 0, result.output
    n_pieces = len(read_use(target).stored["embedding.weight"])
    assert f"Kept {n_pieces} of {len(PIECES)} pieces." in result.output
    assert CliRunner().invoke(main, arguments).exit_code == 1  # the target is there


# --- torch


@pytest.mark.parametrize("pack", [dict, pack_int8])
def test_torch_gives_the_same_vectors_and_gradients_to_every_weight(folder, tmp_path, pack):
    torch = pytest.importorskip("torch")
    from twinvec.baselines.use_torch import UseNetwork

    write_use(tmp_path / "m", UseConfig(norm=folder.name), pack(tiny_weights()), tiny_tokenizer())
    network = UseNetwork.from_folder(tmp_path / "m")
    vectors = network.embed(TEXTS)
    np.testing.assert_allclose(vectors.detach().numpy(), UseEmbedder(tmp_path / "m").embed(TEXTS), atol=1e-5)
    (vectors @ torch.linspace(-1, 1, WIDTH)).square().sum().backward()
    for name, parameter in network.named_parameters():
        assert parameter.grad is not None and torch.isfinite(parameter.grad).all(), name
        assert parameter.grad.abs().sum() > 0, name
    assert not network.embedding_weight.grad[PIECES.index("og")].any()  # no text has it


def test_torch_saves_what_it_read_and_what_it_learned(folder, embedder, tmp_path):
    torch = pytest.importorskip("torch")
    from twinvec.baselines.use_torch import UseNetwork

    network = UseNetwork.from_folder(folder)
    network.save(tmp_path / "same")
    assert np.array_equal(UseEmbedder(tmp_path / "same").embed(TEXTS), embedder.embed(TEXTS))
    left, right = TEXTS[:2], TEXTS[5:7]

    def loss():
        return (network.embed(left) * network.embed(right)).sum(dim=1).square().mean()

    first = loss().item()
    optimizer = torch.optim.Adam(network.parameters(), lr=0.01)
    for _ in range(10):
        optimizer.zero_grad()
        loss().backward()
        optimizer.step()
    assert loss().item() < first / 2
    network.save(tmp_path / "learned")
    found = UseEmbedder(tmp_path / "learned").embed(TEXTS)
    np.testing.assert_allclose(found, network.embed(TEXTS).detach().numpy(), atol=1e-5)
    network.save(tmp_path / "small", precision="int8")
    assert (UseEmbedder(tmp_path / "small").embed(TEXTS) * found).sum(axis=1).min() > 0.99
