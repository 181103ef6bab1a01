"""Examples in memory: every different text once, and arrays that say which text plays which role in each row."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass

import numpy as np

from twinvec.types import Array, Ids

__all__ = ["Examples"]


@dataclass(frozen=True, eq=False)
class Examples:
    """``n`` examples of one kind.

    ``texts`` holds every different text once, in the order of first appearance. ``places`` gives for each role of a
    text its row in ``texts``: ``(n,)`` int64, or ``(n, n_negatives)`` for the role negative of ranked examples.
    ``targets`` is ``(n,)``: numbers of classes (int64, names in ``labels``), scores from 0 to 1 or marks 0 and 1
    (both float32), or None.
    """

    name: str
    kind: str
    texts: list[str]
    places: dict[str, Ids]
    targets: Array | None = None
    labels: tuple[str, ...] = ()

    def __len__(self) -> int:
        return len(next(iter(self.places.values())))

    def digest(self) -> str:
        """SHA-256 over all that training sees: equal for equal examples, on any machine, whatever the file's name.

        >>> one = Examples("a.txt", "texts", ["Hi."], {"text": np.array([0])})
        >>> one.digest() == Examples("b.csv", "texts", ["Hi."], {"text": np.array([0])}).digest()
        True
        """
        state = hashlib.sha256(json.dumps([self.kind, self.labels, len(self.texts)]).encode())
        for text in self.texts:
            data = text.encode()
            state.update(len(data).to_bytes(8, "little") + data)  # the length keeps "ab", "c" apart from "a", "bc"
        arrays = {f"place {role}": array for role, array in sorted(self.places.items())}
        if self.targets is not None:
            arrays["targets"] = self.targets
        for role, array in arrays.items():
            fixed = np.ascontiguousarray(array, dtype=array.dtype.newbyteorder("<"))
            state.update(json.dumps([role, fixed.dtype.str, fixed.shape]).encode() + fixed.tobytes())
        return state.hexdigest()
