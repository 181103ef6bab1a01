"""Static models: a text's vector is the mean of its token vectors from a table."""

from __future__ import annotations

import shutil
from dataclasses import dataclass, field
from pathlib import Path
from typing import get_args

import numpy as np
from numpy.typing import NDArray
from safetensors.numpy import save_file
from tokenizers import Tokenizer as FastTokenizer

from twinvec.choices import StoredPrecision
from twinvec.engine.weights import Weights, check_array, check_unchanged, mapped_files, pack_int8, read_weights
from twinvec.errors import InputError, WeightsError, check_name
from twinvec.files import saved_folder
from twinvec.model.folder import ModelFolder, Module, Normalize, StaticEmbedding
from twinvec.model.save import copy_card, write_modules
from twinvec.ownership import MODEL
from twinvec.types import Array, Ids, TokenBatch, Vectors
from twinvec.vectors import unit_rows

__all__ = ["TABLE_NAMES", "TableRuntime", "fill_static", "read_table", "save_static", "write_static"]

TABLE, MODEL2VEC_TABLE = TABLE_NAMES = "embedding.weight", "embeddings"

TEXTS_AT_ONCE = 256  # their sums and rows fit a core's cache
LONG_TEXT = 128  # tokens; longer texts are summed one by one
ROWS_AT_ONCE = 1024  # of a long text


@dataclass(eq=False)
class TableRuntime:
    """Looks up token vectors. The bits of a text's vector depend only on its own tokens."""

    table: Vectors = field(repr=False)  # (n_vocabulary, width)
    is_normalized: bool
    name: str = "table"

    def __post_init__(self) -> None:
        self._files = mapped_files([self.table])  # empty if the table was converted, so copied

    def check(self) -> None:
        """Raise WeightsError if the table's file changed after it was mapped."""
        check_unchanged(self._files)

    def means(self, ids: NDArray[np.int32], starts: Ids, counts: Ids) -> Vectors:
        """Vectors ``(n, width)`` of texts given as runs of ``counts[i]`` ids from ``starts[i]``."""
        self.check()
        vectors = mean_rows(self.table, ids, starts, counts)
        return unit_rows(vectors) if self.is_normalized else vectors

    def vectors(self, batch: TokenBatch) -> Vectors:
        """Sentence vectors of one padded batch, ``(batch, width)``."""
        counts = batch.pool_mask.sum(axis=1)
        ids = batch.ids[batch.pool_mask == 1].astype(np.int32)
        return self.means(ids, np.cumsum(counts) - counts, counts)

    def layers(self, batch: TokenBatch) -> Vectors:
        """Token vectors as the only layer, ``(1, batch, tokens, width)``."""
        self.check()
        return self.table[batch.ids][None]


def mean_rows(table: Vectors, ids: NDArray[np.int32], starts: Ids, counts: Ids) -> Vectors:
    """Mean of the table's rows over each run of ``counts[i]`` ids from ``starts[i]``; zeros for an empty run.

    ``(n_vocabulary, width), (n_ids,), (n,), (n,) -> (n, width)``. Rows are added in order, so that a mean does not
    depend on other texts.

    >>> table = np.array([[1.0], [3.0], [5.0]], dtype=np.float32)
    >>> mean_rows(table, np.array([0, 1, 2], dtype=np.int32), np.array([0, 2, 3]), np.array([2, 1, 0])).tolist()
    [[2.0], [5.0], [0.0]]
    """
    vectors = np.zeros((len(counts), table.shape[1]), dtype=np.float32)
    order = np.argsort(-counts, kind="stable")
    n_long = int((counts > LONG_TEXT).sum())
    for text in order[:n_long].tolist():
        vectors[text] = _sum_of_long(table, ids[starts[text] : starts[text] + counts[text]])
    for first in range(n_long, len(order), TEXTS_AT_ONCE):
        texts = order[first : first + TEXTS_AT_ONCE]
        vectors[texts] = _sums(table, ids, starts[texts], counts[texts])
    vectors /= np.maximum(counts, 1).astype(np.float32)[:, None]
    return vectors


def _sums(table: Vectors, ids: NDArray[np.int32], starts: Ids, counts: Ids) -> Vectors:
    """Sums over short runs, longest first: adds the first tokens of all texts, then the second ones, and so on.

    A few large additions instead of one small one per text: six times as fast as ``np.add.reduceat``.
    """
    sums = np.zeros((len(counts), table.shape[1]), dtype=np.float32)
    rows = np.empty_like(sums)
    n_active = len(counts) - np.searchsorted(counts[::-1], np.arange(counts[0]), side="right")
    for offset, n in enumerate(n_active.tolist()):
        # "clip" writes directly into rows; all ids are in the table, as checked at load time
        table.take(ids[starts[:n] + offset], axis=0, out=rows[:n], mode="clip")
        sums[:n] += rows[:n]
    return sums


