"""Import of optional packages."""

from __future__ import annotations

from importlib import import_module
from types import ModuleType

from twinvec.errors import MissingExtraError

__all__ = ["require"]


def require(module: str, *, extra: str, feature: str) -> ModuleType:
    """Import an optional package, or raise MissingExtraError naming the extra that installs it.

    >>> require("json", extra="fast", feature="A test").__name__
    'json'
    """
    try:
        return import_module(module)
    except ModuleNotFoundError as error:
        if error.name != module.partition(".")[0]:
            raise  # installed but broken: show the real error
        raise MissingExtraError(
            f"{feature} needs the package {module!r}.", hint=f"Install it with: pip install 'twinvec[{extra}]'"
        ) from error
