"""Describe a model folder without running it, from configs and weight headers only."""

from __future__ import annotations

import json
import os
import struct
from collections import Counter
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from math import prod
from pathlib import Path
from typing import Any, NamedTuple

from twinvec.choices import SCORER_KINDS, show_size
from twinvec.engine.config import is_supported, read_backbone
from twinvec.engine.readout import readout_width
from twinvec.engine.static import TABLE_NAMES
from twinvec.engine.weights import SCALE, weight_files
from twinvec.errors import ModelFolderError
from twinvec.files import read_any_json, read_json
from twinvec.json_checks import JsonObject
from twinvec.model.classifier import Classifier, is_classifier, read_classifier
from twinvec.model.folder import (
    EMBEDDER_FILE,
    WK,
    Dense,
    LayerNorm,
    ModelFolder,
    Normalize,
    Pooling,
    StaticEmbedding,
    UseEncoder,
    embedder_kind,
    read_model_folder,
)
from twinvec.model.hub import find_model
from twinvec.model.identity import model_files
from twinvec.model.poly_encoder import read_n_codes
from twinvec.model.scripts import covered_scripts
from twinvec.model.tokenizer import load_tokenizer

__all__ = ["inspect_model"]

Tensors = dict[str, dict[str, Any]]  # the header of a safetensors file: dtype and shape by name
MAX_LABELS_SHOWN = 10
STORED = {"F64": "float64", "F32": "float32", "F16": "float16", "BF16": "bfloat16", "I8": "int8"}


@dataclass(frozen=True)
class Inspection:
    """The description of a model."""

    path: str
    architecture: str
    runs_without_torch: bool
    is_static: bool
    n_layers: int | None
    states_width: int | None
    width: int | None
    modules: tuple[str, ...]
    is_normalized: bool
    similarity: str
    max_tokens: int | None
    lower_case: bool
    prompts: dict[str, str] = field(default_factory=dict)
    default_prompt: str | None = None
    truncate_dim: int | None = None
    n_parameters: int | None = None
    size_bytes: int = 0
    weights: str = ""
    stored: str | None = None
    trained: str = ""
    labels: tuple[str, ...] = ()  # of a cross-encoder; a sentence model has none
    activation: str | None = None
    n_codes: int | None = None  # of a poly-encoder
    scripts: tuple[str, ...] = ()  # that the vocabulary has words for
    warnings: tuple[str, ...] = ()

    def as_dict(self) -> dict[str, Any]:
        """All fields, for JSON."""
        return asdict(self)

    def rows(self) -> list[tuple[str, str]]:
        """Label and value of each line of the description."""
        engine = "torch + transformers (extra 'train')"
        if self.runs_without_torch:
            engine = "token lookup (no torch)" if self.is_static else "built-in graph (no torch)"
        limit = (
            "no limit" if self.n_layers == 0 and self.max_tokens is None else f"{_or_unknown(self.max_tokens)} tokens"
        )
        count = f"{self.n_parameters:,} parameters, " if self.n_parameters else ""
        return [
            ("folder", self.path),
            *([("kind", "cross-encoder: scores two texts together")] if self.labels else []),
            *(
                [("kind", f"poly-encoder, {self.n_codes} codes: scores a query with candidates")]
                if self.n_codes
                else []
            ),
            ("architecture", self.architecture),
            ("engine", engine),
            ("layers", _or_unknown(self.n_layers)),
            ("states", f"{_or_unknown(self.states_width)} wide"),
            ("readout", " -> ".join(self.modules)),
            *self._output_rows(),
            ("longest pair" if self.labels else "longest text", limit),
            ("scripts", ", ".join(self.scripts) or "unknown"),
            *([("case", "texts are lowercased")] if self.lower_case else []),
            *([] if self.labels else [("prompts", _prompts(self.prompts, self.default_prompt))]),
            ("size", f"{count}{self.size_bytes / 1e6:.1f} MB in {self.weights or 'no weights'}"),
            ("stored as", self.stored or "unknown"),
            ("trained", self.trained or "not stated"),
        ]

    def _output_rows(self) -> list[tuple[str, str]]:
        """The rows about vectors, or about the scores of a cross-encoder."""
        if self.labels:
            names = ", ".join(self.labels[:MAX_LABELS_SHOWN]) + (" ..." if len(self.labels) > MAX_LABELS_SHOWN else "")
            return [("labels", f"{len(self.labels)}: {names}"), ("activation", str(self.activation))]
        rows = [("vectors", f"{_or_unknown(self.width)} wide" + (", of length 1" if self.is_normalized else ""))]
        if self.truncate_dim:
            rows.append(("truncated to", str(self.truncate_dim)))
        return [*rows, ("similarity", self.similarity)]


