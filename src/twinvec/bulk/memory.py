"""How much memory there is for what: sizes as people write them, and the share of the look-up."""

from __future__ import annotations

import re
import sys
from pathlib import Path

from twinvec.errors import InputError

__all__ = ["lookup_bytes", "parse_size", "show_size", "used_bytes"]

UNITS = {"": 1, "k": 10**3, "m": 10**6, "g": 10**9, "t": 10**12, "ki": 2**10, "mi": 2**20, "gi": 2**30, "ti": 2**40}
USUAL_LOOKUP_BYTES = 1 << 30  # 45 million texts; more are looked up on the disk
LEAST_LOOKUP_BYTES = 8 << 20
COPIES = 4  # of a shard's vectors: as they come, in a table, in its pages, and as the content of the file
OTHER_BYTES = 160 << 20  # texts and their tokens, batches, what the runtime keeps


def parse_size(text: str) -> int:
    """A size in bytes, from a number with a unit.

    >>> parse_size("4GB"), parse_size("512 MiB"), parse_size("1.5g")
    (4000000000, 536870912, 1500000000)
    """
    match = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([kmgt]?i?)b?\s*", text.lower())
    if not match or match[2] not in UNITS:
        raise InputError(f"{text!r} is no size.", hint="Write it like 4GB or 512MiB.")
    return int(float(match[1]) * UNITS[match[2]])


def show_size(n_bytes: int) -> str:
    """A size for people.

    >>> show_size(1234), show_size(5_600_000_000)
    ('1.23 kB', '5.6 GB')
    """
    value, unit = float(n_bytes), "B"
    for larger in ("kB", "MB", "GB", "TB"):
        if value >= 1000:
            value, unit = value / 1000, larger
    return f"{value:.3g} {unit}"


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
