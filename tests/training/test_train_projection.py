"""Teachers on their principal axes, and a projection that starts with the best map to them."""

from __future__ import annotations

import random
from dataclasses import replace

import numpy as np
import pytest

import twinvec
from tiny import write_tiny_model
from training import assert_same_bits, sentence
from twinvec.data.roles import DataSource
from twinvec.errors import InputError

for needed in ("torch", "transformers", "matplotlib"):
    pytest.importorskip(needed, reason="training needs the extra 'train'")

from twinvec.training import DataPart, ModelPart, Recipe, TrainSettings, run_recipe  # noqa: E402
from twinvec.training.teachers import PrincipalVectors, principal_axes, similar_groups  # noqa: E402
from twinvec.vectors import unit_rows  # noqa: E402

TEXTS = [sentence(random.Random(i)) for i in range(120)]


@pytest.fixture
def teacher(tmp_path):
    return write_tiny_model(tmp_path / "teacher", seed=5)


@pytest.fixture
def recipe(tmp_path, tiny_bert, teacher):
    (tmp_path / "texts.txt").write_text("\n".join(TEXTS) + "\n")
    part = DataPart(
        DataSource(str(tmp_path / "texts.txt"), "texts"),
        "distillation",
        {"loss": "cosine", "similarity_weight": 5.0},
        teachers=(str(teacher),),
        teacher_space="principal",
    )
    settings = TrainSettings(epochs=3, learning_rate=1e-3)
    return Recipe(ModelPart(str(tiny_bert), projection=True), (part,), settings)


def targets(teacher):
    vectors = twinvec.load(teacher).encode(TEXTS)
    return PrincipalVectors(vectors, principal_axes(vectors))[np.arange(len(TEXTS))]


def run(recipe, target, *, stop_after=None):
    for event in run_recipe(recipe, target):
        if stop_after is not None and getattr(event, "step", 0) == stop_after:
            break


def test_principal_axes_are_those_of_a_singular_value_decomposition():
    vectors = np.random.default_rng(0).normal(size=(50, 6)).astype(np.float32)
    vectors[:, 0] += 3
    rows = unit_rows(vectors)
    found = principal_axes(vectors)
    _, _, axes = np.linalg.svd(rows - rows.mean(axis=0))
    np.testing.assert_allclose(found.mean, rows.mean(axis=0), atol=1e-6)
    np.testing.assert_allclose(np.abs(axes @ found.axes), np.eye(6), atol=1e-4)


def test_turned_vectors_have_the_cosines_of_the_centered_ones_and_matter_in_order(teacher):
    rows = unit_rows(twinvec.load(teacher).encode(TEXTS))
    centered = unit_rows(rows - rows.mean(axis=0))
    found = targets(teacher)
    np.testing.assert_allclose(found @ found.T, centered @ centered.T, atol=1e-5)
    spread = ((rows - rows.mean(axis=0)) @ principal_axes(rows).axes).var(axis=0)
    assert (np.diff(spread) < 1e-7).all()


def test_a_projection_starts_with_the_best_linear_map_and_is_saved_as_a_dense_module(
    recipe, tmp_path, tiny_bert, teacher
):
    run(replace(recipe, training=TrainSettings(max_steps=1, learning_rate=1e-12)), tmp_path / "model")
    own = twinvec.load(tiny_bert).encode(TEXTS)
    wanted = unit_rows(own @ np.linalg.lstsq(unit_rows(own), targets(teacher), rcond=None)[0])
    found = twinvec.load(tmp_path / "model")
    assert any("Dense" in str(path) for path in (tmp_path / "model").iterdir())
    np.testing.assert_allclose(found.encode(TEXTS), wanted, atol=1e-4)


def test_training_with_a_projection_resumes_to_the_same_bits(recipe, tmp_path):
    run(recipe, tmp_path / "whole")
    run(recipe, tmp_path / "parts", stop_after=4)
    assert not (tmp_path / "parts").exists()
    run(recipe, tmp_path / "parts")
    assert_same_bits(tmp_path / "whole", tmp_path / "parts")


def test_similar_texts_share_a_batch(recipe, tmp_path, teacher):
    part = replace(recipe.data[0], similar=4)
    run(replace(recipe, data=(part,)), tmp_path / "model")
    vectors = targets(teacher)
    groups = similar_groups(vectors, 4)
    assert np.bincount(groups).max() <= 4
    cosines = vectors @ vectors.T
    same = (groups[:, None] == groups[None, :]) & ~np.eye(len(groups), dtype=bool)
    assert cosines[same].mean() > cosines[~same].mean() + 0.1


def test_settings_that_do_not_fit_are_refused(recipe, tiny_bert):
    scored = replace(recipe.data[0].source, kind="scored_pairs")
    for settings in ({"teacher_space": "principal"}, {"similar": 4}):
        with pytest.raises(InputError, match="has no teacher_space and no similar"):
            replace(recipe, data=(DataPart(scored, "cosine", **settings),))
    with pytest.raises(InputError, match="first data set has the objective 'cosine'"):
        replace(recipe, data=(DataPart(scored, "cosine"),))
    with pytest.raises(InputError, match="A static model has no"):
        ModelPart(str(tiny_bert), static=8, projection=True)


def test_a_first_teacher_of_another_width_is_refused(recipe, tmp_path):
    wide = write_tiny_model(tmp_path / "wide", pooling={"pooling_mode": ["mean", "max"]})
    with pytest.raises(InputError, match="Put a teacher of the same width first"):
        run(replace(recipe, data=(replace(recipe.data[0], teachers=(str(wide),)),)), tmp_path / "model")
