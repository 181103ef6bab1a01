"""Poly-encoder folders: a sentence model, which embeds the candidates, with learned codes that read a query.

The codes are in ``poly_encoder.safetensors``, the settings in ``poly_encoder.json``. Other programs ignore both files,
so they load the folder as a sentence model.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from safetensors import SafetensorError
from safetensors.numpy import load_file, save_file

from twinvec.errors import ModelFolderError, WeightsError
from twinvec.files import read_json, write_json
from twinvec.json_checks import JsonObject
from twinvec.model.folder import ModelFolder, Pooling, read_model_folder
from twinvec.types import Vectors

__all__ = [
    "MAX_CODES",
    "POLY_FILES",
    "SCALES",
    "PolyFolder",
    "check_candidates",
    "is_poly_encoder",
    "read_n_codes",
    "read_poly_encoder",
    "write_poly_encoder",
]

SETTINGS, CODES = POLY_FILES = "poly_encoder.json", "poly_encoder.safetensors"
VERSION = 1
MAX_CODES = 4096  # the paper has at most 360
# The default scale of a candidate's attention by similarity. Dot products are not scaled, as in the paper. Cosines are
# close to each other: with a small scale all codes would have about the same weight.
SCALES = {"cosine": 100.0, "dot": 1.0}
HINT = "Train the poly-encoder again, or restore its files."


@dataclass(frozen=True)
class PolyFolder:
    """The checked content of a poly-encoder's folder; ``codes`` is ``(n, width of the states)``."""

    folder: ModelFolder
    codes: Vectors = field(repr=False)
    scale: float


def is_poly_encoder(path: Path) -> bool:
    """Whether a folder is a poly-encoder."""
    return (path / SETTINGS).is_file()


def read_n_codes(path: Path) -> int | None:
    """The number of codes of a poly-encoder; None for all other folders."""
    return int(_settings(path).integer("codes", most=MAX_CODES)) if is_poly_encoder(path) else None


def _settings(path: Path) -> JsonObject:
    settings = JsonObject(read_json(path / SETTINGS), path / SETTINGS, hint=HINT)
    settings = settings.only(("version", "codes", "scale"))
    settings.integer("version", most=VERSION)
    return settings


def read_poly_encoder(path: Path) -> PolyFolder:
    """Read the folder of a poly-encoder; the width of the codes is checked when the weights are read."""
    settings, folder = _settings(path), read_model_folder(path)
    check_candidates(folder)
    codes = _read_codes(path / CODES, settings.integer("codes", most=MAX_CODES))
    return PolyFolder(folder, codes, settings.number("scale", least=1e-3, most=1e3))


def check_candidates(folder: ModelFolder) -> None:
    """Raise ModelFolderError if a sentence model cannot embed the candidates of a poly-encoder."""
    problem = None
    if not folder.has_layers:
        problem = "has no backbone, whose states the codes could read"
    elif not isinstance(folder.readout, Pooling) or len(folder.readout.modes) > 1:
        problem = "does not have a single pooling"
    elif folder.similarity not in SCALES:
        problem = f"compares vectors by {folder.similarity}, not by {' or '.join(SCALES)}"
    if problem is not None:
        raise ModelFolderError(
            f"{folder.path} {problem}, so it cannot be a poly-encoder.",
            hint="Use a Transformer with one pooling, such as mean, and similarity cosine or dot.",
        )


def _read_codes(file: Path, count: int) -> Vectors:
    try:
        codes = load_file(file).get("codes")
    except (OSError, SafetensorError, TypeError, KeyError) as error:  # the last two: types that numpy does not have
        raise WeightsError(f"{file} is not a complete safetensors file: {error}.", hint=HINT) from error
    if codes is None or codes.dtype != np.float32 or codes.ndim != 2 or len(codes) != count:
        found = "none" if codes is None else f"{codes.dtype} of shape {codes.shape}"
        raise WeightsError(f"{file} must have {count} codes in float32, (codes, width), but has {found}.", hint=HINT)
    if not np.isfinite(codes).all():
        raise WeightsError(f"The codes in {file} contain NaN or infinity.", hint="Its training diverged.")
    return np.asarray(codes)


def write_poly_encoder(path: Path, codes: Vectors, *, scale: float) -> None:
    """Add codes ``(n, width)`` to the folder of a sentence model, which makes it a poly-encoder."""
    save_file({"codes": np.ascontiguousarray(codes, dtype=np.float32)}, path / CODES)
    write_json(path / SETTINGS, {"version": VERSION, "codes": len(codes), "scale": scale})
