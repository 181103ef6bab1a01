"""SBERT-WK from cosines between layers equals the slow ways, and every case that these cannot do is defined."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

import twinvec
from twinvec.errors import InputError, UnknownNameError
from twinvec.wk import (
    WKSettings,
    layer_cosines,
    layer_weights,
    layer_windows,
    sentence_vectors,
    token_importance,
    word_vectors,
)
from wk_twins import qr_weights, slow_vector, svd_weights

MODES = "paper", "reference"
TEXTS = [
    "A man is playing a guitar on the stage.",
    "Someone plays an instrument.",
    "The stock market fell sharply after the announcement, analysts said.",
    "Why?",
]


def walk(n_layers, n_tokens, width=24, seed=0):
    """States that move from layer to layer as those of a model do: near their neighbours, never against them."""
    rng = np.random.default_rng(seed)
    steps = rng.standard_normal((n_layers, n_tokens, width)) * rng.uniform(0.2, 0.8, (n_layers, n_tokens, 1))
    return 2 * rng.standard_normal((n_tokens, width)) + np.cumsum(steps, axis=0)


def vectors_of(states, settings):
    """The vector of one text, through the batched function."""
    return sentence_vectors(states[:, None], np.ones((1, states.shape[1]), dtype=np.int64), settings)[0]


@pytest.mark.parametrize(("mode", "twin"), [("paper", svd_weights), ("reference", qr_weights)])
@pytest.mark.parametrize(("n_layers", "window"), [(9, 2), (13, 1), (7, 3), (6, 5), (3, 2)])
def test_weights_are_those_of_the_slow_way(mode, twin, n_layers, window):
    states = walk(n_layers, 20)
    found = layer_weights(layer_cosines(states), WKSettings(mode, 0, window))
    for token in range(states.shape[1]):
        alignment, novelty = twin(states[:, token], window)
        np.testing.assert_allclose(found.alignment[:, token], alignment, atol=1e-11, rtol=0)
        np.testing.assert_allclose(found.novelty[:, token], novelty, atol=1e-11, rtol=0)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("omega", [0.0, 0.5, 1.0])
def test_vectors_are_those_of_the_slow_way(mode, omega):
    states = walk(13, 11, seed=1)
    found = vectors_of(states, WKSettings(mode, 4, omega=omega))
    np.testing.assert_allclose(found, slow_vector(states[4:], mode, omega=omega), atol=1e-10, rtol=0)


@pytest.mark.weights
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("name", ["minilm", "mpnet"])
def test_vectors_of_real_models_are_those_of_the_slow_way(models, name, mode):
    encoder = twinvec.load(models / name)
    settings = WKSettings(mode)
    for layers in encoder.encode_layers(TEXTS):
        states = layers.astype(np.float64)
        expected = slow_vector(states[settings.start(len(states) - 1) :], mode)
        np.testing.assert_allclose(vectors_of(states, settings), expected, atol=1e-10, rtol=0)
        # float32 states, as in encoding: only their own rounding is left
        np.testing.assert_allclose(vectors_of(layers, settings), expected, atol=1e-6 * np.abs(expected).max())


@pytest.mark.parametrize("mode", MODES)
def test_padding_and_batch_change_nothing(mode):
    texts = [walk(6, n_tokens, seed=n_tokens) for n_tokens in (5, 1, 9)]
    layers = np.full((6, 3, 12, 24), 7.0)
    mask = np.zeros((3, 12), dtype=np.int64)
    for place, states in enumerate(texts):
        layers[:, place, : states.shape[1]] = states
        mask[place, : states.shape[1]] = 1
    together = sentence_vectors(layers, mask, WKSettings(mode))
    for vector, states in zip(together, texts, strict=True):
        np.testing.assert_allclose(vector, vectors_of(states, WKSettings(mode)), atol=1e-12)


def test_the_parts_make_the_whole():
    states = walk(9, 7)
    cosines = layer_cosines(states)
    weights = layer_weights(cosines, WKSettings())
    importance = token_importance(cosines[:, :, None], np.ones((1, 7)))[0]
    words = word_vectors(states, weights.combined)
    assert words.shape == (7, 24)
    np.testing.assert_allclose(importance @ words, vectors_of(states, WKSettings(layer_start=0)), atol=1e-12)
    np.testing.assert_allclose(weights.combined, (weights.alignment + weights.novelty) / 2)


values = st.sampled_from([0.0, 1.0, -1.0, 0.5, 1e-30, 1e30]) | st.floats(-10, 10, width=32)
any_states = st.tuples(st.integers(1, 6), st.integers(1, 4), st.integers(1, 5)).flatmap(
    lambda shape: arrays(np.float32, shape, elements=values)
)
any_settings = st.builds(
    WKSettings, st.sampled_from(MODES), st.just(0), st.integers(1, 4), st.sampled_from([0.0, 0.3, 1.0])
)


@settings(deadline=None, max_examples=150)
@given(states=any_states, chosen=any_settings)
def test_weights_are_shares_and_never_nan_for_any_states(states, chosen):
    cosines = layer_cosines(states)
    for weights in layer_weights(cosines, chosen):
        assert (weights >= 0).all()
        np.testing.assert_allclose(weights.sum(axis=0), 1, atol=1e-9)
    importance = token_importance(cosines[:, :, None], np.ones((1, states.shape[1])))
    assert (importance >= 0).all()
    np.testing.assert_allclose(importance.sum(), 1, atol=1e-9)
    assert np.isfinite(vectors_of(states.astype(np.float64), chosen)).all()


@settings(deadline=None, max_examples=50)
@given(states=any_states, n_layers=st.integers(1, 6), chosen=any_settings)
def test_identical_layers_and_tokens_have_equal_weights(states, n_layers, chosen):
    same = np.repeat(states[:1], n_layers, axis=0)
    cosines = layer_cosines(same)
    has_length = np.abs(same[0]).max(axis=-1) > 0
    np.testing.assert_allclose(layer_weights(cosines, chosen).novelty, 1 / n_layers, atol=1e-6)
    if chosen.mode == "paper":  # the reference weighs the outer layers more, whatever is in them
        alignment = layer_weights(cosines, chosen).alignment[:, has_length]
        np.testing.assert_allclose(alignment, 1 / n_layers, atol=1e-6)
    importance = token_importance(cosines[:, :, None], np.ones((1, states.shape[1])))
    np.testing.assert_allclose(importance, 1 / states.shape[1], atol=1e-9)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("n_layers", [1, 2])
def test_one_or_two_layers_are_averaged_over_layers_and_tokens(mode, n_layers):
    states = walk(n_layers, 4)
    kept = states[:, :-1] if mode == "reference" else states
    np.testing.assert_allclose(vectors_of(states, WKSettings(mode, layer_start=0)), kept.mean(axis=(0, 1)), atol=1e-9)


@pytest.mark.parametrize("mode", MODES)
def test_a_cosine_that_is_not_positive_makes_that_tokens_alignment_uniform_and_no_others(mode):
    states = walk(6, 3)
    turned = states.copy()
    turned[3, 1] *= -1
    cosines = layer_cosines(states), layer_cosines(turned)
    usual, found = (layer_weights(each, WKSettings(mode, 0)) for each in cosines)
    np.testing.assert_allclose(found.alignment[:, 1], 1 / 6)
    np.testing.assert_array_equal(found.alignment[:, [0, 2]], usual.alignment[:, [0, 2]])
    np.testing.assert_allclose(found.novelty, usual.novelty, atol=1e-12)  # a span knows no signs


@pytest.mark.parametrize("mode", MODES)
def test_a_single_token_is_its_own_unified_vector_and_no_token_gives_zeros(mode):
    states = walk(6, 1)
    weights = layer_weights(layer_cosines(states), WKSettings(mode, 0)).combined
    np.testing.assert_allclose(vectors_of(states, WKSettings(mode, 0)), word_vectors(states, weights)[0], atol=1e-12)
    none = sentence_vectors(states[:, None], np.zeros((1, 1), dtype=np.int64), WKSettings(mode))
    assert not none.any()


def test_windows_of_the_authors_code_have_the_sizes_that_were_observed():
    sizes = [len(window) for window in layer_windows(9, WKSettings("reference"))]
    assert sizes == [2, 2, 4, 4, 4, 4, 4, 3, 2]


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"mode": "papre"}, "Did you mean 'paper'"),
        ({"layer_start": -1}, "layer_start must be a whole number of at least 0, got -1"),
        ({"window": 0}, "window must be a whole number of at least 1, got 0"),
        ({"window": None}, "window must be"),
        ({"omega": 1.5}, "omega must be a number from 0 to 1, got 1.5"),
    ],
)
def test_settings_are_checked(wrong, message):
    with pytest.raises((InputError, UnknownNameError), match=message):
        WKSettings(**wrong)
