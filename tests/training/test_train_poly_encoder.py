"""Training a poly-encoder: the torch network is the one that runs, it learns, resumes exactly, and refuses nonsense."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import load_file

import twinvec
from tiny import WORDS, write_plain_model, write_tiny_model, write_tiny_poly_encoder
from training import assert_same_bits, run, sts_source, with_settings, write_pairs, write_sts
from twinvec.data.roles import DataSource
from twinvec.errors import InputError, ModelFolderError, UnknownNameError

torch = pytest.importorskip("torch", reason="training needs the extra 'train'")
for needed in ("transformers", "accelerate", "matplotlib"):
    pytest.importorskip(needed, reason="training needs the extra 'train'")

from twinvec.model.folder import read_model_folder  # noqa: E402
from twinvec.model.tokenizer import load_tokenizer  # noqa: E402
from twinvec.training.batches import tokenize  # noqa: E402
from twinvec.training.loop import StepReport  # noqa: E402
from twinvec.training.networks.poly_encoder import PolyNetwork, PolyScores  # noqa: E402
from twinvec.training.objectives import PolyRankingObjective  # noqa: E402
from twinvec.training.recipe import DataPart, DevPart, ModelPart, Recipe, TrainSettings  # noqa: E402
from twinvec.training.recipe_file import read_recipe, recipe_as_toml  # noqa: E402
from twinvec.training.run import RunOptions, run_recipe  # noqa: E402

RNG = np.random.default_rng(0)
TEXTS = [" ".join(RNG.choice(WORDS, RNG.integers(1, 12))) for _ in range(12)]
PAIRS = [(first, second) for first in TEXTS[:6] for second in TEXTS[6:]]


def poly_recipe(folder, start, **model):
    """In-batch negatives with one hard negative, and dev scores on pairs with a score."""
    pairs = DataSource(str(write_pairs(folder / "pairs.tsv", 48)), "ranked")
    return Recipe(
        ModelPart(str(start), network="poly-encoder", **{"codes": 3, **model}),
        (DataPart(pairs, "ranking"),),
        TrainSettings(batch_size=8, learning_rate=1e-3, epochs=2),
        DevPart(sts_source(write_sts(folder / "sts.tsv")), every=5),
    )


@pytest.fixture
def recipe(tmp_path, tiny_bert):
    return poly_recipe(tmp_path, tiny_bert)


def codes_of(folder):
    return load_file(folder / "poly_encoder.safetensors")["codes"]


def assert_same_poly_encoder(one, other):
    assert_same_bits(one, other)
    assert codes_of(one).tobytes() == codes_of(other).tobytes()
    assert (one / "poly_encoder.json").read_bytes() == (other / "poly_encoder.json").read_bytes()


def network_of(folder):
    network = PolyNetwork(read_model_folder(folder), len(codes_of(folder)))
    network.codes.data.copy_(torch.from_numpy(codes_of(folder)))
    return network.eval()


# --- the network


@pytest.mark.parametrize("family", ["bert", "roberta", "modernbert"])
@pytest.mark.parametrize("extra", [(), ("Normalize",)])
def test_the_network_and_the_saved_folder_give_the_same_scores(tmp_path, family, extra):
    folder = write_tiny_poly_encoder(tmp_path / "m", family, extra=extra)
    network = network_of(folder)
    tokens = tokenize(TEXTS, load_tokenizer(folder), 24)
    scores = PolyScores(network, tokens)
    expected = twinvec.load_scorer(folder).score(PAIRS).reshape(6, 6)
    first, second = np.arange(6), np.arange(6, 12)
    np.testing.assert_allclose(scores.all(first, second), expected, atol=1e-5)
    np.testing.assert_allclose(scores.of(first, second), np.diagonal(expected), atol=1e-5)
    outputs = network(tokens.rows(np.arange(12)))
    objective = PolyRankingObjective(network.vector_width, network.scale)
    found = objective.scores(outputs[:6], outputs[6:]).detach().numpy()
    np.testing.assert_allclose(found, expected, atol=1e-5)


def test_gradients_are_those_of_the_differences_and_reach_the_codes(tmp_path):
    folder = write_tiny_poly_encoder(tmp_path / "m")
    network = network_of(folder)
    rows = tokenize(TEXTS, load_tokenizer(folder), 24).rows(np.arange(12))
    objective = PolyRankingObjective(network.vector_width, 2.0)

    def loss():
        outputs = network(rows)
        return objective(outputs[:4], outputs[4:8], outputs[8:].unsqueeze(1))

    loss().backward()
    gradient = network.codes.grad
    assert (gradient.norm(dim=1) > 1e-6).all()
    direction = gradient / gradient.norm()
    values = []
    for step in (0.02, -0.02):
        network.codes.data += step * direction
        values.append(loss().item())
        network.codes.data -= step * direction
    assert (values[0] - values[1]) / 0.04 == pytest.approx(float((gradient * direction).sum()), rel=2e-2)
    weight = network.backbone.model.get_input_embeddings().weight
    assert float(weight.grad.abs().sum()) > 0


def test_the_loss_is_the_cross_entropy_of_the_scores_of_all_candidates():
    torch.manual_seed(0)
    n, k, codes, width = 4, 2, 3, 5
    anchor, positive = torch.randn(2, n, (1 + codes) * width, dtype=torch.float64)
    negative = torch.randn(n, k, (1 + codes) * width, dtype=torch.float64)
    candidates = [*positive, *negative.flatten(0, 1)]
    losses = []
    for row, query in enumerate(anchor):
        vectors = query[width:].reshape(codes, width)
        scores = []
        for each in candidates:
            one = each[:width]
            weights = torch.softmax(7 * vectors @ one, dim=0)
            scores.append(3 * (weights @ vectors) @ one)
        losses.append(torch.logsumexp(torch.stack(scores), dim=0) - scores[row])
    objective = PolyRankingObjective(width, 7.0, scale=3.0)
    torch.testing.assert_close(objective(anchor, positive, negative), torch.stack(losses).mean())


# --- runs


def test_a_run_learns_and_writes_a_poly_encoder(tmp_path):
    start = write_plain_model(tmp_path / "start", "bert")
    recipe = with_settings(replace(poly_recipe(tmp_path, start), dev=None), epochs=30, dropout=0.0)
    losses = [event.loss for event in run(recipe, tmp_path / "model") if isinstance(event, StepReport)]
    assert np.mean(losses[-6:]) < 0.8 * np.mean(losses[:6])
    scorer = twinvec.load_scorer(tmp_path / "model")
    assert scorer.n_codes == 3 and scorer.scale == 100.0
    assert np.isfinite(scorer.score(PAIRS)).all()
    assert twinvec.inspect_model(tmp_path / "model").n_codes == 3
    assert twinvec.load(tmp_path / "model").encode(TEXTS).shape == (12, 32)
    assert read_recipe(tmp_path / "model/training/recipe.toml") == recipe
    assert 'twinvec.load_scorer("model")' in (tmp_path / "model/README.md").read_text()


@pytest.mark.parametrize("kind", ["scored_pairs", "ranked", "triplets"])
def test_dev_scores_are_those_of_the_saved_model(recipe, tmp_path, kind):
    source = DataSource(str(tmp_path / "pairs.tsv"), kind) if kind != "scored_pairs" else recipe.dev.source
    finished = run(replace(recipe, dev=replace(recipe.dev, source=source, keep="last")), tmp_path / "model")[-1]
    scorer = twinvec.load_scorer(tmp_path / "model")
    name = "sts.tsv" if kind == "scored_pairs" else "pairs.tsv"
    rows = [line.split("\t") for line in (tmp_path / name).read_text().splitlines()[1:]]
    if kind == "scored_pairs":
        stats = pytest.importorskip("scipy.stats")
        gold = np.array([float(row[0]) for row in rows])
        expected = 100 * stats.spearmanr(scorer.score([(a, b) for _, a, b in rows]), gold).statistic
    elif kind == "triplets":
        near, far = (scorer.score([(row[0], row[i]) for row in rows]) for i in (1, 2))
        expected = 100 * (near > far).mean()
    else:
        hits = [scorer.rank(row[0], [each[1] for each in rows], 1).rows[0] == i for i, row in enumerate(rows)]
        expected = 100 * np.mean(hits)
    assert finished.scores[0].value == pytest.approx(expected, abs=2.1 if kind != "scored_pairs" else 0.05)
    assert "poly-encoder score" in finished.scores[0].protocol


VARIANTS = {"plain": {}, "accumulated": {"accumulation": 2}, "cached": {"cached_texts": 5}}


@pytest.mark.parametrize("variant", VARIANTS)
def test_a_stopped_run_ends_with_the_same_bits(recipe, tmp_path, variant):
    recipe = with_settings(recipe, **VARIANTS[variant])
    run(recipe, tmp_path / "whole")
    events = run_recipe(recipe, tmp_path / "parts", RunOptions())
    for event in events:
        if isinstance(event, StepReport) and event.step == 3:
            events.close()
            break
    assert run(recipe, tmp_path / "parts")[0].step == 3
    assert_same_poly_encoder(tmp_path / "whole", tmp_path / "parts")


CHILD = """
import os, signal, sys
sys.path.insert(0, sys.argv[1])
from pathlib import Path
from twinvec.training.loop import StepReport
from twinvec.training.recipe_file import read_recipe
from twinvec.training.run import RunOptions, run_recipe
for event in run_recipe(read_recipe(Path(sys.argv[2])), Path(sys.argv[3]), RunOptions(checkpoint_every=2)):
    if isinstance(event, StepReport) and event.step == 5:
        os.kill(os.getpid(), signal.SIGKILL)
