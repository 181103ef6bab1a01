"""The identity of a model: its content and the settings that decide its vectors, and whether its files changed."""

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

# The arguments of ``load`` that decide vectors, with their defaults. All others (threads, offline, ...) do not.
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
    """Those of the arguments of ``load`` that decide vectors, and the defaults of all that are not given, as JSON.

    >>> deciding_settings({"precision": "int8", "threads": 2, "long": "warn"})["precision"]
    'int8'
    """
    chosen = {name: arguments.get(name, default) for name, default in DECIDING.items()}
    chosen["long"] = "chunk" if chosen["long"] == "chunk" else "cut"  # all policies but chunk read the same tokens
    if isinstance(chosen["readout"], WKSettings):
        chosen["readout"] = {"wk": asdict(chosen["readout"])}
    return chosen


def refuse_settings(settings: Mapping[str, Any], what: str) -> None:
    """Refuse settings of our engine for ``what`` it does not run: forgotten in silence, they would falsify a report."""
    chosen = deciding_settings(settings)
    prompts = [name for name in ("prompt", "prompt_name") if settings.get(name) is not None]
    given = [name for name, default in DECIDING.items() if chosen[name] != default]
    named = [f"--{name.replace('_', '-')}" for name in (*given, *prompts)]
    if named:
        raise InputError(
            f"{', '.join(named)} can be set for models that Twinvec runs, not for {what}.",
            hint="Leave it out.",
        )


def vectors_digest(content: str, settings: Mapping[str, Any]) -> str:
    """The identity of a model's vectors: of its content, and of the settings that decide them."""
    return hashlib.sha256(json.dumps({"content": content, "settings": settings}, sort_keys=True).encode()).hexdigest()


def space_digest(content: str, readout: object, width: int) -> str:
    """The identity of the space that a model's vectors lie in: those of one space may be compared with each other.

    Precision and versions are left out, as they move vectors only a little.
    """
    parts = {"files": content, "readout": readout, "width": width}
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()


@dataclass(frozen=True, slots=True)
class FileStates:
    """Files by path, and what the system said of each. Files that are added later do not matter."""

    states: Mapping[Path, tuple[int, ...] | None]

    def check(self) -> None:
        """Refuse to go on if any of the files has been replaced, changed or removed since."""
        for file, state in self.states.items():
            if _state(file) != state:
                raise ModelFolderError(
                    f"{file} was changed after the model was opened.",
                    hint="Load the model again: its files must all be of one model.",
                )


def file_states(files: Iterable[Path]) -> FileStates:
    """What these files are now."""
    return FileStates({file: _state(file) for file in files})


def _state(file: Path) -> tuple[int, ...] | None:
    try:
        found = os.stat(file)
    except OSError:
        return None
    return found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns


ENGINE_PACKAGES = ("twinvec", "onnxruntime", "openvino", "tokenizers", "torch", "transformers")

# What no vector depends on. Everything else counts.
DOCUMENTS = ("readme", "license")  # whatever their ending
DOCUMENT_ENDINGS = (".md", ".log", ".png", ".jpg", ".jpeg", ".gif", ".svg", ".webp")
OTHER_EXPORTS = (".onnx", ".h5", ".msgpack", ".ot")  # the same weights for other programs; never opened here
RECORD = "training"  # at the top of a model that we trained: recipe, log, curve
MOST_FILES = 10_000


def model_digest(folder: Path) -> str:
    """The identity of a model: a sha256 over the names, sizes and contents of all files that can decide its vectors."""
    state = hashlib.sha256()
    n_files = 0
    for file in model_files(folder):
        name = file.relative_to(folder).as_posix()
        state.update(json.dumps([name, file.stat().st_size, digest_files([file])]).encode() + b"\n")
        n_files += 1
    if not n_files:
        raise ModelFolderError(f"{folder} holds no files of a model.", hint="Give the folder of a model.")
    return state.hexdigest()


def model_files(folder: Path) -> list[Path]:
    """All files in a folder, at any depth, except those that no vector depends on; sorted.

    Left out are documents, logs, pictures, exports that are never opened here, hidden files, and the record of the
    training. A list of what may be left out is safe, and a list of what counts is not: a file of a kind that nobody
    thought of changes the identity, so two different models never share one. Names decide only where loading does not:
    folders that ``modules.json`` names and files that an index of weights names count whatever they are called.
    Links are followed, each folder once on its way down.
    """
    try:
        found = list(islice(_walk(folder, "", _module_folders(folder), ()), MOST_FILES + 1))
    except OSError as error:
        raise ModelFolderError(f"{folder} cannot be read: {error.strerror or error}.") from error
    if len(found) > MOST_FILES:
        raise ModelFolderError(
            f"{folder} holds more than {MOST_FILES:,} files.", hint="Keep the model in a folder of its own."
        )
    return sorted(found)


def _walk(folder: Path, inner: str, modules: frozenset[str], above: tuple[str, ...]) -> Iterator[Path]:
    """The files that count; ``inner`` is the folder's path within the model, ``above`` the folders on the way to it."""
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
    """The folders that modules.json names, except the model's own; of a file that cannot be read, none: nor is it."""
    rows = _content(folder / "modules.json")
    paths = [row.get("path") for row in rows if isinstance(row, dict)] if isinstance(rows, list) else []
    inner = {os.path.normpath(path) for path in paths if isinstance(path, str) and path}
    return frozenset(Path(path).as_posix() for path in inner) - {"."}


def _shards(index: Path) -> set[str]:
    content = _content(index)
    weight_map = content.get("weight_map") if isinstance(content, dict) else None
    return {name for name in weight_map.values() if isinstance(name, str)} if isinstance(weight_map, dict) else set()


def _content(path: Path) -> Any:  # noqa: ANN401 - whatever the file holds
    with suppress(ModelFolderError):
        return read_any_json(path)
    return None


def engine_versions() -> dict[str, str]:
    """Versions of all that computes a vector."""
    return dict(_versions())


@cache
def _versions() -> tuple[tuple[str, str], ...]:
    found = []
    for package in ENGINE_PACKAGES:
        with suppress(PackageNotFoundError):
            found.append((package, version(package)))
    return tuple(found)
