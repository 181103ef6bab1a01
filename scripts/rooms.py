"""The rooms of the package, lowest first: a module may import only from rooms above its own line.

    python scripts/rooms.py [--check]

The test of the layering reads this table, and docs/architecture.md shows it. With --check nothing is written; the exit
code says whether the page is behind the table.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

from result_markdown import fill_pages, table

__all__ = ["ROOMS"]

PAGE = Path(__file__).parents[1] / "docs/architecture.md"
PLACE = re.compile(r"(<!-- rooms -->\n).*?(<!-- end -->)", re.DOTALL)

# Modules of one line may not import each other.
ROOMS: list[dict[str, str]] = [
    {"errors": "every error raised on purpose", "types": "array aliases, protocols"},
    {
        "choices": "allowed words, the default model, sizes in bytes; no numpy",
        "extras": "the one gate for optional packages",
        "json_checks": "JSON from outside, checked where it is read",
        "ownership": "which folders are ours to replace or delete",
    },
    {
        "files": "JSON, atomic writes, digests, locks, sizes",
        "vectors": "similarities, and vectors in fewer bits",
        "wk": "SBERT-WK on arrays",
        "progress": "progress bars, control characters made visible",
        "metrics": "correlation, classification, clustering",
    },
    {"vector_store": "the cache of vectors by text"},
    {"model": "model folders: layout, saving, hub, tokenizer, identity"},
    {"engine": "config, weights, ONNX graph, layers, int8, runtimes, static tables, inspection"},
    {
        "token_rows": "texts to rows of token ids: prompts, limits, windows",
        "explanation": "what a vector and a cosine are made of",
    },
    {"encoder": "`Encoder`: texts in, one vector each out"},
    {"loading": "`load`: from a name to an encoder"},
    {"embedder": "`Embedder`: anything that embeds, with its identity; models and the cache in front of them"},
    {"scorer": "`Scorer`: anything that scores two texts together"},
    {"data": "tables in and out, training examples, checks, downloads"},
    {"search": "exact search, indexes, pairs, duplicates, hard negatives"},
    {"baselines": "the other systems of the papers: the Universal Sentence Encoder"},
    {
        "cluster": "k-means, agglomerative, communities, descriptions",
        "bulk": "embedding larger than memory, shards, Ray",
        "collection": "texts on disk, searchable (LanceDB)",
        "training": "recipes, network, objectives, loop, checkpoints (torch)",
    },
    {"evaluation": "tasks, statistics, systems under test, comparison"},
    {"analysis": "what layers do; the best readout for your pairs; speed"},
    {"report": "HTML pages, Markdown, plots"},
    {"__init__": "the public names"},
    {"cli": "commands: parse, call the library, print"},
]


def rendered(page: str) -> str:
    """The page with the table as it is now."""
    rows = [[f"`{name}`", what] for line in ROOMS for name, what in line.items() if name != "__init__"]
    shown = table(["room", "what is in it"], rows).replace("--:", "---")
    return PLACE.sub(lambda found: f"{found[1]}{shown}\n{found[2]}", page)


if __name__ == "__main__":
    sys.exit(fill_pages([PAGE], rendered, check="--check" in sys.argv))
