"""The Matryoshka wrapper of any objective, and ``compare``, which calls any objective."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import torch
from torch import Tensor, nn

from twinvec.data.roles import Kind, find_kind
from twinvec.errors import InputError
from twinvec.training.objectives.common import above_zero, batch_target, check_batch, whole
from twinvec.training.objectives.ranking import copies

__all__ = ["Matryoshka", "check_widths", "compare"]


class Matryoshka(nn.Module):  # type: ignore[misc]
    """``sum of weight_i * objective_i``, where objective ``i`` sees the first ``widths[i]`` values of each vector.

    Each width has its own objective with its own parameters. Shortened vectors are not rescaled to length 1, so an
    objective that depends on lengths sees the same vectors as a user of that width.
    """

    def __init__(
        self, objectives: Sequence[nn.Module], widths: Sequence[int], weights: Sequence[float] | None = None
    ) -> None:
        super().__init__()
        self.widths = check_widths(widths)
        weights = [1.0] * len(self.widths) if weights is None else weights
        self.weights = tuple(above_zero("A matryoshka weight", weight) for weight in weights)
        if not len(objectives) == len(self.widths) == len(self.weights):
            raise InputError(
                f"Matryoshka needs one objective and one weight per width, got {len(objectives)} objectives and "
                f"{len(self.weights)} weights for the {len(self.widths)} widths {list(self.widths)}."
            )
        kinds = {objective.examples for objective in objectives}
        if len(kinds) > 1:
            raise InputError(f"The objectives of a Matryoshka must require the same examples, got {sorted(kinds)}.")
        self.examples: str = kinds.pop()
        self.objectives = nn.ModuleList(objectives)

    def forward(self, **arguments: Tensor | None) -> Tensor:
        """The weighted sum. Takes the arguments of its objectives by name.

        Arguments named after a role are vectors, ``(..., width)``, and are shortened. All others (a label, a score,
        the teacher's vectors, ``is_copy``) are passed on unchanged.
        """
        roles = find_kind(self.examples).text_roles
        vectors = {name: each for name, each in arguments.items() if name in roles and each is not None}
        narrowest = min(each.shape[-1] for each in vectors.values())
        if max(self.widths) > narrowest:
            raise InputError(f"Vectors of width {narrowest} cannot be shortened to the width {max(self.widths)}.")
        loss = 0.0
        for objective, width, weight in zip(self.objectives, self.widths, self.weights, strict=True):
            cut = {role: each[..., :width] for role, each in vectors.items()}
            loss = loss + weight * objective(**{**arguments, **cut})
        return loss


def check_widths(widths: Sequence[int]) -> tuple[int, ...]:
    """Return the widths as a tuple, or raise an error if there are none or if one repeats."""
    checked = tuple(whole("A matryoshka width", width, least=1) for width in widths)
    if not checked or len(set(checked)) < len(checked):
        raise InputError(f"Matryoshka needs one or more different widths, got {list(widths)}.")
    return checked


def compare(
    objective: nn.Module,
    vectors: Mapping[str, Tensor],
    *,
    target: Tensor | None = None,
    ids: Mapping[str, Tensor] | None = None,
) -> Tensor:
    """The loss of one batch, a scalar. Disables autocast, and converts half precision to float32.

    Args:
        objective: Any of ``OBJECTIVES``, or a ``Matryoshka`` of one.
        vectors: By role; ``(n, width)``, but ``(n, k, width)`` for the ``negative`` of ranked examples.
        target: ``(n,)`` labels or scores, or the teachers' ``(n, sum of widths)``, if the examples have one.
        ids: By role, ``(n,)`` or ``(n, k)``: equal ids mean equal texts. With ids, ranking leaves out candidates that
            are correct answers (see ``copies``); without ids, it treats all texts as different.
    """
    kind = find_kind(objective.examples)
    check_batch(kind, vectors, has_target=target is not None)
    arguments = {role: _at_least_float32(each) for role, each in vectors.items()}
    one, name = arguments[kind.texts[0]], batch_target(kind)
    if name is not None and target is not None:
        arguments[name] = target.to(one.dtype) if target.is_floating_point() else target
    if kind.name == "ranked" and ids:
        arguments["is_copy"] = _copies(kind, vectors, ids).to(one.device)
    with torch.autocast(one.device.type, enabled=False):
        return objective(**arguments)


def _at_least_float32(values: Tensor) -> Tensor:
    return values.float() if values.dtype in (torch.float16, torch.bfloat16) else values


def _copies(kind: Kind, vectors: Mapping[str, Tensor], ids: Mapping[str, Tensor]) -> Tensor:
    missing = [role for role in vectors if role not in ids]
    if missing:
        raise InputError(f"A batch of {kind.name} has ids for {sorted(ids)}, but not for {missing}.")
    return copies(*(ids[role] for role in kind.text_roles if role in vectors))
