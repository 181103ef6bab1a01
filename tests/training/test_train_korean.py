"""The recipes for a Korean model, from a tiny random stand-in for klue/roberta-small and a few pairs."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest

import twinvec
from tiny_korean import EXAMPLES, write_korean_backbone, write_korean_data

RECIPES = Path(__file__).parents[2] / "recipes"
STEPS = ("korean-nli", "korean-sts")
TEXTS = ["비밀번호를 바꾸고 싶어요.", "환불은 언제 되나요?", "택배가 아직 안 왔어요."]


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """The folder of both recipes after they have run as they are, and what each returned."""
    pytest.importorskip("torch", reason="training needs the extra 'train'")
    folder = tmp_path_factory.mktemp("recipes")
    write_korean_backbone(folder / "klue/roberta-small")
    write_korean_data(folder / "data")
    results = {}
    for name in STEPS:
        shutil.copy(RECIPES / f"{name}.toml", folder)
        results[name] = twinvec.train(folder / f"{name}.toml", folder / name)
    return folder, results


def test_the_stand_in_reads_hangul(trained):
    backbone = twinvec.load(trained[0] / "klue/roberta-small")
    assert not np.any(backbone.coverage(TEXTS).is_unknown)
    assert min(backbone.count_tokens(TEXTS)) > 4


@pytest.mark.parametrize("name", STEPS)
def test_a_recipe_trains_a_sentence_model_and_scores_it_on_korsts(trained, name):
    folder, results = trained
    encoder = twinvec.load(folder / name, unknown="error")
    assert encoder.encode(TEXTS).shape == (3, encoder.width)
    assert encoder.max_tokens == 128
    assert results[name].dev is not None and len(results[name].test) == (name == "korean-sts")


def test_the_second_recipe_starts_from_the_first_and_changes_it(trained):
    folder, _ = trained
    assert str(folder / "korean-nli") in (folder / "korean-sts/training/recipe.toml").read_text()
    start, backbone, end = (
        twinvec.load(folder / name).encode(TEXTS) for name in ("korean-nli", "klue/roberta-small", "korean-sts")
    )
    assert not np.allclose(start, backbone, atol=1e-6) and not np.allclose(start, end, atol=1e-6)


def test_the_example_pairs_are_fit_for_training():
    from twinvec.data.check import check_examples

    reports = [check_examples(EXAMPLES / name) for name in ("nli.tsv", "sts-train.tsv", "sts-dev.tsv")]
    assert [report.kind for report in reports] == ["labelled_pairs", "scored_pairs", "scored_pairs"]
    assert all(report.is_usable and not report.n_contradictions for report in reports)
