"""Memory-mapped weights, their checks, and int8 storage with one scale per row."""

from __future__ import annotations

import json
import mmap
import os
import struct
import weakref
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from safetensors import SafetensorError, safe_open

from twinvec.engine.config import Backbone
from twinvec.engine.names import canonical_name, expected_shapes
from twinvec.errors import WeightsError, shown
from twinvec.extras import require
from twinvec.files import read_json
from twinvec.json_checks import is_plain
from twinvec.types import Array, Vectors

__all__ = [
    "SCALE",
    "MappedFile",
    "ReadWeights",
    "Weights",
    "backbone_weights",
    "check_array",
    "check_unchanged",
    "disk_location",
    "forget_pages",
    "is_packed",
    "mapped_files",
    "pack_int8",
    "read_weights",
    "weight_files",
]


class MappedFile(mmap.mmap):
    """A mapped file that detects changes to the file. Create it with :meth:`opened`."""

    path: Path
    _handle: int
    _as_opened: os.stat_result

    @classmethod
    def opened(cls, path: Path) -> MappedFile:
        """Map a non-empty file. Its descriptor stays open as long as the mapping is in use."""
        handle = os.open(path, os.O_RDONLY | getattr(os, "O_BINARY", 0))
        try:
            as_opened = os.fstat(handle)
            mapped = cls(handle, 0, access=mmap.ACCESS_READ)
        except BaseException:
            os.close(handle)
            raise
        mapped.path, mapped._handle, mapped._as_opened = path.resolve(), handle, as_opened
        weakref.finalize(mapped, os.close, handle).atexit = False
        return mapped

    def check(self) -> None:
        """Raise WeightsError if the file was modified after it was mapped. Takes about a microsecond."""
        if not _is_same(os.fstat(self._handle), self._as_opened):
            raise WeightsError(
                f"{self.path} was changed while it was in use.",
                hint="Load the model again. To update a model file, rename a new file over it; never write into it.",
            )

    def is_at_its_path(self) -> bool:
        """Whether the path still refers to this file, unchanged."""
        try:
            now = os.stat(self.path)
        except OSError:
            return False
        return os.path.samestat(now, self._as_opened) and _is_same(now, self._as_opened)


def _is_same(now: os.stat_result, before: os.stat_result) -> bool:
    return (now.st_size, now.st_mtime_ns) == (before.st_size, before.st_mtime_ns)


def mapped_file(array: Array) -> MappedFile | None:
    """The mapped file that an array is a view into; None for other arrays."""
    base: object = array
    while isinstance(base, np.ndarray):
        base = base.base
    if isinstance(base, memoryview):
        base = base.obj
    return base if isinstance(base, MappedFile) else None


def mapped_files(arrays: Iterable[Array]) -> tuple[MappedFile, ...]:
    """The distinct mapped files that some arrays are views into."""
    return tuple({id(file): file for file in map(mapped_file, arrays) if file is not None}.values())


def check_unchanged(files: Iterable[MappedFile]) -> None:
    """Raise WeightsError if any of the files was modified after it was mapped."""
    for file in files:
        file.check()


SCALE = ".scale"


def pack_int8(weights: Mapping[str, Array]) -> dict[str, Array]:
    """Convert matrices to int8 with one scale per row; the largest error is half a scale.

    >>> packed = pack_int8({"w": np.array([[25.0, -63.5], [0.0, 0.0]])})
    >>> packed["w"].tolist(), packed["w.scale"].tolist()
    ([[50, -127], [0, 0]], [0.5, 0.0])
    """
    packed: dict[str, Array] = {}
    for name, values in weights.items():
        if values.ndim != 2:
            packed[name] = np.ascontiguousarray(values, dtype=np.float32)
            continue
        scale = (np.abs(values).max(axis=1) / 127).astype(np.float32)
        steps = values / np.where(scale > 0, scale, 1)[:, None]
        packed[name] = np.clip(np.round(steps), -127, 127).astype(np.int8)
        packed[name + SCALE] = scale
    return packed


