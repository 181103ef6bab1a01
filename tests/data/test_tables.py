"""Reading texts and writing vectors: every format, and every way a file can be wrong."""

import csv
import gzip
import json
import sys
from io import BufferedReader, BytesIO, TextIOWrapper

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from twinvec.data.read import open_table, read_rows, read_texts
from twinvec.data.write import npy_header, write_rows, write_vectors
from twinvec.errors import InputError, MissingExtraError, RowError, UnknownNameError

TEXTS = ["Hello, world.", "", 'She said "no".', "Größe 🙂"]


def write_file(folder, format, texts):
    """A file of the format that holds the texts."""
    path = folder / f"texts.{'txt' if format == 'lines' else format}"
    if format == "lines":
        path.write_text("".join(f"{text}\n" for text in texts), encoding="utf-8")
    elif format == "csv":
        quoted = ['"' + text.replace('"', '""') + '"' for text in texts]
        path.write_text("id,text\n" + "".join(f"{i},{q}\n" for i, q in enumerate(quoted)), encoding="utf-8")
    elif format == "tsv":
        path.write_text("id\ttext\n" + "".join(f"{i}\t{t}\n" for i, t in enumerate(texts)), encoding="utf-8")
    elif format == "jsonl":
        path.write_text("".join(json.dumps({"id": 1, "text": t}) + "\n" for t in texts), encoding="utf-8")
    else:
        arrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
        parquet.write_table(arrow.table({"id": list(range(len(texts))), "text": texts}), path)
    return path


FORMATS = ["lines", "csv", "tsv", "jsonl", "parquet"]


@pytest.mark.parametrize("format", FORMATS)
def test_every_format_gives_the_same_texts(tmp_path, format):
    assert list(read_texts(write_file(tmp_path, format, TEXTS))) == TEXTS


@pytest.mark.parametrize("format", FORMATS[:4])
def test_text_formats_may_be_gzipped(tmp_path, format):
    plain = write_file(tmp_path, format, TEXTS)
    packed = tmp_path / f"{plain.name}.gz"
    packed.write_bytes(gzip.compress(plain.read_bytes()))
    assert list(read_texts(packed)) == TEXTS


@pytest.mark.parametrize("format", FORMATS[:4])
def test_text_formats_may_come_from_standard_input(tmp_path, monkeypatch, format):
    data = write_file(tmp_path, format, TEXTS).read_bytes()
    monkeypatch.setattr(sys, "stdin", TextIOWrapper(BytesIO(data)))
    assert list(read_texts("-", format=format)) == TEXTS


def test_standard_input_may_be_gzipped(monkeypatch):
    data = BufferedReader(BytesIO(gzip.compress("Größe\n".encode())))
    monkeypatch.setattr(sys, "stdin", TextIOWrapper(data))
    assert list(read_texts("-")) == ["Größe"]


@pytest.mark.parametrize("format", FORMATS[1:])
def test_a_column_is_chosen_by_its_name(tmp_path, format):
    if format == "parquet" or format == "jsonl":  # their ids are numbers
        with pytest.raises(InputError, match="'id' is a int"):
            list(read_texts(write_file(tmp_path, format, TEXTS), "id"))
    else:
        assert list(read_texts(write_file(tmp_path, format, TEXTS), "id")) == ["0", "1", "2", "3"]


def test_the_only_column_needs_no_name(tmp_path):
    (tmp_path / "a.csv").write_text("question\nWhy?\n")
    assert list(read_texts(tmp_path / "a.csv")) == ["Why?"]


def test_windows_line_ends_and_a_byte_order_mark_are_no_part_of_a_text(tmp_path):
    (tmp_path / "a.txt").write_bytes(b"\xef\xbb\xbfone\r\ntwo\r\n")
    assert list(read_texts(tmp_path / "a.txt")) == ["one", "two"]


def test_empty_lines_are_texts_and_only_a_line_feed_ends_a_line(tmp_path):
    (tmp_path / "a.txt").write_text("one\n\n\u2028two\x0cthree\n", encoding="utf-8", newline="")
    assert list(read_texts(tmp_path / "a.txt")) == ["one", "", "\u2028two\x0cthree"]


