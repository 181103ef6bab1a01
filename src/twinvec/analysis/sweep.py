"""All readouts of a model, scored on someone's own pairs, and whether the best one wins by more than chance."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from twinvec.analysis.layers import check_has_layers
from twinvec.analysis.readouts import Candidate, ReadVectors, list_candidates, read_vectors, why_not_saved
from twinvec.analysis.saving import Whitening, fit_whitening
from twinvec.data.examples import Examples
from twinvec.encoder import Encoder
from twinvec.errors import InputError
from twinvec.evaluation.resampling import Interval, Resamples, Resampling, interval_of, resample
from twinvec.evaluation.statistics import Outcome
from twinvec.progress import Progress
from twinvec.types import Array
from twinvec.vectors import similarity_pairwise

__all__ = [
    "RESAMPLING",
    "Judged",
    "Lead",
    "Sweep",
    "leads",
    "sweep_readings",
]

Floats = NDArray[np.float64]

LEAST_ERROR = 1e-9  # of a lead in z; what is below is the same ranking
MOST_UNDEFINED = 0.05
HIGHEST = 1 - 1e-9  # a correlation beyond has no finite z


class Lead(NamedTuple):
    """How far a candidate is above the old one, at least how far at the level asked for, and the corrected p value.

    All in the units of the values, but ``p``. ``low`` holds for all candidates at once.
    """

    difference: float
    low: float
    p: float


def leads(old: Resamples, candidates: Sequence[Resamples], *, level: float = 0.95, scale: float = 100.0) -> list[Lead]:
    """The lead of each candidate over the old one, corrected for all of them; correlations times ``scale``."""
    if not candidates:
        return []
    start = _z(np.array([old.value]), scale)
    values = _z(np.array([each.value for each in candidates]), scale) - start
    moved = np.stack([_z(each.replicates, scale) for each in candidates]) - _z(old.replicates, scale)
    moved = moved[:, _checked(moved)]
    errors = moved.std(axis=1)
    is_other = errors > LEAST_ERROR
    leading = np.where(is_other, values, -np.inf) / np.where(is_other, errors, 1.0)
    shifted = (moved[is_other] - moved[is_other].mean(axis=1, keepdims=True)) / errors[is_other, None]
    largest = np.sort(shifted.max(axis=0)) if is_other.any() else np.zeros(moved.shape[1])
    n = len(largest)
    n_higher = n - np.searchsorted(largest, leading, side="left")
    margin = float(np.quantile(largest, level))
    lows = scale * np.tanh(start + values - margin * errors) - old.value
    return [
        Lead(each.value - old.value, float(low) if differs else 0.0, (1 + int(higher)) / (n + 1))
        for each, low, higher, differs in zip(candidates, lows, n_higher, is_other, strict=True)
    ]


def _z(values: Floats, scale: float) -> Floats:
    return np.asarray(np.arctanh(np.clip(values / scale, -HIGHEST, HIGHEST)))


def _checked(moved: Floats) -> NDArray[np.bool_]:
    """Which resamples give every candidate a value."""
    is_defined = np.asarray(np.isfinite(moved).all(axis=0))
    n_undefined = int((~is_defined).sum())
    if n_undefined > MOST_UNDEFINED * len(is_defined):
        raise InputError(
            f"No test: {n_undefined} of {len(is_defined)} resamples have no value, because too few items differ.",
            hint="Give more items.",
        )
    return is_defined


RESAMPLING = Resampling(n_resamples=1000)
PROTOCOL = "Spearman x 100 of cosine"
FEWEST_PAIRS = 20
LEAST_SPREAD = 1e-6  # of cosines in float32; what is less is rounding


@dataclass(frozen=True, eq=False)
class Judged:
    """A candidate with its score, its interval, and its lead over the model's own reading, whose own is 0.

    Where the score is undefined, ``value`` and the rest are None, for the reason in ``problem``. ``why_not_saved`` is
    empty where a model folder can say the candidate.
    """

    candidate: Candidate
    value: float | None
    interval: Interval | None = None
    lead: Lead | None = None
    why_not_saved: str = ""
    problem: str = ""


@dataclass(frozen=True, eq=False)
class Sweep:
    """All candidates judged, the model's own reading first.

    ``whitening`` is that of ``best_saved``, fitted on the texts of the pairs, if that one is whitened.
    """

    model: str
    source: str
    n_pairs: int
    n_texts: int
    n_layers: int
    judged: tuple[Judged, ...]
    resampling: Resampling = RESAMPLING
    whitening: Whitening | None = None

    @property
    def own(self) -> Judged:
        """The model's own reading."""
        return self.judged[0]

    @property
    def ranked(self) -> list[Judged]:
        """Those that have a score, best first; the own one before its equals."""
        return sorted((each for each in self.judged if each.value is not None), key=lambda each: -_value(each))

    @property
    def best(self) -> Judged:
        """The highest score."""
        return self.ranked[0]

    @property
    def best_saved(self) -> Judged:
        """The highest score of those that a model folder can say."""
        return next(each for each in self.ranked if not each.why_not_saved)

    @property
    def n_others(self) -> int:
        """How many candidates stood against the model's own reading."""
        return sum(each.value is not None for each in self.judged) - 1


