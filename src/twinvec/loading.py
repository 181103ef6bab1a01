"""Load a model by name or folder: a Transformer, a static model, or a Universal Sentence Encoder."""

from __future__ import annotations

import logging
import os
import shutil
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np

from twinvec.choices import DEFAULT_MODEL, Device, LongPolicy, Precision, RuntimeName, UnknownPolicy
from twinvec.encoder import Encoder
from twinvec.engine.batches import Engine, EngineSettings, Streams
from twinvec.engine.static import TableRuntime, read_table, save_static
from twinvec.errors import InputError, ModelFolderError
from twinvec.files import saved_folder
from twinvec.model.classifier import refuse_classifier
from twinvec.model.folder import EMBEDDER_FILE, ModelFolder, Normalize, read_model_folder, with_readout
from twinvec.model.hub import find_model
from twinvec.model.identity import file_states, model_files
from twinvec.model.save import copy_card
from twinvec.model.tokenizer import Tokenizer, WordReader, load_tokenizer
from twinvec.ownership import MODEL
from twinvec.progress import Progress
from twinvec.token_rows import LongTexts, RowMaker
from twinvec.types import Vectors
from twinvec.wk import WKSettings

__all__ = ["check_vocabulary", "load", "open_encoder", "open_table"]

logger = logging.getLogger(__name__)

TEXTS_PER_JOB = 128, 1024  # fewer do not pay for a thread; more do not fit the cache


