"""Corrupt the content of files and server responses with seeded random changes."""

from __future__ import annotations

import copy
import json
import random

DEEP = 100_000  # levels, more than any parser accepts
ODD = [
    *(None, True, False, 0, -1, 1, 7, 2**31, 2**63, 10**400, 0.5, -0.0, 1e39, 1e308),
    *(float("nan"), float("inf"), -float("inf"), "", "0", "1.0", "nan", "x" * 300, "a\0b", "\ud800", "\x1b]0;x\x07"),
    *([], [[]], {}, [None], {"": None}, {"a": {"b": []}}, [1, "2"]),
]


def value_paths(content, path=()):
    """The paths of all values in nested lists and dicts; the first is that of the whole."""
    found = [path]
    items = content.items() if isinstance(content, dict) else enumerate(content) if isinstance(content, list) else ()
    for key, value in items:
        found += value_paths(value, (*path, key))
    return found


def mutated(content, rng: random.Random):
    """A copy with one to three changes."""
    content = copy.deepcopy(content)
    for _ in range(rng.choice([1, 1, 2, 3])):
        path = rng.choice(value_paths(content))
        if not path:
            continue
        parent = content
        for key in path[:-1]:
            parent = parent[key]
        rng.choice([replace, replace, replace, remove, repeat, rename, swap, wrap])(parent, path[-1], rng)
    return content


def replace(parent, key, rng):
    parent[key] = copy.deepcopy(rng.choice(ODD))


def remove(parent, key, rng):
    del parent[key]


def repeat(parent, key, rng):
    if isinstance(parent, list):
        parent.insert(key, copy.deepcopy(parent[key]))
    else:
        parent[f"{key}2"] = copy.deepcopy(parent[key])


def rename(parent, key, rng):
    if isinstance(parent, dict):
        parent[rng.choice(["", "x", key.upper(), f"{key} "])] = parent.pop(key)


def swap(parent, key, rng):
    other = rng.choice(list(parent) if isinstance(parent, dict) else range(len(parent)))
    parent[key], parent[other] = parent[other], parent[key]


def wrap(parent, key, rng):
    parent[key] = rng.choice([[parent[key]], {"value": parent[key]}, str(parent[key])])


def damaged(content: bytes, rng: random.Random) -> bytes:
    """The bytes with one change: truncated, changed or inserted."""
    at = rng.randrange(len(content) + 1)
    odd = [b"\0", b"\xff\xfe", b"\xef\xbb\xbf", b"[" * DEEP, b'{"a":' * DEEP, b"9" * 5000, b"\n", b"\r", b'"', b"="]
    return rng.choice(
        [
            content[:at],
            content[at:],
            content[:at] + bytes([rng.randrange(256)]) + content[at + 1 :],
            content[:at] + rng.choice(odd) + content[at:],
            b"",
        ]
    )


def mutated_json(content, rng: random.Random) -> bytes:
    """JSON with changed values or bytes."""
    raw = json.dumps(mutated(content, rng) if rng.random() < 0.8 else content).encode("utf-8", "surrogatepass")
    return damaged(raw, rng) if rng.random() < 0.25 else raw
