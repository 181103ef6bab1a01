"""The commands, with an encoder that needs no weights: what they print, and how they refuse."""

import json
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import click
import numpy as np
import pytest
from click.testing import CliRunner

import twinvec
from fakes import HashEncoder, replace_models
from twinvec.choices import FORMATS
from twinvec.cli import main
from twinvec.cli.screen import CleanErrors, show_seconds
from twinvec.data.table import READ_FORMATS
from twinvec.errors import DeviceError, InputError, ModelNotFoundError
from twinvec.search import demo
from twinvec.vectors import SIMILARITIES

TEXTS = ["a cat sits", "", "the cat sits"]


@pytest.fixture
def loads(monkeypatch):
    """Replace what loads models; gives the list of what it was called with."""
    calls = []

    def load(name, **settings):
        encoder = HashEncoder(settings["precision"])
        calls.append((name, settings, encoder))
        return encoder

    replace_models(monkeypatch, load)
    monkeypatch.setenv("TWINVEC_MODEL", "fake")
    return calls


def run(*arguments, stdin=None):
    return CliRunner().invoke(main, [str(argument) for argument in arguments], input=stdin, prog_name="twinvec")


def write_source(folder, format):
    """A file of the format that holds TEXTS."""
    path = folder / f"in.{'txt' if format == 'lines' else format}"
    if format == "parquet":
        arrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
        parquet.write_table(arrow.table({"text": TEXTS}), path)
        return path
    lines = {
        "lines": TEXTS,
        "csv": ["n,text", *(f"1,{text}" for text in TEXTS)],
        "tsv": ["n\ttext", *(f"1\t{text}" for text in TEXTS)],
        "jsonl": [json.dumps({"text": text}) for text in TEXTS],
    }
    path.write_text("".join(f"{line}\n" for line in lines[format]), encoding="utf-8")
    return path


def expected_lines():
    vectors = HashEncoder().encode(TEXTS).astype(int).tolist()
    return "".join(json.dumps({"text": text, "vector": row}) + "\n" for text, row in zip(TEXTS, vectors, strict=True))


@pytest.mark.parametrize("format", READ_FORMATS)
def test_embed_prints_the_same_lines_for_every_format(tmp_path, loads, format):
    result = run("embed", write_source(tmp_path, format))
    assert (result.exit_code, result.stderr) == (0, "")
    assert result.stdout == expected_lines()


@pytest.mark.parametrize("format", ["lines", "csv", "tsv", "jsonl"])
@pytest.mark.parametrize("name", ["-", None])
def test_embed_reads_standard_input_in_every_text_format(tmp_path, loads, format, name):
    data = write_source(tmp_path, format).read_bytes()
    chosen = [] if format == "lines" else ["--format", format]
    result = run("embed", *([name] if name else []), *chosen, stdin=data)
    assert result.stdout == expected_lines()


@pytest.mark.parametrize("format", READ_FORMATS)
@pytest.mark.parametrize("ending", ["npy", "jsonl", "parquet"])
def test_embed_writes_every_format_from_every_format(tmp_path, loads, format, ending):
    if ending == "parquet":
        pytest.importorskip("pyarrow")
    target = tmp_path / f"out.{ending}"
    result = run("embed", write_source(tmp_path, format), "-o", target)
    assert (result.exit_code, result.stdout) == (0, "")
    assert result.stderr.startswith(f"Wrote 3 vectors to {target} in ")
    if ending == "npy":
        assert np.array_equal(np.load(target), HashEncoder().encode(TEXTS))
    elif ending == "jsonl":
        assert target.read_text() == expected_lines()
    else:
        table = pytest.importorskip("pyarrow.parquet").read_table(target)
        assert table["text"].to_pylist() == TEXTS
        assert np.array_equal(table["vector"].to_pylist(), HashEncoder().encode(TEXTS))


@pytest.mark.parametrize(("kind", "dtype"), [("int8", "int8"), ("ubinary", "uint8"), ("binary", "int8")])
def test_embed_writes_smaller_numbers(tmp_path, loads, kind, dtype):
    target = tmp_path / "v.npy"
    assert run("embed", write_source(tmp_path, "lines"), "-o", target, "--as", kind).exit_code == 0
    assert np.load(target).dtype == dtype
    assert np.array_equal(np.load(target), HashEncoder().encode(TEXTS, output=kind))


