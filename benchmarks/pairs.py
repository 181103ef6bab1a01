"""Pairs to scores: our cross-encoder at float32 and int8 beside sentence-transformers' CrossEncoder, same weights.

    python benchmarks/pairs.py [--model FOLDER] [--data FOLDER] [--pairs 1000] [--rounds 5]

MODEL is a cross-encoder, or a BERT backbone, which gets a seeded random head: speed does not depend on what the head
has learned. All run in this process, warm, on the same pairs and all cores, in alternation. The rivals are the backends
of sentence-transformers that run here, and its dynamic int8 export for this CPU, each at its fastest batch size. Speed
is relative to the rival's default, torch; fidelity is the rank correlation and largest difference of the raw scores to
its scores, which are float32.

Then the time to find the most similar pair of 100, 1,000 and 10,000 sentences: by that cross-encoder, by a
poly-encoder and by a bi-encoder with the same backbone. The SBERT paper has 65 hours and 5 seconds for 10,000.
"""

from __future__ import annotations

import json
import logging
import os
import shutil
import tempfile
import warnings
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from best_pair import SIZES, Timed, by_codes, by_scores, by_vectors, timed_sizes
from common import alternate, arguments, sts_sentences, write_result
from rivals import RIVAL, Rivals, Run, made_rivals, onnx_configuration
from safetensors.numpy import load_file, save_file

import twinvec
from twinvec.choices import Precision
from twinvec.metrics import spearman
from twinvec.model.poly_encoder import write_poly_encoder
from twinvec.pairs.poly_encoder import PolyEncoder

if TYPE_CHECKING:
    from sentence_transformers import CrossEncoder

PRECISIONS: tuple[Precision, ...] = ("float32", "int8")
TOKENIZER_FILES = "tokenizer.json", "tokenizer_config.json", "special_tokens_map.json", "vocab.txt"
SEED = 0
N_CODES = 16
Pair = tuple[str, str]


def with_head(source: Path, target: Path) -> Path:
    """The model, if it is a cross-encoder; else its backbone, which must be BERT's, with a random head of one label."""
    config = json.loads((source / "config.json").read_text(encoding="utf-8"))
    if config["architectures"][0].endswith("ForSequenceClassification"):
        return source
    target.mkdir()
    for name in TOKENIZER_FILES:
        if (source / name).is_file():
            shutil.copyfile(source / name, target / name)
    own = {"architectures": ["BertForSequenceClassification"], "id2label": {"0": "score"}, "label2id": {"score": 0}}
    (target / "config.json").write_text(json.dumps({**config, **own}), encoding="utf-8")
    width, rng = config["hidden_size"], np.random.default_rng(SEED)
    weights = {name.removeprefix("bert."): array for name, array in load_file(source / "model.safetensors").items()}
    weights = {f"bert.{name}": array for name, array in weights.items() if "." in name and not name.startswith("cls.")}
    for name, shape in (("bert.pooler.dense", (width, width)), ("classifier", (1, width))):
        weights[f"{name}.weight"] = (rng.standard_normal(shape) / np.sqrt(width)).astype(np.float32)
        weights[f"{name}.bias"] = np.zeros(shape[0], dtype=np.float32)
    save_file(weights, target / "model.safetensors", metadata={"format": "pt"})
    return target


def dynamic_int8(folder: Path) -> CrossEncoder:
    """The rival's onnx backend with int8 weights, exported as its documentation recommends for CPUs."""
    from sentence_transformers import export_dynamic_quantized_onnx_model

    export_dynamic_quantized_onnx_model(loaded(folder, "onnx"), onnx_configuration(), str(folder), file_suffix="int8")
    return loaded(folder, "onnx", {"file_name": "onnx/model_int8.onnx"})


def loaded(folder: Path, backend: str, model_kwargs: dict[str, str] | None = None) -> CrossEncoder:
    """The rival with a backend; it returns raw scores."""
    from sentence_transformers import CrossEncoder
    from torch import nn

    return CrossEncoder(
        str(folder), backend=backend, device="cpu", activation_fn=nn.Identity(), model_kwargs=model_kwargs
    )