def test_a_quoted_field_of_csv_may_span_lines(tmp_path):
    (tmp_path / "a.csv").write_text('text,n\n"two\nlines",1\n\n"x",2\n')
    assert list(read_texts(tmp_path / "a.csv")) == ["two\nlines", "x"]


def test_a_quote_in_tsv_is_a_character(tmp_path):
    (tmp_path / "a.tsv").write_text('text\tn\n"a" b\t1\n6" nail\t2\n')
    assert list(read_texts(tmp_path / "a.tsv")) == ['"a" b', '6" nail']


def numbers_of(format):
    return ["0", "1", "2", "3"] if format in ("csv", "tsv") else [1] * 4 if format == "jsonl" else [0, 1, 2, 3]


@pytest.mark.parametrize("format", FORMATS[1:])
def test_rows_hold_the_columns_asked_for_in_that_order_and_their_place(tmp_path, format):
    path = write_file(tmp_path, format, TEXTS)
    rows = list(read_rows(path, ["text", "id"]))
    assert [list(row.values.items()) for row in rows] == [
        [("text", text), ("id", number)] for text, number in zip(TEXTS, numbers_of(format), strict=True)
    ]
    unit, first = {"jsonl": ("line", 1), "parquet": ("row", 1)}.get(format, ("line", 2))
    assert [row.where for row in rows] == [f"{path}, {unit} {first + i}" for i in range(4)]
    assert [row.number for row in rows] == [first + i for i in range(4)]
    assert [row.values for row in read_rows(path, ["id"])] == [{"id": number} for number in numbers_of(format)]


@pytest.mark.parametrize("format", FORMATS[1:])
def test_the_columns_of_a_file_are_known_before_its_rows_are_read(tmp_path, format):
    table = open_table(write_file(tmp_path, format, TEXTS))
    assert table.columns == ("id", "text")
    assert [row.values["text"] for row in table.rows(["text"])] == TEXTS


@pytest.mark.parametrize("format", FORMATS[1:4])
def test_rows_may_be_gzipped_or_come_from_standard_input(tmp_path, monkeypatch, format):
    data = write_file(tmp_path, format, TEXTS).read_bytes()
    (tmp_path / f"a.{format}.gz").write_bytes(gzip.compress(data))
    assert [row.values["text"] for row in read_rows(tmp_path / f"a.{format}.gz", ["text"])] == TEXTS
    monkeypatch.setattr(sys, "stdin", TextIOWrapper(BytesIO(data)))
    rows = list(read_rows("-", ["text"], format=format))
    assert [row.values["text"] for row in rows] == TEXTS
    assert rows[0].where.startswith("Standard input, line ")


def test_jsonl_and_parquet_rows_keep_their_types(tmp_path):
    arrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    row = {"a": None, "b": ["x", "y"], "c": 1.5, "d": True}
    (tmp_path / "a.jsonl").write_text(json.dumps(row))
    parquet.write_table(arrow.Table.from_pylist([row]), tmp_path / "a.parquet")
    for name in ("a.jsonl", "a.parquet"):
        assert next(read_rows(tmp_path / name, list(row))).values == row


def test_a_missing_column_is_named_with_the_file_and_the_nearest_one_at_once(tmp_path):
    (tmp_path / "a.csv").write_text("title,body\na,b\n")
    message = r"Unknown column in .*a.csv: 'titel'. Did you mean 'title'\? Choose from: body, title."
    with pytest.raises(UnknownNameError, match=message):
        read_rows(tmp_path / "a.csv", ["body", "titel"])
    with pytest.raises(
        InputError, match=r"columns must be a list of at least one name, got 'body'. Example: \[\"text\"\]"
    ):
        read_rows(tmp_path / "a.csv", "body")
    with pytest.raises(InputError, match=r"at least one name, got \[\]"):
        read_rows(tmp_path / "a.csv", [])


def test_plain_lines_are_rows_of_one_column_called_text(tmp_path):
    (tmp_path / "a.txt").write_text("one\n\n")
    assert [row.values for row in read_rows(tmp_path / "a.txt", ["text"])] == [{"text": "one"}, {"text": ""}]
    with pytest.raises(InputError, match="Plain lines have no columns, so there is no column 'premise' or 'label'"):
        read_rows(tmp_path / "a.txt", ["premise", "label"])


