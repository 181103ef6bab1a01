"""Vectors of some texts by many readings, from one pass through the model.

The states of a batch are read in all ways at once and forgotten; the vectors go to a file, which is mapped into memory,
so that memory grows neither with the texts nor with the readings.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from twinvec.encoder import Encoder, LayerBatch
from twinvec.engine.model import build_heads
from twinvec.engine.onnx_runtime import open_session
from twinvec.engine.weights import read_weights
from twinvec.errors import InputError
from twinvec.lab.pooling import pool
from twinvec.lab.readings import Reading
from twinvec.model_folder import Module, Pooling
from twinvec.progress import Progress
from twinvec.types import Vectors
from twinvec.wk import layer_cosines, sentence_vectors

__all__ = ["ReadVectors", "read_batch", "read_vectors"]

TEXTS_PER_BLOCK = 1024
MOST_OF_DISK = 0.9


class ReadVectors:
    """The vectors of the same texts by every reading, on the disk. Made by :func:`read_vectors`."""

    def __init__(self, encoder: Encoder, files: Mapping[Reading, Vectors], *, trust_pickle: bool) -> None:
        self._encoder, self._files, self._trust_pickle = encoder, files, trust_pickle
        self._heads: dict[int, Any] = {}  # by the width that they read

    def of(self, reading: Reading) -> Vectors:
        """What the model would give for the texts with this reading: ``(texts, width)``.

        What stands behind the pooling is run, and vectors are cut as the model's own are.
        """
        vectors: Vectors = np.array(self._files[reading])
        behind = self._encoder.folder.modules[1:]
        if behind:
            if vectors.shape[1] not in self._heads:
                self._heads[vectors.shape[1]] = self._open_heads(behind, vectors.shape[1])
            vectors = self._heads[vectors.shape[1]].run(None, {"states": vectors})[0]
        return vectors[:, : self._encoder.truncate_dim] if self._encoder.truncate_dim else vectors

    def _open_heads(self, behind: tuple[Module, ...], width: int) -> Any:  # noqa: ANN401 - a compiled type without stubs
        folder = replace(self._encoder.folder, modules=(Pooling(), *behind))
        heads = open_session(build_heads(folder, width, partial(read_weights, trust_pickle=self._trust_pickle)))
        folder.check_unchanged()  # what was read now must be what was loaded
        return heads


@contextmanager
def read_vectors(
    encoder: Encoder, texts: Sequence[str], readings: Sequence[Reading], *, trust_pickle: bool = False
) -> Iterator[ReadVectors]:
    """Read the vectors of all texts in all ways; they are gone when the block ends."""
    width = encoder.encode_layers("a", prompt="")[0].shape[-1]
    widths = [width if reading.wk is not None else width * len(reading.modes) for reading in readings]
    with tempfile.TemporaryDirectory(prefix="twinvec-sweep-", ignore_cleanup_errors=True) as place:
        _check_room(Path(place), 4 * len(texts) * sum(widths), n_texts=len(texts), n_readings=len(readings))
        files: dict[Reading, Vectors] = {
            reading: np.memmap(Path(place, str(number)), np.float32, "w+", shape=(len(texts), each))
            for number, (reading, each) in enumerate(zip(readings, widths, strict=True))
        }
        _fill(encoder, texts, files)
        yield ReadVectors(encoder, files, trust_pickle=trust_pickle)


def _fill(encoder: Encoder, texts: Sequence[str], files: Mapping[Reading, Vectors]) -> None:
    source = iter(texts)
    n_before = 0
    with Progress(len(texts), "reading layers") as bar:

        def keep(batch: LayerBatch, n_before: int) -> None:
            owners = np.array(batch.owners) + n_before
            for file, vectors in zip(files.values(), read_batch(batch, list(files)), strict=True):
                file[owners] = vectors
            bar.advance(len(owners))

        while block := list(islice(source, TEXTS_PER_BLOCK)):
            encoder.visit_layers(block, partial(keep, n_before=n_before))
            n_before += len(block)


def read_batch(batch: LayerBatch, readings: Sequence[Reading]) -> Iterator[Vectors]:
    """The vectors of a batch of texts by each reading, ``(batch, width)``, before what stands behind the pooling."""
    sets = list(dict.fromkeys(reading.layers for reading in readings if reading.wk is None))
    mask = batch.tokens.pool_mask
    pooled: dict[tuple[str, ...], dict[tuple[int, ...], Vectors]] = {}
    if sets:
        # averaged once for all poolings, which then run over all sets of layers together
        states = np.stack([batch.layers[list(each)].mean(axis=0) for each in sets])
        for modes in dict.fromkeys(reading.modes for reading in readings if reading.wk is None):
            pooled[modes] = dict(zip(sets, pool(states, mask, modes), strict=True))
    known = layer_cosines(batch.layers) if any(reading.wk is not None for reading in readings) else None
    for reading in readings:
        if reading.wk is not None:
            yield sentence_vectors(batch.layers, mask, reading.wk, known=known)
        else:
            yield pooled[reading.modes][reading.layers]


def _check_room(place: Path, n_bytes: int, *, n_texts: int, n_readings: int) -> None:
    free = shutil.disk_usage(place).free
    if n_bytes > MOST_OF_DISK * free:
        raise InputError(
            f"The vectors of {n_texts:,} texts by {n_readings} readings take {n_bytes / 1e9:.1f} GB; "
            f"{place.parent} has {free / 1e9:.1f} GB.",
            hint="Take fewer pairs, leave out a part of the sweep, or name a larger folder in TMPDIR.",
        )