def rivals(model: Path, pairs: list[Pair]) -> Rivals:
    """sentence-transformers with each backend that runs here, and with its int8 export."""
    makers: dict[str, Callable[[Path], CrossEncoder]] = {
        "torch": lambda folder: loaded(folder, "torch"),
        "onnx": lambda folder: loaded(folder, "onnx"),
        f"onnx, dynamic int8 for {onnx_configuration()}": dynamic_int8,
        "openvino": lambda folder: loaded(folder, "openvino"),
    }
    sample = pairs[: len(pairs) // 4]
    return made_rivals(
        model,
        makers,
        lambda rival, size: rival.predict(sample, batch_size=size),
        lambda rival, size: rival.predict(pairs, batch_size=size),
    )


def ours(folder: Path, pairs: list[Pair]) -> dict[str, Run]:
    """Our cross-encoder at each precision."""
    scorers = {name: twinvec.load_scorer(folder, precision=name, activation="none", long="cut") for name in PRECISIONS}
    return {f"twinvec {name}": partial(scorer.score, pairs) for name, scorer in scorers.items()}


def measured(runs: dict[str, Run], count: int, rounds: int) -> list[dict[str, Any]]:
    """Speed and fidelity of each contender."""
    exact = runs[RIVAL]()
    seconds = alternate(runs, rounds)
    rows = []
    for name, run in runs.items():
        scores = run()
        rows.append(
            {
                "name": name,
                "pairs_per_second": round(count / seconds[name], 1),
                "ratio": round(seconds[RIVAL] / seconds[name], 2),
                "rank_correlation": round(spearman(scores, exact), 5),
                "largest_difference": float(f"{np.abs(scores - exact).max():.2g}"),
            }
        )
    return rows


def contenders(model: Path, cross: Path, poly: Path) -> dict[str, Timed]:
    """The three kinds of encoders with the backbone of a sentence model; the codes of the poly-encoder are random."""
    shutil.copytree(model, poly)
    width = json.loads((model / "config.json").read_text(encoding="utf-8"))["hidden_size"]
    codes = np.random.default_rng(SEED).standard_normal((N_CODES, width)).astype(np.float32) / np.sqrt(width)
    write_poly_encoder(poly, codes, scale=20.0)
    scorers = {name: twinvec.load_scorer(cross, precision=name, long="cut") for name in PRECISIONS}
    several = twinvec.load_scorer(poly, precision="int8", long="cut")
    assert isinstance(several, PolyEncoder)
    return {
        **{f"cross-encoder {name}": by_scores(scorer) for name, scorer in scorers.items()},
        f"poly-encoder int8, {N_CODES} codes": by_codes(several),
        "bi-encoder int8": by_vectors(twinvec.ModelEmbedder(model, {"precision": "int8", "long": "cut"})),
    }


def main() -> None:
    """Measure, print, write."""
    parser = arguments(__doc__)
    parser.set_defaults(rounds=5)
    parser.add_argument("--pairs", type=int, default=1_000, help="how many")
    options = parser.parse_args()
    warnings.filterwarnings("ignore")
    logging.disable(logging.WARNING)
    os.environ["HF_HUB_OFFLINE"] = "1"  # set before the rival is imported
    texts, source = sts_sentences(options.data, 2 * options.pairs)
    pairs = list(zip(texts[0::2], texts[1::2], strict=False))
    with tempfile.TemporaryDirectory() as home:
        folder = with_head(options.model, Path(home) / "model")
        others = rivals(folder, pairs)
        rows = measured(others.runs | ours(folder, pairs), len(pairs), options.rounds)
        sentences = sts_sentences(options.data, max(SIZES))[0]
        best = timed_sizes(contenders(options.model, folder, Path(home) / "poly"), sentences)
    rows = [row | {"batch_size": others.batch_sizes.get(row["name"])} for row in rows]
    print(f"\n{len(pairs)} pairs: {source}\n")
    print(f"{'':60}{'batch':>6}{'pairs/s':>9}{'ratio':>7}{'rank corr.':>12}{'largest diff.':>15}")
    for row in rows:
        print(
            f"{row['name']:60}{row['batch_size'] or '':>6}{row['pairs_per_second']:>9}{row['ratio']:>7.2f}"
            f"{row['rank_correlation']:>12.5f}{row['largest_difference']:>15.2g}"
        )
    print(f"\n{'most similar pair of':40}" + "".join(f"{size:>12,}" for size in SIZES))
    for row in best:
        times = (f"{row['seconds'][str(size)]:,.3g} s" + "*" * (size in row["extrapolated"]) for size in SIZES)
        print(f"{row['name']:40}" + "".join(f"{each:>12}" for each in times))
    print("* extrapolated from a sample")
    content: dict[str, Any] = {
        "best_pair": best,
        "model": options.model.name,
        "rounds": options.rounds,
        "texts": source,
        "n_pairs": len(pairs),
    }
    write_result("pairs", {**content, "rows": rows, "did_not_run": others.errors})


if __name__ == "__main__":
    main()
