"""``twinvec mcp``: a collection as tools for assistants."""

from __future__ import annotations

import click

from twinvec.cli.options import ModelChoice, model_options
from twinvec.extras import require

__all__ = ["mcp"]


@click.command()
@click.argument("collection", metavar="COLLECTION")
@click.option("--about", metavar="TEXT", help='What the texts are, for the assistant: "Support tickets of 2025".')
@click.option("--rerank", metavar="FOLDER", help="Cross- or poly-encoder that sorts the results of a search again.")
@click.option(
    "--max-characters",
    type=click.IntRange(min=1),
    default=2000,
    help="Cut longer texts in lists of results. The assistant can still get a whole text by its id.",
)
@model_options()
def mcp(*, collection: str, about: str | None, rerank: str | None, max_characters: int, model: ModelChoice) -> None:
    """Let an assistant search COLLECTION, through the Model Context Protocol on standard input and output.

    The assistant gets the tools search, get and list, and cannot change anything. Start it from the assistant's
    settings, with the command twinvec and the arguments mcp and COLLECTION. A collection is searched with the model it
    was made with; use --model if that has moved.
    """
    require("mcp", extra="mcp", feature="twinvec mcp")
    import twinvec
    from twinvec.pairs.cross_encoder import as_scorer
    from twinvec.server.mcp import create_mcp

    name, arguments = model.explicit()
    opened = twinvec.Collection.open(collection, model=name, arguments=arguments)
    scorer = None if rerank is None else as_scorer(rerank)  # loaded once, and not in every search
    create_mcp(opened, about=about, rerank=scorer, max_characters=max_characters).run("stdio")
