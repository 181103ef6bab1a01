"""Score all readouts of a model on scored pairs, and test whether the best one wins by more than chance."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from twinvec.analysis.layers import check_has_layers, open_model, short_names
from twinvec.analysis.readouts import Candidate, ReadVectors, list_candidates, read_vectors, why_not_saved
from twinvec.analysis.saving import fit_whitening, save_readout
from twinvec.analysis.sweep_result import PROTOCOL, SWEEP_RESAMPLING, Lead, Scored, Sweep, sweep_card
from twinvec.choices import DEFAULT_SCORE_RANGE
from twinvec.data.examples import Examples, read_examples
from twinvec.data.roles import DataSource
from twinvec.embedder import Embedder, ModelLike
from twinvec.encoder import Encoder
from twinvec.errors import InputError
from twinvec.evaluation.resampling import Resamples, Resampling, interval_of, resample
from twinvec.evaluation.statistics import Outcome
from twinvec.files import is_taken
from twinvec.progress import Progress
from twinvec.types import Array
from twinvec.vectors import similarity_pairwise

__all__ = ["leads", "sweep", "sweep_readouts"]

Floats = NDArray[np.float64]

MIN_ERROR = 1e-9  # standard error of a lead in z; anything below is the same ranking
MAX_UNDEFINED = 0.05
MAX_CORRELATION = 1 - 1e-9  # above it, z is not finite


def leads(old: Resamples, candidates: Sequence[Resamples], *, level: float = 0.95, scale: float = 100.0) -> list[Lead]:
    """The lead of each candidate over the old one, corrected for multiple comparisons; correlations times ``scale``."""
    if not candidates:
        return []
    start = _z(np.array([old.value]), scale)
    values = _z(np.array([each.value for each in candidates]), scale) - start
    moved = np.stack([_z(each.replicates, scale) for each in candidates]) - _z(old.replicates, scale)
    moved = moved[:, _is_defined(moved)]
    errors = moved.std(axis=1)
    is_other = errors > MIN_ERROR
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
    return np.asarray(np.arctanh(np.clip(values / scale, -MAX_CORRELATION, MAX_CORRELATION)))


def _is_defined(moved: Floats) -> NDArray[np.bool_]:
    """Which resamples give every candidate a value."""
    is_defined = np.asarray(np.isfinite(moved).all(axis=0))
    n_undefined = int((~is_defined).sum())
    if n_undefined > MAX_UNDEFINED * len(is_defined):
        raise InputError(
            f"The test is undefined: {n_undefined} of {len(is_defined)} resamples have no value, because too few items "
            "differ.",
            hint="Use more items.",
        )
    return is_defined


MIN_PAIRS = 20
MIN_SPREAD = 1e-6  # of cosines in float32; anything below is rounding error


def sweep(
    model: ModelLike | Embedder,
    pairs: Examples | DataSource | str | os.PathLike[str],
    *,
    without: Collection[str] = (),
    seed: int = 0,
    save: str | os.PathLike[str] | None = None,
    tell: Callable[[str], None] | None = None,
) -> Sweep:
    r"""Score every readout of a model on scored pairs: Spearman of cosine and score.

    Readouts are poolings of each layer and of some averages of layers, settings of SBERT-WK, and all of these whitened.
    The result says whether the best readout beats the model's own by more than chance, corrected for the selection.
    Each distinct text goes through the model once.

    Args:
        model: a name, a folder, an encoder, or a :class:`~twinvec.embedder.ModelEmbedder`.
        pairs: a file with the columns text1, text2 and score (0 to 5), a ``DataSource``, or pairs already read.
        without: parts to leave out: poolings, layers, wk, whitening.
        seed: seed of the resamples.
        save: a new folder for a model with the best readout that a model folder can store.
        tell: called with a message about what was saved.

    >>> import tempfile
    >>> rows = [f"{n % 6}\tA cat and {n} dogs.\tA cat and {n * n} birds." for n in range(25)]
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = Path(folder, "pairs.tsv")
    ...     _ = file.write_text("\n".join(["score\ttext1\ttext2", *rows]))
    ...     found = sweep("twinvec-mini", file, without=["layers", "wk", "whitening"])
    >>> found.own.candidate.name, len(found.ranked)
    ('mean of layer 4', 5)
    """
    if save is not None and is_taken(Path(save)):
        raise InputError(f"{save} exists already.", hint="Choose another name, or remove it first.")
    if isinstance(pairs, (str, os.PathLike)):
        pairs = DataSource(os.fspath(pairs), "scored_pairs", score_range=DEFAULT_SCORE_RANGE)
    examples = pairs if isinstance(pairs, Examples) else read_examples(pairs)
    opened = open_model(model)
    is_trusted = bool(opened.arguments.get("trust_pickle"))
    found = sweep_readouts(
        opened.encoder,
        examples,
        model=short_names([opened.model])[0],
        without=without,
        resampling=replace(SWEEP_RESAMPLING, seed=seed),
        trust_pickle=is_trusted,
    )
    if save is not None:
        message = save_best(opened.encoder, found, Path(save), trust_pickle=is_trusted)
        if tell is not None:
            tell(message)
    return found


def save_best(encoder: Encoder, found: Sweep, target: Path, *, trust_pickle: bool = False) -> str:
    """Save the best readout that a model folder can store; return a message about it."""
    chosen = found.best_saved
    lost = "" if found.best is chosen else f"{found.best.candidate.name} cannot be saved: {found.best.why_not_saved}. "
    if chosen is found.own:
        encoder.save(target)
        return f"{lost}Saved {target}: the unchanged model, because no readout that can be saved scores higher."
    card = sweep_card(found, target.name)
    save_readout(encoder, chosen.candidate, target, card=card, whitening=found.whitening, trust_pickle=trust_pickle)
    return f"{lost}Saved {target}: {chosen.candidate.name}, score {chosen.value:.2f}."


def sweep_readouts(
    encoder: Encoder,
    pairs: Examples,
    *,
    model: str,
    without: Collection[str] = (),
    resampling: Resampling = SWEEP_RESAMPLING,
    trust_pickle: bool = False,
) -> Sweep:
    """Score every readout of the model on scored pairs; each distinct text goes through the model once.

    Args:
        model: the name of the model in the results.
        without: parts to leave out: poolings, layers, wk, whitening.
        trust_pickle: also read a Dense layer that is stored as a pickle.
    """
    check_has_layers(encoder)
    gold = _gold(pairs)
    n_layers = len(encoder.encode_layers("a", prompt="")[0]) - 1
    candidates = list_candidates(encoder.folder, n_layers, without=without)
    readouts = list(dict.fromkeys(each.readout for each in candidates))
    with read_vectors(encoder, pairs.texts, readouts, trust_pickle=trust_pickle) as vectors:
        cosines = {each: _cosines(vectors, each, pairs) for each in _counted(candidates)}
        scored = [
            replace(each, why_not_saved=why_not_saved(each.candidate.readout, encoder.folder, n_layers))
            for each in _score(cosines, gold, pairs.name, resampling)
        ]
        found = Sweep(model, pairs.name, len(pairs), len(pairs.texts), n_layers, tuple(scored), resampling)
        chosen = found.best_saved.candidate
        return replace(found, whitening=fit_whitening(vectors.of(chosen.readout)) if chosen.is_whitened else None)


def _gold(pairs: Examples) -> Array:
    if pairs.kind != "scored_pairs" or pairs.targets is None:
        raise InputError(f"A sweep requires scored pairs, but {pairs.name} has {pairs.kind}.")
    if len(pairs) < MIN_PAIRS:
        raise InputError(
            f"{pairs.name} has {len(pairs)} pairs, too few for a sweep.", hint=f"Use at least {MIN_PAIRS} pairs."
        )
    if pairs.targets.min() == pairs.targets.max():
        raise InputError(f"All {len(pairs)} scores of {pairs.name} are equal, so the correlation is undefined.")
    return pairs.targets.astype(np.float64)


def _counted(candidates: Sequence[Candidate]) -> Iterator[Candidate]:
    with Progress(len(candidates), "comparing") as bar:
        for each in candidates:
            yield each
            bar.advance(1)


def _cosines(vectors: ReadVectors, candidate: Candidate, pairs: Examples) -> Array | None:
    """The cosine of every pair, ``(pairs,)``; None if all are equal, as for [CLS] in the embeddings."""
    rows = vectors.of(candidate.readout)
    if candidate.is_whitened:
        try:
            rows = fit_whitening(rows)(rows)
        except InputError:
            return None
    cosines = similarity_pairwise(rows[pairs.indices["text1"]], rows[pairs.indices["text2"]])
    return cosines if np.ptp(cosines) > MIN_SPREAD else None


def _score(
    cosines: Mapping[Candidate, Array | None], gold: Array, name: str, resampling: Resampling
) -> Iterator[Scored]:
    defined = {each: values for each, values in cosines.items() if values is not None}
    if next(iter(cosines)) not in defined:
        raise InputError(
            f"The model's own readout gives every pair of {name} the same cosine.", hint="Sweep another model."
        )
    outcomes = [Outcome(name, PROTOCOL, "spearman", values, gold) for values in defined.values()]
    drawn = dict(zip(defined, resample(outcomes, resampling), strict=True))
    own, *others = drawn.values()
    lead_of = dict(zip(defined, [Lead(0.0, 0.0, 1.0), *leads(own, others, level=resampling.level)], strict=True))
    for each in cosines:
        if each in drawn:
            yield Scored(each, drawn[each].value, interval_of(drawn[each], level=resampling.level), lead_of[each])
        else:
            yield Scored(each, None, problem="all pairs have the same cosine")
