"""Model folders in the sentence-transformers layout, as data. Reads both generations, writes the old one.

A folder says which backbone it holds (``config.json``), which modules turn its states into a vector
(``modules.json``), and how texts are prepared (prompts, length, case). No weight is read here, and no code that
a folder brings along is ever run."""

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
    "WK",
    "Dense",
    "LayerNorm",
    "ModelFolder",
    "Module",
    "Normalize",
    "Pooling",
    "StaticEmbedding",
    "embedder_kind",
    "read_model_folder",
    "refuse_own_code",
    "with_readout",
]

# Old key of 1_Pooling/config.json -> the mode's name, in the order in which the old format joins them.
POOLING_KEYS = {
    "pooling_mode_cls_token": "cls",
    "pooling_mode_max_tokens": "max",
    "pooling_mode_mean_tokens": "mean",
    "pooling_mode_mean_sqrt_len_tokens": "mean_sqrt_len_tokens",
    "pooling_mode_weightedmean_tokens": "weightedmean",
    "pooling_mode_lasttoken": "lasttoken",
}

WK_TYPE = "twinvec.WK"  # in modules.json; sentence-transformers knows no such module, and refuses the folder

VECTOR = "sentence_embedding"  # what a Dense layer reads and writes

# The length file took the architecture's name in early releases.
LENGTH_FILES = "sentence_bert_config.json", "sentence_*_config.json"

MOST_MODULES = 64

# How the newer releases of sentence-transformers say that they read the last layer's states of a text.
DEFAULT_TRANSFORMER: dict[str, object] = {
    "transformer_task": "feature-extraction",
    "modality_config": {"text": {"method": "forward", "method_output_name": "last_hidden_state"}},
    "module_output_name": "token_embeddings",
    "processing_kwargs": {},
    "query_expansion": {},
}

# What sentence-transformers hands on when it loads the backbone, old names and new; and what of it changes no vector.
LOADING_KEYS = "model_args", "model_kwargs", "config_args", "config_kwargs", "tokenizer_args", "processor_kwargs"
HARMLESS_LOADING = {"attn_implementation", "dtype", "torch_dtype", "trust_remote_code", "use_safetensors"}


@dataclass(frozen=True, slots=True)
class Pooling:
    """Token states to one vector; several modes are joined in their order."""

    modes: tuple[str, ...] = ("mean",)
    include_prompt: bool = True


@dataclass(frozen=True, slots=True)
class WK:
    """In place of a pooling: SBERT-WK over the states of all layers."""

    settings: WKSettings = field(default_factory=WKSettings)
    include_prompt: bool = True


@dataclass(frozen=True, slots=True)
class Dense:
    """A linear layer on the vector, with an activation named as torch names its class."""

    folder: Path
    n_in: int
    n_out: int
    has_bias: bool
    activation: str


@dataclass(frozen=True, slots=True)
class LayerNorm:
    """Layer normalisation of the vector, with learned scale and shift."""

    folder: Path
    width: int


@dataclass(frozen=True, slots=True)
class Normalize:
    """Scale the vector to length 1."""


@dataclass(frozen=True, slots=True)
class StaticEmbedding:
    """In place of a backbone and its pooling: a table of token vectors, of which the mean is taken."""


Module = StaticEmbedding | Pooling | WK | Dense | LayerNorm | Normalize


@dataclass(frozen=True)
class ModelFolder:
    """What a model folder says, checked."""

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
        """Refuse to go on if a file of the model has changed since :func:`twinvec.load` opened it."""
        if self.as_opened is not None:
            self.as_opened.check()

    @property
    def is_static(self) -> bool:
        """Whether it holds a table of token vectors instead of a backbone."""
        return isinstance(self.modules[0], StaticEmbedding)

    @property
    def readout(self) -> Pooling | WK:
        """The module that makes one vector of the states."""
        return next(module for module in self.modules if isinstance(module, (Pooling, WK)))


EMBEDDER_FILE = "embedder.json"  # in the folder of an embedder that is not a sentence model: its kind, and settings


def embedder_kind(path: Path) -> str | None:
    """What the folder of another embedder than a sentence model holds, such as word-vectors; None for all others."""
    file = path / EMBEDDER_FILE
    kind: str | None = _read(file).text("kind", pattern="[a-z0-9-]{1,40}") if file.is_file() else None
    return kind


def read_model_folder(path: Path) -> ModelFolder:
    """Read a sentence-transformers folder, or a plain Hugging Face folder (then with mean pooling)."""
    if (kind := embedder_kind(path)) is not None:
        raise ModelFolderError(
            f"{path} holds {kind}, not a sentence model.",
            hint="Give it as the model of evaluate, embed_file, search_texts and the like, not to twinvec.load.",
        )
    listed = read_any_json(path / "modules.json")
    return _plain(path) if listed is None else _sentence_model(path, listed)


