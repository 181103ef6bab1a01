"""The description of all operations: ``/openapi.json`` from the types of the endpoints, and a page at ``/docs``."""

from __future__ import annotations

import html
import re
from collections.abc import Sequence
from importlib.metadata import version
from typing import Any

import msgspec

from twinvec.server.problems import STATUS
from twinvec.server.wire import Endpoint

__all__ = ["STYLE", "describe", "docs_page"]

REFERENCES = "#/components/schemas/{name}"
ERRORS = ("invalid", "no_key", "forbidden", "unknown_model", "slow_body", "too_large", "rate_limit", "timeout")

STYLE = """
:root { color-scheme: light dark; }
body { font: 16px/1.5 system-ui, sans-serif; max-width: 60rem; margin: 2rem auto; padding: 0 1rem; }
h2 { margin-top: 2.5rem; border-bottom: 1px solid #8888; }
code { font-family: ui-monospace, monospace; }
table { border-collapse: collapse; margin: .5rem 0 1rem; }
td, th { text-align: left; padding: .15rem 1rem .15rem 0; vertical-align: top; }
"""


def describe(endpoints: Sequence[Endpoint], *, has_keys: bool) -> dict[str, Any]:
    """The OpenAPI description of the endpoints."""
    kinds = [kind for each in endpoints for kind in (each.request, each.response) if kind is not None]
    schemas, components = msgspec.json.schema_components(kinds, ref_template=REFERENCES)
    schema_of = {id(kind): schema for kind, schema in zip(kinds, schemas, strict=True)}
    paths: dict[str, dict[str, Any]] = {}
    for each in endpoints:
        for path in each.paths:
            operation = _operation(each, path, schema_of)
            paths.setdefault(re.sub(r":\w+}", "}", path), {})[each.method.lower()] = operation
    security = {"securitySchemes": {"key": {"type": "http", "scheme": "bearer"}}} if has_keys else {}
    return {
        "openapi": "3.1.0",
        "info": {"title": "Twinvec", "version": version("twinvec")},
        "paths": paths,
        "components": {"schemas": components, **security},
        **({"security": [{"key": []}]} if has_keys else {}),
    }


def _operation(endpoint: Endpoint, path: str, schema_of: dict[int, Any]) -> dict[str, Any]:
    kinds = (
        ERRORS if endpoint.request is not None else ("no_key", "forbidden", "unknown_model", "rate_limit", "timeout")
    )
    statuses = {endpoint.dialect.statuses.get(kind, STATUS[kind]) for kind in kinds}
    answer = schema_of.get(id(endpoint.response), {})
    operation: dict[str, Any] = {
        "summary": endpoint.summary,
        "operationId": re.sub(r"\W+", "_", f"{endpoint.method.lower()}_{path}").strip("_"),
        "tags": [endpoint.dialect.name],
        "responses": {
            "200": {"description": "Success.", "content": {endpoint.media_type: {"schema": answer}}},
            **{str(status): {"description": "An error in the shape of this dialect."} for status in sorted(statuses)},
        },
    }
    if endpoint.is_open:
        operation["security"] = []
    if endpoint.request is not None:
        content = {"application/json": {"schema": schema_of[id(endpoint.request)]}}
        operation["requestBody"] = {"required": True, "content": content}
    if names := re.findall(r"{(\w+)", path):
        schema = {"type": "string"}
        operation["parameters"] = [{"name": name, "in": "path", "required": True, "schema": schema} for name in names]
    return operation


def docs_page(endpoints: Sequence[Endpoint]) -> str:
    """A page about all operations, without outside resources and scripts."""
    parts = [
        "<!doctype html><html lang=en><meta charset=utf-8><title>Twinvec API</title>",
        "<meta name=viewport content='width=device-width'><link rel=stylesheet href=/docs/style.css>",
        "<h1>Twinvec API</h1><p>The same as <a href=/openapi.json>OpenAPI description</a>. <a href=/>The page</a></p>",
    ]
    for name in dict.fromkeys(each.dialect.name for each in endpoints):
        parts.append(f"<h2>{html.escape(name)}</h2>")
        for each in (each for each in endpoints if each.dialect.name == name):
            paths = ", ".join(f"<code>{each.method} {html.escape(path)}</code>" for path in each.paths)
            parts.append(f"<h3>{paths}</h3><p>{html.escape(each.summary)}</p>{_fields(each.request)}")
    return "\n".join(parts)


def _fields(request: Any) -> str:  # noqa: ANN401 - any type of msgspec
    if request is None:
        return ""
    fields = msgspec.structs.fields(request)
    rows = (
        f"<tr><td><code>{html.escape(each.name)}</code><td><code>{html.escape(_shown(each.type))}</code>"
        f"<td>{'required' if each.required else ''}"
        for each in fields
    )
    text = html.escape((request.__doc__ or "").replace("``", ""))
    return f"<p>{text}</p><table><tr><th>field<th>type<th>{''.join(rows)}</table>"


def _shown(kind: Any) -> str:  # noqa: ANN401
    return re.sub(r"\b[a-z_]+(\.[a-z_]+)*\.", "", str(kind)).removeprefix("<class '").removesuffix("'>")
