"""Training objectives: each compares vectors, and none owns an encoder.

An objective is a small ``nn.Module``. Its attribute ``examples`` names the kind of examples it reads; the arguments of
``forward`` are named after the roles and the target of that kind, and it gives a scalar. ``compare`` calls any alike.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from torch import nn

from twinvec.choices import DEFAULT_FEATURES
from twinvec.errors import InputError, UnknownNameError
from twinvec.training.objectives.matryoshka import Matryoshka, check_widths, compare
from twinvec.training.objectives.pairs import (
    ContrastiveObjective,
    CosentObjective,
    CosineObjective,
    DistillationObjective,
    SoftmaxObjective,
    TripletObjective,
)
from twinvec.training.objectives.ranking import RankingObjective, copies

__all__ = [
    "OBJECTIVES",
    "ContrastiveObjective",
    "CosentObjective",
    "CosineObjective",
    "DistillationObjective",
    "Matryoshka",
    "ObjectiveKind",
    "RankingObjective",
    "SoftmaxObjective",
    "TripletObjective",
    "build_objective",
    "compare",
    "copies",
]


@dataclass(frozen=True, slots=True)
class ObjectiveKind:
    """An objective that can be chosen by name.

    ``objective`` is built from the ``sizes`` (of the model, the data or the teacher) and from the ``options``, which
    stand here with their defaults; its constructor checks them all.
    """

    name: str
    objective: type[nn.Module]
    sizes: tuple[str, ...] = ()
    options: Mapping[str, object] = field(default_factory=dict)

    @property
    def examples(self) -> str:
        """The kind of examples it reads: a key of ``twinvec.data.roles.KINDS``."""
        return str(self.objective.examples)

    def build(self, sizes: Mapping[str, Any], options: Mapping[str, object]) -> nn.Module:
        """Build it, with the sizes that it needs of those given, and its defaults for the options that are not."""
        for option in options:
            if not self.options:
                raise InputError(f"The objective {self.name!r} has no options, got {option!r}.")
            if option not in self.options:
                raise UnknownNameError(f"option of the objective {self.name!r}:", option, self.options)
        return self.objective(**{size: sizes[size] for size in self.sizes}, **{**self.options, **options})


OBJECTIVES: dict[str, ObjectiveKind] = {
    kind.name: kind
    for kind in (
        ObjectiveKind("softmax", SoftmaxObjective, sizes=("width", "n_labels"), options={"features": DEFAULT_FEATURES}),
        ObjectiveKind("cosine", CosineObjective),
        ObjectiveKind("triplet", TripletObjective, options={"margin": 1.0, "distance": "euclidean"}),
        ObjectiveKind("ranking", RankingObjective, options={"scale": 20.0, "symmetric": False}),
        ObjectiveKind("cosent", CosentObjective, options={"scale": 20.0}),
        ObjectiveKind("contrastive", ContrastiveObjective, options={"margin": 0.5, "distance": "cosine"}),
        ObjectiveKind(
            "distillation",
            DistillationObjective,
            sizes=("width", "teacher_widths"),
            options={"loss": "mse", "similarity_weight": 0.0},
        ),
    )
}


def build_objective(
    name: str,
    *,
    width: int,
    options: Mapping[str, object],
    n_labels: int = 0,
    teacher_widths: Sequence[int] = (),
    matryoshka: Sequence[int] = (),
) -> nn.Module:
    """Build an objective for vectors of ``width``.

    ``n_labels`` matters to ``softmax`` only, ``teacher_widths`` to ``distillation`` only. ``matryoshka`` lists shorter
    widths at which the vectors should be good too; the full width is always trained, listed or not, and all count
    alike. Parameters start from torch's random generator, those of the widest objective first.
    """
    if name not in OBJECTIVES:
        raise UnknownNameError("objective", name, OBJECTIVES)
    kind = OBJECTIVES[name]
    sizes = {"width": width, "n_labels": n_labels, "teacher_widths": teacher_widths}
    if not matryoshka:
        return kind.build(sizes, options)
    if max(check_widths(matryoshka)) > width:
        raise InputError(
            f"The matryoshka width {max(matryoshka)} is more than the {width} of the model's vectors.",
            hint=f"Choose widths below {width}.",
        )
    widths = sorted({*matryoshka, width}, reverse=True)
    return Matryoshka([kind.build({**sizes, "width": each}, options) for each in widths], widths)
