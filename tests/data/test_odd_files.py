"""Names and files that users give by mistake: commands say what is wrong, with the line, and show no traceback."""

import gzip
import os

import pytest
from click.testing import CliRunner

import twinvec
from twinvec.cli import main
from twinvec.data.examples import read_examples
from twinvec.data.read import read_texts
from twinvec.data.roles import DataSource
from twinvec.embedder import ModelEmbedder
from twinvec.errors import InputError, ModelNotFoundError, TwinvecError
from twinvec.evaluation.systems import StoredEmbedder

LONG = "x" * 300
LONG_NAMES = {
    "a bare name": LONG,
    "a hub name": f"owner/{LONG}",
    "a path": f"./{LONG}",
    "an absolute path": f"/tmp/{LONG}",
    "a path of many parts": "/".join(["y" * 200] * 30),
}
CALLS = [
    ["embed", "-m", "NAME", "TEXTS"],
    ["embed", "NAME.txt"],
    ["embed", "TEXTS", "-o", "NAME.npy"],
    ["embed", "TEXTS", "--out", "NAME"],
    ["similarity", "-m", "NAME", "a", "b"],
    ["pairs", "NAME.txt"],
    ["inspect", "NAME"],
    ["search", "NAME.txt", "query"],
    ["search", "NAME", "query"],
    ["dedup", "NAME.txt"],
    ["cluster", "NAME.txt"],
    ["compare", "NAME.json", "NAME.json"],
    ["evaluate", "--vectors", "NAME.npy", "--texts", "TEXTS", "--no-cache", "--tasks", "sts12"],
    ["evaluate", "NAME", "--no-cache", "--tasks", "sts12", "--offline"],
    ["data", "check", "NAME.tsv"],
    ["train", "NAME.toml", "-o", "OUT"],
    ["bench", "-m", "NAME"],
]


def data_folder(place):
    """A folder with one small task, so that a command goes on to what it is about."""
    (place / "sts").mkdir()
    with gzip.open(place / "sts/sts12.tsv.gz", "wt") as file:
        file.write("subset\tscore\ttext1\ttext2\na\t1\tone\ttwo\na\t2\tthree\tfour\n")
    return place


@pytest.mark.parametrize("call", CALLS, ids=" ".join)
@pytest.mark.parametrize("name", [LONG_NAMES["a bare name"], LONG_NAMES["an absolute path"]], ids=["bare", "absolute"])
def test_a_name_that_is_too_long_ends_in_one_line(tmp_path, tmp_path_factory, monkeypatch, call, name):
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    monkeypatch.setenv("TWINVEC_DATA", str(data_folder(tmp_path_factory.mktemp("data"))))
    monkeypatch.chdir(tmp_path)
    (tmp_path / "texts.txt").write_text("a\nb\n")
    words = [word.replace("NAME", name).replace("TEXTS", "texts.txt").replace("OUT", "out") for word in call]
    done = CliRunner().invoke(main, words)
    assert done.exit_code in (1, 2) and isinstance(done.exception, SystemExit), done.exception
    assert "xxx" in done.stderr, done.stderr  # the name, or the start of it
    assert sorted(os.listdir(tmp_path)) == ["texts.txt"]


@pytest.mark.parametrize("case", LONG_NAMES)
def test_a_model_of_a_name_that_is_too_long_is_not_found(case):
    with pytest.raises(ModelNotFoundError):
        twinvec.load(LONG_NAMES[case], offline=True)
    with pytest.raises(ModelNotFoundError):
        ModelEmbedder(LONG_NAMES[case], {"offline": True}).find()


@pytest.mark.parametrize("name", [f"{LONG}.txt", "a\0b.txt"])
def test_a_file_with_an_impossible_name_does_not_exist(name):
    with pytest.raises(InputError, match="File not found"):
        read_texts(name)
    with pytest.raises(InputError, match="There is no file"):
        StoredEmbedder(name, name)
    with pytest.raises(ModelNotFoundError):
        twinvec.load(f"./{name}", offline=True)


