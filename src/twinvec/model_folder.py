"""Model folders in the sentence-transformers layout, as data. Reads both generations, writes the old one.

A folder says which backbone it holds (``config.json``), which modules turn its states into a vector
(``modules.json``), and how texts are prepared (prompts, length, case). No weight is read here.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any

from twinvec.errors import InputError, ModelFolderError, TwinvecError, UnknownNameError
from twinvec.file_states import FileStates
from twinvec.files import read_any_json, read_json
from twinvec.vectors import SIMILARITIES
from twinvec.wk import WKSettings

__all__ = [
    "WK",
    "Dense",
    "LayerNorm",
    "ModelFolder",
    "Module",
    "Normalize",
    "Pooling",
    "StaticEmbedding",
    "model_files",
    "read_model_folder",
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
POOLING_MODES = tuple(POOLING_KEYS.values())
READOUTS = (*POOLING_MODES, "wk")

WK_TYPE = "twinvec.WK"  # in modules.json; sentence-transformers knows no such module, and refuses the folder

VECTOR = "sentence_embedding"  # what a Dense layer reads and writes

MODEL_FILES = ("*.safetensors", "*.json", "*.bin", "*.txt", "*.model")

# The length file took the architecture's name in early releases.
LENGTH_FILES = "sentence_bert_config.json", "sentence_*_config.json"


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


def read_model_folder(path: Path) -> ModelFolder:
    """Read a sentence-transformers folder, or a plain Hugging Face folder (then with mean pooling)."""
    try:
        listed = read_any_json(path / "modules.json")
        return _plain(path) if listed is None else _sentence_model(path, listed)
    except (TypeError, ValueError, AttributeError) as error:
        if isinstance(error, TwinvecError):
            raise
        raise ModelFolderError(
            f"A config in {path} holds a value of the wrong kind: {error}.", hint="Fetch the model again."
        ) from error


def with_readout(folder: ModelFolder, readout: str | WKSettings) -> ModelFolder:
    """The same model, read out by a pooling of this name, by "wk", or by SBERT-WK with these settings."""
    if folder.is_static:
        raise InputError(
            f"{folder.path} is a static model: its vectors are the mean of its tokens' vectors, and it has no layers.",
            hint="Leave the readout as it is, or use a model that has a Transformer.",
        )
    if not isinstance(readout, WKSettings) and readout not in READOUTS:
        raise UnknownNameError("readout", readout, READOUTS)
    include_prompt = folder.readout.include_prompt
    chosen: Module
    if isinstance(readout, str) and readout != "wk":
        chosen = Pooling((readout,), include_prompt)
    else:
        chosen = WK(WKSettings() if isinstance(readout, str) else readout, include_prompt)
    return replace(folder, modules=(chosen, *folder.modules[1:]))


def model_files(path: Path) -> list[Path]:
    """The files of a folder that a model's vectors depend on: weights, configs, tokenizer; sorted."""
    inner = {file for pattern in MODEL_FILES for depth in ("", "*/") for file in path.glob(depth + pattern)}
    return sorted(file for file in inner if file.parent.name != "training")


