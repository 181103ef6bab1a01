"""Weights stored as int8 with scales: what the rounding costs, and which files are refused."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays
from safetensors.numpy import load_file, save_file

import twinvec
from tiny import write_tiny_model
from twinvec.engine.weights import SCALE, is_packed, pack_int8, read_weights, unpack_int8
from twinvec.errors import WeightsError

# Large enough that a row's scale, a 127th of its largest value, is a normal float32.
VALUES = st.one_of(st.just(0.0), st.floats(2**-100, 2**100, width=32), st.floats(-(2**100), -(2**-100), width=32))
MATRICES = arrays.arrays(np.float32, arrays.array_shapes(min_dims=2, max_dims=2, max_side=8), elements=VALUES)


@given(MATRICES)
def test_a_stored_matrix_is_off_by_half_a_scale_at_most(values):
    packed = pack_int8({"w": values})
    scale = packed["w" + SCALE]
    assert packed["w"].dtype == np.int8 and scale.dtype == np.float32 and scale.shape == values.shape[:1]
    unpacked = unpack_int8(packed, source="test")
    assert unpacked.keys() == {"w"} and unpacked["w"].dtype == np.float32
    error = np.abs(unpacked["w"].astype(np.float64) - values)
    assert (error <= 0.5 * scale[:, None] * (1 + 1e-5) + 1e-5 * np.abs(values)).all()  # 1e-5: float32's own rounding


@given(MATRICES)
def test_int8_storage_round_trips_without_loss(values):
    once = unpack_int8(pack_int8({"w": values}), source="test")
    again = unpack_int8(pack_int8(once), source="test")
    np.testing.assert_allclose(again["w"], once["w"], rtol=1e-5)


@given(st.integers(1, 6), st.integers(1, 6))
def test_rows_of_zeros_stay_zeros(n_rows, n_columns):
    packed = pack_int8({"w": np.zeros((n_rows, n_columns), dtype=np.float32)})
    assert not packed["w" + SCALE].any()
    assert not unpack_int8(packed, source="test")["w"].any()


@given(arrays.arrays(np.float32, arrays.array_shapes(min_dims=1, max_dims=1), elements=st.floats(-1, 1, width=32)))
def test_vectors_are_kept_as_they_are(values):
    packed = pack_int8({"bias": values})
    assert packed.keys() == {"bias"}
    np.testing.assert_array_equal(unpack_int8(packed, source="test")["bias"], values)


@pytest.mark.parametrize("shape", [(2,), (4,), (3, 1), (1,), ()])
def test_scales_of_another_shape_are_refused(shape):
    stored = {"w": np.ones((3, 2), dtype=np.int8), "w.scale": np.ones(shape, dtype=np.float32)}
    with pytest.raises(WeightsError, match=r"file: w has the shape \(3, 2\) and scales of shape .* not one per row"):
        unpack_int8(stored, source="file")


def test_integers_without_scales_are_left_out():
    stored = {"ids": np.ones((3, 2), dtype=np.int8), "w": np.ones((3, 2), dtype=np.float32)}
    assert unpack_int8(stored, source="file").keys() == {"w"}


def pack(folder):
    """Store a folder's weights as int8."""
    weights = read_weights(folder)
    save_file(pack_int8(weights), folder / "packed.safetensors")
    (folder / "packed.safetensors").replace(folder / "model.safetensors")
    return folder


def test_a_stored_model_gives_nearly_the_same_vectors(tmp_path, encoder):
    folder = write_tiny_model(tmp_path / "model")
    assert not is_packed(folder)
    size = (folder / "model.safetensors").stat().st_size
    pack(folder)
    assert is_packed(folder)
    assert (folder / "model.safetensors").stat().st_size < 0.5 * size
    texts = ["the cat", "a dog runs in the house", "water"]
    assert twinvec.similarity_pairwise(twinvec.load(folder).encode(texts), encoder.encode(texts)).min() > 0.999


def test_a_stored_model_without_its_scales_is_refused(tmp_path):
    folder = pack(write_tiny_model(tmp_path / "model"))
    weights = {name: each for name, each in load_file(folder / "model.safetensors").items() if SCALE not in name}
    save_file(weights, folder / "model.safetensors")
    with pytest.raises(WeightsError, match=r"lacks \d+ parameters"):
        twinvec.load(folder)
