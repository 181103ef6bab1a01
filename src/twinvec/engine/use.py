"""Read the folder of a Universal Sentence Encoder, and run it in onnxruntime.

The folder is our own: ``model.safetensors`` (float32, or int8 with a scale per row), ``tokenizer.json``,
``embedder.json``. A text of any length is read whole.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import get_args

import numpy as np
from tokenizers.models import Unigram

from twinvec.choices import Device
from twinvec.engine import weights as packing
from twinvec.engine.model import UseConfig, UseGraph, UseNorm
from twinvec.engine.runtimes import open_session
from twinvec.engine.weights import SCALE, check_array, check_unchanged, mapped_files, read_weights
from twinvec.errors import InputError, ModelFolderError, WeightsError
from twinvec.files import read_json
from twinvec.json_checks import JsonObject
from twinvec.model.folder import EMBEDDER_FILE, USE_KIND
from twinvec.model.tokenizer import Tokenizer, load_tokenizer
from twinvec.types import Array, TokenBatch, Vectors

__all__ = ["AGAIN", "TABLE", "TABLE_NAMES", "UseFolder", "UseRuntime", "read_use"]

TABLE = UseGraph.table
TABLE_NAMES = TABLE, TABLE + SCALE
AGAIN = "Convert the model again."
SOURCE_HINT = "Pass a converted folder, or one with sp.model and use_quantized.onnx or weights.npz."


@dataclass(frozen=True, eq=False)
class UseFolder:
    """A folder, read and checked. ``stored`` is what its file holds, ``weights`` has all but the table in float32."""

    path: Path
    config: UseConfig
    stored: Mapping[str, Array]
    weights: Mapping[str, Array]
    tokenizer: Tokenizer

    def ids(self, texts: Sequence[str]) -> list[list[int]]:
        """Ids of each text, with those of its begin and end."""
        return [self.tokenizer.add_special_tokens(ids) for ids in self.tokenizer.ids(texts)]


def read_use(folder: str | os.PathLike[str]) -> UseFolder:
    """Read a folder that :func:`convert_use`, :func:`reduce_use` or a training wrote; anything else is refused."""
    path = Path(folder)
    config = _read_config(path / EMBEDDER_FILE)
    stored = read_weights(path, packed=True)
    dense = {name: array for name, array in stored.items() if name not in TABLE_NAMES}
    weights: dict[str, Array] = {
        name: np.asarray(array, dtype=np.float32) for name, array in packing.unpack_int8(dense, source=path).items()
    }
    n_pieces, width = _check_table(stored, path)
    _check_weights(weights, config, width, path)
    tokenizer = load_tokenizer(path)
    if not isinstance(tokenizer.fast.model, Unigram):
        raise ModelFolderError(f"The tokenizer of {path} is not one of unigram pieces.", hint=AGAIN)
    if tokenizer.n_vocabulary != n_pieces:
        raise ModelFolderError(
            f"The tokenizer of {path} has {tokenizer.n_vocabulary:,} pieces, but the model vectors for {n_pieces:,}.",
            hint=AGAIN,
        )
    weights |= {name: stored[name] for name in TABLE_NAMES if name in stored}
    return UseFolder(path, config, stored, weights, tokenizer)


def _read_config(file: Path) -> UseConfig:
    if not file.is_file():
        raise ModelFolderError(
            f"{file.parent} has no {EMBEDDER_FILE}: it is not a Universal Sentence Encoder.", hint=SOURCE_HINT
        )
    content = JsonObject(read_json(file), file, hint=AGAIN)
    content.word("kind", choices=(USE_KIND,))
    orders = content.items("orders")
    is_usable = all(type(order) is int and 1 <= order <= 64 for order in orders) and len(set(orders)) == len(orders)
    if not orders or not is_usable:
        raise content.wrong("orders", "a list of different whole numbers from 1 to 64")
    norm = content.word("norm", choices=get_args(UseNorm))
    return UseConfig(tuple(orders), norm, content.number("epsilon", least=0, most=1))


def _check_table(stored: Mapping[str, Array], source: Path) -> tuple[int, int]:
    """The shape of the table, ``(n_pieces, width)``."""
    table, scale = (stored.get(name) for name in TABLE_NAMES)
    if table is None or table.ndim != 2 or not table.size:
        raise WeightsError(f"{source} has no table of pieces ({TABLE}).", hint=AGAIN)
    is_float = scale is None and table.dtype == np.float32
    is_packed = scale is not None and table.dtype == np.int8 and scale.shape == table.shape[:1]
    if not (is_float or is_packed):
        raise WeightsError(f"{source}: {TABLE} is neither float32 nor int8 with a scale per row.", hint=AGAIN)
    values = table if scale is None else scale
    check_array(values, values.shape, f"{source}: {TABLE}")
    return table.shape[0], table.shape[1]


def _check_weights(weights: Mapping[str, Array], config: UseConfig, table_width: int, source: Path) -> None:
    sizing = "project.weight", "pool.weight", "hidden.0.weight", "hidden.3.weight"
    missing = [name for name in sizing if name not in weights or not weights[name].ndim]
    shapes = {} if missing else _shapes([len(weights[name]) for name in sizing], table_width, config.orders)
    missing += sorted(set(shapes) - set(weights))
    if missing:
        raise WeightsError(f"{source} lacks the weights {', '.join(missing[:5])}.", hint=AGAIN)
    for name, shape in shapes.items():
        check_array(weights[name], shape, f"{source}: {name}")


def _shapes(sizes: Sequence[int], table_width: int, orders: Sequence[int]) -> dict[str, tuple[int, ...]]:
    """The shape of each weight but the table."""
    branches, pooled, hidden, width = sizes
    branch = branches // len(orders)
    branches, joined = branch * len(orders), table_width + branch * len(orders)
    shapes: dict[str, tuple[int, ...]] = {
        "project.weight": (branches, table_width),
        "pool.weight": (pooled, joined),
        "pool.bias": (pooled,),
        "hidden.0.weight": (hidden, pooled),
        "hidden.1.weight": (hidden, hidden),
        "skip.1.weight": (hidden, pooled),
        "hidden.2.weight": (width, hidden),
        "hidden.3.weight": (width, width),
        "skip.3.weight": (width, hidden),
    }
    shapes |= dict.fromkeys(("project.bias", "norm.weight", "norm.bias"), (branches,))
    shapes |= dict.fromkeys(("join_norm.weight", "join_norm.bias"), (joined,))
    for name, order in ((f"ngram.{order}.{step}", order) for order in orders for step in (0, 1)):
        shapes |= {f"{name}.weight": (branch, order * branch), f"{name}.bias": (branch,)}
    return shapes


class UseRuntime:
    """Runs a Universal Sentence Encoder in onnxruntime, in float32."""

    name = "onnxruntime"

    def __init__(self, model: UseFolder, *, device: Device = "cpu") -> None:
        self.model = model
        self.width = len(model.weights["hidden.3.weight"])
        self._session = open_session(UseGraph(model.weights, model.config).build(), device)
        self._files = mapped_files(model.stored.values())

    def vectors(self, batch: TokenBatch) -> Vectors:
        """Sentence vectors of one padded batch, ``(batch, width)``, each of length 1."""
        check_unchanged(self._files)  # the session reads the table from the mapped file
        result: Vectors = self._session.run(None, {"ids": batch.ids, "mask": batch.mask})[0]
        return result

    def layers(self, batch: TokenBatch) -> Vectors:
        """It has no layers of token states, so this is an error."""
        raise InputError(
            f"{self.model.path} is a Universal Sentence Encoder, without layers of token states.",
            hint="Use a Transformer model.",
        )
