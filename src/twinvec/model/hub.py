"""From a model's name to its folder: shipped models, local folders, the hub's cache, and last the hub."""

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
    """The folder of a model of the package; None for every other name."""
    if name not in SHIPPED:
        return None
    if not (FOLDER / name).is_dir():  # also where the package is run from a zip: weights are mapped from real files
        raise ModelNotFoundError(
            f"The model {name!r} comes with Twinvec, but there is no folder {FOLDER / name}.",
            hint="Install Twinvec again, unpacked.",
        )
    return FOLDER / name


# What inference needs. Other formats of the same weights (onnx, tf, flax, rust) are left on the hub.
WANTED = ("*.json", "*.txt", "*.safetensors", "*.md")
PICKLES = ("pytorch_model*.bin", "*/pytorch_model*.bin")
DEFAULT_OWNER = "sentence-transformers"


def find_model(
    name: str | os.PathLike[str], *, revision: str | None = None, offline: bool = False, trust_pickle: bool = False
) -> Path:
    """The folder of a model: a path, one of the package's own, a cached hub model, or one fetched from the hub.

    They are tried in this order. On the hub, a bare name such as ``all-MiniLM-L6-v2`` means
    ``sentence-transformers/all-MiniLM-L6-v2``, as users know it.
    """
    text = str(name)
    if not text:
        raise ModelNotFoundError("The name of the model is empty.", hint="Give a folder or a name.")
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
    """The name as a path; one that no system can have is no model's either."""
    try:
        path = Path(name).expanduser()
        path.stat()
    except (FileNotFoundError, NotADirectoryError):
        pass
    except (OSError, ValueError, RuntimeError) as error:  # too long, NUL, no rights, a user that is not there
        raise ModelNotFoundError(
            f"There is no model folder at {str(name)[:200]!r}: {getattr(error, 'strerror', None) or error}.",
            hint="Check the path.",
        ) from error
    return path


def _cached(repository: str, revision: str | None) -> Path | None:
    """The cached folder, if all that a model needs is there; which tool put it there does not matter.

    A folder without modules.json counts only where the hub is known to have none: another tool may have cached
    just the backbone of a sentence model, whose vectors without its readout would be wrong.
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
    found = next((Path(file).parent for file in (modules, config) if isinstance(file, str)), None)
    return found if found and _is_whole(found) else None


def _is_whole(folder: Path) -> bool:
    """Whether weights and the configs of all modules are there: a fetch may have been interrupted."""
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

    problem = f"No whole model {repository!r} on this machine: neither a folder of that name nor in the hub's cache"
    if offline or constants.HF_HUB_OFFLINE:
        raise ModelNotFoundError(
            f"{problem}, and offline use was asked for.",
            hint="Fetch it once with a network, or give a folder.",
        )
    try:
        folder = Path(snapshot_download(repository, revision=revision, allow_patterns=[*WANTED, *also]))
        _note_missing_modules(repository, revision, folder)
        return folder
    except HFValidationError as error:
        raise ModelNotFoundError(f"{problem}; and the hub has no such names.", hint="Check the spelling.") from error
    except (HfHubHTTPError, LocalEntryNotFoundError, OSError) as error:
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise ModelNotFoundError(
            f"{problem}; and the hub did not give it ({reason}).",
            hint="Check the spelling and the network, or give the path of a model folder.",
        ) from error


def _note_missing_modules(repository: str, revision: str | None, folder: Path) -> None:
    """Let the cache remember that this model has no modules.json, so that it is not asked for again."""
    from huggingface_hub import hf_hub_download
    from huggingface_hub.errors import EntryNotFoundError

    if not (folder / "modules.json").is_file():
        with suppress(EntryNotFoundError):
            hf_hub_download(repository, "modules.json", revision=revision)
