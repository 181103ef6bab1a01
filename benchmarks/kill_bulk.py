"""Kills ``twinvec embed FILE --out FOLDER`` with SIGKILL at random moments, lets it go on, and compares the bytes.

The folder holds the result of an earlier, shorter file, which readers must see whole after every kill.

python benchmarks/kill_bulk.py [--model twinvec-mini] [--kills 20] [--count 3000] [--seed 0]
"""

from __future__ import annotations

import argparse
import hashlib
import json
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from common import sts_sentences, write_result

from twinvec.bulk import read_bulk


def command(source: Path, folder: Path, model: str) -> list[str]:
    called = [sys.executable, "-m", "twinvec.cli", "embed", str(source), "--out", str(folder)]
    return [*called, "-m", model, "--shard-rows", "128"]


def digests(folder: Path) -> dict[str, str]:
    """The checksum of every file but the lock."""
    files = sorted(path for path in folder.rglob("*") if path.is_file() and path.name != ".lock")
    return {str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest() for path in files}


def killed(called: list[str], after_s: float) -> bool:
    """Start the job and kill it; False if it was done before."""
    with subprocess.Popen(called, stderr=subprocess.DEVNULL) as process:
        try:
            process.wait(after_s)
        except subprocess.TimeoutExpired:
            process.send_signal(signal.SIGKILL)
            process.wait()
            return True
    assert process.returncode == 0, process.returncode
    return False


def rows_of(folder: Path) -> list[str]:
    return [text for batch in read_bulk(folder) for text in batch.texts]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", default="twinvec-mini")
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--count", type=int, default=3000)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    rng = random.Random(options.seed)
    found, _ = sts_sentences(None, options.count)
    texts = [*found, *rng.choices(found, k=len(found) // 10)]
    earlier = texts[: len(texts) // 10]
    with tempfile.TemporaryDirectory() as place:
        source, whole, begun, parts = (Path(place, name) for name in ("texts.txt", "whole", "begun", "parts"))
        source.write_text("".join(f"{text}\n" for text in earlier), encoding="utf-8")
        subprocess.run(command(source, begun, options.model), check=True)
        source.write_text("".join(f"{text}\n" for text in texts), encoding="utf-8")
        shutil.copytree(begun, whole)
        shutil.copytree(begun, parts)
        started = time.perf_counter()
        subprocess.run(command(source, whole, options.model), check=True)
        took_s = time.perf_counter() - started
        n_whole = 0
        n_shards: list[int] = []  # that were there at each kill
        while len(n_shards) < options.kills:
            if killed(command(source, parts, options.model), rng.uniform(0, took_s)):
                n_shards.append(len(list(parts.glob("texts/0*"))))
                print(f"kill {len(n_shards)}: {n_shards[-1]} shards", file=sys.stderr)
                assert rows_of(parts) in (earlier, texts), "a reader saw half a result"
                continue
            assert digests(parts) == digests(whole)
            n_whole += 1
            shutil.rmtree(parts)  # it was done too soon: begin anew
            shutil.copytree(begun, parts)
        subprocess.run(command(source, parts, options.model), check=True)
        assert digests(parts) == digests(whole), "the bytes differ"
        assert rows_of(parts) == texts, "rows are lost"
        told = {
            "kills": len(n_shards),
            "jobs": n_whole + 1,
            "n_rows": len(texts),
            "shards": len(list(parts.glob("texts/*"))),
            "shards_at_kills": n_shards,
        }
    print(json.dumps(told))
    write_result("kill_bulk", {**told, "same_bytes": True, "readers_saw_whole_results": True, "seed": options.seed})


if __name__ == "__main__":
    main()
