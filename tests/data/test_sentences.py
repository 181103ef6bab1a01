"""Sentences out of docstrings."""

import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from twinvec.data.sentences import (
    are_near_duplicates,
    docstring_sentences,
    gather_sentences,
    is_sentence,
    python_files,
    shared_words,
    words,
)
from twinvec.engine.calibration import sample_texts


def test_sentences_are_split_and_their_white_space_is_folded():
    docstring = "Open the file.  It must\n    exist, e.g. on a disk! Is it there?\n\nThen read it slowly."
    assert docstring_sentences(docstring) == [
        "Open the file.",
        "It must exist, e.g. on a disk!",
        "Is it there?",
        "Then read it slowly.",
    ]


@pytest.mark.parametrize(
    "block",
    [
        ">>> open('a file').read()\n'It is here.'",
        "Name      What it means here.\nOther     What it means there.",
        "=========\nA heading here.\n=========",
        ".. deprecated:: 3.4\n   This is no more.",
        "Too short.",
        "x = y[0] + z(1) -> w.",
        "Has no full stop",
        "starts with a small letter.",
        "Long " * 61 + ".",
    ],
)
def test_examples_tables_headings_code_and_fragments_are_left_out(block):
    assert docstring_sentences(f"This one is kept.\n\n{block}") == ["This one is kept."]


def test_items_of_a_list_are_separate_texts():
    items = ["The first is speed.", "The second is truth."]
    assert docstring_sentences(f"Two things matter here:\n- {items[0]}\n- {items[1]}") == items
    assert docstring_sentences(f"This is so.\n\n1. {items[0]}\n2) {items[1]}") == ["This is so.", *items]


@given(st.text())
def test_any_docstring_can_be_split(docstring):
    for sentence in docstring_sentences(docstring):
        assert 3 <= len(sentence.split()) <= 60
        assert sentence == " ".join(sentence.split())


@pytest.fixture
def library(tmp_path):
    """A small library: two modules, a package, a test folder, and files that are no Python."""
    (tmp_path / "b.py").write_text('"""The module called b."""\ndef f():\n    """Do the first thing."""\n')
    (tmp_path / "a.py").write_text(
        '"""The module called a."""\nif True:\n    class A:\n        """Hold on to it."""\n'
        '        def g(self):\n            """Do the FIRST thing!"""\n'
        "def h():\n    'A bad \\escape is here.'\nraise SystemExit('imported')\n"
    )
    for name in ("pack", "test", "site-packages"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "c.py").write_text(f'"""The folder called {name}."""\n')
    (tmp_path / "broken.py").write_text("def (:\n")
    (tmp_path / "latin.py").write_bytes(b'"""The caf\xe9 is not open."""\n')
    (tmp_path / "null.py").write_bytes(b"\0")
    return tmp_path


def test_files_come_nearest_first_without_tests_and_installed_packages(library):
    names = [path.relative_to(library).as_posix() for path in python_files(library)]
    assert names == ["a.py", "b.py", "broken.py", "latin.py", "null.py", "pack/c.py"]


def test_docstrings_are_read_without_importing_and_each_sentence_comes_once(library):
    assert gather_sentences(100, library) == [
        "The module called a.",
        "Hold on to it.",
        "Do the FIRST thing!",
        "A bad \\escape is here.",
        "The module called b.",
        "The folder called pack.",
    ]
    assert gather_sentences(2, library) == ["The module called a.", "Hold on to it."]


def test_the_standard_library_has_sentences_in_a_fixed_order():
    before = set(sys.modules)
    sentences = gather_sentences(300)
    assert len(set(sentences)) == 300
    assert sentences == gather_sentences(300)
    assert all(is_sentence(sentence) for sentence in sentences)
    assert "antigravity" not in set(sys.modules) - before


@pytest.mark.parametrize(
    ("left", "right", "expected"),
    [
        ("Return the name.", "return THE name", True),
        ("Return the name.", "Return a name.", True),
        ("Return the name.", "Return the full name.", True),
        ("Convert a string to bytes.", "Convert bytes to a string.", True),
        ("Return the name.", "Return the first file.", False),
        ("Return it.", "Return it, and then return it.", False),
        ("", "", True),
    ],
)
def test_near_duplicates_differ_in_one_word_at_most(left, right, expected):
    assert are_near_duplicates(left, right) is expected
    assert are_near_duplicates(right, left) is expected


def test_shared_words_lie_between_none_and_all():
    assert shared_words("Open the file.", "open THE file") == 1
    assert shared_words("Open the file.", "Close a socket.") == 0
    assert shared_words("", "") == 0


def test_words_are_lower_case_letters_and_digits():
    assert words("RFC-2373: it's so.") == ("rfc", "2373", "it", "s", "so")


def test_sample_texts_are_different_and_of_mixed_length():
    texts = sample_texts(990)
    lengths = {len(text.split()) for text in texts}
    assert len(set(texts)) == 990
    assert min(lengths) <= 5 and max(lengths) >= 25
