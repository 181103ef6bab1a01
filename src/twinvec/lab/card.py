"""The card of a model whose reading was chosen by a sweep."""

from __future__ import annotations

from datetime import date

from twinvec.evaluate.result import used_versions
from twinvec.lab.sweep import PROTOCOL, Sweep
from twinvec.lab.verdict import AFTERWARDS, FITTED, is_more_than_chance, show_p

__all__ = ["sweep_card"]

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
