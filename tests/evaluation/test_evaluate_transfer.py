"""Classifiers on frozen vectors: right where the vectors tell, at chance where they do not, blind to the test rows."""

from __future__ import annotations

import numpy as np
import pytest

from twinvec.errors import InputError, RowError, UnknownNameError
from twinvec.evaluation.statistics import value_of
from twinvec.evaluation.tasks import (
    RelatednessTask,
    TransferTask,
    bigram_shift_task,
    read_probing,
    run_relatedness,
    run_transfer,
    sentence_length_task,
    word_content_task,
)
from twinvec.evaluation.tasks.common import label_folds, splits_of
from twinvec.evaluation.tasks.logistic import STRENGTHS, fit_softmax, one_hot
from twinvec.evaluation.tasks.sts import score_targets
from twinvec.evaluation.tasks.transfer import CLASSIFIERS, Labeled, predict_labels


def task_of(labels, *, splits=(), width=6, tell=0.0, seed=0):
    """A task with random vectors, whose first column tells the label as far as ``tell`` says."""
    generator = np.random.default_rng(seed)
    texts = [f"text {row}" for row in range(len(labels))]
    vectors = generator.normal(size=(len(labels), width)).astype(np.float32)
    vectors[:, 0] += tell * np.unique(labels, return_inverse=True)[1]
    table = dict(zip(texts, vectors, strict=True))
    return TransferTask("toy", texts, labels, splits=splits), lambda asked: np.array([table[text] for text in asked])


