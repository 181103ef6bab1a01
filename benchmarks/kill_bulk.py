"""Kill ``twinvec embed FILE --out FOLDER`` with SIGKILL at random moments, continue it, and compare the bytes.

The folder starts with the complete result of a shorter file. After every kill, readers must see a complete result.

python benchmarks/kill_bulk.py [--model twinvec-mini] [--kills 20] [--count 1000] [--seed 0]
"""

from __future__ import annotations

import json
import random
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from common import sts_sentences, write_result
from kills import digests, kill_arguments, kill_command

from twinvec.bulk import read_bulk


def command(source: Path, folder: Path, model: str) -> list[str]:
    called = [sys.executable, "-m", "twinvec.cli", "embed", str(source), "--out", str(folder)]
    return [*called, "-m", model, "--shard-rows", "128"]


def files_of(folder: Path) -> dict[str, str]:
    """The checksum of every file except the lock."""
    return digests(folder, ignore=[".lock"])


def rows_of(folder: Path) -> list[str]:
    return [text for batch in read_bulk(folder) for text in batch.texts]


def main() -> None:
    parser = kill_arguments(__doc__)
    parser.add_argument("--model", default="twinvec-mini")
    parser.add_argument("--count", type=int, default=1000, help="distinct texts (default: 1000)")
    options = parser.parse_args()
    rng = random.Random(options.seed)
    found, _ = sts_sentences(None, options.count)
    texts = [*found, *rng.choices(found, k=len(found) // 10)]
    earlier = texts[: len(texts) // 10]
    with tempfile.TemporaryDirectory() as work:
        source, whole, initial, parts = (Path(work, name) for name in ("texts.txt", "whole", "initial", "parts"))
        source.write_text("".join(f"{text}\n" for text in earlier), encoding="utf-8")
        subprocess.run(command(source, initial, options.model), check=True)
        source.write_text("".join(f"{text}\n" for text in texts), encoding="utf-8")
        shutil.copytree(initial, whole)
        shutil.copytree(initial, parts)
        started = time.perf_counter()
        subprocess.run(command(source, whole, options.model), check=True)
        took_s = time.perf_counter() - started
        n_whole = 0
        n_shards: list[int] = []  # on disk at each kill
        while len(n_shards) < options.kills:
            if kill_command(command(source, parts, options.model), rng.uniform(0, took_s)):
                n_shards.append(len(list(parts.glob("texts/0*"))))
                print(f"kill {len(n_shards)}: {n_shards[-1]} shards", file=sys.stderr)
                assert rows_of(parts) in (earlier, texts), "a reader saw a partial result"
                continue
            assert files_of(parts) == files_of(whole)
            n_whole += 1
            shutil.rmtree(parts)  # it finished before the kill: start over
            shutil.copytree(initial, parts)
        subprocess.run(command(source, parts, options.model), check=True)
        assert files_of(parts) == files_of(whole), "the bytes differ"
        assert rows_of(parts) == texts, "rows are missing"
        result = {
            "kills": len(n_shards),
            "jobs": n_whole + 1,
            "n_rows": len(texts),
            "shards": len(list(parts.glob("texts/*"))),
            "shards_at_kills": n_shards,
            "seconds": round(time.perf_counter() - started),
        }
    print(json.dumps(result))
    if not options.no_result:
        write_result(
            "kill_bulk", result | {"same_bytes": True, "readers_saw_whole_results": True, "seed": options.seed}
        )


if __name__ == "__main__":
    main()
