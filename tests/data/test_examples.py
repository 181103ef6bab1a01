"""Examples by the names of their columns: every kind, every format, and every way a file can be wrong."""

import csv
import json
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from twinvec.data.examples import Examples, read_examples
from twinvec.data.roles import KINDS, DataSource, guess_kind
from twinvec.errors import InputError, RowError, UnknownNameError

FORMATS = ["csv", "tsv", "jsonl", "parquet"]


def write_rows(path, rows):
    """A file of dicts in the format of its ending."""
    format = path.suffix[1:]
    if format == "jsonl":
        path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    elif format == "parquet":
        arrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
        parquet.write_table(arrow.Table.from_pylist(rows), path)
    else:
        with path.open("w", encoding="utf-8", newline="") as file:
            if format == "csv":
                writer = csv.DictWriter(file, list(rows[0]), lineterminator="\n")
                writer.writeheader()
                writer.writerows(rows)
            else:
                lines = [list(rows[0]), *(list(map(str, row.values())) for row in rows)]
                file.write("".join("\t".join(line) + "\n" for line in lines))
    return path


NLI = [
    {"premise": "A cat sits.", "hypothesis": "An animal sits.", "label": "entailment"},
    {"premise": "A cat sits.", "hypothesis": "Größe 🙂", "label": "neutral"},
    {"premise": "Größe 🙂", "hypothesis": "A cat sits.", "label": "contradiction"},
]


def texts_by_role(examples):
    """The texts of each role, looked up through the indices."""
    look_up = np.array(examples.texts, dtype=object)
    return {role: look_up[indices].tolist() for role, indices in examples.indices.items()}


@pytest.mark.parametrize("format", FORMATS)
def test_every_format_gives_the_same_examples(tmp_path, format):
    examples = read_examples(DataSource(write_rows(tmp_path / f"a.{format}", NLI), "labelled_pairs"))
    assert (examples.name, examples.kind, len(examples)) == (f"a.{format}", "labelled_pairs", 3)
    assert examples.texts == ["A cat sits.", "An animal sits.", "Größe 🙂"]
    assert examples.labels == ("contradiction", "entailment", "neutral")
    assert examples.targets.dtype == np.int64 and examples.targets.tolist() == [1, 2, 0]
    assert {role: indices.tolist() for role, indices in examples.indices.items()} == {
        "premise": [0, 0, 2],
        "hypothesis": [1, 2, 0],
    }
    assert all(indices.dtype == np.int64 for indices in examples.indices.values())


plain = st.text(st.characters(exclude_categories=["Cs", "Cc", "Zl", "Zp"]), min_size=1, max_size=8)


@settings(max_examples=40, deadline=None)
@given(st.lists(st.tuples(plain, plain, st.floats(0, 1, width=32)), min_size=1, max_size=12), st.sampled_from(FORMATS))
def test_written_rows_are_read_back_by_index(tmp_path_factory, rows, format):
    path = tmp_path_factory.mktemp("rows") / f"a.{format}"
    write_rows(path, [{"id": 7, "text2": right, "score": score, "text1": left} for left, right, score in rows])
    examples = read_examples(DataSource(path, "scored_pairs", score_range=(0, 1)))
    assert texts_by_role(examples) == {"text1": [row[0] for row in rows], "text2": [row[1] for row in rows]}
    assert len(set(examples.texts)) == len(examples.texts)
    assert np.array_equal(examples.targets, np.array([row[2] for row in rows], dtype=np.float32))


@pytest.mark.parametrize("kind", KINDS)
def test_roles_are_read_by_name_whatever_the_order_of_the_columns(tmp_path, kind):
    roles = KINDS[kind].needed
    row = {role: "1" if role == KINDS[kind].target else f"a text as {role}" for role in roles}
    one = read_examples(DataSource(write_rows(tmp_path / "a.csv", [row]), kind))
    other = read_examples(DataSource(write_rows(tmp_path / "b.csv", [dict(reversed(row.items()))]), kind))
    assert texts_by_role(one) == {role: [f"a text as {role}"] for role in KINDS[kind].texts}
    assert one.digest() == other.digest()


