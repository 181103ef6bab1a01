"""Near-duplicates and neighbours: what is promised of them, and the command that removes them."""

import json

import numpy as np
import pytest
from click.testing import CliRunner
from hypothesis import given, settings
from hypothesis import strategies as st

import twinvec
from fakes import replace_models
from twinvec.cli import main
from twinvec.errors import InputError, UnknownNameError
from twinvec.search import Hits, duplicate_rows, most_similar_pairs, neighbor_pairs, neighbors, search
from twinvec.search.neighbors import graph_of
from twinvec.search.pairs import all_pairs_above

seeds = st.integers(0, 2**32 - 1)


@pytest.fixture
def fake(monkeypatch):
    replace_models(monkeypatch)


def run(*arguments, stdin=None):
    return CliRunner().invoke(main, [str(argument) for argument in arguments], input=stdin, prog_name="twinvec")


def some_vectors(seed, n):
    return np.random.default_rng(seed).normal(size=(n, 3))


@settings(deadline=None)
@given(seeds, st.integers(0, 40), st.sampled_from(["first", "longest"]), st.floats(0.3, 0.99))
def test_no_two_kept_rows_are_duplicates_and_every_removed_row_duplicates_a_kept_one(seed, n, keep, threshold):
    vectors, lengths = some_vectors(seed, n), np.random.default_rng(seed).integers(1, 9, size=n)
    found = duplicate_rows(vectors, threshold, keep=keep, lengths=lengths)
    assert sorted([*found.kept, *found.removed]) == list(range(n))
    cosines = twinvec.similarity(vectors, vectors) if n else np.empty((0, 0))
    kept = cosines[np.ix_(found.kept, found.kept)] - 2 * np.eye(len(found.kept))
    assert (kept < threshold).all()
    assert set(found.repeated) <= set(found.kept)
    np.testing.assert_allclose(cosines[found.removed, found.repeated], found.scores, atol=1e-6)
    assert (found.scores >= np.float32(threshold)).all()
    if keep == "longest":
        assert (lengths[found.repeated] >= lengths[found.removed]).all()
    else:
        assert (found.repeated < found.removed).all()


def test_a_chain_of_small_changes_does_not_collapse_into_its_first():
    angles = np.radians([0, 10, 20, 30, 40])
    found = duplicate_rows(np.stack([np.cos(angles), np.sin(angles)], axis=1), np.cos(np.radians(12)))
    assert found.kept.tolist() == [0, 2, 4]


@settings(deadline=None)
@given(seeds, st.integers(1, 30), st.integers(1, 8))
def test_neighbors_are_the_best_other_rows(seed, n, k):
    vectors = some_vectors(seed, n)
    scores = twinvec.similarity(vectors, vectors)
    np.fill_diagonal(scores, -np.inf)
    assert np.array_equal(neighbors(vectors, k).ids, np.argsort(-scores, axis=1, kind="stable")[:, : min(k, n - 1)])


def test_a_row_with_many_copies_is_not_its_own_neighbor():
    hits = neighbors(np.ones((9, 4)), k=3)
    assert not (hits.ids == np.arange(9)[:, None]).any()
    assert hits.ids[8].tolist() == [0, 1, 2]


def test_a_row_that_is_not_finite_is_named():
    with pytest.raises(InputError, match="Row 1 of vectors holds NaN"):
        neighbors([[1.0, 0.0], [np.nan, 0.0]])


def test_no_rows_have_no_neighbors():
    assert neighbors(np.empty((0, 4))).ids.shape == (0, 0)
    assert neighbors(np.ones((1, 4))).ids.shape == (1, 0)


@settings(deadline=None)
@given(seeds, st.integers(0, 25))
def test_all_neighbors_make_all_pairs(seed, n):
    vectors = some_vectors(seed, n)
    expected = most_similar_pairs(vectors, max(n * n, 1))
    found = neighbor_pairs(neighbors(vectors, max(n, 1)))
    assert set(zip(found.left, found.right, strict=True)) == set(zip(expected.left, expected.right, strict=True))
    assert (np.diff(found.scores) <= 0).all()


def test_pairs_of_hits_leave_out_missing_hits_and_low_scores():
    hits = Hits(np.array([[1, -1], [0, 2], [1, 2]]), np.array([[0.9, -np.inf], [0.9, 0.4], [0.4, 1.0]], np.float32))
    assert neighbor_pairs(hits).scores.tolist() == pytest.approx([0.9, 0.4])
    assert neighbor_pairs(hits, threshold=0.5).right.tolist() == [1]


def test_the_graph_has_every_edge_in_both_directions():
    vectors = some_vectors(3, 20)
    graph = graph_of(all_pairs_above(vectors, 0.2), 20)
    scores = twinvec.similarity(vectors, vectors)
    for row in range(20):
        assert graph.of(row).tolist() == [j for j in range(20) if j != row and scores[row, j] >= 0.2]
    assert graph_of([], 3).counts.tolist() == [0, 0, 0]


def test_dedup_keeps_all_columns_and_says_what_it_removed(tmp_path, fake):
    file = tmp_path / "in.csv"
    file.write_text('id,text\n1,a cat\n2,"the dog, big"\n3,a cat\n4,Cat a\n')
    result = run("dedup", file, "-o", tmp_path / "out.jsonl", "--report", tmp_path / "report.jsonl")
    assert result.exit_code == 0, result.output
    assert [json.loads(line)["id"] for line in (tmp_path / "out.jsonl").read_text().splitlines()] == ["1", "2"]
    report = [json.loads(line) for line in (tmp_path / "report.jsonl").read_text().splitlines()]
    assert [(row["row"], row["repeats_row"], row["repeats"], row["score"]) for row in report] == [
        (2, 0, "a cat", 1.0),
        (3, 0, "a cat", 1.0),
    ]
    assert "Kept 2 of 4 texts; 2 duplicates removed." in result.stderr