"""


def test_a_killed_run_ends_with_the_same_bits(recipe, tmp_path):
    (tmp_path / "recipe.toml").write_text(recipe_as_toml(recipe))
    run(recipe, tmp_path / "whole")
    support = str(Path(__file__).parents[1] / "support")
    command = [sys.executable, "-c", CHILD, support, str(tmp_path / "recipe.toml"), str(tmp_path / "parts")]
    assert subprocess.run(command, check=False, capture_output=True).returncode == -9
    assert not (tmp_path / "parts").exists()
    assert run(recipe, tmp_path / "parts")[0].step == 4
    assert_same_poly_encoder(tmp_path / "whole", tmp_path / "parts")


def test_gradient_caching_gives_the_same_model(recipe, tmp_path):
    recipe = with_settings(recipe, dropout=0.0, max_steps=3)
    run(recipe, tmp_path / "one")
    run(with_settings(recipe, cached_texts=4), tmp_path / "other")
    np.testing.assert_allclose(codes_of(tmp_path / "one"), codes_of(tmp_path / "other"), atol=1e-5)


def test_the_seed_decides_the_codes(recipe, tmp_path):
    for name, seed in (("a", 0), ("b", 0), ("c", 1)):
        run(with_settings(recipe, seed=seed, max_steps=1), tmp_path / name)
    assert_same_poly_encoder(tmp_path / "a", tmp_path / "b")
    assert not np.allclose(codes_of(tmp_path / "a"), codes_of(tmp_path / "c"), atol=1e-2)


def test_a_poly_encoder_can_be_trained_further(recipe, tmp_path):
    run(recipe, tmp_path / "first")
    again = with_settings(
        replace(recipe, model=ModelPart(str(tmp_path / "first"), network="poly-encoder")), max_steps=1
    )
    run(again, tmp_path / "second")
    assert np.abs(codes_of(tmp_path / "first") - codes_of(tmp_path / "second")).max() < 5e-3
    with pytest.raises(InputError, match="is a poly-encoder with 3 codes"):
        run(replace(again, model=replace(again.model, codes=4)), tmp_path / "third")


def test_int8_storage_keeps_the_codes(recipe, tmp_path):
    run(replace(recipe, model=replace(recipe.model, stored="int8")), tmp_path / "small")
    scorer = twinvec.load_scorer(tmp_path / "small", deterministic=True)
    assert codes_of(tmp_path / "small").dtype == np.float32
    scorer.save(tmp_path / "copy")
    assert np.array_equal(twinvec.load_scorer(tmp_path / "copy", deterministic=True).score(PAIRS), scorer.score(PAIRS))


# --- what is refused


@pytest.mark.parametrize("codes", [0, -1, 1.5, "4", True])
def test_a_wrong_number_of_codes_is_refused(codes):
    with pytest.raises(InputError, match="codes must be a whole number of at least 1"):
        ModelPart("m", network="poly-encoder", codes=codes)


def test_settings_that_a_poly_encoder_does_not_have_are_refused(recipe, tmp_path):
    with pytest.raises(InputError, match="codes is 4 for a bi-encoder"):
        ModelPart("m", codes=4)
    with pytest.raises(InputError, match="1 to 4096 codes"):
        ModelPart("m", network="poly-encoder", codes=5000)
    with pytest.raises(InputError, match="no pooling or static"):
        ModelPart("m", network="poly-encoder", static=8)
    with pytest.raises(InputError, match="matryoshka"):
        replace(recipe, data=(replace(recipe.data[0], matryoshka=(8,)),))
    with pytest.raises(UnknownNameError, match="objective of a poly-encoder"):
        replace(recipe, data=(DataPart(recipe.dev.source, "cosine"),))
    with pytest.raises(ModelFolderError, match="single pooling"):
        two = write_tiny_model(tmp_path / "two", extra=(), pooling={"pooling_mode": ["mean", "max"]})
        run(replace(recipe, model=replace(recipe.model, start=str(two))), tmp_path / "model")
