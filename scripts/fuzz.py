"""Run tests/model/test_files_fuzz.py for longer: ``python scripts/fuzz.py --count 100000 --seed 1``.

Prints how many cases were rejected, by error class, and how many loaded and were compared. Each failure is saved in a
folder, with its corrupted file. ``--first N --count 1`` repeats one case.
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "tests/support"))

from fuzzing import run


def main() -> int:
    """Run the cases and print the outcomes."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--first", type=int, default=0, help="number of the first case")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--kinds", default="", help="comma-separated names from fuzz_kinds.py (default: all)")
    parser.add_argument("--keep", type=Path, default=Path("fuzz-findings"), help="folder for failing cases")
    options = parser.parse_args()
    started = time.perf_counter()
    findings = run(
        options.count,
        options.seed,
        workers=options.workers,
        first=options.first,
        kinds=options.kinds,
        keep=options.keep,
    )
    print(f"{options.count:,} corrupted files, seed {options.seed}, {time.perf_counter() - started:.0f} s")
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
