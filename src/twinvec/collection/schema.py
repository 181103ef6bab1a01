"""The table schema of a collection: its columns, and the header with its model and language."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from datetime import date, datetime, timezone
from types import ModuleType
from typing import Any

import numpy as np

from twinvec.collection.indexes import ArrowSchema, ArrowType, check_language
from twinvec.collection.model import ModelRecord
from twinvec.errors import CollectionError, InputError, TwinvecError, shown
from twinvec.extras import require
from twinvec.json_checks import LARGEST_EXACT, JsonObject, parse_json
from twinvec.model.tokenizer import check_text

__all__ = [
    "OWN_COLUMNS",
    "Header",
    "arrow_type",
    "column_kinds",
    "kinds_of_schema",
    "plain_values",
    "pyarrow",
    "read_header",
    "table_schema",
]

OWN_COLUMNS = ("id", "text", "text_hash", "vector")
NAME = re.compile(r"[^\W\d_]\w*(?: \w+)*")

# column type -> its Python and Arrow types, in the order in which a value is tried
KINDS: dict[str, tuple[type, Callable[[ModuleType], ArrowType]]] = {
    "bool": (bool, lambda arrow: arrow.bool_()),
    "int": (int, lambda arrow: arrow.int64()),
    "float": (float, lambda arrow: arrow.float64()),
    "text": (str, lambda arrow: arrow.string()),
    "datetime": (datetime, lambda arrow: arrow.timestamp("us", "UTC")),
    "date": (date, lambda arrow: arrow.date32()),
}
INT_LIMIT = 2**63


def arrow_type(kind: str, arrow: ModuleType) -> ArrowType:
    """The Arrow type of a column type."""
    return KINDS[kind][1](arrow)


def kinds_of_schema(schema: ArrowSchema, arrow: ModuleType) -> dict[str, str]:
    """The metadata columns of an Arrow schema and their types."""
    names = {str(arrow_type(kind, arrow)): kind for kind in KINDS}
    return {field.name: names[str(field.type)] for field in schema if field.name not in OWN_COLUMNS}


def plain_values(row: Mapping[str, object], where: str) -> dict[str, object]:
    """A row's metadata without None, with numpy values as Python values and times in UTC.

    >>> plain_values({"year": np.int64(1990), "genre": None}, "metadata[0]")
    {'year': 1990}
    """
    if not isinstance(row, Mapping):
        raise InputError(f"{where} is {shown(row)}, not a dict.", hint='Pass one dict per text: {"year": 1990}.')
    return {_name(name, where): _plain(value, f"{where}[{name!r}]") for name, value in row.items() if value is not None}


def _name(name: object, where: str) -> str:
    if not isinstance(name, str) or not NAME.fullmatch(name):
        raise InputError(
            f"{where} has the invalid column name {shown(name)}.",
            hint="Start with a letter, followed by letters, digits and _.",
        )
    if name.lower() in OWN_COLUMNS:
        raise InputError(f"{where} has the reserved column name {name!r}.", hint="Rename the column.")
    return name


def _plain(value: object, where: str) -> object:
    if isinstance(value, (np.datetime64, np.timedelta64)):
        value = _numpy_time(value)
    elif isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, str):
        return check_text(value, where)
    if isinstance(value, datetime):
        return _in_utc(value, where)
    return value


def _numpy_time(value: np.datetime64 | np.timedelta64) -> object:
    """Convert a numpy time to a Python date (units of days or longer) or a datetime with microseconds.

    A time that Python cannot represent is returned unchanged, and refused later as metadata.
    """
    if np.isnat(value) or isinstance(value, np.timedelta64):
        return value
    is_date = np.datetime_data(value.dtype)[0] in ("Y", "M", "W", "D")
    plain = value.astype("datetime64[D]" if is_date else "datetime64[us]").item()
    return plain if isinstance(plain, date) else value  # beyond the year 9999 it is a number


def _in_utc(value: datetime, where: str) -> datetime:
    """Convert a time, or a subclass such as pandas' Timestamp, to a plain datetime in UTC. No time zone means UTC."""
    try:
        parts = value.year, value.month, value.day, value.hour, value.minute, value.second, value.microsecond
        plain = datetime(*parts, tzinfo=value.tzinfo, fold=value.fold)
        return plain.replace(tzinfo=timezone.utc) if value.tzinfo is None else plain.astimezone(timezone.utc)
    except Exception as error:  # OverflowError near the years 1 and 9999, TypeError for NaT, anything from a time zone
        raise InputError(
            f"{where} is {shown(value)}, which cannot be converted to UTC: {error}.", hint="Correct or omit it."
        ) from error


def column_kinds(rows: Sequence[Mapping[str, object]], known: Mapping[str, str]) -> dict[str, str]:
    """The columns of these rows that are not in ``known``, with their types.

    Refuses a value that does not fit its column. Integers fit a float column.

    >>> column_kinds([{"year": 1990}, {"price": 3}, {"price": 2.5}], {"year": "int"})
    {'price': 'float'}
    """
    found = dict(known)
    spelled = {name.lower(): name for name in known}
    for index, row in enumerate(rows):
        for name, value in row.items():
            where = f"metadata[{index}][{name!r}]"
            if spelled.setdefault(name.lower(), name) != name:
                raise InputError(
                    f"{where}: the column {spelled[name.lower()]!r} differs only in case.", hint="Use one spelling."
                )
            found[name] = _joined(found.get(name), kind_of(value, where), where, name not in known, value)
    _check_floats(rows, {name for name, kind in found.items() if kind == "float"})
    return {name: kind for name, kind in found.items() if name not in known}


