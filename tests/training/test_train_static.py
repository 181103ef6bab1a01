"""Static models in training: a table that starts from a larger model, learns from it, and is read back the same."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import twinvec
from tiny import WORDS
from training import assert_same_bits, sentence, sts_source, write_sts
from twinvec.data.roles import DataSource
from twinvec.errors import InputError
from twinvec.metrics import spearman

for needed in ("torch", "transformers", "matplotlib"):
    pytest.importorskip(needed, reason="training needs the extra 'train'")

import random  # noqa: E402

from twinvec.model.tokenizer import load_tokenizer  # noqa: E402
from twinvec.training import DataPart, DevPart, ModelPart, Recipe, TrainSettings, run_recipe  # noqa: E402
from twinvec.training.batches import tokenize  # noqa: E402
from twinvec.training.networks.static import StaticNetwork, start_table  # noqa: E402

TEXTS = [sentence(random.Random(i)) for i in range(80)]


@pytest.fixture
def recipe(tmp_path, tiny_bert):
    (tmp_path / "texts.txt").write_text("\n".join(TEXTS) + "\n")
    part = DataPart(
        DataSource(str(tmp_path / "texts.txt"), "texts"),
        "distillation",
        {"loss": "cosine", "similarity_weight": 5.0},
        teachers=(str(tiny_bert),),
    )
    dev = DevPart(sts_source(write_sts(tmp_path / "dev.tsv")), every=10)
    settings = TrainSettings(epochs=8, learning_rate=1e-2)
    return Recipe(ModelPart(str(tiny_bert), static=12), (part,), settings, dev)


def run(recipe, target, *, stop_after=None):
    for event in run_recipe(recipe, target):
        if stop_after is not None and getattr(event, "step", 0) == stop_after:
            break


def similarities(folder):
    vectors = twinvec.load(folder).encode(TEXTS)
    return twinvec.similarity(vectors, vectors)[np.triu_indices(len(TEXTS), 1)]


def test_a_table_learns_what_its_teacher_says(recipe, tmp_path, tiny_bert):
    longer = replace(recipe, training=replace(recipe.training, epochs=60), dev=None)
    run(longer, tmp_path / "table")
    encoder = twinvec.load(tmp_path / "table")
    assert encoder.folder.is_static and encoder.width == 12
    assert spearman(similarities(tmp_path / "table"), similarities(tiny_bert)) > 0.7


def test_a_stopped_run_ends_with_the_same_table(recipe, tmp_path):
    run(recipe, tmp_path / "whole")
    run(recipe, tmp_path / "stopped", stop_after=7)
    run(recipe, tmp_path / "stopped")
    assert_same_bits(tmp_path / "whole", tmp_path / "stopped")


def test_training_and_the_encoder_give_the_same_vectors(tmp_path, tiny_bert):
    folder = twinvec.load(tiny_bert).folder
    tokenizer = load_tokenizer(folder.backbone)
    tokens = tokenize(["", *TEXTS], tokenizer, 32)
    network = StaticNetwork(
        folder, tokenizer, start_table(folder, tokenizer, 8, np.bincount(tokens.ids, minlength=tokenizer.n_vocabulary))
    )
    (tmp_path / "table").mkdir()
    network.write(tmp_path / "table")
    expected = twinvec.load(tmp_path / "table").encode(["", *TEXTS])
    assert np.abs(network.encode(tokens.rows(range(len(tokens)))) - expected).max() < 1e-6


def test_frequent_tokens_start_with_low_weights(tiny_bert):
    folder = twinvec.load(tiny_bert).folder
    tokenizer = load_tokenizer(folder.backbone)
    counts = np.zeros(tokenizer.n_vocabulary, dtype=np.int64)
    word = tokenizer.ids([WORDS[0]])[0][0]
    even = start_table(folder, tokenizer, 8, counts)
    counts[word] = 1000
    weighted = start_table(folder, tokenizer, 8, counts)
    ratio = np.linalg.norm(weighted, axis=1) / np.linalg.norm(even, axis=1)
    assert ratio[word] == pytest.approx(1e-3 / (1 + 1e-3), rel=1e-3)
    assert np.allclose(np.delete(ratio, word), 1, atol=1e-5)


def test_a_table_is_not_wider_than_the_vectors_it_starts_from(tiny_bert):
    folder = twinvec.load(tiny_bert).folder
    tokenizer = load_tokenizer(folder.backbone)
    with pytest.raises(InputError, match=r"static is 999, but the vectors of .* have the width 32"):
        start_table(folder, tokenizer, 999, np.zeros(tokenizer.n_vocabulary, dtype=np.int64))


def test_a_static_model_is_trained_further_from_its_table(recipe, tmp_path, tiny_bert):
    run(recipe, tmp_path / "table")
    still = replace(recipe, model=ModelPart(str(tmp_path / "table")), training=TrainSettings(learning_rate=1e-9))
    run(still, tmp_path / "still")
    assert np.allclose(similarities(tmp_path / "still"), similarities(tmp_path / "table"), atol=1e-5)
    more = replace(still, model=ModelPart(str(tmp_path / "table"), static=12), training=TrainSettings(epochs=60))
    more = replace(more, training=replace(more.training, learning_rate=1e-2), dev=None)
    run(more, tmp_path / "more")
    taught, before = (spearman(similarities(tmp_path / name), similarities(tiny_bert)) for name in ("more", "table"))
    assert taught > before + 0.02


@pytest.mark.parametrize(
    ("changed", "problem"),
    [
        ({"static": 8}, "static is 8, but the vectors of .* have the width 12"),
        ({"layers": (0,)}, "is a static model: it has no layers"),
        ({"pooling": "cls"}, "is a static model: it has no layers"),
    ],
)
def test_settings_that_a_static_model_cannot_have_are_refused(recipe, tmp_path, changed, problem):
    run(recipe, tmp_path / "table")
    with pytest.raises(InputError, match=problem):
        run(replace(recipe, model=ModelPart(str(tmp_path / "table"), **changed)), tmp_path / "other")
    assert not (tmp_path / "other").exists()


def test_a_static_model_has_no_layers_to_choose():
    with pytest.raises(InputError, match="has no layers, feed_forward, special_tokens, pooling or projection"):
        ModelPart("x", static=8, layers=(0, 1))