def test_roles_may_be_mapped_to_other_columns(tmp_path):
    path = write_rows(tmp_path / "a.csv", [{"s1": "A.", "s2": "B.", "gold": "yes"}])
    examples = read_examples(DataSource(path, "labelled_pairs", {"premise": "s2", "hypothesis": "s1", "label": "gold"}))
    assert texts_by_role(examples) == {"premise": ["B."], "hypothesis": ["A."]}
    assert examples.labels == ("yes",)


def test_labels_have_the_order_given_or_that_of_their_names_or_values(tmp_path):
    path = write_rows(tmp_path / "a.csv", NLI)
    given_order = DataSource(path, "labelled_pairs", labels=["neutral", "entailment", "contradiction", "other"])
    assert read_examples(given_order).targets.tolist() == [1, 0, 2]
    assert read_examples(given_order).labels == ("neutral", "entailment", "contradiction", "other")
    rows = [{"premise": "A.", "hypothesis": "B.", "label": label} for label in (10, 2, "0", 2.0, "10")]
    numbers = read_examples(DataSource(write_rows(tmp_path / "b.jsonl", rows), "labelled_pairs"))
    assert (numbers.labels, numbers.targets.tolist()) == (("0", "2", "10"), [2, 1, 0, 1, 2])


def test_rows_with_an_ignored_label_are_left_out_even_if_their_texts_are_bad(tmp_path):
    rows = [*NLI, {"premise": None, "hypothesis": "x", "label": "-"}]
    source = DataSource(write_rows(tmp_path / "a.jsonl", rows), "labelled_pairs", ignore_labels=["-", "neutral"])
    examples = read_examples(source)
    assert (len(examples), examples.labels) == (2, ("contradiction", "entailment"))


def scored(folder, scores, name="a.jsonl"):
    return write_rows(folder / name, [{"text1": "A.", "text2": f"B{i}.", "score": s} for i, s in enumerate(scores)])


@pytest.mark.parametrize(("ends", "scores", "scaled"), [
    ((0, 1), [0, "0.5", 1.0], [0, 0.5, 1]),
    ((0, 5), ["2.5", 5, 0], [0.5, 1, 0]),
    ((-1, 1), [-1, 0, "1e0"], [0, 0.5, 1]),
    ((1, 5), [3, " 2 ", 5], [0.5, 0.25, 1]),
])  # fmt: skip
def test_scores_are_scaled_from_their_range_to_one(tmp_path, ends, scores, scaled):
    examples = read_examples(DataSource(scored(tmp_path, scores), "scored_pairs", score_range=ends))
    assert examples.targets.dtype == np.float32
    assert examples.targets.tolist() == scaled
    assert examples.labels == ()


@pytest.mark.parametrize(("top", "ends"), [(1, (0, 5)), (0.2, (0, 1)), (5, (0, 100)), (-0.6, (-1, 1))])
def test_a_range_of_which_only_the_bottom_is_used_is_refused(tmp_path, top, ends):
    path = scored(tmp_path, [min(top, ends[0] + 0.01 * i) for i in range(19)] + [top])
    message = rf"highest of 20 scores in .*a.jsonl is {top:g}, .* range is probably wrong. .*--score-range"
    with pytest.raises(InputError, match=message):
        read_examples(DataSource(path, "scored_pairs", score_range=ends))
    few = scored(tmp_path, [top] * 19, "few.jsonl")
    assert len(read_examples(DataSource(few, "scored_pairs", score_range=ends))) == 19


