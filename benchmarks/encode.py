"""Encoding speed: Twinvec in every precision compared with sentence-transformers with each of its backends.

    python benchmarks/encode.py [--model FOLDER] [--own NAME] [--data FOLDER] [--rounds 7]

All run in this process, after a warm-up, on the same 2,000 texts and all cores, in alternation. The rivals are the
three backends of sentence-transformers and the two int8 exports that its documentation recommends for CPUs: onnx with
dynamic int8, in the configuration for this CPU, and openvino with static int8, calibrated on sentences that are not
measured. Each rival runs at its fastest batch size. Nothing is downloaded. Speed is relative to sentence-transformers
(torch); fidelity is the cosine to its float32 vectors. MODEL is also a teacher of our default model. The vectors of
twinvec-ko have another width, so that there is no fidelity; its results are written as encode-twinvec-ko.
"""

from __future__ import annotations

import logging
import os
import tempfile
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any

from common import alternate, arguments, other_sentences, sts_sentences, write_result
from rivals import RIVAL, Make, Rivals, Run, made_rivals, onnx_configuration

import twinvec
from twinvec.choices import DEFAULT_MODEL, SHIPPED, Precision

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer

PRECISIONS: tuple[Precision, ...] = ("float32", "bfloat16", "int8")
N_CALIBRATION = 300  # sentences to offer; the rival calibrates with its default number of them


def plain(folder: Path, backend: str) -> SentenceTransformer:
    """The rival with a backend and default settings."""
    from sentence_transformers import SentenceTransformer

    return SentenceTransformer(str(folder), backend=backend, device="cpu")


def quantized(folder: Path, backend: str, file: str) -> SentenceTransformer:
    """The rival with an exported file."""
    from sentence_transformers import SentenceTransformer

    return SentenceTransformer(str(folder), backend=backend, device="cpu", model_kwargs={"file_name": file})


def dynamic_int8(folder: Path) -> SentenceTransformer:
    """Onnx with int8 weights; activation scales are computed at run time."""
    from sentence_transformers import export_dynamic_quantized_onnx_model

    export_dynamic_quantized_onnx_model(plain(folder, "onnx"), onnx_configuration(), str(folder), file_suffix="int8")
    return quantized(folder, "onnx", "onnx/model_int8.onnx")


def static_int8(folder: Path, calibration: list[str]) -> SentenceTransformer:
    """Openvino with int8 weights and activation scales calibrated beforehand, with default settings."""
    from sentence_transformers import export_static_quantized_openvino_model

    source = folder / "calibration"  # a data set is a folder of lines
    source.mkdir()
    (source / "train.txt").write_text("".join(f"{' '.join(text.split())}\n" for text in calibration), encoding="utf-8")
    export_static_quantized_openvino_model(
        plain(folder, "openvino"),
        None,
        str(folder),
        dataset_name=str(source),
        dataset_config_name="default",
        dataset_split="train",
        column_name="text",
        file_suffix="int8",
    )
    return quantized(folder, "openvino", "openvino/openvino_model_int8.xml")


def rivals(model: Path, texts: list[str], calibration: list[str]) -> Rivals:
    """sentence-transformers with each backend, and with its int8 exports."""
    makers: dict[str, Make] = {
        "torch": lambda folder: plain(folder, "torch"),
        "onnx": lambda folder: plain(folder, "onnx"),
        f"onnx, dynamic int8 for {onnx_configuration()}": dynamic_int8,
        "openvino": lambda folder: plain(folder, "openvino"),
        "openvino, static int8": lambda folder: static_int8(folder, calibration),
    }
    return made_rivals(
        model,
        makers,
        lambda rival, size: rival.encode(texts[:1_000], batch_size=size),
        lambda rival, size: rival.encode(texts, batch_size=size),
    )


def ours(model: Path | str, texts: list[str], label: str = "twinvec") -> dict[str, Run]:
    """Twinvec in each precision, with its default runtime."""
    runs: dict[str, Run] = {}
    for precision in PRECISIONS:
        encoder = twinvec.load(model, precision=precision)
        name = f"{label} {precision} ({encoder.engine.runtime.name}"
        name += ")" if encoder.engine.precision == precision else f", computed in {encoder.engine.precision})"
        runs[name] = lambda encoder=encoder: encoder.encode(texts, progress=False)  # type: ignore[misc]
    return runs


def measured(runs: dict[str, Run], count: int, rounds: int) -> list[dict[str, Any]]:
    """Speed and fidelity of each contender."""
    exact = runs[RIVAL]()
    seconds = alternate(runs, rounds)
    rows = []
    for name, run in runs.items():
        vectors = run()
        cosines = twinvec.similarity_pairwise(vectors, exact) if vectors.shape == exact.shape else None
        rows.append(
            {
                "name": name,
                "sentences_per_second": round(count / seconds[name], 1),
                "ratio": round(seconds[RIVAL] / seconds[name], 2),
                "mean_cosine": None if cosines is None else round(float(cosines.mean()), 6),
                "min_cosine": None if cosines is None else round(float(cosines.min()), 6),
            }
        )
    return rows


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("--own", default=DEFAULT_MODEL, choices=SHIPPED, help="our model, also measured")
    options = parser.parse_args()
    warnings.filterwarnings("ignore")
    logging.disable(logging.WARNING)
    texts, source = sts_sentences(options.data, 2_000)
    calibration = other_sentences(options.data, N_CALIBRATION, texts)
    with tempfile.TemporaryDirectory() as home:
        # before the rivals are imported: no network, and no cache left behind
        os.environ |= {"HF_HUB_OFFLINE": "1", "HF_DATASETS_OFFLINE": "1", "HF_HOME": home}
        others = rivals(options.model, texts, calibration)
    runs = others.runs | ours(options.model, texts) | ours(options.own, texts, options.own)
    rows = [
        row | {"batch_size": others.batch_sizes.get(row["name"])} for row in measured(runs, len(texts), options.rounds)
    ]
    print(f"\n{len(texts)} texts: {source}\n")
    print(f"{'':60}{'batch':>6}{'texts/s':>9}{'ratio':>7}{'mean cos':>10}{'min cos':>10}")
    for row in rows:
        fidelity = "".join(f"{row[key]:>10.5f}" for key in ("mean_cosine", "min_cosine") if row[key] is not None)
        speed = f"{row['sentences_per_second']:>9}{row['ratio']:>7.2f}"
        print(f"{row['name']:60}{row['batch_size'] or '':>6}{speed}{fidelity}")
    content: dict[str, Any] = {"model": options.model.name, "own": options.own, "rounds": options.rounds}
    content |= {"texts": source, "n_texts": len(texts), "n_calibration": len(calibration)}
    name = "encode" if options.own == DEFAULT_MODEL else f"encode-{options.own}"
    write_result(name, content | {"rows": rows, "did_not_run": others.errors})


if __name__ == "__main__":
    main()
