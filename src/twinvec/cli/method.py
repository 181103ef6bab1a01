"""Exact or by an index: the choice that commands share, and what is said of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import click

from twinvec.cli.options import Decorator, gathered
from twinvec.cli.screen import say
from twinvec.sizes import parse_size

if TYPE_CHECKING:
    from twinvec.search import Index
    from twinvec.types import Vectors

__all__ = ["METHODS", "METHOD_OPTIONS", "MethodChoice", "method_choice", "method_options"]

METHODS = ("auto", "exact", "index")
MOST_EXACT = 200_000  # texts; comparing all pairs of so many takes a minute
N_SAMPLE = 200

METHOD_OPTIONS: dict[str, Decorator] = {
    "method": click.option(
        "--method",
        type=click.Choice(METHODS),
        default=METHODS[0],
        show_default=True,
        help="Compare all pairs, or those that an index finds (extra: search). auto: an index from "
        f"{MOST_EXACT:,} texts on.",
    ),
    "max_memory": click.option(
        "--max-memory", metavar="SIZE", help="For an index: its memory, such as 4GB; a smaller kind is taken."
    ),
}


@dataclass(frozen=True, slots=True)
class MethodChoice:
    """How pairs are found, and the most bytes that an index may take (None: all that it wants)."""

    method: str
    max_memory: int | None

    def build(self, vectors: Vectors) -> Index | None:
        """The index to search by, with words about it and its recall on standard error; None for exact comparison."""
        if self.method == "exact" or (self.method == "auto" and len(vectors) <= MOST_EXACT):
            return None
        from twinvec.search import build_index, measure_recall
        from twinvec.search.building import sample_rows

        index = build_index(vectors, max_memory=self.max_memory)
        say(f"Index of {len(index):,} vectors: {index.settings.words()}.")
        say(f"Its {measure_recall(index, sample_rows(vectors, N_SAMPLE), vectors).words()}.")
        return index


def method_choice(method: str, max_memory: str | None) -> MethodChoice:
    """The choice; a size that is none, or that nothing would use, is told before anything is done."""
    if max_memory is not None and method == "exact":
        raise click.UsageError("--max-memory is for an index, not for --method exact.")
    return MethodChoice(method, None if max_memory is None else parse_size(max_memory))


method_options = gathered(METHOD_OPTIONS, "method", build=method_choice)
