"""Our cross-encoders against transformers and sentence-transformers: tokens, types, and scores of every architecture."""

from __future__ import annotations

import logging

import numpy as np
import pytest

import twinvec
from tiny import CLASSIFIERS, WORDS, write_tiny_classifier
from twinvec.model.tokenizer import WordReader, load_tokenizer
from twinvec.pairs.tokens import LongPairs, PairRowMaker, pair_template

torch = pytest.importorskip("torch", reason="parity needs the extra 'train'")
transformers = pytest.importorskip("transformers", reason="parity needs the extra 'train'")
pytestmark = pytest.mark.parity

RNG = np.random.default_rng(0)


def random_text(longest):
    return " ".join(RNG.choice(WORDS, RNG.integers(0, longest + 1)))


PAIRS = [(random_text(12), random_text(12)) for _ in range(40)] + [("", ""), ("a", ""), ("", "cat"), ("é ß", "🙂")]
LONG_PAIRS = [(random_text(60), random_text(60)) for _ in range(20)]


@pytest.fixture(scope="session")
def classifiers(tmp_path_factory):
    root = tmp_path_factory.mktemp("classifiers")
    return {family: write_tiny_classifier(root / family, family) for family in CLASSIFIERS}


def logits(folder, pairs):
    model = transformers.AutoModelForSequenceClassification.from_pretrained(folder).eval()
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    firsts, seconds = ([pair[i] for pair in pairs] for i in (0, 1))
    limit = min(tokenizer.model_max_length, 40)
    batch = tokenizer(firsts, seconds, padding=True, truncation="longest_first", max_length=limit, return_tensors="pt")
    with torch.inference_mode():
        return model(**batch).logits.numpy()


@pytest.mark.parametrize("family", CLASSIFIERS)
@pytest.mark.parametrize("n_labels", [1, 3])
def test_raw_scores_equal_those_of_transformers(tmp_path, family, n_labels):
    folder = write_tiny_classifier(tmp_path / "m", family, n_labels=n_labels, seed=n_labels)
    ours = twinvec.load_scorer(folder, activation="none", long="cut").score(PAIRS + LONG_PAIRS)
    theirs = logits(folder, PAIRS + LONG_PAIRS)
    assert ours.shape == ((len(theirs),) if n_labels == 1 else theirs.shape)
    assert theirs.std(axis=0).min() > 0.05  # scores that are all alike would prove nothing
    np.testing.assert_allclose(ours.reshape(theirs.shape), theirs, atol=1e-5, rtol=1e-5)