@dataclass(frozen=True)
class BaselineInspection:
    """The description of a baseline: an embedder that is not a sentence model, such as word vectors."""

    path: str
    kind: str
    width: int | None  # None for a scorer
    size_bytes: int
    facts: Mapping[str, Any]
    max_tokens: int | None = None  # baselines have no limit
    warnings: tuple[str, ...] = ()

    def as_dict(self) -> dict[str, Any]:
        """All fields, for JSON."""
        return {**asdict(self), "facts": dict(self.facts)}

    def rows(self) -> list[tuple[str, str]]:
        """Label and value of each line of the description."""
        facts = [
            (name.replace("_", " "), f"{value:,}" if type(value) is int else str(value))
            for name, value in self.facts.items()
            if value is not None
        ]
        what = "none: it scores pairs" if self.width is None else f"{self.width} wide"
        start = [("folder", self.path), ("kind", self.kind), ("vectors", what)]
        return [*start, *facts, ("size", show_size(self.size_bytes))]


def _inspect_baseline(folder: Path, kind: str) -> BaselineInspection:
    facts = read_json(folder / EMBEDDER_FILE)
    width = None if kind in SCORER_KINDS else JsonObject(facts, folder / EMBEDDER_FILE).integer("width")
    size = sum(file.stat().st_size for file in model_files(folder))
    return BaselineInspection(
        str(folder), kind, width, size, {name: facts[name] for name in facts if name not in ("kind", "width")}
    )


def inspect_model(name_or_folder: str | os.PathLike[str], *, offline: bool = False) -> Inspection | BaselineInspection:
    """Describe a model by its folder or name: architecture, width, pooling, prompts, length, size, and warnings.

    For the folder of a baseline, such as word vectors: its kind, width, settings and size.

    >>> inspect_model("twinvec-mini").width
    384
    """
    path = find_model(name_or_folder, offline=offline)
    if (kind := embedder_kind(path)) is not None:
        return _inspect_baseline(path, kind)
    classifier = read_classifier(path) if is_classifier(path) else None
    folder = read_model_folder(path) if classifier is None else classifier.folder
    files = weight_files(folder.backbone)
    tensors = _tensors(files)
    core = _core(folder, tensors)
    width = readout_width(folder.modules, core.width) if core.width else None
    return Inspection(
        path=str(folder.path),
        architecture=core.architecture,
        runs_without_torch=core.runs_without_torch,
        is_static=folder.is_static,
        n_layers=core.n_layers,
        states_width=core.width,
        width=folder.truncate_dim or width,
        modules=tuple(_describe(module) for module in folder.modules),
        is_normalized=isinstance(folder.modules[-1], Normalize) and not folder.truncate_dim,
        similarity=folder.similarity,
        max_tokens=core.max_tokens,
        lower_case=folder.lower_case,
        prompts=folder.prompts,
        default_prompt=folder.default_prompt,
        truncate_dim=folder.truncate_dim,
        n_parameters=_count_parameters(tensors),
        size_bytes=sum(file.stat().st_size for file in files if file.is_file()),
        weights=", ".join(file.name for file in files),
        stored=_stored(tensors),
        trained=_trained(folder),
        labels=classifier.labels if classifier else (),
        activation=classifier.activation if classifier else None,
        n_codes=read_n_codes(path),
        scripts=_scripts(folder),
        warnings=tuple(_warnings(folder, files, classifier)),
    )


def _scripts(folder: ModelFolder) -> tuple[str, ...]:
    try:
        return covered_scripts(load_tokenizer(folder.backbone).fast).covered
    except ModelFolderError:  # no tokenizer, or a damaged one
        return ()


class Core(NamedTuple):
    """The backbone or the table."""

    architecture: str
    runs_without_torch: bool
    n_layers: int | None
    width: int | None
    max_tokens: int | None


def _core(folder: ModelFolder, tensors: Tensors) -> Core:
    if folder.is_use:
        shape, last = (tensors.get(name, {}).get("shape") for name in ("embedding.weight", "hidden.3.weight"))
        name = f"Universal Sentence Encoder ({shape[0]:,} pieces)" if shape else "Universal Sentence Encoder"
        return Core(name, True, 0, last[0] if last else None, None)
    return _table(folder, tensors) if folder.is_static else _backbone(folder)


def _backbone(folder: ModelFolder) -> Core:
    config = JsonObject(folder.config, folder.backbone / "config.json")
    if not is_supported(folder.config):
        layers, width = config.integer("num_hidden_layers", None), config.integer("hidden_size", None)
        return Core(_architecture(config), False, layers, width, folder.max_tokens)
    backbone = read_backbone(folder.config)
    limit = min((limit for limit in (folder.max_tokens, backbone.n_positions) if limit), default=None)
    return Core(_architecture(config), True, backbone.n_layers, backbone.width, limit)


