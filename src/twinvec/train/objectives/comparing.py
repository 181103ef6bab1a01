"""One way to call any objective: vectors by role, a target, and which texts are the same."""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor, nn

from twinvec.errors import InputError
from twinvec.train.objectives.examples import EXAMPLE_KINDS, ExampleKind
from twinvec.train.objectives.ranking import copies

__all__ = ["compare"]


def compare(
    objective: nn.Module,
    vectors: Mapping[str, Tensor],
    *,
    target: Tensor | None = None,
    ids: Mapping[str, Tensor] | None = None,
) -> Tensor:
    """The loss of one batch, a scalar. Autocast is off inside, and half precision is raised to float32.

    Args:
        objective: Any of ``OBJECTIVES``, or a ``Matryoshka`` of one.
        vectors: By role; ``(n, width)``, but ``(n, k, width)`` for the ``negative`` of ranked examples.
        target: ``(n,)`` labels or scores, or the teachers' ``(n, sum of widths)``, where the examples have one.
        ids: By role, ``(n,)`` or ``(n, k)``: equal ids are equal texts. With them, ranking leaves out the candidates
            that are no wrong answers (see ``copies``); without them, it takes all texts for different.
    """
    kind = EXAMPLE_KINDS[objective.examples]
    kind.check(vectors, has_target=target is not None)
    arguments = {role: _at_least_float32(each) for role, each in vectors.items()}
    one = arguments[kind.roles[0]]
    if kind.target is not None and target is not None:
        arguments[kind.target] = target.to(one.dtype) if target.is_floating_point() else target
    if kind.name == "ranked" and ids:
        arguments["is_copy"] = _copies(kind, vectors, ids).to(one.device)
    with torch.autocast(one.device.type, enabled=False):
        return objective(**arguments)


def _at_least_float32(values: Tensor) -> Tensor:
    return values.float() if values.dtype in (torch.float16, torch.bfloat16) else values


def _copies(kind: ExampleKind, vectors: Mapping[str, Tensor], ids: Mapping[str, Tensor]) -> Tensor:
    missing = [role for role in vectors if role not in ids]
    if missing:
        raise InputError(f"A batch of {kind.name} has ids for {sorted(ids)}; they are missing for {missing}.")
    return copies(*(ids[role] for role in kind.roles if role in vectors))
