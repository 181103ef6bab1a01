"""Join the tables of static models into one of the same width, and write it over that of the first one.

    python recipes/join_tables.py TRAINED OTHER=SHARE [OTHER=SHARE ...] TEXTS [TEXTS ...]

The cosines of the joined table are near a mean of those of all: each OTHER counts its SHARE, and TRAINED counts the
rest to 1. Their vectors are put side by side, and the principal axes of the vectors of some texts are kept. TEXTS are
tables with a column ``text``, of which every tenth row is read. The tokens of all models must be the same. Unlike the
weights that mix.py mixes, the tables need not have the same axes. The card of TRAINED then says so.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from mix import named, read_shares, rewrite
from twinvec.data.examples import read_examples
from twinvec.data.roles import DataSource
from twinvec.engine.static import TABLE_NAMES, TableRuntime, read_table
from twinvec.engine.weights import pack_int8
from twinvec.model.tokenizer import Tokenizer, load_tokenizer
from twinvec.types import Vectors
from twinvec.vectors import unit_rows

ONE_IN = 10  # texts that decide the axes


def join(tables: Sequence[Vectors], shares: Sequence[float], texts: Sequence[str], tokenizer: Tokenizer) -> Vectors:
    """One table, as wide as the first of them."""
    ids = tokenizer.ids(texts)
    counts = np.array([len(each) for each in ids])
    flat = np.concatenate([np.asarray(each, dtype=np.int32) for each in ids])
    scaled: list[Vectors] = []
    found: list[Vectors] = []
    for table, share in zip(tables, shares, strict=True):
        vectors = TableRuntime(table, is_normalized=False).means(flat, np.cumsum(counts) - counts, counts)
        factor = np.float32(np.sqrt(share) / np.linalg.norm(vectors, axis=1).mean())
        scaled.append(factor * table)
        found.append(factor * vectors)
    vectors = unit_rows(np.concatenate(found, axis=1))
    values, axes = np.linalg.eigh(vectors.T.astype(np.float64) @ vectors)
    kept = np.argsort(-values, kind="stable")[: tables[0].shape[1]]
    print(f"{values[kept].sum() / values.sum():.1%} of the squared lengths of the vectors are kept")
    joined: Vectors = np.ascontiguousarray(np.concatenate(scaled, axis=1) @ axes[:, kept].astype(np.float32))
    return joined


def join_folders(target: Path, others: Mapping[Path, float], files: Sequence[Path]) -> None:
    """Join the tables of some folders, and write the table over that of ``target``."""
    shares = {target: 1 - sum(others.values()), **others}
    tokenizers = [load_tokenizer(folder) for folder in shares]
    texts = [text for file in files for text in read_examples(DataSource(str(file), "texts")).texts[::ONE_IN]]
    if len({each.fast.to_str() for each in tokenizers}) > 1 or not texts:
        sys.exit("The models have different tokens, or there are no texts. Nothing was changed.")
    joined = join([read_table(folder) for folder in shares], list(shares.values()), texts, tokenizers[0])
    rewrite(target, pack_int8({TABLE_NAMES[0]: joined}), f"Then the table was joined with that of {named(others)}.")


if __name__ == "__main__":
    folders = [each for each in sys.argv[2:] if "=" in each]
    if not folders or len(folders) == len(sys.argv) - 2:
        sys.exit(__doc__)
    join_folders(Path(sys.argv[1]), read_shares(folders), [Path(each) for each in sys.argv[2:] if each not in folders])
