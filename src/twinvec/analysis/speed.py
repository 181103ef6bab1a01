"""The speed of a model on this machine, and the accuracy of each precision."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from statistics import median

from twinvec.analysis.layers import open_model
from twinvec.choices import DEFAULT_MODEL, PRECISIONS
from twinvec.embedder import Embedder, ModelEmbedder, ModelLike
from twinvec.encoder import Encoder
from twinvec.engine.calibration import sample_texts
from twinvec.errors import DeviceError, MissingExtraError
from twinvec.vectors import similarity_pairwise

__all__ = ["measure_speed"]

N_ROUNDS = 5
N_TEXTS, N_SINGLE = 990, 20


@dataclass(frozen=True, slots=True)
class Speed:
    """The speed at one precision; ``cosine`` is the mean cosine with the float32 vectors, None for float32."""

    precision: str
    texts_per_s: float
    single_ms: float
    cosine: float | None


def measure_speed(
    model: ModelLike | Embedder = DEFAULT_MODEL,
    precisions: Sequence[str] = (),
    *,
    tell: Callable[[str], None] | None = None,
) -> list[Speed]:
    """Measure texts per second and milliseconds for a single text on this machine.

    Reports the median of 5 rounds after a warm-up, on 990 built-in sentences of 15 words on average.

    Args:
        model: a name, a folder, an encoder, or a :class:`~twinvec.embedder.ModelEmbedder`.
        precisions: precisions to measure; by default all that this machine supports.
        tell: called with messages about what is measured and what is skipped.

    >>> [speed.precision for speed in measure_speed("twinvec-static", ["float32"])]
    ['float32']
    """
    tell = tell or (lambda _: None)
    encoders = _load(open_model(model), precisions, tell)
    tell(f"Measuring {', '.join(encoders)}: {N_ROUNDS} rounds of {N_TEXTS} texts ...")
    return [speed for speed in _measure(encoders) if speed.precision in (precisions or encoders)]


def _load(model: ModelEmbedder, precisions: Sequence[str], tell: Callable[[str], None]) -> dict[str, Encoder]:
    """Load an encoder per precision, float32 first; without ``precisions``, skip what this machine lacks."""

    def loaded(precision: str) -> Encoder:
        return ModelEmbedder(model.folder, {**model.arguments, "precision": precision}).encoder

    encoders = {"float32": loaded("float32")}
    for precision in precisions or PRECISIONS:
        if precision in encoders:
            continue
        try:
            encoder = loaded(precision)
        except (DeviceError, MissingExtraError) as error:
            if precisions:
                raise
            tell(f"Skipped {precision}: {error}")
            continue
        if encoder.engine.precision == precision:
            encoders[precision] = encoder
        else:
            tell(f"Skipped {precision}: this machine computes it in {encoder.engine.precision}.")
    return encoders


def _measure(encoders: Mapping[str, Encoder]) -> list[Speed]:
    """The speed of each encoder; rounds are interleaved so that other load affects all alike."""
    texts = sample_texts(N_TEXTS)
    vectors = {name: encoder.encode(texts, progress=False) for name, encoder in encoders.items()}  # also the warm-up
    whole: dict[str, list[float]] = {name: [] for name in encoders}
    single: dict[str, list[float]] = {name: [] for name in encoders}
    for _ in range(N_ROUNDS):
        for name, encoder in encoders.items():
            whole[name].append(_seconds(partial(encoder.encode, texts, progress=False)))
            single[name] += [_seconds(partial(encoder.encode, text)) for text in texts[:N_SINGLE]]
    return [
        Speed(
            precision=name,
            texts_per_s=len(texts) / median(whole[name]),
            single_ms=1000 * median(single[name]),
            cosine=None if name == "float32" else float(similarity_pairwise(vectors[name], vectors["float32"]).mean()),
        )
        for name in encoders
    ]


def _seconds(work: Callable[[], object]) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start
