"""A static model in Twinvec and in sentence-transformers, compared with a Transformer in sentence-transformers.

    python benchmarks/static.py --model STATIC_FOLDER --rival TRANSFORMER_FOLDER [--data FOLDER] [--rounds 7]

All run in this process with their defaults, after a warm-up, on all cores, in alternation. The Transformer runs on the
first 2,000 texts. Twinvec caches words, so it is measured both on texts whose words it has seen ("again") and just
after loading ("new"). Speed is relative to the Transformer; fidelity is the cosine to the vectors that
sentence-transformers computes with the same static folder (an int8 table is saved as float32 for it).
"""

from __future__ import annotations

import logging
import tempfile
import warnings
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from common import alternate, arguments, sts_sentences, write_result
from numpy.typing import NDArray

import twinvec
from twinvec.loading import StaticEncoder
from twinvec.model.tokenizer import WordReader

N_TEXTS, N_RIVAL_TEXTS = 20_000, 2_000
AGAIN, NEW = "twinvec static, again", "twinvec static, new"
RIVAL_STATIC, RIVAL = "sentence-transformers static", "sentence-transformers Transformer"


class Contender:
    """A function that embeds texts, and its texts."""

    def __init__(self, embed: Callable[[list[str]], NDArray[np.float32]], texts: list[str]) -> None:
        self.embed, self.texts = embed, texts

    def __call__(self) -> NDArray[np.float32]:
        return self.embed(self.texts)


def contenders(static: Path, transformer: Path, texts: list[str]) -> dict[str, Contender]:
    """All contenders, each loaded once."""
    from sentence_transformers import SentenceTransformer

    encoder = twinvec.load(static)
    with tempfile.TemporaryDirectory() as folder:
        encoder.save(Path(folder) / "float32")
        table = SentenceTransformer(str(Path(folder) / "float32"), device="cpu")
    model = SentenceTransformer(str(transformer), device="cpu")
    opened = twinvec.load(static)
    assert isinstance(opened, StaticEncoder)

    def encode_uncached(texts: list[str]) -> NDArray[np.float32]:
        return replace(opened, _words=WordReader(opened.tokenizer)).encode(texts, progress=False)

    return {
        AGAIN: Contender(lambda texts: encoder.encode(texts, progress=False), texts),
        NEW: Contender(encode_uncached, texts),
        RIVAL_STATIC: Contender(lambda texts: table.encode(texts, show_progress_bar=False), texts),
        RIVAL: Contender(lambda texts: model.encode(texts, show_progress_bar=False), texts[:N_RIVAL_TEXTS]),
    }


def measure(runs: dict[str, Contender], rounds: int) -> list[dict[str, Any]]:
    """Speed and fidelity of each contender."""
    exact = runs[RIVAL_STATIC]()
    seconds = alternate(runs, rounds)
    rates = {name: len(run.texts) / seconds[name] for name, run in runs.items()}
    rows = []
    for name, run in runs.items():
        cosines = None if name == RIVAL else twinvec.similarity_pairwise(run(), exact)
        rows.append(
            {
                "name": name,
                "n_texts": len(run.texts),
                "sentences_per_second": round(rates[name], 1),
                "ratio": round(rates[name] / rates[RIVAL], 2),
                "mean_cosine": None if cosines is None else round(float(cosines.mean()), 6),
                "min_cosine": None if cosines is None else round(float(cosines.min()), 6),
            }
        )
    return rows


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("--rival", type=Path, required=True, help="folder of the Transformer to compare with")
    options = parser.parse_args()
    warnings.filterwarnings("ignore")
    logging.disable(logging.WARNING)
    texts, source = sts_sentences(options.data, N_TEXTS)
    texts = [text for text in texts if text.strip()]  # a text without a token has no direction to compare
    rows = measure(contenders(options.model, options.rival, texts), options.rounds)
    n_tokens = float(twinvec.load(options.model).count_tokens(texts).mean())
    print(f"\n{len(texts)} texts of {n_tokens:.1f} tokens: {source}\n")
    print(f"{'':38}{'texts/s':>10}{'ratio':>9}{'mean cos':>10}{'min cos':>10}")
    for row in rows:
        fidelity = "" if row["mean_cosine"] is None else f"{row['mean_cosine']:>10.6f}{row['min_cosine']:>10.6f}"
        print(f"{row['name']:38}{row['sentences_per_second']:>10.0f}{row['ratio']:>9.2f}{fidelity}")
    names = {"model": options.model.name, "rival": options.rival.name}
    write_result("static", {**names, "texts": source, "n_tokens": round(n_tokens, 2), "rows": rows})


if __name__ == "__main__":
    main()