def _sentence_model(path: Path, listed: object) -> ModelFolder:
    if not isinstance(listed, list) or not all(isinstance(row, dict) for row in listed) or not listed:
        raise ModelFolderError(f"{path / 'modules.json'} must be a list of modules.", hint="Fetch the model again.")
    kinds = [_kind(str(row.get("type", ""))) for row in listed]
    if kinds[0] not in FIRST:
        raise ModelFolderError(
            f"The first module of {path} is {kinds[0]!r}.",
            hint=f"Only models that start with one of these load: {', '.join(FIRST)}.",
        )
    folders = [_inside(path, str(row.get("path", ""))) for row in listed]
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
    limits = next((read_json(file) for pattern in LENGTH_FILES for file in sorted(backbone.glob(pattern))), {})
    settings = read_json(path / "config_sentence_transformers.json")
    prompts = {str(name): str(text or "") for name, text in (settings.get("prompts") or {}).items()}
    default_prompt = settings.get("default_prompt_name")
    if default_prompt is not None and default_prompt not in prompts:
        raise ModelFolderError(f"{path}: the default prompt {default_prompt!r} is not among its prompts {prompts}.")
    similarity = settings.get("similarity_fn_name") or "cosine"
    if similarity not in SIMILARITIES:
        raise UnknownNameError("similarity in config_sentence_transformers.json", similarity, SIMILARITIES)
    return ModelFolder(
        path=path,
        backbone=backbone,
        config=config,
        modules=modules,
        max_tokens=int(limits.get("max_seq_length") or 0) or _tokenizer_limit(backbone),
        lower_case=bool(limits.get("do_lower_case", False)),
        prompts=prompts,
        default_prompt=default_prompt,
        similarity=similarity,
        truncate_dim=int(settings.get("truncate_dim") or 0) or None,
    )


def _tokenizer_limit(folder: Path) -> int | None:
    limit = read_json(folder / "tokenizer_config.json").get("model_max_length")
    return int(limit) if isinstance(limit, (int, float)) and limit < 1e9 else None


def _inside(root: Path, relative: str) -> Path:
    # By name only: a link that the owner of the folder laid inside it is theirs to lay.
    if Path(relative).is_absolute() or os.path.normpath(relative).startswith(".."):
        raise ModelFolderError(
            f"{root / 'modules.json'} names the path {relative!r}, which leaves the folder.",
            hint="Do not load this model unless you trust it; correct the path by hand.",
        )
    return root / relative if relative else root


def _pooling(folder: Path) -> Pooling:
    config = read_json(folder / "config.json")
    named = config.get("pooling_mode")
    if named is None:
        modes = tuple(mode for key, mode in POOLING_KEYS.items() if config.get(key))
    else:
        modes = (named,) if isinstance(named, str) else tuple(named)
    for mode in modes:
        if mode not in POOLING_MODES:
            raise UnknownNameError(f"pooling mode in {folder / 'config.json'}:", mode, POOLING_MODES)
    if not modes:
        raise ModelFolderError(f"{folder / 'config.json'} names no pooling mode.", hint="Fetch the model again.")
    return Pooling(modes, bool(config.get("include_prompt", True)))


def _wk(folder: Path) -> WK:
    config = read_json(folder / "config.json")
    include_prompt = bool(config.pop("include_prompt", True))
    known = [each.name for each in fields(WKSettings)]
    for name in config:
        if name not in known:
            raise UnknownNameError(f"setting in {folder / 'config.json'}:", name, [*known, "include_prompt"])
    try:
        return WK(WKSettings(**config), include_prompt)
    except (InputError, UnknownNameError) as error:
        raise ModelFolderError(f"{folder / 'config.json'}: {error}") from error


def _dense(folder: Path) -> Dense:
    config = read_json(folder / "config.json")
    try:
        n_in, n_out = int(config["in_features"]), int(config["out_features"])
    except KeyError as error:
        raise ModelFolderError(f"{folder / 'config.json'} lacks {error.args[0]!r}.") from error
    for key, usual in (("use_residual", False), ("module_input_name", VECTOR), ("module_output_name", VECTOR)):
        if config.get(key, usual) not in (usual, None):
            raise ModelFolderError(f"{folder / 'config.json'}: {key}={config[key]!r} is not supported.")
    activation = str(config.get("activation_function", "torch.nn.modules.activation.Tanh")).rsplit(".", 1)[-1]
    return Dense(folder, n_in, n_out, bool(config.get("bias", True)), activation)


def _layer_norm(folder: Path) -> LayerNorm:
    config = read_json(folder / "config.json")
    if "dimension" not in config:
        raise ModelFolderError(f"{folder / 'config.json'} lacks 'dimension'.")
    return LayerNorm(folder, int(config["dimension"]))


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
