"""Our cross-encoders against transformers and sentence-transformers: tokens, types, scores, saved folders."""

from __future__ import annotations

import json

import numpy as np
import pytest

import twinvec
from tiny import CLASSIFIERS, WORDS, write_tiny_classifier
from twinvec.model.tokenizer import WordReader, load_tokenizer
from twinvec.pairs.tokens import LongPairs, PairRowMaker, pair_template, reads_types

torch = pytest.importorskip("torch", reason="parity needs the extra 'train'")
transformers = pytest.importorskip("transformers", reason="parity needs the extra 'train'")
pytestmark = pytest.mark.parity

RNG = np.random.default_rng(0)


def random_text(longest):
    return " ".join(RNG.choice(WORDS, RNG.integers(0, longest + 1)))


PAIRS = [(random_text(12), random_text(12)) for _ in range(40)] + [("", ""), ("a", ""), ("", "cat"), ("é ß", "🙂")]
LONG_PAIRS = [(random_text(60), random_text(60)) for _ in range(20)]


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


@pytest.mark.parametrize(
    "config",
    [
        {"classifier_pooling": "mean"},
        {"classifier_pooling": "mean", "classifier_bias": True, "classifier_activation": "relu"},
        {"norm_eps": 1e-3},
    ],
)
def test_the_head_of_modernbert_is_that_of_its_config(tmp_path, config):
    folder = write_tiny_classifier(tmp_path / "m", "modernbert", n_labels=2, config=config)
    ours = twinvec.load_scorer(folder, activation="none").score(PAIRS)
    np.testing.assert_allclose(ours, logits(folder, PAIRS), atol=1e-5, rtol=1e-5)


