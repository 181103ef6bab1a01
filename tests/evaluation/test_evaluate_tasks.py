"""Similarity, pairs, triplets, retrieval, clusters, arguments, data sets: worked examples, and published numbers."""

from __future__ import annotations

import gzip

import numpy as np
import pytest

import twinvec
from fakes import HashEncoder
from twinvec.choices import TASK_GROUPS
from twinvec.errors import InputError, RowError, UnknownNameError
from twinvec.evaluation.evaluate import run_task
from twinvec.evaluation.statistics import Outcome, value_of
from twinvec.evaluation.tasks import (
    KNOWN,
    ArgumentTask,
    ClusteringTask,
    PairTask,
    RetrievalTask,
    StsTask,
    TripletTask,
    load_task,
    run_argument,
    run_clustering,
    run_pairs,
    run_retrieval,
    run_sts,
    run_triplets,
)
from twinvec.evaluation.tasks.argument import leave_out_errors

hashed = HashEncoder().encode

# Spearman of cosine x 100, all pairs together, of all-MiniLM-L6-v2; the public leaderboard shows the same digits.
MINILM = {"sts13": "80.60", "sts16": "78.99", "stsb": "82.03"}


def table_embed(table):
    """An embedding written by hand: text -> vector."""
    return lambda texts: np.array([table[text] for text in texts], dtype=np.float32)


@pytest.fixture(scope="module")
def minilm(models):
    return twinvec.load(models / "minilm")


@pytest.mark.weights
@pytest.mark.data
@pytest.mark.parametrize("name", MINILM)
def test_minilm_gets_the_published_numbers(minilm, data, name):
    (outcome,) = run_sts(load_task(name, data), minilm.encode)
    assert f"{value_of(outcome):.2f}" == MINILM[name]


@pytest.mark.data
def test_every_known_data_set_has_its_published_size(data):
    sizes = {"sts12": 3108, "sts13": 1500, "sts14": 3750, "sts15": 3000, "sts16": 1186, "stsb": 1379}
    sizes |= {"sick-r": 9927, "sick-r-test": 4927, "argument": 3595}
    for name, size in sizes.items():
        assert len(load_task(name, data).gold) == size, name
    for name, size in {"mr": 10662, "cr": 3773, "subj": 10000, "mpqa": 10604, "sst2": 70042, "trec": 5952}.items():
        assert len(load_task(name, data).texts) == size, name
    cranfield = load_task("cranfield", data)
    assert (len(cranfield.queries), len(cranfield.documents)) == (225, 1400)


def test_sts_scores_pairs_in_their_order_and_names_the_protocol():
    table = {"a": [1, 0], "b": [0, 1], "c": [1, 1]}
    task = StsTask("toy", ["a", "a", "a"], ["a", "b", "c"], [5, 0, 3], subsets=["x", "y", "y"])
    (outcome,) = run_sts(task, table_embed(table))
    assert np.allclose(outcome.predicted, [1, 0, 0.5**0.5])
    assert outcome.protocol == "Spearman of cosine x 100, all pairs together"
    assert value_of(outcome) == pytest.approx(100)
    assert outcome.group_names == ("x", "y")
    assert outcome.groups.tolist() == [0, 1, 1]


@pytest.mark.parametrize(("aggregation", "expected"), [("all", 0), ("mean", 0), ("weighted mean", 20)])
def test_aggregations_of_subsets_differ(aggregation, expected):
    lengths = {name: [length, 0] for length, name in enumerate("abcde", start=1)}
    # 100 in the first subset of three, -100 in the second of two
    task = StsTask("toy", ["a"] * 5, list("abcde"), [1, 2, 3, 2, 1], subsets=["up", "up", "up", "down", "down"])
    (outcome,) = run_sts(task, table_embed(lengths), similarity="dot", statistic="pearson", aggregation=aggregation)
    assert value_of(outcome) == pytest.approx(expected, abs=1e-6)