def test_options_of_the_model_reach_it(tmp_path, loads):
    given = "--precision int8 --threads 3 --device cpu --runtime openvino --long chunk --truncate-dim 8 --offline"
    given += " --readout wk --unknown error"
    result = run("embed", write_source(tmp_path, "lines"), "-m", "other", *given.split(), "--prompt", "query: ")
    assert result.exit_code == 0
    name, settings, encoder = loads[0]
    assert name == "other"
    assert settings == {
        "precision": "int8",
        "threads": 3,
        "device": "cpu",
        "runtime": "openvino",
        "deterministic": False,
        "long": "chunk",
        "unknown": "error",
        "truncate_dim": 8,
        "readout": "wk",
        "trust_pickle": False,
        "offline": True,
    }
    assert {call["prompt"] for call in encoder.calls} == {"query: "}


def test_a_file_that_exists_is_kept_unless_forced(tmp_path, loads):
    source, target = write_source(tmp_path, "lines"), tmp_path / "v.npy"
    target.write_text("mine")
    result = run("embed", source, "-o", target)
    assert result.exit_code == 1
    assert result.stderr == f"Error: {target} exists already. Choose another name, or replace it with --force.\n"
    assert target.read_text() == "mine" and loads == []
    assert run("embed", source, "-o", target, "--force").exit_code == 0
    assert np.load(target).shape == (3, 16)


BAD_CALLS = {
    "missing file": (["embed", "no.txt"], 1, "File not found: no.txt."),
    "folder": (["embed", "."], 1, "has no extension"),
    "unknown ending": (["embed", "a.docx"], 1, "Set the format (--format"),
    "wrong column": (["embed", "a.csv", "--column", "txt"], 1, "Did you mean 'text'?"),
    "column of lines": (["embed", "a.txt", "--column", "text"], 1, "Plain lines have no columns"),
    "bad JSON": (["embed", "bad.jsonl"], 1, "bad.jsonl, line 1 is not JSON"),
    "bad UTF-8": (["embed", "latin.txt"], 1, "latin.txt, line 1: byte 2 (0xe9) is not UTF-8"),
    "empty file": (["embed", "empty.txt"], 1, "empty.txt has no texts."),
    "unknown output": (["embed", "a.txt", "-o", "v.csv"], 1, "one of these extensions for the output: .npy"),
    "no folder": (["embed", "a.txt", "-o", "no/v.npy"], 1, "There is no folder no"),
    "wrong format": (["embed", "a.txt", "--format", "xml"], 2, "'xml' is not one of"),
    "no threads": (["embed", "a.txt", "--threads", "0"], 2, "0 is not in the range x>=1"),
    "two prompts": (["embed", "a.txt", "--prompt", "a", "--prompt-name", "b"], 2, "not both"),
    "unknown option": (["embed", "a.txt", "--modell", "x"], 2, "No such option"),
    "unknown command": (["embedd"], 2, "No such command 'embedd'"),
    "one text": (["similarity", "A"], 2, "Missing argument 'B'"),
    "unknown measure": (["similarity", "A", "B", "--measure", "cos"], 2, "'cos' is not one of"),
    "zero pairs": (["pairs", "a.txt", "-k", "0"], 2, "0 is not in the range"),
}


@pytest.mark.parametrize("case", BAD_CALLS)
def test_a_bad_call_is_refused_before_a_model_is_loaded(tmp_path, monkeypatch, loads, case):
    monkeypatch.chdir(tmp_path)
    for name, data in {
        "a.txt": b"a\n",
        "a.docx": b"a\n",
        "a.csv": b"id,text\n1,a\n",
        "bad.jsonl": b'{"text"\n',
        "latin.txt": b"\x61\xe9\n",
        "empty.txt": b"",
    }.items():
        (tmp_path / name).write_bytes(data)
    arguments, exit_code, message = BAD_CALLS[case]
    result = run(*arguments)
    assert (result.exit_code, result.stdout) == (exit_code, "")
    assert message in result.stderr
    assert loads == []
    assert exit_code == 2 or result.stderr.count("\n") == 1


