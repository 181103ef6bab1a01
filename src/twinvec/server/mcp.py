"""A collection as tools for assistants: search, get and list, over the Model Context Protocol."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Annotated, Any, Literal

from mcp.server.mcpserver import MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from mcp_types import ToolAnnotations
from pydantic import Field

from twinvec.choices import SearchMode
from twinvec.collection import Collection
from twinvec.collection.rows import Entry, Hit
from twinvec.errors import TwinvecError
from twinvec.pairs.cross_encoder import ScorerLike

__all__ = ["MAX_CHARACTERS", "create_mcp"]

MOST = 100  # results of one call
MAX_CHARACTERS = 2000  # of a text in a list of results, so that it fits an assistant's context
READ_ONLY = ToolAnnotations(read_only_hint=True, idempotent_hint=True, open_world_hint=False)

Id = Annotated[str, Field(description="Unique id of the text in the collection.")]
Cut = Annotated[bool, Field(description="Whether only the beginning is shown; the tool get returns the whole text.")]
Metadata = Annotated[
    dict[str, Any], Field(description="Values of the text by column; columns without one are left out.")
]
Where = Annotated[
    str | None,
    Field(
        description="SQL condition over id, text and the metadata columns, such as year >= 1990 AND genre = 'news'. "
        "The tool list returns the columns and their types."
    ),
]


@dataclass(frozen=True)
class FoundText:
    """A text that matches a query."""

    id: Id
    score: Annotated[float, Field(description="Higher is better. Comparable only within one search.")]
    text: str
    is_cut: Cut
    metadata: Metadata


@dataclass(frozen=True)
class Found:
    """The result of a search, best first."""

    results: list[FoundText]


@dataclass(frozen=True)
class StoredText:
    """A text of the collection."""

    id: Id
    text: str
    is_cut: Cut
    metadata: Metadata


@dataclass(frozen=True)
class Fetched:
    """The texts of the requested ids."""

    texts: list[StoredText]
    missing: Annotated[list[str], Field(description="Requested ids that are not in the collection.")]


@dataclass(frozen=True)
class Page:
    """Some texts of the collection, and what it holds."""

    n_texts: Annotated[int, Field(description="Number of texts in the whole collection.")]
    columns: Annotated[dict[str, str], Field(description="Metadata columns and their types, for conditions.")]
    texts: list[StoredText]
    next_offset: Annotated[int | None, Field(description="Offset of the next page; null if this is the last.")]


class CollectionTools:
    """The tools over one collection. Texts longer than ``max_characters`` are cut, except by ``get``."""

    def __init__(self, collection: Collection, *, rerank: ScorerLike | None = None, max_characters: int) -> None:
        self._collection = collection
        self._rerank = rerank
        self._max_characters = max_characters

    def search(
        self,
        query: Annotated[str, Field(description="What to look for: a question, a sentence or words.", min_length=1)],
        k: Annotated[int, Field(description="Number of results.", ge=1, le=MOST)] = 10,
        mode: Annotated[
            Literal["dense", "text", "hybrid"],
            Field(description="dense: by meaning. text: by exact words, for names and codes. hybrid: by both."),
        ] = "dense",
        where: Where = None,
    ) -> Found:
        """Find the texts that fit a query best, by meaning rather than by exact words."""
        chosen: SearchMode = mode
        with tool_errors():
            hits = self._collection.search(query, k, mode=chosen, where=where, rerank=self._rerank)
        return Found([self._found(hit) for hit in hits])

    def get(
        self,
        ids: Annotated[list[str], Field(description="Ids from search or list.", min_length=1, max_length=MOST)],
    ) -> Fetched:
        """Return whole texts with their metadata, by id."""
        with tool_errors():
            entries = self._collection.get(ids)
        texts = [StoredText(each.id, each.text, False, plain(each.metadata)) for each in entries.values()]
        return Fetched(texts, [each for each in dict.fromkeys(ids) if each not in entries])

    def list(
        self,
        limit: Annotated[int, Field(description="Number of texts.", ge=1, le=MOST)] = 20,
        offset: Annotated[int, Field(description="Number of texts to skip.", ge=0)] = 0,
        where: Where = None,
    ) -> Page:
        """Say how many texts there are and which metadata columns, and show some of the texts, in no special order."""
        with tool_errors():
            entries = self._collection.page(limit + 1, offset=offset, where=where)
            n_texts, columns = len(self._collection), self._collection.columns
        more = offset + limit if len(entries) > limit else None
        return Page(n_texts, columns, [*self._stored(entries[:limit])], more)

    def _found(self, hit: Hit) -> FoundText:
        return FoundText(hit.id, hit.score, *self._cut(hit.text), plain(hit.metadata))

    def _stored(self, entries: Iterable[Entry]) -> Iterator[StoredText]:
        for each in entries:
            yield StoredText(each.id, *self._cut(each.text), plain(each.metadata))

    def _cut(self, text: str) -> tuple[str, bool]:
        return text[: self._max_characters], len(text) > self._max_characters


def plain(metadata: Mapping[str, Any]) -> dict[str, Any]:
    """Metadata as JSON; dates become text.

    >>> from datetime import date
    >>> plain({"day": date(1990, 1, 2), "n": 3})
    {'day': '1990-01-02', 'n': 3}
    """
    return {
        name: value if isinstance(value, (bool, int, float, str)) else str(value) for name, value in metadata.items()
    }


@contextmanager
def tool_errors() -> Iterator[None]:
    """Turn our errors into errors that the assistant reads, with their hint."""
    try:
        yield
    except TwinvecError as error:
        raise ToolError(str(error)) from error


def create_mcp(
    collection: Collection,
    *,
    about: str | None = None,
    rerank: ScorerLike | None = None,
    max_characters: int = MAX_CHARACTERS,
) -> MCPServer[Any]:
    """A server with the tools search, get and list over a collection; ``run("stdio")`` serves it.

    Args:
        about: What the texts are, for the assistant, such as "Support tickets of 2025".
        rerank: As in ``Collection.search``.
        max_characters: Longer texts are cut in the results of search and list.
    """
    texts = about or "Texts that the user has collected."
    server: MCPServer[Any] = MCPServer(
        "twinvec",
        title="Twinvec collection",
        instructions=f"{texts.rstrip('.')}. Use search to find texts by meaning, get to read them in full, and list to "
        "see which metadata columns conditions can use.",
        log_level="WARNING",
    )
    tools = CollectionTools(collection, rerank=rerank, max_characters=max_characters)
    for tool in (tools.search, tools.get, tools.list):
        description = f"{tool.__doc__} {texts}" if about else tool.__doc__
        server.add_tool(tool, description=description, annotations=READ_ONLY)
    return server
