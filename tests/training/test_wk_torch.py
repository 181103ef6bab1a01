"""SBERT-WK in torch: the numbers of the engine, and gradients."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import twinvec
from training import make_recipe, run
from twinvec.model.folder import WK, Normalize, read_model_folder
from twinvec.wk import WKSettings, sentence_vectors

torch = pytest.importorskip("torch", reason="training needs the extra 'train'")
pytest.importorskip("transformers", reason="training needs the extra 'train'")

from twinvec.model.tokenizer import load_tokenizer  # noqa: E402
from twinvec.training.batches import tokenize  # noqa: E402
from twinvec.training.networks.bi_encoder import Network  # noqa: E402
from twinvec.training.readout import wk_vectors  # noqa: E402

TEXTS = ["the cat sits on the mat", "a dog", "", "rain in the old city and sun on the river", "a dog"]
SETTINGS = WKSettings("reference", layer_start=0, window=1, omega=0.25)


def walk(shape, seed=0):
    """Layers that move as those of a model do: near their neighbours."""
    rng = np.random.default_rng(seed)
    return 2 * rng.standard_normal(shape[1:]) + np.cumsum(0.6 * rng.standard_normal(shape), axis=0)


ODD = {
    "usual": walk((7, 2, 3, 5)),
    "one layer": walk((1, 2, 3, 5)),
    "two layers": walk((2, 2, 3, 5)),
    "identical layers": np.repeat(walk((1, 2, 3, 5)), 5, axis=0),
    "zeros": np.zeros((5, 2, 3, 5)),
    "against each other": walk((5, 2, 3, 5)) * np.array([1, -1, 1, -1, 1])[:, None, None, None],
}


@pytest.mark.parametrize("mode", ["paper", "reference"])
@pytest.mark.parametrize("kind", ODD)
def test_torch_gives_the_same_numbers_and_no_gradient_that_is_nan(kind, mode):
    settings, mask = WKSettings(mode, 0), np.array([[1, 1, 1], [1, 0, 0]])
    layers = torch.tensor(ODD[kind], requires_grad=True)
    vectors = wk_vectors(layers, torch.from_numpy(mask), settings)
    np.testing.assert_allclose(vectors.detach().numpy(), sentence_vectors(ODD[kind], mask, settings), atol=1e-10)
    vectors.sum().backward()
    assert torch.isfinite(layers.grad).all()


@pytest.mark.parametrize("mode", ["paper", "reference"])
def test_gradients_are_those_of_finite_differences(mode):
    layers = torch.tensor(walk((6, 2, 3, 4), seed=3), requires_grad=True)
    mask = torch.tensor([[1, 1, 1], [1, 1, 0]])
    assert torch.autograd.gradcheck(lambda each: wk_vectors(each, mask, WKSettings(mode, 1)), (layers,))


@pytest.mark.parametrize("family", ["bert", "albert", "modernbert"])
def test_a_folder_with_wk_is_trained_and_gives_the_engines_vectors(tmp_path, tiny_folders, family):
    folder = replace(read_model_folder(tiny_folders[family]), modules=(WK(SETTINGS), Normalize()))
    table = tokenize(TEXTS, load_tokenizer(folder.backbone), 24)
    rows = table.rows(range(len(table)))
    network = Network(folder, dropout=0.0)
    before = network.encode(rows)
    np.testing.assert_allclose(before, twinvec.load(tiny_folders[family], readout=SETTINGS).encode(TEXTS), atol=1e-5)
    network(rows)[:, 0].sum().backward()
    torch.optim.SGD(network.parameters(), lr=0.05).step()
    (tmp_path / "trained").mkdir()
    network.write(tmp_path / "trained")
    after = network.encode(rows)
    assert np.abs(after - before).max() > 1e-3
    np.testing.assert_allclose(twinvec.load(tmp_path / "trained").encode(TEXTS), after, atol=1e-5)


def test_a_whole_run_starts_from_such_a_folder_and_ends_in_one(tmp_path, tiny_bert):
    for needed in ("accelerate", "matplotlib"):
        pytest.importorskip(needed, reason="training needs the extra 'train'")
    twinvec.load(tiny_bert, readout=SETTINGS).save(tmp_path / "start")
    run(make_recipe(tmp_path, tmp_path / "start", epochs=1), tmp_path / "trained")
    trained = twinvec.load(tmp_path / "trained")
    assert trained.folder.modules == (WK(SETTINGS), Normalize())
    card = (tmp_path / "trained/README.md").read_text()
    assert "Other libraries do not know it and refuse this folder" in card and "tags: [sentence-similarity]" in card
    assert np.abs(trained.encode(TEXTS) - twinvec.load(tmp_path / "start").encode(TEXTS)).max() > 1e-3
