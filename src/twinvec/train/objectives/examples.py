"""The kinds of examples that objectives read: which texts one holds, and which target."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from twinvec.errors import InputError, UnknownNameError
from twinvec.examples import KINDS, Kind

__all__ = ["EXAMPLE_KINDS", "ExampleKind"]

TEACHER = "target_vectors"  # the target of bare texts: no file holds it, a teacher makes it


@dataclass(frozen=True, slots=True)
class ExampleKind:
    """The texts of an example by role, in the order in which objectives take their vectors, and its target."""

    name: str
    roles: tuple[str, ...]
    target: str | None = None
    optional: tuple[str, ...] = ()

    def check(self, given: Collection[str], *, has_target: bool) -> None:
        """Refuse a batch that lacks a role or the target, or brings one that nobody reads."""
        for role in given:
            if role not in self.roles:
                raise UnknownNameError(f"role of {self.name}", role, self.roles)
        missing = [role for role in self.roles if role not in given and role not in self.optional]
        if missing:
            raise InputError(f"A batch of {self.name} needs vectors for {', '.join(self.roles)}; it lacks {missing}.")
        if has_target != (self.target is not None):
            wanted = f"the target {self.target!r}" if self.target else "no target"
            raise InputError(f"A batch of {self.name} has {wanted}; this one has {'one' if has_target else 'none'}.")


def _of(kind: Kind) -> ExampleKind:
    many = (kind.many,) if kind.many else ()
    target = TEACHER if kind.name == "texts" else kind.target
    return ExampleKind(kind.name, roles=kind.texts + many, target=target, optional=many)


EXAMPLE_KINDS: dict[str, ExampleKind] = {name: _of(kind) for name, kind in KINDS.items()}
