"""Names for what lancedb and pyarrow give: both are optional, so their types cannot be imported here."""

from __future__ import annotations

from typing import Any, TypeAlias

__all__ = ["ArrowBatch", "ArrowSchema", "ArrowTable", "ArrowType", "LanceDatabase", "LanceQuery", "LanceTable"]

LanceDatabase: TypeAlias = Any
LanceTable: TypeAlias = Any
LanceQuery: TypeAlias = Any
ArrowBatch: TypeAlias = Any
ArrowTable: TypeAlias = Any
ArrowSchema: TypeAlias = Any
ArrowType: TypeAlias = Any
