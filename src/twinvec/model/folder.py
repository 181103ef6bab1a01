"""Read model folders in the sentence-transformers layout, old and new.

A folder describes its backbone (``config.json``), the modules that turn its states into a vector (``modules.json``),
and how texts are prepared (prompts, length, case). This module reads no weights and never runs code from a folder.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any

from twinvec.choices import POOLINGS, READOUTS
from twinvec.errors import InputError, ModelFolderError, UnknownNameError, check_name, shown
from twinvec.files import read_any_json, read_json
from twinvec.json_checks import JsonObject
from twinvec.model.identity import FileStates
from twinvec.vectors import SIMILARITIES
from twinvec.wk import WKSettings

__all__ = [
    "EMBEDDER_FILE",
    "USE_KIND",
    "WK",
    "Dense",
    "LayerNorm",
    "ModelFolder",
    "Module",
    "Normalize",
    "Pooling",
    "StaticEmbedding",
    "UseEncoder",
    "check_loading",
    "embedder_kind",
    "read_model_folder",
    "refuse_own_code",
    "tokenizer_limit",
    "with_readout",
]

# Old key of 1_Pooling/config.json -> name of the mode, in the order in which the old format joins them.
POOLING_KEYS = {
    "pooling_mode_cls_token": "cls",
    "pooling_mode_max_tokens": "max",
    "pooling_mode_mean_tokens": "mean",
    "pooling_mode_mean_sqrt_len_tokens": "mean_sqrt_len_tokens",
    "pooling_mode_weightedmean_tokens": "weightedmean",
    "pooling_mode_lasttoken": "lasttoken",
}

WK_TYPE = "twinvec.WK"  # in modules.json; sentence-transformers does not load such a folder

VECTOR = "sentence_embedding"  # what a Dense layer reads and writes

# Early releases put the architecture's name in the file name.
LENGTH_FILES = "sentence_bert_config.json", "sentence_*_config.json"

MAX_MODULES = 64

# The settings of newer sentence-transformers releases that read the last layer's states of a text.
DEFAULT_TRANSFORMER: dict[str, object] = {
    "transformer_task": "feature-extraction",
    "modality_config": {"text": {"method": "forward", "method_output_name": "last_hidden_state"}},
    "module_output_name": "token_embeddings",
    "processing_kwargs": {},
    "query_expansion": {},
}

# Arguments that sentence-transformers passes to the backbone's loader, and the ones that do not change vectors.
LOADING_KEYS = "model_args", "model_kwargs", "config_args", "config_kwargs", "tokenizer_args", "processor_kwargs"
HARMLESS_LOADING = {"attn_implementation", "dtype", "torch_dtype", "trust_remote_code", "use_safetensors"}


@dataclass(frozen=True, slots=True)
class Pooling:
    """Pool token states into one vector; the results of several modes are concatenated in order."""

    modes: tuple[str, ...] = ("mean",)
    include_prompt: bool = True


@dataclass(frozen=True, slots=True)
class WK:
    """SBERT-WK over the states of all layers, instead of a pooling."""

    settings: WKSettings = field(default_factory=WKSettings)
    include_prompt: bool = True


@dataclass(frozen=True, slots=True)
class Dense:
    """A linear layer on the vector, with an activation named by its torch class."""

    folder: Path
    n_in: int
    n_out: int
    has_bias: bool
    activation: str


@dataclass(frozen=True, slots=True)
class LayerNorm:
    """Layer normalization of the vector, with learned scale and shift."""

    folder: Path
    width: int
    epsilon: float = 1e-5


@dataclass(frozen=True, slots=True)
class Normalize:
    """Scale the vector to length 1."""


@dataclass(frozen=True, slots=True)
class StaticEmbedding:
    """The mean of token vectors from a table, instead of a backbone and a pooling."""


@dataclass(frozen=True, slots=True)
class UseEncoder:
    """A Universal Sentence Encoder, instead of a backbone and a pooling."""


Module = StaticEmbedding | UseEncoder | Pooling | WK | Dense | LayerNorm | Normalize


@dataclass(frozen=True)
class ModelFolder:
    """The checked content of a model folder."""

    path: Path
    backbone: Path
    config: dict[str, Any] = field(repr=False)
    modules: tuple[Module, ...] = (Pooling(),)
    is_sentence_model: bool = True
    max_tokens: int | None = None
    lower_case: bool = False
    prompts: dict[str, str] = field(default_factory=dict)
    default_prompt: str | None = None
    similarity: str = "cosine"
    truncate_dim: int | None = None
    as_opened: FileStates | None = field(default=None, repr=False, compare=False)

    def check_unchanged(self) -> None:
        """Raise ModelFolderError if a file of the model changed after :func:`twinvec.load` opened it."""
        if self.as_opened is not None:
            self.as_opened.check()

    @property
    def is_static(self) -> bool:
        """Whether it holds a table of token vectors instead of a backbone."""
        return isinstance(self.modules[0], StaticEmbedding)

    @property
    def is_use(self) -> bool:
        """Whether it holds a Universal Sentence Encoder instead of a backbone."""
        return isinstance(self.modules[0], UseEncoder)

    @property
    def has_layers(self) -> bool:
        """Whether it has a backbone, with layers of token states and a readout."""
        return not (self.is_static or self.is_use)

    @property
    def readout(self) -> Pooling | WK:
        """The module that turns states into one vector."""
        return next(module for module in self.modules if isinstance(module, (Pooling, WK)))


EMBEDDER_FILE = "embedder.json"  # the kind and the settings of an embedder in a layout of our own
USE_KIND = "use"  # a sentence model too


def embedder_kind(path: Path) -> str | None:
    """The kind of an embedder that is not a sentence model, such as word-vectors; None for all other folders."""
    kind = _stored_kind(path)
    return None if kind == USE_KIND else kind


def _stored_kind(path: Path) -> str | None:
    file = path / EMBEDDER_FILE
    kind: str | None = _read(file).text("kind", pattern="[a-z0-9-]{1,40}") if file.is_file() else None
    return kind


def read_model_folder(path: Path) -> ModelFolder:
    """Read a sentence-transformers folder, a plain Hugging Face folder (with mean pooling), or one of USE."""
    if (kind := _stored_kind(path)) == USE_KIND:
        return ModelFolder(path, path, read_json(path / EMBEDDER_FILE), (UseEncoder(), Normalize()))
    if kind is not None:
        raise ModelFolderError(
            f"{path} is a folder of {kind}, not a sentence model.",
            hint="Use it as the model of evaluate, embed_file, search_texts and so on, not with twinvec.load.",
        )
    listed = read_any_json(path / "modules.json")
    return _plain(path) if listed is None else _sentence_model(path, listed)


def with_readout(folder: ModelFolder, readout: str | WKSettings) -> ModelFolder:
    """The same model with another readout: the name of a pooling, "wk", or SBERT-WK settings."""
    if not folder.has_layers:
        problem = "is a static model without layers: its vectors are always the mean of its token vectors."
        raise InputError(
            f"{folder.path} {problem if folder.is_static else 'is a Universal Sentence Encoder, without a pooling.'}",
            hint="Leave readout at its default, or use a Transformer model.",
        )
    if not isinstance(readout, WKSettings):
        check_name("readout", readout, READOUTS)
    include_prompt = folder.readout.include_prompt
    chosen: Module
    if isinstance(readout, str) and readout != "wk":
        chosen = Pooling((readout,), include_prompt)
    else:
        chosen = WK(WKSettings() if isinstance(readout, str) else readout, include_prompt)
    return replace(folder, modules=(chosen, *folder.modules[1:]))


def _sentence_model(path: Path, listed: object) -> ModelFolder:
    if not isinstance(listed, list) or not all(isinstance(row, dict) for row in listed) or not listed:
        raise ModelFolderError(f"{path / 'modules.json'} must be a list of modules.", hint="Download the model again.")
    if len(listed) > MAX_MODULES:
        raise ModelFolderError(f"{path / 'modules.json'} lists {len(listed)} modules; the limit is {MAX_MODULES}.")
    rows = [JsonObject(row, path / "modules.json") for row in listed]
    kinds = [_kind(row.text("type", "")) for row in rows]
    if kinds[0] not in FIRST:
        raise ModelFolderError(
            f"The first module of {path} is {kinds[0]!r}.",
            hint=f"Supported first modules: {', '.join(FIRST)}.",
        )
    folders = [_inside(path, row.text("path", "")) for row in rows]
    modules = tuple(
        _module(kind, folder) for kind, folder in zip(kinds[1:], folders[1:], strict=True) if kind not in IGNORED
    )
    if kinds[0] == "StaticEmbedding":
        if not all(isinstance(module, Normalize) for module in modules):
            raise ModelFolderError(
                f"{path} is a static model followed by {kinds[1:]}.", hint="Only Normalize is supported there."
            )
        return _described(path, folders[0], (StaticEmbedding(), *modules))
    if [index for index, module in enumerate(modules) if isinstance(module, (Pooling, WK))] != [0]:
        raise ModelFolderError(f"{path} must have exactly one Pooling module, right after its Transformer.")
    return _described(path, folders[0], modules)


def _kind(name: str) -> str:
    """The class name of a sentence-transformers module; the full name for others, which are never imported."""
    package, _, kind = name.rpartition(".")
    return kind if package.partition(".")[0] in ("sentence_transformers", "") else name


def _plain(path: Path) -> ModelFolder:
    if not (path / "config.json").is_file():
        raise ModelFolderError(
            f"{path} contains neither modules.json nor config.json.", hint="Pass the folder of a saved model."
        )
    return ModelFolder(
        path=path,
        backbone=path,
        config=read_json(path / "config.json"),
        is_sentence_model=False,
        max_tokens=tokenizer_limit(path),
    )


def _described(path: Path, backbone: Path, modules: tuple[Module, ...]) -> ModelFolder:
    config = read_json(backbone / "config.json")
    if not config and not isinstance(modules[0], StaticEmbedding):
        raise ModelFolderError(f"{backbone / 'config.json'} is missing.", hint="Download the model again.")
    files = [file for pattern in LENGTH_FILES for file in sorted(backbone.glob(pattern))]
    limits = _read(files[0]) if files else JsonObject({}, backbone)
    check_loading(limits)
    settings = _read(path / "config_sentence_transformers.json")
    stored = settings.inner("prompts", {})
    prompts = {name: stored.text(name, None) or "" for name in stored.content}
    default_prompt = settings.text("default_prompt_name", None)
    if default_prompt is not None and default_prompt not in prompts:
        raise ModelFolderError(f"{path}: the default prompt {default_prompt!r} is not among its prompts {prompts}.")
    similarity = settings.text("similarity_fn_name", None) or "cosine"
    check_name("similarity in config_sentence_transformers.json", similarity, SIMILARITIES)
    return ModelFolder(
        path=path,
        backbone=backbone,
        config=config,
        modules=modules,
        max_tokens=limits.integer("max_seq_length", None) or tokenizer_limit(backbone),
        lower_case=limits.flag("do_lower_case", False),
        prompts=prompts,
        default_prompt=default_prompt,
        similarity=similarity,
        truncate_dim=settings.integer("truncate_dim", None),
    )


def _read(path: Path) -> JsonObject:
    return JsonObject(read_json(path), path)


def check_loading(limits: JsonObject, known: Mapping[str, object] = DEFAULT_TRANSFORMER) -> None:
    """Raise ModelFolderError for settings that make sentence-transformers load the backbone differently."""
    for key, default in known.items():
        value = limits.content.get(key)
        if value and value != default:
            raise ModelFolderError(f"{limits.source}: {key}={shown(value)} is not supported.")
    for key in LOADING_KEYS:
        more = set(limits.inner(key, {}).content) - HARMLESS_LOADING
        if more:
            raise ModelFolderError(
                f"{limits.source}: {key} sets {', '.join(sorted(more))}, which is not supported.",
                hint="Save the model with these settings in its own config.json.",
            )


def tokenizer_limit(folder: Path) -> int | None:
    """The tokenizer's limit; a missing or huge number means that there is none."""
    limit = read_json(folder / "tokenizer_config.json").get("model_max_length")
    if limit is None or (isinstance(limit, (int, float)) and not isinstance(limit, bool) and limit >= 1e9):
        return None
    if isinstance(limit, float) and limit.is_integer():
        limit = int(limit)
    return int(JsonObject({"model_max_length": limit}, folder / "tokenizer_config.json").integer("model_max_length"))


