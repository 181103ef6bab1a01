"""Shared by the objectives: checks of settings, distances, and checks of batches."""

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
    "cosine_distance",
    "cosine_matrix",
    "names",
    "one_of",
    "true_or_false",
    "whole",
]


def above_zero(setting: str, value: object) -> float:
    """Return the value as a finite float above 0, or raise an error.

    >>> above_zero("margin", 1)
    1.0
    """
    number = _number(value)
    if number is None or number <= 0:
        raise InputError(f"{setting} must be a number above 0, got {value!r}.")
    return number


def at_least_zero(setting: str, value: object) -> float:
    """Return the value as a finite float of at least 0, or raise an error."""
    number = _number(value)
    if number is None or number < 0:
        raise InputError(f"{setting} must be a number of at least 0, got {value!r}.")
    return number


def whole(setting: str, value: object, *, least: int) -> int:
    """Return the value as a whole number of at least ``least``, or raise an error."""
    if isinstance(value, bool) or not isinstance(value, Integral) or value < least:
        raise InputError(f"{setting} must be a whole number of at least {least}, got {value!r}.")
    return int(value)


def true_or_false(setting: str, value: object) -> bool:
    """Return the value if it is a bool, or raise an error."""
    if not isinstance(value, bool):
        raise InputError(f"{setting} must be true or false, got {value!r}.")
    return value


def one_of(setting: str, value: object, known: Iterable[str]) -> str:
    """Return the value if it is a known name, or raise an error."""
    choices = tuple(known)
    if not isinstance(value, str) or value not in choices:
        raise UnknownNameError(setting, value, choices)
    return value


def names(setting: str, value: object, known: Iterable[str]) -> tuple[str, ...]:
    """Return a non-empty list of unique known names as a tuple, or raise an error.

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
        raise InputError(f"{setting} must not repeat a name, got {value!r}.")
    return found


def _number(value: object) -> float | None:
    if isinstance(value, bool) or not isinstance(value, Real):
        return None
    try:
        number = float(value)
    except OverflowError:  # an int that is too large
        return None
    return number if math.isfinite(number) else None


MIN_LENGTH = 1e-8


def cosine(left: Tensor, right: Tensor) -> Tensor:
    """Cosine of row ``i`` with row ``i``: ``(n, width), (n, width) -> (n,)``.

    >>> import torch
    >>> cosine(torch.tensor([[1.0, 0.0], [0.0, 0.0]]), torch.tensor([[2.0, 0.0], [1.0, 1.0]])).tolist()
    [1.0, 0.0]
    """
    return F.cosine_similarity(left, right, dim=-1, eps=MIN_LENGTH)


def cosine_matrix(left: Tensor, right: Tensor) -> Tensor:
    """Cosine of every row with every row: ``(n, width), (m, width) -> (n, m)``.

    >>> import torch
    >>> cosine_matrix(torch.tensor([[0.0, 3.0]]), torch.tensor([[1.0, 0.0], [0.0, 2.0]])).tolist()
    [[0.0, 1.0]]
    """
    return F.normalize(left, dim=-1, eps=MIN_LENGTH) @ F.normalize(right, dim=-1, eps=MIN_LENGTH).T


def cosine_distance(left: Tensor, right: Tensor) -> Tensor:
    """``1 - cosine``, row by row: ``(n, width), (n, width) -> (n,)``. From 0 to 2."""
    return 1 - cosine(left, right)


def euclidean(left: Tensor, right: Tensor) -> Tensor:
    """Euclidean distance, row by row: ``(n, width), (n, width) -> (n,)``. The gradient of equal rows is 0."""
    return (left - right).norm(dim=-1)


def manhattan(left: Tensor, right: Tensor) -> Tensor:
    """Sum of absolute differences, row by row: ``(n, width), (n, width) -> (n,)``."""
    return (left - right).abs().sum(dim=-1)


DISTANCE_FUNCTIONS: dict[str, Callable[[Tensor, Tensor], Tensor]] = {
    "cosine": cosine_distance,
    "euclidean": euclidean,
    "manhattan": manhattan,
}


def batch_target(kind: Kind) -> str | None:
    """The name of the target of this kind; for plain texts, the vectors of the teachers."""
    return "target_vectors" if kind.name == "texts" else kind.target


def check_batch(kind: Kind, roles: Collection[str], *, has_target: bool) -> None:
    """Refuse a batch with a missing or unknown role, or a missing or unexpected target."""
    for role in roles:
        if role not in kind.text_roles:
            raise UnknownNameError(f"role of {kind.name}", role, kind.text_roles)
    missing = [role for role in kind.texts if role not in roles]
    if missing:
        raise InputError(f"A batch of {kind.name} needs vectors for {', '.join(kind.text_roles)}; missing: {missing}.")
    target = batch_target(kind)
    if has_target != (target is not None):
        wanted = f"needs the target {target!r}" if target else "has no target"
        raise InputError(f"A batch of {kind.name} {wanted}; this one has {'one' if has_target else 'none'}.")
