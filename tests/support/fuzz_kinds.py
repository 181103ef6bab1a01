"""What is fuzzed: valid folders, which of their files are spoilt, and how each is used.

To add another kind of file, write its ``make`` and ``use`` and put a row into ``KINDS``.
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
from tiny import FAMILIES, VOCABULARY, WIDTH, tiny_tokenizer, write_json, write_plain_model, write_tiny_model
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
CLOSE = 1e-4  # of vectors of length about 1, in float32, by another order of sums

Place = tuple[str | int, ...]


@dataclass(frozen=True)
class Kind:
    """One kind of folder.

    ``use`` loads the folder and gives what it computes; every error but a TwinvecError is a finding. ``reference``
    gives the same by other means, or raises a TwinvecError or gives None where it cannot. ``harmless`` says of a file
    and the keys down to a value that no change of it may change what ``use`` gives.
    """

    name: str
    make: Callable[[Path], Path]
    files: tuple[str, ...]
    use: Callable[[Path], Any]
    check: Callable[[Path, Any], None] = lambda folder, result: None
    reference: Callable[[Path, str], Any] = lambda folder, file: None
    harmless: Callable[[str, Place], bool] = lambda file, place: False


def use_model(folder: Path) -> np.ndarray:
    """Vectors of some texts; looking at the model and reading its layers must not break either."""
    with suppress(TwinvecError):
        inspect_model(folder)
    encoder = twinvec.load(folder, long="cut", threads=1)
    vectors = encoder.encode(TEXTS)
    if vectors.shape != (len(TEXTS), encoder.width) or vectors.dtype != np.float32 or not np.isfinite(vectors).all():
        raise AssertionError(f"vectors of the shape {vectors.shape}, with values that are not finite")
    return vectors


def check_model(folder: Path, vectors: np.ndarray) -> None:
    """A model that loads is saved and loads again, to the same bits."""
    encoder = twinvec.load(folder, long="cut", threads=1)
    encoder.encode_layers(TEXTS[:2])
    with TemporaryDirectory() as place:
        encoder.save(Path(place) / "copy")
        copy = twinvec.load(Path(place) / "copy", long="cut", threads=1).encode(TEXTS)
    if not np.array_equal(copy, vectors):
        raise AssertionError(f"saved and loaded again, vectors differ by {np.abs(copy - vectors).max()}")


def torch_vectors(folder: Path, file: str) -> np.ndarray | None:
    """What transformers makes of the same backbone."""
    if file != "config.json":
        return None  # all others are read by the same code
    return twinvec.load(folder, long="cut", runtime="torch").encode(TEXTS)


# Keys of config.json that no forward pass reads; of the others, what reads a model does not need.
UNREAD = {
    "config.json": {"architectures", "bos_token_id", "eos_token_id", "cls_token_id", "sep_token_id"},
    "modules.json": {"idx", "name"},
    "1_Pooling/config.json": {"word_embedding_dimension"},
    "config_sentence_transformers.json": {"__version__", "similarity_fn_name"},
    "tokenizer_config.json": {"model_input_names", "pad_token", "unk_token", "cls_token", "sep_token", "mask_token"},
}


def is_unread(file: str, place: Place) -> bool:
    """Whether nothing that makes a vector reads this value."""
    keys = [key for key in place if isinstance(key, str)]
    return bool(keys) and keys[0] in UNREAD.get(file, ())


def is_unread_config(file: str, place: Place) -> bool:
    """The same where the tokenizer is made of what its config says."""
    return file == "config.json" and is_unread(file, place)


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
    """BERT with Dense, LayerNorm, Dense and Normalize behind its pooling."""
    write_tiny_model(folder, extra=("Dense", "LayerNorm", "Dense", "Normalize"))
    rng = np.random.default_rng(0)
    for place in ("2_Dense", "4_Dense"):
        activation = "torch.nn.modules.activation.Tanh"
        config = {"in_features": WIDTH, "out_features": WIDTH, "bias": True, "activation_function": activation}
        write_json(folder / place / "config.json", config)
        weights = {"linear.weight": rng.standard_normal((WIDTH, WIDTH)), "linear.bias": rng.standard_normal(WIDTH)}
        _save(weights, folder / place)
    write_json(folder / "3_LayerNorm/config.json", {"dimension": WIDTH})
    _save({"norm.weight": rng.standard_normal(WIDTH), "norm.bias": rng.standard_normal(WIDTH)}, folder / "3_LayerNorm")
    return folder


def _save(weights: dict[str, np.ndarray], folder: Path) -> None:
    save_file({name: values.astype(np.float32) for name, values in weights.items()}, folder / "model.safetensors")


def wk_model(folder: Path) -> Path:
    """BERT read out by SBERT-WK."""
    write_tiny_model(folder)
    rows = json.loads((folder / "modules.json").read_text())
    rows[1] |= {"type": "twinvec.WK", "path": "1_WK"}
    write_json(folder / "modules.json", rows)
    write_json(folder / "1_WK/config.json", {"mode": "paper", "layer_start": 1, "window": 2, "omega": 0.5})
    return folder


def plain_model(folder: Path) -> Path:
    """A bare backbone, with its weights in two files and its vocabulary as a list."""
    write_plain_model(folder, "bert")
    (folder / "tokenizer.json").unlink()
    (folder / "vocab.txt").write_text("\n".join(VOCABULARY) + "\n")
    weights = load_file(folder / "model.safetensors")
    (folder / "model.safetensors").unlink()
    places = {}
    for part, names in enumerate((sorted(weights)[::2], sorted(weights)[1::2])):
        save_file({name: weights[name] for name in names}, folder / f"model-{part}.safetensors")
        places |= dict.fromkeys(names, f"model-{part}.safetensors")
    write_json(folder / "model.safetensors.index.json", {"metadata": {"total_size": 1}, "weight_map": places})
    return folder


def static_model(folder: Path) -> Path:
    """A table of token vectors."""
    tokenizer = folder.with_name(f"{folder.name}.tokenizer.json")
    tiny_tokenizer(FAMILIES["bert"]).save(str(tokenizer))
    write_static(folder, tokenizer, np.random.default_rng(0).standard_normal((len(VOCABULARY), 16)).astype(np.float32))
    return folder


USUAL_FILES = (
    *("config.json", "config.json", "config.json", "modules.json", "1_Pooling/config.json", "tokenizer.json"),
    *("sentence_bert_config.json", "config_sentence_transformers.json", "tokenizer_config.json"),
)
POOLINGS = {"roberta": "cls", "electra": "lasttoken", "albert": "max"}
DENSE_FILES = "2_Dense/config.json", "3_LayerNorm/config.json", "4_Dense/config.json", "modules.json"
PLAIN_FILES = "config.json", "tokenizer_config.json", "vocab.txt", "model.safetensors.index.json"
STATIC_FILES = "modules.json", "tokenizer.json", "config_sentence_transformers.json"


def _kind(name: str, make: Callable[[Path], Path], files: tuple[str, ...]) -> Kind:
    return Kind(name, make, files, use_model, check_model, torch_vectors, is_unread)


KINDS = [
    *(_kind(family, tiny_model(family, POOLINGS.get(family, "mean")), USUAL_FILES) for family in FAMILIES),
    _kind("dense", dense_model, DENSE_FILES),
    _kind("wk", wk_model, ("1_WK/config.json", "modules.json")),
    replace(_kind("plain", plain_model, PLAIN_FILES), harmless=is_unread_config),
    _kind("static", static_model, STATIC_FILES),
]

__all__ = ["CLOSE", "KINDS", "Kind", "TwinvecError"]
