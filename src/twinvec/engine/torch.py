"""The torch runtime, for architectures that the engine does not build (extra ``train``)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

from twinvec.choices import Device
from twinvec.engine.config import MODEL_CODE, is_supported
from twinvec.engine.model import build_readout
from twinvec.engine.readout import readout_width
from twinvec.engine.runtimes import open_session
from twinvec.engine.weights import MappedFile, check_unchanged, is_packed, read_weights, weight_files
from twinvec.errors import DeviceError, ModelFolderError, TwinvecError, WeightsError
from twinvec.extras import require
from twinvec.json_checks import JsonObject
from twinvec.model.folder import ModelFolder, Pooling, refuse_own_code
from twinvec.types import TokenBatch, Vectors

__all__ = ["TorchRuntime", "load_backbone", "longest_input", "quiet"]

# Limits of sizes, under the names of all architectures; larger modules would not fit in memory.
SIZES = (
    (512, ("num_hidden_layers", "n_layers", "n_layer", "num_layers", "encoder_layers", "num_hidden_groups")),
    (1 << 16, ("num_attention_heads", "n_heads", "hidden_size", "d_model", "inner_group_num")),
)


def load_backbone(
    folder: ModelFolder, *, feature: str, trust_pickle: bool = False, dropout: float | None = None
) -> Any:  # noqa: ANN401 - a transformers model
    """Load a backbone in float32 and check it. ``dropout`` replaces all dropout rates of its config.

    Custom code of a folder is never run: the class of transformers is used if it has one, else this raises an error.
    """
    torch = require("torch", extra="train", feature=feature)
    transformers = require("transformers", extra="train", feature=feature)
    config = JsonObject(folder.config, folder.backbone / "config.json")
    if is_supported(folder.config) or config.text("model_type", None) not in transformers.CONFIG_MAPPING:
        refuse_own_code(folder.config, *MODEL_CODE, file=config.source)
    _check_sizes(config)
    if not trust_pickle and any(file.suffix == ".bin" for file in weight_files(folder.backbone)):
        raise WeightsError(
            f"The weights in {folder.backbone} are a pickle, which can run code when it is loaded.",
            hint="If you trust its origin, load it with trust_pickle=True.",
        )
    try:
        settings = transformers.AutoConfig.from_pretrained(
            folder.backbone, local_files_only=True, trust_remote_code=False
        )
        if dropout is not None:
            for name in dropout_rates(settings.to_dict()):
                setattr(settings, name, dropout)
        with quiet(transformers.utils.logging):
            _check_room(torch, transformers, folder.backbone, settings)
            backbone, missing = _load(transformers, folder.backbone, settings)
    except TwinvecError:
        raise
    except Exception as error:  # transformers raises many classes for a bad config
        reason = f"{type(error).__name__}: {error}"
        raise ModelFolderError(f"transformers cannot load {folder.backbone}: {reason:.300}") from error
    _check(backbone, missing, folder.backbone)
    return backbone.float()


def _load(transformers: Any, folder: Path, config: Any) -> tuple[Any, Iterable[str]]:  # noqa: ANN401
    """The model, and the names of parameters missing from the folder."""
    if not is_packed(folder):
        backbone, report = transformers.AutoModel.from_pretrained(
            folder, config=config, local_files_only=True, trust_remote_code=False, output_loading_info=True
        )
        return backbone, report["missing_keys"]
    torch = require("torch", extra="train", feature="Training")
    backbone = transformers.AutoModel.from_config(config, trust_remote_code=False)
    prefix = f"{backbone.base_model_prefix}."  # in folders with a head
    weights = {name.removeprefix(prefix): torch.tensor(values) for name, values in read_weights(folder).items()}
    return backbone, backbone.load_state_dict(weights, strict=False).missing_keys


def _check_sizes(config: JsonObject) -> None:
    for most, keys in SIZES:
        for key in keys:
            if config.content.get(key) is not None:
                config.integer(key, least=0, most=most)


def _check_room(torch: Any, transformers: Any, folder: Path, config: Any) -> None:  # noqa: ANN401
    """Raise WeightsError, before allocating memory, if a config needs more parameters than the files can hold."""
    try:
        with torch.device("meta"):
            empty = transformers.AutoModel.from_config(config, trust_remote_code=False)
    except Exception:  # loading will report what is wrong
        return
    n_parameters = sum(parameter.numel() for parameter in empty.parameters())
    n_bytes = sum(file.stat().st_size for file in weight_files(folder) if file.is_file())
    if n_parameters > 2 * n_bytes:
        raise WeightsError(
            f"{folder / 'config.json'} requires {n_parameters:,} parameters, but the weights have {n_bytes:,} bytes.",
            hint="Config and weights do not match; download the model again.",
        )


def longest_input(backbone: Any) -> int | None:  # noqa: ANN401 - a transformers model
    """The largest number of tokens, special tokens included; RoBERTa-like models reserve rows of their table."""
    table = getattr(getattr(backbone, "embeddings", None), "position_embeddings", None)
    n_rows: int | None = getattr(backbone.config, "max_position_embeddings", None)
    padding = getattr(table, "padding_idx", None)
    return n_rows if n_rows is None or padding is None else n_rows - padding - 1


@contextmanager
def quiet(log: ModuleType) -> Iterator[None]:
    """Silence the progress bar and warnings of transformers; missing parameters are checked here instead."""
    level, has_bar = log.get_verbosity(), log.is_progress_bar_enabled()
    log.set_verbosity_error()
    log.disable_progress_bar()
    try:
        yield
    finally:
        log.set_verbosity(level)
        if has_bar:
            log.enable_progress_bar()


def dropout_rates(config: dict[str, Any]) -> list[str]:
    """The keys of a config that hold dropout rates.

    >>> dropout_rates({"hidden_dropout_prob": 0.1, "dropout": 0.1, "classifier_dropout": None, "embd_pdrop": 0.1})
    ['hidden_dropout_prob', 'dropout', 'embd_pdrop']
    """
    return [name for name, value in config.items() if "drop" in name and isinstance(value, float)]


def _check(backbone: Any, missing: Iterable[str], source: Path) -> None:  # noqa: ANN401
    """Raise WeightsError for parameters that are missing, so random, or not finite."""
    absent = list(missing)
    unset = sorted(name for name in absent if "pooler" not in name)  # a head that no readout uses
    if unset:
        raise WeightsError(f"{source} lacks {len(unset)} parameters: {', '.join(unset[:5])}.")
    if absent:
        backbone.pooler = None  # or its random weights would be saved
    for name, parameter in backbone.named_parameters():
        if not parameter.isfinite().all():
            raise WeightsError(f"{source}: {name} contains NaN or infinity.")


class TorchRuntime:
    """Runs a backbone in torch."""

    name = "torch"

    def __init__(self, folder: ModelFolder, *, device: Device = "cpu", trust_pickle: bool = False) -> None:
        self._torch = require("torch", extra="train", feature="runtime='torch'")
        if device == "cuda" and not self._torch.cuda.is_available():
            raise DeviceError("torch finds no CUDA device.", hint="Use device='cpu'.")
        # Opened before transformers maps the same files, to detect changes.
        files = [file for file in weight_files(folder.backbone) if file.is_file() and file.stat().st_size]
        self._files = [MappedFile.opened(file) for file in files]
        backbone = load_backbone(folder, feature="runtime='torch'", trust_pickle=trust_pickle)
        if backbone.config.is_encoder_decoder:
            backbone = backbone.get_encoder()
        self._device = device
        self._backbone: Any = backbone.to(device).eval()
        self.states_width = int(backbone.config.hidden_size)
        self.n_positions = longest_input(backbone)
        self.width = readout_width(folder.modules, self.states_width)
        self.n_vocabulary = int(backbone.get_input_embeddings().weight.shape[0])
        self.n_layers: int | None = getattr(backbone.config, "num_hidden_layers", None)
        if isinstance(folder.readout, Pooling):
            read = partial(read_weights, trust_pickle=trust_pickle)
            self._readout = open_session(build_readout(folder, self.states_width, read))

    def vectors(self, batch: TokenBatch) -> Vectors:
        """Sentence vectors of one padded batch, ``(batch, width)``."""
        states = self._run(batch).last_hidden_state.cpu().numpy()
        result: Vectors = self._readout.run(None, {"states": states, "pool_mask": batch.pool_mask})[0]
        return result

    def layers(self, batch: TokenBatch) -> Vectors:
        """States of all layers, ``(layers + 1, batch, tokens, width)``."""
        layers = self._run(batch).hidden_states
        # Some releases also return the states between the inner layers of ALBERT's groups.
        step = max(1, (len(layers) - 1) // (self.n_layers or len(layers)))
        return np.stack([states.cpu().numpy() for states in layers[::step]])

    def _run(self, batch: TokenBatch) -> Any:  # noqa: ANN401 - transformers' output
        check_unchanged(self._files)
        feed = {"input_ids": batch.ids, "attention_mask": batch.mask}
        with self._torch.inference_mode():
            tensors = {name: self._torch.from_numpy(array).to(self._device) for name, array in feed.items()}
            if getattr(self._backbone.config, "type_vocab_size", 0):
                # Passed explicitly: some releases read an uninitialized buffer otherwise.
                tensors["token_type_ids"] = self._torch.zeros_like(tensors["input_ids"])
            return self._backbone(**tensors, output_hidden_states=True, return_dict=True)
