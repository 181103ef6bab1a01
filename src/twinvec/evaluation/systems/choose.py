"""Choose and open a system under test."""

from __future__ import annotations

import logging
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from inspect import signature
from pathlib import Path
from typing import Any, TypeAlias, cast

from twinvec.choices import CommandLines
from twinvec.embedder import Embedder, ModelLike, as_embedder, is_address
from twinvec.errors import InputError, MissingExtraError
from twinvec.evaluation.systems.command import CommandEmbedder
from twinvec.evaluation.systems.stored import StoredEmbedder
from twinvec.model.identity import refuse_settings
from twinvec.pairs.cross_encoder import as_scorer, is_scorer_folder, load_scorer
from twinvec.remote.client import Client
from twinvec.scorer import Scorer, is_scorer

__all__ = ["System", "SystemChoice", "open_system"]

logger = logging.getLogger(__name__)

OPTIONS = "MODEL, --endpoint URL, --command COMMAND, or --vectors FILE.npy with --texts FILE"


@dataclass(frozen=True, slots=True)
class SystemChoice:
    """The system to evaluate: exactly one of ``model``, ``endpoint``, ``command`` and ``vectors``.

    ``model`` may also be the address of a server, such as ``https://host/v1#model-name``. ``settings`` are arguments
    of :func:`twinvec.load`, plus ``prompt`` or ``prompt_name`` as in ``Encoder.encode``.
    """

    model: str | None = None
    endpoint: str | None = None
    endpoint_model: str | None = None
    key_variable: str | None = None
    command: str | None = None
    lines: CommandLines = "json"
    vectors: str | None = None
    texts: str | None = None
    timeout_s: float = 60.0
    settings: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        chosen = [each for each in (self.model, self.endpoint, self.command, self.vectors) if each]
        if len(chosen) != 1:
            problem = f"More than one system to evaluate: {', '.join(chosen)}." if chosen else "No system to evaluate."
            raise InputError(problem, hint=f"Choose one of: {OPTIONS}.")
        for one, other in (("endpoint_model", "endpoint"), ("texts", "vectors")):
            if getattr(self, one) and not getattr(self, other):
                raise InputError(f"--{one.replace('_', '-')} requires --{other}.")
        if self.vectors and not self.texts:
            raise InputError("--vectors requires --texts.", hint="Line i of that file is the text of row i.")


System: TypeAlias = ModelLike | Embedder | Scorer | SystemChoice


def open_system(system: System) -> Embedder | Scorer:
    """The embedder of a model, an address or a ``SystemChoice``, or the scorer in a folder of one.

    An embedder or a scorer is returned unchanged.

    >>> open_system("https://localhost:8080/v1#minilm").name
    'minilm at localhost:8080'
    """
    if isinstance(system, SystemChoice):
        return _open(system)
    if isinstance(system, (str, os.PathLike)):
        return _open(SystemChoice(os.fspath(system)))
    if is_scorer(system):
        return system
    return as_embedder(cast(ModelLike | Embedder, system))


def _open(choice: SystemChoice) -> Embedder | Scorer:
    if choice.command or choice.vectors or choice.endpoint or is_address(choice.model):
        refuse_settings(choice.settings, "a server, a command or a file of vectors")
    if choice.command:
        return CommandEmbedder(choice.command, lines=choice.lines)
    if choice.vectors and choice.texts:
        return StoredEmbedder(Path(choice.vectors), Path(choice.texts))
    if choice.endpoint or is_address(choice.model):
        address = choice.endpoint or choice.model or ""
        return Client(address, choice.endpoint_model, key_variable=choice.key_variable, timeout_s=choice.timeout_s)
    settings = dict(choice.settings)
    prompt, prompt_name = settings.pop("prompt", None), settings.pop("prompt_name", None)
    if settings.get("precision") == "bfloat16" and not _computes_bfloat16():
        logger.warning("This machine has no bfloat16 arithmetic; evaluating float32 instead.")
        settings["precision"] = "float32"
    if is_scorer_folder(choice.model or "") and not settings.get("readout"):
        return _open_scorer(choice.model or "", settings)
    return as_embedder(choice.model or "", settings, prompt=prompt, prompt_name=prompt_name)


def _open_scorer(model: str, settings: Mapping[str, Any]) -> Scorer:
    known = {name: value for name, value in settings.items() if name in signature(load_scorer).parameters}
    refuse_settings({name: settings[name] for name in settings if name not in known}, "a scorer")
    return as_scorer(load_scorer(model, **known))


def _computes_bfloat16() -> bool:
    from twinvec.engine.runtimes import has_bfloat16  # imports onnxruntime, which other systems do not need

    try:
        return has_bfloat16()
    except MissingExtraError:
        return True  # loading reports what is missing
