"""All readouts of a model (poolings of layers, SBERT-WK), computed in one pass over the texts."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from twinvec.choices import SWEEP_PARTS
from twinvec.encoder import Encoder, LayerBatch
from twinvec.engine.config import Backbone, is_supported, read_backbone
from twinvec.engine.model import build_heads
from twinvec.engine.runtimes import open_session
from twinvec.engine.weights import read_weights
from twinvec.errors import InputError, UnknownNameError
from twinvec.model.folder import WK, Dense, LayerNorm, ModelFolder, Module, Pooling
from twinvec.progress import Progress
from twinvec.types import Ids, Vectors
from twinvec.wk import WKSettings, layer_cosines, sentence_vectors

__all__ = ["Candidate", "ReadVectors", "Readout", "list_candidates", "read_vectors", "why_not_saved"]

Weights = NDArray[np.float32]  # (texts, tokens)


def pool(states: Vectors, mask: Ids, modes: tuple[str, ...]) -> Vectors:
    """Pooled states; several modes are concatenated in order.

    >>> states = np.array([[[1.0], [3.0], [99.0]]], dtype=np.float32)
    >>> pool(states, np.array([[1, 1, 0]]), ("mean", "max")).tolist()
    [[2.0, 3.0]]
    """
    return np.concatenate([POOLERS[mode](states, mask) for mode in modes], axis=-1)


def _sum(states: Vectors, weights: Weights) -> Vectors:
    return np.asarray((weights[:, None, :] @ states)[..., 0, :])


def _total(weights: Weights) -> Weights:
    # at least 1, because a text may have only prompt tokens
    return np.asarray(np.maximum(weights.sum(axis=1, keepdims=True), 1))


def _mean(states: Vectors, mask: Ids) -> Vectors:
    weights = mask.astype(np.float32)
    return np.asarray(_sum(states, weights) / _total(weights))


def _mean_sqrt(states: Vectors, mask: Ids) -> Vectors:
    weights = mask.astype(np.float32)
    return np.asarray(_sum(states, weights) / np.sqrt(_total(weights)))


def _weighted_mean(states: Vectors, mask: Ids) -> Vectors:
    weights = mask.astype(np.float32) * np.arange(1, mask.shape[1] + 1, dtype=np.float32)
    return np.asarray(_sum(states, weights) / _total(weights))


def _max(states: Vectors, mask: Ids) -> Vectors:
    lowest = np.finfo(np.float32).min
    return np.asarray(np.where(mask[:, :, None] == 1, states, lowest).max(axis=-2))


def _first(states: Vectors, mask: Ids) -> Vectors:
    return np.asarray(states[..., np.arange(len(mask)), mask.argmax(axis=1), :])


def _last(states: Vectors, mask: Ids) -> Vectors:
    last = (mask * np.arange(1, mask.shape[1] + 1)).argmax(axis=1)
    return np.asarray(states[..., np.arange(len(mask)), last, :])


POOLERS: dict[str, Callable[[Vectors, Ids], Vectors]] = {
    "cls": _first,
    "max": _max,
    "mean": _mean,
    "mean_sqrt_len_tokens": _mean_sqrt,
    "weightedmean": _weighted_mean,
    "lasttoken": _last,
}


# Without mean_sqrt_len_tokens, which has the same cosines as mean.
POOLINGS = (("mean",), ("cls",), ("max",), ("weightedmean",), ("lasttoken",))
CUT_FAMILIES = ("bert", "roberta", "distilbert", "mpnet", "electra", "albert")  # no module follows the last layer


@dataclass(frozen=True, slots=True)
class Readout:
    """The mean of some ``layers`` (0 is the embeddings), pooled by ``modes``; or SBERT-WK if ``wk`` is set."""

    modes: tuple[str, ...] = ()
    layers: tuple[int, ...] = ()
    wk: WKSettings | None = None

    @property
    def name(self) -> str:
        """The name in reports.

        >>> Readout(("mean",), (1, 6)).name, Readout(wk=WKSettings("reference", 2)).name
        ('mean of layers 1 and 6', 'wk reference, from layer 2, window 2, omega 0.5')
        """
        if self.wk is not None:
            first, window, omega = self.wk.layer_start, self.wk.window, self.wk.omega
            return f"wk {self.wk.mode}, from layer {first}, window {window}, omega {omega:g}"
        return f"{'+'.join(self.modes)} of {layers_name(self.layers)}"


@dataclass(frozen=True, slots=True)
class Candidate:
    """A readout, whitened or not."""

    readout: Readout
    is_whitened: bool = False

    @property
    def name(self) -> str:
        """The name in reports."""
        return self.readout.name + ", whitened" * self.is_whitened


def layers_name(layers: Sequence[int]) -> str:
    """The name of a set of layers.

    >>> layers_name((4,)), layers_name((1, 6)), layers_name((1, 2, 3))
    ('layer 4', 'layers 1 and 6', 'layers 1 to 3')
    """
    if len(layers) == 1:
        return f"layer {layers[0]}"
    return f"layers {layers[0]} and {layers[1]}" if len(layers) == 2 else f"layers {layers[0]} to {layers[-1]}"


def own_readout(folder: ModelFolder, n_layers: int) -> Readout:
    """The model's own readout."""
    if isinstance(folder.readout, WK):
        settings = folder.readout.settings
        return Readout(wk=replace(settings, layer_start=settings.start(n_layers)))
    return Readout(folder.readout.modes, (n_layers,))


