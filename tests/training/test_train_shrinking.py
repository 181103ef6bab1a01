"""Smaller students: what is kept of a model, what is refused, and how the result lies on the disk."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import twinvec
from tiny import INNER, LAYERS, WORDS, write_tiny_model
from training import make_recipe, run, with_settings
from twinvec.data.roles import DataSource
from twinvec.engine.inspect import inspect_model
from twinvec.engine.weights import is_packed
from twinvec.errors import InputError, UnknownNameError
from twinvec.model.folder import read_model_folder

torch = pytest.importorskip("torch", reason="training needs the extra 'train'")
transformers = pytest.importorskip("transformers", reason="training needs the extra 'train'")
for needed in ("accelerate", "matplotlib"):
    pytest.importorskip(needed, reason="training needs the extra 'train'")

from twinvec.training.networks.start import shrink_model  # noqa: E402
from twinvec.training.recipe import DataPart, ModelPart, Recipe, TrainSettings  # noqa: E402
from twinvec.training.recipe_file import read_recipe, recipe_as_toml  # noqa: E402

TEXTS = [" ".join(WORDS[i : i + 1 + i % 7]) for i in range(12)]


def shrunk(folder, target, **kept):
    shrink_model(read_model_folder(folder), target, trust_pickle=False, **kept)
    return twinvec.load(target)


@pytest.mark.parametrize("kept", [{}, {"layers": range(LAYERS)}, {"n_inner": INNER}])
def test_a_model_with_all_its_layers_and_neurons_is_the_same(tiny_bert, encoder, tmp_path, kept):
    np.testing.assert_array_equal(shrunk(tiny_bert, tmp_path / "same", **kept).encode(TEXTS), encoder.encode(TEXTS))


def test_the_first_layers_alone_give_the_states_they_gave_before(tiny_bert, encoder, tmp_path):
    small = shrunk(tiny_bert, tmp_path / "small", layers=[0])
    assert inspect_model(tmp_path / "small").n_layers == 1
    for ours, whole in zip(small.encode_layers(TEXTS), encoder.encode_layers(TEXTS), strict=True):
        np.testing.assert_allclose(ours, whole[:2], atol=1e-6)


def test_layers_are_kept_in_the_order_in_which_they_are_named(tiny_bert, encoder, tmp_path):
    last, first = LAYERS - 1, 0
    turned = shrunk(tiny_bert, tmp_path / "turned", layers=[last, first])
    back = shrunk(tmp_path / "turned", tmp_path / "back", layers=[1])
    only_first = shrunk(tiny_bert, tmp_path / "first", layers=[first])
    np.testing.assert_array_equal(back.encode(TEXTS), only_first.encode(TEXTS))
    assert np.abs(turned.encode(TEXTS) - encoder.encode(TEXTS)).max() > 1e-3


def test_unused_neurons_are_pruned_first(tmp_path):
    from safetensors.numpy import load_file, save_file

    folder = write_tiny_model(tmp_path / "model")
    weights = load_file(folder / "model.safetensors")
    for name, values in weights.items():
        if name.endswith("output.dense.weight") and "attention" not in name:
            values[:, ::2] = 0
    save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})
    small = shrunk(folder, tmp_path / "small", n_inner=INNER // 2)
    assert inspect_model(tmp_path / "small").n_parameters < inspect_model(folder).n_parameters
    np.testing.assert_allclose(small.encode(TEXTS), twinvec.load(folder).encode(TEXTS), atol=1e-6)


def test_the_pruned_shipped_model_is_float32(tmp_path):
    small = shrunk(twinvec.load().folder.path, tmp_path / "small", layers=[0], n_inner=64)
    assert inspect_model(tmp_path / "small").stored == "float32"
    assert np.allclose(np.linalg.norm(small.encode(["a cat", "the stock market"]), axis=1), 1, atol=1e-5)


@pytest.mark.parametrize("layers", [[LAYERS], [-1], [0, 0]])
def test_nonexistent_layers_are_refused(tiny_bert, tmp_path, layers):
    with pytest.raises(InputError, match=f"layers must be different numbers from 0 to {LAYERS - 1} for this model"):
        shrunk(tiny_bert, tmp_path / "small", layers=layers)
    assert list(tmp_path.iterdir()) == []


def test_more_neurons_than_there_are_are_refused(tiny_bert, tmp_path):
    with pytest.raises(InputError, match=f"feed_forward is {INNER + 1}, but this model has only {INNER}"):
        shrunk(tiny_bert, tmp_path / "small", n_inner=INNER + 1)


def test_special_tokens_that_are_not_kept_are_put_around_no_text(tiny_bert, tmp_path):
    small = shrunk(tiny_bert, tmp_path / "small", special_tokens=["[CLS]"])
    assert (small.tokenizer.n_special, small.tokenizer.tokens(small.tokenizer.prefix)) == (1, ["[CLS]"])
    ours = [small.tokenizer.add_special_tokens(ids) for ids in small.tokenizer.ids([*TEXTS, ""])]
    theirs = transformers.AutoTokenizer.from_pretrained(tmp_path / "small")([*TEXTS, ""])["input_ids"]
    assert ours == theirs
    assert np.isfinite(small.encode("")).all()


def test_special_tokens_that_there_are_not_are_refused(tiny_bert, tmp_path):
    with pytest.raises(UnknownNameError, match=r"special token '\[END\]'.*\[CLS\].*\[SEP\]"):
        shrunk(tiny_bert, tmp_path / "small", special_tokens=["[END]"])
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("family", ["roberta", "distilbert", "mpnet", "electra", "albert", "modernbert"])
def test_models_that_are_not_bert_are_refused(tiny_folders, tmp_path, family):
    with pytest.raises(InputError, match=f"has the type '{family}'; only BERT models can be pruned"):
        shrunk(tiny_folders[family], tmp_path / "small", layers=[0])


WRONG = {
    "layers = 2": (InputError, "layers must be a list"),
    "layers = ['first']": (InputError, "layers must be whole numbers"),
    "layers = [true]": (InputError, "layers must be whole numbers"),
    "special_tokens = '[CLS]'": (InputError, "special_tokens must be a list"),
    "feed_forward = 0": (InputError, "feed_forward"),
    "feed_forward = 'half'": (InputError, "feed_forward"),
    "stored = 'int4'": (UnknownNameError, "Unknown stored 'int4'"),
}


@pytest.mark.parametrize("line", WRONG)
def test_wrong_keys_of_the_model_are_refused(tmp_path, line):
    kind, message = WRONG[line]
    content = f"[model]\nstart = 'x'\n{line}\n[[data]]\nfile = 'a.tsv'\nobjective = 'cosine'\n"
    (tmp_path / "recipe.toml").write_text(content)
    with pytest.raises(kind, match=message):
        read_recipe(tmp_path / "recipe.toml")


def test_a_wrong_precision_of_teachers_is_refused():
    with pytest.raises(UnknownNameError, match="'int4'"):
        DataPart(DataSource("a", "texts"), "distillation", teachers=("x",), teacher_precision="int4")


def small_recipe(folder, model, teacher):
    (folder / "texts.txt").write_text("\n".join(TEXTS) + "\n")
    part = DataPart(
        DataSource(str(folder / "texts.txt"), "texts"),
        "distillation",
        teachers=(str(teacher),),
        teacher_precision="int8",
    )
    start = ModelPart(str(model), layers=(0,), feed_forward=INNER // 2, special_tokens=("[CLS]",), stored="int8")
    return Recipe(start, (part,), TrainSettings(max_steps=2))


def test_a_recipe_with_all_these_keys_reads_back_the_same(tiny_bert, tmp_path):
    recipe = small_recipe(tmp_path, tiny_bert, tiny_bert)
    (tmp_path / "recipe.toml").write_text(recipe_as_toml(recipe))
    assert read_recipe(tmp_path / "recipe.toml") == recipe


def test_a_small_student_is_taught_and_stored_as_int8(tiny_folders, tmp_path):
    run(small_recipe(tmp_path, tiny_folders["bert"], tiny_folders["mpnet"]), tmp_path / "student")
    found = inspect_model(tmp_path / "student")
    assert (found.n_layers, found.stored) == (1, "int8")
    assert is_packed(tmp_path / "student")
    assert twinvec.load(tmp_path / "student").encode(TEXTS).shape == (len(TEXTS), 32)
    card = (tmp_path / "student/README.md").read_text()
    assert (
        'stored = "int8"' in card
        and "Other libraries read them incorrectly" in card
        and "sentence-transformers" not in card
    )


def test_a_model_stored_as_int8_can_be_trained(tiny_bert, tmp_path):
    recipe = with_settings(make_recipe(tmp_path, tiny_bert), epochs=1)
    run(replace(recipe, model=replace(recipe.model, stored="int8")), tmp_path / "one")
    run(replace(recipe, model=ModelPart(str(tmp_path / "one"))), tmp_path / "two")
    assert [inspect_model(tmp_path / name).stored for name in ("one", "two")] == ["int8", "float32"]