@pytest.mark.parametrize("classifier", CLASSIFIERS)
@pytest.mark.parametrize("splits", ["", "train test", "train dev test"])
def test_vectors_that_tell_the_label_get_it_right(classifier, splits):
    labels = ["no", "yes"] * 200
    marks = [(splits.split() * 200)[row // 2] for row in range(400)] if splits else ()
    task, embed = task_of(labels, splits=marks, tell=30.0)
    (outcome,) = run_transfer(task, embed, classifier=classifier, n_folds=5)
    assert value_of(outcome) == 100
    assert len(outcome) == (list(marks).count("test") if splits else 400)


@pytest.mark.parametrize("classifier", CLASSIFIERS)
def test_labels_that_vectors_do_not_tell_stay_near_chance_however_wide_the_vectors(classifier):
    # Wider than there are rows: a classifier that had seen a row, or chosen anything by it, would know its label.
    labels = np.random.default_rng(3).permutation(["no", "yes"] * 100).tolist()
    task, embed = task_of(labels, width=300)
    (outcome,) = run_transfer(task, embed, classifier=classifier, n_folds=5)
    assert 38 < value_of(outcome) < 62  # 50 +- 3.5 standard errors


@pytest.mark.parametrize("classifier", CLASSIFIERS)
def test_predictions_of_a_fold_do_not_change_with_its_labels(classifier):
    task, embed = task_of((["no", "yes"] * 50), tell=1.0)
    data = Labeled(embed(task.texts), np.array([0, 1] * 50))
    folds = label_folds(data.labels, 5, seed=0)
    train, test = next(splits_of(folds))
    garbled = Labeled(data.features, np.where(folds == 0, 1 - data.labels, data.labels))
    runs = [CLASSIFIERS[classifier](each.rows(train), data.features[test], dev=None, n_folds=3, seed=0)
            for each in (data, garbled)]  # fmt: skip
    assert np.array_equal(*runs)


def test_nested_folds_hand_every_row_out_once_and_never_with_its_own_label():
    task, _ = task_of(["no", "yes"] * 30)
    data = Labeled(np.arange(60, dtype=np.float32)[:, None], np.array([0, 1] * 30))
    handed = []

    def spy(train, test, *, dev, n_folds, seed):
        assert dev is None
        assert not set(train.features[:, 0]) & set(test[:, 0])
        assert len(train) + len(test) == 60
        assert np.array_equal(train.labels, train.features[:, 0].astype(int) % 2)
        handed.extend(test[:, 0].astype(int))
        return test[:, 0].astype(int) % 2

    rows, found = predict_labels(task, data, classifier=spy)
    assert sorted(handed) == list(range(60))
    assert np.array_equal(found, data.labels[rows])


def test_dev_rows_choose_and_test_rows_do_not():
    # The first column tells the label in train and dev, and its opposite in test.
    splits = (["train"] * 8 + ["dev"] * 4 + ["test"] * 4) * 8
    labels = ["no", "yes"] * 64
    task, embed = task_of(labels, splits=splits)
    sign = np.array([-1 if split == "test" else 1 for split in splits])
    vectors = embed(task.texts)
    vectors[:, 0] = 30 * sign * np.where(np.array(labels) == "yes", 1, -1)
    table = dict(zip(task.texts, vectors, strict=True))
    for classifier in CLASSIFIERS:
        (outcome,) = run_transfer(task, lambda asked: np.array([table[text] for text in asked]), classifier=classifier)
        assert value_of(outcome) == 0


def test_the_same_seed_gives_the_same_answers():
    task, embed = task_of(["a", "b", "c"] * 30, tell=1.0)
    for classifier in CLASSIFIERS:
        first, second = (run_transfer(task, embed, classifier=classifier, n_folds=3, seed=5)[0] for _ in range(2))
        assert np.array_equal(first.predicted, second.predicted)


def test_the_length_of_the_vectors_does_not_matter():
    task, embed = task_of(["no", "yes"] * 60, tell=1.0)
    for classifier in CLASSIFIERS:
        short, long = (
            run_transfer(task, lambda asked, by=by: by * embed(asked), classifier=classifier, n_folds=3)[0]
            for by in (1.0, 16.0)
        )
        assert np.array_equal(short.predicted, long.predicted)


def test_pairs_report_accuracy_and_f1_of_the_positive_label():
    generator = np.random.default_rng(0)
    table = {f"{side}{row}": generator.normal(size=4) for side in "lr" for row in range(80)}
    for row in range(0, 80, 2):
        table[f"r{row}"] = table[f"l{row}"]
    left, right = [f"l{row}" for row in range(80)], [f"r{row}" for row in range(80)]
    splits = ["train" if row < 60 else "test" for row in range(80)]
    task = TransferTask("pairs", left, ["1", "0"] * 40, others=right, splits=splits, positive="1")
    accuracy, f1 = run_transfer(task, lambda asked: np.array([table[text] for text in asked]))
    assert value_of(accuracy) >= 90
    assert f1.gold.tolist() == [1, 0] * 10
    assert "[|u-v|, u*v]" in accuracy.protocol


def test_protocols_say_what_was_done():
    task, embed = task_of(["no", "yes"] * 30, tell=9.0)
    (outcome,) = run_transfer(task, embed)
    assert (
        outcome.protocol == "Accuracy x 100, logistic regression on frozen vectors, 10-fold with C by an inner 5-fold"
    )


def test_transfer_tasks_that_cannot_be_run_are_refused():
    with pytest.raises(InputError, match="all 2 labels are 'a'"):
        TransferTask("toy", ["x", "y"], ["a", "a"])
    with pytest.raises(UnknownNameError, match="row 1"):
        TransferTask("toy", ["x", "y"], ["a", "b"], splits=["train", "tests"])
    with pytest.raises(InputError, match="lack train or test"):
        TransferTask("toy", ["x", "y"], ["a", "b"], splits=["train", "train"])
    task, embed = task_of(["no", "yes"])
    with pytest.raises(InputError, match="2 rows cannot be split into 10 folds"):
        run_transfer(task, embed)
    with pytest.raises(UnknownNameError, match="logreg"):
        run_transfer(task, embed, classifier="logit")


@pytest.mark.parametrize("n_classes", [2, 4])
def test_softmax_regression_finds_the_optimum_of_scikit_learn(n_classes):
    linear_model = pytest.importorskip("sklearn.linear_model")
    generator = np.random.default_rng(0)
    features = generator.normal(size=(400, 12)).astype(np.float32) * np.linspace(0.1, 3, 12, dtype=np.float32)
    labels = (features @ generator.normal(size=(12, n_classes)) + 3 * generator.normal(size=(400, n_classes))).argmax(1)
    models = fit_softmax(features, one_hot(labels))
    for place, strength in enumerate(STRENGTHS):
        reference = linear_model.LogisticRegression(C=strength, tol=1e-8, max_iter=2000)
        expected = reference.fit(models.scale.apply(features), labels).predict_proba(models.scale.apply(features))
        assert np.allclose(
            models.probabilities(features)[place], expected, atol=1e-3
        )  # the descent stops at steps of 0.01 %


def test_relatedness_is_learned_on_train_and_judged_on_test():
    generator = np.random.default_rng(0)
    n = 300
    gold = generator.uniform(1, 5, size=n)
    table = {f"l{row}": [gold[row], *generator.normal(size=3)] for row in range(n)}
    table |= {f"r{row}": [1.0, 1, 1, 1] for row in range(n)}
    splits = ["train"] * 200 + ["dev"] * 50 + ["test"] * 50
    left, right = [f"l{row}" for row in range(n)], [f"r{row}" for row in range(n)]
    task = RelatednessTask("toy", left, right, gold.tolist(), splits, bounds=(1, 5))
    pearson, spearman = run_relatedness(task, lambda asked: np.array([table[text] for text in asked]))
    assert np.array_equal(pearson.gold, gold[250:])
    assert value_of(pearson) > 95
    assert value_of(spearman) > 95
    assert 1 <= pearson.predicted.min() <= pearson.predicted.max() <= 5


def test_score_targets_keep_the_score_as_their_mean():
    scores = np.array([1.0, 2.3, 4.999, 5.0])
    targets = score_targets(scores, (1, 5))
    assert np.allclose(targets.sum(axis=1), 1)
    assert np.allclose(targets @ np.arange(1, 6), scores, atol=1e-5)


def test_relatedness_refuses_scores_out_of_bounds_and_missing_splits():
    with pytest.raises(InputError, match="row 0: the score 7 is not from 0 to 5"):
        RelatednessTask("toy", ["a"] * 3, ["b"] * 3, [7, 1, 1], ["train", "dev", "test"])
    with pytest.raises(InputError, match="Provide train, dev and test"):
        RelatednessTask("toy", ["a"] * 3, ["b"] * 3, [1, 1, 1], ["train", "train", "test"])


def corpus(n=3000, seed=0):
    generator = np.random.default_rng(seed)
    words = [f"{first}{second}{third}" for first in "bdfgk" for second in "aeiou" for third in "lmnrst"]
    weights = 1 / np.arange(1, len(words) + 1)
    lengths = generator.integers(4, 30, size=n)
    return [" ".join(generator.choice(words, size=length, p=weights / weights.sum())) for length in lengths]


@pytest.mark.parametrize(
    "make",
    [
        sentence_length_task,
        lambda texts, **settings: word_content_task(texts, n_words=8, skip=60, **settings),
        bigram_shift_task,
    ],
)
def test_probing_tasks_are_balanced_seeded_and_split_without_shared_texts(make):
    texts = corpus()
    task, again, other = make(texts, seed=1), make(texts, seed=1), make(texts, seed=2)
    assert (task.texts, task.labels) == (again.texts, again.labels)
    assert task.texts != other.texts
    counts = {
        split: [sum(1 for row in zip(task.splits, task.labels, strict=True) if row == (split, label))
                for label in sorted(set(task.labels))]
        for split in ("train", "dev", "test")
    }  # fmt: skip
    assert all(len(set(count)) == 1 and count[0] > 0 for count in counts.values())
    parts = [{text for text, each in zip(task.texts, task.splits, strict=True) if each == split} for split in counts]
    assert not (parts[0] & parts[1] or parts[0] & parts[2] or parts[1] & parts[2])


def test_lengths_and_words_are_what_the_labels_say():
    texts = corpus()
    for text, label in zip(*(lambda task: (task.texts, task.labels))(sentence_length_task(texts)), strict=True):
        low, high = map(int, label.split("-"))
        assert low <= len(text.split()) <= high
    task = word_content_task(texts, n_words=8, skip=60)
    for text, label in zip(task.texts, task.labels, strict=True):
        assert set(text.split()) & set(task.labels) == {label}


def test_bigram_shift_swaps_two_adjacent_inner_words_of_half_the_texts():
    originals = {" ".join(text.split()) for text in corpus()}
    task = bigram_shift_task(corpus())
    ends = {(text.split()[0], text.split()[-1], tuple(sorted(text.split()))) for text in originals}
    for text, label in zip(task.texts, task.labels, strict=True):
        assert label == "shifted" or text in originals
        assert (text.split()[0], text.split()[-1], tuple(sorted(text.split()))) in ends
    shifted = [text for text, label in zip(task.texts, task.labels, strict=True) if label == "shifted"]
    assert sum(text in originals for text in shifted) < 0.01 * len(shifted)


def test_probing_needs_enough_texts():
    with pytest.raises(InputError, match="'9-12' has 0 texts; 10 are required"):
        sentence_length_task(["one two three four five six"])
    with pytest.raises(InputError, match="too few to take 50 after 200"):
        word_content_task(["one two three"])


def test_a_probing_file_of_senteval_is_read_and_run(tmp_path):
    marks = ["tr"] * 20 + ["va"] * 6 + ["te"] * 6
    rows = [f"{mark}\t{'past' if row % 2 else 'now'}\ttext {row}\n" for row, mark in enumerate(marks)]
    file = tmp_path / "past_present.txt"
    file.write_text("".join(rows))
    task = read_probing(file)
    assert task.name == "past_present"
    (outcome,) = run_transfer(task, lambda texts: np.array([[int(text[5:]) % 2, 1.0] for text in texts]))
    assert value_of(outcome) == 100
    file.write_text(rows[0] + "xx\tnow\ttext\n")
    with pytest.raises(UnknownNameError, match="line 2: 'xx'"):
        read_probing(file)
    file.write_text(rows[0] + "tr\tnow\n")
    with pytest.raises(RowError, match="line 2: 2 fields instead of 3"):
        read_probing(file)
