"""Weights stored as int8 with a scale for each row: a quarter of the size, and still one safetensors file.

A matrix ``name`` of int8 has beside it ``name.scale``, float32, one value a row; a weight is their product. Vectors
(biases, norms) stay float32. Only the store is int8: what computes reads float32, and may round again as it likes.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from twinvec.errors import WeightsError
from twinvec.types import Array, Vectors

__all__ = ["SCALE", "pack_int8", "unpack_int8"]

SCALE = ".scale"


def pack_int8(weights: Mapping[str, Array]) -> dict[str, Array]:
    """Store matrices as int8 and scales; half a scale is the largest error of a row.

    >>> packed = pack_int8({"w": np.array([[25.0, -63.5], [0.0, 0.0]])})
    >>> packed["w"].tolist(), packed["w.scale"].tolist()
    ([[50, -127], [0, 0]], [0.5, 0.0])
    """
    packed: dict[str, Array] = {}
    for name, values in weights.items():
        if values.ndim != 2:
            packed[name] = np.ascontiguousarray(values, dtype=np.float32)
            continue
        scale = (np.abs(values).max(axis=1) / 127).astype(np.float32)
        steps = values / np.where(scale > 0, scale, 1)[:, None]
        packed[name] = np.clip(np.round(steps), -127, 127).astype(np.int8)
        packed[name + SCALE] = scale
    return packed


def unpack_int8(stored: Mapping[str, Array], *, source: object) -> dict[str, Array]:
    """The weights of a file; integers that have no scale are none that an encoder reads, and are left out.

    >>> unpack_int8({"w": np.array([[50, -127]], dtype=np.int8), "w.scale": np.array([0.01])}, source="x")["w"]
    array([[ 0.5 , -1.27]], dtype=float32)
    """
    weights = dict(stored)
    for name, values in stored.items():
        if values.dtype != np.int8:
            continue
        del weights[name]
        scale = weights.pop(name + SCALE, None)
        if scale is not None:
            weights[name] = _product(values, scale, f"{source}: {name}")
    return weights


def _product(values: Array, scale: Array, name: str) -> Vectors:
    if values.ndim != 2 or scale.shape != values.shape[:1]:
        raise WeightsError(
            f"{name} has the shape {values.shape}, and its scales {scale.shape}, where one a row is needed.",
            hint="Fetch the model again.",
        )
    return np.multiply(values, scale[:, None], dtype=np.float32)