def test_the_range_that_is_suggested_holds_the_scores(tmp_path):
    with pytest.raises(InputError, match=r"--score-range 0 5 .*, or score_range = \[0, 5\] in a recipe"):
        read_examples(DataSource(scored(tmp_path, [i / 4 for i in range(21)]), "scored_pairs", score_range=(0, 50)))


def test_marks_are_zero_or_one_in_many_spellings(tmp_path):
    spellings = [0, 1, True, False, "1", "0", "True", "false", 1.0, "0.0"]
    rows = [{"text1": "A.", "text2": f"B{i}.", "label": label} for i, label in enumerate(spellings)]
    examples = read_examples(DataSource(write_rows(tmp_path / "a.jsonl", rows), "marked_pairs"))
    assert examples.targets.dtype == np.float32
    assert examples.targets.tolist() == [0, 1, 1, 0, 1, 0, 1, 0, 1, 0]


def test_ranked_examples_have_no_negatives_unless_there_is_a_column_of_them(tmp_path):
    rows = [{"anchor": "A.", "positive": "B.", "other": "C.", "more": "A."}]
    path = write_rows(tmp_path / "a.csv", rows)
    assert list(read_examples(DataSource(path, "ranked")).indices) == ["anchor", "positive"]
    several = read_examples(DataSource(path, "ranked", {"negative": ["other", "more"]}))
    assert several.indices["negative"].tolist() == [[2, 0]]
    single = read_examples(DataSource(path, "ranked", {"negative": "other"}))
    assert single.indices["negative"].tolist() == [[2]]
    named = write_rows(tmp_path / "b.csv", [{"anchor": "A.", "positive": "B.", "negative": "C."}])
    assert read_examples(DataSource(named, "ranked")).indices["negative"].tolist() == [[2]]
    assert list(read_examples(DataSource(named, "ranked", {"anchor": "negative"})).indices) == ["anchor", "positive"]


@pytest.mark.parametrize("format", ["jsonl", "parquet"])
def test_a_column_may_hold_a_list_of_negatives(tmp_path, format):
    rows = [{"anchor": "A.", "positive": "B.", "negative": ["C.", "D."]}] * 2
    examples = read_examples(DataSource(write_rows(tmp_path / f"a.{format}", rows), "ranked"))
    assert texts_by_role(examples)["negative"] == [["C.", "D."]] * 2
    rows.append({"anchor": "A.", "positive": "B.", "negative": ["C."]})
    path = write_rows(tmp_path / f"b.{format}", rows)
    with pytest.raises(
        RowError, match=r"3: the row has 1 negatives, but the first row has 2. Use the same number in every row"
    ):
        read_examples(DataSource(path, "ranked"))


def test_plain_lines_are_examples_of_texts(tmp_path):
    (tmp_path / "a.txt").write_text("one\ntwo\none\n")
    examples = read_examples(DataSource(tmp_path / "a.txt", "texts"))
    assert (examples.texts, examples.indices["text"].tolist()) == (["one", "two"], [0, 1, 0])
    with pytest.raises(InputError, match="no column for the roles anchor, positive, negative of triplets"):
        read_examples(DataSource(tmp_path / "a.txt", "triplets"))


