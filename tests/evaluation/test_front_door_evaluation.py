"""Evaluation and analysis from Python: what the commands do, in one call, without printing."""

import json
import sys

import numpy as np
import pytest

import twinvec
from tiny import WORDS
from twinvec.errors import InputError, UnknownNameError
from twinvec.evaluation.compare import compare_evaluations
from twinvec.evaluation.result_file import read_evaluation
from twinvec.report import write_reports


class Lengths:
    """An embedder that knows how long a text is, and counts what it embeds."""

    name, identity, width, similarity, settings = "lengths", "lengths-1", 2, "cosine", {"unit": "letters"}

    def __init__(self):
        self.texts = []

    def embed(self, texts, *, role="text"):
        self.texts += texts
        return np.array([[len(text), text.count("a") + 1] for text in texts], dtype=np.float32)


def sentences(n, seed):
    rng = np.random.default_rng(seed)
    return [" ".join(rng.choice(WORDS, size=rng.integers(3, 9))) for _ in range(n)]


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    """A folder with sts12 and sts13, and pairs.tsv, which has the same rows as sts12."""
    folder = tmp_path_factory.mktemp("data")
    (folder / "sts").mkdir()
    for year in (12, 13):
        pairs = zip(sentences(30, year), sentences(30, 100 + year), strict=True)
        rows = [f"news\t{i % 6}\t{left}\t{right}" for i, (left, right) in enumerate(pairs)]
        (folder / f"sts/sts{year}.tsv").write_text("\n".join(["subset\tscore\ttext1\ttext2", *rows]) + "\n")
    (folder / "pairs.tsv").write_bytes((folder / "sts/sts12.tsv").read_bytes())
    return folder


def test_any_system_is_evaluated_and_nothing_is_printed(data, tiny_bert, encoder, capfd, tmp_path):
    seen = []
    by_name = twinvec.evaluate(str(tiny_bert), "sts12, sts13", data, cache=tmp_path, watch=seen.append)
    assert [run.name for run in seen] == [result.task for result in by_name.results] == ["sts12", "sts13"]
    by_encoder = twinvec.evaluate(encoder, ["sts12"], data, cache=None)
    chosen = twinvec.evaluate(twinvec.SystemChoice(str(tiny_bert)), ["sts12"], str(data), cache=tmp_path)
    assert by_encoder.results[0].value == chosen.results[0].value == by_name.results[0].value
    assert by_encoder.identity == by_name.identity
    assert capfd.readouterr().out == ""


def test_a_custom_embedder_embeds_each_text_once_and_is_cached(data, tmp_path, monkeypatch):
    monkeypatch.setenv("TWINVEC_DATA", str(data))
    monkeypatch.setenv("TWINVEC_CACHE", str(tmp_path / "cache"))
    first, second, third = Lengths(), Lengths(), Lengths()
    settings = twinvec.SuiteSettings(correlation="pearson", similarity="euclidean")
    evaluation = twinvec.evaluate(first, "sts12", settings=settings)
    assert evaluation.system == "lengths" and evaluation.settings == {"unit": "letters"}
    assert evaluation.results[0].protocol == "Pearson of euclidean x 100, all pairs together"
    assert len(first.texts) == len(set(first.texts)) > 0
    twinvec.evaluate(second, "sts12")
    assert second.texts == []
    twinvec.evaluate(third, "sts12", cache=None)
    assert sorted(third.texts) == sorted(first.texts)


def test_a_program_is_evaluated_in_one_run(data, tmp_path):
    script = tmp_path / "lengths.py"
    script.write_text(
        "import json, sys\n"
        "texts = [json.loads(line) for line in sys.stdin]\n"
        "open(sys.argv[1], 'a').write(f'{len(texts)} ')\n"
        "for text in texts: print([len(text), text.count('a') + 1])\n"
    )
    choice = twinvec.SystemChoice(command=f"{sys.executable} {script} {tmp_path / 'log'}")
    found = twinvec.evaluate(choice, "sts12,sts13", data, cache=None)
    own = twinvec.evaluate(Lengths(), "sts12,sts13", data, cache=None)
    assert [result.value for result in found.results] == [result.value for result in own.results]
    calls = (tmp_path / "log").read_text().split()
    assert sorted(map(int, calls)) == [1, 120]  # its identity needs one text; then all texts of both tasks


