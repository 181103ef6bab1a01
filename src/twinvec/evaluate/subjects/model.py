"""A model folder, or a name on the hub, as a subject. The weights are loaded when the first text needs them."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from functools import cached_property
from importlib.metadata import PackageNotFoundError, version
from inspect import signature
from pathlib import Path
from typing import Any

from twinvec.encoder import Encoder
from twinvec.files import digest_files
from twinvec.hub import find_model
from twinvec.loading import load
from twinvec.model_folder import Dense, LayerNorm, read_model_folder
from twinvec.types import Vectors

__all__ = ["ModelSubject", "model_files"]

DECIDING = ".json", ".txt", ".safetensors", ".bin", ".model"  # endings of files that vectors can depend on
USUAL = {name: each.default for name, each in signature(load).parameters.items()}
NOT_DECIDING = "threads", "offline", "trust_pickle"  # arguments of ``load`` that change no vector


class ModelSubject:
    """A sentence model of this machine or the hub.

    ``settings`` are arguments of :func:`twinvec.load`; ``prompt`` or ``prompt_name`` stand before every text as in
    ``Encoder.encode``.
    """

    def __init__(
        self,
        model: str,
        settings: Mapping[str, Any] | None = None,
        *,
        prompt: str | None = None,
        prompt_name: str | None = None,
    ) -> None:
        self._model = model
        self._settings = dict(settings or {})
        self._prompts: dict[str, Any] = {"prompt": prompt, "prompt_name": prompt_name}
        wanted = ("revision", "offline", "trust_pickle")
        self.folder = find_model(model, **{name: self._settings[name] for name in wanted if name in self._settings})

    @property
    def name(self) -> str:
        """The name it was given by, with whatever differs from the usual settings that matter to people."""
        precision = self._settings.get("precision", "float32")
        return self._model if precision == "float32" else f"{self._model} ({precision})"

    @property
    def settings(self) -> dict[str, Any]:
        """How the model runs, for reports: the precision, and whatever is not as usual."""
        chosen = {"precision": USUAL["precision"], **self._settings, **self._prompts}
        return {
            name: value
            for name, value in chosen.items()
            if name == "precision" or (value is not None and name not in NOT_DECIDING and value != USUAL.get(name))
        }

    @cached_property
    def identity(self) -> str:
        """Digest of the model's files, of how it is run and read out, and of Twinvec's version."""
        files = model_files(self.folder)
        parts = {
            "names": [str(file.relative_to(self.folder)) for file in files],
            "sizes": [file.stat().st_size for file in files],  # where one file ends and the next begins
            "content": digest_files(files),
            "settings": self.settings,
            "twinvec": _own_version(),
        }
        return "model-" + hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()

    @property
    def width(self) -> int | None:
        """Size of a vector, once the model is loaded."""
        return self._encoder.width if "_encoder" in self.__dict__ else None

    def embed(self, texts: Sequence[str]) -> Vectors:
        """Vectors of the texts, ``(len(texts), width)``."""
        vectors: Vectors = self._encoder.encode(texts, **self._prompts, progress=False)
        return vectors

    @cached_property
    def _encoder(self) -> Encoder:
        return load(self.folder, **{name: value for name, value in self._settings.items() if name != "revision"})


def model_files(folder: Path) -> list[Path]:
    """The files that a model's vectors can depend on: configs, tokenizer and weights, of all its modules."""
    content = read_model_folder(folder)
    places = [folder, content.backbone]
    places += [module.folder for module in content.modules if isinstance(module, (Dense, LayerNorm))]
    places += sorted(folder.glob("*_Pooling"))
    found = {file for place in places for file in place.iterdir() if file.is_file() and file.suffix in DECIDING}
    return sorted(found)


def _own_version() -> str:
    try:
        return version("twinvec")
    except PackageNotFoundError:
        return "not installed"
