"""The folders to fuzz: how each is made, which of its files are corrupted, and how it is used.

To add a kind of folder, write its ``make`` and ``use`` and add a row to ``KINDS``.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from safetensors.numpy import load_file, save_file

import twinvec
from tiny import (
    FAMILIES,
    VOCABULARY,
    WIDTH,
    tiny_tokenizer,
    write_json,
    write_plain_model,
    write_tiny_model,
    write_tiny_poly_encoder,
)
from twinvec.engine.inspect import inspect_model
from twinvec.engine.static import write_static
from twinvec.errors import TwinvecError

TEXTS = [
    "the cat sits on the mat",
    "",
    "A Dog! [PAD] runs [SEP] in the [MASK] rain",
    "[PAD]",
    "Überall é 中文 zzz",
    "red blue small large old new " * 8,
]
CLOSE = 1e-4  # tolerance for float32 vectors of length about 1, summed in another order

KeyPath = tuple[str | int, ...]


@dataclass(frozen=True)
class Kind:
    """One kind of folder.

    ``use`` loads the folder and returns its result; every error except a TwinvecError is a finding. ``reference``
    computes the same in another way, or raises a TwinvecError or returns None if it cannot. ``harmless`` tells, for a
    file and the path of keys to a value, whether the value must not affect the result.
    """

    name: str
    make: Callable[[Path], Path]
    files: tuple[str, ...]
    use: Callable[[Path], Any]
    check: Callable[[Path, Any], None] = lambda folder, result: None
    reference: Callable[[Path, str], Any] = lambda folder, file: None
    harmless: Callable[[str, KeyPath], bool] = lambda file, path: False


def use_model(folder: Path) -> np.ndarray:
    """Vectors of some texts; inspecting the model must not fail either."""
    with suppress(TwinvecError):
        inspect_model(folder)
    encoder = twinvec.load(folder, long="cut", threads=1)
    vectors = encoder.encode(TEXTS)
    if vectors.shape != (len(TEXTS), encoder.width) or vectors.dtype != np.float32 or not np.isfinite(vectors).all():
        raise AssertionError(f"vectors of the shape {vectors.shape}, with values that are not finite")
    return vectors


def use_poly_encoder(folder: Path) -> np.ndarray:
    """Scores of some pairs; inspecting the model must not fail either."""
    with suppress(TwinvecError):
        inspect_model(folder)
    scores = twinvec.load_scorer(folder, long="cut", threads=1).score([(TEXTS[0], text) for text in TEXTS])
    if not np.isfinite(scores).all():
        raise AssertionError("scores that are not finite")
    return scores


def check_model(folder: Path, vectors: np.ndarray) -> None:
    """Check that a saved copy gives the same bits."""
    encoder = twinvec.load(folder, long="cut", threads=1)
    encoder.encode_layers(TEXTS[:2])
    with TemporaryDirectory() as work:
        encoder.save(Path(work) / "copy")
        copy = twinvec.load(Path(work) / "copy", long="cut", threads=1).encode(TEXTS)
    if not np.array_equal(copy, vectors):
        raise AssertionError(f"the vectors of a saved copy differ by {np.abs(copy - vectors).max()}")


def torch_vectors(folder: Path, file: str) -> np.ndarray | None:
    """The vectors of the same backbone in transformers."""
    if file != "config.json":
        return None  # all others are read by the same code
    return twinvec.load(folder, long="cut", runtime="torch").encode(TEXTS)


# Keys that do not affect vectors.
UNREAD = {
    "config.json": {"architectures", "bos_token_id", "eos_token_id", "cls_token_id", "sep_token_id"},
    "modules.json": {"idx", "name"},
    "1_Pooling/config.json": {"word_embedding_dimension"},
    "config_sentence_transformers.json": {"__version__", "similarity_fn_name"},
    "tokenizer_config.json": {"model_input_names", "pad_token", "unk_token", "cls_token", "sep_token", "mask_token"},
}


def is_unread(file: str, path: KeyPath) -> bool:
    """Whether this value does not affect vectors."""
    keys = [key for key in path if isinstance(key, str)]
    return bool(keys) and keys[0] in UNREAD.get(file, ())


def is_unread_config(file: str, path: KeyPath) -> bool:
    """The same for models whose tokenizer depends on its config."""
    return file == "config.json" and is_unread(file, path)


def tiny_model(family: str, pooling: str = "mean") -> Callable[[Path], Path]:
    """A sentence model of one architecture, with prompts."""

    def make(folder: Path) -> Path:
        write_tiny_model(folder, family, pooling={"pooling_mode": pooling} if pooling != "mean" else None)
        settings = {
            "__version__": {"sentence_transformers": "2.2.0"},
            "prompts": {"query": "the ", "document": ""},
            "default_prompt_name": "query" if family == "bert" else None,
            "similarity_fn_name": "cosine",
            "truncate_dim": 24 if family == "roberta" else None,
        }
        write_json(folder / "config_sentence_transformers.json", settings)
        return folder

    return make


def dense_model(folder: Path) -> Path:
    """BERT with Dense, LayerNorm, Dense and Normalize after the pooling."""
    write_tiny_model(folder, extra=("Dense", "LayerNorm", "Dense", "Normalize"))
    rng = np.random.default_rng(0)
    for module in ("2_Dense", "4_Dense"):
        activation = "torch.nn.modules.activation.Tanh"
        config = {"in_features": WIDTH, "out_features": WIDTH, "bias": True, "activation_function": activation}
        write_json(folder / module / "config.json", config)
        weights = {"linear.weight": rng.standard_normal((WIDTH, WIDTH)), "linear.bias": rng.standard_normal(WIDTH)}
        _save(weights, folder / module)
    write_json(folder / "3_LayerNorm/config.json", {"dimension": WIDTH})
    _save({"norm.weight": rng.standard_normal(WIDTH), "norm.bias": rng.standard_normal(WIDTH)}, folder / "3_LayerNorm")
    return folder


def _save(weights: dict[str, np.ndarray], folder: Path) -> None:
    save_file({name: values.astype(np.float32) for name, values in weights.items()}, folder / "model.safetensors")


def wk_model(folder: Path) -> Path:
    """BERT with an SBERT-WK readout."""
    write_tiny_model(folder)
    rows = json.loads((folder / "modules.json").read_text())
    rows[1] |= {"type": "twinvec.WK", "path": "1_WK"}
    write_json(folder / "modules.json", rows)
    write_json(folder / "1_WK/config.json", {"mode": "paper", "layer_start": 1, "window": 2, "omega": 0.5})
    return folder


def plain_model(folder: Path) -> Path:
    """A plain backbone, with its weights in two files and its vocabulary as a text file."""
    write_plain_model(folder, "bert")
    (folder / "tokenizer.json").unlink()
    (folder / "vocab.txt").write_text("\n".join(VOCABULARY) + "\n")
    weights = load_file(folder / "model.safetensors")
    (folder / "model.safetensors").unlink()
    file_of = {}
    for part, names in enumerate((sorted(weights)[::2], sorted(weights)[1::2])):
        save_file({name: weights[name] for name in names}, folder / f"model-{part}.safetensors")
        file_of |= dict.fromkeys(names, f"model-{part}.safetensors")
    write_json(folder / "model.safetensors.index.json", {"metadata": {"total_size": 1}, "weight_map": file_of})
    return folder


def static_model(folder: Path) -> Path:
    """A table of token vectors."""
    tokenizer = folder.with_name(f"{folder.name}.tokenizer.json")
    tiny_tokenizer(FAMILIES["bert"]).save(str(tokenizer))
    write_static(folder, tokenizer, np.random.default_rng(0).standard_normal((len(VOCABULARY), 16)).astype(np.float32))
    return folder


DEFAULT_FILES = (
    *("config.json", "config.json", "config.json", "modules.json", "1_Pooling/config.json", "tokenizer.json"),
    *("sentence_bert_config.json", "config_sentence_transformers.json", "tokenizer_config.json"),
)
POOLINGS = {"roberta": "cls", "electra": "lasttoken", "albert": "max"}
DENSE_FILES = "2_Dense/config.json", "3_LayerNorm/config.json", "4_Dense/config.json", "modules.json"
PLAIN_FILES = "config.json", "tokenizer_config.json", "vocab.txt", "model.safetensors.index.json"
POLY_FILES = "poly_encoder.json", "poly_encoder.json", "poly_encoder.safetensors", "modules.json"
STATIC_FILES = "modules.json", "tokenizer.json", "config_sentence_transformers.json"


def _kind(name: str, make: Callable[[Path], Path], files: tuple[str, ...]) -> Kind:
    return Kind(name, make, files, use_model, check_model, torch_vectors, is_unread)


KINDS = [
    *(_kind(family, tiny_model(family, POOLINGS.get(family, "mean")), DEFAULT_FILES) for family in FAMILIES),
    _kind("dense", dense_model, DENSE_FILES),
    _kind("wk", wk_model, ("1_WK/config.json", "modules.json")),
    replace(_kind("plain", plain_model, PLAIN_FILES), harmless=is_unread_config),
    _kind("static", static_model, STATIC_FILES),
    Kind("poly", write_tiny_poly_encoder, POLY_FILES, use_poly_encoder, harmless=is_unread),
]

__all__ = ["CLOSE", "KINDS", "Kind", "TwinvecError"]