def test_errors_in_an_evaluation_are_reported_before_any_work(data, monkeypatch):
    monkeypatch.delenv("TWINVEC_DATA", raising=False)
    with pytest.raises(UnknownNameError, match="Did you mean 'sts12'"):
        twinvec.evaluate(tasks="sts-12", data=data)
    with pytest.raises(InputError, match=r"No data folder was given\..*TWINVEC_DATA"):
        twinvec.evaluate(tasks="sts12")
    with pytest.raises(InputError, match="No task was given"):
        twinvec.evaluate(tasks=[], data=data)
    with pytest.raises(InputError, match="The model is 7, of type int"):
        twinvec.evaluate(7, "sts12", data)


def test_both_sides_of_a_comparison_may_be_anything(data, tiny_bert, tmp_path):
    one = twinvec.evaluate(Lengths(), "sts12,sts13", data, cache=None)
    other = twinvec.evaluate(str(tiny_bert), "sts12,sts13", data, cache=None)
    write_reports(other, json=tmp_path / "b.json", markdown=tmp_path / "b.md", html=tmp_path / "b.html")
    assert read_evaluation(tmp_path / "b.json").system == str(tiny_bert)
    assert "sts13" in (tmp_path / "b.md").read_text() and "<svg" in (tmp_path / "b.html").read_text()
    with pytest.raises(InputError, match="exists already"):
        write_reports(other, json=tmp_path / "b.json")
    expected = compare_evaluations(one, other)
    for first, second in ((one, tmp_path / "b.json"), (Lengths(), str(tmp_path / "b.json")), (one, tiny_bert)):
        found = twinvec.compare(first, second, "sts12,sts13", data, cache=None)
        assert [each.verdict for each in found.comparisons] == [each.verdict for each in expected.comparisons]


def test_layers_of_several_models_are_analyzed(tiny_folders, encoder):
    models = [str(tiny_folders["bert"]), twinvec.load(tiny_folders["mpnet"])]
    settings = twinvec.LayerSettings(min_count=1, function_words={"the"})
    found = twinvec.analyze_layers(iter(sentences(12, 0)), models, settings=settings, pictures=2)
    assert [survey.model for survey in found.surveys] == ["bert", "mpnet"]
    assert all(survey.n_texts == 12 for survey in found.surveys)
    assert [(each.text, each.model) for each in found.pictures] == [
        (text, model) for text in sentences(12, 0)[:2] for model in ("bert", "mpnet")
    ]
    assert {each.word for each in found.surveys[0].words if each.is_function} == {"the"}
    assert json.loads(json.dumps(found.as_dict()))["min_count"] == 1
    alone = twinvec.analyze_layers(sentences(12, 0), encoder, settings=settings, pictures=["a cat"])
    np.testing.assert_allclose(alone.surveys[0].cosines, found.surveys[0].cosines, atol=1e-6)
    assert [each.text for each in alone.pictures] == ["a cat"]
    with pytest.raises(InputError, match="lengths returns only vectors"):
        twinvec.analyze_layers(["a cat"], Lengths())


def test_a_sweep_finds_and_saves_the_best_readout(data, tiny_bert, tmp_path):
    told = []
    found = twinvec.sweep(
        tiny_bert, data / "pairs.tsv", without=["layers", "wk"], save=tmp_path / "best", tell=told.append
    )
    assert found.model == tiny_bert.name and found.n_pairs == 30
    assert len(told) == 1 and f"Saved {tmp_path / 'best'}" in told[0]
    assert found.as_dict()["verdict"] == found.verdict
    again = twinvec.evaluate(tmp_path / "best", "sts12", data, cache=None)
    assert again.results[0].value == pytest.approx(found.best_saved.value, abs=0.02)
    with pytest.raises(InputError, match="exists already"):
        twinvec.sweep(tiny_bert, data / "pairs.tsv", save=tmp_path / "best")
    with pytest.raises(InputError, match="lengths returns only vectors"):
        twinvec.sweep(Lengths(), data / "pairs.tsv")


def test_speed_is_measured_for_the_precisions_that_were_named(tiny_bert, monkeypatch):
    monkeypatch.setattr("twinvec.analysis.speed.N_TEXTS", 9)
    told = []
    found = twinvec.measure_speed(tiny_bert, ["int8"], tell=told.append)
    assert [speed.precision for speed in found] == ["int8"]
    assert found[0].texts_per_s > 0 and found[0].single_ms > 0 and found[0].cosine > 0.9
    assert told == ["Measuring float32, int8: 5 rounds of 9 texts ..."]


def test_a_model_is_inspected():
    assert twinvec.inspect_model("twinvec-static").is_static