def _sum_of_long(table: Vectors, ids: NDArray[np.int32]) -> Vectors:
    total = np.zeros(table.shape[1], dtype=np.float32)
    for first in range(0, len(ids), ROWS_AT_ONCE):
        total += table[ids[first : first + ROWS_AT_ONCE]].sum(axis=0)
    return total


def read_table(folder: Path, *, trust_pickle: bool = False) -> Vectors:
    """Read the table of a folder, ``(n_vocabulary, width)``, as finite float32."""
    weights = read_weights(folder, trust_pickle=trust_pickle)
    if TABLE in weights:
        table = np.asarray(weights[TABLE], dtype=np.float32)
    elif MODEL2VEC_TABLE in weights:
        table = _folded(weights, folder)
    else:
        raise WeightsError(
            f"{folder} contains no table of token vectors ({' or '.join(TABLE_NAMES)}).",
            hint="Download the model again.",
        )
    if table.ndim != 2 or not table.size:
        raise WeightsError(
            f"The table of token vectors in {folder} has the shape {table.shape}, not (tokens, width).",
            hint="Download the model again.",
        )
    check_array(table, table.shape, f"{folder}: the table of token vectors")
    return table


def _folded(weights: Weights, folder: Path) -> Vectors:
    """model2vec's table with one row per token: ``mapping`` gives its row, ``weights`` its factor."""
    table = np.asarray(weights[MODEL2VEC_TABLE], dtype=np.float32)
    try:
        if "mapping" in weights:
            table = table[np.where(weights["mapping"] < 0, len(table), weights["mapping"])]
        if "weights" in weights:
            table = table * np.asarray(weights["weights"], dtype=np.float32)[:, None]
    except (IndexError, ValueError) as error:
        raise WeightsError(
            f"{folder}: mapping or weights do not fit the table of token vectors: {error}.",
            hint="Download the model again.",
        ) from error
    return table


def write_static(
    folder: Path,
    tokenizer_file: Path,
    table: Vectors,
    *,
    normalize: bool = True,
    precision: StoredPrecision = "float32",
) -> None:
    """Write a static model to a new folder, from a ``tokenizer.json`` and a table ``(n_vocabulary, width)``.

    As float32 it also loads in sentence-transformers; as int8 it takes a quarter of the space, for Twinvec only. The
    model reads texts of any length: truncation in the tokenizer file is removed.
    """
    with saved_folder(folder, MODEL) as path:
        fill_static(path, tokenizer_file, table, normalize=normalize, precision=precision)


def fill_static(
    path: Path,
    tokenizer_file: Path,
    table: Vectors,
    *,
    normalize: bool = True,
    precision: StoredPrecision = "float32",
) -> None:
    """Write a static model to the existing, empty folder ``path``."""
    check_name("precision", precision, get_args(StoredPrecision))
    fast = FastTokenizer.from_file(str(tokenizer_file))
    fast.no_truncation()
    fast.no_padding()
    n_vocabulary = 1 + max(fast.get_vocab(with_added_tokens=True).values())
    if table.ndim != 2 or len(table) < n_vocabulary or not table.shape[1]:
        raise InputError(f"The table has the shape {table.shape}, but the tokenizer has {n_vocabulary} tokens.")
    if not np.isfinite(table).all():
        raise InputError("The table contains NaN or infinity.")
    modules: tuple[Module, ...] = (StaticEmbedding(), Normalize()) if normalize else (StaticEmbedding(),)
    fast.save(str(path / "tokenizer.json"))
    _write_table(path, table, precision)
    write_modules(ModelFolder(path, path, {}, modules), path)


def save_static(folder: ModelFolder, table: Vectors, target: Path) -> None:
    """Save a static model that was read from ``folder`` to ``target``, in float32."""
    with saved_folder(target, MODEL) as path:
        shutil.copyfile(folder.backbone / "tokenizer.json", path / "tokenizer.json")
        _write_table(path, table, "float32")
        write_modules(folder, path)
        copy_card(folder, path)
        folder.check_unchanged()  # the copied files must be the loaded ones


def _write_table(path: Path, table: Vectors, precision: StoredPrecision) -> None:
    tensors: dict[str, Array] = {TABLE: np.ascontiguousarray(table, dtype=np.float32)}
    stored = pack_int8(tensors) if precision == "int8" else tensors
    save_file(stored, path / "model.safetensors", metadata={"format": "pt"})
