"""Models that come with the package: folders within it, found by their names without any network."""

from __future__ import annotations

from pathlib import Path

from twinvec.errors import ModelNotFoundError

__all__ = ["DEFAULT_MODEL", "SHIPPED", "shipped_folder"]

DEFAULT_MODEL = "twinvec-mini"
SHIPPED = (DEFAULT_MODEL, "twinvec-static")
FOLDER = Path(__file__).parent / "models"


def shipped_folder(name: str) -> Path | None:
    """The folder of a model of the package; None for every other name."""
    if name not in SHIPPED:
        return None
    if not (FOLDER / name).is_dir():  # also where the package is run from a zip: weights are mapped from real files
        raise ModelNotFoundError(
            f"The model {name!r} comes with Twinvec, but there is no folder {FOLDER / name}.",
            hint="Install Twinvec again, unpacked.",
        )
    return FOLDER / name