def _value(judged: Judged) -> float:
    assert judged.value is not None
    return judged.value


def sweep_readings(
    encoder: Encoder,
    pairs: Examples,
    *,
    model: str,
    without: Collection[str] = (),
    resampling: Resampling = RESAMPLING,
    trust_pickle: bool = False,
) -> Sweep:
    """Judge every way to read the model on scored pairs; every different text goes through the model once.

    Args:
        model: what it is called in the results.
        without: parts to leave out: poolings, layers, wk, whitening.
        trust_pickle: also read a Dense layer that is stored as a pickle.
    """
    check_has_layers(encoder)
    gold = _gold(pairs)
    n_layers = len(encoder.encode_layers("a", prompt="")[0]) - 1
    candidates = list_candidates(encoder.folder, n_layers, without=without)
    readings = list(dict.fromkeys(each.reading for each in candidates))
    with read_vectors(encoder, pairs.texts, readings, trust_pickle=trust_pickle) as vectors:
        cosines = {each: _cosines(vectors, each, pairs) for each in _told(candidates)}
        judged = [
            replace(each, why_not_saved=why_not_saved(each.candidate.reading, encoder.folder, n_layers))
            for each in _judge(cosines, gold, pairs.name, resampling)
        ]
        found = Sweep(model, pairs.name, len(pairs), len(pairs.texts), n_layers, tuple(judged), resampling)
        chosen = found.best_saved.candidate
        return replace(found, whitening=fit_whitening(vectors.of(chosen.reading)) if chosen.is_whitened else None)


def _gold(pairs: Examples) -> Array:
    if pairs.kind != "scored_pairs" or pairs.targets is None:
        raise InputError(f"A sweep needs scored pairs, but {pairs.name} holds {pairs.kind}.")
    if len(pairs) < FEWEST_PAIRS:
        raise InputError(
            f"{pairs.name} has {len(pairs)} pairs, too few to choose by.", hint=f"Give at least {FEWEST_PAIRS}."
        )
    if pairs.targets.min() == pairs.targets.max():
        raise InputError(f"All {len(pairs)} scores of {pairs.name} are equal: nothing correlates with them.")
    return pairs.targets.astype(np.float64)


def _told(candidates: Sequence[Candidate]) -> Iterator[Candidate]:
    with Progress(len(candidates), "comparing") as bar:
        for each in candidates:
            yield each
            bar.advance(1)


def _cosines(vectors: ReadVectors, candidate: Candidate, pairs: Examples) -> Array | None:
    """The cosine of every pair, ``(pairs,)``; None where all are equal, as those of [CLS] in the embeddings."""
    found = vectors.of(candidate.reading)
    if candidate.is_whitened:
        try:
            found = fit_whitening(found)(found)
        except InputError:
            return None
    cosines = similarity_pairwise(found[pairs.indices["text1"]], found[pairs.indices["text2"]])
    return cosines if np.ptp(cosines) > LEAST_SPREAD else None


def _judge(
    cosines: Mapping[Candidate, Array | None], gold: Array, name: str, resampling: Resampling
) -> Iterator[Judged]:
    defined = {each: values for each, values in cosines.items() if values is not None}
    if next(iter(cosines)) not in defined:
        raise InputError(
            f"The model's own reading gives every pair of {name} the same cosine.", hint="Sweep another model."
        )
    outcomes = [Outcome(name, PROTOCOL, "spearman", values, gold) for values in defined.values()]
    drawn = dict(zip(defined, resample(outcomes, resampling), strict=True))
    own, *others = drawn.values()
    found = dict(zip(defined, [Lead(0.0, 0.0, 1.0), *leads(own, others, level=resampling.level)], strict=True))
    for each in cosines:
        if each in drawn:
            yield Judged(each, drawn[each].value, interval_of(drawn[each], level=resampling.level), found[each])
        else:
            yield Judged(each, None, problem="all pairs have the same cosine")