@pytest.mark.parametrize(("name", "data"), [("a.csv", ""), ("a.tsv", "text\n"), ("a.jsonl", "\n\n"), ("a.txt", "")])
def test_a_file_without_rows_is_refused_at_once(tmp_path, name, data):
    (tmp_path / name).write_text(data)
    with pytest.raises(InputError, match=f"{name} has no rows. Add at least one row"):
        read_rows(tmp_path / name, ["text"])


@pytest.mark.parametrize(("name", "data", "faults"), [
    ("a.csv", 'id,text\n1,a\n2\n3,"b" c\n4,d\n5,e,f\n6,g\n',
     ["wrong number of fields", "broken quotes, or a field over the size limit", "wrong number of fields"]),
    ("a.tsv", "id\ttext\n1\ta\n2\n4\td\n6\tg\n", ["wrong number of fields"]),
    ("a.jsonl", 'no\n{"id": 1, "text": "a"}\n[]\n{"id": 3}\n{"id": 4, "text": "d"}\n{"id": 6, "text": "g"}\n',
     ["not JSON", "not a JSON object", "missing column"]),
])  # fmt: skip
def test_an_open_table_goes_on_after_a_bad_row_but_readers_stop_there(tmp_path, name, data, faults):
    (tmp_path / name).write_text(data)
    rows = list(open_table(tmp_path / name).rows(["id", "text"]))
    assert [row.fault for row in rows if isinstance(row, RowError)] == faults
    assert [row.values["text"] for row in rows if not isinstance(row, RowError)] == ["a", "d", "g"]
    for read in (lambda: read_rows(tmp_path / name, ["text"]), lambda: read_texts(tmp_path / name)):
        with pytest.raises(RowError, match=f"{name}, line"):
            list(read())


def test_a_file_of_another_format_is_not_searched_for_objects_to_its_end(tmp_path):
    (tmp_path / "a.jsonl").write_text("no\n" * 30 + '{"text": "a"}\n')
    with pytest.raises(RowError, match="line 1 is not JSON"):
        open_table(tmp_path / "a.jsonl")


BAD_FILES = {
    "empty.txt": (b"", "empty.txt has no texts"),
    "empty.csv": (b"", "has no texts"),
    "header.csv": (b"text\n", "has no texts"),
    "latin.txt": (b"fine\nGr\xf6\xdfe\n", r"line 2: byte 3 \(0xf6\) is not UTF-8. Save the file as UTF-8"),
    "short.csv": (b"id,text\n1,a\n2\n", r"line 3: the row has 1 fields, but the header has 2 \(id, text\)"),
    "comma.csv": (b"id,text\n1,a, b\n", "Quote fields that contain the separator"),
    "quote.csv": (b'text\n"a" b\n', "line 2: .* Check the quotes"),
    "which.csv": (b"left,right\na,b\n", r"2 columns, none .*: left, right. Name the column"),
    "twice.csv": (b"text,text\na,b\n", "several columns named 'text'"),
    "broken.jsonl": (b'{"text": "a"}\n{"text": \n', "line 2 is not JSON: .* Write one JSON object per line"),
    "list.jsonl": (b'["a"]\n', "line 1 is a list, not an object"),
    "lacks.jsonl": (b'{"text": "a", "id": 1}\n{"id": 2}\n', "line 2 has no column 'text', only: id"),
    "nothing.jsonl": (b"{}\n", "line 1 is an empty object"),
    "null.jsonl": (b'{"text": null}\n', "line 1: 'text' is null, not a text"),
    "number.jsonl": (b'{"text": 7}\n', r"'text' is a int \(7\)"),
    "cut.txt.gz": (gzip.compress(b"hello\n" * 100)[:-9], "not complete gzip data"),
    "broken.parquet": (b"PAR1 no, not really", "cannot be read as parquet"),
    "notes.docx": (b"x", "Unknown extension '.docx' .* Set the format"),
    "README": (b"x", "has no extension"),
}


