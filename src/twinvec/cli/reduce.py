"""``twinvec reduce``: a model with fewer pieces."""

from __future__ import annotations

import click

from twinvec.cli.options import column_option, format_option, out_option
from twinvec.cli.screen import say

__all__ = ["reduce"]


@click.command()
@click.argument("folder")
@click.argument("texts")
@column_option
@format_option
@out_option("FOLDER", "Where the smaller model goes.", required=True)
def reduce(*, folder: str, texts: str, column: str | None, format: str | None, out: str) -> None:
    """Write the Universal Sentence Encoder in FOLDER with only the pieces that the texts of the file TEXTS use.

    All single characters are kept too. Those texts keep their vectors; others are read in smaller pieces where theirs
    are gone. TEXTS is read as by embed.
    """
    import twinvec
    from twinvec.data.read import read_texts

    reduced = twinvec.reduce_use(folder, out, read_texts(texts, column, format=format))
    say(f"Kept {reduced.n_pieces:,} of {reduced.n_before:,} pieces.")
