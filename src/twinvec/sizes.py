"""Sizes in bytes, as people write and read them."""

from __future__ import annotations

import re

from twinvec.errors import InputError

__all__ = ["parse_size", "show_size"]

UNITS = {"": 1, "k": 10**3, "m": 10**6, "g": 10**9, "t": 10**12, "ki": 2**10, "mi": 2**20, "gi": 2**30, "ti": 2**40}
LEAST_THREE_DIGITS = 999.5  # from here on, three digits round to a thousand


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

    >>> show_size(1234), show_size(5_600_000_000), show_size(999_900)
    ('1.23 kB', '5.6 GB', '1 MB')
    """
    value, unit = float(n_bytes), "B"
    for larger in ("kB", "MB", "GB", "TB"):
        if value >= LEAST_THREE_DIGITS:
            value, unit = value / 1000, larger
    return f"{value:.3g} {unit}"
