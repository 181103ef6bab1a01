"""Which model, and run by what: digests and versions that change when vectors could."""

from __future__ import annotations

import hashlib
from contextlib import suppress
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from twinvec.errors import ModelFolderError
from twinvec.files import digest_files
from twinvec.model_folder import model_files

__all__ = ["engine_versions", "model_digest"]

ENGINE_PACKAGES = ("twinvec", "onnxruntime", "openvino", "tokenizers", "torch", "transformers")


def model_digest(folder: Path) -> str:
    """The sha256 of all files that a model's vectors depend on, with their names and sizes."""
    files = model_files(folder)
    if not files:
        raise ModelFolderError(f"{folder} holds no files of a model.", hint="Give the folder of a model.")
    listed = [f"{file.relative_to(folder).as_posix()} {file.stat().st_size}" for file in files]
    return hashlib.sha256("\n".join([*listed, digest_files(files)]).encode()).hexdigest()


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
