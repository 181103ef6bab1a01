"""What objectives share: checks of settings, distances, and kinds of examples."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable
from numbers import Integral, Real

import torch.nn.functional as F
from torch import Tensor

from twinvec.data.roles import Kind
from twinvec.errors import InputError, UnknownNameError

__all__ = [
    "DISTANCE_FUNCTIONS",
    "above_zero",
    "at_least_zero",
    "batch_target",
    "check_batch",
    "cosine",
    "cosine_matrix",
    "euclidean",
    "manhattan",
    "names",
    "one_of",
    "whole",
    "yes_or_no",
]


def above_zero(setting: str, value: object) -> float:
    """A finite number above 0.

    >>> above_zero("margin", 1)
    1.0
    """
    number = _number(value)
    if number is None or number <= 0:
        raise InputError(f"{setting} must be a number above 0, got {value!r}.")
    return number


def at_least_zero(setting: str, value: object) -> float:
    """A finite number of at least 0."""
    number = _number(value)
    if number is None or number < 0:
        raise InputError(f"{setting} must be a number of at least 0, got {value!r}.")
    return number


def whole(setting: str, value: object, *, least: int) -> int:
    """A whole number of at least ``least``."""
    if isinstance(value, bool) or not isinstance(value, Integral) or value < least:
        raise InputError(f"{setting} must be a whole number of at least {least}, got {value!r}.")
    return int(value)


def yes_or_no(setting: str, value: object) -> bool:
    """True or False, and nothing that merely counts as such."""
    if not isinstance(value, bool):
        raise InputError(f"{setting} must be true or false, got {value!r}.")
    return value


def one_of(setting: str, value: object, known: Iterable[str]) -> str:
    """One of the known names."""
    choices = tuple(known)
    if not isinstance(value, str) or value not in choices:
        raise UnknownNameError(setting, value, choices)
    return value


def names(setting: str, value: object, known: Iterable[str]) -> tuple[str, ...]:
    """At least one of the known names, none of them twice.

    >>> names("features", ["u", "v"], ("u", "v", "|u-v|"))
    ('u', 'v')
    """
    choices = tuple(known)
    if not isinstance(value, (list, tuple)) or not value:
        raise InputError(
            f"{setting} must be a list of names, got {value!r}.", hint=f"Choose from: {', '.join(choices)}."
        )
    found = tuple(one_of(f"name in {setting}:", name, choices) for name in value)
    if len(set(found)) < len(found):
        raise InputError(f"{setting} must name each part once, got {value!r}.")
    return found


def _number(value: object) -> float | None:
    if isinstance(value, bool) or not isinstance(value, Real):
        return None
    try:
        number = float(value)
    except OverflowError:  # a whole number of too many digits
        return None
    return number if math.isfinite(number) else None


SHORTEST = 1e-8


def cosine(left: Tensor, right: Tensor) -> Tensor:
    """Cosine of row ``i`` with row ``i``: ``(n, width), (n, width) -> (n,)``.

    >>> import torch
    >>> cosine(torch.tensor([[1.0, 0.0], [0.0, 0.0]]), torch.tensor([[2.0, 0.0], [1.0, 1.0]])).tolist()
    [1.0, 0.0]
    """
    return F.cosine_similarity(left, right, dim=-1, eps=SHORTEST)


def cosine_matrix(left: Tensor, right: Tensor) -> Tensor:
    """Cosine of every row with every row: ``(n, width), (m, width) -> (n, m)``.

    >>> import torch
    >>> cosine_matrix(torch.tensor([[0.0, 3.0]]), torch.tensor([[1.0, 0.0], [0.0, 2.0]])).tolist()
    [[0.0, 1.0]]
    """
    return F.normalize(left, dim=-1, eps=SHORTEST) @ F.normalize(right, dim=-1, eps=SHORTEST).T


def cosine_distance(left: Tensor, right: Tensor) -> Tensor:
    """``1 - cosine``, row by row: ``(n, width), (n, width) -> (n,)``. From 0 to 2."""
    return 1 - cosine(left, right)


def euclidean(left: Tensor, right: Tensor) -> Tensor:
    """Length of the difference, row by row: ``(n, width), (n, width) -> (n,)``.

    Where two rows are equal there is no gradient; torch's norm takes 0.
    """
    return (left - right).norm(dim=-1)


def manhattan(left: Tensor, right: Tensor) -> Tensor:
    """Sum of the absolute differences, row by row: ``(n, width), (n, width) -> (n,)``."""
    return (left - right).abs().sum(dim=-1)


DISTANCE_FUNCTIONS: dict[str, Callable[[Tensor, Tensor], Tensor]] = {
    "cosine": cosine_distance,
    "euclidean": euclidean,
    "manhattan": manhattan,
}


TEACHER = "target_vectors"  # the target of bare texts: no file holds it, a teacher makes it


def batch_target(kind: Kind) -> str | None:
    """The target of a batch of this kind: that of its rows, or the vectors of a teacher for bare texts."""
    return TEACHER if kind.name == "texts" else kind.target


def check_batch(kind: Kind, given: Collection[str], *, has_target: bool) -> None:
    """Refuse a batch that lacks a role or the target, or brings one that nobody reads."""
    for role in given:
        if role not in kind.text_roles:
            raise UnknownNameError(f"role of {kind.name}", role, kind.text_roles)
    missing = [role for role in kind.texts if role not in given]
    if missing:
        raise InputError(f"A batch of {kind.name} needs vectors for {', '.join(kind.text_roles)}; it lacks {missing}.")
    target = batch_target(kind)
    if has_target != (target is not None):
        wanted = f"the target {target!r}" if target else "no target"
        raise InputError(f"A batch of {kind.name} has {wanted}; this one has {'one' if has_target else 'none'}.")