def _inside(root: Path, relative: str) -> Path:
    # Checks the name only: links inside the folder are up to its owner.
    if Path(relative).is_absolute() or os.path.normpath(relative).split(os.sep)[0] == os.pardir:
        raise ModelFolderError(
            f"{root / 'modules.json'} names the path {relative!r}, which is outside the folder.",
            hint="If you trust this model, correct the path by hand.",
        )
    return root / relative if relative else root


def _pooling(folder: Path) -> Pooling:
    config = _read(folder / "config.json")
    named = config.content.get("pooling_mode")
    if named is None:
        modes = [mode for key, mode in POOLING_KEYS.items() if config.flag(key, False)]
    else:
        modes = [named] if isinstance(named, str) else config.items("pooling_mode")
    for mode in modes:
        check_name(f"pooling mode in {folder / 'config.json'}:", mode, POOLINGS)
    if not modes or len(set(modes)) < len(modes):
        raise ModelFolderError(
            f"{folder / 'config.json'} must name each pooling mode once, but names {modes or 'none'}.",
            hint="Download the model again.",
        )
    return Pooling(tuple(modes), config.flag("include_prompt", True))


def _wk(folder: Path) -> WK:
    config = read_json(folder / "config.json")
    include_prompt = JsonObject(config, folder / "config.json").flag("include_prompt", True)
    config.pop("include_prompt", None)
    known = [each.name for each in fields(WKSettings)]
    for name in config:
        if name not in known:
            raise UnknownNameError(f"setting in {folder / 'config.json'}:", name, [*known, "include_prompt"])
    try:
        return WK(WKSettings(**config), include_prompt)
    except (InputError, UnknownNameError) as error:
        raise ModelFolderError(f"{folder / 'config.json'}: {error}") from error


