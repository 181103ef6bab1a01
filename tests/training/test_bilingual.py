"""The training of the Korean model, with a tiny encoder: seeded, resumable, and learning what it should."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="training needs the extra 'train'")

from bilingual.card import korean_card, korean_record  # noqa: E402
from bilingual.teachers import make_pool  # noqa: E402
from bilingual.training import Lesson, Settings, draw_curve, train  # noqa: E402
from tiny_use import PIECES, tiny_tokenizer, tiny_weights  # noqa: E402
from twinvec.baselines.use import write_use  # noqa: E402
from twinvec.baselines.use_torch import UseNetwork  # noqa: E402
from twinvec.engine.model import UseConfig  # noqa: E402
from twinvec.files import write_json  # noqa: E402
from twinvec.vectors import unit_rows  # noqa: E402

# The parts of the loss have fixed weights, so that the settings of the shipped model can change.
WEIGHTS = {"similarity": 50.0, "ranking": 1.0, "keeping": 50.0}
SETTINGS = Settings(steps=6, n_english=8, n_pairs=8, n_others=4, n_korean=4, group=2, every=3, warmup=2, **WEIGHTS)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("use") / "tiny"
    write_use(path, UseConfig(), tiny_weights(), tiny_tokenizer())
    return path


@pytest.fixture(scope="module")
def lesson():
    draw = np.random.default_rng(3)

    def rows():
        return [[1, *draw.integers(3, len(PIECES), size=int(n)).tolist(), 2] for n in draw.integers(1, 9, size=30)]

    def pool():
        return make_pool(unit_rows(draw.normal(size=(30, 5)).astype(np.float32)))

    return Lesson(rows(), rows(), rows(), rows(), rows(), rows(), pool(), pool(), pool())


def run(network, lesson, work, settings=SETTINGS, stop=None):
    work.mkdir(exist_ok=True)
    found = []
    for row in train(network, lesson, settings, work, lambda: {"korsts-dev": 1.0, "stsb-dev": 2.0, "cross-dev": 3.0}):
        found.append(row)
        if row["step"] == stop:
            break
    return found


def test_a_pool_has_the_nearest_others_and_draws_different_texts(lesson):
    pool = lesson.english
    cosines = pool.vectors @ pool.vectors.T
    np.fill_diagonal(cosines, -2)
    assert np.array_equal(pool.neighbors[:, 0], cosines.argmax(axis=1))
    drawn = pool.draw(10, 3, np.random.default_rng(0))
    assert len(drawn) == len(set(drawn.tolist())) <= 10


def test_an_interrupted_run_gives_the_same_weights(folder, lesson, tmp_path):
    whole, part, rest = (UseNetwork.from_folder(folder) for _ in range(3))
    rows = run(whole, lesson, tmp_path / "whole")
    assert [row["step"] for row in rows] == [0, 3, 6] and rows[-1]["loss"] < rows[1]["loss"] * 1.5
    run(part, lesson, tmp_path / "part", stop=3)
    assert [row["step"] for row in run(rest, lesson, tmp_path / "part")] == [6]
    for name, values in whole.state_dict().items():
        assert torch.equal(values, rest.state_dict()[name]), name
    other = UseNetwork.from_folder(folder)
    run(other, lesson, tmp_path / "other", replace(SETTINGS, seed=1))
    assert not torch.equal(other.embedding_weight, whole.embedding_weight)


def test_the_loss_falls(folder, lesson, tmp_path):
    settings = replace(SETTINGS, steps=60, every=20, table_rate=1e-2, rate=1e-2, dropout=0.1)
    losses = [row["loss"] for row in run(UseNetwork.from_folder(folder), lesson, tmp_path / "run", settings)[1:]]
    assert losses[-1] < 0.95 * losses[0]


def test_the_card_lists_texts_and_licenses(tmp_path):
    record = tmp_path / "training"
    record.mkdir()
    row = '{"step": 0, "korsts-dev": 77.0, "stsb-dev": 82.0, "cross-dev": 72.0}\n'
    (record / "log.jsonl").write_text(row + row.replace("77", "79").replace('"step": 0', '"step": 300'))
    removed = {"tatoeba: nli/snli-dev": 1, "cataclysm: nli/snli-dev": 2}
    write_json(
        record / "texts.json", {"settings": {}, "texts": {"tatoeba": 4_422, "msdocs-sql": 9}, "removed": removed}
    )
    found = korean_record(tmp_path)
    assert found["removed_by_file"] == {"nli/snli-dev": 3}
    card = korean_card(found)
    assert "- tatoeba: 4,422, CC BY 2.0" in card and "300 steps" in card and "KorSTS dev 79.00" in card
    pytest.importorskip("matplotlib")
    draw_curve(record / "log.jsonl", tmp_path / "curve.png")
    assert (tmp_path / "curve.png").stat().st_size > 1000
