"""From what a user names to a system under test: a model, a server, a program, or vectors that are in a file."""

from __future__ import annotations

import logging
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, TypeAlias
from zipfile import BadZipFile

import numpy as np

from twinvec.choices import CommandLines, Role
from twinvec.data.http_client import KEY_VARIABLE
from twinvec.data.read import read_texts
from twinvec.embedder import Embedder, ModelLike, as_embedder
from twinvec.errors import InputError, MissingExtraError
from twinvec.evaluation.systems.command import CommandEmbedder
from twinvec.evaluation.systems.endpoint import Endpoint, EndpointEmbedder
from twinvec.files import digest_files
from twinvec.model.identity import refuse_settings
from twinvec.types import Vectors
from twinvec.vectors import checked_vectors

__all__ = ["StoredEmbedder", "System", "SystemChoice", "open_system"]

logger = logging.getLogger(__name__)

WAYS = "MODEL, --endpoint URL with --endpoint-model NAME, --command COMMAND, or --vectors FILE.npy with --texts FILE"


class StoredEmbedder:
    """A .npy file ``(n, width)`` and a file of ``n`` texts. Any text that is asked for must be among them."""

    similarity = "cosine"

    def __init__(self, vectors: Path, texts: Path) -> None:
        for file in (vectors, texts):
            if not os.path.isfile(file):
                raise InputError(f"There is no file {file!s:.200}.", hint="Check the path.")
        self._files = vectors, texts
        self.settings = {"vectors": vectors.name, "texts": texts.name}
        rows = list(read_texts(str(texts)))
        try:
            loaded = np.load(vectors, allow_pickle=False)
        except (ValueError, EOFError, OSError, BadZipFile) as error:
            raise InputError(f"{vectors} is not a .npy file of numbers: {error}.") from error
        if not isinstance(loaded, np.ndarray):
            raise InputError(f"{vectors} holds several arrays.", hint="Save the vectors alone, with numpy.save.")
        if loaded.ndim == 2 and len(loaded) != len(rows):
            raise InputError(
                f"{vectors} has {len(loaded)} rows, but {texts} has {len(rows)} texts.",
                hint="Row i of the one must be text i of the other.",
            )
        self._vectors = checked_vectors(loaded, rows, width=None, source=str(vectors))
        self._rows = {text: row for row, text in reversed(list(enumerate(rows)))}  # of equal texts, the first counts

    @property
    def name(self) -> str:
        """The name of the file of vectors."""
        return self._files[0].name

    @cached_property
    def identity(self) -> str:
        """Digest of both files."""
        return f"stored-{digest_files(self._files)}-{self._files[0].stat().st_size}"

    @property
    def width(self) -> int | None:
        """Size of a vector."""
        return int(self._vectors.shape[1])

    def embed(self, texts: Sequence[str], *, role: Role = "text") -> Vectors:
        """Vectors of the texts, ``(len(texts), width)``."""
        missing = [text for text in texts if text not in self._rows]
        if missing:
            raise InputError(
                f"{self._files[1]} lacks {len(missing):,} of {len(texts):,} texts, the first of them {missing[0]!r}.",
                hint="The texts must stand there as in the data, with the same white space.",
            )
        found: Vectors = self._vectors[[self._rows[text] for text in texts]]
        return found


@dataclass(frozen=True, slots=True)
class SystemChoice:
    """What to evaluate: exactly one of ``model``, ``endpoint``, ``command`` and ``vectors``.

    ``model`` may also be ``https://host/v1#model-name``. ``settings`` are arguments of
    :func:`twinvec.load`, with ``prompt`` or ``prompt_name`` as in ``Encoder.encode``.
    """

    model: str | None = None
    endpoint: str | None = None
    endpoint_model: str | None = None
    key_variable: str = KEY_VARIABLE
    command: str | None = None
    lines: CommandLines = "json"
    vectors: str | None = None
    texts: str | None = None
    timeout_s: float = 60.0
    settings: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        given = [each for each in (self.model, self.endpoint, self.command, self.vectors) if each]
        if len(given) != 1:
            problem = (
                f"More than one thing to evaluate: {', '.join(given)}." if given else "Nothing to evaluate was given."
            )
            raise InputError(problem, hint=f"Give one of: {WAYS}.")
        for one, other in (("endpoint_model", "endpoint"), ("texts", "vectors")):
            if getattr(self, one) and not getattr(self, other):
                raise InputError(f"--{one.replace('_', '-')} goes with --{other}, which was not given.")
        if self.vectors and not self.texts:
            raise InputError("--vectors needs --texts.", hint="Name the file whose line i is the text of row i.")


System: TypeAlias = ModelLike | Embedder | SystemChoice


def open_system(system: System) -> Embedder:
    """The embedder of a system: of a model, an address, or a choice; what is an embedder already is given back.

    >>> open_system("https://localhost:8080/v1#minilm").name
    'minilm at localhost:8080'
    """
    if isinstance(system, SystemChoice):
        return _open(system)
    return _open(SystemChoice(os.fspath(system))) if isinstance(system, (str, os.PathLike)) else as_embedder(system)


def _open(choice: SystemChoice) -> Embedder:
    if choice.command or choice.vectors or choice.endpoint or _is_address(choice.model):
        refuse_settings(choice.settings, "a server, a program or a file")
    if choice.command:
        return CommandEmbedder(choice.command, lines=choice.lines)
    if choice.vectors and choice.texts:
        return StoredEmbedder(Path(choice.vectors), Path(choice.texts))
    if choice.endpoint or _is_address(choice.model):
        address, _, model = (choice.endpoint or choice.model or "").partition("#")
        named = choice.endpoint_model or model
        return EndpointEmbedder(Endpoint(address, named, choice.key_variable, timeout_s=choice.timeout_s))
    settings = dict(choice.settings)
    prompt, prompt_name = settings.pop("prompt", None), settings.pop("prompt_name", None)
    if settings.get("precision") == "bfloat16" and not _computes_bfloat16():
        logger.warning("This machine computes bfloat16 in float32, so float32 is evaluated.")
        settings["precision"] = "float32"
    return as_embedder(choice.model or "", settings, prompt=prompt, prompt_name=prompt_name)


def _computes_bfloat16() -> bool:
    from twinvec.engine.runtimes import has_bfloat16  # brings onnxruntime, which other systems do not need

    try:
        return has_bfloat16()
    except MissingExtraError:
        return True  # loading will say what is missing


def _is_address(model: str | None) -> bool:
    return (model or "").startswith(("http://", "https://"))