def test_dedup_writes_no_formula_if_asked(tmp_path, fake):
    file = tmp_path / "in.csv"
    file.write_text("=id,text\n1,=cmd() | a\n-2,=cmd() | a\n")
    arguments = ["dedup", file, "-o", tmp_path / "out.csv", "--report", tmp_path / "report.tsv", "--csv-safe"]
    result = run(*arguments)
    assert result.exit_code == 0, result.output
    assert (tmp_path / "out.csv").read_text() == "'=id,text\n1,'=cmd() | a\n"
    assert (tmp_path / "report.tsv").read_text().splitlines()[1] == "1\t'=cmd() | a\t0\t'=cmd() | a\t1.0"


@pytest.mark.parametrize("ending", ["txt", "csv", "tsv", "jsonl"])
def test_dedup_writes_to_standard_output_in_the_format_it_read(tmp_path, fake, ending):
    lines = {
        "txt": ["a cat", "", "the dog", "a cat"],
        "csv": ["n,text", '1,"a, cat"', "2,the dog", '3,"a, cat"'],
        "tsv": ["n\ttext", '1\t"a cat', "2\tthe dog", '3\t"a cat'],
        "jsonl": [
            json.dumps({"n": n, "text": text}, ensure_ascii=False)
            for n, text in enumerate(["ä cat", "the dog", "ä cat"])
        ],
    }[ending]
    file = tmp_path / f"in.{ending}"
    file.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    result = run("dedup", file)
    assert result.stdout.splitlines() == lines[:-1]


def test_dedup_keeps_the_longest_if_asked(tmp_path, fake):
    result = run("dedup", "-", "--keep", "longest", stdin="a cat\na  cat\n")
    assert result.stdout == "a  cat\n"


def test_dedup_writes_parquet_too(tmp_path, fake):
    parquet, arrow = pytest.importorskip("pyarrow.parquet"), pytest.importorskip("pyarrow")
    parquet.write_table(arrow.table({"n": [1, 2, 3], "text": ["a", "a", "b"]}), tmp_path / "in.parquet")
    assert run("dedup", tmp_path / "in.parquet", "-o", tmp_path / "out.parquet").exit_code == 0
    assert parquet.read_table(tmp_path / "out.parquet").to_pylist() == [{"n": 1, "text": "a"}, {"n": 3, "text": "b"}]
    assert "Name a file" in run("dedup", tmp_path / "in.parquet").stderr


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["-o", "taken.txt"], "exists already"),
        (["--report", "taken.txt"], "Plain lines have one column, not 5"),
        (["-o", "out.xyz"], "Unknown extension"),
        (["--column", "body"], "no column 'body'"),
        (["--threshold", "2"], "not in the range"),
    ],
)
def test_dedup_refuses_before_it_writes(tmp_path, fake, monkeypatch, arguments, message):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "in.txt").write_text("a\na\n")
    (tmp_path / "taken.txt").write_text("mine")
    result = run("dedup", "in.txt", *arguments)
    assert result.exit_code in (1, 2) and message in result.stderr
    assert {path.name for path in tmp_path.iterdir()} == {"in.txt", "taken.txt"}
    assert (tmp_path / "taken.txt").read_text() == "mine"


def test_a_text_with_a_tab_cannot_become_tsv_and_leaves_no_file(tmp_path, fake):
    (tmp_path / "in.jsonl").write_text(json.dumps({"text": "a\tb"}) + "\n")
    result = run("dedup", tmp_path / "in.jsonl", "-o", tmp_path / "out.tsv")
    assert result.exit_code == 1 and "contains a tab" in result.stderr
    assert not (tmp_path / "out.tsv").exists()


def test_an_empty_file_is_refused(tmp_path, fake):
    (tmp_path / "in.txt").write_text("")
    assert "has no texts" in run("dedup", tmp_path / "in.txt").stderr


def test_bad_settings_are_refused():
    with pytest.raises(UnknownNameError, match="Choose from: first, longest"):
        duplicate_rows(np.eye(3), keep="last")
    with pytest.raises(InputError, match=r"needs lengths of shape \(3,\)"):
        duplicate_rows(np.eye(3), keep="longest")


def test_too_many_pairs_above_a_threshold_are_refused_rather_than_held(monkeypatch):
    monkeypatch.setattr("twinvec.search.pairs.MOST_PAIRS", 100)
    with pytest.raises(InputError, match=r"More than 100 pairs reach the threshold 0\.5"):
        duplicate_rows(np.ones((50, 4)), 0.5)


def test_pairs_per_text_prints_each_texts_nearest(fake):
    result = run("pairs", "-", "--per-text", "1", stdin="a cat\na cat sits\nblue sky\nblue sky now\n")
    assert [json.loads(line)["rows"] for line in result.stdout.splitlines()] == [[0, 1], [2, 3]]
    assert "not both" in run("pairs", "-", "--per-text", "1", "-k", "3", stdin="a\nb\n").stderr


def test_search_is_not_fooled_by_vectors_of_another_width():
    with pytest.raises(InputError, match="width 2, but the vectors have width 3"):
        search(np.ones((1, 2)), np.ones((4, 3)))
