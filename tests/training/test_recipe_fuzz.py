"""Recipes with things changed in them are read as they stand, or refused with an error of ours; none is trained."""

import json
import math
import random

import pytest

from mutated_content import DEEP, damaged, mutated
from twinvec.errors import InputError, TwinvecError

pytest.importorskip("torch")

from twinvec.training.recipe_file import read_recipe, recipe_as_toml

N_RECIPES = 400
RECIPES = [
    {
        "model": {"start": "twinvec-mini", "pooling": "mean", "max_tokens": 64, "layers": [0, 2], "stored": "int8"},
        "training": {"epochs": 2, "batch_size": 8, "learning_rate": 2e-5, "warmup": 0.1, "precision": "bfloat16"},
        "data": [
            {
                "file": "nli.tsv",
                "objective": "softmax",
                "options": {"features": ["u", "v"]},
                "columns": {"premise": "a", "hypothesis": "b"},
                "labels": ["yes", "no"],
                "ignore_labels": ["-"],
            },
            {"file": "t.jsonl", "objective": "ranking", "options": {"scale": 10.0}, "matryoshka": [64, 32], "share": 2},
            {"file": "x.txt", "objective": "distillation", "teachers": ["one", "two"], "teacher_precision": "int8"},
        ],
        "dev": {"file": "sts.tsv", "score_range": [0, 5], "every": 10, "patience": 2, "keep": "best"},
        "test": [{"file": "test.csv", "format": "csv", "score_range": [0.0, 5.0]}],
    },
    {
        "model": {"start": "static", "static": 64, "trust_pickle": False},
        "training": {"seed": 3, "mixing": "proportional", "max_steps": 5, "cached_texts": 4, "dropout": 0.1},
        "data": [{"file": "t.tsv", "objective": "triplet", "options": {"margin": 0.5, "distance": "cosine"}}],
    },
    {
        "model": {"network": "dan", "start": "glove", "hidden": 64, "buckets": 100, "train_words": True},
        "data": [{"file": "t.tsv", "objective": "ranking"}],
    },
]


def as_toml(value):
    """A value as TOML writes it in one line; null, which TOML does not have, stands as it does in JSON."""
    if isinstance(value, dict):
        return "{" + ", ".join(f"{json.dumps(str(key))} = {as_toml(each)}" for key, each in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(as_toml, value)) + "]"
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    return json.dumps(value)


def recipe_bytes(content):
    if not isinstance(content, dict):
        return as_toml(content).encode()
    return "".join(f"{json.dumps(str(key))} = {as_toml(each)}\n" for key, each in content.items()).encode()


@pytest.mark.parametrize("recipe", RECIPES)
def test_the_recipes_that_are_changed_here_are_good(tmp_path, recipe):
    (tmp_path / "recipe.toml").write_bytes(recipe_bytes(recipe))
    assert len(read_recipe(tmp_path / "recipe.toml").data) == len(recipe["data"])


def test_a_corrupted_recipe_is_read_literally_or_refused(tmp_path):
    rng = random.Random(21)
    file, again = tmp_path / "recipe.toml", tmp_path / "again.toml"
    n_good = 0
    for i in range(N_RECIPES):
        content = recipe_bytes(
            mutated(RECIPES[i % len(RECIPES)], rng) if rng.random() < 0.85 else RECIPES[i % len(RECIPES)]
        )
        file.write_bytes(damaged(content, rng) if rng.random() < 0.25 else content)
        try:
            recipe = read_recipe(file)
        except TwinvecError as error:
            assert len(str(error)) < 1000
            continue
        n_good += 1
        again.write_text(recipe_as_toml(recipe), encoding="utf-8")
        assert read_recipe(again) == recipe
    assert N_RECIPES / 20 < n_good < N_RECIPES / 2


MODEL = '[model]\nstart = "twinvec-mini"\n'
DATA = '[[data]]\nfile = "a.tsv"\nobjective = "cosine"\n'
BAD_RECIPES = {
    "deep": ("a = " + "[" * DEEP, "not valid TOML"),
    "NUL": (MODEL + DATA + "\0", "not valid TOML"),
    "not UTF-8": ((MODEL + DATA).encode() + b"# \xff", "not valid TOML"),
    "NUL in a name": (MODEL.replace("twinvec-mini", "a\\u0000b") + DATA, "start"),
    "a long name": (MODEL.replace("twinvec-mini", "x" * 5000) + DATA, None),
    "a start that is a list": ("[model]\nstart = []\n" + DATA, "start"),
    "a start that is empty": ('[model]\nstart = ""\n' + DATA, "start"),
    "trust as a text": (MODEL + 'trust_pickle = "no"\n' + DATA, "trust_pickle must be true or false"),
    "a file that is a number": (MODEL + DATA.replace('"a.tsv"', "3"), "file"),
    "an objective that is a list": (MODEL + DATA.replace('"cosine"', "[]"), "objective"),
    "a layer that is true": (MODEL + "layers = [true]\n" + DATA, "layers"),
    "max_tokens that is true": (MODEL + "max_tokens = true\n" + DATA, "max_tokens"),
    "a seed that is true": (MODEL + DATA + "[training]\nseed = true\n", "seed"),
    "a seed beyond 64 bits": (MODEL + DATA + "[training]\nseed = 99999999999999999999999\n", "seed"),
    "a share that is nan": (MODEL + DATA + "share = nan\n", "share"),
    "a share that is true": (MODEL + DATA + "share = true\n", "share"),
    "a share of many digits": (MODEL + DATA + f"share = 1{'0' * 400}\n", "share"),
    "a rate that is nan": (MODEL + DATA + "[training]\nlearning_rate = nan\n", "learning_rate"),
    "a table for a name": (MODEL + DATA + "[training]\nprecision = {}\n", "precision"),
    "matryoshka of texts": (MODEL + DATA + 'matryoshka = ["a"]\n', "matryoshka"),
    "options that are a list": (MODEL + DATA + "options = []\n", "options must be a table"),
    "a format that is a number": (MODEL + DATA + "format = 3\n", "Unknown format 3"),
    "special tokens of numbers": (MODEL + "special_tokens = [1]\n" + DATA, "special_tokens must be strings"),
    "labels of tables": (MODEL + DATA + "labels = [{}]\n", "labels"),
    "a score range of texts": (MODEL + DATA + 'score_range = ["0", "5"]\n', "score_range"),
    "many digits": (MODEL + DATA + f"[training]\nepochs = {'9' * 5000}\n", "not valid TOML"),
}


@pytest.mark.parametrize("case", BAD_RECIPES)
def test_a_bad_recipe_is_refused_in_words(tmp_path, case):
    content, message = BAD_RECIPES[case]
    (tmp_path / "recipe.toml").write_bytes(content if isinstance(content, bytes) else content.encode())
    if message is None:
        assert read_recipe(tmp_path / "recipe.toml").model.start == "x" * 5000
        return
    with pytest.raises(TwinvecError, match=message):
        read_recipe(tmp_path / "recipe.toml")


@pytest.mark.parametrize("name", ["x" * 300 + ".toml", "a\0b.toml", "none.toml", "."])
def test_a_recipe_that_cannot_be_read_is_named(tmp_path, name):
    with pytest.raises(InputError, match="Cannot read the recipe"):
        read_recipe(tmp_path / name)
