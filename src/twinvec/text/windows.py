"""Cut a long row of token ids into overlapping windows, so that none of it is lost."""

from __future__ import annotations

__all__ = ["windows"]


def windows(n_tokens: int, size: int, overlap: int) -> list[range]:
    """Ranges of at most ``size`` tokens that cover ``n_tokens``, neighbours sharing ``overlap`` or more.

    The last window is moved back rather than left short, so that each has a full context.

    >>> windows(10, size=4, overlap=1)
    [range(0, 4), range(3, 7), range(6, 10)]
    >>> windows(3, size=4, overlap=1)
    [range(0, 3)]
    """
    if n_tokens <= size:
        return [range(n_tokens)]
    starts = [*range(0, n_tokens - size, size - overlap), n_tokens - size]
    return [range(start, start + size) for start in starts]
