"""Record digests of what Twinvec computes, to verify that a refactoring changes no result.

    python scripts/witness.py record before.json      # at the old commit
    python scripts/witness.py compare before.json     # at the new one, on the same machine

It embeds with the shipped models and with tiny random ones, runs a bulk job, builds indexes, trains a tiny model with
every objective (uninterrupted, and stopped and resumed), evaluates, clusters, searches a collection, and stores a
digest of the bits of each result. Evaluation requires a data folder in TWINVEC_DATA. Requires all extras.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import random
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tests/support"))

import twinvec  # noqa: E402
from tiny import FAMILIES, WORDS, write_tiny_model  # noqa: E402
from training import make_recipe, sts_source, write_pairs, write_sts  # noqa: E402
from twinvec.bulk import BulkSettings, FileSource, embed_bulk, read_bulk  # noqa: E402
from twinvec.choices import POOLINGS  # noqa: E402
from twinvec.cluster import Agglomerative, AgglomerativeSettings, Communities, CommunitySettings, KMeans, KMeansSettings  # noqa: E402
from twinvec.data.roles import DataSource  # noqa: E402
from twinvec.engine.calibration import sample_texts  # noqa: E402
from twinvec.search import (  # noqa: E402
    IndexSettings,
    build_index,
    duplicate_rows,
    most_similar_pairs,
    save_index,
    search,
    search_index,
)

EVALUATED = ("stsb", "sick-r", "cr", "cranfield")
OBJECTIVES: dict[str, tuple[str, dict[str, Any]]] = {
    "softmax": ("labelled_pairs", {}),
    "cosine": ("scored_pairs", {}),
    "triplet": ("triplets", {}),
    "ranking": ("ranked", {}),
    "cosent": ("scored_pairs", {}),
    "contrastive": ("marked_pairs", {}),
    "distillation": ("texts", {"options": {"similarity_weight": 1.0}}),
}


def digest(values: object) -> str:
    """The first half of the sha256 of an array's bits and shape, or of any other value as JSON."""
    state = hashlib.sha256()
    if isinstance(values, np.ndarray):
        state.update(f"{values.dtype.str} {values.shape}".encode() + np.ascontiguousarray(values).tobytes())
    else:
        state.update(json.dumps(values, sort_keys=True, default=lambda each: digest(np.asarray(each))).encode())
    return state.hexdigest()[:32]


def file_digests(folder: Path, pattern: str) -> list[str]:
    """Name and digest of all files in a folder that match a pattern."""
    files = sorted(file for file in folder.rglob(pattern) if file.is_file())
    return [f"{file.relative_to(folder)} {hashlib.sha256(file.read_bytes()).hexdigest()}" for file in files]


def vectors(work: Path) -> Iterator[tuple[str, object]]:
    """Both shipped models and every tiny architecture, in every precision, pooling and readout."""
    texts = sample_texts(200)
    long = [" ".join(texts[:40]), "short", " ".join(texts[40:60])]
    runs: dict[str, dict[str, Any]] = {
        "float32": {},
        "int8": {"precision": "int8"},
        "wk paper": {"readout": twinvec.WKSettings(mode="paper")},
        "wk reference": {"readout": twinvec.WKSettings(mode="reference")},
        **{f"pooling {mode}": {"readout": mode} for mode in POOLINGS},
        "chunked": {"long": "chunk"},
        "truncated": {"truncate_dim": 64},
        "deterministic": {"deterministic": True, "threads": 1},
    }
    for name, settings in runs.items():
        yield f"twinvec-mini {name}", twinvec.load("twinvec-mini", **settings).encode(texts + long)
    static = twinvec.load("twinvec-static", long="cut")
    yield "twinvec-static", static.encode(texts + long)
    mini = twinvec.load("twinvec-mini", long="cut")
    yield "layers", mini.encode_layers(texts[0])
    yield "explained", mini.explain_pair(texts[0], texts[1]).contributions
    yield "int8 codes", mini.encode(texts, output="int8")
    made = [" ".join(random.Random(i).choices(WORDS, k=3 + i % 9)) for i in range(40)]
    for family in FAMILIES:
        folder = write_tiny_model(work / family, family)
        for precision in ("float32", "int8"):
            yield f"{family} {precision}", twinvec.load(folder, precision=precision).encode(made)  # type: ignore[arg-type]
        yield f"{family} layers", twinvec.load(folder).encode_layers(made[0])


