"""What fewer bits cost, and that they never make a text depend on its neighbours."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

import twinvec
from tiny import FAMILIES, WORDS, write_tiny_model
from twinvec.data.sentences import gather_sentences
from twinvec.engine.int8 import quantize_columns
from twinvec.engine.runtimes import has_bfloat16

TEXTS = [" ".join(WORDS[i % 11 : i % 11 + 1 + i % 17]) for i in range(150)]


@pytest.mark.parametrize("family", FAMILIES)
def test_int8_stays_near_float32_in_every_architecture(tiny_folders, family):
    exact = twinvec.load(tiny_folders[family]).encode(TEXTS)
    small = twinvec.load(tiny_folders[family], precision="int8").encode(TEXTS)
    cosines = twinvec.similarity_pairwise(exact, small)
    assert cosines.mean() > 0.999 and cosines.min() > 0.99


ONE_TOKEN = {"first": {"pooling_mode_cls_token": True}, "last": {"pooling_mode_lasttoken": True}}


@pytest.mark.parametrize("pooling", ONE_TOKEN)
@pytest.mark.parametrize("family", ["bert", "mpnet", "albert"])
def test_int8_of_one_token_stays_near_float32_and_does_not_depend_on_the_batch(tmp_path, family, pooling):
    folder = write_tiny_model(tmp_path / "model", family, pooling=ONE_TOKEN[pooling])
    encoder = twinvec.load(folder, precision="int8")
    together = encoder.encode(TEXTS)
    assert twinvec.similarity_pairwise(twinvec.load(folder).encode(TEXTS), together).min() > 0.99
    for i in range(0, len(TEXTS), 10):  # its last layer is in float32, so not to the bit
        np.testing.assert_allclose(encoder.encode(TEXTS[i]), together[i], atol=2e-6)


@pytest.mark.parametrize("precision", ["int8", "bfloat16"])
def test_low_precision_gives_the_same_bits_alone_and_in_a_batch(tiny_bert, precision):
    if precision == "bfloat16":
        pytest.importorskip("openvino", reason="needs the extra 'fast'")
        if not has_bfloat16():
            pytest.skip("this CPU has no bfloat16 arithmetic")
    encoder = twinvec.load(tiny_bert, precision=precision)
    together = encoder.encode(TEXTS)
    shuffled = np.random.default_rng(0).permutation(len(TEXTS))
    assert np.array_equal(encoder.encode([TEXTS[i] for i in shuffled]), together[shuffled])
    for i in range(0, len(TEXTS), 10):
        assert np.array_equal(encoder.encode(TEXTS[i]), together[i])


def test_bfloat16_on_a_cpu_without_it_says_so_and_computes_in_float32(tiny_bert, encoder, caplog):
    pytest.importorskip("openvino", reason="needs the extra 'fast'")
    if has_bfloat16():
        pytest.skip("this CPU has bfloat16 arithmetic")
    instead = twinvec.load(tiny_bert, precision="bfloat16")
    assert "no bfloat16 arithmetic" in caplog.text
    assert instead.engine.precision == "float32"
    assert np.array_equal(instead.encode(TEXTS), encoder.encode(TEXTS))


matrices = arrays(np.float64, st.tuples(st.sampled_from([2, 4, 8]), st.integers(1, 5)), elements=st.floats(-10, 10))


@given(matrices)
def test_int8_columns_never_overflow_a_pair_and_stay_within_a_step(matrix):
    quantized, scale = quantize_columns(matrix)
    pairs = quantized.astype(int).reshape(-1, 2, matrix.shape[1])
    assert np.maximum(pairs, 0).sum(axis=1).max() <= 128 and np.maximum(-pairs, 0).sum(axis=1).max() <= 128
    # one step at the most: half for rounding, half where a pair would overflow
    assert np.abs(quantized * scale - matrix).max() <= scale.max() * 1.001 + 1e-9


@pytest.mark.weights
@pytest.mark.parametrize(("name", "least"), [("minilm", 0.999), ("mpnet", 0.998)])
def test_int8_is_faithful_on_real_weights(models, name, least):
    if not (models / name).is_dir():
        pytest.skip(f"TWINVEC_MODELS holds no {name}")
    texts = gather_sentences(200)
    exact = twinvec.load(models / name, long="cut").encode(texts)
    small = twinvec.load(models / name, long="cut", precision="int8").encode(texts)
    cosines = twinvec.similarity_pairwise(exact, small)
    assert cosines.mean() >= least and cosines.min() >= 0.99


@pytest.mark.weights
def test_int8_reads_what_it_was_not_measured_on(models):
    texts = [
        "def add(a, b):\n    return a + b",
        "Der schnelle braune Fuchs springt über den faulen Hund.",
        "3.14159 2.71828 1.41421",
        "ok",
        "?",
        "日本語のテキストです",
        "SELECT name FROM users WHERE age > 30 ORDER BY name;",
        "🙂🙃🚀",
        "word " * 250,
    ]
    exact = twinvec.load(models / "minilm", long="cut").encode(texts)
    small = twinvec.load(models / "minilm", long="cut", precision="int8").encode(texts)
    assert twinvec.similarity_pairwise(exact, small).min() > 0.985


@pytest.mark.weights
def test_int8_of_real_weights_gives_the_same_bits_alone_and_in_a_batch(models):
    texts = gather_sentences(150)
    encoder = twinvec.load(models / "minilm", precision="int8")
    together = encoder.encode(texts)
    assert np.array_equal(encoder.encode(texts[::-1])[::-1], together)
    for i in range(0, len(texts), 15):
        assert np.array_equal(encoder.encode(texts[i]), together[i])


SPECIAL_ALONE = [
    "",
    *(" ".join([token] * n) for token in ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]") for n in (1, 3, 9)),
]


def test_int8_reads_texts_of_special_tokens_as_float32_does():
    encoders = [twinvec.load(precision=precision) for precision in ("float32", "int8")]
    exact, small = (twinvec.unit_rows(encoder.encode(SPECIAL_ALONE)) for encoder in encoders)
    cosines = dict(zip(SPECIAL_ALONE, (exact * small).sum(axis=1).tolist(), strict=True))
    assert min(cosines.values()) > 0.99, cosines


def test_int8_reads_a_sentence_with_a_literal_padding_token_as_float32_does():
    texts = ["A man reads [PAD] a book.", "[PAD] The river is cold in winter.", "Rain falls on the city [PAD] [PAD]"]
    exact, small = (twinvec.unit_rows(twinvec.load(precision=each).encode(texts)) for each in ("float32", "int8"))
    assert (exact * small).sum(axis=1).min() > 0.998
