"""What embeds texts, behind one protocol: a sentence model, or anything else with a name, an identity and ``embed``."""

from __future__ import annotations

import hashlib
import json
import logging
import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from functools import cached_property
from importlib import import_module
from pathlib import Path
from typing import Any, Protocol, overload

from twinvec.choices import DEFAULT_MODEL, SHIPPED, Role
from twinvec.encoder import Block, Encoder
from twinvec.errors import InputError, shown
from twinvec.explanation import Explanation, PairExplanation
from twinvec.files import whole_file
from twinvec.loading import load
from twinvec.model.folder import WK, ModelFolder, Pooling, read_model_folder
from twinvec.model.hub import find_model, shipped_folder
from twinvec.model.identity import (
    DECIDING,
    FileStates,
    deciding_settings,
    engine_versions,
    file_states,
    model_digest,
    model_files,
    refuse_settings,
    space_digest,
    vectors_digest,
)
from twinvec.types import Vectors
from twinvec.vector_store import VectorStore, embed_missing
from twinvec.vectors import checked_vectors
from twinvec.wk import WKSettings

__all__ = [
    "TEXTS_PER_CALL",
    "CachedEmbedder",
    "Embedder",
    "ModelEmbedder",
    "ModelLike",
    "arguments_of",
    "as_embedder",
    "embed_block",
    "embed_texts",
    "explain",
    "readout_words",
    "stable_name",
    "width_of",
]

logger = logging.getLogger(__name__)

TEXTS_PER_CALL = 4096  # what a kill can cost; enough for the engine to sort by length
FINDING = "revision", "offline", "trust_pickle"  # arguments of ``load`` that say where a model may come from
LONG_TEXTS = (
    "Some texts are longer than the %s tokens this model reads; only their beginning is used. They are counted; "
    "use long='chunk' in another folder to read all of them, 'cut' to accept this in silence."
)


class Embedder(Protocol):
    """Anything that turns texts into vectors.

    ``identity`` changes whenever the vectors could: two embedders of one identity share cached vectors.
    """

    @property
    def name(self) -> str:
        """What people call it."""
        ...

    @property
    def identity(self) -> str:
        """A text that is another one when the vectors could be others."""
        ...

    @property
    def width(self) -> int | None:
        """Size of a vector; None until it is known."""
        ...

    @property
    def similarity(self) -> str:
        """By which measure its vectors are compared: cosine, dot, euclidean or manhattan."""
        ...

    @property
    def settings(self) -> Mapping[str, Any]:
        """How it runs, as JSON, for reports and manifests."""
        ...

    def embed(self, texts: Sequence[str], *, role: Role = "text") -> Vectors:
        """Vectors of the texts, ``(len(texts), width)``, row ``i`` for text ``i``."""
        ...


ModelLike = str | os.PathLike[str] | Encoder


