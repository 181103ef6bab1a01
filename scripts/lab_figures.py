"""Draw the figures of docs/layers.md and docs/sweep.md, and compute their numbers.

    python scripts/lab_figures.py MODELS DATA

MODELS is a folder with minilm, mpnet and tinybert; DATA is a folder of data sets (with sts/stsb-dev). Writes to
docs/lab: plots as ``twinvec layers`` and ``twinvec sweep`` draw them, and ``words.json`` and ``sweeps.json`` for
``make docs``. The layer figures use the texts of ``twinvec demo``: sentences of Python's standard library.
"""

from __future__ import annotations

import json
import logging
import sys
from pathlib import Path
from typing import Any

import twinvec
from twinvec.analysis import survey_layers
from twinvec.analysis.layers import LayerFindings, LayerSettings, picture_text
from twinvec.data.sentences import gather_sentences
from twinvec.report.plots import draw_distances, draw_picture
from twinvec.report.sweep import draw_sweep

TARGET = Path(__file__).parents[1] / "docs/lab"
MODELS = "minilm", "mpnet", "tinybert"
PLOTTED = "tinybert"  # the most instructive sweep
TEXT = "The orchestra tuned its strings before the hall fell silent."
N_TEXTS, N_WORDS, MIN_COUNT = 1_000, 8, 10
KEPT = "name", "score", "low", "high", "lead", "lead_at_least", "p_corrected", "cannot_be_saved"


def layers(models: Path) -> dict[str, Any]:
    """Draw the layer figures and return the words of every model."""
    encoders = {"twinvec-mini": twinvec.load()} | {name: twinvec.load(models / name) for name in MODELS}
    settings = LayerSettings(n_words=N_WORDS, min_count=MIN_COUNT)
    surveys = survey_layers(encoders, gather_sentences(N_TEXTS))
    findings = LayerFindings("sentences of Python's standard library", surveys, settings=settings)
    (TARGET / "distances.png").write_bytes(draw_distances(surveys, findings.distances))
    (TARGET / "text.png").write_bytes(draw_picture(picture_text(encoders["minilm"], TEXT, model="minilm")))
    rows = []
    for survey, facts in zip(surveys, findings.as_dict()["models"], strict=True):
        extremes = findings.extremes(survey)._asdict()
        words = {group: [each.word for each in ranked] for group, ranked in extremes.items()}
        rows.append({key: facts[key] for key in facts if key not in ("cosines", "words")} | words)
    return {"texts": N_TEXTS, "source": findings.source, "min_count": MIN_COUNT, "models": rows}


def sweeps(models: Path, data: Path) -> list[dict[str, Any]]:
    """Sweep every model and plot one; return the own readout, the best, and the best that can be saved."""
    rows = []
    for name in MODELS:
        sweep = twinvec.sweep(models / name, data / "sts/stsb-dev.tsv.gz")
        if name == PLOTTED:
            (TARGET / "sweep.png").write_bytes(draw_sweep(sweep))
        facts = sweep.as_dict()
        readouts = {each["name"]: {key: each.get(key) for key in KEPT} for each in facts["readouts"]}
        row = {key: facts[key] for key in ("model", "data", "n_pairs", "n_texts", "protocol")}
        chosen = {key: readouts[facts[key]] for key in ("own", "best", "best_that_can_be_saved")}
        rows.append(row | {"n_readouts": len(readouts)} | chosen)
        print(facts["verdict"])
    return rows


def write(name: str, content: object) -> None:
    """Write a JSON file to docs/lab."""
    (TARGET / name).write_text(json.dumps(content, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


if __name__ == "__main__":
    logging.disable(logging.WARNING)
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    TARGET.mkdir(exist_ok=True)
    write("words.json", layers(Path(sys.argv[1])))
    write("sweeps.json", {"sweeps": sweeps(Path(sys.argv[1]), Path(sys.argv[2]))})