def _dense(folder: Path) -> Dense:
    config = _read(folder / "config.json")
    n_in, n_out = config.integer("in_features"), config.integer("out_features")
    for key, default in (("use_residual", False), ("module_input_name", VECTOR), ("module_output_name", VECTOR)):
        value = config.content.get(key, default)
        if value is not None and value != default:
            raise ModelFolderError(f"{folder / 'config.json'}: {key}={value!r} is not supported.")
    package, _, activation = config.text("activation_function", "torch.nn.modules.activation.Tanh").rpartition(".")
    if package and not package.startswith("torch."):
        raise ModelFolderError(
            f"{folder / 'config.json'}: the activation {package}.{activation} is not part of torch, so it is not run."
        )
    return Dense(folder, n_in, n_out, config.flag("bias", True), activation)


MODULES: dict[str, Callable[[Path], Module]] = {
    "Pooling": _pooling,
    WK_TYPE: _wk,
    "Dense": _dense,
    "LayerNorm": lambda folder: LayerNorm(folder, _read(folder / "config.json").integer("dimension")),
    "Normalize": lambda folder: Normalize(),
}
FIRST = "Transformer", "StaticEmbedding"
IGNORED = ("Dropout",)  # has no effect after training


def _module(kind: str, folder: Path) -> Module:
    if kind not in MODULES:
        raise UnknownNameError(f"module type in {folder}:", kind, [*MODULES, *IGNORED, *FIRST])
    return MODULES[kind](folder)


def refuse_own_code(config: Mapping[str, Any], *names: str, file: object) -> None:
    """Raise ModelFolderError if ``auto_map`` of a config names custom code for one of ``names``.

    Without that code, the vectors would differ from those the author intended.
    """
    code = config.get("auto_map")
    if code is None or (isinstance(code, dict) and not any(code.get(name) for name in names)):
        return
    raise ModelFolderError(
        f"{file} names custom code (auto_map: {shown(code)}), which is never run.",
        hint="Use a model without custom code; if this one does not need it, remove auto_map from that file.",
    )
