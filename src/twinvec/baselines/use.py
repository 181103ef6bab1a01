"""The Universal Sentence Encoder, multilingual (Yang et al. 2019), without TensorFlow and without torch.

A table of sentencepiece pieces; residual convolutions over n-grams of them; a sum over the pieces divided by the root
of their number; a residual feed-forward network, tanh, unit length. The folder is our own: ``model.safetensors``
(float32, or int8 with a scale per row), ``tokenizer.json``, ``embedder.json``. A text of any length is read whole.
"""

from __future__ import annotations

import json
import os
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict
from functools import cached_property, partial
from itertools import count, takewhile
from pathlib import Path
from typing import Any, Literal, NamedTuple, get_args

import numpy as np
import onnx
from onnx import numpy_helper
from safetensors.numpy import save_file
from tokenizers import Tokenizer as FastTokenizer

from twinvec.baselines.converted import USE_PIECES, USE_WEIGHTS, converted, use_files
from twinvec.choices import Role, StoredPrecision
from twinvec.engine import weights as packing
from twinvec.engine.batches import EngineSettings, Streams, pad, plan_batches
from twinvec.engine.model import UseConfig, UseNorm
from twinvec.engine.use import TABLE, TABLE_NAMES, UseFolder, UseRuntime, read_use
from twinvec.errors import InputError, check_name
from twinvec.files import saved_folder, write_json
from twinvec.model.folder import EMBEDDER_FILE, USE_KIND
from twinvec.model.identity import file_states, model_digest, model_files, vectors_digest
from twinvec.model.tokenizer import check_texts, read_sentencepiece
from twinvec.ownership import MODEL
from twinvec.types import Array, Vectors

__all__ = ["Reduced", "UseEmbedder", "UseFolder", "convert_use", "read_use", "reduce_use", "write_use"]

TEXTS_PER_PLAN = 1024  # tokenized together, while other streams still run the batches of the ones before


def write_use(
    target: str | os.PathLike[str],
    config: UseConfig,
    stored: Mapping[str, Array],
    tokenizer: Any,  # noqa: ANN401 - a compiled type without stubs
) -> None:
    """Write a folder, whole or not at all; ``stored`` are the weights as its file will have them."""
    with saved_folder(Path(target), MODEL) as path:
        save_file({name: np.ascontiguousarray(array) for name, array in stored.items()}, path / "model.safetensors")
        tokenizer.save(str(path / "tokenizer.json"), False)  # on one line: half the size
        write_json(path / EMBEDDER_FILE, {"kind": USE_KIND, **asdict(config)})


