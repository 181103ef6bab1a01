"""Exact or by an index: the choice that commands share, and what is said of it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from twinvec.cli.screen import say

if TYPE_CHECKING:
    from twinvec.search import Index
    from twinvec.types import Vectors

__all__ = ["build_chosen_index", "method_option"]

METHODS = ("auto", "exact", "index")
MOST_EXACT = 200_000  # texts; comparing all pairs of so many takes a minute
N_SAMPLE = 200

method_option = click.option(
    "--method",
    type=click.Choice(METHODS),
    default="auto",
    show_default=True,
    help="Compare all pairs, or those that an index finds (extra: search). auto: an index from "
    f"{MOST_EXACT:,} texts on.",
)


def build_chosen_index(vectors: Vectors, method: str) -> Index | None:
    """The index to search by, with words about it and its recall on standard error; None for exact comparison."""
    if method == "exact" or (method == "auto" and len(vectors) <= MOST_EXACT):
        return None
    from twinvec.search import build_index, measure_recall
    from twinvec.search.building import sample_rows

    index = build_index(vectors)
    say(f"Index of {len(index):,} vectors: {index.settings.words()}.")
    say(f"Its {measure_recall(index, sample_rows(vectors, N_SAMPLE), vectors).words()}.")
    return index