def list_candidates(folder: ModelFolder, n_layers: int, *, without: Collection[str] = ()) -> list[Candidate]:
    """All candidates for a model, its own readout first, except the parts in ``without``."""
    for part in without:
        if part not in SWEEP_PARTS:
            raise UnknownNameError("part of a sweep", part, SWEEP_PARTS)
    own = own_readout(folder, n_layers)
    readouts = dict.fromkeys((own, *_compatible(folder, _readouts(own, n_layers, without))))
    kinds = (False,) if "whitening" in without else (False, True)
    return [Candidate(readout, is_whitened) for readout in readouts for is_whitened in kinds]


def _readouts(own: Readout, n_layers: int, without: Collection[str]) -> Iterator[Readout]:
    poolings: tuple[tuple[str, ...], ...] = POOLINGS if own.wk is not None else (own.modes, *POOLINGS)
    if "poolings" in without:
        poolings = poolings[:1]
    for modes in poolings:
        for layers in [(n_layers,)] if "layers" in without else layer_sets(n_layers):
            yield Readout(modes, layers)
    if "wk" not in without:
        for settings in wk_choices(n_layers):
            yield Readout(wk=settings)


def layer_sets(n_layers: int) -> list[tuple[int, ...]]:
    """Each layer, the last two, the first and last, and all; averages exclude the embeddings.

    >>> layer_sets(3)
    [(0,), (1,), (2,), (3,), (2, 3), (1, 3), (1, 2, 3)]
    """
    single = [(layer,) for layer in range(n_layers + 1)]
    averages = [(n_layers - 1, n_layers), (1, n_layers), tuple(range(1, n_layers + 1))]
    return list(dict.fromkeys([*single, *(layers for layers in averages if layers[0] >= 1 and len(set(layers)) > 1)]))


