"""What a sweep found, in words, as data, and as the card of a saved model."""

from __future__ import annotations

from dataclasses import asdict
from datetime import date
from typing import Any

from twinvec.analysis.sweep import PROTOCOL, Judged, Sweep
from twinvec.evaluation.result_file import now, used_versions

__all__ = [
    "AFTERWARDS",
    "FITTED",
    "advice",
    "as_dict",
    "is_more_than_chance",
    "show_p",
    "sweep_card",
    "verdict",
]

TEST = "max-T bootstrap over all of them"
FITTED = "Whitening was fitted on the texts of these pairs, without their scores."
AFTERWARDS = "The best of many looks better than it is: judge it on other pairs before you use it."


def is_more_than_chance(sweep: Sweep, judged: Judged) -> bool:
    """Whether a candidate beats the model's own reading, after correction for all candidates."""
    return judged.lead is not None and judged.lead.p < 1 - sweep.resampling.level


def verdict(sweep: Sweep) -> str:
    """Which reading is best, by how much, and whether that is more than chance: plain English."""
    best, own = sweep.best, sweep.own
    assert best.value is not None and best.lead is not None and own.value is not None
    mine = f"the model's own reading, {own.candidate.name}"
    if best is own:
        return f"Of {sweep.n_others + 1} readings none scores higher than {mine}: {own.value:.2f}."
    sure = f"{100 * sweep.resampling.level:g} %"
    size = f"Highest is {best.candidate.name}, {best.value:.2f}; {mine}, has {own.value:.2f}."
    lead = f"The lead of {best.lead.difference:.2f}"
    if is_more_than_chance(sweep, best):
        tested = f"{TEST}, {show_p(best.lead.p)}; at least {best.lead.low:.2f} with {sure} confidence"
        return f"{size} {lead} is more than chance, also for the best of {sweep.n_others} ({tested})."
    return f"{size} {lead} can be chance, for the best of {sweep.n_others} ({TEST}, {show_p(best.lead.p)})."


def advice(sweep: Sweep) -> list[str]:
    """What to know of the scores, in sentences."""
    is_fitted = any(each.candidate.is_whitened for each in sweep.judged)
    return [FITTED] * is_fitted + [AFTERWARDS] * (sweep.best is not sweep.own)


def show_p(value: float) -> str:
    """A p value for people.

    >>> show_p(0.001), show_p(0.0314), show_p(0.3)
    ('p = 0.001', 'p = 0.031', 'p = 0.30')
    """
    return f"p = {value:.3f}" if value < 0.1 else f"p = {value:.2f}"


def as_dict(sweep: Sweep) -> dict[str, Any]:
    """Everything, for JSON; the candidates from the best to the worst, those without a score last."""
    undefined = [each for each in sweep.judged if each.value is None]
    return {
        "model": sweep.model,
        "data": sweep.source,
        "protocol": PROTOCOL,
        "n_pairs": sweep.n_pairs,
        "n_texts": sweep.n_texts,
        "n_layers": sweep.n_layers,
        "date": now(),
        "versions": used_versions(),
        "resampling": asdict(sweep.resampling),
        "verdict": verdict(sweep),
        "own": sweep.own.candidate.name,
        "best": sweep.best.candidate.name,
        "best_that_can_be_saved": sweep.best_saved.candidate.name,
        "readings": [_row(each) for each in (*sweep.ranked, *undefined)],
    }


def _row(judged: Judged) -> dict[str, Any]:
    reading = judged.candidate.reading
    wk = None if reading.wk is None else asdict(reading.wk)
    row: dict[str, Any] = {
        "name": judged.candidate.name,
        "pooling": list(reading.modes),
        "layers": list(reading.layers),
        "wk": wk,
        "whitened": judged.candidate.is_whitened,
        "score": _rounded(judged.value),
        "low": None,
        "high": None,
    }
    if judged.interval is not None and judged.lead is not None:
        row |= {"low": _rounded(judged.interval.low), "high": _rounded(judged.interval.high)}
        row |= {"lead": _rounded(judged.lead.difference), "lead_at_least": _rounded(judged.lead.low)}
        row |= {"p_corrected": _rounded(judged.lead.p)}
    return row | {"cannot_be_saved": judged.why_not_saved, "problem": judged.problem}


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, 4)


ONLY_OURS = """
The vectors are read out of all layers by SBERT-WK, which other libraries do not know: they refuse this folder.
"""


def sweep_card(sweep: Sweep, name: str) -> str:
    """The text of ``README.md`` for the best reading that a model folder can say, in Markdown with the usual head."""
    chosen, own = sweep.best_saved, sweep.own
    assert chosen.value is not None and own.value is not None
    is_ours = chosen.candidate.reading.wk is not None
    tags = ["sentence-similarity", *([] if is_ours else ["sentence-transformers"])]
    versions = ", ".join(f"{package} {version}" for package, version in used_versions().items())
    assert chosen.lead is not None
    sure = "more than chance" if is_more_than_chance(sweep, chosen) else "not more than chance"
    fitted = f"{FITTED}\n" if chosen.candidate.is_whitened else ""
    return f"""---
base_model: {sweep.model}
library_name: twinvec
pipeline_tag: sentence-similarity
tags: [{", ".join(tags)}]
---

# {name}

The weights of `{sweep.model}`, read another way: **{chosen.candidate.name}**,
in place of {own.candidate.name}. Nothing was trained. Keep the licence terms of `{sweep.model}`.

```python
import twinvec

encoder = twinvec.load("{name}")
vectors = encoder.encode(["A plane is taking off.", "An air plane is taking off."])
```
{ONLY_OURS if is_ours else ""}
## How it was chosen

By `twinvec sweep` on the {sweep.n_pairs:,} pairs of {sweep.source}:
{PROTOCOL} {chosen.value:.2f}, and {own.value:.2f} with the model's own reading.
The lead is {sure}, corrected for the choice among {sweep.n_others} readings ({show_p(chosen.lead.p)}).
{fitted}{AFTERWARDS}

Made on {date.today().isoformat()} with {versions}.
"""
