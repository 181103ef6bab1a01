"""``twinvec index`` and ``twinvec search``: what a person types, what is printed, and how they refuse."""

from __future__ import annotations

import json

import pytest
from click.testing import CliRunner

from tiny import write_tiny_model
from twinvec.cli import main
from twinvec.collection import Collection

pytest.importorskip("lancedb")

ROWS = [
    {"id": "a", "text": "the cat sits", "year": "1990", "genre": "pets"},
    {"id": "b", "text": "a dog runs", "year": "1991", "genre": "pets"},
    {"id": "c", "text": "the river and the rain", "year": "2003", "genre": ""},
]


@pytest.fixture(autouse=True)
def tiny_model(monkeypatch, tiny_bert):
    monkeypatch.setenv("TWINVEC_MODEL", str(tiny_bert))


def run(*arguments, stdin=None):
    return CliRunner().invoke(main, [str(argument) for argument in arguments], input=stdin, prog_name="twinvec")


def write_csv(path, rows=ROWS):
    lines = [",".join(rows[0]), *(",".join(row.values()) for row in rows)]
    path.write_text("\n".join(lines) + "\n")
    return path


def search(*arguments):
    result = run("search", *arguments)
    assert result.exit_code == 0, result.stderr
    return [json.loads(line) for line in result.stdout.splitlines()]


def test_a_second_run_embeds_what_has_changed_and_nothing_else(tmp_path):
    source, folder = write_csv(tmp_path / "news.csv"), tmp_path / "notes"
    first = run("index", source, "--out", folder, "--number", "year")
    assert (first.exit_code, first.stdout) == (0, "")
    assert f"{folder}: 3 added, 0 replaced, 0 unchanged; 3 embedded, in " in first.stderr
    assert "It holds 3 texts." in first.stderr
    assert "0 added, 0 replaced, 3 unchanged; 0 embedded" in run("index", source, "--out", folder).stderr
    changed = [{**ROWS[0], "year": "1980"}, {**ROWS[1], "text": "a dog sleeps"}, {**ROWS[0], "id": "d"}]
    again = run("index", write_csv(source, changed), "--out", folder)
    assert "1 added, 2 replaced, 0 unchanged; 1 embedded" in again.stderr
    assert "It holds 4 texts." in again.stderr
    assert Collection.open(folder).columns == {"year": "float", "genre": "text"}
    assert Collection.open(folder).get(["c"])["c"].metadata == {"year": 2003.0}  # an empty field is none


def test_every_format_of_a_file_gives_the_same_collection(tmp_path):
    arrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    parquet.write_table(arrow.table({key: [row[key] for row in ROWS] for key in ROWS[0]}), tmp_path / "x.parquet")
    (tmp_path / "x.jsonl").write_text("".join(json.dumps(row) + "\n" for row in ROWS))
    (tmp_path / "x.tsv").write_text("\n".join(["\t".join(ROWS[0]), *("\t".join(row.values()) for row in ROWS)]))
    write_csv(tmp_path / "x.csv")
    found = []
    for ending in ("csv", "tsv", "jsonl", "parquet"):
        assert run("index", tmp_path / f"x.{ending}", "-o", tmp_path / ending).exit_code == 0
        found.append(sorted((e.id, e.text, tuple(e.metadata.items())) for e in Collection.open(tmp_path / ending)))
    assert found[0] == found[1] == found[2] == found[3] and len(found[0]) == 3


def test_plain_lines_are_known_by_their_text_and_repeats_are_counted(tmp_path):
    (tmp_path / "a.txt").write_text("the cat\na dog\nthe cat\n")
    folder = tmp_path / "c"
    assert (
        "2 added, 0 replaced, 0 unchanged, 1 repeated; 2 embedded"
        in run("index", tmp_path / "a.txt", "--out", folder).stderr
    )
    assert (
        "1 added, 0 replaced, 1 unchanged; 1 embedded"
        in run("index", "-", "-o", folder, stdin="a bird\na dog\n").stderr
    )