@pytest.mark.parametrize("name", BAD_FILES)
def test_a_bad_file_is_refused_with_place_and_remedy(tmp_path, name):
    if name.endswith(".parquet"):
        pytest.importorskip("pyarrow")
    data, message = BAD_FILES[name]
    (tmp_path / name).write_bytes(data)
    with pytest.raises(InputError, match=message):
        list(read_texts(tmp_path / name))


def test_missing_files_folders_and_unreadable_ones_are_refused(tmp_path):
    with pytest.raises(InputError, match=r"File not found: .*missing.txt"):
        read_texts(tmp_path / "missing.txt")
    with pytest.raises(InputError, match="is a folder"):
        read_texts(tmp_path, format="lines")


def test_wrong_names_are_refused_with_a_guess(tmp_path):
    (tmp_path / "a.csv").write_text("title,body\na,b\n")
    with pytest.raises(UnknownNameError, match=r"Unknown column 'titel'. Did you mean 'title'"):
        read_texts(tmp_path / "a.csv", "titel")
    with pytest.raises(UnknownNameError, match=r"Unknown format 'cvs'. Did you mean 'csv'"):
        read_texts(tmp_path / "a.csv", format="cvs")
    with pytest.raises(InputError, match="Plain lines have no columns"):
        read_texts(tmp_path / "a.csv", "title", format="lines")


def test_parquet_is_not_read_from_a_pipe():
    with pytest.raises(InputError, match="Save it to a file first"):
        read_texts("-", format="parquet")


@pytest.mark.parametrize("dtype", [np.float32, np.int8, np.uint8])
@pytest.mark.parametrize("n", [1, 10, 1000])
def test_npy_files_load_as_the_array_that_was_written(tmp_path, n, dtype):
    vectors = np.random.default_rng(0).integers(0, 100, size=(n, 6)).astype(dtype)
    written = write_vectors(((str(i), vector) for i, vector in enumerate(vectors)), tmp_path / "v.npy")
    loaded = np.load(tmp_path / "v.npy", mmap_mode="r")
    assert written == n
    assert loaded.dtype == dtype
    assert np.array_equal(loaded, vectors)


@given(st.integers(0, 10**15), st.integers(1, 100_000))
def test_the_npy_header_has_one_length_and_numpy_reads_it(n, width):
    header = npy_header(np.dtype(np.float32), (n, width))
    assert len(header) == 128
    stream = BytesIO(header)
    assert np.lib.format.read_magic(stream) == (1, 0)
    assert np.lib.format.read_array_header_1_0(stream) == ((n, width), False, np.dtype(np.float32))


@given(st.lists(st.floats(width=32, allow_nan=False, allow_infinity=False), min_size=1, max_size=5), st.text())
def test_jsonl_gives_back_the_same_bits(tmp_path_factory, numbers, text):
    text = text.encode("utf-8", "ignore").decode()  # without lone surrogates, which no encoder takes
    target = tmp_path_factory.mktemp("jsonl") / "v.jsonl"
    write_vectors([(text, np.array(numbers, dtype=np.float32))], target)
    row = json.loads(target.read_text(encoding="utf-8"))
    assert row["text"] == text
    assert np.array_equal(np.array(row["vector"], dtype=np.float32), np.array(numbers, dtype=np.float32))


@pytest.mark.parametrize("dtype", [np.float32, np.int8, np.uint8])
def test_parquet_holds_text_and_vectors_of_fixed_size(tmp_path, dtype, monkeypatch):
    parquet = pytest.importorskip("pyarrow.parquet")
    monkeypatch.setattr("twinvec.data.read.WRITE_ROWS", 3)
    vectors = np.arange(40).reshape(10, 4).astype(dtype)
    write_vectors([(f"t{i}", vector) for i, vector in enumerate(vectors)], tmp_path / "v.parquet")
    table = parquet.read_table(tmp_path / "v.parquet")
    assert table.column_names == ["text", "vector"]
    assert table["vector"].type.list_size == 4
    assert np.array_equal(np.array(table["vector"].to_pylist(), dtype=dtype), vectors)
    assert list(read_texts(tmp_path / "v.parquet")) == [f"t{i}" for i in range(10)]


def failing_rows(vectors):
    yield from vectors
    raise InputError("The third text is bad.")


