"""Shared by all benchmarks: texts, a description of the machine, alternating rounds, and the result file."""

from __future__ import annotations

import argparse
import gzip
import json
import os
import platform
import random
import resource
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from datetime import date
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from statistics import median
from typing import Any

RESULTS = Path(__file__).parent / "results"
PACKAGES = (
    "twinvec",
    "onnxruntime",
    "openvino",
    "sentence-transformers",
    "transformers",
    "torch",
    "optimum-onnx",
    "optimum-intel",
    "nncf",
    "lancedb",
    "numpy",
    "faiss-cpu",
    "usearch",
)
FLAGS = ("avx2", "avx512f", "avx512_vnni", "avx_vnni", "avx512_bf16", "amx_bf16", "amx_int8")


def arguments(description: str | None) -> argparse.ArgumentParser:
    """A parser with the options of every benchmark: model, data and rounds."""
    parser = argparse.ArgumentParser(description=description)
    models = os.environ.get("TWINVEC_MODELS", ".models")
    parser.add_argument("--model", type=Path, default=Path(models) / "minilm", help="model folder")
    data = os.environ.get("TWINVEC_DATA")
    parser.add_argument("--data", type=Path, default=data, help="folder with the data sets (default: $TWINVEC_DATA)")
    parser.add_argument("--rounds", type=int, default=7)
    return parser


def sts_sentences(data: Path | None, count: int, *, files: str = "*.tsv.gz") -> tuple[list[str], str]:
    """Distinct sentences of the STS sets in seeded order; without the data, sentences of Python's docstrings."""
    if data is None or not (data / "sts").is_dir():
        from twinvec.data.sentences import gather_sentences

        return gather_sentences(count), "docstrings of Python's standard library"
    found: dict[str, None] = {}
    for file in sorted((data / "sts").glob(files)):
        with gzip.open(file, "rt", encoding="utf-8") as handle:
            next(handle)
            for line in handle:
                found.update(dict.fromkeys(line.rstrip("\n").split("\t")[-2:]))
    texts = sorted(found)
    random.Random(0).shuffle(texts)
    return texts[:count], "different sentences of all STS sets, seed 0"


def other_sentences(data: Path | None, count: int, measured: list[str]) -> list[str]:
    """Sentences of the STS training sets that are not measured, for calibration."""
    found, _ = sts_sentences(data, count + len(measured), files="*-train.tsv.gz")
    known = set(measured)
    return [text for text in found if text not in known][:count]


def alternate(contenders: Mapping[str, Callable[[], object]], rounds: int) -> dict[str, float]:
    """Median seconds of each contender. Every round runs all of them, so that noise affects all alike."""
    for run in contenders.values():
        run()  # warm-up
    seconds: dict[str, list[float]] = {name: [] for name in contenders}
    for _ in range(rounds):
        for name, run in contenders.items():
            started = time.perf_counter()
            run()
            seconds[name].append(time.perf_counter() - started)
    return {name: median(values) for name, values in seconds.items()}


def peak_mb() -> float:
    """Peak memory of this process, including pages of mapped files.

    On Linux this is not ``ru_maxrss``, which a child process inherits from its parent.
    """
    status = Path("/proc/self/status")
    lines = status.read_text(encoding="utf-8").splitlines() if status.exists() else []
    peak = next((int(line.split()[1]) for line in lines if line.startswith("VmHWM")), None)
    return (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss if peak is None else peak) / 1024


def machine() -> dict[str, Any]:
    """The processor, its vector extensions, and the versions of the packages."""
    information = Path("/proc/cpuinfo").read_text() if Path("/proc/cpuinfo").exists() else ""
    names = [line.split(":", 1)[1].strip() for line in information.splitlines() if line.startswith("model name")]
    flags = next((line.split(":", 1)[1].split() for line in information.splitlines() if line.startswith("flags")), [])
    return {
        "processor": names[0] if names else platform.processor(),
        "cores": os.cpu_count(),
        "abilities": [flag for flag in FLAGS if flag in flags],
        "python": platform.python_version(),
        "versions": {name: number for name in PACKAGES if (number := _version(name))},
    }


def _version(name: str) -> str | None:
    try:
        return version(name)
    except PackageNotFoundError:
        return None


def write_result(name: str, content: dict[str, Any]) -> Path:
    """Write a result with the commit and the machine to ``results/<date>-<name>.json``."""
    commit = subprocess.run(["git", "rev-parse", "--short", "HEAD"], capture_output=True, text=True, check=False)
    RESULTS.mkdir(exist_ok=True)
    path = RESULTS / f"{date.today().isoformat()}-{name}.json"
    whole = {"benchmark": name, "commit": commit.stdout.strip(), "machine": machine(), **content}
    path.write_text(json.dumps(whole, indent=1) + "\n", encoding="utf-8")
    print(f"written: {path}", file=sys.stderr)
    return path
