"""The identity of a model: digests of its files and settings, and detection of changed files."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from itertools import islice
from pathlib import Path, PurePosixPath
from typing import Any

from twinvec.errors import InputError, ModelFolderError
from twinvec.files import digest_files, read_any_json
from twinvec.wk import WKSettings

__all__ = [
    "DECIDING",
    "FileStates",
    "deciding_settings",
    "engine_versions",
    "file_states",
    "model_digest",
    "model_files",
    "refuse_settings",
    "space_digest",
    "vectors_digest",
]

# The arguments of ``load`` that affect vectors, with their defaults. The others (threads, offline, ...) do not.
DECIDING: Mapping[str, object] = {
    "precision": "float32",
    "device": "cpu",
    "runtime": "auto",
    "deterministic": False,
    "long": "cut",
    "truncate_dim": None,
    "readout": None,
}


def deciding_settings(arguments: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments of ``load`` that affect vectors, filled up with defaults, as JSON.

    >>> deciding_settings({"precision": "int8", "threads": 2, "long": "warn"})["precision"]
    'int8'
    """
    chosen = {name: arguments.get(name, default) for name, default in DECIDING.items()}
    chosen["long"] = "chunk" if chosen["long"] == "chunk" else "cut"  # all other policies read the same tokens
    if isinstance(chosen["readout"], WKSettings):
        chosen["readout"] = {"wk": asdict(chosen["readout"])}
    return chosen


def refuse_settings(settings: Mapping[str, Any], system: str) -> None:
    """Refuse engine settings for other systems: they have no effect there, and the report would be wrong."""
    chosen = deciding_settings(settings)
    names = [name for name, default in DECIDING.items() if chosen[name] != default]
    names += [name for name in ("prompt", "prompt_name") if settings.get(name) is not None]
    names += ["unknown"] if settings.get("unknown") == "error" else []  # it could not keep that promise
    if names:
        options = ", ".join(f"--{name.replace('_', '-')}" for name in names)
        raise InputError(
            f"{options} can be set for models that Twinvec runs, not for {system}.",
            hint="Remove it, or configure the other system instead.",
        )


def vectors_digest(content: str, settings: Mapping[str, Any]) -> str:
    """A digest of a model's content and of the settings that affect its vectors."""
    return hashlib.sha256(json.dumps({"content": content, "settings": settings}, sort_keys=True).encode()).hexdigest()


def space_digest(content: str, readout: object, width: int) -> str:
    """A digest of a model's vector space: vectors with the same digest can be compared.

    Precision and versions are left out, as they change vectors only slightly.
    """
    parts = {"files": content, "readout": readout, "width": width}
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()


@dataclass(frozen=True, slots=True)
class FileStates:
    """Files with their device, inode, size and time. Files added later are ignored."""

    states: Mapping[Path, tuple[int, ...] | None]

    def check(self) -> None:
        """Raise ModelFolderError if a file was replaced, changed or removed."""
        for file, state in self.states.items():
            if _state(file) != state:
                raise ModelFolderError(
                    f"{file} was changed after the model was opened.",
                    hint="Load the model again, so that all files belong together.",
                )


def file_states(files: Iterable[Path]) -> FileStates:
    """The current states of files."""
    return FileStates({file: _state(file) for file in files})


def _state(file: Path) -> tuple[int, ...] | None:
    try:
        status = os.stat(file)
    except OSError:
        return None
    return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns


ENGINE_PACKAGES = ("twinvec", "onnxruntime", "openvino", "tokenizers", "torch", "transformers")

# Files that cannot affect vectors. Everything else counts.
DOCUMENTS = ("readme", "license")  # with any extension
DOCUMENT_ENDINGS = (".md", ".log", ".png", ".jpg", ".jpeg", ".gif", ".svg", ".webp")
OTHER_EXPORTS = (".onnx", ".h5", ".msgpack", ".ot")  # weights for other programs; never opened here
RECORD = "training"  # folder in models that we trained: recipe, log, curve
MAX_FILES = 10_000


