"""The command line: parse, call one library function, show the result."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from twinvec.cli.app import main

__all__ = ["main"]


def __getattr__(name: str) -> Any:  # noqa: ANN401 - only main
    """Import ``main`` on first use, so that ``__main__`` can catch an interrupt during the import."""
    if name != "main":
        raise AttributeError(f"module 'twinvec.cli' has no attribute {name!r}")
    from twinvec.cli.app import main

    return main
