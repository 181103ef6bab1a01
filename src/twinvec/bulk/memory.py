"""How much memory there is for what: the share of the look-up."""

from __future__ import annotations

import sys
from pathlib import Path

from twinvec.errors import InputError
from twinvec.sizes import show_size

__all__ = ["lookup_bytes", "used_bytes"]

USUAL_LOOKUP_BYTES = 1 << 30  # 45 million texts; more are looked up on the disk
LEAST_LOOKUP_BYTES = 8 << 20
COPIES = 4  # of a shard's vectors: as they come, in a table, in its pages, and as the content of the file
OTHER_BYTES = 160 << 20  # texts and their tokens, batches, what the runtime keeps


def lookup_bytes(max_memory_bytes: int | None, *, used: int, shard: int) -> int:
    """What the look-up of known texts may take: the rest, after what is used now and a shard's vectors on their way."""
    if max_memory_bytes is None:
        return USUAL_LOOKUP_BYTES
    needed = used + COPIES * shard + OTHER_BYTES
    left = max_memory_bytes - needed
    if left < LEAST_LOOKUP_BYTES:
        raise InputError(
            f"The job needs about {show_size(needed + LEAST_LOOKUP_BYTES)}, but at most "
            f"{show_size(max_memory_bytes)} may be used.",
            hint="Allow more with --max-memory, or begin with smaller shards (--shard-rows).",
        )
    return left


def used_bytes() -> int:
    """Memory of this process that is resident now; where that cannot be asked, the most it ever was."""
    try:
        import resource
    except ImportError:  # a system without it does not say
        return 0
    statistics = Path("/proc/self/statm")
    if statistics.exists():
        return int(statistics.read_text().split()[1]) * resource.getpagesize()
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024
