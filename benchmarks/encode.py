"""Texts to vectors: ours at every precision beside sentence-transformers with each of its backends.

    python benchmarks/encode.py [--model FOLDER] [--own NAME] [--data FOLDER] [--rounds 7]

All run in this process, warm, on the same 2,000 texts and all cores, in alternation. The rivals run with their
defaults. Speed is the ratio to sentence-transformers (torch); fidelity the cosine to its float32 vectors, which our own
model was taught from MODEL.
"""

from __future__ import annotations

import logging
import tempfile
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from common import alternate, arguments, sts_sentences, write_result
from numpy.typing import NDArray

import twinvec
from twinvec.types import Precision

RIVAL = "sentence-transformers (torch)"
PRECISIONS: tuple[Precision, ...] = ("float32", "bfloat16", "int8")
Run = Callable[[], NDArray[np.float32]]


def rivals(model: Path, texts: list[str]) -> dict[str, Run]:
    """sentence-transformers with the backends that work here."""
    from sentence_transformers import SentenceTransformer

    runs: dict[str, Run] = {}
    for backend in ("torch", "onnx", "openvino"):
        try:
            with tempfile.TemporaryDirectory() as folder:
                # a copy by links: the rival's export must not write into the model's folder
                for file in model.iterdir():
                    (Path(folder) / file.name).symlink_to(file.resolve())
                rival = SentenceTransformer(folder, backend=backend, device="cpu")
                rival.encode(texts[:4])
        except Exception as error:
            print(f"sentence-transformers ({backend}) does not run here: {error!s:.200}")
            continue
        runs[f"sentence-transformers ({backend})"] = lambda rival=rival: rival.encode(texts)  # type: ignore[misc]
    return runs


def ours(model: Path | str, texts: list[str], label: str = "twinvec") -> dict[str, Run]:
    """Twinvec at each precision, with the runtime it chooses itself."""
    runs: dict[str, Run] = {}
    for precision in PRECISIONS:
        encoder = twinvec.load(model, precision=precision)
        name = f"{label} {precision} ({encoder.engine.runtime.name}"
        name += ")" if encoder.engine.precision == precision else f", computed in {encoder.engine.precision})"
        runs[name] = lambda encoder=encoder: encoder.encode(texts, progress=False)  # type: ignore[misc]
    return runs


def main() -> None:
    """Measure, print, write."""
    parser = arguments(__doc__)
    parser.add_argument("--own", default="twinvec-mini", help="our model, to run beside")
    options = parser.parse_args()
    warnings.filterwarnings("ignore")
    logging.disable(logging.WARNING)
    texts, source = sts_sentences(options.data, 2_000)
    runs = rivals(options.model, texts) | ours(options.model, texts) | ours(options.own, texts, options.own)
    exact = runs[RIVAL]()
    seconds = alternate(runs, options.rounds)
    rows: list[dict[str, Any]] = []
    for name, run in runs.items():
        cosines = twinvec.similarity_pairwise(run(), exact)
        rows.append(
            {
                "name": name,
                "sentences_per_second": round(len(texts) / seconds[name], 1),
                "ratio": round(seconds[RIVAL] / seconds[name], 2),
                "mean_cosine": round(float(cosines.mean()), 6),
                "min_cosine": round(float(cosines.min()), 6),
            }
        )
    print(f"\n{len(texts)} texts: {source}\n")
    print(f"{'':46}{'texts/s':>9}{'ratio':>7}{'mean cos':>10}{'min cos':>10}")
    for row in rows:
        print(
            f"{row['name']:46}{row['sentences_per_second']:>9}{row['ratio']:>7.2f}"
            f"{row['mean_cosine']:>10.5f}{row['min_cosine']:>10.5f}"
        )
    content: dict[str, Any] = {"model": options.model.name, "own": options.own}
    write_result("encode", {**content, "texts": source, "n_texts": len(texts), "rows": rows})


if __name__ == "__main__":
    main()