def bulk(work: Path) -> Iterator[tuple[str, object]]:
    """The shards of a bulk folder, and the rows that it returns."""
    source = work / "texts.txt"
    texts = sample_texts(150)
    source.write_text("\n".join([*texts, *texts[:30]]) + "\n")
    for shard_format in ("parquet", "arrow"):
        folder = work / shard_format
        settings = BulkSettings(shard_rows=64, shard_format=shard_format)  # type: ignore[arg-type]
        embed_bulk(FileSource(str(source)), folder, "twinvec-mini", settings=settings)
        batches = list(read_bulk(folder))
        yield f"rows {shard_format}", np.concatenate([batch.vectors for batch in batches])
        yield f"texts {shard_format}", [text for batch in batches for text in batch.texts]
        yield f"shards {shard_format}", file_digests(folder, f"*.{shard_format}")


def searches(work: Path) -> Iterator[tuple[str, object]]:
    """Exact search, pairs, duplicates, and the hits and files of every kind of index."""
    rng = np.random.default_rng(0)
    rows = (rng.normal(size=(60, 32))[rng.integers(60, size=3000)] + 0.5 * rng.normal(size=(3000, 32))).astype("f4")
    queries = rows[::100] + np.float32(0.1)
    hits = search(queries, rows, k=10)
    yield "exact ids", hits.ids
    yield "exact scores", hits.scores
    pairs = most_similar_pairs(rows, k=500)
    yield "pairs", np.stack([pairs.left, pairs.right])
    yield "pair scores", pairs.scores
    yield "duplicates", np.asarray(duplicate_rows(rows, threshold=0.9).kept)
    kinds = {
        "exact": IndexSettings("exact"),
        "flat": IndexSettings("flat"),
        "ivf-sq8": IndexSettings("ivf-sq8", n_cells=16, effort=4),
        "ivf-pq": IndexSettings("ivf-pq", n_cells=16, effort=4, code_bytes=8, oversample=20),
    }
    for name, settings in kinds.items():
        index = build_index(rows, settings, progress=False)
        found = search_index(index, queries, k=10, vectors=rows)
        yield f"{name} hits", found.ids
        save_index(index, work / name)
        kept = [row for row in file_digests(work / name, "*") if not row.endswith(".json") and ".json " not in row]
        yield f"{name} files", kept


def clusters(work: Path) -> Iterator[tuple[str, object]]:
    """The labels that each algorithm assigns to sentences."""
    rows = twinvec.load("twinvec-static", long="cut").encode(sample_texts(600))
    yield "k-means", KMeans(KMeansSettings(12)).fit(rows).labels_
    yield "agglomerative", Agglomerative(AgglomerativeSettings(0.6)).fit(rows).labels_
    yield "communities", Communities(CommunitySettings(0.6)).fit(rows).labels_


def collection(work: Path) -> Iterator[tuple[str, object]]:
    """The hits of a collection by meaning, by words and by both."""
    texts = sample_texts(200)
    made = twinvec.Collection.create(work / "collection", model="twinvec-mini")
    made.add(texts, [f"id{i}" for i in range(200)], [{"number": i} for i in range(200)])
    for mode in ("dense", "text", "hybrid"):
        hits = [made.search(query, 5, mode=mode) for query in texts[:10]]  # type: ignore[arg-type]
        yield mode, [[(hit.id, float(hit.score)) for hit in each] for each in hits]
    yield "filtered", [(hit.id, float(hit.score)) for hit in made.search(texts[0], 5, where="number > 100")]


def _marked(path: Path) -> Path:
    rng = random.Random(5)
    lines = ["label\ttext1\ttext2"]
    for i in range(40):
        left = " ".join(rng.choices(WORDS, k=5))
        lines.append(f"{i % 2}\t{left}\t{left if i % 2 else ' '.join(rng.choices(WORDS, k=5))}")
    path.write_text("\n".join(lines) + "\n")
    return path