def test_every_different_text_is_embedded_once():
    encoder = HashEncoder()
    run_sts(StsTask("toy", ["a", "a", "b"], ["b", "c", "c"], [1, 2, 3]), encoder.encode)
    assert [call["texts"] for call in encoder.calls] == [["a", "b", "c"]]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"right": ["x"]}, "2 left texts, 1 right texts"),
        ({"gold": [1.0, float("nan")]}, "row 1: the gold score is nan"),
        ({"left": [], "right": [], "gold": []}, "at least 2"),
    ],
)
def test_sts_tasks_that_cannot_be_evaluated_are_refused(change, message):
    fields = {"left": ["a", "b"], "right": ["c", "d"], "gold": [1.0, 2.0]} | change
    with pytest.raises(InputError, match=message):
        StsTask("toy", **fields)


def test_unknown_choices_and_broken_vectors_are_named():
    task = StsTask("toy", ["a", "b"], ["c", "d"], [1.0, 2.0])
    with pytest.raises(UnknownNameError, match="Did you mean 'cosine'"):
        run_sts(task, hashed, similarity="cosin")
    with pytest.raises(UnknownNameError, match="spearman"):
        run_sts(task, hashed, statistic="kendall")
    with pytest.raises(InputError, match="returned 3 vectors for 4 texts"):
        run_sts(task, lambda texts: np.zeros((3, 2)))
    with pytest.raises(InputError, match="NaN or infinity, the first for the text 'c'"):
        run_sts(task, table_embed({"a": [1], "b": [1], "c": [np.nan], "d": [1]}))


def test_pairs_at_the_best_threshold_match_a_search_over_all_thresholds():
    generator = np.random.default_rng(0)
    scores, gold = generator.integers(0, 12, size=60) / 12, generator.integers(0, 2, size=60)
    table = {f"{i}": [score, (1 - score**2) ** 0.5] for i, score in enumerate(scores)} | {"x": [1, 0]}
    task = PairTask("toy", [f"{i}" for i in range(60)], ["x"] * 60, gold.tolist())
    accuracy, f1, precision = run_pairs(task, table_embed(table))
    cuts = [scores > threshold for threshold in np.append(-1, (np.arange(12) + 0.5) / 12)]
    assert value_of(accuracy) == pytest.approx(100 * max((cut == gold).mean() for cut in [*cuts, scores > 2]))
    assert value_of(f1) == pytest.approx(
        100 * max(2 * (cut & (gold == 1)).sum() / (cut.sum() + gold.sum()) for cut in cuts)
    )
    assert "chosen on the same pairs" in accuracy.protocol
    assert precision.statistic == "average_precision"


def test_pairs_without_both_marks_or_with_others_are_refused():
    with pytest.raises(InputError, match="all 2 labels are 1"):
        PairTask("toy", ["a", "b"], ["c", "d"], [1, 1])
    with pytest.raises(InputError, match="row 1: the label is 3"):
        PairTask("toy", ["a", "b"], ["c", "d"], [1, 3])


def test_triplets_count_nearer_positives_but_no_ties():
    table = {"a": [1, 0], "near": [2, 1], "far": [0, 1]}
    task = TripletTask("toy", ["a", "a", "a"], ["near", "far", "near"], ["far", "near", "near"])
    outcomes = run_triplets(task, table_embed(table))
    # |a - near| = |a - far| = 1.41, and 2 by Manhattan: by these two all three are ties
    assert [outcome.predicted.tolist() for outcome in outcomes] == [[1, 0, 0], [0, 0, 0], [0, 0, 0]]
    assert [outcome.protocol.split()[5].rstrip(",") for outcome in outcomes] == ["cosine", "euclidean", "manhattan"]


def test_retrieval_matches_a_ranking_worked_by_hand():
    table = {"q": [1, 0], "first": [1, 0], "second": [1, 0.5], "third": [1, 1], "fourth": [0, 1]}
    task = RetrievalTask("toy", {"1": "q"}, {name: name for name in list(table)[1:]}, {"1": {"second": 1, "fourth": 3}})
    found = {outcome.protocol.split()[0]: outcome.predicted[0] for outcome in run_retrieval(task, table_embed(table))}
    # ranking: first (0), second (1), third (0), fourth (3)
    gain = 1 / np.log2(3) + 3 / np.log2(5)
    assert found["nDCG@10"] == pytest.approx(gain / (3 / np.log2(2) + 1 / np.log2(3)))
    assert found["MAP"] == pytest.approx((1 / 2 + 2 / 4) / 2)
    assert found["MRR@10"] == pytest.approx(1 / 2)
    assert found["Recall@10"] == 1