BAD_ROWS = {
    "unknown label": (
        {"premise": "A", "hypothesis": "B", "label": "neutrall"},
        DataSource("-", "labelled_pairs", labels=("neutral", "entailment")),
        r"line 3: unknown label 'neutrall'. Did you mean 'neutral'\? Known labels: neutral, entailment. "
        r".*ignore_labels \(--ignore-label neutrall\)",
    ),
    "null label": (
        {"premise": "A", "hypothesis": "B", "label": None},
        DataSource("-", "labelled_pairs"),
        "line 3: the label is null. Write a string or an integer",
    ),
    "broken number as label": (
        {"premise": "A", "hypothesis": "B", "label": 1.5},
        DataSource("-", "labelled_pairs"),
        "line 3: the label is 1.5",
    ),
    "empty label": (
        {"premise": "A", "hypothesis": "B", "label": " "},
        DataSource("-", "labelled_pairs"),
        "line 3: the label is empty",
    ),
    "null text": (
        {"premise": None, "hypothesis": "B", "label": "x"},
        DataSource("-", "labelled_pairs"),
        "line 3: 'premise' is null, not a text. Write a string",
    ),
    "number as text": (
        {"premise": "A", "hypothesis": 7, "label": "x"},
        DataSource("-", "labelled_pairs"),
        r"line 3: 'hypothesis' is a int \(7\), not a text",
    ),
    "lone surrogate": (
        {"premise": "A", "hypothesis": "\ud800", "label": "x"},
        DataSource("-", "labelled_pairs"),
        "line 3: 'hypothesis' holds a lone surrogate",
    ),
    "missing key": (
        {"premise": "A", "label": "x"},
        DataSource("-", "labelled_pairs"),
        "line 3 has no column 'hypothesis', only: premise, label",
    ),
    "text as score": (
        {"text1": "A", "text2": "B", "score": "high"},
        DataSource("-", "scored_pairs"),
        "line 3: the score is 'high', not a number. Write a number",
    ),
    "true as score": (
        {"text1": "A", "text2": "B", "score": True},
        DataSource("-", "scored_pairs"),
        "line 3: the score is True, not a number",
    ),
    "null as score": (
        {"text1": "A", "text2": "B", "score": None},
        DataSource("-", "scored_pairs"),
        "line 3: the score is null, not a number",
    ),
    "nan as score": (
        {"text1": "A", "text2": "B", "score": "NaN"},
        DataSource("-", "scored_pairs"),
        "line 3: the score is 'NaN', not a number",
    ),
    "score out of range": (
        {"text1": "A", "text2": "B", "score": 7.5},
        DataSource("-", "scored_pairs"),
        r"line 3: the score 7.5 is not in the range 0 to 5. Set the score range: --score-range 0 10 \(dev files: ",
    ),
    "endless score": (
        {"text1": "A", "text2": "B", "score": "inf"},
        DataSource("-", "scored_pairs"),
        "line 3: the score inf is not in the range 0 to 5. .* --score-range LOW HIGH",
    ),
    "two as mark": (
        {"text1": "A", "text2": "B", "label": 2},
        DataSource("-", "marked_pairs"),
        "line 3: the label is 2, not 0 or 1. For class names, use the kind labelled_pairs",
    ),
    "list as negative": (
        {"anchor": "A", "positive": "B", "negative": ["C"]},
        DataSource("-", "triplets"),
        r"line 3: 'negative' is a list \(\['C'\]\), not a text",
    ),
    "null among negatives": (
        {"anchor": "A", "positive": "B", "negative": [None]},
        DataSource("-", "ranked"),
        "line 3: 'negative' is null, not a text",
    ),
}
GOOD_TARGETS = {"label": 1, "score": 0.5}


@pytest.mark.parametrize("case", BAD_ROWS)
def test_a_bad_row_is_refused_with_its_place(tmp_path, case):
    row, source, message = BAD_ROWS[case]
    kind = KINDS[source.kind]
    good = {role: GOOD_TARGETS.get(role, "A text.") for role in kind.roles}
    if source.labels:
        good["label"] = source.labels[0]
    path = write_rows(tmp_path / "a.jsonl", [good, good, row])
    with pytest.raises(RowError, match=f"a.jsonl, {message}"):
        read_examples(DataSource(path, source.kind, labels=source.labels))


def test_empty_files_and_files_of_ignored_rows_are_refused(tmp_path):
    (tmp_path / "none.csv").write_text("")
    (tmp_path / "head.csv").write_text("premise,hypothesis,label\n")
    for name in ("none.csv", "head.csv"):
        with pytest.raises(InputError, match=f"{name} has no rows. Add at least one row"):
            read_examples(DataSource(tmp_path / name, "labelled_pairs"))
    source = DataSource(write_rows(tmp_path / "a.csv", NLI[:1]), "labelled_pairs", ignore_labels=("entailment",))
    with pytest.raises(InputError, match=r"All 1 rows of .*a.csv have an ignored label: entailment. Remove labels"):
        read_examples(source)