@pytest.mark.parametrize("arguments", [["embed", "-"], ["similarity", "A", "B"], ["pairs", "-"], ["bench"], ["demo"]])
def test_without_a_model_commands_take_that_of_the_environment_and_then_our_own(monkeypatch, loads, arguments):
    monkeypatch.setattr(demo, "gather_sentences", lambda n: ["One.", "Two.", "Three."])
    for value, name in (("other", "other"), ("", "twinvec-mini"), (None, "twinvec-mini")):
        loads.clear()
        monkeypatch.delenv("TWINVEC_MODEL", raising=False)
        if value is not None:
            monkeypatch.setenv("TWINVEC_MODEL", value)
        assert run(*arguments, stdin="a text\n").exit_code == 0
        assert {call[0] for call in loads} == {name}


def test_an_empty_name_is_not_a_model():
    result = run("similarity", "-m", "", "A", "B")
    assert (result.exit_code, result.stderr.count("\n")) == (1, 1)
    assert "The model name is empty." in result.stderr


def test_an_error_of_the_library_is_one_line_and_exit_code_one(monkeypatch):
    def load(name, **settings):
        raise ModelNotFoundError(f"There is no model folder at {name!r}.", hint="Check the path.")

    monkeypatch.setattr(twinvec, "load", load)
    result = run("similarity", "-m", "./no", "A", "B")
    assert result.exit_code == 1
    assert result.stderr == "Error: There is no model folder at './no'. Check the path.\n"


def test_an_error_during_embedding_leaves_no_output(tmp_path, loads, monkeypatch):
    def encode_iter(self, texts, **settings):
        yield self.encode(next(iter(texts)))
        raise InputError("The second text is bad.")

    monkeypatch.setattr(HashEncoder, "encode_iter", encode_iter)
    source = write_source(tmp_path, "lines")
    result = run("embed", source, "-o", tmp_path / "v.npy")
    assert (result.exit_code, result.stderr) == (1, "Error: The second text is bad.\n")
    assert list(tmp_path.iterdir()) == [source]


def test_an_interrupt_ends_with_code_130_and_no_traceback():
    group = CleanErrors("g")

    @group.command()
    def stop():
        raise KeyboardInterrupt

    result = CliRunner().invoke(group, ["stop"])
    assert (result.exit_code, result.stderr) == (130, "Interrupted.\n")


def test_a_bug_is_not_reported_as_a_user_error():
    group = CleanErrors("g")

    @group.command()
    def fail():
        raise ZeroDivisionError

    assert isinstance(CliRunner().invoke(group, ["fail"]).exception, ZeroDivisionError)