def test_columns_can_be_chosen(tmp_path):
    rows = [{"key": "1", "title": "cat", "body": "the cat sits", "extra": "x"}]
    source = write_csv(tmp_path / "a.csv", rows)
    run("index", source, "-o", tmp_path / "one", "--column", "body", "--id-column", "key", "--metadata", "title")
    assert [(e.id, e.text, e.metadata) for e in Collection.open(tmp_path / "one")] == [
        ("1", "the cat sits", {"title": "cat"})
    ]
    run("index", source, "-o", tmp_path / "two", "--column", "title", "--no-metadata")
    assert [(e.text, e.metadata) for e in Collection.open(tmp_path / "two")] == [("cat", {})]


def test_search_prints_the_best_texts_in_every_mode(tmp_path):
    folder = tmp_path / "c"
    run("index", write_csv(tmp_path / "a.csv"), "-o", folder, "--number", "year")
    best = search(folder, "the cat sits", "-k", 1)
    assert best == [{"score": 1.0, "id": "a", "text": "the cat sits", "metadata": {"year": 1990.0, "genre": "pets"}}]
    assert [row["id"] for row in search(folder, "raining", "--mode", "text")] == ["c"]
    assert [row["id"] for row in search(folder, "dog", "--mode", "hybrid", "-k", 1)] == ["b"]
    assert [row["id"] for row in search(folder, "the cat sits", "--where", "genre = 'pets' and year > 1990")] == ["b"]


def test_search_in_a_file_needs_no_collection(tmp_path, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "lancedb", None)
    source = write_csv(tmp_path / "a.csv")
    assert search(source, "a dog runs", "-k", 1) == [{"score": 1.0, "id": "1", "text": "a dog runs"}]
    assert sorted(row["id"] for row in search(source, "the cat sits", "-k", 99)) == ["0", "1", "2"]
    result = run("search", "-", "a dog", "-k", 1, stdin="the cat\na dog\n")
    assert json.loads(result.stdout)["text"] == "a dog"


@pytest.mark.parametrize(
    ("content", "options", "message"),
    [
        ("id,text\n1,a\n1,b\n", [], "line 3 has the same id '1' as line 2"),
        ("id,text\n,a\n", [], "line 2: the id is ''"),
        ("id,text,year\n1,a,soon\n", ["--number", "year"], "line 2: 'year' is 'soon', not a number"),
        ("id,text,year\n1,a,nan\n", ["--number", "year"], "line 2: 'year' is 'nan', not a number"),
        ("id,text\n1,a\n", ["--number", "yaer"], "Unknown column"),
        ("id,text\n1,a\n", ["--metadata", "genre"], "Unknown column in"),
        ("id,text\n1,a\n", ["--id-column", "key"], "Unknown column in"),
        ("id,text,vector\n1,a,3\n", [], "line 2 to 2: metadata[0] has the reserved column name 'vector'"),
        ("id,text\n1,a\n", ["--language", "English", "-m", "/nowhere"], "/nowhere"),
        ("id,text\n1,a\n", ["--language", "Klingon"], "Unknown language 'Klingon'"),
        ("", [], "has no texts"),
    ],
)
def test_rows_that_cannot_be_are_refused_in_one_line(tmp_path, content, options, message):
    (tmp_path / "a.csv").write_text(content)
    result = run("index", tmp_path / "a.csv", "-o", tmp_path / "c", *options)
    assert result.exit_code == 1
    assert message in result.stderr and "Traceback" not in result.stderr
    assert not (tmp_path / "c").exists()


def test_rows_that_do_not_fit_the_columns_leave_the_collection_as_it_was(tmp_path):
    folder = tmp_path / "c"
    run("index", write_csv(tmp_path / "a.csv"), "-o", folder, "--number", "year")
    before = search(folder, "cat")
    (tmp_path / "b.jsonl").write_text('{"id": "z", "text": "x", "genre": 3}\n')
    result = run("index", tmp_path / "b.jsonl", "-o", folder)
    assert result.exit_code == 1 and "'genre'] is 3, of type int, but the column has the type text" in result.stderr
    assert search(folder, "cat") == before


def test_a_search_that_finds_nothing_says_so_and_prints_nothing(tmp_path):
    run("index", "-", "-o", tmp_path / "c", stdin="")
    result = run("search", tmp_path / "c", "cat")
    assert (result.exit_code, result.stdout, result.stderr) == (0, "", "No results.\n")


