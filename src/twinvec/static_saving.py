"""Write static models in the layout of sentence-transformers' StaticEmbedding."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray
from safetensors.numpy import save_file
from tokenizers import Tokenizer as FastTokenizer

from twinvec.errors import InputError, UnknownNameError
from twinvec.files import new_folder
from twinvec.model_folder import ModelFolder, Module, Normalize, StaticEmbedding
from twinvec.model_saving import copy_card, write_modules
from twinvec.types import Array, Vectors

__all__ = ["StoredPrecision", "int8_rows", "save_static", "write_static"]

StoredPrecision = Literal["float32", "int8"]
TABLE = "embedding.weight"


def write_static(
    folder: Path,
    tokenizer_file: Path,
    table: Vectors,
    *,
    normalize: bool = True,
    precision: StoredPrecision = "float32",
) -> None:
    """Write a static model of a tokenizer (``tokenizer.json``) and its table, ``(n_vocabulary, width)``.

    As float32 it also loads in sentence-transformers; as int8 it takes a quarter of the room, for Twinvec only. The
    folder must not exist yet. No text is too long for the model: a limit in the tokenizer's file is left out.
    """
    if precision not in get_args(StoredPrecision):
        raise UnknownNameError("precision", precision, get_args(StoredPrecision))
    fast = FastTokenizer.from_file(str(tokenizer_file))
    fast.no_truncation()
    fast.no_padding()
    n_vocabulary = 1 + max(fast.get_vocab(with_added_tokens=True).values())
    if table.ndim != 2 or len(table) < n_vocabulary or not table.shape[1]:
        raise InputError(f"The table has the shape {table.shape}, but the tokenizer knows {n_vocabulary} tokens.")
    if not np.isfinite(table).all():
        raise InputError("The table holds NaN or infinite values.")
    modules: tuple[Module, ...] = (StaticEmbedding(), Normalize()) if normalize else (StaticEmbedding(),)
    with new_folder(folder) as place:
        fast.save(str(place / "tokenizer.json"))
        _write_table(place, table, precision)
        write_modules(ModelFolder(folder, folder, {}, modules), place)


def save_static(folder: ModelFolder, table: Vectors, target: Path) -> None:
    """Write a static model that was read from ``folder`` anew at ``target``, in float32."""
    with new_folder(target) as place:
        shutil.copyfile(folder.backbone / "tokenizer.json", place / "tokenizer.json")
        _write_table(place, table, "float32")
        write_modules(folder, place)
        copy_card(folder, place)


def _write_table(place: Path, table: Vectors, precision: StoredPrecision) -> None:
    tensors: dict[str, Array] = {TABLE: np.ascontiguousarray(table, dtype=np.float32)}
    if precision == "int8":
        tensors[TABLE], tensors[f"{TABLE}.scale"] = int8_rows(table)
    save_file(tensors, place / "model.safetensors", metadata={"format": "pt"})


def int8_rows(table: Vectors) -> tuple[NDArray[np.int8], Vectors]:
    """Each row as 255 steps of its own scale: ``(rows, width)`` to int8 of that shape and scales ``(rows,)``.

    No value moves by more than half its row's scale.

    >>> rows, scale = int8_rows(np.array([[1.27, -0.5], [0.0, 0.0]], dtype=np.float32))
    >>> rows.tolist(), scale.round(4).tolist()
    ([[127, -50], [0, 0]], [0.009999999776482582, 0.0])
    """
    scale = np.asarray(np.abs(table).max(axis=1) / 127, dtype=np.float32)
    steps = np.rint(table / np.where(scale == 0, 1, scale)[:, None])
    return steps.astype(np.int8), scale
