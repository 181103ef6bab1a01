"""``twinvec data check``: what is counted, what is shown, and how it ends."""

import json

import numpy as np
import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st

from twinvec.choices import EXAMPLE_KINDS
from twinvec.cli import main
from twinvec.data.check import (
    equal_rows,
    find_contradictions,
    find_duplicates,
    read_other_texts,
    report_on,
    text_key,
)
from twinvec.data.check_report import survey_examples
from twinvec.data.examples import Examples
from twinvec.data.read import open_table
from twinvec.data.roles import KINDS, DataSource
from twinvec.errors import InputError

NLI = """label\tpremise\thypothesis
neutral\tA cat sits.\tIt is black.
neutral\tA cat sits.\tIt is black.
entailment\tA cat sits.\tIt is black.
entailment\tA dog runs.\tA dog runs.
contradiction\tA dog runs.\t
-\tA dog runs.\tA bird.
"""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """An empty folder, which is the current one; no model is set."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("TWINVEC_MODEL", raising=False)
    return tmp_path


def run(*arguments, stdin=None):
    given = ["data", "check", *map(str, arguments)]
    return CliRunner().invoke(main, given, input=stdin, prog_name="twinvec")


def report_of(*arguments, exit_code=0):
    result = run(*arguments, "--json")
    assert (result.exit_code, result.stderr) == (exit_code, "")
    return json.loads(result.stdout)


def survey(path, kind, **settings):
    return survey_examples(DataSource(path, kind, **settings), open_table(path))


def test_rows_texts_labels_and_repeats_are_counted(folder):
    (folder / "a.tsv").write_text(NLI)
    report = report_of("a.tsv", "--ignore-label", "-")
    assert (report["kind"], report["unit"], report["is_usable"]) == ("labelled_pairs", "line", True)
    assert (report["n_rows"], report["n_good"], report["n_ignored"], report["n_bad"]) == (6, 5, 1, 0)
    assert report["n_texts"] == 4
    assert report["labels"] == {"contradiction": 1, "entailment": 2, "neutral": 2}
    assert report["duplicates"] == {"count": 1, "rows": [3]}
    assert report["equal_texts"] == {"count": 1, "rows": [5]}
    assert report["empty_texts"] == {"count": 1, "rows": [6]}
    assert report["n_contradictions"] == 1
    assert report["contradictions"] == [
        {"texts": ["A cat sits.", "It is black."], "rows": [2, 4], "targets": ["neutral", "entailment"]}
    ]
    assert (report["scores"], report["tokens"], report["overlaps"]) == (None, None, [])


def test_the_report_shows_it_in_a_hundred_columns(folder):
    (folder / "a.tsv").write_text(NLI + "neutral\t" + "A very long text. " * 20 + "\tIt is black.\n")
    result = run("a.tsv", "--ignore-label", "-", "--ignore-label", "none")
    assert (result.exit_code, result.stderr) == (0, "")
    lines = result.stdout.splitlines()
    assert max(map(len, lines)) <= 100
    shown = " ".join(result.stdout.split())
    for part in (
        "labelled_pairs (guessed from the column names; override with --kind)",
        "columns premise, hypothesis, label",
        "rows 7: 6 good, 1 skipped for their label",
        "repeated rows 1 (line 3)",
        "contradictions 1 pair with more than one label",
        "same text twice 1 (line 5)",
        "empty texts 1 (line 6)",
        "neutral 3 50.0 % █",
        "lines labels the same texts with different labels",
        "2 neutral A cat sits. 4 entailment It is black.",
        "Training would accept this file, with 6 examples.",
    ):
        assert part in shown


def test_scores_are_summed_up_in_their_own_range(folder):
    scores = [0, 1, 2.5, 2.5, 5]
    rows = [{"text1": "A.", "text2": f"B{i}.", "score": score} for i, score in enumerate(scores)]
    (folder / "a.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    report = report_of("a.jsonl", "--score-range", "0", "5")
    assert report["scores"] == {
        "low": 0,
        "high": 5,
        "least": 0,
        "mean": 2.2,
        "highest": 5,
        "counts": [1, 0, 1, 0, 0, 2, 0, 0, 0, 1],
    }
    shown = " ".join(run("a.jsonl", "--score-range", "0", "5").stdout.split())
    assert "scores 0 to 5, 2.2 on average" in shown
    assert "2.5 to 3 2 40.0 % █" in shown


def test_swapped_texts_with_another_score_contradict_each_other(folder):
    (folder / "a.csv").write_text("text1,text2,score\nA.,B.,0.5\nC.,D.,1\nB.,A.,0.25\nB.,A.,0.75\nA.,B.,0.5\n")
    report = report_of("a.csv")
    assert report["n_contradictions"] == 1
    assert report["contradictions"] == [{"texts": ["A.", "B."], "rows": [2, 4], "targets": ["0.5", "0.25"]}]
    assert report["duplicates"] == {"count": 1, "rows": [6]}


def test_swapped_texts_of_labeled_pairs_are_different_examples(folder):
    (folder / "a.csv").write_text("premise,hypothesis,label\nA.,B.,neutral\nB.,A.,entailment\n")
    assert report_of("a.csv")["n_contradictions"] == 0


BAD = """{"text1": "A.", "text2": "B.", "score": 3}
{"text1": "A.", "text2": "B.", "score": "x"}
no JSON
{"text1": null, "text2": "B.", "score": 1}
{"text1": "A.", "text2": "C.", "score": 1}
{"text1": "A.", "score": 1}
{"text1": "A.", "text2": "B.", "score": 4}
{"text1": "A.", "text2": "B.", "score": 5}
{"text1": "A.", "text2": "B.", "score": 6}
"""


def test_bad_rows_are_counted_by_fault_and_the_rest_is_read_on(folder):
    (folder / "a.jsonl").write_text(BAD)
    report = report_of("a.jsonl", "--score-range", 0, 1, exit_code=1)
    assert (report["is_usable"], report["n_rows"], report["n_good"], report["n_bad"]) == (False, 9, 1, 8)
    assert {fault["name"]: fault["count"] for fault in report["faults"]} == {
        "score out of range": 4,
        "score is not a number": 1,
        "not JSON": 1,
        "not a text": 1,
        "missing column": 1,
    }
    assert report["faults"][0]["shown"] == [f"a.jsonl, line {line}: the score {score} is not in the range 0 to 1."
                                            for line, score in ((1, 3), (7, 4), (8, 5))]  # fmt: skip


def test_bad_rows_are_shown_with_places_and_remedy(folder):
    (folder / "a.jsonl").write_text(BAD)
    result = run("a.jsonl", "--score-range", 0, 1)
    assert (result.exit_code, result.stderr) == (1, "")
    shown = " ".join(result.stdout.split())
    for part in (
        "rows 9: 1 good, 8 bad",
        "bad rows: score out of range (4)",
        "line 1: the score 3 is not in the range 0 to 1. line 7: the score 4 is not in the range 0 to 1.",
        "... and 1 more -> Set the score range: --score-range 0 5",
        "line 3 is not JSON",
        "line 4: 'text1' is null, not a text. -> Write a string, or remove the row.",
        "Training would reject this file: 8 of its 9 rows are bad.",
    ):
        assert part in shown


def test_a_score_range_that_is_probably_wrong_is_reported_with_exit_code_1(folder):
    (folder / "a.csv").write_text("text1,text2,score\n" + "".join(f"A.,B{i}.,{i / 20}\n" for i in range(21)))
    result = run("a.csv")
    assert result.exit_code == 1
    shown = " ".join(result.stdout.split())
    assert "reject this file: The highest of 21 scores in a.csv is 1, far below the top of the score range" in shown
    assert report_of("a.csv", exit_code=1)["refusal"].endswith("score_range = [0, 1] in a recipe.")


def test_a_file_of_ignored_or_only_bad_rows_is_refused(folder):
    (folder / "a.csv").write_text("premise,hypothesis,label\nA.,B.,-\n")
    ignored = report_of("a.csv", "--ignore-label", "-", exit_code=1)
    assert ignored["refusal"].startswith("All 1 rows of a.csv have an ignored label: -.")
    bad = report_of("a.csv", "--labels", "yes, no", exit_code=1)
    assert (bad["refusal"], bad["faults"][0]["name"], bad["n_good"]) == ("", "unknown label", 0)
    assert "Known labels: yes, no." in bad["faults"][0]["hint"]
    for arguments in (["--ignore-label", "-"], ["--labels", "yes,no"]):
        assert run("a.csv", *arguments).exit_code == 1


def test_kind_and_columns_can_be_given(folder):
    (folder / "a.csv").write_text("s1,s2,no1,no2\nA.,B.,C.,D.\n")
    mapped = ["--columns", "anchor=s1", "--columns", "positive=s2"]
    several = ["--columns", "negative=no1", "--columns", "negative=no2"]
    assert report_of("a.csv", *mapped)["kind"] == "ranked"
    report = report_of("a.csv", "--kind", "ranked", *mapped, *several)
    assert report["columns"] == {"anchor": ["s1"], "positive": ["s2"], "negative": ["no1", "no2"]}
    assert report["n_texts"] == 4
    shown = " ".join(run("a.csv", "--kind", "ranked", *mapped, *several).stdout.split())
    assert "kind ranked columns anchor = s1, positive = s2, negative = no1 + no2 rows 1" in shown


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_has_a_report(folder, kind):
    roles = KINDS[kind].needed
    values = ["1" if role == KINDS[kind].target else f"A text as {role}." for role in roles]
    (folder / "a.csv").write_text(",".join(roles) + "\n" + ",".join(values) + "\n")
    assert report_of("a.csv")["kind"] == kind
    assert run("a.csv").exit_code == 0


def test_marks_are_counted_as_labels(folder):
    (folder / "a.csv").write_text("text1,text2,label\nA.,B.,1\nA.,C.,true\n")
    assert report_of("a.csv")["labels"] == {"0": 0, "1": 2}


def test_standard_input_is_read_once(folder):
    result = run("-", "--format", "tsv", "--ignore-label", "-", stdin=NLI)
    assert result.exit_code == 0
    assert result.stdout.startswith("Standard input\n")


BAD_CALLS = {
    "no file": (["no.csv"], 1, "File not found: no.csv"),
    "no kind": (["b.csv"], 1, "The columns of b.csv match no kind of examples: query, doc"),
    "no column": (["b.csv", "--kind", "texts"], 1, "b.csv has no column for the role text of texts"),
    "empty": (["empty.csv", "--kind", "texts"], 1, "empty.csv has no rows"),
    "no evaluation file": (["a.tsv", "--against", "no.csv"], 1, "File not found: no.csv"),
    "no model": (["a.tsv", "-m", "./no"], 1, "There is no model folder at './no'"),
    "range": (["a.tsv", "--score-range", "0", "1"], 1, "labelled_pairs have no scores"),
    "wrong mapping": (["a.tsv", "--columns", "premise"], 2, "'premise' does not have the form ROLE=COLUMN"),
    "wrong kind": (["a.tsv", "--kind", "pairs"], 2, "'pairs' is not one of"),
    "half a range": (["a.tsv", "--score-range", "0"], 2, "requires 2 arguments"),
}


@pytest.mark.parametrize("case", BAD_CALLS)
def test_a_bad_call_is_refused_in_one_line(folder, case):
    (folder / "a.tsv").write_text(NLI)
    (folder / "b.csv").write_text("query,doc\n1,2\n")
    (folder / "empty.csv").write_text("")
    arguments, exit_code, message = BAD_CALLS[case]
    result = run(*arguments)
    assert (result.exit_code, result.stdout) == (exit_code, "")
    assert message in result.stderr
    assert exit_code == 2 or result.stderr.count("\n") == 1


def test_every_kind_of_the_options_has_its_columns():
    assert tuple(KINDS) == EXAMPLE_KINDS


def test_texts_shared_with_evaluation_files_are_counted_whatever_their_form(folder):
    (folder / "a.tsv").write_text(NLI)
    (folder / "dev.csv").write_text('score,text1,text2\n1,"a CAT  sits",New.\n1,It is BLACK!,"a, cat sits"\n1,,...\n')
    (folder / "test.jsonl").write_text('{"text1": "Nothing of it.", "n": 1}\n')
    report = report_of("a.tsv", "--against", "dev.csv", "--against", "test.jsonl", "--ignore-label", "-")
    assert report["overlaps"] == [
        {"file": "dev.csv", "n_texts": 3, "n_shared": 2, "n_rows": 3, "shown": ["A cat sits.", "It is black."]},
        {"file": "test.jsonl", "n_texts": 1, "n_shared": 0, "n_rows": 0, "shown": []},
    ]
    result = run("a.tsv", "--against", "dev.csv", "--against", "test.jsonl", "--ignore-label", "-")
    shown = " ".join(result.stdout.split())
    assert "in dev.csv 2 of its 3 texts, in 3 rows of this file in test.jsonl none of its 1 texts" in shown
    assert "texts that are also in dev.csv (2)" in shown


def test_columns_to_compare_with_are_those_of_roles_or_of_the_mapping_or_all(tmp_path):
    (tmp_path / "a.csv").write_text("text,title,label\nOne.,Two.,three\n")
    (tmp_path / "b.csv").write_text("title,label\nTwo.,three\n")
    assert read_other_texts(tmp_path / "a.csv").keys == {"one"}
    assert read_other_texts(tmp_path / "a.csv", also=["title"]).keys == {"one", "two"}
    assert read_other_texts(tmp_path / "b.csv").keys == {"two", "three"}
    (tmp_path / "c.jsonl").write_text('{"id": 7, "negative": ["Two.", null], "anchor": null}\n')
    assert read_other_texts(tmp_path / "c.jsonl").keys == {"two"}
    (tmp_path / "d.jsonl").write_text('{"id": 7}\n')
    with pytest.raises(InputError, match="has no texts to compare with"):
        read_other_texts(tmp_path / "d.jsonl")


def test_case_punctuation_and_white_space_do_not_distinguish_texts():
    same = ["It's  a “dog”, no?", "it 's a dog no ?", "IT\u2019S A\tDOG—NO", "`` It 's a dog , no ''"]
    assert len({text_key(text) for text in same}) == 1
    assert text_key("कि") != text_key("की")  # vowel signs are no punctuation
    assert text_key("C++") != text_key("C")
    assert text_key("Größe") == text_key("GRÖSSE")


def test_tokens_are_counted_as_the_model_counts_them_without_its_weights(folder, tiny_bert, encoder, monkeypatch):
    monkeypatch.setattr("twinvec.data.check.TEXTS_PER_BLOCK", 2)
    texts = ["the cat", "a cat sits on the mat", "the " * 200, "dog"]
    (folder / "a.csv").write_text("text\n" + "".join(f"{text}\n" for text in texts))
    counts = encoder.count_tokens([text for text in texts])
    tokens = report_of("a.csv", "-m", tiny_bert)["tokens"]
    assert tokens == {
        "limit": encoder.max_tokens,
        "mean": round(float(counts.mean()), 2),
        "percentile_95": int(counts.max()),
        "longest": int(counts.max()),
        "n_cut": int((counts > encoder.max_tokens).sum()),
    }
    assert tokens["n_cut"] == 1
    shown = " ".join(run("a.csv", "-m", tiny_bert).stdout.split())
    assert f"in the longest; one text is cut at {encoder.max_tokens}" in shown


def grids(n_values):
    row = st.lists(st.integers(0, n_values - 1), min_size=3, max_size=3)
    return st.lists(row, min_size=1, max_size=30).map(lambda rows: np.array(rows, dtype=np.int64))


@given(grids(3))
def test_equal_rows_are_found_as_by_comparing_all(grid):
    rows = grid.tolist()
    assert equal_rows(grid).tolist() == [rows.index(row) for row in rows]


@given(grids(3), st.sampled_from(["marked_pairs", "labelled_pairs"]))
def test_repeats_are_found_as_by_comparing_all(grid, kind):
    left, right, targets = grid.T
    roles = KINDS[kind].texts
    examples = Examples("a", kind, ["a", "b", "c"], dict(zip(roles, (left, right), strict=True)), targets, tuple("abc"))
    rows = grid.tolist()
    assert find_duplicates(examples).tolist() == [i for i, row in enumerate(rows) if rows.index(row) < i]
    texts = [sorted(row[:2]) if kind == "marked_pairs" else row[:2] for row in rows]
    expected = []
    for i, text in enumerate(texts):
        others = [j for j in range(len(rows)) if texts[j] == text and rows[j][2] != rows[i][2]]
        if texts.index(text) == i and others:
            expected.append([i, others[0]])
    assert sorted(find_contradictions(examples).tolist()) == expected


def test_the_library_checks_without_the_command(tmp_path):
    (tmp_path / "a.tsv").write_text(NLI)
    report = report_on(survey(tmp_path / "a.tsv", "labelled_pairs"), lengths=np.array([3, 5, 7, 2, 4]), limit=6)
    assert report.is_usable
    assert (report.n_rows, report.labels["-"]) == (6, 1)
    assert (report.tokens.limit, report.tokens.n_cut, report.tokens.mean) == (6, 1, 4.2)


@pytest.mark.data
def test_real_data_has_the_known_counts(data):
    snli = report_on(survey(data / "nli" / "snli-dev.tsv.gz", "labelled_pairs"))
    assert (snli.n_rows, snli.n_bad, sorted(snli.labels)) == (9842, 0, ["contradiction", "entailment", "neutral"])
    sts = report_on(survey(data / "sts" / "stsb-dev.tsv.gz", "scored_pairs", score_range=(0, 5)))
    assert (sts.n_rows, sts.n_bad, sts.scores.highest) == (1500, 0, 5)
