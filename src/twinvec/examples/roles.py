"""The kinds of examples, and the roles that texts and targets play in each. A role has a name, never a position."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Literal

from twinvec.errors import InputError, UnknownNameError

__all__ = ["KINDS", "TEXT_ROLES", "Kind", "TargetValues", "find_kind", "guess_kind"]

TargetValues = Literal["names", "numbers", "marks"]


@dataclass(frozen=True, slots=True)
class Kind:
    """What a row of examples holds.

    ``texts`` are the roles that hold one text each, ``many`` the role that may hold none, one or several. ``values``
    says what the target is: the name of a class, a number within a range, or a mark, 0 or 1. In a symmetric kind
    it does not matter which of the two texts comes first.
    """

    name: str
    texts: tuple[str, ...]
    target: str | None = None
    values: TargetValues | None = None
    many: str | None = None
    is_symmetric: bool = False

    @property
    def needed(self) -> tuple[str, ...]:
        """The roles that every row must fill."""
        return self.texts + ((self.target,) if self.target else ())

    @property
    def roles(self) -> tuple[str, ...]:
        """All roles, those of the texts first."""
        return self.texts + ((self.many,) if self.many else ()) + ((self.target,) if self.target else ())


# In the order in which a kind is guessed from column names: the first whose needed roles are all there.
KINDS: dict[str, Kind] = {
    kind.name: kind
    for kind in (
        Kind("labelled_pairs", ("premise", "hypothesis"), target="label", values="names"),
        Kind("scored_pairs", ("text1", "text2"), target="score", values="numbers", is_symmetric=True),
        Kind("marked_pairs", ("text1", "text2"), target="label", values="marks", is_symmetric=True),
        Kind("triplets", ("anchor", "positive", "negative")),
        Kind("ranked", ("anchor", "positive"), many="negative"),
        Kind("texts", ("text",)),
    )
}
TEXT_ROLES: tuple[str, ...] = tuple(
    dict.fromkeys(role for kind in KINDS.values() for role in kind.roles if role != kind.target)
)


def find_kind(name: str) -> Kind:
    """The kind of that name.

    >>> find_kind("triplets").texts
    ('anchor', 'positive', 'negative')
    """
    if name not in KINDS:
        raise UnknownNameError("kind of examples", name, KINDS)
    return KINDS[name]


def guess_kind(columns: Collection[str], *, source: str) -> Kind:
    """The first kind whose roles all have a column of their name.

    >>> guess_kind(["genre", "score", "text1", "text2"], source="sts.tsv").name
    'scored_pairs'
    """
    for kind in KINDS.values():
        if set(kind.needed) <= set(columns):
            return kind
    needs = "; ".join(f"{kind.name} ({', '.join(kind.needed)})" for kind in KINDS.values())
    raise InputError(
        f"The columns of {source} fit no kind of examples: {', '.join(columns)}.",
        hint=f"Say which column plays which role, as in --columns premise=sentence1. Kinds and their roles: {needs}.",
    )