def wk_choices(n_layers: int) -> list[WKSettings]:
    """The settings of the paper and of the authors' code, then one change at a time: omega, window, first layer."""
    default = WKSettings(layer_start=WKSettings().start(n_layers))
    changed = [
        default,
        replace(default, mode="reference"),
        replace(default, omega=0.0),
        replace(default, omega=1.0),
        replace(default, window=1),
        replace(default, window=4),
        replace(default, layer_start=0),
        replace(default, layer_start=2 * n_layers // 3),
    ]
    return list(dict.fromkeys(changed))


def _compatible(folder: ModelFolder, readouts: Iterator[Readout]) -> Iterator[Readout]:
    """The readouts whose width suits the modules after the pooling; any width if none of them has a fixed one."""
    has_width = any(isinstance(module, (Dense, LayerNorm)) for module in folder.modules[1:])
    n_modes = 1 if isinstance(folder.readout, WK) else len(folder.readout.modes)
    for readout in readouts:
        if not has_width or (1 if readout.wk is not None else len(readout.modes)) == n_modes:
            yield readout


def why_not_saved(readout: Readout, folder: ModelFolder, n_layers: int) -> str:
    """The reason why a model folder cannot store this readout; empty if it can."""
    if readout.wk is not None or readout.layers == (n_layers,):
        return ""
    if len(readout.layers) > 1:
        return "no module of a model folder averages layers"
    if readout.layers == (0,):
        return "a model needs at least one layer"
    if is_supported(folder.config) and _can_drop_layers(read_backbone(folder.config)):
        return ""
    return f"the last layers of a {folder.config.get('model_type')!r} model like this cannot be removed"


def _can_drop_layers(backbone: Backbone) -> bool:
    """Whether the first layers alone give the same states: no module follows the last layer, no partial sharing."""
    return backbone.family in CUT_FAMILIES and (backbone.family != "albert" or len(set(backbone.blocks)) == 1)


TEXTS_PER_BLOCK = 1024
MAX_DISK_SHARE = 0.9


class ReadVectors:
    """The vectors of the same texts for every readout, on disk. Returned by :func:`read_vectors`."""

    def __init__(self, encoder: Encoder, files: Mapping[Readout, Vectors], *, trust_pickle: bool) -> None:
        self._encoder, self._files, self._trust_pickle = encoder, files, trust_pickle
        self._heads: dict[int, Any] = {}  # by input width

    def of(self, readout: Readout) -> Vectors:
        """The model's vectors of the texts with this readout: ``(texts, width)``.

        Runs the modules after the pooling and truncates as the model does.
        """
        vectors: Vectors = np.array(self._files[readout])
        later = self._encoder.folder.modules[1:]
        if later:
            if vectors.shape[1] not in self._heads:
                self._heads[vectors.shape[1]] = self._open_heads(later, vectors.shape[1])
            vectors = self._heads[vectors.shape[1]].run(None, {"states": vectors})[0]
        return vectors[:, : self._encoder.truncate_dim] if self._encoder.truncate_dim else vectors

    def _open_heads(self, later: tuple[Module, ...], width: int) -> Any:  # noqa: ANN401 - a compiled type without stubs
        folder = replace(self._encoder.folder, modules=(Pooling(), *later))
        heads = open_session(build_heads(folder, width, partial(read_weights, trust_pickle=self._trust_pickle)))
        folder.check_unchanged()  # the files must not have changed since the model was loaded
        return heads


@contextmanager
def read_vectors(
    encoder: Encoder, texts: Sequence[str], readouts: Sequence[Readout], *, trust_pickle: bool = False
) -> Iterator[ReadVectors]:
    """Compute the vectors of all texts with all readouts; they are deleted when the block ends."""
    width = encoder.encode_layers("a", prompt="")[0].shape[-1]
    widths = [width if readout.wk is not None else width * len(readout.modes) for readout in readouts]
    with tempfile.TemporaryDirectory(prefix="twinvec-sweep-", ignore_cleanup_errors=True) as folder:
        _check_room(Path(folder), 4 * len(texts) * sum(widths), n_texts=len(texts), n_readouts=len(readouts))
        files: dict[Readout, Vectors] = {
            readout: np.memmap(Path(folder, str(number)), np.float32, "w+", shape=(len(texts), each))
            for number, (readout, each) in enumerate(zip(readouts, widths, strict=True))
        }
        _fill(encoder, texts, files)
        yield ReadVectors(encoder, files, trust_pickle=trust_pickle)


def _fill(encoder: Encoder, texts: Sequence[str], files: Mapping[Readout, Vectors]) -> None:
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


def read_batch(batch: LayerBatch, readouts: Sequence[Readout]) -> Iterator[Vectors]:
    """Yield the vectors of a batch for each readout, ``(batch, width)``, before the modules after the pooling."""
    sets = list(dict.fromkeys(readout.layers for readout in readouts if readout.wk is None))
    mask = batch.tokens.pool_mask
    pooled: dict[tuple[str, ...], dict[tuple[int, ...], Vectors]] = {}
    if sets:
        # Average once for all poolings, which then run on all sets of layers together.
        states = np.stack([batch.layers[list(each)].mean(axis=0) for each in sets])
        for modes in dict.fromkeys(readout.modes for readout in readouts if readout.wk is None):
            pooled[modes] = dict(zip(sets, pool(states, mask, modes), strict=True))
    known = layer_cosines(batch.layers) if any(readout.wk is not None for readout in readouts) else None
    for readout in readouts:
        if readout.wk is not None:
            yield sentence_vectors(batch.layers, mask, readout.wk, known=known)
        else:
            yield pooled[readout.modes][readout.layers]


def _check_room(folder: Path, n_bytes: int, *, n_texts: int, n_readouts: int) -> None:
    free = shutil.disk_usage(folder).free
    if n_bytes > MAX_DISK_SHARE * free:
        raise InputError(
            f"The vectors of {n_texts:,} texts for {n_readouts} readouts need {n_bytes / 1e9:.1f} GB; "
            f"{folder.parent} has {free / 1e9:.1f} GB free.",
            hint="Use fewer pairs, leave out a part of the sweep, or set TMPDIR to a larger folder.",
        )
