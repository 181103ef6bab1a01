"""Write static models in the layout of sentence-transformers' StaticEmbedding."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import get_args

import numpy as np
from safetensors.numpy import save_file
from tokenizers import Tokenizer as FastTokenizer

from twinvec.engine.stored import pack_int8
from twinvec.errors import InputError, UnknownNameError
from twinvec.files import saved_folder
from twinvec.model_folder import ModelFolder, Module, Normalize, StaticEmbedding
from twinvec.model_saving import copy_card, write_modules
from twinvec.ownership import MODEL
from twinvec.types import Array, StoredPrecision, Vectors

__all__ = ["fill_static", "save_static", "write_static"]

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
    with saved_folder(folder, MODEL) as place:
        fill_static(place, tokenizer_file, table, normalize=normalize, precision=precision)


def fill_static(
    place: Path,
    tokenizer_file: Path,
    table: Vectors,
    *,
    normalize: bool = True,
    precision: StoredPrecision = "float32",
) -> None:
    """Write a static model into ``place``, an empty folder that exists."""
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
    fast.save(str(place / "tokenizer.json"))
    _write_table(place, table, precision)
    write_modules(ModelFolder(place, place, {}, modules), place)


def save_static(folder: ModelFolder, table: Vectors, target: Path) -> None:
    """Write a static model that was read from ``folder`` anew at ``target``, in float32."""
    with saved_folder(target, MODEL) as place:
        shutil.copyfile(folder.backbone / "tokenizer.json", place / "tokenizer.json")
        _write_table(place, table, "float32")
        write_modules(folder, place)
        copy_card(folder, place)
        folder.check_unchanged()  # what was copied must be what was loaded


def _write_table(place: Path, table: Vectors, precision: StoredPrecision) -> None:
    tensors: dict[str, Array] = {TABLE: np.ascontiguousarray(table, dtype=np.float32)}
    stored = pack_int8(tensors) if precision == "int8" else tensors
    save_file(stored, place / "model.safetensors", metadata={"format": "pt"})