def training(work: Path) -> Iterator[tuple[str, object]]:
    """The weights of a tiny model after each objective, trained without and with an interruption."""
    from twinvec.training.loop import StepReport
    from twinvec.training.recipe import DataPart
    from twinvec.training.run import RunOptions, run_recipe

    os.environ["TWINVEC_CACHE"] = str(work / "cache")
    start = write_tiny_model(work / "start")
    texts = work / "texts.tsv"
    texts.write_text("text\n" + "\n".join(" ".join(random.Random(i).choices(WORDS, k=6)) for i in range(40)) + "\n")
    pairs = write_pairs(work / "pairs.tsv")
    sources = {
        "labelled_pairs": None,
        "scored_pairs": sts_source(write_sts(work / "scored.tsv", seed=4)),
        "triplets": DataSource(str(pairs), "triplets"),
        "ranked": DataSource(str(pairs), "ranked"),
        "marked_pairs": DataSource(str(_marked(work / "marked.tsv")), "marked_pairs"),
        "texts": DataSource(str(texts), "texts"),
    }
    for objective, (kind, more) in OBJECTIVES.items():
        recipe = make_recipe(work, start)
        source = sources[kind] or recipe.data[0].source
        teachers = (str(write_tiny_model(work / "teacher", "mpnet", seed=3)),) if kind == "texts" else ()
        recipe = replace(recipe, data=(DataPart(source, objective, teachers=teachers, **more),))
        for event in run_recipe(recipe, work / objective, RunOptions()):
            del event
        yield objective, file_digests(work / objective, "*.safetensors")
        events = run_recipe(recipe, work / f"{objective}-resumed", RunOptions(checkpoint_every=2))
        for event in events:
            if isinstance(event, StepReport) and event.step == 5:
                events.close()
                break
        list(run_recipe(recipe, work / f"{objective}-resumed", RunOptions(checkpoint_every=2)))
        yield f"{objective} resumed", file_digests(work / f"{objective}-resumed", "*.safetensors")


def evaluation(work: Path) -> Iterator[tuple[str, object]]:
    """The scores and intervals of an evaluation, to the last digit."""
    from twinvec.embedder import CachedEmbedder, ModelEmbedder
    from twinvec.evaluation.evaluate import load_tasks, run_suite

    data = os.environ.get("TWINVEC_DATA")
    if not data:
        return
    cached = CachedEmbedder(ModelEmbedder("twinvec-static"), None)
    for run in run_suite(load_tasks(EVALUATED, Path(data)), cached.embed):
        for number, result in enumerate(run.results):
            yield f"{run.name} {number}", repr((result.value, result.low, result.high))


PARTS: dict[str, Callable[[Path], Iterator[tuple[str, object]]]] = {
    "vectors": vectors,
    "bulk": bulk,
    "search": searches,
    "cluster": clusters,
    "collection": collection,
    "training": training,
    "evaluation": evaluation,
}


def record(parts: list[str]) -> dict[str, str]:
    """The digest of every result of these parts."""
    found = {}
    for part in parts:
        with TemporaryDirectory(prefix="witness-") as folder:
            for name, values in PARTS[part](Path(folder)):
                found[f"{part}: {name}"] = digest(values)
        print(f"{part}: done, {len(found)} digests", file=sys.stderr)
    return found


def main() -> int:
    """Record digests, or compare with recorded ones; returns 1 if any differs."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("action", choices=["record", "compare"])
    parser.add_argument("file", type=Path)
    parser.add_argument("--part", action="append", choices=list(PARTS), help="only this part; may be repeated")
    options = parser.parse_args()
    parts = options.part or list(PARTS)
    found = record(parts)
    if options.action == "record":
        options.file.write_text(json.dumps(found, indent=1) + "\n")
        print(f"{len(found)} digests in {options.file}")
        return 0
    before = {
        name: value for name, value in json.loads(options.file.read_text()).items() if name.split(":")[0] in parts
    }
    wrong = [name for name in {**before, **found} if before.get(name) != found.get(name)]
    for name in wrong:
        print(f"differs: {name}: {before.get(name, 'not recorded')} -> {found.get(name, 'not computed')}")
    print(f"{len(found) - len(wrong)} of {len(before)} digests are the same")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
