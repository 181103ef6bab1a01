"""The ways to read a text's vector out of a model's layers, and which of them a model folder can say."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace

from twinvec.engine.config import Backbone, is_supported, read_backbone
from twinvec.errors import UnknownNameError
from twinvec.model_folder import WK, Dense, LayerNorm, ModelFolder
from twinvec.wk import WKSettings

__all__ = ["PARTS", "Candidate", "Reading", "list_candidates", "own_reading", "why_not_saved"]

# By cosine, mean_sqrt_len_tokens is the same as mean, so it is not among them.
POOLINGS = (("mean",), ("cls",), ("max",), ("weightedmean",), ("lasttoken",))
PARTS = ("poolings", "layers", "wk", "whitening")  # what a sweep is made of, and what can be left out of it
CUT_FAMILIES = ("bert", "roberta", "distilbert", "mpnet", "electra", "albert")  # whose last layer needs no other part


@dataclass(frozen=True, slots=True)
class Reading:
    """The mean of some ``layers``, 0 being the embeddings, pooled by ``modes``; or SBERT-WK where ``wk`` is set."""

    modes: tuple[str, ...] = ()
    layers: tuple[int, ...] = ()
    wk: WKSettings | None = None

    @property
    def name(self) -> str:
        """For people.

        >>> Reading(("mean",), (1, 6)).name, Reading(wk=WKSettings("reference", 2)).name
        ('mean of layers 1 and 6', 'wk reference, from layer 2, window 2, omega 0.5')
        """
        if self.wk is not None:
            first, window, omega = self.wk.layer_start, self.wk.window, self.wk.omega
            return f"wk {self.wk.mode}, from layer {first}, window {window}, omega {omega:g}"
        return f"{'+'.join(self.modes)} of {layers_name(self.layers)}"


@dataclass(frozen=True, slots=True)
class Candidate:
    """A reading, whitened or not."""

    reading: Reading
    is_whitened: bool = False

    @property
    def name(self) -> str:
        """For people."""
        return self.reading.name + ", whitened" * self.is_whitened


def layers_name(layers: Sequence[int]) -> str:
    """Some layers in words.

    >>> layers_name((4,)), layers_name((1, 6)), layers_name((1, 2, 3))
    ('layer 4', 'layers 1 and 6', 'layers 1 to 3')
    """
    if len(layers) == 1:
        return f"layer {layers[0]}"
    return f"layers {layers[0]} and {layers[1]}" if len(layers) == 2 else f"layers {layers[0]} to {layers[-1]}"


def own_reading(folder: ModelFolder, n_layers: int) -> Reading:
    """How the model reads its vectors itself."""
    if isinstance(folder.readout, WK):
        return Reading(wk=_settled(folder.readout.settings, n_layers))
    return Reading(folder.readout.modes, (n_layers,))


def list_candidates(folder: ModelFolder, n_layers: int, *, without: Collection[str] = ()) -> list[Candidate]:
    """All candidates for a model, its own reading first; ``without`` names parts that are left out."""
    for part in without:
        if part not in PARTS:
            raise UnknownNameError("part of a sweep", part, PARTS)
    own = own_reading(folder, n_layers)
    readings = dict.fromkeys((own, *_fitting(folder, _readings(own, n_layers, without))))
    kinds = (False,) if "whitening" in without else (False, True)
    return [Candidate(reading, is_whitened) for reading in readings for is_whitened in kinds]


def _readings(own: Reading, n_layers: int, without: Collection[str]) -> Iterator[Reading]:
    poolings: tuple[tuple[str, ...], ...] = POOLINGS if own.wk is not None else (own.modes, *POOLINGS)
    if "poolings" in without:
        poolings = poolings[:1]
    for modes in poolings:
        for layers in [(n_layers,)] if "layers" in without else layer_sets(n_layers):
            yield Reading(modes, layers)
    if "wk" not in without:
        for settings in wk_choices(n_layers):
            yield Reading(wk=settings)


def layer_sets(n_layers: int) -> list[tuple[int, ...]]:
    """Each layer, the last two, the first and the last, and all; averages leave the embeddings out.

    >>> layer_sets(3)
    [(0,), (1,), (2,), (3,), (2, 3), (1, 3), (1, 2, 3)]
    """
    single = [(layer,) for layer in range(n_layers + 1)]
    averages = [(n_layers - 1, n_layers), (1, n_layers), tuple(range(1, n_layers + 1))]
    return list(dict.fromkeys([*single, *(layers for layers in averages if layers[0] >= 1 and len(set(layers)) > 1)]))


def wk_choices(n_layers: int) -> list[WKSettings]:
    """The paper's settings and the authors' code's, and one changed at a time: omega, window, the first layer."""
    usual = WKSettings(layer_start=WKSettings().start(n_layers))
    changed = [
        usual,
        replace(usual, mode="reference"),
        replace(usual, omega=0.0),
        replace(usual, omega=1.0),
        replace(usual, window=1),
        replace(usual, window=4),
        replace(usual, layer_start=0),
        replace(usual, layer_start=2 * n_layers // 3),
    ]
    return list(dict.fromkeys(changed))


def _settled(settings: WKSettings, n_layers: int) -> WKSettings:
    """The same settings with their first layer as a number."""
    return replace(settings, layer_start=settings.start(n_layers))


def _fitting(folder: ModelFolder, readings: Iterator[Reading]) -> Iterator[Reading]:
    """Those as wide as what stands behind the pooling asks for, if anything there has a width."""
    has_width = any(isinstance(module, (Dense, LayerNorm)) for module in folder.modules[1:])
    wanted = 1 if isinstance(folder.readout, WK) else len(folder.readout.modes)
    for reading in readings:
        if not has_width or (1 if reading.wk is not None else len(reading.modes)) == wanted:
            yield reading


def why_not_saved(reading: Reading, folder: ModelFolder, n_layers: int) -> str:
    """Why a model folder cannot say this reading; empty if it can."""
    if reading.wk is not None or reading.layers == (n_layers,):
        return ""
    if len(reading.layers) > 1:
        return "no module of a model folder averages layers"
    if reading.layers == (0,):
        return "a model of no layers is none"
    if is_supported(folder.config) and _is_cut(read_backbone(folder.config)):
        return ""
    return f"the last layers of such a {folder.config.get('model_type')!r} model cannot be cut off"


def _is_cut(backbone: Backbone) -> bool:
    """Whether the first layers alone give the same states: none after the last one, and no shares among layers."""
    return backbone.family in CUT_FAMILIES and (backbone.family != "albert" or len(set(backbone.blocks)) == 1)