def test_retrieval_may_embed_documents_otherwise():
    task = RetrievalTask("toy", {"1": "q"}, {"a": "x", "b": "y"}, {"1": {"b": 1}})
    outcomes = run_retrieval(task, table_embed({"q": [1, 0]}), embed_documents=table_embed({"x": [0, 1], "y": [1, 0]}))
    assert value_of(outcomes[0]) == 100


def test_retrieval_tasks_with_ids_that_do_not_fit_are_refused():
    with pytest.raises(InputError, match="query '2' has no relevant document"):
        RetrievalTask("toy", {"1": "q", "2": "r"}, {"a": "x"}, {"1": {"a": 1}})
    with pytest.raises(InputError, match="'z', which is not a document"):
        RetrievalTask("toy", {"1": "q"}, {"a": "x"}, {"1": {"a": 1, "z": 1}})


def test_clusters_that_are_apart_get_100():
    pytest.importorskip("sklearn")
    texts = [f"{kind} {number}" for kind in "abc" for number in range(10)]
    table = {text: [9 * "abc".index(text[0]), int(text[2:]) / 10] for text in texts}
    (outcome,) = run_clustering(ClusteringTask("toy", texts, [text[0] for text in texts]), table_embed(table))
    assert value_of(outcome) == pytest.approx(100)


def argument_task(n=240, n_topics=4, seed=0):
    """Pairs whose grade is the first feature of the left text; every topic shifts the second."""
    generator = np.random.default_rng(seed)
    grades = generator.integers(0, 3, size=n)
    topics = [f"topic {i % n_topics}" for i in range(n)]
    table = {f"l{i}": [grades[i], i % n_topics, *generator.normal(size=3)] for i in range(n)}
    table |= {f"r{i}": [1, 1, 1, 1, 1] for i in range(n)}
    task = ArgumentTask("toy", [f"l{i}" for i in range(n)], [f"r{i}" for i in range(n)], grades.tolist(), topics)
    return task, table


def test_argument_protocols_learn_what_holds_across_topics():
    task, table = argument_task()
    outcomes = {outcome.protocol: outcome for outcome in run_argument(task, table_embed(table))}
    found = {name: value_of(outcome) for name, outcome in outcomes.items()}
    assert len(found) == 8
    assert all(value > 97 for name, value in found.items() if "ridge" in name and "Pearson" in name)
    crossed = next(outcome for name, outcome in outcomes.items() if "cross-topic" in name)
    assert crossed.aggregation == "mean"
    assert len(crossed.group_names) == 4


def test_argument_scores_of_a_topic_do_not_depend_on_its_own_grades():
    task, table = argument_task()
    other = [2 - grade if topic == "topic 1" else grade for grade, topic in zip(task.gold, task.topics, strict=True)]
    changed = ArgumentTask("toy", task.left, task.right, other, task.topics)
    pick = np.array(task.topics) == "topic 1"
    before, after = (
        next(each.predicted for each in run_argument(one, table_embed(table)) if "cross-topic" in each.protocol)
        for one in (task, changed)
    )
    assert np.array_equal(before[pick], after[pick])
    assert not np.allclose(before[~pick], after[~pick])


def test_leaving_groups_out_by_formula_equals_refitting():
    generator = np.random.default_rng(0)
    rows, gold, groups = generator.normal(size=(30, 4)), generator.normal(size=30), np.arange(30) % 5
    rows -= rows.mean(axis=0)
    values, axes = np.linalg.eigh(rows.T @ rows)
    found = leave_out_errors(rows @ axes / np.sqrt(values + 2.0), gold, groups=groups)
    for group in range(5):
        kept, left = groups != group, groups == group
        centred = rows[kept] - rows[kept].mean(axis=0)
        weights = np.linalg.solve(centred.T @ centred + 2 * np.eye(4), centred.T @ (gold[kept] - gold[kept].mean()))
        refitted = gold[kept].mean() + (rows[left] - rows[kept].mean(axis=0)) @ weights
        assert np.allclose(gold[left] - found[left], refitted)


def write_tsv(path, *lines):
    path.parent.mkdir(parents=True, exist_ok=True)
    with gzip.open(path, "wt", encoding="utf-8") as file:
        file.writelines("\t".join(line) + "\n" for line in lines)


