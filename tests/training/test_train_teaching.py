"""Teachers' vectors: made once for every text, and not lost with the run that made them."""

from __future__ import annotations

from functools import partial
from types import SimpleNamespace

import numpy as np
import pytest

import twinvec
from tiny import WORDS, write_tiny_model
from twinvec import embedder

for needed in ("torch", "transformers", "matplotlib"):
    pytest.importorskip(needed, reason="training needs the extra 'train'")

from twinvec.training import teachers as teaching  # noqa: E402
from twinvec.training.processes import ALONE  # noqa: E402
from twinvec.vector_store import cache_folder  # noqa: E402

TEXTS = [f"{left} {right}" for left in WORDS[:5] for right in WORDS[5:8]]
BLOCK = 4


@pytest.fixture
def embedded(monkeypatch, tmp_path):
    """The texts that teachers embed, in order; the cache is the test's own, and a block is small."""
    texts: list[str] = []
    monkeypatch.setenv("TWINVEC_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(teaching, "CachedEmbedder", partial(embedder.CachedEmbedder, at_once=BLOCK))

    def load(name, **settings):
        encoder = twinvec.load(name, **settings)
        return Recorded(encoder, texts)

    monkeypatch.setattr(embedder, "load", load)
    return texts


class Recorded:
    """An encoder that notes what it embeds, and dies after some calls."""

    n_calls_left = 1000
    settings = SimpleNamespace(unknown="ignore")

    def __init__(self, encoder, texts):
        self.encoder, self.texts = encoder, texts

    def encode(self, texts, **settings):
        if not Recorded.n_calls_left:
            raise KeyboardInterrupt
        Recorded.n_calls_left -= 1
        self.texts += texts
        return self.encoder.encode(texts, **settings)


def vectors_of(teachers, texts, work, precision="float32"):
    names = [str(teacher) for teacher in teachers]
    return teaching.teacher_vectors(names, texts, precision=precision, work=work, processes=ALONE)


def test_rows_are_the_teachers_vectors_in_the_order_of_the_texts(embedded, tiny_folders, tmp_path):
    teachers = [tiny_folders["bert"], tiny_folders["mpnet"]]
    texts = [*TEXTS, TEXTS[0]]
    for teacher, found in zip(teachers, vectors_of(teachers, texts, tmp_path / "work"), strict=True):
        np.testing.assert_allclose(found, twinvec.load(teacher).encode(texts), atol=2e-6)
    assert sorted(embedded) == sorted(2 * TEXTS)  # a text that comes twice is embedded once


def test_a_second_run_embeds_only_what_is_new(embedded, tiny_bert, tmp_path):
    (first,) = vectors_of([tiny_bert], TEXTS, tmp_path / "one")
    embedded.clear()
    (second,) = vectors_of([tiny_bert], TEXTS, tmp_path / "two")
    assert embedded == []
    np.testing.assert_array_equal(first, second)
    vectors_of([tiny_bert], ["a new text", *reversed(TEXTS)], tmp_path / "three")
    assert embedded == ["a new text"]


def test_another_precision_or_another_model_is_another_teacher(embedded, tiny_bert, tmp_path):
    vectors_of([tiny_bert], TEXTS, tmp_path / "work")
    for teacher, precision in ((tiny_bert, "int8"), (write_tiny_model(tmp_path / "other", seed=1), "float32")):
        embedded.clear()
        vectors_of([teacher], TEXTS, tmp_path / "work", precision)
        assert embedded == TEXTS


def test_no_test_uses_the_users_cache(tmp_path_factory):
    assert cache_folder().is_relative_to(tmp_path_factory.getbasetemp())


def test_a_kill_between_blocks_loses_at_most_one_block(embedded, tiny_bert, tmp_path, monkeypatch):
    monkeypatch.setattr(Recorded, "n_calls_left", 2)
    with pytest.raises(KeyboardInterrupt):
        vectors_of([tiny_bert], TEXTS, tmp_path / "work")
    assert embedded == TEXTS[: 2 * BLOCK]
    assert not (tmp_path / "work").exists()
    embedded.clear()
    monkeypatch.setattr(Recorded, "n_calls_left", 1000)
    (found,) = vectors_of([tiny_bert], TEXTS, tmp_path / "work")
    assert embedded == TEXTS[2 * BLOCK :]
    np.testing.assert_allclose(found, twinvec.load(tiny_bert).encode(TEXTS), atol=2e-6)
