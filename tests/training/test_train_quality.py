"""Training makes real sentence vectors better, on real data from a real backbone."""

from __future__ import annotations

import gzip
from itertools import islice

import pytest

import twinvec

pytest.importorskip("torch", reason="training needs the extra 'train'")

from training import sts_source
from twinvec.data.roles import DataSource
from twinvec.training import DataPart, DevPart, Finished, ModelPart, Recipe, Started, TrainSettings, run_recipe


@pytest.mark.weights
@pytest.mark.data
def test_a_few_thousand_pairs_of_snli_lift_a_backbone(models, data, tmp_path):
    if not (models / "tinybert").is_dir():
        pytest.skip("TWINVEC_MODELS holds no tinybert")
    with gzip.open(data / "nli/snli-train-100k.tsv.gz", "rt", encoding="utf-8") as lines:
        (tmp_path / "snli.tsv").write_text("".join(islice(lines, 4001)), encoding="utf-8")
    recipe = Recipe(
        ModelPart(str(models / "tinybert")),
        (DataPart(DataSource(tmp_path / "snli.tsv", "labelled_pairs"), "softmax"),),
        TrainSettings(batch_size=32, learning_rate=1e-4),
        DevPart(sts_source(data / "sts/stsb-dev.tsv.gz"), every=125),
    )
    events = list(run_recipe(recipe, tmp_path / "model"))
    started, finished = events[0], events[-1]
    assert isinstance(started, Started) and isinstance(finished, Finished)
    assert started.first.value == pytest.approx(34.4, abs=0.05)  # what the backbone's own page says
    assert finished.scores[0].value > started.first.value + 8
    sentence_transformers = pytest.importorskip("sentence_transformers")
    texts = ["A plane is taking off.", "A man is playing a large flute, and a dog listens.", "Yes"]
    ours = twinvec.load(tmp_path / "model").encode(texts)
    theirs = sentence_transformers.SentenceTransformer(str(tmp_path / "model"), device="cpu").encode(texts)
    in_torch = twinvec.load(tmp_path / "model", runtime="torch").encode(texts)
    assert abs(ours - theirs).max() < 1e-5 and abs(ours - in_torch).max() < 1e-5