class ModelEmbedder:
    """A sentence model: of a name or folder, found and loaded when first needed, or an encoder that is loaded.

    ``arguments`` are those of :func:`twinvec.load`; ``prompt`` or ``prompt_name`` stand before every text as in
    ``Encoder.encode``, whatever its role.

    >>> ModelEmbedder("twinvec-mini", {"precision": "int8"}).name
    'twinvec-mini (int8)'
    """

    def __init__(
        self,
        model: ModelLike = DEFAULT_MODEL,
        arguments: Mapping[str, Any] | None = None,
        *,
        prompt: str | None = None,
        prompt_name: str | None = None,
    ) -> None:
        self.prompts: dict[str, Any] = {"prompt": prompt, "prompt_name": prompt_name}
        self._has_warned = False
        self._as_found: FileStates | None = None
        if isinstance(model, Encoder):
            self.folder = model.folder.path
            self.model = stable_name(self.folder)
            self.arguments = arguments_of(model)
            self._as_found = model.folder.as_opened
            self.encoder = model
            return
        if not isinstance(model, (str, os.PathLike)) or isinstance(os.fspath(model), bytes):
            raise InputError(
                f"The model is {shown(model)}, of type {type(model).__name__}.",
                hint="Give the name of a model, its folder, or an encoder that twinvec.load returned.",
            )
        self.arguments = dict(arguments or {})
        if isinstance(self.arguments.get("readout"), dict):  # as JSON has it
            self.arguments["readout"] = WKSettings(**self.arguments["readout"])
        self.model = os.fspath(model)
        self._source = self.model  # what is found, whatever the model is called later

    @cached_property
    def folder(self) -> Path:
        """The model's folder, found now if it was not: a model of the hub may be fetched."""
        wanted = {name: self.arguments[name] for name in FINDING if name in self.arguments}
        folder = find_model(self._source, **wanted)
        self._as_found = file_states(model_files(folder))
        return folder

    def find(self) -> ModelEmbedder:
        """This embedder, with its folder found: a name that is not a model's shows now, not at the first text."""
        _ = self.folder
        return self

    @cached_property
    def encoder(self) -> Encoder:
        """The model, loaded now if it was not."""
        arguments = {name: value for name, value in self.arguments.items() if name != "revision"}
        encoder: Encoder = load(self.folder, **arguments)
        self._check_files()
        return encoder

    @property
    def name(self) -> str:
        """The name it was given by, with the precision and the readout where they are not the default."""
        readout = self.arguments.get("readout")
        words = [self.arguments.get("precision"), "wk" if isinstance(readout, WKSettings) else readout]
        shown = ", ".join(word for word in words if word not in (None, DECIDING["precision"]))
        return f"{self.model} ({shown})" if shown else self.model

    @property
    def settings(self) -> dict[str, Any]:
        """The settings that decide its vectors."""
        return {**deciding_settings(self.arguments), **self.prompts}

    @cached_property
    def content(self) -> str:
        """A digest of the model's files; refused if they have changed since the model was opened."""
        digest = model_digest(self.folder)
        self._check_files()
        return digest

    @cached_property
    def identity(self) -> str:
        """A digest of the model's files and of the settings that decide its vectors."""
        return f"model-{vectors_digest(self.content, self.settings)}"

    @cached_property
    def space(self) -> str:
        """A digest of the space of its vectors: those of two embedders with one space may be compared."""
        return space_digest(self.content, readout_words(self.encoder.folder), self.encoder.width)

    @property
    def width(self) -> int | None:
        """Size of a vector, once the model is loaded."""
        return self.encoder.width if "encoder" in self.__dict__ else None

    @cached_property
    def similarity(self) -> str:
        """The measure that the model was trained for."""
        return read_model_folder(self.folder).similarity

    def embed(self, texts: Sequence[str], *, role: Role = "text") -> Vectors:
        """Vectors of the texts, ``(len(texts), width)``."""
        if role == "text" or any(self.prompts.values()):
            return self.encoder.encode(texts, **self.prompts, progress=False)
        encode = self.encoder.encode_query if role == "query" else self.encoder.encode_document
        return encode(texts)

    def embed_block(self, texts: Sequence[str]) -> Block:
        """Vectors whose bits depend on these texts alone, and how many were cut; the first cut is logged."""
        block = self.encoder.encode_block(texts, **self.prompts)
        if block.n_cut and not self._has_warned and self.arguments.get("long", "warn") == "warn":
            logger.warning(LONG_TEXTS, self.encoder.max_tokens)
            self._has_warned = True
        return block

    def _check_files(self) -> None:
        if self._as_found is not None:
            self._as_found.check()


def stable_name(folder: Path) -> str:
    """How to load a folder again: by name if it is of the package, which may move with its next version."""
    if folder.name in SHIPPED and shipped_folder(folder.name) == folder:
        return folder.name
    return str(folder.absolute())


def arguments_of(encoder: Encoder) -> dict[str, Any]:
    """The arguments of :func:`twinvec.load` that make the vectors of an encoder again."""
    settings = encoder.settings
    names = ("precision", "device", "runtime", "deterministic", "long")
    chosen: dict[str, Any] = {name: getattr(settings, name) for name in names}
    own = read_model_folder(encoder.folder.path)
    if encoder.truncate_dim != own.truncate_dim:
        chosen["truncate_dim"] = encoder.truncate_dim
    if readout_words(encoder.folder) != readout_words(own):
        readout = encoder.folder.readout
        chosen["readout"] = readout.settings if isinstance(readout, WK) else readout_words(encoder.folder)
    return chosen


def readout_words(folder: ModelFolder) -> str | dict[str, Any]:
    """The readout of a model as JSON has it: names of poolings, or the settings of SBERT-WK."""
    if folder.is_static:
        return "static"
    match folder.readout:
        case Pooling(modes=modes):
            return "+".join(modes)
        case WK(settings=settings):
            return asdict(settings)


def as_embedder(
    model: ModelLike | Embedder,
    arguments: Mapping[str, Any] | None = None,
    *,
    prompt: str | None = None,
    prompt_name: str | None = None,
) -> Embedder:
    """An embedder from a name, a folder or an encoder; what is an embedder already is given back.

    The folder may be a sentence model's or a baseline's, which takes no settings of the engine and no prompt.

    >>> as_embedder("twinvec-mini").embed(["a cat", "a kitten"]).shape
    (2, 384)
    """
    if isinstance(model, (str, os.PathLike)) and (baseline := _baseline(os.fspath(model))) is not None:
        refuse_settings({**(arguments or {}), "prompt": prompt, "prompt_name": prompt_name}, baseline.name)
        return baseline
    if isinstance(model, (str, os.PathLike, Encoder)):
        return ModelEmbedder(model, arguments, prompt=prompt, prompt_name=prompt_name).find()
    if not callable(getattr(model, "embed", None)):
        raise InputError(
            f"The model is {shown(model)}, of type {type(model).__name__}.",
            hint="Give the name of a model, its folder, an encoder that twinvec.load returned, or an Embedder.",
        )
    return model


