"""A model folder, or a name on the hub, as a subject. The weights are loaded when the first text needs them."""

from __future__ import annotations

import hashlib
import json
import logging
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from functools import cached_property
from inspect import signature
from typing import Any

from twinvec.encoder import Encoder
from twinvec.engine.runtimes import has_bfloat16
from twinvec.errors import MissingExtraError
from twinvec.loading import load
from twinvec.model.hub import find_model
from twinvec.model.identity import engine_versions, file_states, model_digest, model_files
from twinvec.types import Vectors
from twinvec.wk import WKSettings

__all__ = ["NOT_DECIDING", "USUAL", "ModelSubject"]

logger = logging.getLogger(__name__)

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
        if self._settings.get("precision") == "bfloat16" and not _computes_bfloat16():
            logger.warning("This machine computes bfloat16 in float32, so float32 is what is judged.")
            self._settings["precision"] = "float32"
        self._prompts: dict[str, Any] = {"prompt": prompt, "prompt_name": prompt_name}
        wanted = ("revision", "offline", "trust_pickle")
        self.folder = find_model(model, **{name: self._settings[name] for name in wanted if name in self._settings})
        self._as_found = file_states(model_files(self.folder))

    @property
    def name(self) -> str:
        """The name it was given by, with whatever differs from the usual settings that matter to people."""
        precision, readout = self._settings.get("precision", "float32"), self._settings.get("readout")
        told = ["" if precision == "float32" else precision, "wk" if isinstance(readout, WKSettings) else readout]
        shown = ", ".join(each for each in told if each)
        return f"{self._model} ({shown})" if shown else self._model

    @property
    def settings(self) -> dict[str, Any]:
        """How the model runs, for reports: the precision, and whatever is not as usual."""
        chosen = {"precision": USUAL["precision"], **self._settings, **self._prompts}
        if isinstance(chosen.get("readout"), WKSettings):
            chosen["readout"] = {"wk": asdict(chosen["readout"])}
        return {
            name: value
            for name, value in chosen.items()
            if name == "precision" or (value is not None and name not in NOT_DECIDING and value != USUAL.get(name))
        }

    @cached_property
    def identity(self) -> str:
        """Digest of the model's files, of how it is run and read out, and of the versions that do it."""
        parts = {"files": model_digest(self.folder), "settings": self.settings, "versions": engine_versions()}
        self._as_found.check()  # what is loaded, before or after, must be of the same files
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
        encoder = load(self.folder, **{name: value for name, value in self._settings.items() if name != "revision"})
        self._as_found.check()
        return encoder


def _computes_bfloat16() -> bool:
    try:
        return has_bfloat16()
    except MissingExtraError:
        return True  # loading will say what is missing