def test_types_are_left_out_where_the_tokenizer_does_not_give_them(tmp_path):
    with_types = write_tiny_classifier(tmp_path / "with")
    without = write_tiny_classifier(tmp_path / "without")
    limits = json.loads((without / "tokenizer_config.json").read_text())
    (without / "tokenizer_config.json").write_text(
        json.dumps({**limits, "model_input_names": ["input_ids", "attention_mask"]})
    )
    scores = [twinvec.load_scorer(folder, activation="none").score(PAIRS) for folder in (with_types, without)]
    assert np.abs(scores[0] - scores[1]).max() > 0.01
    for folder, ours in zip((with_types, without), scores, strict=True):
        np.testing.assert_allclose(ours, logits(folder, PAIRS)[:, 0], atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("family", ["bert", "roberta"])
@pytest.mark.parametrize("side", ["right", "left"])
def test_pairs_are_cut_as_transformers_cuts_them(tmp_path, family, side):
    folder = write_tiny_classifier(tmp_path / "m", family)
    limits = json.loads((folder / "tokenizer_config.json").read_text())
    (folder / "tokenizer_config.json").write_text(json.dumps({**limits, "truncation_side": side}))
    theirs = transformers.AutoTokenizer.from_pretrained(folder)
    tokenizer = load_tokenizer(folder)
    template, words = pair_template(tokenizer, folder), WordReader(tokenizer)
    rng = np.random.default_rng(1)
    n_cut = 0
    for limit in range(template.n_special + 1, 40):
        pairs = [tuple(" ".join(rng.choice(WORDS, rng.integers(0, 30))) for _ in range(2)) for _ in range(60)]
        cut = LongPairs(limit)
        rows = PairRowMaker(words, template, limit, "cut", cut).rows(pairs, range(len(pairs)))
        expected = theirs(
            [first for first, _ in pairs],
            [second for _, second in pairs],
            truncation="longest_first",
            max_length=limit,
            return_token_type_ids=True,
        )
        assert [row.ids for row in rows] == expected["input_ids"]
        assert [row.types for row in rows] == expected["token_type_ids"]
        whole = [len(ids) for ids in theirs([a for a, _ in pairs], [b for _, b in pairs])["input_ids"]]
        assert cut.n_cut == sum(length > limit for length in whole)
        assert cut.n_cut == 0 or cut.longest == max(whole)
        n_cut += cut.n_cut
    assert n_cut > 1000


# --- sentence-transformers


def their_scores(folder, pairs):
    sentence_transformers = pytest.importorskip("sentence_transformers")
    model = sentence_transformers.CrossEncoder(str(folder), device="cpu")
    return model, model.predict(pairs, show_progress_bar=False)


@pytest.mark.parametrize("family", CLASSIFIERS)
@pytest.mark.parametrize("n_labels", [1, 3])
def test_scores_equal_those_of_sentence_transformers_in_every_layout(tmp_path, family, n_labels):
    folder = write_tiny_classifier(tmp_path / "plain", family, n_labels=n_labels)
    pairs = PAIRS + LONG_PAIRS
    model, theirs = their_scores(folder, pairs)
    model.save(str(tmp_path / "saved"))
    assert (tmp_path / "saved/modules.json").is_file()
    twinvec.load_scorer(folder, long="cut").save(tmp_path / "ours")
    for each in (folder, tmp_path / "saved", tmp_path / "ours"):
        scorer = twinvec.load_scorer(each, long="cut")
        assert scorer.activation == ("sigmoid" if n_labels == 1 else "none")
        np.testing.assert_allclose(scorer.score(pairs), theirs, atol=1e-5, rtol=1e-5)
    np.testing.assert_array_equal(their_scores(tmp_path / "ours", pairs)[1], theirs)


@pytest.mark.parametrize(
    "config",
    [
        {"sentence_transformers": {"activation_fn": "torch.nn.modules.linear.Identity"}},
        {"sbert_ce_default_activation_function": "torch.nn.modules.linear.Identity"},
        {"sbert_ce_default_activation_function": "torch.nn.modules.activation.Sigmoid"},
    ],
)
def test_the_activation_is_the_one_that_the_config_names(tmp_path, config):
    folder = write_tiny_classifier(tmp_path / "m", config=config)
    _, theirs = their_scores(folder, PAIRS)
    np.testing.assert_allclose(twinvec.load_scorer(folder).score(PAIRS), theirs, atol=1e-5, rtol=1e-5)


def test_a_saved_folder_keeps_the_limit_and_the_activation_for_sentence_transformers(tmp_path):
    folder = write_tiny_classifier(tmp_path / "m")
    scorer = twinvec.load_scorer(folder, max_tokens=17, activation="none", long="cut")
    scorer.save(tmp_path / "out")
    model, theirs = their_scores(tmp_path / "out", LONG_PAIRS)
    assert model.max_seq_length == 17
    np.testing.assert_allclose(scorer.score(LONG_PAIRS), theirs, atol=1e-5, rtol=1e-5)
    np.testing.assert_allclose(scorer.score(LONG_PAIRS)[:, None], logits(tmp_path / "out", LONG_PAIRS), atol=1e-5)


def test_ranks_equal_those_of_sentence_transformers(tmp_path):
    folder = write_tiny_classifier(tmp_path / "m")
    texts = [f"{first} {second}" for first, second in PAIRS[:30]]
    model, _ = their_scores(folder, PAIRS)
    theirs = model.rank("the cat sits", texts, top_k=7)
    assert twinvec.load_scorer(folder).rank("the cat sits", texts, 7).rows.tolist() == [
        row["corpus_id"] for row in theirs
    ]


PARTS = [
    "hello world",
    "  a space",
    "naïve café — déjà vu",
    "日本語のテキスト",
    "<s> [SEP]",
    "\n\ttabs",
    "🙂",
    "x" * 300,
    "",
]


@pytest.mark.parametrize("name", ["minilm", "mpnet", "granite", "tinybert"])
def test_pairs_are_cut_as_transformers_cuts_them_by_real_tokenizers(models, name):
    folder = models / name
    if not folder.is_dir():
        pytest.skip(f"there is no {folder}")
    theirs, tokenizer = transformers.AutoTokenizer.from_pretrained(folder), load_tokenizer(folder)
    template, words = pair_template(tokenizer, folder), WordReader(tokenizer)
    assert reads_types(folder) == ("token_type_ids" in theirs.model_input_names)
    rng = np.random.default_rng(2)
    for limit in (8, 33, 128):
        pairs = [tuple(" ".join(rng.choice(PARTS, rng.integers(0, 9))) for _ in range(2)) for _ in range(100)]
        rows = PairRowMaker(words, template, limit, "cut", LongPairs(limit)).rows(pairs, range(len(pairs)))
        firsts, seconds = ([pair[i] for pair in pairs] for i in (0, 1))
        expected = theirs(firsts, seconds, truncation="longest_first", max_length=limit, return_token_type_ids=True)
        assert [row.ids for row in rows] == expected["input_ids"]
        assert [row.types for row in rows] == expected["token_type_ids"]
