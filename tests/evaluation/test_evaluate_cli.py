"""The commands evaluate, compare and data get, on tiny data in the layout of the data folder."""

import gzip
import hashlib
import json
import sys

import numpy as np
import pytest
from click.testing import CliRunner

from servers import reply, serving
from tiny import WORDS
from twinvec.choices import CLASSIFIERS, TASK_GROUPS
from twinvec.cli import main
from twinvec.cli.compare import compare
from twinvec.cli.data import get
from twinvec.cli.evaluate import evaluate
from twinvec.evaluation.evaluate import SuiteSettings, load_tasks, run_suite, task_names
from twinvec.evaluation.tasks import transfer
from twinvec.evaluation.tasks.data_sets import KNOWN, load_task
from twinvec.evaluation.tasks.sts import StsTask

SPEARMAN = "Spearman of cosine x 100, all pairs together"


def write_table(folder, place, rows):
    file = folder / f"{place}.tsv.gz"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(gzip.compress("".join("\t".join(map(str, row)) + "\n" for row in rows).encode()))


def sentence(rng):
    return " ".join(rng.choice(WORDS, size=rng.integers(3, 8)))


def scored_rows(n, seed):
    rng = np.random.default_rng(seed)
    for i in range(n):
        yield ("news" if i % 2 else "forum", f"{rng.uniform(0, 5):.1f}", sentence(rng), sentence(rng))


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A data folder with sts12, sts13 and mr."""
    place = tmp_path_factory.mktemp("data")
    for year in (12, 13):
        write_table(place, f"sts/sts{year}", [("subset", "score", "text1", "text2"), *scored_rows(40, year)])
    rng = np.random.default_rng(0)
    rows = [(i % 2, ("good " if i % 2 else "bad ") + sentence(rng)) for i in range(60)]
    write_table(place, "transfer/mr", [("label", "text"), *rows])
    return place


@pytest.fixture
def run(folder, tmp_path, monkeypatch):
    """Runs a command; the cache is the test's own."""
    monkeypatch.setenv("TWINVEC_DATA", str(folder))
    monkeypatch.setenv("TWINVEC_CACHE", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)
    return lambda *words: CliRunner().invoke(main, [str(word) for word in words])


def test_every_classifier_that_can_be_chosen_is_there():
    assert set(transfer.CLASSIFIERS) == set(CLASSIFIERS)


def test_every_option_has_help():
    for command in (evaluate, compare, get):
        assert all(each.param_type_name == "argument" or each.help for each in command.params), command.name


def test_a_model_is_evaluated_and_the_second_time_nothing_is_embedded(run, tiny_bert, tmp_path, monkeypatch):
    files = ["--json", "a.json", "--html", "a.html", "--markdown", "a.md"]
    first = run("evaluate", tiny_bert, "--tasks", "sts12,sts13", *files)
    assert first.exit_code == 0, first.output
    assert SPEARMAN in first.stdout and "sts12" in first.stdout
    assert "Wrote a.json, a.html, a.md." in first.stderr
    for name in ("a.json", "a.html", "a.md"):
        assert str(tiny_bert) in (tmp_path / name).read_text()
    monkeypatch.setattr("twinvec.embedder.load", None)  # nothing may be loaded
    second = run("evaluate", tiny_bert, "--tasks", "sts12,sts13")
    assert second.exit_code == 0, second.output
    assert second.stdout == first.stdout


def test_without_a_cache_nothing_is_kept(run, tiny_bert, tmp_path):
    assert run("evaluate", tiny_bert, "--tasks", "sts12", "--no-cache").exit_code == 0
    assert not (tmp_path / "cache").exists()
    assert run("evaluate", tiny_bert, "--tasks", "sts12", "--cache", "here").exit_code == 0
    assert list((tmp_path / "here").iterdir())


