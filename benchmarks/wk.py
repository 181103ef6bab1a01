"""SBERT-WK compared with mean pooling, and its Gram form compared with a QR decomposition of every window.

    python benchmarks/wk.py [--models FOLDER ...] [--data FOLDER] [--rounds 7] [--texts 2000]

The readouts encode the same texts in this process, in float32, on all cores, after a warm-up, in alternation. The two
implementations of SBERT-WK run in one thread on the same states, of one batch of sentences of median length; the result
includes the largest difference of their vectors.
"""

from __future__ import annotations

import os
import runpy
from pathlib import Path
from typing import Any

import numpy as np
from common import alternate, arguments, sts_sentences, write_result
from numpy.typing import NDArray

import twinvec
from twinvec.engine.batches import TOKENS_PER_BATCH
from twinvec.wk import WKSettings, sentence_vectors

SLOW = Path(__file__).parents[1] / "tests/support/wk_twins.py"  # one token and one layer at a time
REFERENCE = WKSettings("reference")


def batch_of(encoder: twinvec.Encoder, texts: list[str]) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
    """Layers ``(layers + 1, texts, tokens, width)`` and mask of one batch, as large as the engine's."""
    lengths = encoder.count_tokens(texts)
    longest = int(np.median(lengths))
    kept = [text for text, length in zip(texts, lengths, strict=True) if longest - 2 <= length <= longest]
    encoded = encoder.encode_layers(kept[: TOKENS_PER_BATCH["cpu"] // longest])
    layers = np.zeros((len(encoded[0]), len(encoded), longest, encoded[0].shape[-1]), dtype=np.float32)
    mask = np.zeros((len(encoded), longest), dtype=np.int64)
    for i, states in enumerate(encoded):
        layers[:, i, : states.shape[1]] = states
        mask[i, : states.shape[1]] = 1
    return layers, mask


def compare_implementations(encoder: twinvec.Encoder, texts: list[str], rounds: int) -> dict[str, Any]:
    """Seconds of the Gram form and of the QR loop on one batch, and the largest difference of their vectors."""
    slow_vector = runpy.run_path(str(SLOW))["slow_vector"]
    layers, mask = batch_of(encoder, texts)
    states = layers[REFERENCE.start(len(layers) - 1) :].astype(np.float64)

    def by_qr() -> NDArray[np.float64]:
        return np.stack([slow_vector(states[:, i, :n], "reference") for i, n in enumerate(mask.sum(axis=1))])

    runs = {"gram": lambda: sentence_vectors(layers, mask, REFERENCE), "qr": by_qr}
    seconds = alternate(runs, rounds)
    exact = by_qr()
    return {
        "n_tokens": int(mask.sum()),
        "n_layers_read": len(states),
        "gram_ms": round(1000 * seconds["gram"], 3),
        "qr_ms": round(1000 * seconds["qr"], 3),
        "times_faster": round(seconds["qr"] / seconds["gram"], 1),
        "largest_difference": float(np.abs(runs["gram"]() - exact).max() / np.abs(exact).max()),
    }


def measure(model: Path, texts: list[str], rounds: int) -> dict[str, Any]:
    """One model: mean pooling, SBERT-WK, and its two implementations."""
    mean, wk = (twinvec.load(model, readout=readout, long="cut") for readout in ("mean", "wk"))
    seconds = alternate(
        {"mean": lambda: mean.encode(texts, progress=False), "wk": lambda: wk.encode(texts, progress=False)}, rounds
    )
    return {
        "model": model.name,
        "mean_per_second": round(len(texts) / seconds["mean"], 1),
        "wk_per_second": round(len(texts) / seconds["wk"], 1),
        "cost": round(seconds["wk"] / seconds["mean"], 3),
        **compare_implementations(wk, texts, rounds),
    }


def main() -> None:
    parser = arguments(__doc__)
    root = Path(os.environ.get("TWINVEC_MODELS", ".models"))
    parser.add_argument("--models", type=Path, nargs="+", default=[root / "minilm", root / "mpnet"])
    parser.add_argument("--texts", type=int, default=2_000)
    options = parser.parse_args()
    texts, source = sts_sentences(options.data, options.texts)
    rows = [measure(model, texts, options.rounds) for model in options.models]
    print(f"\n{len(texts)} texts: {source}\n")
    print(f"{'':12}{'mean/s':>9}{'wk/s':>9}{'cost':>7}{'gram ms':>10}{'qr ms':>10}{'faster':>8}{'difference':>12}")
    for row in rows:
        print(
            f"{row['model']:12}{row['mean_per_second']:>9}{row['wk_per_second']:>9}{row['cost']:>7.3f}"
            f"{row['gram_ms']:>10}{row['qr_ms']:>10}{row['times_faster']:>8}{row['largest_difference']:>12.1e}"
        )
    write_result("wk", {"texts": source, "n_texts": len(texts), "rows": rows})


if __name__ == "__main__":
    main()