def test_a_missing_column_is_named_with_its_role_and_how_to_map_it(tmp_path):
    path = write_rows(tmp_path / "a.csv", [{"id": "1", "sentence1": "A.", "sentence2": "B.", "label": "x"}])
    message = (
        r"a.csv has no column for the roles premise, hypothesis of labelled_pairs; its columns are: id, sentence1, "
        r'sentence2, label. Map it: columns = \{premise = "sentence1", hypothesis = "sentence2"\} in a recipe, '
        r"--columns premise=sentence1 --columns hypothesis=sentence2 on the command line"
    )
    with pytest.raises(InputError, match=message):
        read_examples(DataSource(path, "labelled_pairs"))
    mapped = DataSource(path, "labelled_pairs", {"premise": "sentense1", "hypothesis": "sentence2"})
    with pytest.raises(InputError, match=r"role premise \(mapped to 'sentense1'\) .*premise=sentence1 on the command"):
        read_examples(mapped)
    with pytest.raises(InputError, match=r"role score of scored_pairs; .*--columns score=label on"):
        read_examples(DataSource(path, "scored_pairs", {"text1": "sentence1", "text2": "sentence2"}))
    with pytest.raises(InputError, match="--columns text=COLUMN"):
        read_examples(DataSource(path, "texts"))


def test_a_column_that_the_file_has_twice_is_refused(tmp_path):
    (tmp_path / "a.csv").write_text("text,text\na,b\n")
    with pytest.raises(InputError, match="several columns named 'text'"):
        read_examples(DataSource(tmp_path / "a.csv", "texts"))


BAD_SOURCES = {
    "kind": (dict(kind="triplet"), r"Unknown kind of examples 'triplet'. Did you mean 'triplets'\?"),
    "role": (dict(columns={"premis": "a"}), r"Unknown role of labelled_pairs: 'premis'. Did you mean 'premise'\?"),
    "column twice": (
        dict(columns={"premise": "a", "hypothesis": "a"}),
        "'a' is used twice, for the roles 'premise' and",
    ),
    "column of another role": (
        dict(columns={"premise": "hypothesis"}),
        "'hypothesis' is used twice, for the roles 'premise'",
    ),
    "negatives twice": (
        dict(kind="ranked", columns={"negative": ("a", "a")}),
        "'a' is used twice, for the roles 'negative'",
    ),
    "several columns": (
        dict(columns={"premise": ("a", "b")}),
        "'premise' of labelled_pairs is mapped to 2 columns: a, b",
    ),
    "no column": (dict(columns={"premise": ()}), r"role 'premise' must be a name or a list of names, got \(\)"),
    "empty column": (dict(columns={"premise": ""}), "role 'premise' must be a name or a list of names, got ''"),
    "number as column": (dict(columns={"premise": 3}), "role 'premise' must be a name or a list of names, got 3"),
    "labels as a string": (dict(labels="abc"), r"labels must be a list of names, got 'abc'. Write \['abc'\]"),
    "no labels": (dict(labels=()), "labels has no names"),
    "label twice": (dict(labels=("a", "a")), "labels has 'a' twice"),
    "label ignored": (dict(labels=("a",), ignore_labels=("a",)), "labels has 'a', which is also ignored"),
    "labels of scores": (dict(kind="scored_pairs", labels=("a",)), "scored_pairs have no class labels"),
    "ignored of scores": (dict(kind="scored_pairs", ignore_labels=("a",)), "scored_pairs have no labels"),
    "range of labels": (dict(score_range=(0, 1)), "labelled_pairs have no scores, but score_range"),
    "range upside down": (dict(kind="scored_pairs", score_range=(5, 0)), "a higher one, both finite, got 5 and 0"),
    "empty range": (dict(kind="scored_pairs", score_range=(1, 1)), "a higher one, both finite, got 1 and 1"),
    "endless range": (
        dict(kind="scored_pairs", score_range=(0, float("inf"))),
        "a higher one, both finite, got 0 and inf",
    ),
    "one end": (dict(kind="scored_pairs", score_range=(5,)), r"must be two numbers, got \(5,\)"),
    "range of words": (dict(kind="scored_pairs", score_range=("a", "b")), "must be two numbers"),
}