def _table(folder: ModelFolder, tensors: Tensors) -> Core:
    shapes = {name: tensor["shape"] for name, tensor in tensors.items()}
    rows, width = next((shapes[name] for name in TABLE_NAMES if len(shapes.get(name, ())) == 2), (None, None))
    source = folder.backbone / "tokenizer.json"
    truncation = JsonObject(read_json(source), source).inner("truncation", {})
    name = "static" if rows is None else f"static ({rows:,} token vectors)"
    return Core(name, True, 0, width, truncation.integer("max_length", None))


def _or_unknown(value: int | None) -> str:
    return "unknown" if value is None else str(value)


def _prompts(prompts: dict[str, str], default: str | None) -> str:
    listed = ", ".join(f"{name}: {text!r}" for name, text in prompts.items()) or "none"
    return f"{listed} (default: {default})" if default else listed


def _architecture(config: JsonObject) -> str:
    kind = config.text("model_type", None) or "unknown"
    names = ", ".join(str(name) for name in config.items("architectures") or [])
    return f"{kind} ({names})" if names else str(kind)


def _describe(module: object) -> str:
    match module:
        case Pooling(modes, include_prompt):
            return "+".join(modes) + " pooling" + ("" if include_prompt else " without the prompt")
        case WK(settings, include_prompt):
            start = "a third" if settings.layer_start is None else f"layer {settings.layer_start}"
            how = f"{settings.mode}, from {start} on, window {settings.window}, omega {settings.omega:g}"
            return f"SBERT-WK ({how})" + ("" if include_prompt else " without the prompt")
        case Dense(_, n_in, n_out, _, activation):
            return f"Dense {n_in} to {n_out} ({activation})"
        case LayerNorm(_, width):
            return f"LayerNorm {width}"
        case StaticEmbedding():
            return "mean of the token vectors"
        case UseEncoder():
            return "convolutions over n-grams of pieces, summed"
        case _:
            return type(module).__name__


def _tensors(files: list[Path]) -> Tensors:
    """The headers of safetensors files; empty if any cannot be read."""
    if not all(file.suffix == ".safetensors" and file.is_file() for file in files):
        return {}
    tensors: Tensors = {}
    for file in files:
        with file.open("rb") as handle:
            try:
                header = json.loads(handle.read(struct.unpack("<Q", handle.read(8))[0]))
            except (struct.error, ValueError, MemoryError, OverflowError):
                return {}
        tensors |= {name: tensor for name, tensor in header.items() if name != "__metadata__"}
    return tensors


def _count_parameters(tensors: Tensors) -> int | None:
    """Number of parameters, without the scales of int8 weights."""
    scales = {name + SCALE for name, tensor in tensors.items() if tensor["dtype"] == "I8"}
    return sum(prod(tensor["shape"]) for name, tensor in tensors.items() if name not in scales) or None


def _stored(tensors: Tensors) -> str | None:
    """The dtype of most values."""
    counts: Counter[str] = Counter()
    for tensor in tensors.values():
        counts[tensor["dtype"]] += prod(tensor["shape"])
    return next((STORED.get(dtype, dtype) for dtype, _ in counts.most_common(1)), None)


def _trained(folder: ModelFolder) -> str:
    """What the folder says about its training."""
    versions = read_json(folder.path / "config_sentence_transformers.json").get("__version__") or {}
    made = ", ".join(f"{name} {version}" for name, version in versions.items()) if isinstance(versions, dict) else ""
    base = folder.config.get("_name_or_path")
    parts = [f"from {base}" if base else "", f"saved with {made}" if made else ""]
    sets = read_any_json(folder.path / "data_config.json")
    if isinstance(sets, list):
        parts.append(f"on {len(sets)} data sets (data_config.json)")
    return ", ".join(part for part in parts if part)


def _warnings(folder: ModelFolder, files: list[Path], classifier: Classifier | None) -> list[str]:
    warnings = []
    if not folder.is_sentence_model and classifier is None:
        warnings.append("Not a sentence model: modules.json is missing. Mean pooling is used; expect poor vectors.")
    if not files:
        warnings.append("There are no weights in this folder.")
    dense = [module.folder for module in folder.modules if isinstance(module, (Dense, LayerNorm))]
    if any(file.suffix == ".bin" for file in [*files, *(file for inner in dense for file in weight_files(inner))]):
        warnings.append("The weights are a pickle, which can run code; they load only with trust_pickle=True.")
    if not (folder.backbone / "tokenizer.json").is_file() and not (folder.backbone / "vocab.txt").is_file():
        warnings.append("tokenizer.json is missing.")
    return warnings
