"""Reports: well-formed, without a request to anywhere, with model, protocol, versions and date; files that hold."""

import json
import re
from pathlib import Path

import numpy as np
import pytest

from reports import SPEARMAN, Checker, evaluation, outcomes
from twinvec.errors import InputError
from twinvec.evaluation.compare import compare_evaluations
from twinvec.evaluation.result_file import Evaluation, Result, Subset, read_evaluation, score, write_evaluation
from twinvec.evaluation.statistics import Outcome
from twinvec.report import as_html, as_markdown
from twinvec.report.evaluation import columns_of, density_plot


@pytest.fixture(scope="module")
def page():
    return as_html(evaluation())


def test_the_page_is_well_formed(page):
    checker = Checker()
    checker.feed(page)
    checker.close()
    assert checker.faults == [] and checker.open == []


def test_the_page_loads_nothing_from_the_network(page):
    assert not re.search(r"https?://|//\w|<script|<link|<img|@import|url\(", page)


def test_the_page_says_what_it_is_of(page):
    checker = Checker()
    checker.feed(page)
    text = " ".join(checker.text)
    for part in ("my <model>", SPEARMAN, "2026-01-02 03:04:05 UTC", "twinvec 0.1.0", "precision=int8", "for<um>"):
        assert part in text, part
    assert "my <model>" not in page.replace("my &lt;model&gt;", "")
    assert page.count("<svg") == 2 + 3 + 2  # bars per protocol, predicted against gold, subsets


def test_undefined_results_are_explained(page):
    assert "nan" not in re.sub(r"\w+nan|nan\w+", "", page.lower())
    assert "undefined" in page
    assert "The correlation is undefined: all 400 values of the first list are equal." in page


def test_constant_predictions_have_a_message_instead_of_a_value():
    flat = score(outcomes()[1])
    assert flat.value is None and flat.low is None
    assert flat.problem == "The correlation is undefined: all 400 values of the first list are equal."
    assert [subset.value for subset in flat.subsets] == [None, None]


def test_a_constant_subset_does_not_hide_the_rest():
    whole = outcomes()[0]
    predicted = np.where(whole.groups == 1, 1.0, whole.predicted)
    result = score(Outcome("sts", SPEARMAN, "spearman", predicted, whole.gold, whole.groups, whole.group_names))
    assert result.value is not None and result.low is not None
    assert [subset.value is None for subset in result.subsets] == [False, True]


MARKDOWN = """# Evaluation of my \\| model

|  |  |
|---|---|
| **model** | my \\| model |
| **settings** | precision=int8 |
| **date** | 2026-01-02 03:04:05 UTC |
| **versions** | twinvec 0.1.0 |
| **identity** | model-abc |

## Spearman x 100

| task | score | 95 % interval | items |
|---|--:|--:|--:|
| sts12 | 72.37 | 70.20 to 74.40 | 1,200 |
| flat | undefined |  | 3 |

flat: all 3 values are equal.

## Accuracy x 100

| task | score | 95 % interval | items |
|---|--:|--:|--:|
| mr | 80.00 | 79.00 to 81.00 | 3 |

## Subsets

| task | subset | score | items | protocol |
|---|---|--:|--:|---|
| sts12 | news | 70.50 | 800 | Spearman x 100 |
| sts12 | forum | undefined | 400 | Spearman x 100 |
"""


def test_markdown_is_as_expected():
    subsets = (Subset("news", 800, 70.5), Subset("forum", 400, None, "all equal"))
    results = (
        Result(Outcome("sts12", "Spearman x 100", "mean", np.zeros(1200)), 72.371, 70.2, 74.4, subsets),
        Result(Outcome("mr", "Accuracy x 100", "mean", np.zeros(3)), 80.0, 79.0, 81.0),
        Result(Outcome("flat", "Spearman x 100", "mean", np.zeros(3)), None, problem="all 3 values are equal."),
    )
    date, settings, versions = "2026-01-02T03:04:05Z", {"precision": "int8"}, {"twinvec": "0.1.0"}
    assert as_markdown(Evaluation("my | model", "model-abc", date, results, settings, versions)) == MARKDOWN


def test_columns_are_at_the_levels_of_the_scores():
    assert len(columns_of(np.array([0, 1, 2, 5.0])).middles) == 6
    assert len(columns_of(np.arange(0, 5.01, 0.2)).middles) == 26
    assert len(columns_of(np.linspace(0, 5, 1000)).middles) == 26
    assert columns_of(np.array([3.0, 3.0])).indices.tolist() == [0, 0]


def test_one_level_and_one_value_can_be_drawn():
    flat = Outcome("flat", SPEARMAN, "spearman", np.ones(500), np.ones(500))
    assert "<svg" in density_plot(score(flat))


def test_a_file_gives_back_what_was_written(tmp_path):
    written = evaluation()
    write_evaluation(written, tmp_path / "a.json")
    read = read_evaluation(tmp_path / "a.json")
    assert as_html(read) == as_html(written)
    for one, other in zip(written.results, read.results, strict=True):
        assert one.outcome.predicted.tobytes() == other.outcome.predicted.tobytes()
        assert one.subsets == other.subsets
    assert compare_evaluations(written, read).comparisons[0].difference == 0


def change(content, path, value):
    *places, last = path
    for place in places:
        content = content[place]
    content[last] = value


BAD_FILES = [
    (("format",), "something 2", "its format is 'something 2'"),
    (("results", 0, "value"), 12.0, "sts12: the value is 12.0, but its items give"),
    (("results", 0, "n"), 3, "n is 3, but there are 400 items"),
    (("results", 0, "items", "gold", "data"), "AAAA", "gold: the data are damaged"),
    (("results", 0, "items", "gold", "dtype"), "object", "'dtype' is 'object', not one of float32"),
    (("results", 0, "items", "predicted"), None, "'predicted' is null, not an object"),
    (("results", 0), {}, "lacks 'items'"),
    (("results",), 3, "'results' is 3, not a list"),
]


@pytest.mark.parametrize(("path", "value", "message"), BAD_FILES)
def test_a_bad_file_is_refused(tmp_path, path, value, message):
    file = tmp_path / "a.json"
    write_evaluation(evaluation(), file)
    content = json.loads(file.read_text())
    change(content, path, value)
    file.write_text(json.dumps(content))
    with pytest.raises(InputError, match=message) as caught:
        read_evaluation(file)
    assert str(file) in str(caught.value)


def test_missing_and_broken_evaluation_files_are_refused(tmp_path):
    with pytest.raises(InputError, match="There is no file"):
        read_evaluation(tmp_path / "a.json")
    Path(tmp_path / "a.json").write_text("{")
    with pytest.raises(InputError, match="is not JSON"):
        read_evaluation(tmp_path / "a.json")


def test_two_evaluations_are_compared_where_both_have_a_number():
    one, other = evaluation("A"), evaluation("B", seed=1, noise=3.0)
    found = compare_evaluations(one, other)
    assert [each.task for each in found.comparisons] == ["sts12", "few", "mr"]
    assert all(each.n_compared == 3 for each in found.comparisons)
    assert found.left_out == (f"flat: undefined for one of the two ({SPEARMAN}).",)
    assert found.comparisons[0].verdict.startswith("A is higher by")


def test_evaluations_without_a_common_task():
    one, other = evaluation("A"), evaluation("B")
    only = Evaluation("B", "", "", tuple(score(Outcome("x", "p", "mean", np.ones(3))) for _ in other.results[:1]))
    with pytest.raises(InputError, match="A and B have no result in common"):
        compare_evaluations(one, only)
