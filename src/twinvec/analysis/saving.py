"""Save a readout as a model folder: its pooling or SBERT-WK, its layers, its whitening."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
from numpy.typing import NDArray
from safetensors.numpy import save_file

from twinvec.analysis.readouts import Candidate, Readout, why_not_saved
from twinvec.encoder import Encoder
from twinvec.engine.config import read_backbone
from twinvec.engine.names import canonical_name
from twinvec.engine.weights import is_packed, read_weights
from twinvec.errors import InputError
from twinvec.files import read_json, saved_folder, write_json
from twinvec.model.folder import WK, Dense, ModelFolder, Module, Normalize, Pooling
from twinvec.model.save import BACKBONE_FILES, WEIGHT_FILES, write_model
from twinvec.ownership import MODEL
from twinvec.types import Array, Vectors

__all__ = ["Whitening", "fit_whitening", "save_readout", "shrunk_covariance"]

Numbers = NDArray[np.float64]

MIN_SPREAD = 1e-10  # total variance divided by the mean squared length; the resolution of float32


@dataclass(frozen=True, eq=False)
class Whitening:
    """``vectors @ matrix.T + bias``; ``matrix`` is ``(width, width)``, ``bias`` is ``(width,)``."""

    matrix: Vectors
    bias: Vectors

    def __call__(self, vectors: Vectors) -> Vectors:
        """Whitened vectors: ``(n, width)`` to the same shape."""
        return np.asarray(vectors @ self.matrix.T + self.bias)


def fit_whitening(vectors: Vectors) -> Whitening:
    """Fit a whitening to vectors ``(n, width)``."""
    numbers = vectors.astype(np.float64)
    mean = numbers.mean(axis=0)
    covariance = shrunk_covariance(numbers - mean)
    if np.trace(covariance) <= MIN_SPREAD * (numbers**2).sum(axis=1).mean():
        raise InputError("The vectors cannot be whitened: they are equal for all texts.")
    # The inverse of a Cholesky factor is enough: any rotation of it gives the same cosines.
    matrix = np.linalg.inv(np.linalg.cholesky(covariance))
    return Whitening(matrix.astype(np.float32), (-matrix @ mean).astype(np.float32))


def shrunk_covariance(centered: Numbers) -> Numbers:
    """The Ledoit-Wolf estimate of the covariance of centered values, ``(n, width)`` to ``(width, width)``."""
    n, width = centered.shape
    plain = centered.T @ centered / n
    middle = np.trace(plain) / width
    distance = (plain**2).sum() - width * middle**2  # squared, from the plain estimate to equal variances
    error = ((centered**2).sum(axis=1) ** 2).sum() / n**2 - (plain**2).sum() / n  # squared, of the plain estimate
    share = min(error / distance, 1.0) if distance > 0 else 1.0
    return np.asarray((1 - share) * plain + share * middle * np.eye(width))


LAYER_KEYS = {"distilbert": "n_layers"}  # key of the number of layers in config.json; others: num_hidden_layers
IDENTITY = "torch.nn.modules.linear.Identity"
BLOCK = re.compile(r"^blocks\.(\d+)\.")


def save_readout(
    encoder: Encoder,
    candidate: Candidate,
    target: Path,
    *,
    card: str,
    whitening: Whitening | None = None,
    trust_pickle: bool = False,
) -> None:
    """Write the model with this readout as a new folder, completely or not at all.

    ``card`` becomes its README. Layers after the one that is read are removed.
    """
    folder = encoder.folder
    n_layers = len(encoder.encode_layers("a", prompt="")[0]) - 1
    reason = why_not_saved(candidate.readout, folder, n_layers)
    if reason:
        raise InputError(f"{candidate.name} cannot be saved: {reason}.", hint="Choose another readout.")
    kept = n_layers if candidate.readout.wk is not None else candidate.readout.layers[0]
    weights = _weights(folder, kept, n_layers, trust_pickle=trust_pickle)
    with TemporaryDirectory() as scratch, saved_folder(target, MODEL) as written:
        saved = _new_folder(encoder, candidate.readout, Path(scratch), whitening)
        write_model(saved, written, files=BACKBONE_FILES if weights else (*BACKBONE_FILES, *WEIGHT_FILES))
        if weights:
            save_file(dict(weights), written / "model.safetensors", metadata={"format": "pt"})
        if kept < n_layers:
            key = LAYER_KEYS.get(str(folder.config["model_type"]), "num_hidden_layers")
            write_json(written / "config.json", read_json(written / "config.json") | {key: kept})
        (written / "README.md").write_text(card, encoding="utf-8")


def _new_folder(encoder: Encoder, readout: Readout, scratch: Path, whitening: Whitening | None) -> ModelFolder:
    """The description of the new folder; writes the whitening into ``scratch``, to be copied from there."""
    folder = encoder.folder
    prompted = folder.readout.include_prompt
    first: Module = Pooling(readout.modes, prompted) if readout.wk is None else WK(readout.wk, prompted)
    modules = (first, *folder.modules[1:])
    truncate_dim = encoder.truncate_dim
    if whitening is not None:
        n_in = encoder.engine.width if truncate_dim else whitening.matrix.shape[1]
        modules = (*modules, _write_dense(scratch, whitening, n_in=n_in), Normalize())
        truncate_dim = None
    return replace(
        folder,
        modules=modules,
        is_sentence_model=True,
        max_tokens=encoder.max_tokens,
        truncate_dim=truncate_dim,
        similarity="cosine",  # the readout was chosen by cosine
    )


def _write_dense(path: Path, whitening: Whitening, *, n_in: int) -> Dense:
    """Write the whitening as a Dense module; for truncated vectors, it reads only the first values."""
    n_out = len(whitening.matrix)
    matrix = np.zeros((n_out, n_in), dtype=np.float32)
    matrix[:, : whitening.matrix.shape[1]] = whitening.matrix
    save_file({"linear.weight": matrix, "linear.bias": whitening.bias}, path / "model.safetensors")
    config = {"in_features": n_in, "out_features": n_out, "bias": True, "activation_function": IDENTITY}
    write_json(path / "config.json", config)
    return Dense(path, n_in, n_out, True, "Identity")


def _weights(folder: ModelFolder, kept: int, n_layers: int, *, trust_pickle: bool) -> Mapping[str, Array]:
    """The weights to write; empty if the existing files can be copied."""
    if kept == n_layers and not is_packed(folder.backbone):
        return {}
    weights = read_weights(folder.backbone, trust_pickle=trust_pickle)
    if kept == n_layers:
        return weights
    backbone = read_backbone(folder.config)
    is_shared = len(set(backbone.blocks)) == 1  # ALBERT runs the same weights in every layer
    return {
        name: values
        for name, values in weights.items()
        if is_shared or (block := BLOCK.match(canonical_name(name, backbone.family))) is None or int(block[1]) < kept
    }
