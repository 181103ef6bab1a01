"""Augmented SBERT: a scorer labels mined pairs of texts, and a bi-encoder learns from them."""

from __future__ import annotations

import random
from dataclasses import replace

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

pytest.importorskip("torch", reason="training requires the extra 'train'")

import twinvec
from tiny import write_tiny_classifier
from training import assert_same_bits, sentence
from twinvec.data.roles import DataSource
from twinvec.errors import InputError
from twinvec.training.prepare import prepare, read_inputs
from twinvec.training.processes import ALONE
from twinvec.training.recipe import DataPart, ModelPart, Recipe, TrainSettings
from twinvec.training.recipe_file import read_recipe, recipe_as_toml


@pytest.fixture(autouse=True)
def own_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("TWINVEC_CACHE", str(tmp_path / "cache"))


@pytest.fixture
def texts(tmp_path):
    rng = random.Random(5)
    found = list(dict.fromkeys(sentence(rng) for _ in range(50)))
    (tmp_path / "texts.txt").write_text("\n".join(found) + "\n")
    return found


@pytest.fixture
def recipe(tmp_path, texts, tiny_bert):
    teacher = write_tiny_classifier(tmp_path / "teacher", seed=7)
    part = DataPart(
        DataSource(str(tmp_path / "texts.txt"), "texts"),
        "cosine",
        teachers=(str(teacher),),
        mined=3,
        miner=str(tiny_bert),
    )
    return Recipe(ModelPart(str(tiny_bert)), (part,), TrainSettings(epochs=8, batch_size=16, learning_rate=1e-3))


def task_of(recipe, work):
    return prepare(read_inputs(recipe), work=work, processes=ALONE).tasks[0]


def test_pairs_are_near_texts_of_rank_1_2_and_4_with_the_teachers_scores(recipe, texts, tiny_bert, tmp_path):
    examples = task_of(recipe, tmp_path / "work").examples
    left, right = examples.indices["text1"], examples.indices["text2"]
    vectors = twinvec.load(tiny_bert).encode(texts)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    order = np.argsort(-(vectors @ vectors.T - 2 * np.eye(len(texts))), axis=1)
    expected = {tuple(sorted((row, int(order[row, rank - 1])))) for row in range(len(texts)) for rank in (1, 2, 4)}
    assert set(zip(left.tolist(), right.tolist(), strict=True)) == expected
    scorer = twinvec.load_scorer(recipe.data[0].teachers[0])
    scores = scorer.score([(texts[i], texts[j]) for i, j in zip(left, right, strict=True)])
    np.testing.assert_allclose(examples.targets, scores, atol=1e-6)


def test_the_cosines_of_the_student_come_near_the_scores(recipe, texts, tiny_bert, tmp_path):
    examples = task_of(recipe, tmp_path / "work").examples
    twinvec.train(recipe, tmp_path / "model")

    def error(model):
        vectors = twinvec.load(model).encode(examples.texts)
        vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
        cosines = (vectors[examples.indices["text1"]] * vectors[examples.indices["text2"]]).sum(axis=1)
        return float(np.square(cosines - examples.targets).mean())

    assert error(tmp_path / "model") < error(tiny_bert) / 2


def test_a_stopped_run_continues_to_the_same_bits(recipe, tmp_path):
    twinvec.train(recipe, tmp_path / "whole")
    seen = []

    def stop(event):
        seen.append(event)
        if len(seen) == 8:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        twinvec.train(recipe, tmp_path / "stopped", watch=stop)
    twinvec.train(recipe, tmp_path / "stopped")
    assert_same_bits(tmp_path / "whole", tmp_path / "stopped")


def test_another_miner_or_number_of_pairs_is_another_run(recipe, tmp_path):
    one = read_inputs(recipe).identity
    part = recipe.data[0]
    for other in (replace(part, mined=2), replace(part, miner="twinvec-mini")):
        assert read_inputs(replace(recipe, data=(other,))).identity != one


def test_the_recipe_file_keeps_the_miner(recipe, tmp_path):
    (tmp_path / "recipe.toml").write_text(recipe_as_toml(recipe))
    assert read_recipe(tmp_path / "recipe.toml") == recipe


def test_scores_outside_0_to_1_are_refused_for_cosine_and_fine_for_cosent(recipe, tmp_path):
    config = {"sentence_transformers": {"activation_fn": "torch.nn.modules.linear.Identity"}}
    teacher = write_tiny_classifier(tmp_path / "logits", seed=7, config=config)
    weights = load_file(teacher / "model.safetensors")
    save_file({**weights, "classifier.weight": 50 * weights["classifier.weight"]}, teacher / "model.safetensors")
    part = replace(recipe.data[0], teachers=(str(teacher),))
    with pytest.raises(InputError, match=r"not from 0 to 1.*cosent"):
        task_of(replace(recipe, data=(part,)), tmp_path / "work")
    assert task_of(replace(recipe, data=(replace(part, objective="cosent"),)), tmp_path / "work") is not None


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"mined": 0}, "mined must be a whole number of at least 1, got 0"),
        ({"miner": ""}, "miner must be the folder or name"),
        ({"teachers": ()}, "at least one teacher for texts"),
    ],
)
def test_wrong_settings_are_refused(recipe, change, message):
    with pytest.raises(InputError, match=message):
        replace(recipe, data=(replace(recipe.data[0], **change),))


def test_one_text_has_no_pairs(recipe, tmp_path):
    (tmp_path / "texts.txt").write_text("only one\n")
    with pytest.raises(InputError, match="only one text, so there are no pairs"):
        task_of(recipe, tmp_path / "work")