def _baseline(name: str | bytes) -> Embedder | None:
    """What a room above this one opens; it is imported when it is needed."""
    opened: Embedder | None = import_module("twinvec.baselines").open_baseline(name) if isinstance(name, str) else None
    return opened


def embed_block(embedder: Embedder, texts: Sequence[str]) -> Block:
    """The vectors of some texts as float32, with a count of those that were cut if the embedder has ``embed_block``."""
    own = getattr(embedder, "embed_block", None)
    return Block(embedder.embed(texts), 0, 0) if own is None else own(texts)


def embed_texts(embedder: Embedder, texts: Sequence[str], *, role: Role = "text") -> Vectors:
    """Vectors of the texts, ``(len(texts), width)``, checked; a model shows a progress bar if that takes long."""
    if not isinstance(embedder, ModelEmbedder):
        found = embedder.embed(texts, role=role)
        return checked_vectors(found, texts, width=embedder.width, source=embedder.name)
    if role == "text":
        return embedder.encoder.encode(texts, **embedder.prompts)
    return embedder.embed(texts, role=role)


def width_of(embedder: Embedder) -> int:
    """The width of an embedder's vectors; one text is embedded if it is not known."""
    return embedder.width or int(embedder.embed(["width"]).shape[1])


class CachedEmbedder:
    """An embedder that embeds every different text once, now or in an earlier run.

    ``folder`` is the cache's; each identity has a store of its own in it. With None, vectors are kept in memory.
    ``at_once`` is the most texts given to the embedder in one call; None gives it all.
    """

    def __init__(
        self, embedder: Embedder, folder: Path | None, *, role: Role = "text", at_once: int | None = TEXTS_PER_CALL
    ) -> None:
        self.embedder = embedder
        self.n_embedded = 0
        self.store = VectorStore(None if folder is None else _store_folder(embedder, folder, role))
        self._role, self._at_once = role, at_once

    def embed(self, texts: Sequence[str]) -> Vectors:
        """Vectors of the texts, ``(len(texts), width)``, row ``i`` for text ``i``."""
        self.prepare(texts)
        return self.store.of(texts)

    def prepare(self, texts: Sequence[str]) -> None:
        """Embed those of the texts that are not cached yet."""
        if isinstance(texts, str):
            raise InputError("One text was given where a list is needed.", hint="Put it in a list.")
        self.n_embedded += embed_missing(
            self.store,
            texts,
            lambda part: self.embedder.embed(part, role=self._role),
            source=self.embedder.name,
            at_once=self._at_once,
            label=f"embedding by {Path(self.embedder.name).name}",
        )


def _store_folder(embedder: Embedder, folder: Path, role: Role) -> Path:
    """The folder of an embedder's store, with a file that tells people whose it is.

    Vectors of another version of the engine may differ in their last digits, so it has a store of its own.
    """
    about: dict[str, Any] = {"name": embedder.name, "identity": embedder.identity, "role": role}
    if isinstance(embedder, ModelEmbedder):
        about["versions"] = engine_versions()
    named = json.dumps({name: value for name, value in about.items() if name != "name"}, sort_keys=True)
    store = folder / hashlib.sha256(named.encode()).hexdigest()[:32]
    path = store / "about.json"
    try:
        if not path.is_file():
            store.mkdir(parents=True, exist_ok=True)
            with whole_file(path) as file:
                file.write(f"{json.dumps(about, indent=2)}\n".encode())
    except OSError as error:
        raise InputError(
            f"The cache folder {folder} cannot be written: {error.strerror or error}.",
            hint="Give another with --cache, or none with --no-cache.",
        ) from error
    return store


@overload
def explain(text: str, other: None = None, model: ModelLike | Embedder = DEFAULT_MODEL) -> Explanation: ...


@overload
def explain(text: str, other: str, model: ModelLike | Embedder = DEFAULT_MODEL) -> PairExplanation: ...


def explain(
    text: str, other: str | None = None, model: ModelLike | Embedder = DEFAULT_MODEL
) -> Explanation | PairExplanation:
    """What a text's vector is made of, token by token; with another text, what their cosine is made of.

    Exact for models with mean pooling or SBERT-WK, and static ones; others are refused. See ``Encoder.explain`` and
    ``Encoder.explain_pair``.

    >>> pair = explain("A cat sits.", "A kitten rests.")
    >>> pair.contributions.shape == (len(pair.left.tokens), len(pair.right.tokens))
    True
    """
    embedder = as_embedder(model)
    if not isinstance(embedder, ModelEmbedder):
        raise InputError(
            f"{embedder.name} has no tokens to explain a vector by.", hint="Give a sentence model: its name or folder."
        )
    if other is None:
        return embedder.encoder.explain(text, **embedder.prompts)
    return embedder.encoder.explain_pair(text, other, **embedder.prompts)