def _check_floats(rows: Sequence[Mapping[str, object]], columns: set[str]) -> None:
    """Refuse integers that a float column cannot represent exactly."""
    for index, row in enumerate(rows if columns else ()):
        for name in columns & row.keys():
            value = row[name]
            if isinstance(value, int) and int(float(value)) != value:
                raise InputError(
                    f"metadata[{index}][{name!r}] is {value}, which a float cannot represent exactly.",
                    hint="The column has the type float; use another column.",
                )


def _joined(column: str | None, kind: str, where: str, is_new: bool, value: object) -> str:
    """The type of a column after one more value."""
    if column is None or column == kind:
        return kind
    if (column, kind) == ("float", "int") or (is_new and (column, kind) == ("int", "float")):
        return "float"
    raise InputError(
        f"{where} is {shown(value)}, of type {kind}, but the column has the type {column}.",
        hint="The first value sets the type of a column; convert this value, or use another column.",
    )


def kind_of(value: object, where: str) -> str:
    """The column type of a value.

    >>> kind_of(True, ""), kind_of(3, ""), kind_of(date(1990, 1, 1), "")
    ('bool', 'int', 'date')
    """
    for kind, (python, _) in KINDS.items():
        if isinstance(value, python):
            if kind == "int" and not -INT_LIMIT <= value < INT_LIMIT:  # type: ignore[operator]
                raise InputError(
                    f"{where} is {shown(value)}, which does not fit in 64 bits.", hint="Store it as a string."
                )
            return kind
    raise InputError(
        f"{where} is {shown(value)}, of type {type(value).__name__}.", hint=f"Metadata can be: {', '.join(KINDS)}."
    )


KEY, FORMAT = b"twinvec", 1
NOT_OURS = "Another program created or changed it; restore it from a backup."
# With a primary key, Lance detects that another writer inserted the same id, and merges again.
PRIMARY_KEY = {"lance-schema:unenforced-primary-key": "true", "lance-schema:unenforced-primary-key:position": "1"}


@dataclass(frozen=True, slots=True)
class Header:
    """The model of all vectors, and the language for stemming words (None: no stemming)."""

    model: ModelRecord
    language: str | None


def pyarrow() -> ModuleType:
    """The package pyarrow, which comes with lancedb."""
    return require("pyarrow", extra="search", feature="A collection")


def table_schema(header: Header, columns: Mapping[str, str]) -> ArrowSchema:
    """The Arrow schema of a collection with these metadata columns."""
    arrow = pyarrow()
    all_fields = [
        arrow.field("id", arrow.string(), nullable=False, metadata=PRIMARY_KEY),
        arrow.field("text", arrow.string()),
        arrow.field("text_hash", arrow.string()),
        arrow.field("vector", arrow.list_(arrow.float32(), header.model.width)),
        *(arrow.field(name, arrow_type(kind, arrow)) for name, kind in columns.items()),
    ]
    content = {"format": FORMAT, "model": asdict(header.model), "language": header.language}
    return arrow.schema(all_fields, metadata={KEY: json.dumps(content).encode()})


def read_header(schema: ArrowSchema, path: str) -> Header:
    """Read and check the header and columns of a table; ``path`` is for messages."""
    found = (schema.metadata or {}).get(KEY)
    if found is None:
        raise CollectionError(f"{path} is a Lance table, but not a collection.", hint="Check the path.")
    try:
        header = _parsed(parse_json(found, source="it"), path)
        check_language(header.language)
    except CollectionError:
        raise
    except TwinvecError as error:
        raise CollectionError(f"{path} has an invalid header: {error.problem}", hint=NOT_OURS) from error
    _check_shape(schema, header, path)
    return header


def _parsed(content: Any, path: str) -> Header:  # noqa: ANN401 - whatever was read
    whole = JsonObject(content, "it", InputError)
    number = whole.integer("format", most=LARGEST_EXACT)
    if number > FORMAT:
        raise CollectionError(
            f"{path} has the format {number}, but this version of Twinvec reads up to format {FORMAT}.",
            hint="Update Twinvec.",
        )
    model = whole.inner("model").only([each.name for each in fields(ModelRecord)])
    for name in ("name", "digest", "width"):
        model.value(name)  # required
    language = None if whole.value("language") is None else whole.text("language")
    return Header(ModelRecord(**model.content), language)


def _check_shape(schema: ArrowSchema, header: Header, path: str) -> None:
    """Refuse a table whose columns do not match this header."""
    types = {field.name: field.type for field in schema}
    for field in table_schema(header, {}):
        if types.get(field.name) != field.type:
            found = f"has the type {types[field.name]}" if field.name in types else "is missing"
            raise CollectionError(f"The column {field.name!r} of {path} {found}; expected {field.type}.", hint=NOT_OURS)
    known = {str(arrow_type(kind, pyarrow())) for kind in KINDS}
    for name, kind in types.items():
        if name not in OWN_COLUMNS and str(kind) not in known:
            raise CollectionError(
                f"The column {name!r} of {path} has the type {kind}, which is not allowed.", hint=NOT_OURS
            )
