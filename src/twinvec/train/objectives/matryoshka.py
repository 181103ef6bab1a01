"""Matryoshka: vectors whose first values alone are already good vectors.

Kusupati et al. (2022, arXiv 2205.13147), section 3.
"""

from __future__ import annotations

from collections.abc import Sequence

from torch import Tensor, nn

from twinvec.errors import InputError
from twinvec.train.objectives.checks import above_zero, whole
from twinvec.train.objectives.examples import EXAMPLE_KINDS

__all__ = ["Matryoshka"]


class Matryoshka(nn.Module):  # type: ignore[misc]
    """``sum of weight_i * objective_i``, where objective ``i`` sees the first ``widths[i]`` values of each vector.

    Each width has an objective of its own, so those with parameters learn them for each width. The shortened vectors
    are not scaled to length 1 again: an objective that looks at lengths sees what a user of that width gets.
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
            raise InputError(f"The objectives of a Matryoshka must read the same examples, got {sorted(kinds)}.")
        self.examples: str = kinds.pop()
        self.objectives = nn.ModuleList(objectives)

    def forward(self, **arguments: Tensor | None) -> Tensor:
        """The weighted sum. Takes what its objectives take, but by name, because the names tell what is a vector.

        Vectors, ``(..., width)``, are the arguments that have a role in the examples; all else (a label, a score, the
        teacher's vectors, ``is_copy``) is passed on as it is.
        """
        roles = EXAMPLE_KINDS[self.examples].roles
        vectors = {name: each for name, each in arguments.items() if name in roles and each is not None}
        narrowest = min(each.shape[-1] for each in vectors.values())
        if max(self.widths) > narrowest:
            raise InputError(f"Vectors of width {narrowest} cannot be cut to the width {max(self.widths)}.")
        loss = 0.0
        for objective, width, weight in zip(self.objectives, self.widths, self.weights, strict=True):
            cut = {role: each[..., :width] for role, each in vectors.items()}
            loss = loss + weight * objective(**{**arguments, **cut})
        return loss


def check_widths(widths: Sequence[int]) -> tuple[int, ...]:
    """The widths, in their order; at least one, and none twice."""
    checked = tuple(whole("A matryoshka width", width, least=1) for width in widths)
    if not checked or len(set(checked)) < len(checked):
        raise InputError(f"Matryoshka needs one or more widths, each once, got {list(widths)}.")
    return checked
