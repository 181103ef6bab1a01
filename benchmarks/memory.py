"""Peak memory of ``encode_iter`` over a million generated texts.

python benchmarks/memory.py [--model FOLDER] [--count 1000000]
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator

import numpy as np
from common import arguments, peak_mb, write_result

import twinvec

WORDS = "a the cat dog rain sun reads writes small large house river in on under with happy old new city".split()  # noqa: SIM905


def generated(count: int) -> Iterator[str]:
    """Seeded texts of one to six words, generated one at a time."""
    rng = np.random.default_rng(0)
    for i in range(count):
        yield f"{' '.join(WORDS[j] for j in rng.integers(len(WORDS), size=1 + i % 6))} {i}"


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("--count", type=int, default=1_000_000)
    options = parser.parse_args()
    encoder = twinvec.load(options.model)
    started, done = time.perf_counter(), 0
    for vector in encoder.encode_iter(generated(options.count)):
        done += 1
        assert vector.shape == (encoder.width,)
        if done % 100_000 == 0:
            print(f"{done:>9} texts, {time.perf_counter() - started:7.0f} s, {peak_mb():.0f} MB", file=sys.stderr)
    seconds = time.perf_counter() - started
    assert done == options.count
    print(f"{done} texts in {seconds:.0f} s ({done / seconds:.0f} per second), peak {peak_mb():.0f} MB resident")
    content = {"model": options.model.name, "n_texts": done, "seconds": round(seconds), "peak_mb": round(peak_mb())}
    write_result("memory", content)


if __name__ == "__main__":
    main()