def model_digest(folder: Path) -> str:
    """The identity of a model: a sha256 over the names, sizes and contents of all files that can affect its vectors."""
    files = model_files(folder)
    if not files:
        raise ModelFolderError(f"{folder} contains no model files.", hint="Pass the folder of a model.")
    state = hashlib.sha256()
    for file in files:
        name = file.relative_to(folder).as_posix()
        state.update(json.dumps([name, file.stat().st_size, digest_files([file])]).encode() + b"\n")
    return state.hexdigest()


def model_files(folder: Path) -> list[Path]:
    """All files in a folder, at any depth, except those that cannot affect vectors; sorted.

    Excluded are documents, logs, images, exports that are never opened here, hidden files, and the training record.
    Excluding known files is safe, including known files is not: an unexpected kind of file changes the identity, so
    two different models never share one. Folders that ``modules.json`` names and files that a weights index names
    always count. Links are followed, except in a cycle.
    """
    try:
        files = list(islice(_walk(folder, "", _module_folders(folder), ()), MAX_FILES + 1))
    except OSError as error:
        raise ModelFolderError(f"{folder} cannot be read: {error.strerror or error}.") from error
    if len(files) > MAX_FILES:
        raise ModelFolderError(
            f"{folder} contains more than {MAX_FILES:,} files.", hint="Keep the model in a separate folder."
        )
    return sorted(files)


def _walk(folder: Path, inner: str, modules: frozenset[str], above: tuple[str, ...]) -> Iterator[Path]:
    """Yield the files that count; ``inner`` is the path within the model, ``above`` are the parent folders."""
    real = os.path.realpath(folder)
    if real in above:
        return
    names = sorted(os.listdir(folder))
    shards = {shard for name in names if name.endswith(".index.json") for shard in _shards(folder / name)}
    for name in names:
        path = folder / name
        if path.is_dir():
            if not _is_left_out(f"{inner}{name}", modules):
                yield from _walk(path, f"{inner}{name}/", modules, (*above, real))
        elif path.is_file() and (name in shards or not _is_document(name)):
            yield path


def _is_left_out(inner: str, modules: frozenset[str]) -> bool:
    if any(f"{module}/".startswith(f"{inner}/") or inner.startswith(f"{module}/") for module in modules):
        return False
    return inner == RECORD or PurePosixPath(inner).name.startswith(".")


def _is_document(name: str) -> bool:
    lower = name.lower()
    return (
        lower.startswith(".")
        or lower.partition(".")[0] in DOCUMENTS
        or lower.endswith((*DOCUMENT_ENDINGS, *OTHER_EXPORTS))
    )


def _module_folders(folder: Path) -> frozenset[str]:
    """The inner folders that modules.json names; empty if it cannot be read."""
    rows = _content(folder / "modules.json")
    paths = [row.get("path") for row in rows if isinstance(row, dict)] if isinstance(rows, list) else []
    inner = {os.path.normpath(path) for path in paths if isinstance(path, str) and path}
    return frozenset(Path(path).as_posix() for path in inner) - {"."}


def _shards(index: Path) -> set[str]:
    content = _content(index)
    weight_map = content.get("weight_map") if isinstance(content, dict) else None
    return {name for name in weight_map.values() if isinstance(name, str)} if isinstance(weight_map, dict) else set()


def _content(path: Path) -> Any:  # noqa: ANN401 - any JSON value
    with suppress(ModelFolderError):
        return read_any_json(path)
    return None


def engine_versions() -> dict[str, str]:
    """Versions of the installed packages that compute vectors."""
    return dict(_versions())


@cache
def _versions() -> tuple[tuple[str, str], ...]:
    versions = []
    for package in ENGINE_PACKAGES:
        with suppress(PackageNotFoundError):
            versions.append((package, version(package)))
    return tuple(versions)
