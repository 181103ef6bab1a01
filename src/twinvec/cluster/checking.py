"""What every way to cluster asks of its vectors."""

from __future__ import annotations

from twinvec.errors import InputError
from twinvec.types import Array

__all__ = ["check_not_empty"]


def check_not_empty(rows: Array) -> None:
    """Refuse an empty list of vectors."""
    if not len(rows):
        raise InputError("There are no vectors to cluster.", hint="Give at least one.")
