"""What embeds: a model by name or folder, described by what decides its vectors, and loaded where it is needed."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Protocol

from twinvec.choices import OutputType
from twinvec.encoder import Block, Encoder
from twinvec.loading import load
from twinvec.model.hub import find_model
from twinvec.model.identity import model_digest, model_files
from twinvec.wk import WKSettings

__all__ = ["BulkModel", "FolderModel", "OpenModel", "ShippedModel"]

logger = logging.getLogger(__name__)

DECIDING = {  # arguments of ``load`` that change vectors, with their defaults
    "precision": "float32",
    "device": "cpu",
    "runtime": "auto",
    "deterministic": False,
    "long": "cut",
    "truncate_dim": None,
    "readout": None,
}
FINDING = "revision", "offline", "trust_pickle"
LONG_TEXTS = (
    "Some texts are longer than the %s tokens this model reads; only their beginning is used. They are counted; "
    "use long='chunk' in another folder to read all of them, 'cut' to accept this in silence."
)


class OpenModel(Protocol):
    """A model that is loaded."""

    width: int  # values in a vector, as it is stored

    def embed(self, texts: Sequence[str]) -> Block:
        """The vectors of some texts; the same texts give the same bits."""
        ...


class BulkModel(Protocol):
    """A model that a bulk job uses. ``sha256`` and ``deciding`` are other ones when its vectors could be."""

    @property
    def name(self) -> str:
        """What people call it."""
        ...

    def sha256(self) -> str:
        """A digest of the model's content."""
        ...

    def deciding(self) -> dict[str, Any]:
        """Settings that decide vectors, for the manifest."""
        ...

    def open(self) -> OpenModel:
        """Load it."""
        ...


@dataclass(frozen=True)
class FolderModel:
    """A sentence model of this machine or the hub. ``settings`` are arguments of :func:`twinvec.load`."""

    name: str
    settings: Mapping[str, Any] = field(default_factory=dict)
    prompt: str | None = None
    prompt_name: str | None = None
    output: OutputType = "float32"

    def folder(self) -> Path:
        """Where it is; fetched if it has to be."""
        return find_model(self.name, **{name: self.settings[name] for name in FINDING if name in self.settings})

    def sha256(self) -> str:
        """A digest of its files."""
        return model_digest(self.folder())

    def deciding(self) -> dict[str, Any]:
        """Settings that decide vectors. Of the policies for long texts, all but chunk read the same tokens."""
        chosen = {name: self.settings.get(name, usual) for name, usual in DECIDING.items()}
        chosen["long"] = "chunk" if chosen["long"] == "chunk" else "cut"
        if isinstance(chosen["readout"], WKSettings):
            chosen["readout"] = {"wk": asdict(chosen["readout"])}
        return {**chosen, "prompt": self.prompt, "prompt_name": self.prompt_name, "output": self.output}

    def open(self) -> OpenModel:
        """Load it."""
        return self.opened(self.folder())

    def opened(self, folder: Path, **settings: Any) -> _Loaded:  # noqa: ANN401 - as ``load`` has them
        """Load it from a folder that holds its files; ``settings`` go before its own."""
        chosen = {**self.settings, **settings}
        chosen.pop("revision", None)
        return _Loaded(load(folder, **chosen), self)

    def shipped(self) -> ShippedModel:
        """The model with its files, to be sent to another machine."""
        folder = self.folder()
        files = {file.relative_to(folder).as_posix(): file.read_bytes() for file in model_files(folder)}
        return ShippedModel(self, files)


@dataclass(frozen=True)
class ShippedModel:
    """A model and the content of its files: what a machine that does not have it needs."""

    model: FolderModel
    files: Mapping[str, bytes] = field(repr=False)

    def opened(self, *, threads: int) -> OpenModel:
        """Write the files to a temporary folder, and load it; then the folder goes, as workers end without notice."""
        with TemporaryDirectory(prefix="twinvec-model-", ignore_cleanup_errors=True) as folder:
            for name, content in self.files.items():
                path = Path(folder, name)
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(content)
            return self.model.opened(Path(folder), threads=threads)


class _Loaded:
    """An encoder with the prompt and the type of number of one job."""

    def __init__(self, encoder: Encoder, model: FolderModel) -> None:
        self._encoder, self._model = encoder, model
        self._is_told = model.settings.get("long", "warn") != "warn"
        self.width = encoder.width

    def embed(self, texts: Sequence[str]) -> Block:
        """The vectors of some texts."""
        model = self._model
        block = self._encoder.encode_block(
            texts, prompt=model.prompt, prompt_name=model.prompt_name, output=model.output
        )
        if block.n_cut and not self._is_told:
            logger.warning(LONG_TEXTS, self._encoder.max_tokens)
            self._is_told = True
        return block
