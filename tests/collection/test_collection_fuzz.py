"""Headers of collections, changed at random: each opens a collection that works, or is refused with a TwinvecError."""

from __future__ import annotations

import json
import os
import random
import time
from copy import deepcopy

import pytest

from fuzzed_collection import FILES, make, use
from twinvec.errors import TwinvecError

pytest.importorskip("lancedb")

N_HEADERS = int(os.environ.get("TWINVEC_FUZZ_HEADERS", "200"))  # more by hand
SECONDS_EACH = 5.0  # an average; a header that takes for ever fails the run
SEED = int(os.environ.get("TWINVEC_FUZZ_SEED", "17"))
JUNK = [
    *(None, True, False, 0, 1, -1, 1.5, 2**31, 10**30, float("nan"), float("inf"), "", "x", "\ud800", "x" * 300),
    *([], {}, [[]], {"a": 1}, "a\0b", "../..", "/", "~", "//host/share", "cosine", "dot", "float32", "int8", "German"),
    {"trust_pickle": True},
    {"mode": "paper", "layer_start": 10**30},
    {"readout": "wk", "truncate_dim": 3},
]


def places_in(value, path=()):
    """The paths of all values in a value."""
    yield path
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, each in items:
        yield from places_in(each, (*path, key))


def with_change(rng, content):
    """The JSON value with something replaced, removed, added or doubled."""
    path = rng.choice(list(places_in(content)))
    if not path:
        return deepcopy(rng.choice(JUNK))
    parent = content
    for key in path[:-1]:
        parent = parent[key]
    match rng.randrange(4):
        case 0 | 1:
            parent[path[-1]] = deepcopy(rng.choice(JUNK))
        case 2:
            del parent[path[-1]]
        case 3 if isinstance(parent, dict):
            parent[rng.choice(["trust_pickle", "offline", "precision", "truncate_dim", "readout"])] = deepcopy(
                rng.choice(JUNK)
            )
        case _:
            parent.append(deepcopy(rng.choice(JUNK)))
    return content


def mutated(rng, data):
    """The bytes of a JSON file, changed as a value or as bytes."""
    match rng.randrange(6):
        case 0:
            place = rng.randrange(len(data))
            return data[:place] + bytes([rng.randrange(256)]) + data[place + 1 :]
        case 1:
            return data[: rng.randrange(len(data))]
        case 2:
            depth = rng.choice([50, 900, 990, 5000, 200_000])
            return data.replace(b'"English"', b"[" * depth + b"]" * depth)
    content = json.loads(data)
    for _ in range(rng.choice([1, 1, 1, 2, 5])):
        content = with_change(rng, content)
    return json.dumps(content).encode()


def test_a_corrupted_header_works_or_is_refused(tmp_path):
    rng = random.Random(SEED)
    make(tmp_path)
    file = tmp_path / FILES[0]
    whole = file.read_bytes()
    use(tmp_path)  # as it is, it works
    started, n_working = time.monotonic(), 0
    for number in range(N_HEADERS):
        file.write_bytes(mutated(rng, whole))
        try:
            use(tmp_path)
            n_working += 1
        except TwinvecError as error:
            assert str(error)
        except Exception as error:
            raise AssertionError(f"Header {number} of seed {SEED}: {file.read_bytes()[:2000]!r}") from error
        assert time.monotonic() - started < SECONDS_EACH * N_HEADERS
    file.write_bytes(whole)
    use(tmp_path)  # none of them has done lasting harm
    assert 0 < n_working < N_HEADERS / 2  # some changes do not matter, most do
