"""The card of twinvec-ko, and the record of its training texts with their licenses."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

__all__ = ["korean_card", "korean_record"]

# of the data folder and of the sources of parallel/en-ko, by how their names start
LICENSES = {
    "SNLI and MultiNLI": "CC BY-SA 4.0 (SNLI), OANC and others (MultiNLI)",
    "tatoeba": "CC BY 2.0",
    "cataclysm": "CC BY-SA 3.0",
    "stsb-train": "CC BY-SA 4.0 (STSb, KorSTS)",
    "msdocs": "CC BY 4.0",
    "python-docs": "as the Python package",
    "bible": "public domain",
    "tldr": "CC BY 4.0",
    "ubuntu": "GPL-2.0 or later (language packs)",
    "kubernetes": "CC BY 4.0",
    "debian": "not stated (package descriptions)",
    "react": "CC BY 4.0",
    "libreoffice": "MPL-2.0",
    "godot-editor": "MIT",
    "godot-docs": "CC BY 3.0",
    "transformers": "Apache-2.0",
    "nsmc": "CC0",
    "assembly-bills": "CC BY 4.0",
    "stylekqc": "CC BY-SA 4.0",
    "chatbot": "MIT",
    "ours": "Apache-2.0 (written for this project)",
}

CARD = """---
language: [ko, en]
license: apache-2.0
base_model: universal-sentence-encoder-multilingual
library_name: twinvec
pipeline_tag: sentence-similarity
tags: [sentence-similarity]
---

# twinvec-ko

A sentence encoder for Korean and English, trained with [Twinvec](https://pypi.org/project/twinvec/) from the Universal
Sentence Encoder multilingual, version 3 (Yang et al. 2019).

```python
import twinvec

encoder = twinvec.load("twinvec-ko")
vectors = encoder.encode(["비밀번호를 잊어버렸어요.", "I forgot my password."])
```

The vectors are {width} wide and have length 1. The weights are stored as int8 with scales, a layout of Twinvec's own. A
text of any length is read whole.

## Training

The encoder keeps the pieces that Korean and English texts use. It was taught further for {step:,} steps by the
similarities of all-mpnet-base-v2 and gte-small on English texts; Korean followed through translations. Korean texts
without translation kept the similarities that the original gives them. No labels or scores were used.
`recipes/korean.py` repeats the training; docs/models/twinvec-ko.md has its scores, its log and what was tried.

KorSTS dev {korsts-dev:.2f}, STSb dev {stsb-dev:.2f}: Spearman x 100 of cosine. Before training: {first_ko:.2f} and
{first_en:.2f}.

## Licenses

The original encoder, from which the weights are derived, is licensed under Apache-2.0, and so are these weights. The
teachers are licensed under Apache-2.0 (all-mpnet-base-v2) and MIT (gte-small). The sentences of the train part of
KorSTS and STSb served as parallel text, without their scores. Most of them come from STS 2012 to 2016, which are
therefore not unseen. {removed:,} texts or pairs that occur in another evaluation file were removed.

{lines}
"""


def korean_record(trained: Path) -> dict[str, Any]:
    """The training texts of a run by source, with licenses, the removed ones by evaluation file, and dev scores."""
    about = json.loads((trained / "training/texts.json").read_text(encoding="utf-8"))
    removed: Counter[str] = Counter()
    for name, count in about["removed"].items():
        removed[name.partition(": ")[2]] += count
    rows = [json.loads(row) for row in (trained / "training/log.jsonl").read_text(encoding="utf-8").splitlines()]
    sources = [{"source": name, "texts": n, "license": _license(name)} for name, n in about["texts"].items()]
    return {
        "settings": about["settings"],
        "sources": sources,
        "removed_by_file": dict(sorted(removed.items())),
        "first": rows[0],
        "last": rows[-1],
    }


def _license(source: str) -> str:
    return next(terms for start, terms in LICENSES.items() if source.startswith(start))


def korean_card(record: dict[str, Any]) -> str:
    """The card of the model."""
    lines = "\n".join(f"- {each['source']}: {each['texts']:,}, {each['license']}" for each in record["sources"])
    values = {**record["last"], "first_ko": record["first"]["korsts-dev"], "first_en": record["first"]["stsb-dev"]}
    return CARD.format(width=512, lines=lines, removed=sum(record["removed_by_file"].values()), **values)
