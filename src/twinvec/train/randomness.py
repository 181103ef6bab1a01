"""Dropout as a function of seed and step, not of history: a resumed run draws what the first one drew."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import torch

__all__ = ["DROPOUT", "HEADS", "drawn_from"]

HEADS, DROPOUT = 0, 1  # the first number of what is drawn, so that no two draws are the same


@contextmanager
def drawn_from(*numbers: int, device: str = "cpu") -> Iterator[None]:
    """Let torch draw from a state made of these numbers; its own state comes back afterwards.

    >>> with drawn_from(3, 1): first = torch.rand(1)
    >>> with drawn_from(3, 1): bool(first == torch.rand(1))
    True
    """
    seed = int(np.random.SeedSequence(numbers).generate_state(1, np.uint64)[0] >> 1)
    with torch.random.fork_rng(devices=[] if torch.device(device).type == "cpu" else [torch.device(device)]):
        torch.manual_seed(seed)
        yield
