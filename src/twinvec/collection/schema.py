"""What a collection's table looks like, and the header that it carries: its model and its language.

The header is in the metadata of the Arrow schema, so that vectors and the model they are of change in one commit.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from types import ModuleType

from twinvec.collection.columns import KINDS, OWN_COLUMNS, arrow_type
from twinvec.collection.embedder import ModelRecord
from twinvec.collection.indexes import check_language
from twinvec.collection.lance_types import ArrowSchema
from twinvec.errors import CollectionError, TwinvecError, shown
from twinvec.extras import require

__all__ = ["Header", "pyarrow", "read_header", "table_schema"]

KEY, FORMAT = b"twinvec", 1
NOT_OURS = "Another program has made or changed it; bring it back from a copy."
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
    """The header of a table, checked, as is the table's shape; ``place`` is where it is, for messages."""
    found = (schema.metadata or {}).get(KEY)
    if found is None:
        raise CollectionError(f"{place} holds a Lance table, but not one of a collection.", hint="Check the path.")
    try:
        header = _parsed(json.loads(found), place)
        check_language(header.language)
    except CollectionError:
        raise
    except (KeyError, TypeError, ValueError, RecursionError, TwinvecError) as error:
        reason = error.problem if isinstance(error, TwinvecError) else f"{type(error).__name__}: {error!s:.200}"
        raise CollectionError(f"{place} has a header that cannot be used: {reason}", hint=NOT_OURS) from error
    _check_shape(schema, header, place)
    return header


def _parsed(content: object, place: str) -> Header:
    if not isinstance(content, dict) or not isinstance(content["model"], dict):
        raise TypeError(f"it is a {type(content).__name__}, or its model is not an object")
    number = content["format"]
    if not isinstance(number, int) or isinstance(number, bool) or number < 1:
        raise TypeError(f"its format is {shown(number)}")
    if number > FORMAT:
        raise CollectionError(
            f"{place} is a collection of format {shown(number)}; this version of Twinvec reads up to {FORMAT}.",
            hint="Update Twinvec.",
        )
    return Header(ModelRecord(**content["model"]), content["language"])


def _check_shape(schema: ArrowSchema, header: Header, place: str) -> None:
    """Refuse a table whose columns are not those of a collection with this header."""
    types = {field.name: field.type for field in schema}
    for field in table_schema(header, {}):
        if types.get(field.name) != field.type:
            told = f"holds {types[field.name]}" if field.name in types else "is missing"
            raise CollectionError(
                f"The column {field.name!r} of {place} {told}; a collection has {field.type} there.", hint=NOT_OURS
            )
    known = {str(arrow_type(kind, pyarrow())) for kind in KINDS}
    for name, kind in types.items():
        if name not in OWN_COLUMNS and str(kind) not in known:
            raise CollectionError(
                f"The column {name!r} of {place} holds {kind}, which metadata cannot be.", hint=NOT_OURS
            )
