"""Find the folder of a model: local folders, shipped models, the hub's cache, and the hub."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

from twinvec.choices import SHIPPED
from twinvec.errors import ModelNotFoundError
from twinvec.files import read_any_json

__all__ = ["find_model", "shipped_folder"]

FOLDER = Path(__file__).parents[1] / "models"


def shipped_folder(name: str) -> Path | None:
    """The folder of a model that ships with the package; None for other names."""
    if name not in SHIPPED:
        return None
    if not (FOLDER / name).is_dir():  # also if the package runs from a zip: weights are mapped from real files
        raise ModelNotFoundError(
            f"The model {name!r} comes with Twinvec, but there is no folder {FOLDER / name}.",
            hint="Install Twinvec again, unpacked.",
        )
    return FOLDER / name


# Files that inference needs; other formats of the weights (onnx, tf, flax, rust) are not downloaded.
WANTED = ("*.json", "*.txt", "*.safetensors", "*.md")
PICKLES = ("pytorch_model*.bin", "*/pytorch_model*.bin")
DEFAULT_OWNER = "sentence-transformers"


def find_model(
    name: str | os.PathLike[str], *, revision: str | None = None, offline: bool = False, trust_pickle: bool = False
) -> Path:
    """The folder of a model: a path, a shipped model, a cached hub model, or a download, tried in this order.

    On the hub, a bare name such as ``all-MiniLM-L6-v2`` means ``sentence-transformers/all-MiniLM-L6-v2``.
    """
    text = str(name)
    if not text:
        raise ModelNotFoundError("The model name is empty.", hint="Pass a name or a folder.")
    if text.startswith(("http://", "https://")):
        raise ModelNotFoundError(
            f"{text!r:.200} is the address of a server, but this needs a model on this machine.",
            hint="Pass a model name or folder.",
        )
    path = _path(name)
    if path.is_dir():
        return path
    if shipped := shipped_folder(text):
        return shipped
    if path.exists() or path.is_absolute() or text.startswith((".", "~")) or text.count("/") > 1:
        raise ModelNotFoundError(f"There is no model folder at {text!r}.", hint="Check the path.")
    repository = text if "/" in text else f"{DEFAULT_OWNER}/{text}"
    return _cached(repository, revision) or _fetched(
        repository, revision, PICKLES if trust_pickle else (), offline=offline
    )


def _path(name: str | os.PathLike[str]) -> Path:
    """The name as a path; raises ModelNotFoundError for a path that the system does not allow."""
    try:
        path = Path(name).expanduser()
        path.stat()
    except (FileNotFoundError, NotADirectoryError):
        pass
    except (OSError, ValueError, RuntimeError) as error:  # too long, NUL, no permission, unknown user
        raise ModelNotFoundError(
            f"There is no model folder at {str(name)[:200]!r}: {getattr(error, 'strerror', None) or error}.",
            hint="Check the path.",
        ) from error
    return path


def _cached(repository: str, revision: str | None) -> Path | None:
    """The cached folder if it is complete, whichever tool downloaded it.

    A folder without modules.json counts only if the hub is known to have none: another tool may have cached just the
    backbone of a sentence model, which would give wrong vectors without its readout.
    """
    from huggingface_hub import try_to_load_from_cache
    from huggingface_hub.errors import HFValidationError

    try:
        config = try_to_load_from_cache(repository, "config.json", revision=revision)
        modules = try_to_load_from_cache(repository, "modules.json", revision=revision)
    except HFValidationError:
        return None
    if modules is None:
        return None
    folder = next((Path(file).parent for file in (modules, config) if isinstance(file, str)), None)
    return folder if folder and _is_whole(folder) else None


def _is_whole(folder: Path) -> bool:
    """Whether the weights and the configs of all modules exist: a download may have been interrupted."""
    modules = read_any_json(folder / "modules.json")
    rows = [row for row in modules if isinstance(row, dict)] if isinstance(modules, list) else []
    needed = [
        Path(str(row.get("path", ""))) / ("tokenizer.json" if kind.endswith("StaticEmbedding") else "config.json")
        for row in rows
        if not (kind := str(row.get("type"))).endswith("Normalize")
    ]
    has_weights = any(folder.rglob("*.safetensors")) or any(folder.rglob("pytorch_model*.bin"))
    return has_weights and all((folder / path).is_file() for path in needed)


def _fetched(repository: str, revision: str | None, also: tuple[str, ...], *, offline: bool) -> Path:
    from huggingface_hub import constants, snapshot_download
    from huggingface_hub.errors import HfHubHTTPError, HFValidationError, LocalEntryNotFoundError

    problem = f"Model {repository!r} is not on this machine, neither as a folder nor complete in the hub's cache"
    if offline or constants.HF_HUB_OFFLINE:
        raise ModelNotFoundError(
            f"{problem}, and offline mode is on.", hint="Download it once with a network, or pass a folder."
        )
    try:
        folder = Path(snapshot_download(repository, revision=revision, allow_patterns=[*WANTED, *also]))
        _note_missing_modules(repository, revision, folder)
        return folder
    except HFValidationError as error:
        raise ModelNotFoundError(
            f"{problem}, and it is not a valid name on the hub.", hint="Check the spelling."
        ) from error
    except (HfHubHTTPError, LocalEntryNotFoundError, OSError) as error:
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise ModelNotFoundError(
            f"{problem}, and the hub did not provide it ({reason}).",
            hint="Check the spelling and the network, or pass a model folder.",
        ) from error


def _note_missing_modules(repository: str, revision: str | None, folder: Path) -> None:
    """Record in the cache that this model has no modules.json, so that it is not requested again."""
    from huggingface_hub import hf_hub_download
    from huggingface_hub.errors import EntryNotFoundError

    if not (folder / "modules.json").is_file():
        with suppress(EntryNotFoundError):
            hf_hub_download(repository, "modules.json", revision=revision)
