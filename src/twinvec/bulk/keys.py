"""What texts are known by: the first 16 bytes of their sha256, as arrays that numpy sorts and searches.

Among a billion texts the chance that any two share a key is 1.5e-21.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from twinvec.vector_store import text_key

__all__ = ["KEY_BYTES", "Keys", "keys_of"]

Keys: TypeAlias = NDArray[np.bytes_]  # (n,) of S16; single elements lose zero bytes at their end, whole arrays do not

KEY_BYTES = 16


def keys_of(texts: Sequence[str]) -> Keys:
    """The keys of some texts, ``(n,)``.

    >>> keys = keys_of(["a cat", "a dog", "a cat"])
    >>> keys.dtype, bool(keys[0] == keys[2]), bool(keys[0] == keys[1])
    (dtype('S16'), True, False)
    """
    return np.frombuffer(b"".join(text_key(text)[:KEY_BYTES] for text in texts), dtype=f"S{KEY_BYTES}")
