"""The functions behind ``twinvec train`` and ``twinvec data``, called as a user calls them."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import FrozenInstanceError

import pytest

import twinvec
from training import write_pairs, write_sts
from twinvec.choices import (
    DEFAULT_SCORE_RANGE,
    DISTANCES,
    EXAMPLE_KINDS,
    FEATURES,
    NETWORK_KINDS,
    PAIR_SCORE_OBJECTIVES,
    SCORE_OBJECTIVES,
    VECTOR_LOSSES,
)
from twinvec.data.check import check_examples
from twinvec.data.download import get_data_sets
from twinvec.data.examples import read_examples
from twinvec.data.roles import DataSource, guess_source, parse_roles
from twinvec.errors import InputError, UnknownNameError
from twinvec.search import Mined, mine_negatives


@pytest.fixture
def recipe(tmp_path, tiny_bert):
    """A recipe of few steps in a file, with dev and test data."""
    pytest.importorskip("torch", reason="training needs the extra 'train'")
    pytest.importorskip("transformers", reason="training needs the extra 'train'")
    write_sts(tmp_path / "sts.tsv")
    path = tmp_path / "recipe.toml"
    path.write_text(
        f"[model]\nstart = '{tiny_bert}'\n[training]\nmax_steps = 3\n"
        "[[data]]\nfile = 'sts.tsv'\nobjective = 'cosine'\n[dev]\nfile = 'sts.tsv'\n[[test]]\nfile = 'sts.tsv'\n"
    )
    return path


def test_a_recipe_becomes_a_model_and_every_event_is_seen(recipe, tmp_path):
    seen = []
    result = twinvec.train(str(recipe), str(tmp_path / "model"), watch=seen.append)
    names = [type(event).__name__ for event in seen]
    assert (names[0], names[-1], names.count("StepReport")) == ("Started", "Finished", 3)
    assert result.folder == tmp_path / "model" and twinvec.load(result.folder).width == 32
    assert (result.dev.data, result.dev.protocol) == ("sts.tsv", "Spearman x 100 of cosine")
    assert result.dev.value == max(event.score for event in seen if type(event).__name__ == "DevReport")
    assert [score.value for score in result.test] == pytest.approx([result.dev.value], abs=1e-3)
    assert result.seeds is None
    with pytest.raises(FrozenInstanceError):
        result.folder = tmp_path


def test_the_result_of_several_seeds_is_that_of_the_best(recipe, tmp_path):
    result = twinvec.train(recipe, tmp_path / "model", seeds=2)
    dev = result.seeds.spreads[0]
    assert result.seeds.seeds == (0, 1)
    assert result.dev.value == dev.best == dev.values[result.seeds.best_seed]
    assert len(result.test) == 1
    with pytest.raises(InputError, match="seeds must be a whole number of at least 1, got 0"):
        twinvec.train(recipe, tmp_path / "other", seeds=0)


def test_an_error_in_watch_saves_the_run_which_then_goes_on(recipe, tmp_path):
    class StopHere(Exception):
        pass

    def stop(event):
        if getattr(event, "step", 0) == 2 and hasattr(event, "loss"):
            raise StopHere

    with pytest.raises(StopHere):
        twinvec.train(recipe, tmp_path / "model", watch=stop)
    assert (tmp_path / "model.run/checkpoint.safetensors").is_file()
    seen = []
    twinvec.train(recipe, tmp_path / "model", watch=seen.append)
    assert seen[0].step == 2


def test_a_recipe_may_be_an_object_without_dev_data(recipe, tmp_path, tiny_bert):
    from twinvec.training import DataPart, DataSource, ModelPart, Recipe, TrainSettings

    part = DataPart(DataSource(recipe.with_name("sts.tsv"), "scored_pairs"), "cosine")
    result = twinvec.train(Recipe(ModelPart(str(tiny_bert)), (part,), TrainSettings(max_steps=1)), tmp_path / "model")
    assert (result.dev, result.test) == (None, ())


def test_a_pickle_is_read_only_if_the_caller_says_so(recipe, tmp_path):
    recipe.write_text(recipe.read_text().replace("[training]", "trust_pickle = true\n[training]"))
    with pytest.raises(InputError, match="stored as a pickle"):
        twinvec.train(recipe, tmp_path / "model")


def test_without_torch_train_can_be_named_and_says_what_to_install():
    code = (
        "import sys\nsys.modules['torch'] = None\nfrom twinvec import *\n"
        "try: train('recipe.toml', 'model')\nexcept TwinvecError as error: print(error)"
    )
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "Training needs the package 'torch'. Install it with: pip install 'twinvec[train]'" in result.stdout


def test_every_word_of_the_options_is_known_to_the_library():
    pytest.importorskip("torch", reason="training needs the extra 'train'")
    from twinvec.training import OBJECTIVES
    from twinvec.training.dev_score import DEV_SCORES
    from twinvec.training.objectives import NETWORK_OBJECTIVES, PAIR_OBJECTIVES, common, pairs

    assert set(common.DISTANCE_FUNCTIONS) == set(DISTANCES)
    assert set(pairs.FEATURE_FUNCTIONS) == set(FEATURES)
    assert set(pairs.LOSS_FUNCTIONS) == set(VECTOR_LOSSES)
    assert set(SCORE_OBJECTIVES) == {name for name, kind in OBJECTIVES.items() if kind.examples == "scored_pairs"}
    pair_scores = {name for name, kind in PAIR_OBJECTIVES.items() if kind.examples == "scored_pairs"}
    assert set(PAIR_SCORE_OBJECTIVES) == pair_scores
    assert set(NETWORK_OBJECTIVES) == set(NETWORK_KINDS)
    kinds = {name for table in NETWORK_OBJECTIVES.values() for kind in table.values() for name in kind.kinds}
    assert kinds == set(EXAMPLE_KINDS) and set(DEV_SCORES) < set(EXAMPLE_KINDS)


def test_a_file_of_examples_is_checked_in_one_call(tmp_path, tiny_bert):
    path = write_sts(tmp_path / "sts.tsv")
    report = check_examples(path, against=[path], model=str(tiny_bert))
    assert (report.kind, report.is_usable, report.scores.high) == ("scored_pairs", True, 5)
    assert report.overlaps[0].n_rows == report.n_rows and report.tokens.longest > 2
    assert not check_examples(path, score_range=(0, 1)).is_usable
    mapped = check_examples(path, "texts", columns=parse_roles(["text=text1"]))
    assert (mapped.kind, mapped.columns) == ("texts", {"text": ("text1",)})


def test_one_default_range_of_scores(tmp_path):
    path = write_sts(tmp_path / "sts.tsv")
    assert DataSource(path, "scored_pairs").score_range == DEFAULT_SCORE_RANGE == (0, 5)
    assert check_examples(path).scores.high == 5
    assert guess_source(path, {}, score_range=(0, 9)).score_range == (0, 9)
    pairs = write_pairs(tmp_path / "pairs.tsv")
    assert guess_source(pairs, {}, score_range=(0, 9)).kind == "triplets"  # which has no scores


@pytest.mark.parametrize("pair", ["premise", "=a", "premise=", " = "])
def test_options_that_are_not_role_and_column_are_refused(pair):
    with pytest.raises(InputError, match="does not have the form ROLE=COLUMN"):
        parse_roles([pair])


def test_data_sets_are_named_before_anything_is_fetched(tmp_path):
    said = []
    with pytest.raises(UnknownNameError, match="Did you mean 'snli'"):
        get_data_sets(["cranfield", "snlii"], tmp_path, tell=said.append)
    assert said == [] and list(tmp_path.iterdir()) == []


def test_hard_negatives_of_a_file_are_written_as_triplets(tmp_path):
    (tmp_path / "pairs.tsv").write_text("question\tpositive\na cat\ta kitten\na car\tan automobile\n")
    (tmp_path / "pool.txt").write_text("a dog\na bus\n")
    source = DataSource(tmp_path / "pairs.tsv", "ranked", {"anchor": "question"})
    found = mine_negatives(source, tmp_path / "triplets.tsv", "twinvec-static", pool=tmp_path / "pool.txt")
    triplets = read_examples(DataSource(tmp_path / "triplets.tsv", "triplets"))
    assert found == Mined(len(triplets), 2, 2)
    with pytest.raises(InputError, match="exists"):
        mine_negatives(source, tmp_path / "triplets.tsv", "twinvec-static")