BAD_LINES = {
    "not UTF-8": ("a.txt", b"good\nb\xe4d\n", r"line 2: byte 2 \(0xe4\) is not UTF-8"),
    "UTF-16": ("a.txt", "good\nworse\n".encode("utf-16"), r"line 1: byte 1 \(0xff\) is not UTF-8"),
    "UTF-16 without a mark": ("a.txt", "good\nworse\n".encode("utf-16-le"), r"line 1: character 2 is NUL"),
    "a NUL": ("a.txt", b"good\nb\0d\n", r"line 2: character 2 is NUL"),
    "a NUL in tsv": ("a.tsv", b"text\tn\na\0b\t1\n", r"line 2: character 2 is NUL"),
    "a NUL in csv": ("a.csv", b"text,n\na\0b,1\n", r"line 2: character 2 is NUL"),
    "a NUL in jsonl": ("a.jsonl", b'{"text": "a"}\n{"text": "\0"}\n', r"line 2: character 11 is NUL"),
    "deep JSON": ("a.jsonl", b'{"text": "a"}\n{"text": ' + b"[" * 100_000, r"line 2 is not JSON"),
    "a number of many digits": ("a.jsonl", b'{"text": "a"}\n{"text": ' + b"9" * 5000 + b"}", r"line 2 is not JSON"),
    "a list for a text": (
        "a.jsonl",
        b'{"text": "a"}\n{"text": ' + b"[" * 500 + b"]" * 500 + b"}",
        r"line 2: 'text' is a",
    ),
    "a line break in a field": ("a.csv", b"text,n\na\rb,1\n", r"line 2: .*new-line character"),
    "cut gzip": ("a.txt.gz", gzip.compress(b"good\n" * 1000)[:-20], "is not complete gzip data"),
}


@pytest.mark.parametrize("case", BAD_LINES)
def test_a_bad_line_is_named_by_its_number(tmp_path, case):
    name, content, message = BAD_LINES[case]
    (tmp_path / name).write_bytes(content)
    with pytest.raises(InputError, match=message) as caught:
        list(read_texts(tmp_path / name))
    assert str(tmp_path / name) in str(caught.value) and len(str(caught.value)) < 500


@pytest.mark.parametrize("depth", range(850, 1000, 10))
def test_json_of_any_depth_is_read_or_refused(tmp_path, depth):
    (tmp_path / "a.jsonl").write_text('{"text": ' + "[" * depth + "]" * depth + "}\n")
    with pytest.raises(InputError, match=r"line 1: 'text' is a|line 1 is not JSON"):
        list(read_texts(tmp_path / "a.jsonl"))


def test_examples_for_training_name_the_bad_line(tmp_path):
    for bad in (b"\xff", b"\0"):
        (tmp_path / "a.tsv").write_bytes(b"text1\ttext2\tscore\na\tb\t1\nc\t" + bad + b"\t1\n")
        with pytest.raises(TwinvecError, match="line 3"):
            read_examples(DataSource(tmp_path / "a.tsv", "scored_pairs"))


def test_a_byte_order_mark_and_both_line_ends_are_no_part_of_the_texts(tmp_path):
    (tmp_path / "a.txt").write_bytes("\ufeffone\r\ntwo\nthree\r\n".encode())
    assert list(read_texts(tmp_path / "a.txt")) == ["one", "two", "three"]
    (tmp_path / "a.csv").write_bytes("\ufefftext,n\r\none,1\ntwo,2\r\n".encode())
    assert list(read_texts(tmp_path / "a.csv")) == ["one", "two"]
    (tmp_path / "a.jsonl").write_bytes('\ufeff{"text": "one"}\r\n{"text": "two"}\n'.encode())
    assert list(read_texts(tmp_path / "a.jsonl")) == ["one", "two"]