def test_embed_exits_silently_when_the_reader_stops_early(tmp_path):
    source = tmp_path / "many.txt"
    source.write_text("some words here\n" * 5000)
    program = (
        "import sys; sys.path.insert(0, sys.argv.pop(1)); from pytest import MonkeyPatch;"
        "from fakes import replace_models; replace_models(MonkeyPatch());"
        "from twinvec.cli import main; main(prog_name='twinvec')"
    )
    arguments = [
        sys.executable,
        "-c",
        program,
        str(Path(__file__).parents[1] / "support"),
        "embed",
        str(source),
        "-m",
        "fake",
    ]
    with subprocess.Popen(arguments, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout.readline().startswith(b'{"text": "some words here"')
        process.stdout.close()
        assert process.stderr.read() == b""


def test_similarity_prints_one_number(loads):
    result = run("similarity", "a cat sits", "a cat sits")
    assert (result.stdout, result.stderr) == ("1.000000\n", "")
    a, b = HashEncoder().encode(["a cat", "a dog sits"])
    for measure in SIMILARITIES:
        expected = float(SIMILARITIES[measure](a[None], b[None])[0, 0])
        result = run("similarity", "a cat", "a dog sits", "--measure", measure)
        assert float(result.stdout) == pytest.approx(expected, abs=1e-6)


def test_pairs_prints_json_lines_best_first(tmp_path, loads):
    (tmp_path / "a.txt").write_text("one two three\nfour five\nfive four\n\none two\n")
    result = run("pairs", tmp_path / "a.txt", "-k", "2")
    rows = [json.loads(line) for line in result.stdout.splitlines()]
    assert [row["rows"] for row in rows] == [[1, 2], [0, 4]]
    assert rows[0] == {"score": 1.0, "rows": [1, 2], "texts": ["four five", "five four"]}
    only = run("pairs", tmp_path / "a.txt", "--threshold", "0.999", "--json")
    assert only.stdout.splitlines() == result.stdout.splitlines()[:1]


def test_pairs_of_a_single_text_are_none(loads):
    result = run("pairs", "-", stdin="alone\n")
    assert (result.exit_code, result.stdout) == (0, "")


@dataclass(frozen=True)
class FakeInspection:
    warnings: tuple[str, ...] = ("It is [not] a model.",)

    def rows(self):
        return [("width", "16"), ("pooling", "mean [sic]")]

    def as_dict(self):
        return {"width": 16, "warnings": list(self.warnings)}


def test_inspect_shows_rows_and_warnings_as_table_or_json(monkeypatch):
    inspection = pytest.importorskip("twinvec.engine.inspect")
    monkeypatch.setattr(inspection, "inspect_model", lambda name: FakeInspection())
    shown = run("inspect", "any").stdout
    assert [line.split() for line in shown.splitlines()] == [
        ["width", "16"],
        ["pooling", "mean", "[sic]"],
        ["Warning:", "It", "is", "[not]", "a", "model."],
    ]
    assert json.loads(run("inspect", "any", "--json").stdout) == FakeInspection().as_dict()


def test_bench_measures_every_precision_against_float32(loads):
    result = run("bench")
    assert result.exit_code == 0
    assert [call[1]["precision"] for call in loads] == ["float32", "bfloat16", "int8"]
    rows = [line.split() for line in result.stdout.splitlines()[2:]]
    assert [row[0] for row in rows] == ["float32", "bfloat16", "int8"]
    assert [len(row) for row in rows] == [3, 4, 4]
    assert rows[1][3] == "1.00000"


def test_bench_leaves_out_what_the_machine_lacks_unless_it_was_asked_for(monkeypatch):
    def load(name, *, precision, **settings):
        if precision == "int8":
            raise DeviceError("This CPU has no int8.")
        return HashEncoder("float32")  # also for bfloat16, as on a CPU without it

    replace_models(monkeypatch, load)
    result = run("bench", "-m", "fake")
    assert (result.exit_code, result.stdout.count("int8")) == (0, 0)
    assert "Skipped int8: This CPU has no int8.\n" in result.stderr
    assert "bfloat16" not in result.stdout
    assert "Skipped bfloat16: this machine computes it in float32.\n" in result.stderr
    asked = run("bench", "-m", "fake", "--precision", "int8")
    assert (asked.exit_code, asked.stdout, asked.stderr) == (1, "", "Error: This CPU has no int8.\n")


def test_demo_shows_pairs_answers_and_times(loads, monkeypatch):
    monkeypatch.setattr(demo, "gather_sentences", lambda n: [f"Sentence {i} of {i % 7} here." for i in range(50)])
    result = run("demo")
    assert result.exit_code == 0
    assert "This Python has only 50 distinct sentences" in result.stderr
    for question in demo.QUESTIONS:
        assert question in result.stdout
    assert "comparing all 1,225 pairs" in result.stdout
    assert "about 65 hours" in result.stdout
    assert max(len(line) for line in result.stdout.splitlines()) <= 100


@pytest.mark.parametrize(
    ("arguments", "precision"),
    [
        ([], "int8"),
        (["--precision", "float32"], "float32"),
        (["-m", "other"], "float32"),
        (["--device", "cuda"], "float32"),
        (["--runtime", "torch"], "float32"),
    ],
)
def test_demo_runs_the_default_model_in_int8_by_default(loads, monkeypatch, arguments, precision):
    monkeypatch.delenv("TWINVEC_MODEL", raising=False)
    monkeypatch.setattr(demo, "gather_sentences", lambda n: ["One.", "Two.", "Three."])
    result = run("demo", *arguments)
    assert result.exit_code == 0
    assert [call[1]["precision"] for call in loads] == [precision]
    assert f"({precision})" in result.stderr


def test_version_and_help_need_no_model():
    assert run("--version").stdout.startswith("twinvec")
    assert run("--help").exit_code == 0
    assert run("-h").stdout == run("--help").stdout


def test_every_format_of_the_options_has_its_endings():
    assert tuple(READ_FORMATS) == FORMATS


@pytest.mark.parametrize(("seconds", "shown"), [(0.5, "500 ms"), (59.94, "59.9 s"), (3600, "60 min 0 s")])
def test_times_have_three_digits(seconds, shown):
    assert show_seconds(seconds) == shown


def test_commands_are_click_commands_with_help():
    context = click.Context(main)
    commands = [main.get_command(context, name) for name in main.list_commands(context)]
    assert commands and all(isinstance(command, click.Command) and command.help for command in commands)