def with_readout(folder: ModelFolder, readout: str | WKSettings) -> ModelFolder:
    """The same model, read out by a pooling of this name, by "wk", or by SBERT-WK with these settings."""
    if folder.is_static:
        raise InputError(
            f"{folder.path} is a static model: its vectors are the mean of its tokens' vectors, and it has no layers.",
            hint="Leave the readout as it is, or use a model that has a Transformer.",
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
        raise ModelFolderError(f"{path / 'modules.json'} must be a list of modules.", hint="Fetch the model again.")
    if len(listed) > MOST_MODULES:
        raise ModelFolderError(f"{path / 'modules.json'} names {len(listed)} modules; {MOST_MODULES} are the most.")
    rows = [JsonObject(row, path / "modules.json") for row in listed]
    kinds = [_kind(row.text("type", "")) for row in rows]
    if kinds[0] not in FIRST:
        raise ModelFolderError(
            f"The first module of {path} is {kinds[0]!r}.",
            hint=f"Only models that start with one of these load: {', '.join(FIRST)}.",
        )
    folders = [_inside(path, row.text("path", "")) for row in rows]
    modules = tuple(
        _module(kind, folder) for kind, folder in zip(kinds[1:], folders[1:], strict=True) if kind not in IGNORED
    )
    if kinds[0] == "StaticEmbedding":
        if not all(isinstance(module, Normalize) for module in modules):
            raise ModelFolderError(f"{path} is a static model with {kinds[1:]}.", hint="Only Normalize may follow.")
        return _described(path, folders[0], (StaticEmbedding(), *modules))
    if [index for index, module in enumerate(modules) if isinstance(module, (Pooling, WK))] != [0]:
        raise ModelFolderError(f"{path} must have exactly one Pooling module, right after its Transformer.")
    return _described(path, folders[0], modules)


def _kind(name: str) -> str:
    """The module's class; code that a model brings along is never run, so its own classes are unknown here."""
    package, _, kind = name.rpartition(".")
    return kind if package.partition(".")[0] in ("sentence_transformers", "") else name


def _plain(path: Path) -> ModelFolder:
    if not (path / "config.json").is_file():
        raise ModelFolderError(
            f"{path} holds neither modules.json nor config.json.", hint="Give the folder of a saved model."
        )
    return ModelFolder(
        path=path,
        backbone=path,
        config=read_json(path / "config.json"),
        is_sentence_model=False,
        max_tokens=_tokenizer_limit(path),
    )


def _described(path: Path, backbone: Path, modules: tuple[Module, ...]) -> ModelFolder:
    config = read_json(backbone / "config.json")
    if not config and not isinstance(modules[0], StaticEmbedding):
        raise ModelFolderError(f"{backbone / 'config.json'} is missing.", hint="Fetch the model again.")
    files = [file for pattern in LENGTH_FILES for file in sorted(backbone.glob(pattern))]
    limits = _read(files[0]) if files else JsonObject({}, backbone)
    _check_loading(limits)
    settings = _read(path / "config_sentence_transformers.json")
    prompts = _prompts(settings)
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
        max_tokens=limits.integer("max_seq_length", None) or _tokenizer_limit(backbone),
        lower_case=limits.flag("do_lower_case", False),
        prompts=prompts,
        default_prompt=default_prompt,
        similarity=similarity,
        truncate_dim=settings.integer("truncate_dim", None),
    )


def _read(path: Path) -> JsonObject:
    return JsonObject(read_json(path), path)


def _prompts(settings: JsonObject) -> dict[str, str]:
    given = settings.inner("prompts", {})
    return {name: given.text(name, None) or "" for name in given.content}


def _check_loading(limits: JsonObject) -> None:
    """Refuse settings that would make sentence-transformers load or read another backbone than the folder's own."""
    for key, default in DEFAULT_TRANSFORMER.items():
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


def _tokenizer_limit(folder: Path) -> int | None:
    """What the tokenizer says; a number beyond all texts, or none, is how it says nothing."""
    limit = read_json(folder / "tokenizer_config.json").get("model_max_length")
    if limit is None or (isinstance(limit, (int, float)) and not isinstance(limit, bool) and limit >= 1e9):
        return None
    if isinstance(limit, float) and limit.is_integer():
        limit = int(limit)
    return int(JsonObject({"model_max_length": limit}, folder / "tokenizer_config.json").integer("model_max_length"))


def _inside(root: Path, relative: str) -> Path:
    # By name only: a link that the owner of the folder laid inside it is theirs to lay.
    if Path(relative).is_absolute() or os.path.normpath(relative).split(os.sep)[0] == os.pardir:
        raise ModelFolderError(
            f"{root / 'modules.json'} names the path {relative!r}, which leaves the folder.",
            hint="Do not load this model unless you trust it; correct the path by hand.",
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
            f"{folder / 'config.json'} must name each of its pooling modes once, and names {modes or 'none'}.",
            hint="Fetch the model again.",
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
            f"{folder / 'config.json'}: the activation {package}.{activation} is not torch's own, and is never run."
        )
    return Dense(folder, n_in, n_out, config.flag("bias", True), activation)


def _layer_norm(folder: Path) -> LayerNorm:
    return LayerNorm(folder, _read(folder / "config.json").integer("dimension"))


MODULES: dict[str, Callable[[Path], Module]] = {
    "Pooling": _pooling,
    WK_TYPE: _wk,
    "Dense": _dense,
    "LayerNorm": _layer_norm,
    "Normalize": lambda folder: Normalize(),
}
FIRST = "Transformer", "StaticEmbedding"
IGNORED = ("Dropout",)  # does nothing after training


def _module(kind: str, folder: Path) -> Module:
    if kind not in MODULES:
        raise UnknownNameError(f"module type in {folder}:", kind, [*MODULES, *IGNORED, *FIRST])
    return MODULES[kind](folder)


def refuse_own_code(config: Mapping[str, Any], *names: str, file: object) -> None:
    """Refuse a config whose ``auto_map`` gives code of the folder's own for one of ``names``.

    To go on without that code would give other vectors than the model's maker means.
    """
    code = config.get("auto_map")
    if code is None or (isinstance(code, dict) and not any(code.get(name) for name in names)):
        return
    raise ModelFolderError(
        f"{file} names its own code (auto_map: {shown(code)}), which is never run.",
        hint="Use a model that needs none; or, should it be right without it, take auto_map out of that file.",
    )
