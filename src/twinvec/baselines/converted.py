"""Files of other formats that are converted to the folder of an embedder, in the cache folder."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Sequence
from pathlib import Path

from twinvec.errors import InputError
from twinvec.model.folder import EMBEDDER_FILE
from twinvec.vector_store import cache_folder

__all__ = ["USE_PIECES", "USE_WEIGHTS", "converted", "use_files"]

USE_PIECES = "sp.model"
USE_WEIGHTS = "use_quantized.onnx", "weights.npz"  # 8 bits, 6 bits


def use_files(folder: Path) -> list[Path]:
    """The original files of the Universal Sentence Encoder in a folder; empty if some are missing."""
    weights = [folder / name for name in USE_WEIGHTS if (folder / name).is_file()]
    return [folder / USE_PIECES, *weights] if weights and (folder / USE_PIECES).is_file() else []


def converted(files: Sequence[Path], kind: str, convert: Callable[[Path], object]) -> Path:
    """The folder of an embedder made from ``files``; ``convert`` writes it into the cache folder at their first use."""
    found = [file.resolve() for file in files]
    states = [(str(file), file.stat().st_size, file.stat().st_mtime_ns) for file in found]
    target = cache_folder() / kind / hashlib.sha256(json.dumps(states).encode()).hexdigest()[:32]
    if not (target / EMBEDDER_FILE).is_file():
        try:
            convert(target)
        except InputError:
            if not (target / EMBEDDER_FILE).is_file():  # another process may have finished first
                raise
    return target
