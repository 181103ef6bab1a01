"""Choose the layers to keep: the dev score of every choice of two to four layers, before any training.

python recipes/layers.py recipes/mini.toml docs/models/layers.json
"""

from __future__ import annotations

import json
import logging
import sys
import tempfile
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np

import twinvec
from twinvec.data.examples import Examples, read_examples
from twinvec.engine.config import read_backbone
from twinvec.metrics import spearman
from twinvec.model.folder import read_model_folder
from twinvec.model.hub import find_model
from twinvec.training import read_recipe
from twinvec.training.networks.start import shrink_model

COUNTS = 2, 3, 4


def dev_score(model: Path, dev: Examples) -> float:
    """Spearman correlation of the cosine, x 100."""
    vectors = twinvec.load(model).encode(dev.texts, progress=False)
    left, right = (vectors[dev.indices[role]] for role in ("text1", "text2"))
    assert dev.targets is not None
    return 100 * spearman(twinvec.similarity_pairwise(left, right), np.asarray(dev.targets))


def main(recipe_file: Path, target: Path) -> None:
    """Prune, score and write; the last layer is always kept, because the readout expects its states."""
    recipe = read_recipe(recipe_file)
    assert recipe.dev is not None
    dev = read_examples(recipe.dev.source)
    folder = read_model_folder(find_model(recipe.model.start))
    *earlier, last = range(read_backbone(folder.config).n_blocks)
    rows: list[dict[str, Any]] = []
    with tempfile.TemporaryDirectory() as work:
        for layers in ((*few, last) for count in COUNTS for few in combinations(earlier, count - 1)):
            small = Path(work) / "-".join(map(str, layers))
            shrink_model(folder, small, layers=layers, trust_pickle=False)
            rows.append({"layers": layers, "dev": round(dev_score(small, dev), 2)})
            print(rows[-1])
    rows.sort(key=lambda row: (len(row["layers"]), -row["dev"]))
    whole = round(dev_score(folder.path, dev), 2)
    target.write_text(json.dumps({"whole": whole, "rows": rows}, indent=1) + "\n")


if __name__ == "__main__":
    logging.disable(logging.WARNING)
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    main(Path(sys.argv[1]), Path(sys.argv[2]))
