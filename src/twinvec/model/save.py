"""Write model folders in the old sentence-transformers layout, which every release reads."""

from __future__ import annotations

import shutil
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from safetensors.numpy import save_file

from twinvec.files import saved_folder, write_json
from twinvec.model.folder import POOLING_KEYS, WK, WK_TYPE, Dense, LayerNorm, ModelFolder, Module, Pooling
from twinvec.ownership import MODEL
from twinvec.types import Array

__all__ = ["copy_card", "module_path", "save_model", "write_model", "write_modules"]

WEIGHT_FILES = (
    "model*.safetensors",
    "model.safetensors.index.json",
    "pytorch_model*.bin",
    "pytorch_model.bin.index.json",
)
# The other files of a transformers folder. Exports to other formats are not copied.
BACKBONE_FILES = (
    "config.json",
    "added_tokens.json",
    "tokenizer.json",
    "tokenizer_config.json",
    "special_tokens_map.json",
    "vocab.*",
    "merges.txt",
    "sentencepiece*.model",
    "spiece.model",
)
WIDTH_KEYS = ("hidden_size", "dim", "d_model", "n_embd", "emb_dim")  # by architecture
PREFIX = "sentence_transformers.models."


def save_model(
    folder: ModelFolder,
    target: Path,
    *,
    weights: Mapping[str, Array] | None = None,
    configs: Mapping[str, object] | None = None,
    copied: Sequence[str] = (),
) -> None:
    """Save ``folder`` to ``target`` atomically. A plain Hugging Face folder stays one.

    ``weights`` replace the folder's weight files; ``configs`` replace JSON files, by name; ``copied`` are names of more
    files of the folder.
    """
    with saved_folder(target, MODEL) as path:
        write_model(folder, path, files=BACKBONE_FILES if weights else (*BACKBONE_FILES, *WEIGHT_FILES))
        if weights:
            save_file(dict(weights), path / "model.safetensors", metadata={"format": "pt"})
        for name, content in (configs or {}).items():
            write_json(path / name, content)
        for name in copied:
            shutil.copyfile(folder.path / name, path / name)
        folder.check_unchanged()  # the copied files must be the loaded ones
        copy_card(folder, path)


def write_model(folder: ModelFolder, path: Path, *, files: tuple[str, ...] = BACKBONE_FILES) -> None:
    """Write a model's configs to ``path``, and copy the files of its backbone that match ``files``."""
    for pattern in files:
        for file in folder.backbone.glob(pattern):
            shutil.copyfile(file, path / file.name)
    if folder.is_sentence_model:
        width = next((int(folder.config[key]) for key in WIDTH_KEYS if key in folder.config), 0)
        write_modules(folder, path, width=width)
        limits = {"max_seq_length": folder.max_tokens, "do_lower_case": folder.lower_case}
        write_json(path / "sentence_bert_config.json", limits)
    folder.check_unchanged()  # the copied files must be the loaded ones


def copy_card(folder: ModelFolder, path: Path) -> None:
    """Copy the model's README, if it has one."""
    if (folder.path / "README.md").is_file():
        shutil.copyfile(folder.path / "README.md", path / "README.md")


def module_path(index: int, module: Module) -> str:
    """The folder of a module within its model; the first after the backbone has index 1."""
    return f"{index}_{type(module).__name__}"


def write_modules(folder: ModelFolder, path: Path, *, width: int = 0) -> None:
    """Write the modules of a model and its prompt settings; ``width`` is the width of its states."""
    first, others = ("StaticEmbedding", folder.modules[1:]) if folder.is_static else ("Transformer", folder.modules)
    rows = [_row(0, PREFIX + first, "")]
    for index, module in enumerate(others, start=1):
        inner = module_path(index, module)
        kind = WK_TYPE if isinstance(module, WK) else PREFIX + type(module).__name__
        rows.append(_row(index, kind, inner))
        _write_module(module, path / inner, width)
    write_json(path / "modules.json", rows)
    write_json(path / "config_sentence_transformers.json", _settings(folder))


def _row(index: int, kind: str, path: str) -> dict[str, Any]:
    return {"idx": index, "name": str(index), "path": path, "type": kind}


def _settings(folder: ModelFolder) -> dict[str, Any]:
    return {
        "__version__": {},
        "prompts": folder.prompts,
        "default_prompt_name": folder.default_prompt,
        "similarity_fn_name": folder.similarity,
        "truncate_dim": folder.truncate_dim,
    }


def _write_module(module: Module, path: Path, width: int) -> None:
    path.mkdir()
    if isinstance(module, Pooling):
        write_json(path / "config.json", _pooling_config(module, width))
    elif isinstance(module, WK):
        write_json(path / "config.json", {**asdict(module.settings), "include_prompt": module.include_prompt})
    elif isinstance(module, (Dense, LayerNorm)):
        for file in module.folder.iterdir():
            if file.name in ("config.json", "model.safetensors", "pytorch_model.bin"):
                shutil.copyfile(file, path / file.name)


def _pooling_config(module: Pooling, width: int) -> dict[str, Any]:
    config: dict[str, Any] = {"word_embedding_dimension": width}
    config |= {key: mode in module.modes for key, mode in POOLING_KEYS.items()}
    if tuple(mode for mode in POOLING_KEYS.values() if mode in module.modes) != module.modes:
        # Only the new key can express another order of the modes.
        config = {"embedding_dimension": width, "pooling_mode": list(module.modes)}
    return config | {"include_prompt": module.include_prompt}
