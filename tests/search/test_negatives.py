"""Hard negatives: never a positive, never nearer than the margin allows, and training reads them."""

from types import SimpleNamespace

import numpy as np
import pytest
from click.testing import CliRunner
from hypothesis import given, settings
from hypothesis import strategies as st

import twinvec
from fakes import HashEncoder
from twinvec.cli import main
from twinvec.data.examples import read_examples
from twinvec.data.roles import DataSource
from twinvec.errors import InputError
from twinvec.search import NegativeSettings, hard_negatives, mine_triplets

PAIRS = [
    ("how old are you", "what is your age"),
    ("how old are you", "your age please"),
    ("where do you live", "what is your home town"),
    ("is it going to rain", "will there be rain today"),
]


def embed(texts):
    return HashEncoder().encode(texts)


@settings(deadline=None)
@given(st.integers(0, 2**32 - 1), st.integers(1, 4), st.integers(0, 3), st.floats(0, 0.3))
def test_negatives_are_the_best_rows_within_the_limits(seed, n, skip, margin):
    rng = np.random.default_rng(seed)
    anchors, positives, pool = rng.normal(size=(6, 4)), rng.normal(size=(6, 4)), rng.normal(size=(30, 4))
    known = rng.integers(6, size=20), rng.integers(30, size=20)
    found = hard_negatives(anchors, positives, pool, known=known, settings=NegativeSettings(n, margin, skip=skip))
    scores, own = twinvec.similarity(anchors, pool), twinvec.similarity_pairwise(anchors, positives)
    for pair in range(6):
        banned = set(known[1][known[0] == pair])
        ranked = [row for row in np.argsort(-scores[pair], kind="stable") if row not in banned]
        allowed = [row for row in ranked if scores[pair, row] <= own[pair] - np.float32(margin)]
        assert found.ids[found.pairs == pair].tolist() == allowed[skip : skip + n]


def test_no_negative_is_a_positive_of_the_same_anchor_in_any_spelling():
    pairs = [*PAIRS, ("How old are you?", "What is your AGE?")]
    settings = NegativeSettings(n=3, margin=0)
    triplets = mine_triplets(pairs, embed, pool=["Your age, please!", "how old are you"], settings=settings)
    ages = {"what is your age", "your age please", "What is your AGE?", "Your age, please!", "how old are you"}
    of_ages = [triplet.negative for triplet in triplets if triplet.anchor.lower().startswith("how old")]
    assert of_ages and ages.isdisjoint(of_ages)
    assert all(triplet.negative != triplet.positive for triplet in triplets)


def fake_model(monkeypatch):
    """Whatever model is asked for, texts are embedded by the fake one."""
    monkeypatch.setattr("twinvec.search.negatives.as_embedder", lambda _: SimpleNamespace(embed=embed))


def test_training_reads_what_the_command_writes(tmp_path, monkeypatch):
    fake_model(monkeypatch)
    source, pool, target = tmp_path / "pairs.tsv", tmp_path / "pool.txt", tmp_path / "triplets.tsv"
    source.write_text("question\tpositive\n" + "".join(f"{a}\t{b}\n" for a, b in PAIRS))
    pool.write_text("where are you from\nhow is your mother\n")
    arguments = ["data", "negatives", source, "--columns", "anchor=question", "--pool", pool, "-n", 2, "--margin", 0]
    result = CliRunner().invoke(main, [str(each) for each in [*arguments, "-o", target]])
    assert result.exit_code == 0, result.output
    examples = read_examples(DataSource(target, "triplets"))
    assert f"Wrote {len(examples)} triplets" in result.stderr
    assert examples.kind == "triplets" and len(examples) >= len(PAIRS)


def test_triplets_are_written_without_formulas_if_asked(tmp_path, monkeypatch):
    fake_model(monkeypatch)
    source, target = tmp_path / "pairs.tsv", tmp_path / "triplets.csv"
    source.write_text("anchor\tpositive\n" + "".join(f"={a}\t{b}\n" for a, b in PAIRS))
    arguments = ["data", "negatives", source, "--margin", 0, "--csv-safe", "-o", target]
    assert CliRunner().invoke(main, [str(each) for each in arguments]).exit_code == 0
    assert all(line.startswith("'=") for line in target.read_text().splitlines()[1:])


def test_nothing_is_written_if_no_negative_is_far_enough(tmp_path, monkeypatch):
    fake_model(monkeypatch)
    source = tmp_path / "pairs.csv"
    source.write_text("anchor,positive\na,b\n")
    result = CliRunner().invoke(main, ["data", "negatives", str(source), "-o", str(tmp_path / "out.csv")])
    assert result.exit_code == 1 and "No negative was found within these limits" in result.stderr
    assert not (tmp_path / "out.csv").exists()


@pytest.mark.parametrize(
    ("given", "message"),
    [({"n": 0}, "n must be at least 1"), ({"margin": -1}, "margin must be"), ({"n": 5, "depth": 4}, "Raise depth")],
)
def test_settings_that_cannot_be_met_are_refused(given, message):
    with pytest.raises(InputError, match=message):
        NegativeSettings(**given)


@pytest.mark.parametrize("place", [0, 1, 2])
def test_vectors_that_are_no_numbers_or_of_another_width_are_refused(place):
    for odd, message in ((np.full((3, 4), np.nan), "holds NaN"), (np.ones((3, 5)), r"width|shapes")):
        rows = [np.eye(3, 4), np.eye(3, 4), np.eye(3, 4)]
        rows[place] = odd
        with pytest.raises(InputError, match=message):
            hard_negatives(*rows, known=([], []))


def test_no_pairs_are_refused():
    with pytest.raises(InputError, match="no pairs"):
        mine_triplets([], embed)
