"""Every kind of system: how well it knows which sentences are similar, and how long it takes to find the best pair.

    python benchmarks/systems.py --data FOLDER --system "cross-encoder=FOLDER" [--system ...]

Quality is the Spearman correlation on the test set of the STS benchmark and the mean of the seven STS tasks; time is
that of finding the most similar pair of 10,000 sentences on all cores. The models are those of $TWINVEC_MODELS that are
there; --system adds trained ones. A system that scores pairs is timed on a sample, and its time extrapolated.
"""

from __future__ import annotations

import argparse
import gzip
import logging
import os
import tempfile
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any, cast

from best_pair import Timed, by_codes, by_scores, by_vectors, timed_sizes
from common import sts_sentences, write_result

import twinvec
from twinvec.baselines.lexical import Bm25Scorer, TfidfEmbedder
from twinvec.embedder import Embedder, as_embedder
from twinvec.evaluation.systems import open_system
from twinvec.pairs.poly_encoder import PolyEncoder
from twinvec.scorer import Scorer

N_TEXTS = 10_000
N_WORD_TEXTS = 20_000  # for word frequencies
INT8 = {"precision": "int8", "long": "cut"}


def premises(data: Path, count: int) -> list[str]:
    """Different premises of SNLI."""
    lines = gzip.decompress((data / "nli/snli-train-100k.tsv.gz").read_bytes()).decode("utf-8").splitlines()[1:]
    return list(dict.fromkeys(line.split("\t")[1] for line in lines))[:count]


def baselines(models: Path, data: Path, work: Path) -> Iterator[tuple[str, Callable[[], Embedder | Scorer]]]:
    """The systems that need no training here, each with a function that opens it."""
    texts = premises(data, N_WORD_TEXTS)
    yield "tf-idf", lambda: TfidfEmbedder.fit(texts)
    yield "BM25", lambda: Bm25Scorer(texts)
    if (models / "glove").is_dir():
        settings = twinvec.WordSettings(sif=1e-3, n_components=1)
        yield "GloVe, averaged", lambda: as_embedder(models / "glove")
        yield "GloVe, SIF", lambda: twinvec.convert_word_vectors(models / "glove", work / "sif", settings, texts=texts)
    if (models / "use-m").is_dir():
        yield "USE multilingual", lambda: as_embedder(models / "use-m")
    for name in ("mean", "cls"):
        if (models / "tinybert").is_dir():
            readout = {"readout": name, "long": "cut"}
            yield f"untrained BERT, {name}", partial(as_embedder, models / "tinybert", readout)
    yield "twinvec-static", lambda: as_embedder("twinvec-static", {"long": "cut"})
    for model in ("twinvec-mini", "minilm", "mpnet", "gte"):
        folder = model if model.startswith("twinvec") else str(models / model)
        if model.startswith("twinvec") or (models / model).is_dir():
            yield f"{model}, int8", partial(as_embedder, folder, INT8)


def timed_by(system: Embedder | Scorer) -> Timed:
    """How the system finds the best pair."""
    if isinstance(system, PolyEncoder):
        return by_codes(system)
    return by_vectors(cast(Embedder, system)) if hasattr(system, "embed") else by_scores(system)


def measured(name: str, system: Embedder | Scorer, texts: list[str], data: Path) -> dict[str, Any]:
    """Quality and time of one system."""
    results = twinvec.evaluate(system, "sts", data).results
    values = {result.task: result.value for result in results}
    (row,) = timed_sizes({name: timed_by(system)}, texts, (N_TEXTS,))
    kind = "embeds" if hasattr(system, "embed") else "scores"
    quality = {
        "stsb": round(values["stsb"] or 0.0, 2),
        "sts": round(sum(v or 0.0 for v in values.values()) / len(values), 2),
    }
    seconds = row["seconds"][str(N_TEXTS)]
    return {"name": name, "kind": kind, **quality, "seconds": seconds, "is_extrapolated": bool(row["extrapolated"])}


def main() -> None:
    """Measure, print, write."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--models", type=Path, default=os.environ.get("TWINVEC_MODELS", ".models"))
    parser.add_argument("--data", type=Path, default=os.environ.get("TWINVEC_DATA"), help="folder with the data sets")
    parser.add_argument("--system", action="append", default=[], metavar="NAME=FOLDER", help="a trained model")
    options = parser.parse_args()
    logging.disable(logging.WARNING)
    texts, source = sts_sentences(options.data, N_TEXTS)
    rows = []
    with tempfile.TemporaryDirectory() as home:
        chosen = dict(baselines(options.models, options.data, Path(home)))
        for each in options.system:
            name, _, folder = each.partition("=")
            chosen[name] = partial(open_system, folder)
        for name, opened in chosen.items():
            row = measured(name, opened(), texts, options.data)
            rows.append(row)
            time = f"{row['seconds']:,.3g} s" + "*" * row["is_extrapolated"]
            print(f"{name:40}{row['stsb']:>8.2f}{row['sts']:>8.2f}{time:>12}", flush=True)
    print("STS benchmark, STS average, time for the best pair; * extrapolated from a sample")
    write_result("systems", {"texts": source, "n_texts": N_TEXTS, "rows": rows})


if __name__ == "__main__":
    main()
