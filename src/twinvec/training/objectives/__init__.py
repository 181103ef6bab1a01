"""Training objectives, which compare vectors or logits and do not own an encoder.

An objective is a small ``nn.Module``. Its attribute ``examples`` names the kind of examples it requires. If it
compares vectors, the arguments of ``forward`` are the roles and the target of that kind, and ``compare`` calls it.
Objectives over the logits of pairs are in ``scores``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from torch import nn

from twinvec.choices import DEFAULT_FEATURES, NetworkKind
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
from twinvec.training.objectives.ranking import PolyRankingObjective, RankingObjective, copies
from twinvec.training.objectives.scores import (
    BceObjective,
    LabelObjective,
    MarginObjective,
    MseObjective,
    RankedScoresObjective,
)

__all__ = [
    "NETWORK_OBJECTIVES",
    "OBJECTIVES",
    "PAIR_OBJECTIVES",
    "BceObjective",
    "ContrastiveObjective",
    "CosentObjective",
    "CosineObjective",
    "DistillationObjective",
    "LabelObjective",
    "MarginObjective",
    "Matryoshka",
    "MseObjective",
    "ObjectiveKind",
    "PolyRankingObjective",
    "RankedScoresObjective",
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

    The constructor of ``objective`` takes and checks the ``sizes`` (of the model, the data or the teacher) and the
    ``options``, listed here with their defaults. ``taught`` are the kinds of its examples that require teachers.
    """

    name: str
    objective: type[nn.Module]
    sizes: tuple[str, ...] = ()
    options: Mapping[str, object] = field(default_factory=dict)
    also: tuple[str, ...] = ()
    taught: tuple[str, ...] = ()

    @property
    def examples(self) -> str:
        """The kind of examples it requires: a key of ``twinvec.data.roles.KINDS``. ``also`` has other possible ones."""
        return str(self.objective.examples)

    @property
    def kinds(self) -> tuple[str, ...]:
        """All kinds of examples it can learn from, the usual one first."""
        return (self.examples, *self.also)

    def build(self, sizes: Mapping[str, Any], options: Mapping[str, object]) -> nn.Module:
        """Build the objective from the sizes that it needs and the options, with defaults for missing options."""
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
        ObjectiveKind("cosine", CosineObjective, also=("texts",), taught=("texts",)),
        ObjectiveKind("triplet", TripletObjective, options={"margin": 1.0, "distance": "euclidean"}),
        ObjectiveKind("ranking", RankingObjective, options={"scale": 20.0, "symmetric": False}),
        ObjectiveKind("cosent", CosentObjective, options={"scale": 20.0}, also=("texts",), taught=("texts",)),
        ObjectiveKind("contrastive", ContrastiveObjective, options={"margin": 0.5, "distance": "cosine"}),
        ObjectiveKind(
            "distillation",
            DistillationObjective,
            sizes=("width", "teacher_widths"),
            options={
                "loss": "mse",
                "similarity_weight": 0.0,
                "floors": (),
                "focus": 0.0,
                "ranking_weight": 0.0,
                "scale": 20.0,
            },
            taught=("texts",),
        ),
    )
}
PAIR_OBJECTIVES: dict[str, ObjectiveKind] = {
    kind.name: kind
    for kind in (
        ObjectiveKind("bce", BceObjective, also=("marked_pairs",)),
        ObjectiveKind("mse", MseObjective),
        ObjectiveKind("softmax", LabelObjective),
        ObjectiveKind("ranking", RankedScoresObjective, options={"in_batch": 4}),
        ObjectiveKind("margin", MarginObjective, also=("triplets",), taught=("triplets",)),
    )
}
# Networks that make one vector per text have the same objectives.
NETWORK_OBJECTIVES: dict[NetworkKind, dict[str, ObjectiveKind]] = {
    "bi-encoder": OBJECTIVES,
    "poly-encoder": {
        "ranking": ObjectiveKind(
            "ranking",
            PolyRankingObjective,
            sizes=("width", "attention"),
            options={"scale": 20.0, "symmetric": False},
        )
    },
    "cross-encoder": PAIR_OBJECTIVES,
    "infersent": OBJECTIVES,
    "dan": OBJECTIVES,
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

    ``n_labels`` is only for ``softmax``, ``teacher_widths`` only for ``distillation``. ``matryoshka`` lists shorter
    widths to train too; the full width is always trained, and all widths have equal weight. Parameters are initialized
    from torch's random generator, those of the widest objective first.
    """
    if name not in OBJECTIVES:
        raise UnknownNameError("objective", name, OBJECTIVES)
    kind = OBJECTIVES[name]
    sizes = {"width": width, "n_labels": n_labels, "teacher_widths": teacher_widths}
    if not matryoshka:
        return kind.build(sizes, options)
    if max(check_widths(matryoshka)) > width:
        raise InputError(
            f"The matryoshka width {max(matryoshka)} exceeds the width {width} of the model's vectors.",
            hint=f"Choose widths below {width}.",
        )
    widths = sorted({*matryoshka, width}, reverse=True)
    return Matryoshka([kind.build({**sizes, "width": each}, options) for each in widths], widths)