class UseEmbedder:
    """The Universal Sentence Encoder of a folder. ``threads`` are batches that run at once; by default one per core.

    A text without any piece has the vector of its begin and end, as in the original.
    """

    similarity = "cosine"

    def __init__(self, folder: str | os.PathLike[str], name: str | None = None, *, threads: int | None = None) -> None:
        engine = EngineSettings(threads=threads)
        self.folder = Path(folder)
        self._as_opened = file_states(model_files(self.folder))
        self._model = read_use(folder)
        self._runtime = UseRuntime(self._model)
        self._as_opened.check()
        self._streams, self._budget = Streams(engine.n_streams), engine.tokens_per_batch
        self.name = name or str(folder)
        self.width = self._runtime.width
        self.settings: Mapping[str, Any] = {"kind": USE_KIND, **asdict(self._model.config)}

    @cached_property
    def identity(self) -> str:
        """A digest of the folder's files and settings."""
        digest = model_digest(self.folder)
        self._as_opened.check()
        return f"{USE_KIND}-{vectors_digest(digest, self.settings)}"

    def embed(self, texts: Sequence[str], *, role: Role = "text") -> Vectors:
        """Vectors of the texts, ``(len(texts), width)``, each of length 1. A text's role changes nothing."""
        if isinstance(texts, str):
            raise InputError("One text was given where a list is needed.", hint="Put it in a list.")
        checked = check_texts(texts)
        vectors = np.empty((len(checked), self.width), dtype=np.float32)

        def work(batch: tuple[list[int], list[list[int]]]) -> None:
            owners, rows = batch
            vectors[owners] = self._runtime.vectors(pad(rows))

        self._streams.run(self._batches(checked), work)
        return vectors

    def _batches(self, texts: list[str]) -> Iterator[tuple[list[int], list[list[int]]]]:
        """Texts of similar length together, the longest first."""
        order = sorted(range(len(texts)), key=lambda index: -len(texts[index]))
        for start in range(0, len(order), TEXTS_PER_PLAN):
            owners = order[start : start + TEXTS_PER_PLAN]
            rows = self._model.ids([texts[owner] for owner in owners])
            lengths = [len(row) for row in rows]
            room = min(self._budget, -(-sum(lengths) // self._streams.n))
            for batch in plan_batches(lengths, room):
                yield [owners[index] for index in batch], [rows[index] for index in batch]


def open_use(source: Path) -> UseEmbedder:
    """Open the original files of the encoder; they are converted in the cache folder at first use."""
    return UseEmbedder(_converted(source), str(source))


def _converted(source: Path) -> Path:
    return converted(use_files(source), USE_KIND, partial(convert_use, source))


class Reduced(NamedTuple):
    """How many pieces a model had, and has now."""

    n_before: int
    n_pieces: int


def reduce_use(folder: str | os.PathLike[str], target: str | os.PathLike[str], texts: Iterable[str]) -> Reduced:
    """Write a smaller model that has only the pieces of ``texts``, and all single characters.

    Those texts keep their vectors; others are read in smaller pieces where theirs are gone.

    >>> reduce_use("use-multilingual", "use-english", ["A cat sits."])  # doctest: +SKIP
    Reduced(n_before=128000, n_pieces=5600)
    """
    checked = check_texts(() if isinstance(texts, str) else texts)
    if not checked:
        raise InputError("There are no texts whose pieces could be kept.", hint="Give a list of texts.")
    path = Path(folder)
    model = read_use(_converted(path) if use_files(path) else path)
    used: set[int] = set()
    for start in range(0, len(checked), TEXTS_PER_PLAN):
        used.update(*model.tokenizer.ids(checked[start : start + TEXTS_PER_PLAN]))
    tokenizer, kept = _keep_pieces(model.tokenizer.fast, used)
    rows = {name: model.stored[name][kept] for name in TABLE_NAMES if name in model.stored}
    write_use(target, model.config, {**model.stored, **rows}, tokenizer)
    return Reduced(len(model.stored[TABLE]), len(kept))


def _keep_pieces(fast: Any, ids: Iterable[int]) -> tuple[Any, list[int]]:  # noqa: ANN401 - a compiled type
    """A tokenizer with some of the pieces, and their old ids in the order of the new ones.

    Kept too are the special ones, all single characters, and the least likely piece, which decides what an unknown
    character costs: so a text whose pieces are all kept is read as before.
    """
    content = json.loads(fast.to_str())
    vocabulary = content["model"]["vocab"]
    special = range(1 + max([*fast.encode("").ids, content["model"]["unk_id"]]))
    single = (index for index, (piece, _) in enumerate(vocabulary) if len(piece) == 1)
    least = min(range(len(vocabulary)), key=lambda index: vocabulary[index][1])
    kept = sorted({*special, *single, least, *ids})
    content["model"]["vocab"] = [vocabulary[index] for index in kept]
    return FastTokenizer.from_str(json.dumps(content)), kept


Source = Literal["onnx", "npz"]
SOURCES: dict[Source, tuple[str, UseNorm]] = {
    "onnx": (USE_WEIGHTS[0], "separate"),
    "npz": (USE_WEIGHTS[1], "joined"),  # as the package computes it that has these weights
}
ORDERS = UseConfig().orders
# Our names, those of weights.npz, and those of the original graph.
GRAPH = "StatefulPartitionedCall/EncoderDNN/"
CHUNK = "Func/StatefulPartitionedCall/input/_{}:0"
KERNELS = {
    "pool.weight": ("cnn_W", "CNN_layers/dense/kernel:0"),
    **{f"hidden.{i}.weight": (f"d{i}", f"DNN/ResidualHidden_{i}/dense/kernel:0") for i in range(4)},
    **{f"skip.{i}.weight": (f"p{i}", f"DNN/ResidualHidden_{i}/AdjustDepth/projection/kernel:0") for i in (1, 3)},
}
VECTORS = {
    "pool.bias": ("cnn_b", "CNN_layers/dense/bias:0"),
    "join_norm.weight": ("ln_g", "CNN_layers/LayerNorm/gamma:0"),
    "join_norm.bias": ("ln_b", "CNN_layers/LayerNorm/beta:0"),
}
for _n in ORDERS:
    _branch = f"CNN_layers/ngram_order_{_n}"
    KERNELS[f"project.{_n}.weight"] = (f"proj{_n}", f"{_branch}/input_size_projection/dense/kernel:0")
    VECTORS[f"project.{_n}.bias"] = (f"proj_b{_n}", f"{_branch}/input_size_projection/dense/bias:0")
    VECTORS[f"norm.{_n}.weight"] = (f"ln_g{_n}", f"{_branch}/LayerNorm/gamma:0")
    VECTORS[f"norm.{_n}.bias"] = (f"ln_b{_n}", f"{_branch}/LayerNorm/beta:0")
    for _i, _conv in enumerate((f"{_branch}/Ngram-{_n}-Conv", f"{_branch}/Ngram-{_n}-Conv_1")):
        KERNELS[f"ngram.{_n}.{_i}.weight"] = (f"w{_i + 1}_{_n}", f"{_conv}/weights:0")
        VECTORS[f"ngram.{_n}.{_i}.bias"] = (f"b{_i + 1}_{_n}", f"{_conv}/bias:0")


def convert_use(
    source: str | os.PathLike[str],
    target: str | os.PathLike[str],
    pieces: Collection[str] | None = None,
    *,
    weights: Source | None = None,
    precision: StoredPrecision = "float32",
    norm: UseNorm | None = None,
) -> None:
    """Write the multilingual encoder (version 3) as a folder, from ``sp.model`` and 8-bit or 6-bit weights.

    Args:
        source: a folder with ``sp.model``, and ``use_quantized.onnx`` (8 bits) or ``weights.npz`` (6 bits).
        pieces: the pieces to keep, beside all single characters; by default all.
        weights: which of the two files; by default the 8 bits, if they are there.
        precision: how they are stored; int8 has a quarter of the size.
        norm: "separate" as in the original graph, or "joined" as in the package that has the 6 bits; by default that
            of the file.
    """
    check_name("precision", precision, get_args(StoredPrecision))
    folder = Path(source)
    there: list[Source] = [kind for kind, (name, _) in SOURCES.items() if (folder / name).is_file()]
    chosen: Source = (there or ["onnx"])[0] if weights is None else weights
    check_name("weights", chosen, SOURCES)
    file, own_norm = folder / SOURCES[chosen][0], SOURCES[chosen][1]
    config = UseConfig(norm=norm or own_norm)
    tokenizer = read_sentencepiece(folder / USE_PIECES)
    try:
        found = (_read_npz if chosen == "npz" else _read_onnx)(file)
    except Exception as error:  # each format has its own kinds for a bad file
        raise InputError(f"{file} cannot be read as its weights: {error!s:.200}.") from error
    if len(found[TABLE]) < tokenizer.get_vocab_size():
        raise InputError(f"{file} has vectors for {len(found[TABLE]):,} pieces, fewer than sp.model.")
    kept = list(range(tokenizer.get_vocab_size()))
    if pieces is not None:
        tokenizer, kept = _keep_pieces(tokenizer, _ids_of(pieces, tokenizer))
    found[TABLE] = found[TABLE][kept]
    write_use(target, config, packing.pack_int8(found) if precision == "int8" else found, tokenizer)


def _ids_of(pieces: Collection[str], tokenizer: Any) -> list[int]:  # noqa: ANN401 - a compiled type
    ids = {piece: tokenizer.token_to_id(piece) for piece in pieces}
    unknown = [piece for piece, index in ids.items() if index is None]
    if unknown:
        raise InputError(
            f"sp.model has no piece {unknown[0]!r}.", hint="Write a word's first piece with '▁' before it."
        )
    return list(ids.values())


def _read_npz(file: Path) -> dict[str, Array]:
    """The table is stored in parts, every so-manieth row in one, each with a step and an offset of its own."""
    with file.open("rb") as opened, np.load(opened, allow_pickle=False) as arrays:
        names = takewhile(lambda name: name in arrays, (f"q{part}" for part in count(1)))
        steps = zip(names, arrays["scale"], arrays["lo"], strict=False)
        parts = [arrays[name].astype(np.float32) * scale + low for name, scale, low in steps]
        return _renamed(parts, {name: arrays[pair[0]] for name, pair in (KERNELS | VECTORS).items()})


def _read_onnx(file: Path) -> dict[str, Array]:
    """The same, with a zero point in place of the offset; the matrices are in 8 bits too."""
    tensors = {tensor.name: tensor for tensor in onnx.load(file).graph.initializer}

    def whole(name: str) -> Array:
        if name in tensors:
            return np.asarray(numpy_helper.to_array(tensors[name]))
        kinds = ("quantized", "zero_point", "scale")
        values, zero, scale = (numpy_helper.to_array(tensors[f"{name}_{kind}"]).astype(np.float32) for kind in kinds)
        return np.asarray((values - zero) * scale)

    names = takewhile(lambda name: f"{name}_quantized" in tensors, (CHUNK.format(part) for part in count(1)))
    parts = [whole(name) for name in names]
    return _renamed(parts, {name: whole(GRAPH + pair[1]) for name, pair in (KERNELS | VECTORS).items()})


def _renamed(parts: list[Array], found: dict[str, Array]) -> dict[str, Array]:
    """Matrices as (out, in); the three projections, and their norms, as one."""
    found = {name: array.T if name in KERNELS else array.reshape(-1) for name, array in found.items()}
    for name, kind in (("project", "weight"), ("project", "bias"), ("norm", "weight"), ("norm", "bias")):
        found[f"{name}.{kind}"] = np.concatenate([found.pop(f"{name}.{order}.{kind}") for order in ORDERS])
    table = np.empty((len(parts) * len(parts[0]), parts[0].shape[1]), dtype=np.float32)
    for start, part in enumerate(parts):
        table[start :: len(parts)] = part
    return {TABLE: table, **{name: np.asarray(array, dtype=np.float32) for name, array in found.items()}}
