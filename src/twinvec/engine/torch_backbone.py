"""A folder's backbone as a transformers module, with no parameter left at a random start (extra ``train``)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import Any

from safetensors import SafetensorError

from twinvec.engine.weights import is_packed, read_weights, weight_files
from twinvec.errors import ModelFolderError, WeightsError
from twinvec.extras import require
from twinvec.model_folder import ModelFolder

__all__ = ["load_backbone", "quiet"]


def load_backbone(
    folder: ModelFolder, *, feature: str, trust_pickle: bool = False, dropout: float | None = None
) -> Any:  # noqa: ANN401 - a transformers model
    """The backbone in float32, checked. ``dropout`` replaces every dropout rate of its config."""
    require("torch", extra="train", feature=feature)
    transformers = require("transformers", extra="train", feature=feature)
    if not trust_pickle and any(file.suffix == ".bin" for file in weight_files(folder.backbone)):
        raise WeightsError(
            f"{folder.backbone} holds its weights as a pickle, which can run code when it is loaded.",
            hint="If you trust its origin, load it with trust_pickle=True.",
        )
    try:
        config = transformers.AutoConfig.from_pretrained(folder.backbone, local_files_only=True)
        if dropout is not None:
            for name in dropout_rates(config.to_dict()):
                setattr(config, name, dropout)
        with quiet(transformers.utils.logging):
            backbone, missing = _load(transformers, folder.backbone, config)
    except (ValueError, OSError, KeyError, RuntimeError, ImportError, SafetensorError) as error:
        raise ModelFolderError(f"transformers cannot load {folder.backbone}: {error!s:.300}") from error
    _check(backbone, missing, folder.backbone)
    return backbone.float()


def _load(transformers: Any, folder: Path, config: Any) -> tuple[Any, Iterable[str]]:  # noqa: ANN401
    """The model, and the names of parameters that the folder does not have."""
    if not is_packed(folder):
        backbone, report = transformers.AutoModel.from_pretrained(
            folder, config=config, local_files_only=True, output_loading_info=True
        )
        return backbone, report["missing_keys"]
    torch = require("torch", extra="train", feature="Training")
    backbone = transformers.AutoModel.from_config(config)
    weights = {name: torch.tensor(values) for name, values in read_weights(folder).items()}
    return backbone, backbone.load_state_dict(weights, strict=False).missing_keys


@contextmanager
def quiet(log: ModuleType) -> Iterator[None]:
    """No bar and no report of missing parameters for a moment: what matters of them is checked below."""
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
    """The keys of a config that are dropout rates.

    >>> dropout_rates({"hidden_dropout_prob": 0.1, "dropout": 0.1, "classifier_dropout": None, "embd_pdrop": 0.1})
    ['hidden_dropout_prob', 'dropout', 'embd_pdrop']
    """
    return [name for name, value in config.items() if "drop" in name and isinstance(value, float)]


def _check(backbone: Any, missing: Iterable[str], source: Path) -> None:  # noqa: ANN401
    """Refuse parameters that were left at a random start, and ones that are not finite."""
    absent = list(missing)
    unset = sorted(name for name in absent if "pooler" not in name)  # a head that no readout reads
    if unset:
        raise WeightsError(f"{source} lacks {len(unset)} parameters: {', '.join(unset[:5])}.")
    if absent:
        backbone.pooler = None  # else it would be saved as if it meant something
    for name, parameter in backbone.named_parameters():
        if not parameter.isfinite().all():
            raise WeightsError(f"{source}: {name} holds NaN or infinite values.")
