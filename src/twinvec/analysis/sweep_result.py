"""The result of a sweep: scored readouts, a verdict in words, JSON data, and the card of a saved model."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from datetime import date
from typing import Any, NamedTuple

from twinvec.analysis.readouts import Candidate
from twinvec.analysis.saving import Whitening
from twinvec.evaluation.resampling import Interval, Resampling
from twinvec.evaluation.result_file import now, used_versions

__all__ = ["PROTOCOL", "SWEEP_RESAMPLING", "Lead", "Scored", "Sweep", "sweep_card"]

SWEEP_RESAMPLING = Resampling(n_resamples=1000)
PROTOCOL = "Spearman x 100 of cosine"
TEST = "max-T bootstrap over all of them"
FITTED = "Whitening was fitted on the texts of these pairs, without their scores."
ADVICE = "The best of many looks better than it is: evaluate it on other pairs before you use it."


class Lead(NamedTuple):
    """A candidate's lead over the old one, a lower bound ``low`` on it, and the corrected p value.

    The bound holds at the confidence level for all candidates together. All but ``p`` are in units of the score.
    """

    difference: float
    low: float
    p: float


@dataclass(frozen=True, eq=False)
class Scored:
    """A candidate with its score, its interval, and its lead over the model's own readout, whose lead is 0.

    If the score is undefined, ``value``, ``interval`` and ``lead`` are None and ``problem`` says why. ``why_not_saved``
    is empty if a model folder can store the candidate.
    """

    candidate: Candidate
    value: float | None
    interval: Interval | None = None
    lead: Lead | None = None
    why_not_saved: str = ""
    problem: str = ""


@dataclass(frozen=True, eq=False)
class Sweep:
    """All scored candidates, the model's own readout first.

    ``whitening`` is fitted on the texts of the pairs for ``best_saved``; None if that is not whitened.
    """

    model: str
    source: str
    n_pairs: int
    n_texts: int
    n_layers: int
    scored: tuple[Scored, ...]
    resampling: Resampling = SWEEP_RESAMPLING
    whitening: Whitening | None = None

    @property
    def own(self) -> Scored:
        """The model's own readout."""
        return self.scored[0]

    @property
    def ranked(self) -> list[Scored]:
        """Candidates with a score, best first; the model's own readout wins ties."""
        return sorted((each for each in self.scored if each.value is not None), key=lambda each: -(each.value or 0.0))

    @property
    def undefined(self) -> list[Scored]:
        """Candidates without a score."""
        return [each for each in self.scored if each.value is None]

    @property
    def best(self) -> Scored:
        """The candidate with the highest score."""
        return self.ranked[0]

    @property
    def best_saved(self) -> Scored:
        """The candidate with the highest score that a model folder can store."""
        return next(each for each in self.ranked if not each.why_not_saved)

    @property
    def n_others(self) -> int:
        """The number of candidates compared with the model's own readout."""
        return len(self.ranked) - 1

    def is_more_than_chance(self, scored: Scored) -> bool:
        """Whether a candidate beats the model's own readout, corrected for multiple comparisons."""
        return scored.lead is not None and scored.lead.p < 1 - self.resampling.level

    @property
    def verdict(self) -> str:
        """Which readout is best, by how much, and whether that is more than chance."""
        best, own = self.best, self.own
        assert best.value is not None and best.lead is not None and own.value is not None
        mine = f"the model's own readout, {own.candidate.name}"
        if best is own:
            return f"Of {self.n_others + 1} readouts none scores higher than {mine}: {own.value:.2f}."
        size = f"Highest is {best.candidate.name}, {best.value:.2f}; {mine}, has {own.value:.2f}."
        lead = f"The lead of {best.lead.difference:.2f}"
        if self.is_more_than_chance(best):
            confidence = f"at least {best.lead.low:.2f} with {100 * self.resampling.level:g} % confidence"
            tested = f"{TEST}, {show_p(best.lead.p)}; {confidence}"
            return f"{size} {lead} is more than chance, also for the best of {self.n_others} ({tested})."
        return f"{size} {lead} can be chance, for the best of {self.n_others} ({TEST}, {show_p(best.lead.p)})."

    @property
    def advice(self) -> list[str]:
        """Sentences about how to interpret the scores."""
        is_fitted = any(each.candidate.is_whitened for each in self.scored)
        return [FITTED] * is_fitted + [ADVICE] * (self.best is not self.own)

    def as_dict(self) -> dict[str, Any]:
        """All data for JSON; candidates from best to worst, then those without a score."""
        return {
            "model": self.model,
            "data": self.source,
            "protocol": PROTOCOL,
            "n_pairs": self.n_pairs,
            "n_texts": self.n_texts,
            "n_layers": self.n_layers,
            "date": now(),
            "versions": used_versions(),
            "resampling": asdict(self.resampling),
            "verdict": self.verdict,
            "own": self.own.candidate.name,
            "best": self.best.candidate.name,
            "best_that_can_be_saved": self.best_saved.candidate.name,
            "readouts": [_row(each) for each in (*self.ranked, *self.undefined)],
        }