@dataclass(frozen=True, eq=False)
class StaticEncoder(Encoder):
    """An :class:`Encoder` for static models; the bits of a vector never depend on other texts.

    Token states (``encode_tokens``, ``encode_layers``) are the rows of the table.
    """

    runtime: TableRuntime = field(repr=False, kw_only=True)

    def save(self, folder: str | Path) -> None:
        """Save the model in float32 to a new folder that Twinvec and sentence-transformers load."""
        self.runtime.check()
        save_static(replace(self.folder, truncate_dim=self.truncate_dim), self.runtime.table, Path(folder))

    def _vectors(
        self, texts: list[str], prefix: str, cut: LongTexts, *, progress: bool | None, n_before: int = 0
    ) -> Vectors:
        vectors = np.empty((len(texts), self.engine.width), dtype=np.float32)
        n_tokens = np.zeros(len(texts), dtype=np.int64)
        limit = self._limit if self.settings.long != "chunk" else None

        def work(span: slice) -> None:
            block = [prefix + text for text in texts[span]] if prefix else texts[span]
            ids, counts = self._words.read(block)
            starts, kept = np.cumsum(counts) - counts, np.minimum(counts, limit or counts)
            if self.tokenizer.keeps_end:
                starts += counts - kept
            vectors[span] = self.runtime.means(ids, starts, kept)
            n_tokens[span] = counts
            bar.advance(len(block))

        least, most = TEXTS_PER_JOB
        size = max(least, min(most, -(-len(texts) // self._streams.n)))
        with Progress(len(texts), "embedding", shown=progress) as bar:
            self._streams.run((slice(first, first + size) for first in range(0, len(texts), size)), work)
        if cut.n_tokens is not None:
            cut.n_tokens[:] = n_tokens
        if limit is not None:
            make = RowMaker(self._words, limit, self.settings.long, cut, n_before)
            for index in np.flatnonzero(n_tokens > limit).tolist():
                make.refuse_or_note(index, int(n_tokens[index]))
        return np.ascontiguousarray(vectors[:, : self.width])


class PieceEncoder(Encoder):
    """An :class:`Encoder` for a Universal Sentence Encoder, which reads texts of any length and has no layers."""

    def save(self, folder: str | Path) -> None:
        """Save the model to a new folder that Twinvec loads, with its weights as they are stored."""
        if self.truncate_dim is not None:
            raise InputError("The layout of this model cannot store truncate_dim.", hint="Load it without, and save.")
        with saved_folder(Path(folder), MODEL) as path:
            for name in ("model.safetensors", "tokenizer.json", EMBEDDER_FILE):
                shutil.copyfile(self.folder.path / name, path / name)
            copy_card(self.folder, path)
            self.folder.check_unchanged()  # the copied files must be the loaded ones


def open_table(
    folder: ModelFolder, settings: EngineSettings, *, trust_pickle: bool = False
) -> tuple[Engine, TableRuntime]:
    """Load the token table of a static model."""
    if settings.runtime != "auto" or settings.device != "cpu":
        raise InputError(
            f"{folder.path} is a static model, which runs on the CPU without a runtime, so "
            f"runtime={settings.runtime!r} and device={settings.device!r} are not supported.",
            hint="Leave both at their defaults.",
        )
    if settings.precision != "float32":
        logger.warning("A static model computes in float32; precision=%r has no effect.", settings.precision)
    table = read_table(folder.backbone, trust_pickle=trust_pickle)
    runtime = TableRuntime(table, is_normalized=any(isinstance(module, Normalize) for module in folder.modules))
    return Engine(runtime, "float32", table.shape[1], len(table), None), runtime


NOT_A_SENTENCE_MODEL = (
    "%s is not a sentence model: it has no modules.json. %s is used; expect poor vectors until it is trained on pairs."
)


def load(
    name_or_folder: str | os.PathLike[str] = DEFAULT_MODEL,
    *,
    precision: Precision = "float32",
    threads: int | None = None,
    device: Device = "cpu",
    runtime: RuntimeName = "auto",
    deterministic: bool = False,
    long: LongPolicy = "warn",
    unknown: UnknownPolicy = "warn",
    truncate_dim: int | None = None,
    readout: str | WKSettings | None = None,
    trust_pickle: bool = False,
    revision: str | None = None,
    offline: bool = False,
) -> Encoder:
    """Load a sentence model from a folder, the package, the hub's cache, or the hub, tried in this order.

    The default model ships with the package and needs no network and no extra.

    Args:
        precision: float32 (exact), bfloat16 or int8 (faster on CPUs that support them; docs/precision.md).
        threads: batches that run in parallel; by default one per core.
        device: cpu, or cuda if onnxruntime or torch supports it.
        runtime: onnxruntime, openvino or torch; by default the best for the model and the precision.
        deterministic: a text gives the same bits whatever the other texts, their order and the threads.
        long: what to do with texts over the model's limit: warn (and truncate), error, cut, or chunk (read all).
        unknown: what to do with texts in a script that the model has no words for: warn, error or ignore.
        truncate_dim: keep only the first values of each vector (for models trained for it).
        readout: "wk" or WKSettings for SBERT-WK over all layers, or a pooling such as "mean"; by default the model's
            own (docs/wk.md).
        trust_pickle: also read weights stored as a pickle, which can run code.
        revision: a hub model's branch, tag or commit.
        offline: never use the network.

    >>> load().encode(["A cat sits.", "A feline rests."]).shape
    (2, 384)
    """
    settings = EngineSettings(precision, threads, device, runtime, deterministic, long, unknown)
    path = find_model(name_or_folder, revision=revision, offline=offline, trust_pickle=trust_pickle)
    if readout is None:
        refuse_classifier(path)
    folder, is_sentence_model = _read_folder(path, readout, truncate_dim)
    tokenizer = load_tokenizer(folder.backbone, lower_case=folder.lower_case)
    if folder.is_static:
        return _load_static(folder, tokenizer, settings, truncate_dim=truncate_dim, trust_pickle=trust_pickle)
    if folder.is_use:
        return _load_use(folder, settings, truncate_dim)
    encoder = open_encoder(folder, tokenizer, settings, trust_pickle=trust_pickle)
    if not is_sentence_model:
        logger.warning(NOT_A_SENTENCE_MODEL, folder.path, f"The readout {readout}" if readout else "Mean pooling")
    return replace(encoder, truncate_dim=_truncate_dim(folder, encoder.engine, truncate_dim))


def open_encoder(
    folder: ModelFolder,
    tokenizer: Tokenizer,
    settings: EngineSettings,
    *,
    trust_pickle: bool = False,
    codes: Vectors | None = None,
) -> Encoder:
    """The encoder of a Transformer; with the ``codes`` of a poly-encoder, one of queries, ``codes * width`` wide."""
    from twinvec.engine.choose import open_engine  # loads onnxruntime, which static models do not need

    engine = open_engine(folder, tokenizer, settings, trust_pickle=trust_pickle, codes=codes)
    folder.check_unchanged()  # configs, tokenizer and weights were read one after the other
    return Encoder(
        folder=folder,
        tokenizer=tokenizer,
        engine=engine,
        settings=settings,
        max_tokens=_max_tokens(folder, tokenizer, engine),
        _words=WordReader(tokenizer),
        _streams=Streams(settings.n_streams),
    )


def _read_folder(path: Path, readout: str | WKSettings | None, truncate_dim: int | None) -> tuple[ModelFolder, bool]:
    """The folder with the chosen readout, and whether it was a sentence model without it."""
    as_opened = file_states(model_files(path))
    folder = replace(read_model_folder(path), as_opened=as_opened)
    is_sentence_model = folder.is_sentence_model
    if readout is not None:
        folder = with_readout(folder, readout)
    if readout is not None or truncate_dim is not None:
        folder = replace(folder, is_sentence_model=True)  # so that the choice is saved
    return folder, is_sentence_model


def _load_static(
    folder: ModelFolder, tokenizer: Tokenizer, settings: EngineSettings, *, truncate_dim: int | None, trust_pickle: bool
) -> StaticEncoder:
    tokenizer = replace(tokenizer, prefix=(), suffix=())  # static models use no special tokens
    engine, runtime = open_table(folder, settings, trust_pickle=trust_pickle)
    check_vocabulary(folder, tokenizer, engine.n_vocabulary)
    folder.check_unchanged()
    return StaticEncoder(
        folder=folder,
        tokenizer=tokenizer,
        engine=engine,
        settings=settings,
        max_tokens=tokenizer.limit,
        truncate_dim=_truncate_dim(folder, engine, truncate_dim),
        runtime=runtime,
        _words=WordReader(tokenizer),
        _streams=Streams(settings.n_streams),
    )


def _load_use(folder: ModelFolder, settings: EngineSettings, truncate_dim: int | None) -> PieceEncoder:
    from twinvec.engine.use import UseRuntime, read_use  # loads onnxruntime

    if settings.runtime not in ("auto", "onnxruntime"):
        raise InputError(
            f"{folder.path} is a Universal Sentence Encoder, which runs only in onnxruntime, not with "
            f"runtime={settings.runtime!r}.",
            hint="Leave it at its default.",
        )
    if settings.precision != "float32":
        logger.info("%s computes in float32 whatever the precision; only its storage is int8.", folder.path)
    model = read_use(folder.path)
    runtime = UseRuntime(model, device=settings.device)
    engine = Engine(runtime, "float32", runtime.width, model.tokenizer.n_vocabulary, None)
    folder.check_unchanged()
    return PieceEncoder(
        folder=folder,
        tokenizer=model.tokenizer,
        engine=engine,
        settings=settings,
        max_tokens=None,
        truncate_dim=_truncate_dim(folder, engine, truncate_dim),
        _words=WordReader(model.tokenizer),
        _streams=Streams(settings.n_streams),
    )


def check_vocabulary(folder: ModelFolder, tokenizer: Tokenizer, n_vectors: int) -> None:
    """Raise ModelFolderError if the tokenizer has more tokens than the model has vectors."""
    if tokenizer.n_vocabulary > n_vectors:
        raise ModelFolderError(
            f"The tokenizer of {folder.path} has {tokenizer.n_vocabulary} tokens, but the model has vectors for "
            f"{n_vectors}.",
            hint="Tokenizer and weights do not match; download the model again.",
        )


def _max_tokens(folder: ModelFolder, tokenizer: Tokenizer, engine: Engine) -> int:
    check_vocabulary(folder, tokenizer, engine.n_vocabulary)
    limit = min((limit for limit in (folder.max_tokens, engine.n_positions) if limit), default=512)
    if limit <= tokenizer.n_special:
        raise ModelFolderError(f"{folder.path} reads {limit} tokens, which leaves no room for a text.")
    return limit


def _truncate_dim(folder: ModelFolder, engine: Engine, argument: int | None) -> int | None:
    width = folder.truncate_dim if argument is None else argument
    if width is None:
        return None
    is_whole = isinstance(width, (int, np.integer)) and not isinstance(width, bool)
    if not (is_whole and 1 <= width <= engine.width):
        raise InputError(f"truncate_dim must be a whole number from 1 to {engine.width} for this model, got {width!r}.")
    return int(width)
