"""Translations and paraphrases: worked examples, and the Korean data sets."""

from __future__ import annotations

import numpy as np
import pytest

from twinvec.errors import InputError
from twinvec.evaluation.evaluate import run_task
from twinvec.evaluation.statistics import value_of
from twinvec.evaluation.tasks import BitextTask, ParaphraseTask, load_task, run_bitext, run_paraphrases

ANGLES = {"cat": 0, "dog": 40, "car": 100, "고양이": 5, "개": 25, "차": 30, "고양이 ": 5}


def embed(texts):
    angles = np.radians([ANGLES[text] for text in texts])
    return np.stack([np.cos(angles), np.sin(angles)], axis=1).astype(np.float32)


def test_translations_are_found_both_ways():
    task = BitextTask("toy", ["cat", "dog", "car"], ["고양이", "개", "차"], ("English", "Korean"))
    to_korean, to_english = run_bitext(task, embed)
    assert to_korean.predicted.tolist() == [1, 0, 1]  # the nearest to dog (40) is 차 (30)
    assert to_english.predicted.tolist() == [1, 1, 0]  # the nearest to 차 (30) is dog (40)
    assert to_korean.protocol == "Accuracy x 100, English to Korean, nearest by cosine of 3 texts"


def test_a_repeated_translation_is_right_in_both_places():
    task = BitextTask("toy", ["cat", "dog"], ["고양이", "고양이"])
    assert run_bitext(task, embed)[0].predicted.tolist() == [1, 1]


def test_paraphrases_are_the_nearest_of_all_other_texts():
    # cat 0, 고양이 5 | 개 25, 차 30, dog 40 (R = 2)
    task = ParaphraseTask("toy", ["cat", "고양이", "개", "차", "dog"], ["a", "a", "b", "b", "b"])
    average, precision = run_paraphrases(task, embed)
    assert average.predicted.tolist() == precision.predicted.tolist() == [1, 1, 1, 1, 1]
    mixed = ParaphraseTask("toy", ["cat", "차", "개", "고양이", "dog"], ["a", "a", "b", "b", "b"])
    average, precision = run_paraphrases(mixed, embed)
    # 고양이 (5): cat (no), then 개 (yes): half of its paraphrases, at rank 2
    assert precision.predicted.tolist() == [0, 0, 0.5, 0.5, 0.5]
    assert average.predicted.tolist() == [0, 0, 0.25, 0.25, 0.25]
    assert "R nearest by cosine of the 4 other texts" in average.protocol


def test_identical_texts_are_found_as_paraphrases_and_never_as_the_text_itself():
    task = ParaphraseTask("toy", ["cat", "cat", "cat", "dog", "개"], ["a", "a", "a", "b", "b"])
    assert value_of(run_task(task, embed)[0]) == pytest.approx(100)


@pytest.mark.parametrize(
    ("make", "problem"),
    [
        (lambda: BitextTask("t", ["a", "b"], ["c"]), "differ in length"),
        (lambda: BitextTask("t", ["a"], ["c"]), "at least 2"),
        (lambda: ParaphraseTask("t", ["a", "b", "c"], ["x", "x", "y"]), "group 'y' has one text"),
    ],
)
def test_impossible_tasks_are_refused(make, problem):
    with pytest.raises(InputError, match=problem):
        make()


def write(path, *rows):
    path.parent.mkdir(exist_ok=True)
    path.write_text("".join("\t".join(row) + "\n" for row in rows), encoding="utf-8")


def test_cross_lingual_pairs_are_english_and_korean_row_by_row(tmp_path):
    head = ("genre", "score", "text1", "text2")
    write(tmp_path / "sts/stsb-test.tsv", head, ("n", "5", "cat", "dog"), ("n", "1", "car", "dog"))
    write(tmp_path / "korean/korsts-test.tsv", head, ("n", "5.0", "고양이", "개"), ("n", "1", "차", "개"))
    task = load_task("korsts-cross", tmp_path)
    assert (task.left, task.right, task.gold) == (["cat", "car"], ["개", "개"], [5, 1])
    write(tmp_path / "korean/korsts-test.tsv", head, ("n", "1", "차", "개"), ("n", "5", "고양이", "개"))
    with pytest.raises(InputError, match="not the same pairs in the same order"):
        load_task("korsts-cross", tmp_path)


@pytest.mark.data
def test_the_korean_data_sets_have_their_published_sizes(data):
    cross, tatoeba, paraphrases = (load_task(name, data) for name in ("korsts-cross", "tatoeba-ko", "parakqc"))
    assert (len(cross.gold), len(tatoeba.left), len(paraphrases.texts)) == (1379, 1000, 10_000)
    assert len(set(paraphrases.groups)) == 1000
    assert cross.left[0].isascii() and not cross.right[0].isascii()
