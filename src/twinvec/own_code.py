"""Python code that a model folder brings along (``auto_map``): Twinvec never runs it, and never asks whether it may."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from twinvec.errors import ModelFolderError
from twinvec.json_object import shown

__all__ = ["refuse_own_code"]


def refuse_own_code(config: Mapping[str, Any], *names: str, file: object) -> None:
    """Refuse a config whose ``auto_map`` gives code of the folder's own for one of ``names``.

    To go on without that code would give other vectors than the model's maker means.
    """
    code = config.get("auto_map")
    if code is None or (isinstance(code, dict) and not any(code.get(name) for name in names)):
        return
    raise ModelFolderError(
        f"{file} names its own code (auto_map: {shown(code)}), which is never run.",
        hint="Use a model that needs none; or, should it be right without it, take auto_map out of that file.",
    )