@pytest.mark.parametrize("name", ["v.npy", "v.jsonl", "v.parquet"])
def test_an_error_during_writing_leaves_no_files(tmp_path, name):
    if name.endswith(".parquet"):
        pytest.importorskip("pyarrow")
    vectors = [("a", np.ones(3, np.float32)), ("b", np.ones(3, np.float32))]
    with pytest.raises(InputError, match="third text"):
        write_vectors(failing_rows(vectors), tmp_path / name)
    assert list(tmp_path.iterdir()) == []


def test_an_error_during_writing_keeps_the_old_file(tmp_path):
    (tmp_path / "v.npy").write_text("old")
    with pytest.raises(InputError):
        write_vectors(failing_rows([("a", np.ones(3, np.float32))]), tmp_path / "v.npy", replace=True)
    assert [path.read_text() for path in tmp_path.iterdir()] == ["old"]


def test_an_existing_file_is_replaced_only_on_demand(tmp_path):
    row = ("a", np.ones(3, np.float32))
    (tmp_path / "v.npy").write_text("old")
    with pytest.raises(InputError, match=r"exists already. .* --force"):
        write_vectors([row], tmp_path / "v.npy")
    write_vectors([row], tmp_path / "v.npy", replace=True)
    assert np.load(tmp_path / "v.npy").shape == (1, 3)


def test_targets_that_cannot_be_written_are_refused(tmp_path):
    row = ("a", np.ones(3, np.float32))
    with pytest.raises(InputError, match="There is no folder"):
        write_vectors([row], tmp_path / "nowhere" / "v.npy")
    with pytest.raises(InputError, match=r"extension '.txt' .* Use one of these extensions for the output: .npy"):
        write_vectors([row], tmp_path / "v.txt")
    with pytest.raises(InputError, match="no vectors to write"):
        write_vectors([], tmp_path / "v.npy")
    (tmp_path / "d.npy").mkdir()
    with pytest.raises(InputError, match="is a folder"):
        write_vectors([row], tmp_path / "d.npy", replace=True)