def unpack_int8(stored: Mapping[str, Array], *, source: object) -> dict[str, Array]:
    """Undo :func:`pack_int8`; int8 tensors without a scale are dropped, as no encoder uses them.

    >>> unpack_int8({"w": np.array([[50, -127]], dtype=np.int8), "w.scale": np.array([0.01])}, source="x")["w"]
    array([[ 0.5 , -1.27]], dtype=float32)
    """
    weights = dict(stored)
    for name, values in stored.items():
        if values.dtype != np.int8:
            continue
        del weights[name]
        scale = weights.pop(name + SCALE, None)
        if scale is not None:
            weights[name] = _product(values, scale, f"{source}: {name}")
    return weights


def _product(values: Array, scale: Array, name: str) -> Vectors:
    if values.ndim != 2 or scale.shape != values.shape[:1]:
        raise WeightsError(
            f"{name} has the shape {values.shape} and scales of shape {scale.shape}, not one per row.",
            hint="Download the model again.",
        )
    return np.multiply(values, scale[:, None], dtype=np.float32)


Weights = dict[str, Array]
ReadWeights = Callable[[Path], Weights]
LONGEST_NAME = 255  # bytes, the limit of common file systems
DTYPES = {
    "F32": np.float32,
    "F16": np.float16,
    "F64": np.float64,
    "BF16": np.uint16,
    "I64": np.int64,
    "I32": np.int32,
    "I8": np.int8,
}


def weight_files(folder: Path) -> list[Path]:
    """The weight files of a folder, preferring safetensors to pickles; empty if there are none."""
    for name in ("model.safetensors", "pytorch_model.bin"):
        if (folder / name).is_file():
            return [folder / name]
        if (folder / f"{name}.index.json").is_file():
            return _sharded(folder, folder / f"{name}.index.json")
    return []


def is_packed(folder: Path) -> bool:
    """Whether a folder stores its weights as int8 with scales, which only Twinvec reads."""
    for file in weight_files(folder):
        if file.suffix == ".safetensors" and file.is_file():
            with suppress(SafetensorError), safe_open(file, framework="numpy") as tensors:
                if any(name.endswith(SCALE) for name in tensors.keys()):  # noqa: SIM118 - not a mapping
                    return True
    return False


def _sharded(folder: Path, index: Path) -> list[Path]:
    weight_map = read_json(index).get("weight_map")
    if not isinstance(weight_map, dict) or not all(isinstance(name, str) for name in weight_map.values()):
        raise WeightsError(f"{index} has no usable weight_map.", hint="Download the model again.")
    for name in weight_map.values():
        if not is_plain(name) or len(name.encode()) > LONGEST_NAME:
            raise WeightsError(f"{index} names the file {shown(name)}, which is not a valid file name.")
        if Path(name).name != name:
            raise WeightsError(f"{index} names the file {name!r}, which is outside the folder.")
    return [folder / name for name in sorted(set(weight_map.values()))]


def read_weights(folder: Path, *, trust_pickle: bool = False, packed: bool = False) -> Weights:
    """Read all tensors of a folder by name; int8 and bfloat16 ones are converted to float32, others mapped.

    ``packed`` keeps int8 tensors and their scales as they are stored.
    """
    files = weight_files(folder)
    if not files:
        raise WeightsError(
            f"{folder} contains no weights (model.safetensors).",
            hint="Download the model again; if the hub has only a pickle, use trust_pickle=True.",
        )
    weights: Weights = {}
    for file in files:
        if file.suffix == ".safetensors":
            views = _map_safetensors(file)
            weights.update(views if packed else unpack_int8(views, source=file))
        else:
            weights.update(_read_pickle(file, trust=trust_pickle))
    return weights


def _map_safetensors(file: Path) -> Weights:
    """Views into the mapped file, int8 ones as stored: the disk is read on demand."""
    if not file.is_file():
        raise WeightsError(f"{file} is missing, although the index names it.", hint="Download the model again.")
    try:
        mapped = MappedFile.opened(file)
        with safe_open(file, framework="numpy"):  # checks the header and that the data are complete
            pass
    except (SafetensorError, ValueError) as error:  # an empty file cannot be mapped
        raise WeightsError(
            f"{file} is not a complete safetensors file: {error}.", hint="Download the model again."
        ) from error
    if not mapped.is_at_its_path():  # or another file was checked than was mapped
        raise WeightsError(f"{file} was replaced while it was being read.", hint="Load the model again.")
    (n_header,) = struct.unpack("<Q", mapped[:8])
    header = json.loads(mapped[8 : 8 + n_header])
    header.pop("__metadata__", None)
    data = np.frombuffer(mapped, dtype=np.uint8, offset=8 + n_header)
    # No encoder uses tensors of other types (such as a quantizer's integers).
    return {name: _view(data, tensor) for name, tensor in header.items() if tensor["dtype"] in DTYPES}