def test_a_missing_file_is_named_with_the_command_that_fetches_it(tmp_path):
    with pytest.raises(InputError, match=r"sts12\.tsv\.gz.*twinvec data get"):
        load_task("sts12", tmp_path)
    with pytest.raises(UnknownNameError, match="Did you mean 'sts12'"):
        load_task("sts-12", tmp_path)


@pytest.mark.parametrize(
    ("row", "message"),
    [
        (("news", "", "b", "c"), "line 3: 'score' is empty"),
        (("news", "high", "b", "c"), "line 3: 'score' is 'high'"),
        (("news", "nan", "b", "c"), "line 3: 'score' is 'nan'"),
        (("news", "7", "b", "c"), "line 3: 'score' is '7', not a number from 0 to 5"),
        (("news", "1", "b"), "line 3: the row has 3 fields"),
    ],
)
def test_a_bad_row_of_a_data_set_is_named_by_file_and_line(tmp_path, row, message):
    write_tsv(tmp_path / "sts/sts12.tsv.gz", ("subset", "score", "text1", "text2"), ("news", "1", "a", "b"), row)
    with pytest.raises(RowError, match=message) as caught:
        load_task("sts12", tmp_path)
    assert "sts12.tsv.gz" in str(caught.value)


def test_sick_is_three_tasks(tmp_path):
    for split, score in (("train", "1.5"), ("trial", "2.5"), ("test", "5")):
        row = ("neutral", score, f"{split} a", f"{split} b")
        write_tsv(tmp_path / f"sts/sick-{split}.tsv.gz", ("label", "score", "text1", "text2"), row, row)
    assert load_task("sick-r", tmp_path).gold == [1.5, 1.5, 2.5, 2.5, 5, 5]
    assert load_task("sick-r-test", tmp_path).left == ["test a"] * 2
    assert load_task("sick-r-trained", tmp_path).splits == ["train"] * 2 + ["dev"] * 2 + ["test"] * 2


def test_cranfield_codes_become_gains_with_the_best_highest(tmp_path):
    write_tsv(tmp_path / "search/cranfield-docs.tsv.gz", ("id", "title", "text"), ("1", "", "a"), ("2", "", ""))
    write_tsv(tmp_path / "search/cranfield-queries.tsv.gz", ("id", "text"), ("7", "q"))
    write_tsv(tmp_path / "search/cranfield-qrels.tsv.gz", ("query", "doc", "grade"), ("7", "1", "1"), ("7", "2", "4"))
    assert load_task("cranfield", tmp_path).relevant == {"7": {"1": 4.0, "2": 1.0}}


def test_documents_are_retrieved_like_cranfield(tmp_path):
    docs = ("1", "", "cats eat fish"), ("2", "", "ships cross the sea"), ("3", "", "rain falls")
    write_tsv(tmp_path / "search/documents-docs.tsv.gz", ("id", "title", "text"), *docs)
    write_tsv(tmp_path / "search/documents-queries.tsv.gz", ("id", "text"), ("1", "ships sea"), ("2", "fish eat cats"))
    grades = ("1", "2", "1"), ("2", "1", "1")
    write_tsv(tmp_path / "search/documents-qrels.tsv.gz", ("query", "doc", "grade"), *grades)
    task = load_task("documents-retrieval", tmp_path)
    assert task.relevant == {"1": {"2": 1.0}, "2": {"1": 1.0}}
    first = run_task(task, hashed)[0]
    assert first.protocol.startswith("nDCG@10 x 100") and first.task == "documents-retrieval"
    assert value_of(first) == pytest.approx(100)


def test_missing_documents_name_the_command_that_builds_them_and_break_no_group(tmp_path):
    with pytest.raises(InputError, match=r"documents-docs\.tsv\.gz.*python recipes/documents\.py FOLDER"):
        load_task("documents-retrieval", tmp_path)
    assert not any("documents-retrieval" in names for names in TASK_GROUPS.values())


def test_any_task_runs_by_its_type(tmp_path):
    assert set(KNOWN) >= {"sts12", "stsb", "sick-r", "mr", "trec", "mrpc", "argument", "cranfield"}
    outcomes = run_task(StsTask("toy", ["a b", "a", "c d"], ["a b", "a d", "e f"], [2, 1, 0]), hashed)
    assert all(isinstance(outcome, Outcome) for outcome in outcomes)
    assert value_of(outcomes[0]) == pytest.approx(100)
