"""What the encoder promises its users."""

from __future__ import annotations

import logging

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import twinvec
from tiny import WORDS, write_tiny_model
from twinvec.errors import InputError, TextTooLongError, UnknownNameError

SENTENCES = ["the cat sits on the mat", "a dog", "", "rain in the old city and sun on the river", "a dog"]


def test_a_string_gives_one_vector_a_list_one_row_per_text_and_an_empty_list_no_rows(encoder):
    assert encoder.encode("the cat").shape == (32,)
    assert encoder.encode(["the cat"]).shape == (1, 32)
    empty = encoder.encode([])
    assert empty.shape == (0, 32) and empty.dtype == np.float32
    assert encoder.encode(iter(["a", "b"])).shape == (2, 32)
    assert encoder.encode(np.array(["a", "b"])).shape == (2, 32)


def test_row_i_belongs_to_text_i(encoder):
    together = encoder.encode(SENTENCES)
    for text, vector in zip(SENTENCES, together, strict=True):
        np.testing.assert_allclose(encoder.encode(text), vector, atol=2e-6)
    assert np.array_equal(together[1], together[4])


texts_strategy = st.lists(st.lists(st.sampled_from(WORDS), max_size=20).map(" ".join), min_size=1, max_size=40)


@settings(deadline=None, max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(texts=texts_strategy, data=st.data())
def test_order_and_batch_change_at_most_two_millionths(encoder, texts, data):
    order = data.draw(st.permutations(range(len(texts))))
    straight, shuffled = encoder.encode(texts), encoder.encode([texts[i] for i in order])
    np.testing.assert_allclose(straight[list(order)], shuffled, atol=2e-6, rtol=0)


@pytest.fixture(scope="module")
def exact(tiny_bert):
    return twinvec.load(tiny_bert, deterministic=True, threads=2)


@settings(deadline=None, max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(texts=texts_strategy, data=st.data())
def test_deterministic_gives_the_same_bits_in_any_batch(exact, texts, data):
    order = data.draw(st.permutations(range(len(texts))))
    straight, shuffled = exact.encode(texts), exact.encode([texts[i] for i in order])
    assert np.array_equal(straight[list(order)], shuffled)
    assert np.array_equal(exact.encode(texts[0]), straight[0])


def test_deterministic_bits_do_not_depend_on_the_number_of_threads(tiny_bert, exact):
    alone = twinvec.load(tiny_bert, deterministic=True, threads=1)
    texts = [" ".join(WORDS[: 1 + i % 20]) for i in range(200)]
    assert np.array_equal(alone.encode(texts), exact.encode(texts))


def test_prompts_are_put_before_every_text(tmp_path):
    import json

    folder = write_tiny_model(tmp_path / "model")
    prompts = {"query": "the man ", "passage": "a book "}
    settings = {"prompts": prompts, "default_prompt_name": "query"}
    (folder / "config_sentence_transformers.json").write_text(json.dumps(settings))
    encoder = twinvec.load(folder)
    plain = encoder.encode(["the man sleeps", "a book sleeps"], prompt="")
    np.testing.assert_allclose(encoder.encode("sleeps"), plain[0], atol=1e-6)  # the default prompt
    np.testing.assert_allclose(encoder.encode_query("sleeps"), plain[0], atol=1e-6)
    np.testing.assert_allclose(encoder.encode_document("sleeps"), plain[1], atol=1e-6)
    np.testing.assert_allclose(encoder.encode("sleeps", prompt="a book "), plain[1], atol=1e-6)
    with pytest.raises(UnknownNameError, match="Did you mean 'query'"):
        encoder.encode("x", prompt_name="qery")


@pytest.mark.parametrize(
    ("output", "dtype", "width"),
    [("int8", np.int8, 32), ("uint8", np.uint8, 32), ("binary", np.int8, 4), ("ubinary", np.uint8, 4)],
)
def test_vectors_in_fewer_bits_have_their_type_and_width(encoder, output, dtype, width):
    vectors = encoder.encode(SENTENCES, output=output)
    assert vectors.dtype == dtype and vectors.shape == (len(SENTENCES), width)
    full = encoder.encode(SENTENCES)
    if output == "ubinary":
        assert np.array_equal(np.unpackbits(vectors, axis=1).astype(bool), full > 0)
    if output == "int8":
        np.testing.assert_allclose((vectors.astype(np.float32) + 128) / 127.5 - 1, full, atol=1 / 255 + 1e-6)


def test_truncated_vectors_are_the_first_values(tiny_bert, encoder):
    short = twinvec.load(tiny_bert, truncate_dim=8)
    assert short.width == 8
    np.testing.assert_allclose(short.encode(SENTENCES), encoder.encode(SENTENCES)[:, :8], atol=1e-6)
    with pytest.raises(InputError, match="1 to 32"):
        twinvec.load(tiny_bert, truncate_dim=33)


def test_an_iterator_gives_the_same_vectors_one_by_one(encoder, monkeypatch):
    monkeypatch.setattr("twinvec.encoder.TEXTS_PER_BLOCK", 7)
    texts = [" ".join(WORDS[i % 5 : i % 11 + 1]) for i in range(50)]
    drawn = []

    def source():
        for text in texts:
            drawn.append(text)
            yield text

    vectors = encoder.encode_iter(source())
    first = next(vectors)
    assert len(drawn) == 7  # only one block was read for the first vector
    np.testing.assert_allclose(np.stack([first, *vectors]), encoder.encode(texts), atol=2e-6)


def test_token_vectors_average_to_the_sentence_vector(encoder):
    tokens = encoder.encode_tokens(SENTENCES)
    assert [len(states) for states in tokens] == encoder.count_tokens(SENTENCES).tolist()
    means = np.stack([states.mean(axis=0) for states in tokens])
    np.testing.assert_allclose(twinvec.unit_rows(means), encoder.encode(SENTENCES), atol=1e-5)
    assert encoder.encode_layers("the cat")[0].shape == (4, 4, 32)


LONG = "cat " * 30  # 32 tokens; the tiny model reads 24


def test_long_texts_give_one_warning_with_their_count_and_the_longest(encoder, caplog):
    with caplog.at_level(logging.WARNING):
        encoder.encode([LONG, "a dog", LONG + LONG])
    assert len(caplog.records) == 1
    message = caplog.records[0].getMessage()
    assert "2 texts" in message and "24 tokens" in message and "62 tokens" in message


def test_long_texts_can_be_refused_cut_or_read_in_windows(tiny_bert, encoder, caplog):
    with pytest.raises(TextTooLongError, match=r"texts\[1\] has 32 tokens, but this model reads 24"):
        twinvec.load(tiny_bert, long="error").encode(["a dog", LONG])
    with caplog.at_level(logging.WARNING):
        cut = twinvec.load(tiny_bert, long="cut").encode(LONG)
        assert not caplog.records
        np.testing.assert_allclose(cut, encoder.encode("cat " * 22), atol=1e-6)


def test_chunks_are_pooled_by_their_token_counts(tiny_bert):
    encoder = twinvec.load(tiny_bert, long="chunk")
    words = [*WORDS, *WORDS]
    text = " ".join(words[:40])  # 40 tokens, 22 to a window, 5 shared
    spans = [(0, 22), (17, 39), (18, 40)]
    parts = encoder.encode([" ".join(words[a:b]) for a, b in spans])
    expected = twinvec.unit_rows(parts.mean(axis=0))
    np.testing.assert_allclose(encoder.encode(text), expected, atol=1e-5)


def test_lengths_say_per_text_what_was_cut(encoder):
    lengths = encoder.lengths(["a dog", LONG])
    assert lengths.n_tokens.tolist() == [4, 32] and lengths.is_cut.tolist() == [False, True]
    assert encoder.count_tokens("a dog") == 4


def test_a_ten_megabyte_text_gets_a_right_vector(encoder):
    text = "the cat sits on the mat. " * 400_000
    assert len(text) == 10_000_000
    np.testing.assert_allclose(encoder.encode(text), encoder.encode(text[:2_000]), atol=1e-6)


@pytest.mark.parametrize(
    ("texts", "message"),
    [
        (None, "got NoneType"),
        (5, "got int"),
        (b"bytes", "got bytes"),
        ({"a": 1}, "got dict"),
        (["a", None], r"texts\[1\] is None"),
        (["a", 3.5], r"texts\[1\] is 3.5, of type float"),
        ([b"raw"], r"Decode bytes first"),
        (["a", "b\ud800c"], r"texts\[1\] holds a lone surrogate \('\\ud800'\) at character 1"),
    ],
)
def test_values_that_are_not_texts_are_refused_with_their_position(encoder, texts, message):
    with pytest.raises(InputError, match=message):
        encoder.encode(texts)


@pytest.mark.parametrize(
    ("option", "message"),
    [
        ({"precision": "float16"}, "Unknown precision 'float16'. Did you mean 'bfloat16'"),
        ({"long": "chop"}, "Unknown long 'chop'"),
        ({"threads": 0}, "threads must be a whole number of at least 1, got 0"),
        ({"runtime": "onnxruntim"}, "Did you mean 'onnxruntime'"),
        ({"device": "cuda"}, "does not support 'cuda'"),
    ],
)
def test_an_invalid_option_lists_the_valid_ones(tiny_bert, option, message):
    with pytest.raises(twinvec.TwinvecError, match=message):
        twinvec.load(tiny_bert, **option)


def test_odd_but_real_texts_get_finite_vectors_of_length_one(encoder):
    texts = ["", " ", "\n\t", "🙂🙃", "日本語", "a" * 5000, "\x00", "naïve café", "​"]
    vectors = encoder.encode(texts)
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-5)


def test_a_saved_model_gives_the_same_bits(encoder, tmp_path):
    encoder.save(tmp_path / "copy")
    assert np.array_equal(twinvec.load(tmp_path / "copy").encode(SENTENCES), encoder.encode(SENTENCES))
    with pytest.raises(InputError, match="exists already"):
        encoder.save(tmp_path / "copy")
    assert not list(tmp_path.glob(".*partial*"))