def test_the_requested_protocol_is_named(run, tiny_bert):
    result = run("evaluate", tiny_bert, "--tasks", "sts12", "--correlation", "pearson", "--subsets", "mean")
    assert "Pearson of cosine x 100, mean of the subsets" in result.stdout


def test_a_transfer_task_runs(run, tiny_bert):
    pytest.importorskip("sklearn")
    result = run("evaluate", tiny_bert, "--tasks", "mr")
    assert result.exit_code == 0, result.output
    assert "Accuracy x 100" in result.stdout


def test_a_file_of_vectors_is_evaluated(run, folder, tmp_path):
    task = load_task("sts12", folder)
    texts = list(dict.fromkeys([*task.left, *task.right]))
    (tmp_path / "t.txt").write_text("\n".join(texts) + "\n")
    np.save(tmp_path / "v.npy", np.random.default_rng(0).standard_normal((len(texts), 4)))
    result = run("evaluate", "--vectors", "v.npy", "--texts", "t.txt", "--tasks", "sts12")
    assert result.exit_code == 0, result.output
    assert result.stdout.startswith("v.npy\n")


def test_constant_predictions_are_reported_with_a_message(run, tmp_path):
    script = tmp_path / "same.py"
    script.write_text("import sys\nfor line in sys.stdin: print([1.0, 2.0])")
    files = ["--json", "a.json", "--html", "a.html"]
    result = run("evaluate", "--command", f"{sys.executable} {script}", "--tasks", "sts12", *files)
    assert result.exit_code == 0, result.output
    assert "undefined" in result.stdout and "nan" not in result.stdout.lower()
    assert "sts12: The correlation is undefined: all 40 values of the first list are equal." in result.stdout
    assert json.loads((tmp_path / "a.json").read_text())["results"][0]["value"] is None


def test_a_server_that_fails_is_named_in_one_line(run):
    with serving(lambda handler, _: reply(handler, 400, b'{"error": {"message": "no such model"}}')) as address:
        result = run("evaluate", f"{address}/v1#tiny", "--tasks", "sts12")
    assert result.exit_code == 1
    request = f"Request 1 (1 texts) to {address}/v1/embeddings"
    assert result.stderr == f"Error: {request} failed: status 400 (no such model). Check the server.\n"


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--tasks", "sts21"], "Unknown task 'sts21'. Did you mean 'sts"),
        (["--tasks", ","], "No task was given"),
        (["--data", "nowhere"], "There is no data folder nowhere. Download the data with: twinvec data get."),
        (["--tasks", "stsb"], "stsb-test.tsv.gz. Download it with: twinvec data get"),
        (["--tasks", "triplets"], "There are no documents in"),
        (["--html", "missing/a.html"], "There is no folder missing for a.html"),
    ],
)
def test_usage_errors_are_one_clear_line(run, tiny_bert, words, message):
    result = run("evaluate", tiny_bert, *words)
    assert result.exit_code == 1
    assert message in result.stderr
    assert result.stderr.count("\n") == 1


def test_a_row_without_gold_is_named(run, tiny_bert, tmp_path):
    write_table(tmp_path, "sts/sts12", [("subset", "score", "text1", "text2"), ("a", 1, "x", "y"), ("a", "", "x", "y")])
    result = run("evaluate", tiny_bert, "--tasks", "sts12", "--data", ".")
    assert result.exit_code == 1
    assert "sts12.tsv.gz, line 3: 'score' is empty." in result.stderr


def test_the_default_model_is_evaluated_if_none_is_given(run, tiny_bert, monkeypatch):
    assert run("evaluate", "--tasks", "sts12").stdout.startswith("twinvec-mini\n")
    monkeypatch.setenv("TWINVEC_MODEL", str(tiny_bert))
    assert run("evaluate", "--tasks", "sts12").stdout.startswith(str(tiny_bert))
    # what is named goes before the variable, and is not in its way
    result = run("evaluate", "--tasks", "sts12", "--vectors", "none.npy")
    assert result.exit_code == 1 and "--vectors requires --texts" in result.stderr
    result = run("evaluate", "--tasks", "sts12", "--endpoint-model", "some")
    assert result.exit_code == 1 and "--endpoint-model requires --endpoint" in result.stderr


