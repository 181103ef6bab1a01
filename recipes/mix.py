"""Mix the weights of models of the same shape, and write them over those of the first one.

    python recipes/mix.py TRAINED OTHER=SHARE [OTHER=SHARE ...]

Each OTHER counts its SHARE, and TRAINED counts the rest to 1: with twinvec-mini-first=0.3, the weights go seven tenths
of the way from it to TRAINED. All are folders with weights in int8. The card of TRAINED then says so.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path

import numpy as np
from safetensors.numpy import save

from twinvec.engine.weights import pack_int8, read_weights
from twinvec.files import new_file
from twinvec.types import Array

TRAINED_AS = "The weights are those of step"  # how the part of a card begins that tells of the training
BEFORE = " The score is from before."  # at the end of the notes


def mix(shares: Mapping[Path, float]) -> dict[str, Array]:
    """The sum of the weights of some folders, each times its share."""
    total: dict[str, Array] = {}
    for folder, share in shares.items():
        weights = read_weights(folder)
        if total and {name: each.shape for name, each in weights.items()} != {
            n: each.shape for n, each in total.items()
        }:
            sys.exit(f"{folder} does not have the shape of the others. Nothing was changed.")
        for name, each in weights.items():
            total[name] = np.asarray(total.get(name, 0) + share * each, dtype=np.float32)
    return total


def with_note(card: str, note: str) -> str:
    """The card with a sentence on what became of the trained weights, after those that it has.

    >>> print(with_note("The weights are those of step 9.\\n\\n## Data", "Then they were mixed."))
    The weights are those of step 9.
    Then they were mixed. The score is from before.
    <BLANKLINE>
    ## Data
    """
    parts = [
        f"{part.removesuffix(BEFORE)}\n{note}{BEFORE}" if part.startswith(TRAINED_AS) else part
        for part in card.split("\n\n")
    ]
    return "\n\n".join(parts)


def named(shares: Mapping[Path, float]) -> str:
    """The names of folders with their shares, for a card.

    >>> named({Path("models/first"): 0.3, Path("seed-1"): 0.4})
    'first (0.3) and seed-1 (0.4)'
    """
    return " and ".join(f"{folder.name} ({share:g})" for folder, share in shares.items())


def rewrite(target: Path, weights: Mapping[str, Array], note: str) -> None:
    """Replace the weights of a folder, and say so on its card."""
    with new_file(target / "model.safetensors", replace=True) as file:
        file.write(save(dict(weights), metadata={"format": "pt"}))
    card = target / "README.md"
    if card.is_file():
        text = with_note(card.read_text(encoding="utf-8"), note)
        with new_file(card, replace=True) as file:
            file.write(text.encode("utf-8"))


def read_shares(arguments: list[str]) -> dict[Path, float]:
    """The other folders with their shares."""
    shares = {}
    for argument in arguments:
        name, _, value = argument.rpartition("=")
        try:
            shares[Path(name)] = float(value)
        except ValueError:
            sys.exit(f"Write FOLDER=SHARE with a number, not {argument!r}. Nothing was changed.")
    return shares


if __name__ == "__main__":
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    target, others = Path(sys.argv[1]), read_shares(sys.argv[2:])
    if target in others or not np.isfinite(list(others.values())).all():
        sys.exit("Give other folders than TRAINED, and finite shares. Nothing was changed.")
    for each in (target, *others):
        if not (each / "model.safetensors").is_file():
            sys.exit(f"{each} has no model.safetensors. Nothing was changed.")
    mixed = mix({target: 1 - sum(others.values()), **others})
    rewrite(target, pack_int8(mixed), f"Then they were mixed with those of {named(others)}.")