def test_usage_errors_of_search_are_refused(tmp_path):
    run("index", write_csv(tmp_path / "a.csv"), "-o", tmp_path / "c")
    for arguments, code, message in [
        ((tmp_path / "c", "x", "--where", "yaer > 1"), 1, "Did you mean 'year'?"),
        ((tmp_path / "c", "x", "--column", "text"), 2, "are for files"),
        ((tmp_path / "a.csv", "x", "--mode", "text"), 2, "require a collection"),
        ((tmp_path / "nothing", "x"), 1, "No collection or file"),
        ((tmp_path, "x"), 1, "There is no collection at"),
    ]:
        result = run("search", *arguments)
        assert (result.exit_code, message in result.stderr) == (code, True), result.stderr


def test_another_model_is_refused_without_re_embedding(tmp_path, monkeypatch):
    source, folder = write_csv(tmp_path / "a.csv"), tmp_path / "c"
    other = write_tiny_model(tmp_path / "other", seed=1)
    run("index", source, "-o", folder)
    before = search(folder, "a cat")
    monkeypatch.setenv("TWINVEC_MODEL", str(other))  # says which to take for new collections only
    assert search(folder, "a cat") == before
    for command in (("index", source, "-o", folder), ("search", folder, "a cat")):
        result = run(*command, "-m", other)
        assert result.exit_code == 1 and "--re-embed" in result.stderr and "other" in result.stderr
    result = run("index", source, "-o", folder, "-m", other, "--re-embed")
    assert "Embedding all 3 texts of" in result.stderr and "3 unchanged; 0 embedded" in result.stderr
    assert search(folder, "a cat") != before
    assert search(folder, "a cat", "--threads", 1, "--precision", "float32") == search(folder, "a cat")


NESTED = "[" * 900 + "]" * 900
BAD_ROWS = {
    f'{{"text": "a", "m": {NESTED}}}': "of type list",
    f'{{"text": {NESTED}}}': "is a list",
    '{"text": "a", "m": "' + "\\ud800" + '"}': "lone surrogate",
    '{"text": "a", "m": ' + "1" * 4000 + "}": "does not fit in 64 bits",
    '{"text": "a", "id": true}': "the id is True",
    '{"text": "a", "id": 1.5}': "the id is 1.5",
    '{"text": "a", "": 1}': "has the invalid column name ''",
    "[" * 100_000: "is not JSON",
}


@pytest.mark.parametrize("row", BAD_ROWS, ids=BAD_ROWS.values())
def test_a_row_of_jsonl_that_cannot_be_kept_is_refused_and_makes_no_collection(tmp_path, row):
    (tmp_path / "a.jsonl").write_text(row + "\n")
    result = run("index", tmp_path / "a.jsonl", "-o", tmp_path / "c")
    assert result.exit_code == 1 and BAD_ROWS[row] in result.stderr
    assert not (tmp_path / "c").exists()


def test_a_number_of_many_digits_does_not_fit_a_column_of_whole_numbers(tmp_path):
    (tmp_path / "a.jsonl").write_text('{"text": "a", "n": 1}\n')
    assert run("index", tmp_path / "a.jsonl", "-o", tmp_path / "c").exit_code == 0
    write_csv(tmp_path / "b.csv", [{"text": "b", "n": "9" * 400}])
    result = run("index", tmp_path / "b.csv", "-o", tmp_path / "c")
    assert result.exit_code == 1 and "does not fit in 64 bits" in result.stderr


def test_a_filter_that_fails_on_some_texts_is_an_error_of_the_call(tmp_path):
    folder = tmp_path / "c"
    (tmp_path / "a.jsonl").write_text('{"text": "the cat", "n": 0}\n')
    assert run("index", tmp_path / "a.jsonl", "-o", folder).exit_code == 0
    result = run("search", folder, "cat", "--where", "1 / n > 0")
    assert result.exit_code == 1 and "fails for some texts: Divide by zero" in result.stderr
    assert "damaged" not in result.stderr


def test_a_field_over_128_kb_is_indexed(tmp_path):
    write_csv(tmp_path / "a.csv", [{"text": "the cat", "more": "word " * 40_000}])
    assert run("index", tmp_path / "a.csv", "-o", tmp_path / "c").exit_code == 0
