"""The training texts that were written for this project: every line is whole, and none is there twice."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

import pytest

from texts.cleaning import key_of, plain
from texts.written import PAIRS, WRITTEN

FOLDER = Path(__file__).parents[2] / "recipes/written"
FILES = sorted(FOLDER.glob("*.tsv"))
HANGUL = re.compile("[가-힣]")


def rows_of(file):
    head, *rows = (line.split("\t") for line in file.read_text(encoding="utf-8").splitlines())
    return head, rows


def test_the_recipe_reads_each_file():
    names = {source.package.name for source in WRITTEN if source.package.registry == "ours"}
    assert names == {f"recipes/written/{file.name}" for file in FILES}


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_a_file_has_clean_rows_of_different_texts(file):
    head, rows = rows_of(file)
    assert len(rows) > 200
    for row in rows:
        assert len(row) == len(head) and all(row), row
        assert [plain(cell) for cell in row] == row
    twice = [key for key, n in Counter(key_of(row[0]) for row in rows).items() if n > 1]
    assert not twice


@pytest.mark.parametrize("name", PAIRS)
def test_a_pair_is_english_and_korean(name):
    head, rows = rows_of(FOLDER / f"{name}.tsv")
    assert head == ["english", "korean"]
    assert not [row for row in rows if HANGUL.search(row[0]) or not HANGUL.search(row[1])]
