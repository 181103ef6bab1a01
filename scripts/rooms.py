"""The rooms (modules and subpackages) of Twinvec, lowest first: each may import only from the lines above its own.

    python scripts/rooms.py [--check]

Writes the table into docs/architecture.md; a test checks the imports against it. With --check nothing is written, and
the exit code is 1 if the page is out of date.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

from result_markdown import fill_pages, table

__all__ = ["ROOMS"]

PAGE = Path(__file__).parents[1] / "docs/architecture.md"
BLOCK = re.compile(r"(<!-- rooms -->\n).*?(<!-- end -->)", re.DOTALL)

# Rooms in the same line may not import each other.
ROOMS: list[dict[str, str]] = [
    {"errors": "every error raised on purpose", "types": "array aliases, protocols"},
    {
        "choices": "allowed words, the default model, sizes in bytes; no numpy",
        "extras": "imports of optional packages",
        "json_checks": "checks of JSON from untrusted files",
        "ownership": "which folders may be overwritten or deleted",
    },
    {
        "files": "JSON, atomic writes, digests, locks, sizes",
        "vectors": "similarities, int8 and binary vectors",
        "wk": "SBERT-WK on arrays",
        "progress": "progress bars, control characters made visible",
        "metrics": "correlation, classification, clustering",
    },
    {"vector_store": "cache of vectors by text"},
    {"model": "model folders: layout, saving, hub, tokenizer, identity"},
    {"engine": "config, weights, ONNX graph, layers, int8, runtimes, static tables, inspection"},
    {
        "token_rows": "texts to rows of token ids: limits, windows, batches",
        "explanation": "contributions of tokens to a vector and a cosine",
    },
    {"encoder": "`Encoder`: texts to vectors"},
    {"loading": "`load`: from a name to an encoder"},
    {"embedder": "`Embedder`: the protocol of everything that embeds; models and their cache"},
    {"scorer": "`Scorer`: anything that scores two texts together"},
    {"pairs": "cross- and poly-encoders: two texts in, one score out"},
    {"data": "tables in and out, training examples, checks, downloads"},
    {"remote": "`Client`: models behind an HTTP server; connections, retries, keys"},
    {"search": "exact search, indexes, pairs, duplicates, hard negatives"},
    {"baselines": "word vectors, InferSent, DAN, tf-idf, BM25, USE: other systems to compare models with"},
    {
        "cluster": "k-means, agglomerative, communities, descriptions",
        "bulk": "embedding of data larger than memory, shards, Ray",
        "collection": "texts on disk, searchable (LanceDB)",
        "training": "recipes, network, objectives, loop, checkpoints (torch)",
    },
    {"evaluation": "tasks, statistics, systems under test, comparison"},
    {"analysis": "layer analysis, readout sweep, speed"},
    {"report": "HTML pages, Markdown, plots"},
    {"server": "HTTP: dialects of embedding clients, batching across clients, protection (starlette)"},
    {"__init__": "the public names"},
    {"cli": "commands: parse, call the library, print"},
]


def rendered(page: str) -> str:
    """The page with the current table."""
    rows = [[f"`{name}`", what] for line in ROOMS for name, what in line.items() if name != "__init__"]
    current = table(["room", "contents"], rows).replace("--:", "---")
    return BLOCK.sub(lambda block: f"{block[1]}{current}\n{block[2]}", page)


if __name__ == "__main__":
    sys.exit(fill_pages([PAGE], rendered, check="--check" in sys.argv))
