"""The commands that train: what they accept, what they print, and how they refuse."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

import twinvec
from tiny import WORDS
from training import assert_same_bits, write_nli, write_pairs, write_sts
from twinvec.cli import main


@pytest.fixture
def files(tmp_path):
    return {
        "nli": str(write_nli(tmp_path / "nli.tsv")),
        "sts": str(write_sts(tmp_path / "sts.tsv")),
        "triplets": str(write_pairs(tmp_path / "pairs.tsv")),
        "ranking": str(tmp_path / "pairs.tsv"),
    }


@pytest.fixture
def with_torch():
    for needed in ("torch", "transformers", "accelerate", "matplotlib"):
        pytest.importorskip(needed, reason="training needs the extra 'train'")


def call(*arguments, exit_code=0):
    result = CliRunner().invoke(main, [str(argument) for argument in arguments])
    assert result.exit_code == exit_code, result.output + str(result.exception)
    return result


KINDS = ("nli", "sts", "triplets", "ranking")


@pytest.mark.usefixtures("with_torch")
@pytest.mark.parametrize("kind", KINDS)
def test_each_training_command_gives_a_model(kind, files, tiny_bert, tmp_path):
    result = call(
        *("train", kind, files[kind], "-m", tiny_bert, "-o", tmp_path / "model", "--max-steps", 3),
        *("--dev", files["sts"], "--test", files["sts"], "--matryoshka", 8),
    )
    assert "Spearman x 100 of cosine" in result.stdout
    assert "Before training:" in result.stderr and "The model is in" in result.stderr
    assert twinvec.load(tmp_path / "model").encode(["a cat"]).shape == (1, 32)


@pytest.mark.usefixtures("with_torch")
def test_without_a_model_training_starts_from_our_own(files, tmp_path):
    call("train", "sts", files["sts"], "-o", tmp_path / "model", "--max-steps", 1)
    assert twinvec.load(tmp_path / "model").width == twinvec.load().width
    assert 'start = "twinvec-mini"' in (tmp_path / "model/training/recipe.toml").read_text()


@pytest.mark.usefixtures("with_torch")
def test_a_recipe_is_recognized_by_its_extension_and_trains_like_the_options(files, tiny_bert, tmp_path, monkeypatch):
    call("train", "nli", files["nli"], "-m", tiny_bert, "-o", tmp_path / "one", "--max-steps", 4, "--seed", 3)
    monkeypatch.chdir(tmp_path)
    call("train", "nli", "nli.tsv", "-m", tiny_bert, "-o", "relative", "--max-steps", 4, "--seed", 3)
    monkeypatch.chdir("/")
    call("train", tmp_path / "relative/training/recipe.toml", "-o", tmp_path / "other")
    assert_same_bits(tmp_path / "one", tmp_path / "other")


@pytest.mark.usefixtures("with_torch")
def test_seeds_are_shown_with_mean_and_deviation(files, tiny_bert, tmp_path):
    result = call(
        *("train", "sts", files["sts"], "-m", tiny_bert, "-o", tmp_path / "model", "--max-steps", 2, "--seeds", 2),
        *("--dev", files["sts"]),
    )
    assert "mean of 2" in result.stdout and "deviation" in result.stdout
    assert json.loads((tmp_path / "model/training/seeds.json").read_text())["seeds"] == [0, 1]


@pytest.mark.usefixtures("with_torch")
def test_distilling_takes_texts_and_teachers(tiny_folders, tmp_path):
    (tmp_path / "texts.csv").write_text("id,sentence\n" + "\n".join(f"{i},{word}" for i, word in enumerate(WORDS)))
    call(
        *("distill", tmp_path / "texts.csv", "--columns", "text=sentence", "-m", tiny_folders["bert"]),
        *("--teacher", tiny_folders["mpnet"], "-o", tmp_path / "student", "--max-steps", 2),
    )
    assert twinvec.load(tmp_path / "student").width == 32
    result = call("distill", tmp_path / "texts.csv", "-o", tmp_path / "other", exit_code=2)
    assert "at least one --teacher" in result.stderr


BAD_DATA = {
    "an unknown label": ("nli", "label\tpremise\thypothesis\nmaybe\ta cat\ta dog\n", "maybe"),
    "a score out of range": ("sts", "score\ttext1\ttext2\n7.5\ta cat\ta dog\n", "7.5"),
    "a score that is no number": ("sts", "score\ttext1\ttext2\nhigh\ta cat\ta dog\n", "high"),
    "an empty file": ("nli", "", "bad.tsv"),
    "no rows": ("triplets", "anchor\tpositive\tnegative\n", "bad.tsv"),
    "a wrong column": ("ranking", "query\tpositive\na cat\ta dog\n", "anchor"),
}


@pytest.mark.usefixtures("with_torch")
@pytest.mark.parametrize("case", BAD_DATA)
def test_bad_data_is_refused_with_its_place_and_leaves_nothing(case, tiny_bert, tmp_path):
    kind, content, named = BAD_DATA[case]
    (tmp_path / "bad.tsv").write_text(content)
    result = call("train", kind, tmp_path / "bad.tsv", "-m", tiny_bert, "-o", tmp_path / "model", exit_code=1)
    assert result.stderr.startswith("Error: ") and named in result.stderr and "Traceback" not in result.stderr
    assert not (tmp_path / "model").exists()
    assert not (tmp_path / "model.run").exists()


BAD_RECIPES = {
    "[model]\nstart = 'x'\n": "at least one",
    "[model]\nstart = 'x'\n[[data]]\nfile = 'a.tsv'\nobjective = 'softmaxx'\n": "Did you mean 'softmax'",
    "[model]\nstart = 'x'\npoolingg = 'mean'\n[[data]]\nfile = 'a'\nobjective = 'cosine'\n": "Did you mean 'pooling'",
    "[model]\nstart = 'x'\n[training]\nepochs = 'many'\n[[data]]\nfile = 'a'\nobjective = 'cosine'\n": "epochs must",
    "[model]\nstart = 'x'\n[[data]]\nfile = 'a'\nobjective = 'cosine'\nkind = 'triplets'\n": "requires scored_pairs",
    "[model]\nstart = 'x'\n[[data]]\nobjective = 'cosine'\n": "requires a 'file'",
    "[model]\nstart = 'x'\n[[data]]\nfile = 'a'\nobjective = 'distillation'\n": "at least one teacher",
    "[model\n": "is not valid TOML",
    "[model]\nstart = 'x'\n[data]\nfile = 'a'\nobjective = 'cosine'\n": "write [[data]], not [data]",
    "model = 'x'\n[[data]]\nfile = 'a'\nobjective = 'cosine'\n": "not a table",
    "[model]\nstart = 'x'\n[[dev]]\nfile = 'a'\n[[data]]\nfile = 'a'\nobjective = 'cosine'\n": "not a table",
    "[model]\nstart = 'x'\n[[data]]\nfile = 'a'\nobjective = 'cosine'\ncolumns = 'x'\n": "not a table",
    "[model]\nstart = 'x'\n[[data]]\nfile = 'a'\nobjective = 'softmax'\nlabels = 'yes'\n": "must be a list",
    "[model]\nstart = 'x'\n[[data]]\nfile = 'a'\nobjective = 'triplet'\noptions = {margn = 1}\n": "'margin'",
}


@pytest.mark.usefixtures("with_torch")
@pytest.mark.parametrize("content", BAD_RECIPES)
def test_bad_recipes_are_refused(content, tmp_path):
    (tmp_path / "recipe.toml").write_text(content)
    result = call("train", tmp_path / "recipe.toml", "-o", tmp_path / "model", exit_code=1)
    assert BAD_RECIPES[content] in result.stderr


def test_a_name_that_is_neither_a_command_nor_a_recipe_is_a_usage_error():
    assert "No such command 'nil'" in call("train", "nil", exit_code=2).stderr


@pytest.mark.usefixtures("with_torch")
def test_options_that_would_be_forgotten_are_refused(files, tiny_bert, tmp_path):
    arguments = ("train", "nli", files["nli"], "-m", tiny_bert, "-o", tmp_path / "m", "--patience", 2)
    assert "require --dev FILE" in call(*arguments, exit_code=2).stderr
    (tmp_path / "recipe.toml").write_text("")
    arguments = ("distill", tmp_path / "recipe.toml", "-o", tmp_path / "m", "--epochs", 2)
    assert "--epochs belongs in the recipe" in call(*arguments, exit_code=2).stderr


@pytest.mark.usefixtures("with_torch")
@pytest.mark.parametrize("command", ["train", "distill"])
def test_a_recipe_cannot_allow_a_pickle(tmp_path, monkeypatch, command):
    from twinvec.training import Finished

    started = []

    def run_recipe(recipe, folder, _):
        started.append(recipe)
        yield Finished(folder, 0, (), 0.0)

    monkeypatch.setattr("twinvec.training.run.run_recipe", run_recipe)
    lines = "[[data]]\nfile = 'a.tsv'\nobjective = 'cosine'\n"
    recipe = tmp_path / "recipe.toml"
    arguments = (command, recipe, "-o", tmp_path / "m")
    recipe.write_text(f"[model]\nstart = 'x'\ntrust_pickle = true\n{lines}")
    assert "starts from weights stored as a pickle" in call(*arguments, exit_code=1).stderr
    assert started == []
    call(*arguments, "--trust-pickle")
    recipe.write_text(f"[model]\nstart = 'x'\n{lines}")
    call(*arguments, "--trust-pickle")
    call(*arguments)
    assert [each.model.trust_pickle for each in started] == [True, True, False]


@pytest.mark.usefixtures("with_torch")
def test_invalid_folders_are_refused_by_name(files, tiny_bert, tmp_path, monkeypatch):
    (tmp_path / "file").write_text("")
    arguments = ("train", "nli", files["nli"], "-m", tiny_bert, "-o")
    assert "file/model: Not a directory" in call(*arguments, tmp_path / "file/model", exit_code=1).stderr
    monkeypatch.chdir(tmp_path)
    assert "already exists" in call(*arguments, ".", exit_code=1).stderr


@pytest.mark.usefixtures("with_torch")
def test_more_tokens_than_the_model_reads_are_refused(files, tiny_folders, tmp_path):
    arguments = ("train", "nli", files["nli"], "-m", tiny_folders["roberta"], "-o", tmp_path / "model")
    assert "max_tokens is 500, but the limit of" in call(*arguments, "--max-tokens", 500, exit_code=1).stderr


@pytest.mark.usefixtures("with_torch")
def test_scores_that_are_all_equal_are_no_dev_data(files, tiny_bert, tmp_path):
    (tmp_path / "flat.tsv").write_text("score\ttext1\ttext2\n3\ta\tb\n3\tc\td\n")
    arguments = (
        "train",
        "nli",
        files["nli"],
        "-m",
        tiny_bert,
        "-o",
        tmp_path / "model",
        "--dev",
        tmp_path / "flat.tsv",
    )
    assert "All 2 scores in flat.tsv are equal" in call(*arguments, exit_code=1).stderr


def test_columns_are_pairs_of_role_and_column(files, tmp_path):
    result = call(*("train", "nli", files["nli"], "-m", "x", "-o", tmp_path / "m", "--columns", "premise"), exit_code=2)
    assert "ROLE=COLUMN" in result.stderr


def test_help_does_not_load_torch():
    code = (
        "import sys\nfrom twinvec.cli import main\n"
        "try: main(['train', 'nli', '--help'])\nexcept SystemExit: pass\n"
        "assert not {'torch', 'transformers', 'numpy'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True, stdout=subprocess.DEVNULL)


def test_without_the_extra_training_says_what_to_install(files, tiny_bert, tmp_path):
    code = "import sys\nsys.modules['torch'] = None\nfrom twinvec.cli import main\nmain(sys.argv[1:])"
    arguments = ["train", "nli", files["nli"], "-m", str(tiny_bert), "-o", str(tmp_path / "model")]
    result = subprocess.run([sys.executable, "-c", code, *arguments], capture_output=True, text=True, check=False)
    assert result.returncode == 1
    assert "Error: Training needs the package 'torch'. Install it with: pip install 'twinvec[train]'" in result.stderr


@pytest.mark.usefixtures("with_torch")
@pytest.mark.parametrize("sent", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupt_saves_and_the_same_command_continues(sent, files, tiny_bert, tmp_path):
    arguments = ["train", "nli", files["nli"], "-m", str(tiny_bert), "--epochs", "60", "--batch-size", "4"]
    command = [sys.executable, "-m", "twinvec.cli", *arguments, "-o", str(tmp_path / "model")]
    log = tmp_path / "model.run/log.jsonl"
    with subprocess.Popen(
        command, stderr=subprocess.PIPE, text=True, env={**os.environ, "OMP_NUM_THREADS": "1"}
    ) as run:
        wait_for(lambda: log.is_file() and log.read_text().count("\n") > 5, run)
        run.send_signal(sent)
        _, errors = run.communicate(timeout=60)
    assert run.returncode == 130
    assert "Stopping after this step" in errors and "Traceback" not in errors
    assert (tmp_path / "model.run/checkpoint.safetensors").is_file() and not (tmp_path / "model").exists()
    result = call(*arguments, "-o", tmp_path / "model")
    assert "Resuming after step" in result.stderr


def wait_for(condition, process: subprocess.Popen, seconds: float = 60) -> None:
    import time

    end = time.monotonic() + seconds
    while not condition():
        assert process.poll() is None, process.stderr.read()
        assert time.monotonic() < end
        time.sleep(0.01)


def test_the_recipes_in_the_docs_are_valid(tmp_path):
    pytest.importorskip("torch", reason="training needs the extra 'train'")
    import re

    from twinvec.training.recipe_file import read_recipe

    page = (Path(__file__).parents[2] / "docs/train.md").read_text()
    recipes = []
    for block in re.findall(r"```toml\n(.*?)```", page, re.DOTALL):
        (tmp_path / "recipe.toml").write_text(block)
        recipes.append(read_recipe(tmp_path / "recipe.toml"))
    usual, small, taught = recipes
    assert [part.objective for part in usual.data] == ["softmax", "ranking"] and usual.dev.patience == 3
    assert small.model.layers == (0, 2, 5) and small.model.stored == "int8" and len(small.data[0].teachers) == 2
    assert taught.data[0].is_mined and taught.data[0].mined == 4 and not taught.data[1].is_mined
