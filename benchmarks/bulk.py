"""Rates of a bulk job: compared with the encoder alone, without a model, on unchanged rows, reading, searching, pairs.

python benchmarks/bulk.py [--model FOLDER ...] [--count 20000] [--driver-count 200000] [--rounds 5] [--folder FOLDER]
"""

from __future__ import annotations

import resource
import shutil
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from itertools import islice
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
from common import alternate, arguments, sts_sentences, write_result

from twinvec.bulk import BulkSettings, embed_bulk, open_bulk, pairs_of_shards, read_bulk, search_shards
from twinvec.choices import Role
from twinvec.embedder import ModelEmbedder
from twinvec.types import Vectors

WIDTH = 384
VECTORS = np.random.default_rng(0).standard_normal((16_384, WIDTH), dtype=np.float32)  # one shard
SHIPPED = ("twinvec-mini", "float32"), ("twinvec-mini", "int8"), ("twinvec-static", "float32")


class NoModel:
    """Returns constant vectors, so that only reading, lookup and writing take time."""

    name, identity, width, similarity = "no model", "0" * 64, WIDTH, "cosine"
    settings: Mapping[str, Any] = {}

    def embed(self, texts: Sequence[str], *, role: Role = "text") -> Vectors:
        return VECTORS[: len(texts)]


def distinct_texts(data: Path | None, count: int) -> tuple[list[str], str]:
    """``count`` distinct texts; if there are too few, some are repeated with a number appended."""
    found, origin = sts_sentences(data, count)
    again = (f"{text} {turn}" for turn in range(1, 1 + count) for text in found)
    return [*found, *islice(again, count - len(found))], origin


def write_lines(path: Path, texts: Sequence[str]) -> None:
    path.write_text("".join(f"{' '.join(text.split())}\n" for text in texts), encoding="utf-8")


def timed(run: Callable[[], object], rounds: int) -> float:
    """Median seconds, after one warm-up run."""
    return alternate({"": run}, rounds)[""]


def measured(model: ModelEmbedder, source: Path, folder: Path, *, rounds: int) -> dict[str, Any]:
    """Measure the encoder alone and the whole job, in alternation."""
    texts = source.read_text(encoding="utf-8").splitlines()
    encoder = model.encoder  # load before the clock starts
    bulk_s, alone_s = [], []
    for _ in range(rounds + 1):
        shutil.rmtree(folder, ignore_errors=True)
        started = time.perf_counter()
        embed_bulk(source, folder, model)
        bulk_s.append(time.perf_counter() - started)
        started = time.perf_counter()
        for first in range(0, len(texts), 16_384):
            encoder.encode_block(texts[first : first + 16_384])
        alone_s.append(time.perf_counter() - started)
    whole, alone = (len(texts) / median(seconds[1:]) for seconds in (bulk_s, alone_s))  # the first round is a warm-up
    return {
        "name": f"{Path(model.model).name} {model.arguments['precision']}",
        "encoder_per_second": round(alone, 1),
        "bulk_per_second": round(whole, 1),
        "share": round(whole / alone, 3),
        "bytes_per_text": round(size_of(folder) / len(texts), 1),
        "width": open_bulk(folder).result.width,
    }


def size_of(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


def driver(source: Path, folder: Path, *, n: int, rounds: int) -> dict[str, int]:
    """The rates of everything but embedding, in texts per second."""

    def start_over() -> None:
        embed_bulk(source, folder, NoModel(), settings=BulkSettings(force=True))

    queries = np.random.default_rng(0).standard_normal((100, WIDTH), dtype=np.float32)
    few = min(n, 20_000)
    seconds = {
        "no_model": timed(start_over, rounds),
        "again": timed(lambda: embed_bulk(source, folder, NoModel()), rounds),
        "read": timed(lambda: [None for _ in read_bulk(folder)], rounds),
    }
    rates = {name: round(n / each) for name, each in seconds.items()}
    rates["compared"] = round(n * len(queries) / timed(lambda: search_shards(folder, queries), rounds))
    small = source.with_name("few.txt")
    small.write_text("".join(source.read_text(encoding="utf-8").splitlines(keepends=True)[:few]), encoding="utf-8")
    embed_bulk(small, folder.with_name("few"), NoModel())
    rates["pairs"] = round(
        few * (few - 1) / 2 / timed(lambda: pairs_of_shards(folder.with_name("few"), k=1000), rounds)
    )
    return rates


def main() -> None:
    parser = arguments(__doc__)
    parser.set_defaults(rounds=5)
    parser.add_argument("--count", type=int, default=20_000)
    parser.add_argument("--driver-count", type=int, default=200_000, help="texts for the measurements without a model")
    parser.add_argument("--folder", type=Path, help="where to write (default: a temporary folder)")
    options = parser.parse_args()
    texts, origin = distinct_texts(options.data, options.count)
    more, _ = distinct_texts(options.data, options.driver_count)
    with tempfile.TemporaryDirectory(dir=options.folder) as work:
        source, folder = Path(work, "texts.txt"), Path(work, "out")
        write_lines(source, texts)
        rows = [
            measured(ModelEmbedder(str(name), {"precision": precision}), source, folder, rounds=options.rounds)
            for name, precision in [(options.model, "float32"), (options.model, "int8"), *SHIPPED]
        ]
        shutil.rmtree(folder)
        write_lines(source, more)
        rates = driver(source, folder, n=len(more), rounds=options.rounds)
    for row in rows:
        print(f"{row['name']:24} {row['bulk_per_second']:>10,.0f} per second, {row['share']:.0%} of the encoder alone")
    print(rates)
    content = {
        "texts": origin,
        "n_texts": len(texts),
        "rows": rows,
        "n_driver_texts": len(more),
        "driver": rates,
        "peak_mb": round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024),
    }
    write_result("bulk", content)


if __name__ == "__main__":
    main()
