"""What a collection's table looks like, and the header that it carries: its model and its language.

The header is in the metadata of the Arrow schema, so that vectors and the model they are of change in one commit.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from types import ModuleType

from twinvec.collection.columns import arrow_type
from twinvec.collection.embedder import ModelRecord
from twinvec.collection.lance_types import ArrowSchema
from twinvec.errors import CollectionError
from twinvec.extras import require

__all__ = ["Header", "pyarrow", "read_header", "table_schema"]

KEY, FORMAT = b"twinvec", 1
# With a primary key, Lance finds that another writer has inserted the same id, and merges again.
PRIMARY_KEY = {"lance-schema:unenforced-primary-key": "true", "lance-schema:unenforced-primary-key:position": "1"}


@dataclass(frozen=True, slots=True)
class Header:
    """The model of all vectors, and the language by whose rules words are found (None: as they are written)."""

    model: ModelRecord
    language: str | None


def pyarrow() -> ModuleType:
    """The package pyarrow, which comes with lancedb."""
    return require("pyarrow", extra="search", feature="A collection")


def table_schema(header: Header, columns: Mapping[str, str]) -> ArrowSchema:
    """The Arrow schema of a collection with these columns of metadata."""
    arrow = pyarrow()
    fields = [
        arrow.field("id", arrow.string(), nullable=False, metadata=PRIMARY_KEY),
        arrow.field("text", arrow.string()),
        arrow.field("text_hash", arrow.string()),
        arrow.field("vector", arrow.list_(arrow.float32(), header.model.width)),
        *(arrow.field(name, arrow_type(kind, arrow)) for name, kind in columns.items()),
    ]
    content = {"format": FORMAT, "model": asdict(header.model), "language": header.language}
    return arrow.schema(fields, metadata={KEY: json.dumps(content).encode()})


def read_header(schema: ArrowSchema, place: str) -> Header:
    """The header of a table; ``place`` is where it is, for messages."""
    try:
        content = json.loads((schema.metadata or {})[KEY])
        if content["format"] > FORMAT:
            raise CollectionError(
                f"{place} is a collection of format {content['format']}; this version of Twinvec reads up to {FORMAT}.",
                hint="Update Twinvec.",
            )
        return Header(ModelRecord(**content["model"]), content["language"])
    except (KeyError, TypeError, ValueError) as error:
        raise CollectionError(
            f"{place} holds a Lance table, but not one of a collection.", hint="Check the path."
        ) from error
