"""Mix the weights of two models of the same shape, and write them over those of the second one.

    python recipes/mix.py START TRAINED SHARE

A SHARE of 0.7 goes seven tenths of the way from START to TRAINED. Both are folders with weights in int8. The card of
the second one then says so.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
from safetensors.numpy import save

from twinvec.engine.weights import pack_int8, read_weights
from twinvec.files import new_file
from twinvec.types import Array

TRAINED_AS = "The weights are those of step"  # how the line of a card begins that tells of the training


def mix(start: Path, trained: Path, share: float) -> dict[str, Array]:
    """The mean of the weights of both folders, those of ``trained`` counting ``share``."""
    first, second = (read_weights(folder) for folder in (start, trained))
    if {name: array.shape for name, array in first.items()} != {name: array.shape for name, array in second.items()}:
        sys.exit(f"{start} and {trained} do not have the same shape. Nothing was changed.")
    return {name: np.asarray((1 - share) * first[name] + share * second[name], dtype=np.float32) for name in second}


def with_note(card: str, start: str, share: float) -> str:
    """The card with a sentence on the mix after the one on the training.

    >>> print(with_note("The weights are those of step 9.\\n\\n## Data", "first", 0.7))
    The weights are those of step 9.
    Then they were mixed with those of first, 0.7 to 0.3. The score is from before the mix.
    <BLANKLINE>
    ## Data
    """
    note = f"Then they were mixed with those of {start}, {share:g} to {1 - share:g}. The score is from before the mix."
    lines = [f"{line}\n{note}" if line.startswith(TRAINED_AS) else line for line in card.split("\n")]
    return "\n".join(lines)


if __name__ == "__main__":
    if len(sys.argv) != 4:
        sys.exit(__doc__)
    start, folder = map(Path, sys.argv[1:3])
    try:
        share = float(sys.argv[3])
    except ValueError:
        sys.exit(f"SHARE must be a number, got {sys.argv[3]!r}. Nothing was changed.")
    for each in (start, folder):
        if not (each / "model.safetensors").is_file():
            sys.exit(f"{each} has no model.safetensors. Nothing was changed.")
    content = save(pack_int8(mix(start, folder, share)), metadata={"format": "pt"})
    with new_file(folder / "model.safetensors", replace=True) as file:
        file.write(content)
    card = folder / "README.md"
    if card.is_file():
        text = with_note(card.read_text(encoding="utf-8"), start.name, share)
        with new_file(card, replace=True) as file:
            file.write(text.encode("utf-8"))