@pytest.mark.parametrize("case", BAD_SOURCES)
def test_a_source_that_makes_no_sense_is_refused_before_any_reading(case):
    given, message = BAD_SOURCES[case]
    with pytest.raises((InputError, UnknownNameError), match=message):
        DataSource(**{"file": "a.csv", "kind": "labelled_pairs", **given})


def test_lists_of_a_recipe_become_tuples():
    source = DataSource("a.csv", "ranked", {"negative": ["a", "b"], "anchor": ["c"]})
    assert source.columns == {"negative": ("a", "b"), "anchor": "c"}
    assert DataSource("a.csv", "scored_pairs", score_range=[0, 5]).score_range == (0.0, 5.0)
    assert DataSource("a.csv", "labelled_pairs", labels=[0, 1]).labels == ("0", "1")


@pytest.mark.parametrize(("columns", "kind"), [
    (["label", "premise", "hypothesis"], "labelled_pairs"),
    (["label", "score", "text1", "text2"], "scored_pairs"),
    (["text1", "text2", "label"], "marked_pairs"),
    (["anchor", "positive", "negative"], "triplets"),
    (["positive", "anchor"], "ranked"),
    (["label", "text"], "texts"),
])  # fmt: skip
def test_the_kind_is_guessed_from_the_names_of_the_columns(columns, kind):
    assert guess_kind(columns, source="a.csv").name == kind


def test_columns_that_fit_no_kind_are_refused_with_all_kinds():
    with pytest.raises(
        InputError, match=r"columns of a.csv match no kind .*: query, doc. .*triplets \(anchor, positive"
    ):
        guess_kind(["query", "doc"], source="a.csv")


def test_the_digest_is_that_of_another_process_and_changes_with_everything_trained_on(tmp_path):
    path = write_rows(tmp_path / "a.csv", NLI)
    base = read_examples(DataSource(path, "labelled_pairs"))
    program = (
        "import sys; from twinvec.data.roles import DataSource; from twinvec.data.examples import read_examples;"
        "print(read_examples(DataSource(sys.argv[1], 'labelled_pairs')).digest())"
    )
    command = [sys.executable, "-c", program, str(path)]
    assert subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip() == base.digest()
    fields = {name: getattr(base, name) for name in ("name", "kind", "texts", "indices", "targets", "labels")}
    changes = [
        {"kind": "marked_pairs"},
        {"texts": ["A cat sits", ".An animal sits.", "Größe 🙂"]},
        {"indices": {**base.indices, "premise": np.array([0, 0, 1])}},
        {"indices": {"premise": base.indices["hypothesis"], "hypothesis": base.indices["premise"]}},
        {"targets": np.array([0, 2, 1])},
        {"targets": None},
        {"labels": ("a", "b", "c")},
    ]
    digests = {Examples(**{**fields, **change}).digest() for change in changes}
    assert len(digests | {base.digest()}) == len(changes) + 1
    assert Examples(**{**fields, "name": "other"}).digest() == base.digest()


def test_reading_examples_loads_no_torch():
    program = "import sys, twinvec.data; print([n for n in ('torch', 'pyarrow', 'onnx') if n in sys.modules])"
    result = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert result.stdout.strip() == "[]"
