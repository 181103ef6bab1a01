"""A model's name to its folder. Offline first: what is on this machine is used without asking any network."""

from __future__ import annotations

import os
from pathlib import Path

from twinvec.errors import ModelNotFoundError

__all__ = ["find_model"]

# What inference needs. Other formats of the same weights (onnx, tf, flax, rust) are left on the hub.
WANTED = ("*.json", "*.txt", "*.safetensors", "*.md")
DEFAULT_OWNER = "sentence-transformers"


def find_model(name: str | os.PathLike[str], *, revision: str | None = None, offline: bool = False) -> Path:
    """The folder of a model: a path, a cached hub model, or one fetched from the hub, tried in this order.

    A bare name such as ``all-MiniLM-L6-v2`` means ``sentence-transformers/all-MiniLM-L6-v2``, as users know it.
    """
    path = Path(name).expanduser()
    if path.is_dir():
        return path
    text = str(name)
    if path.exists() or path.is_absolute() or text.startswith((".", "~")) or text.count("/") > 1:
        raise ModelNotFoundError(f"There is no model folder at {text!r}.", hint="Check the path.")
    repository = text if "/" in text else f"{DEFAULT_OWNER}/{text}"
    return _cached(repository, revision) or _fetched(repository, revision, offline=offline)


def _cached(repository: str, revision: str | None) -> Path | None:
    from huggingface_hub import snapshot_download
    from huggingface_hub.errors import HFValidationError, LocalEntryNotFoundError

    try:
        folder = Path(snapshot_download(repository, revision=revision, local_files_only=True))
    except (LocalEntryNotFoundError, HFValidationError):
        return None
    # A cache may hold a part only, for instance a config that another tool looked at.
    return folder if any(folder.rglob("*.safetensors")) or any(folder.rglob("pytorch_model*.bin")) else None


def _fetched(repository: str, revision: str | None, *, offline: bool) -> Path:
    from huggingface_hub import constants, snapshot_download
    from huggingface_hub.errors import HfHubHTTPError, HFValidationError, LocalEntryNotFoundError

    problem = f"No model {repository!r} on this machine: neither a folder of that name nor in the hub's cache"
    if offline or constants.HF_HUB_OFFLINE:
        raise ModelNotFoundError(
            f"{problem}, and offline use was asked for.",
            hint="Fetch it once with a network, or give a folder.",
        )
    try:
        return Path(snapshot_download(repository, revision=revision, allow_patterns=list(WANTED)))
    except HFValidationError as error:
        raise ModelNotFoundError(f"{problem}; and the hub has no such names.", hint="Check the spelling.") from error
    except (HfHubHTTPError, LocalEntryNotFoundError, OSError) as error:
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise ModelNotFoundError(
            f"{problem}; and the hub did not give it ({reason}).",
            hint="Check the spelling and the network, or give the path of a model folder.",
        ) from error