def test_parquet_without_pyarrow_says_what_to_install(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    (tmp_path / "a.parquet").write_bytes(b"PAR1")
    with pytest.raises(MissingExtraError, match=r"pip install 'twinvec\[tables\]'"):
        read_texts(tmp_path / "a.parquet")
    with pytest.raises(MissingExtraError, match="Writing parquet needs"):
        write_vectors(failing_rows([]), tmp_path / "v.parquet")  # said before the first vector is made


def test_reading_and_writing_hold_few_rows_at_a_time(tmp_path):
    """The writer takes row 2 only after row 1 is written: nothing is gathered."""
    (tmp_path / "a.txt").write_text("x\n" * 1000)
    taken = []

    def watched():
        for text in read_texts(tmp_path / "a.txt"):
            taken.append(text)
            yield text, np.zeros(2, np.float32)

    stream = watched()
    next(stream)
    assert len(taken) == 1
    assert write_vectors(stream, tmp_path / "v.npy") == 999


def test_empty_rows_of_a_single_column_stay_rows(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("text\none\n\nthree\n")
    assert list(read_texts(path)) == ["one", "", "three"]


@pytest.fixture
def usual_csv_limit():
    before = csv.field_size_limit(131_072)
    yield
    csv.field_size_limit(before)


@pytest.mark.parametrize("format", ["csv", "tsv"])
def test_a_field_of_any_length_is_read(tmp_path, usual_csv_limit, format):
    texts = ["short", "long " * 100_000, "short again"]
    assert list(read_texts(write_file(tmp_path, format, texts), column="text")) == texts


def test_a_quoted_field_of_many_lines_may_be_long(tmp_path, usual_csv_limit):
    text = "a line\n" * 50_000
    assert list(read_texts(write_file(tmp_path, "csv", [text, "b"]), column="text")) == [text, "b"]


def test_the_limit_of_other_users_of_csv_changes_only_for_a_row_that_needs_it(tmp_path, usual_csv_limit):
    list(read_texts(write_file(tmp_path, "csv", ["a" * 1000] * 1000), column="text"))
    assert csv.field_size_limit() == 131_072
    list(read_texts(write_file(tmp_path, "csv", ["a" * 200_000]), column="text"))
    assert 200_000 < csv.field_size_limit() < 201_000
    csv.field_size_limit(10**6)
    list(read_texts(write_file(tmp_path, "csv", ["a" * 200_000]), column="text"))
    assert csv.field_size_limit() == 10**6  # never lowered


FORMULAS = ["=cmd()", "+1+1", "-1+1", "@SUM(A1)", "\tx", "\rx", "\uff1d1"]
NO_FORMULAS = ["a=b", "-1.5", "+3", "-2e-5", "", "'=x", "- a", -7, -0.5, None]


def test_with_csv_safe_no_cell_is_a_formula_and_other_cells_are_unchanged(tmp_path):
    rows = [[value, "x"] for value in [*FORMULAS, *NO_FORMULAS]]
    write_rows(rows, ["=name", "b"], tmp_path / "a.csv", csv_safe=True)
    with (tmp_path / "a.csv").open(newline="") as file:
        header, *found = csv.reader(file)
    assert header == ["'=name", "b"]
    assert [row[0] for row in found[: len(FORMULAS)]] == [f"'{value}" for value in FORMULAS]
    kept = ["" if value is None else str(value) for value in NO_FORMULAS]
    kept[kept.index("- a")] = "'- a"
    assert [row[0] for row in found[len(FORMULAS) :]] == kept
    write_rows([["=a"]], ["x"], tmp_path / "a.tsv", csv_safe=True)
    assert (tmp_path / "a.tsv").read_text() == "x\n'=a\n"


def test_formulas_are_kept_as_they_are_unless_asked_and_in_formats_that_no_spreadsheet_opens(tmp_path):
    write_rows([["=a"]], ["x"], tmp_path / "a.csv")
    assert (tmp_path / "a.csv").read_text() == "x\n=a\n"
    write_rows([["=a"]], ["x"], tmp_path / "a.jsonl", csv_safe=True)
    write_rows([["=a"]], ["x"], tmp_path / "a.txt", csv_safe=True)
    assert (tmp_path / "a.jsonl").read_text() == '{"x": "=a"}\n' and (tmp_path / "a.txt").read_text() == "=a\n"


def test_a_carriage_return_does_not_begin_a_row_of_csv(tmp_path):
    texts = ["a\r=cmd()", "\r", "b\r\nc", 'a "quote"', "a, b", ""]
    write_rows([[text, "x"] for text in texts], ["text", "y"], tmp_path / "a.csv")
    with (tmp_path / "a.csv").open(newline="") as file:
        assert [row[0] for row in csv.reader(file)] == ["text", *texts]
    with pytest.raises(InputError, match="line break"):
        write_rows([["a\rb", "x"]], ["text", "y"], tmp_path / "a.tsv")


@pytest.mark.parametrize("ending", ["csv", "tsv", "jsonl", "parquet"])
@pytest.mark.parametrize("value", ["\ud800", 10**5000], ids=["surrogate", "huge"])
def test_a_value_that_a_format_cannot_hold_is_refused_and_leaves_no_file(tmp_path, ending, value):
    if ending == "parquet":
        pytest.importorskip("pyarrow")
    with pytest.raises(InputError):
        write_rows([[1, "a"], [value, "b"]], ["x", "y"], tmp_path / f"a.{ending}")
    with pytest.raises(InputError):
        write_rows([[1]], ["\ud800"], tmp_path / "b.csv")
    assert list(tmp_path.iterdir()) == []


def test_a_failure_of_the_rows_themselves_is_not_blamed_on_a_value(tmp_path):
    def broken():
        yield ["a"]
        raise ValueError("the source is gone")

    for ending in ("csv", "tsv", "jsonl", "txt"):
        with pytest.raises(ValueError, match=r"^the source is gone$"):
            write_rows(broken(), ["x"], tmp_path / f"a.{ending}")


@pytest.mark.parametrize("depth", [500, 900, 950, 970, 980, 985, 990, 1100, 100_000])
def test_deeply_nested_json_is_a_bad_row_wherever_it_is_too_deep(tmp_path, depth):
    path = tmp_path / "a.jsonl"
    path.write_text('{"text": ' + "[" * depth + "]" * depth + "}\n")
    with pytest.raises(RowError):
        list(read_texts(path, column="text"))