def _row(scored: Scored) -> dict[str, Any]:
    readout = scored.candidate.readout
    row: dict[str, Any] = {
        "name": scored.candidate.name,
        "pooling": list(readout.modes),
        "layers": list(readout.layers),
        "wk": None if readout.wk is None else asdict(readout.wk),
        "whitened": scored.candidate.is_whitened,
        "score": _rounded(scored.value),
        "low": None,
        "high": None,
    }
    if scored.interval is not None and scored.lead is not None:
        row |= {"low": _rounded(scored.interval.low), "high": _rounded(scored.interval.high)}
        row |= {"lead": _rounded(scored.lead.difference), "lead_at_least": _rounded(scored.lead.low)}
        row |= {"p_corrected": _rounded(scored.lead.p)}
    return row | {"cannot_be_saved": scored.why_not_saved, "problem": scored.problem}


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, 4)


def show_p(value: float) -> str:
    """Format a p value.

    >>> show_p(0.001), show_p(0.0314), show_p(0.3)
    ('p = 0.001', 'p = 0.031', 'p = 0.30')
    """
    return f"p = {value:.3f}" if value < 0.1 else f"p = {value:.2f}"


ONLY_OURS = """
SBERT-WK computes the vectors from all layers. Other libraries do not support it and refuse to load this folder.
"""


def sweep_card(sweep: Sweep, name: str) -> str:
    """The content of ``README.md`` for the best readout that a model folder can store, with YAML metadata."""
    chosen, own = sweep.best_saved, sweep.own
    assert chosen.value is not None and own.value is not None and chosen.lead is not None
    is_ours = chosen.candidate.readout.wk is not None
    tags = ["sentence-similarity", *([] if is_ours else ["sentence-transformers"])]
    versions = ", ".join(f"{package} {version}" for package, version in used_versions().items())
    verdict = "more than chance" if sweep.is_more_than_chance(chosen) else "not more than chance"
    fitted = f"{FITTED}\n" if chosen.candidate.is_whitened else ""
    return f"""---
base_model: {sweep.model}
library_name: twinvec
pipeline_tag: sentence-similarity
tags: [{", ".join(tags)}]
---

# {name}

The weights of `{sweep.model}` with a different readout: **{chosen.candidate.name}**
instead of {own.candidate.name}. Nothing was trained. The license of `{sweep.model}` applies.

```python
import twinvec

encoder = twinvec.load("{name}")
vectors = encoder.encode(["A plane is taking off.", "An air plane is taking off."])
```
{ONLY_OURS if is_ours else ""}
## How it was chosen

`twinvec sweep` chose it on the {sweep.n_pairs:,} pairs of {sweep.source}:
{PROTOCOL} {chosen.value:.2f}, compared with {own.value:.2f} for the model's own readout.
The lead is {verdict}, corrected for the choice among {sweep.n_others} readouts ({show_p(chosen.lead.p)}).
{fitted}{ADVICE}

Created on {date.today().isoformat()} with {versions}.
"""