def _view(data: Array, tensor: dict[str, Any]) -> Array:
    begin, end = tensor["data_offsets"]
    array: Array = data[begin:end].view(DTYPES[tensor["dtype"]]).reshape(tensor["shape"])
    if tensor["dtype"] == "BF16":  # the upper half of a float32
        array = (array.astype(np.uint32) << 16).view(np.float32)
    return array


class DiskLocation(NamedTuple):
    """Where the bytes of an array are on disk."""

    file: Path
    offset: int


def disk_location(array: Array) -> DiskLocation | None:
    """The location of an array that is a view into a mapped file; None for other arrays."""
    file = mapped_file(array)
    if file is None or not array.flags.c_contiguous:
        return None
    start, root = (each.__array_interface__["data"][0] for each in (array, np.frombuffer(file, dtype=np.uint8)))
    return DiskLocation(file.path, start - root)


def forget_pages(arrays: Iterable[Array]) -> None:
    """Release the memory of mapped weights; they are read from the file again when used."""
    for file in mapped_files(arrays):
        if hasattr(file, "madvise"):  # not on Windows
            file.madvise(mmap.MADV_DONTNEED)


def _read_pickle(file: Path, *, trust: bool) -> Weights:
    if not trust:
        raise WeightsError(
            f"{file} is a pickle, which can run code when it is loaded.",
            hint="Use a model with model.safetensors; or, if you trust this one, load it with trust_pickle=True.",
        )
    torch = require("torch", extra="train", feature="Reading pytorch_model.bin")
    try:
        tensors = torch.load(file, map_location="cpu", weights_only=True)
    except Exception as error:  # torch raises many classes for a bad file
        raise WeightsError(f"{file} cannot be read: {error!s:.200}", hint="Download the model again.") from error
    if not isinstance(tensors, dict) or not all(isinstance(tensor, torch.Tensor) for tensor in tensors.values()):
        raise WeightsError(f"{file} contains something other than named tensors.", hint="Download the model again.")
    return {name: tensor.float().numpy() for name, tensor in tensors.items() if tensor.is_floating_point()}


def backbone_weights(weights: Mapping[str, Array], backbone: Backbone, source: Path) -> dict[str, Vectors]:
    """The parameters of a backbone by our names, checked to be complete, finite and of the right shape, in float32."""
    per_group = len(backbone.blocks[0])
    renamed = {canonical_name(name, backbone.family, blocks_per_group=per_group): name for name in weights}
    shapes = expected_shapes(backbone)
    if missing := sorted(name for name in shapes if name not in renamed):
        first = ", ".join(missing[:5]) + (" ..." if len(missing) > 5 else "")
        raise WeightsError(
            f"{source} lacks {len(missing)} parameters: {first}.",
            hint="Check that its config.json names the same architecture and sizes.",
        )
    parameters = {}
    for name, shape in shapes.items():
        parameters[name] = np.asarray(weights[renamed[name]], dtype=np.float32)
        check_array(parameters[name], shape, f"{source}: {renamed[name]}")
        forget_pages((parameters[name],))
    return parameters


def check_array(array: Vectors, shape: tuple[int, ...], name: str) -> None:
    """Raise WeightsError if a parameter does not have the shape of the config, or is not finite."""
    if array.shape != shape:
        raise WeightsError(
            f"{name} has the shape {array.shape}, but the config requires {shape}.",
            hint="Config and weights do not match; download the model again.",
        )
    if not np.isfinite(array.sum(dtype=np.float64)):
        raise WeightsError(f"{name} contains NaN or infinity.", hint="The model is damaged or its training diverged.")
