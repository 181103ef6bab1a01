"""Seeded mutations of bytes and JSON values, for tests that open folders written by Twinvec."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class Case:
    """``make`` fills a folder; ``files`` are mutated in their first ``head`` bytes; ``use`` opens the folder.

    ``use`` returns a comparable result, which must be the same after every mutation that it accepts.
    """

    name: str
    make: Callable[[Path], None]
    files: tuple[str, ...]
    use: Callable[[Path], object]
    head: int | None = None


VALUES: list[Any] = [
    None, True, False, 0, -1, 1, 2, 1.5, -0.0, 1e308, float("inf"), float("nan"), 2**31, 2**63, 10**30, "", "x", "0",
    "..", "../x", "/etc/passwd", "a\0b", "ü", "n" * 300, [], [[]], {}, {"a": 1}, [None], ["exact"],
]  # fmt: skip


def mutated(content: bytes, rng: random.Random, head: int | None = None) -> bytes:
    """Changed content; about half of the JSON files stay valid JSON."""
    if head is None and rng.random() < 0.6:
        try:
            return json.dumps(_other_value(json.loads(content), rng)).encode()
        except ValueError:
            pass
    end = min(len(content), head or len(content))
    change = rng.choice(BYTE_CHANGES)
    return change(content[:end], rng) + content[end:]


def _other_value(value: Any, rng: random.Random) -> Any:
    """The value with one part replaced, removed, added or deeply nested."""
    items = list(_items(value))
    holder, key = rng.choice(items)
    kind = rng.randrange(10)
    if kind == 0:
        del holder[key]
    elif kind == 1 and isinstance(holder, dict):
        holder[rng.choice(["unheard", "__class__", "kind", "format", "n"])] = rng.choice(VALUES)
    elif kind == 2:
        holder[key] = _nested(rng.choice([5, 200, 700]))
    elif kind == 3:
        holder[key] = rng.choice([rng.choice(items)[0], holder[key]])
    elif isinstance(holder[key], int) and kind < 7:
        holder[key] += rng.choice([-1, 1, 7, -(10**6), 10**12])
    else:
        holder[key] = rng.choice(VALUES)
    return json.loads(json.dumps(value, default=str)) if kind != 3 else value


def _nested(depth: int) -> Any:
    value: Any = []
    for _ in range(depth):
        value = [value]
    return value


def _items(value: Any) -> Iterator[tuple[Any, Any]]:
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, inner in list(items):
        yield value, key
        yield from _items(inner)


def _flip(content: bytes, rng: random.Random) -> bytes:
    whole = bytearray(content or b"0")
    for _ in range(rng.randint(1, 4)):
        whole[rng.randrange(len(whole))] = rng.randrange(256)
    return bytes(whole)


BYTE_CHANGES: list[Callable[[bytes, random.Random], bytes]] = [
    _flip,
    lambda content, rng: content[: rng.randrange(len(content) + 1)],
    lambda content, rng: b"",
    lambda content, rng: content + rng.randbytes(rng.randint(1, 50)),
    lambda content, rng: (b"[" if rng.random() < 0.5 else b'{"a":') * 100_000,
    lambda content, rng: content.replace(b"0", b"9" * rng.choice([1, 5000]), 1),
]


def failures(case: Case, folder: Path, n: int, seed: int, expected: tuple[type[Exception], ...]) -> list[str]:
    """Mutate ``n`` times; return the cases with neither an expected error nor the right result."""
    case.make(folder)
    right, rng, wrong = case.use(folder), random.Random(seed), []
    for number in range(n):
        path = folder / rng.choice(case.files)
        whole = path.read_bytes()
        path.write_bytes(mutated(whole, rng, case.head))
        try:
            found = case.use(folder)
            if found != right:
                wrong.append(f"{case.name} {number}: another result from {path.name}: {path.read_bytes()[:300]!r}")
        except expected:
            pass
        except Exception as error:
            message = f"{type(error).__name__}: {error!s:.200}"
            wrong.append(f"{case.name} {number}: {message} from {path.name}: {path.read_bytes()[:300]!r}")
        path.write_bytes(whole)
    return wrong
