"""The network that is trained is the network that is used: packed or padded, in torch, in the engine, elsewhere."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import twinvec
from tiny import WORDS, write_tiny_model
from twinvec.choices import POOLINGS
from twinvec.model.folder import Pooling, read_model_folder

torch = pytest.importorskip("torch", reason="training needs the extra 'train'")
pytest.importorskip("transformers", reason="training needs the extra 'train'")

from twinvec.model.tokenizer import load_tokenizer  # noqa: E402
from twinvec.training.backbone import Backbone, make_grid, packed_attention  # noqa: E402
from twinvec.training.batches import tokenize  # noqa: E402
from twinvec.training.networks.bi_encoder import Network, whole_table  # noqa: E402
from twinvec.training.readout import POOLERS  # noqa: E402

TEXTS = [" ".join(WORDS[i : i + 1 + i % 11]) for i in range(20)]
PACKED = {"bert", "roberta", "xlm-roberta", "camembert", "distilbert", "electra", "albert"}


def rows_of(folder, texts=TEXTS):
    model = read_model_folder(folder)
    table = tokenize(texts, load_tokenizer(model.backbone), 24)
    return table.rows(range(len(table)))


def test_every_architecture_gives_the_engines_states_in_every_layer(tiny_folders):
    for family, folder in tiny_folders.items():
        backbone = Backbone(read_model_folder(folder)).eval()
        rows = rows_of(folder)
        with torch.no_grad():
            layers, mask = backbone.layers(rows)
            last, _ = backbone(rows)
        expected = twinvec.load(folder).encode_layers(TEXTS)
        assert backbone.is_packed == (family in PACKED), family
        for i, (row, states) in enumerate(zip(rows, expected, strict=True)):
            assert int(mask[i].sum()) == len(row)
            # Since transformers 5, ALBERT also shows the states between the inner layers of a group.
            shown = layers[:: (len(layers) - 1) // (len(states) - 1)]
            ours = torch.stack([layer[i, : len(row)] for layer in shown]).numpy()
            np.testing.assert_allclose(ours, states, atol=1e-4)
            np.testing.assert_allclose(last[i, : len(row)].numpy(), states[-1], atol=1e-4)


def test_packing_changes_no_gradient(tiny_bert):
    rows, gradients = rows_of(tiny_bert), []
    for is_packed in (True, False):
        network = Network(read_model_folder(tiny_bert)).eval()
        if not is_packed:
            network.backbone._first_position = None
        network(rows)[:, 3].sum().backward()
        gradients.append({name: each.grad for name, each in network.named_parameters() if each.grad is not None})
    assert gradients[0].keys() == gradients[1].keys()
    for name, gradient in gradients[0].items():
        torch.testing.assert_close(gradient, gradients[1][name], atol=1e-5, rtol=1e-4)


def test_bfloat16_attention_is_that_of_float32_rounded_once():
    lengths, generator = [3, 1, 7], torch.Generator().manual_seed(0)
    exact = [torch.randn(1, 2, sum(lengths), 4, generator=generator).bfloat16().float() for _ in range(3)]
    module, grid = torch.nn.Identity(), make_grid(lengths)
    expected, _ = packed_attention(module, *exact, None, grid=grid)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        found, _ = packed_attention(module, *(each.bfloat16() for each in exact), None, grid=grid)
    assert torch.equal(found, expected.bfloat16())


@pytest.mark.parametrize("mode", POOLINGS)
def test_every_pooling_is_the_engines(mode, tmp_path, tiny_bert):
    folder = replace(read_model_folder(tiny_bert), modules=(Pooling((mode,)),))
    network = Network(folder)
    (tmp_path / "model").mkdir()
    network.write(tmp_path / "model")
    np.testing.assert_allclose(
        network.encode(rows_of(tiny_bert)), twinvec.load(tmp_path / "model").encode(TEXTS), atol=1e-5
    )


def test_poolings_ignore_padding():
    states, mask = torch.randn(2, 5, 3), torch.tensor([[1, 1, 1, 0, 0], [1, 0, 0, 0, 0]])
    other = states.clone()
    other[mask == 0] = 7.0
    for pool in POOLERS.values():
        torch.testing.assert_close(pool(states, mask), pool(other, mask))


def test_only_rows_that_occur_are_trained_and_the_others_keep_their_bits(tiny_bert):
    rows = rows_of(tiny_bert, TEXTS[:4])
    used = np.unique(np.concatenate(rows))
    whole, part = (Network(read_model_folder(tiny_bert), dropout=0.0) for _ in range(2))
    before = whole.backbone.model.get_input_embeddings().weight.detach().clone()
    part.train_only(used)
    for network in (whole, part):
        optimizer = torch.optim.AdamW(network.parameters(), lr=1e-2, weight_decay=0.0)
        for _ in range(3):
            network(rows)[:, :5].sum().backward()
            optimizer.step()
            optimizer.zero_grad()
    with whole_table(part.backbone):
        tables = [network.backbone.model.get_input_embeddings().weight.detach() for network in (whole, part)]
    assert torch.equal(tables[0], tables[1])
    unused = np.setdiff1d(np.arange(len(before)), used)
    assert torch.equal(tables[1][unused], before[unused])
    assert not torch.equal(tables[1][used], before[used])
    np.testing.assert_array_equal(whole.encode(rows_of(tiny_bert)), part.encode(rows_of(tiny_bert)))


def test_a_token_that_was_not_announced_is_no_silent_mistake(tiny_bert):
    network = Network(read_model_folder(tiny_bert))
    network.train_only(np.arange(8))
    with pytest.raises(IndexError):
        network([np.array([2, 30, 3])])


def test_layers_behind_the_pooling_are_trained_and_saved(tmp_path):
    sentence_transformers = pytest.importorskip("sentence_transformers")
    from safetensors.numpy import save_file

    from tiny import write_json

    folder = write_tiny_model(tmp_path / "start", extra=("Dense", "LayerNorm", "Normalize"))
    rng = np.random.default_rng(0)
    dense = {
        "in_features": 32,
        "out_features": 8,
        "bias": True,
        "activation_function": "torch.nn.modules.activation.Tanh",
    }
    write_json(folder / "2_Dense/config.json", dense)
    weights = {"linear.weight": rng.standard_normal((8, 32)), "linear.bias": rng.standard_normal(8)}
    save_file({name: each.astype(np.float32) for name, each in weights.items()}, folder / "2_Dense/model.safetensors")
    write_json(folder / "3_LayerNorm/config.json", {"dimension": 8})
    norm = {"norm.weight": np.ones(8, dtype=np.float32), "norm.bias": np.zeros(8, dtype=np.float32)}
    save_file(norm, folder / "3_LayerNorm/model.safetensors")
    network = Network(read_model_folder(folder))
    optimizer = torch.optim.SGD(network.parameters(), lr=0.1)
    network(rows_of(folder))[:, 0].sum().backward()
    optimizer.step()
    (tmp_path / "trained").mkdir()
    network.write(tmp_path / "trained")
    vectors = network.encode(rows_of(folder))
    assert np.abs(vectors - twinvec.load(folder).encode(TEXTS)).max() > 1e-3
    np.testing.assert_allclose(vectors, twinvec.load(tmp_path / "trained").encode(TEXTS), atol=1e-5)
    theirs = sentence_transformers.SentenceTransformer(str(tmp_path / "trained"), device="cpu").encode(TEXTS)
    np.testing.assert_allclose(vectors, theirs, atol=1e-5)


def test_an_encoder_with_a_decoder_is_refused(tmp_path):
    import transformers

    from twinvec.errors import ModelFolderError

    folder = write_tiny_model(tmp_path / "t5")
    config = transformers.T5Config(vocab_size=60, d_model=16, d_kv=8, d_ff=16, num_layers=1, num_heads=2)
    (folder / "model.safetensors").unlink()
    transformers.T5Model(config).save_pretrained(folder)
    with pytest.raises(ModelFolderError, match="has a decoder"):
        Network(read_model_folder(folder))
