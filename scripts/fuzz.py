"""The long run of tests/model/test_files_fuzz.py by hand: ``python scripts/fuzz.py --count 100000 --seed 1``.

Prints how many cases were refused, by the class of the error, and how many loaded and were compared; what fails is
put into a folder, with what its file had become. ``--first N --count 1`` runs one case again.
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "tests/support"))

from fuzzing import run


def main() -> int:
    """Run, and say what was found."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--first", type=int, default=0, help="The number of the first case.")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--kinds", default="", help="Names of fuzz_kinds.py, joined by commas; default: all.")
    parser.add_argument("--keep", type=Path, default=Path("fuzz-findings"), help="Where to put what fails.")
    chosen = parser.parse_args()
    began = time.perf_counter()
    findings = run(
        chosen.count, chosen.seed, workers=chosen.workers, first=chosen.first, kinds=chosen.kinds, keep=chosen.keep
    )
    print(f"{chosen.count:,} spoilt files, seed {chosen.seed}, {time.perf_counter() - began:.0f} s")
    for outcome, n in findings.outcomes.most_common():
        print(f"  {outcome:20} {n:8,}")
    for check, n in findings.checked.most_common():
        print(f"  compared: {check:10} {n:8,}")
    for row in findings.failures:
        print(f"\ncase {row['case']}: {row['kind']}, {row['file']}, {row.get('note', '')}\n  {row['why']}")
        print("  " + "\n  ".join(row.get("trace", "").strip().splitlines()[-6:]))
    return 1 if findings.failures else 0


if __name__ == "__main__":
    sys.exit(main())