def test_two_files_and_two_models_are_compared(run, tiny_bert, tiny_folders, tmp_path):
    for name, model in (("a", tiny_bert), ("b", tiny_folders["roberta"])):
        assert run("evaluate", model, "--tasks", "sts12,sts13", "--json", f"{name}.json").exit_code == 0
    files = run("compare", "a.json", "b.json")
    assert files.exit_code == 0, files.output
    assert files.stdout.count("after Holm's correction for 2 tasks") == 2
    assert SPEARMAN in files.stdout
    models = run("compare", tiny_bert, tiny_folders["roberta"], "--tasks", "sts12,sts13")
    assert models.stdout == files.stdout
    told = json.loads(run("compare", "a.json", "b.json", "--json").stdout)
    assert [each["task"] for each in told] == ["sts12", "sts13"]
    assert run("compare", "a.json", "c.json").stderr.startswith("Error: There is no file c.json.")


def test_only_common_tasks_are_compared(run, tiny_bert):
    run("evaluate", tiny_bert, "--tasks", "sts12,sts13", "--json", "a.json")
    run("evaluate", tiny_bert, "--tasks", "sts12", "--json", "b.json")
    result = run("compare", "a.json", "b.json")
    assert f"Left out: sts13: only {tiny_bert} has it" in result.stderr
    assert "the first and the second are equal" in result.stdout


def test_groups_are_made_of_tasks_that_exist():
    assert all(name in KNOWN for names in TASK_GROUPS.values() for name in names)
    assert task_names(["stsb", "sts", "sts12"]) == ["stsb", "sts12", "sts13", "sts14", "sts15", "sts16", "sick-r"]


def test_the_texts_of_all_sts_tasks_are_embedded_in_one_call(folder):
    tasks = load_tasks(["sts12", "sts13"], folder)
    calls = []

    def embed(texts):
        calls.append(list(texts))
        return np.random.default_rng(len(texts)).standard_normal((len(texts), 4)).astype(np.float32)

    runs = run_suite(tasks, embed, SuiteSettings())
    first = next(runs)
    assert first.name == "sts12"
    wanted = {text for task in tasks.values() if isinstance(task, StsTask) for text in (*task.left, *task.right)}
    assert len(calls[0]) == len(set(calls[0])) and set(calls[0]) == wanted


def test_data_sets_are_listed_and_unknown_ones_refused(run, monkeypatch):
    listed = run("data", "get", "--list")
    assert listed.exit_code == 0 and "snli" in listed.stdout and "unknown" in listed.stdout
    assert "Did you mean 'snli'" in run("data", "get", "snlii").stderr
    assert run("data", "get").exit_code == 2
    monkeypatch.delenv("TWINVEC_DATA")
    assert "No data folder given" in run("data", "get", "snli").stderr


def test_a_data_set_is_fetched(run, monkeypatch, tmp_path):
    from twinvec.data.sources import SOURCES, DataSet, Download

    with serving(lambda handler, _: reply(handler, 200, b"fine\t1\n")) as address:
        sha256 = hashlib.sha256(b"fine\t1\n").hexdigest()
        downloads = tuple(Download(f"{address}/{i}", sha256) for i in range(3))
        monkeypatch.setitem(SOURCES, "sst2", DataSet("sst2", "", "research", downloads, SOURCES["sst2"].read))
        result = run("data", "get", "sst2", "--data", tmp_path / "new")
        assert result.exit_code == 0, result.output
        assert "sst2: license research." in result.stderr
        assert "sst2: already installed." in run("data", "get", "sst2", "--data", tmp_path / "new").stderr
    assert (tmp_path / "new" / "transfer" / "sst2-test.tsv.gz").is_file()
