"""Training objectives: each compares vectors, and none owns an encoder.

An objective is a small ``nn.Module``. Its attribute ``examples`` names the kind of examples it reads; the arguments of
``forward`` are named after the roles and the target of that kind, and it gives a scalar. ``compare`` calls any alike.
"""

from __future__ import annotations

from twinvec.training.objectives.matryoshka import Matryoshka, compare
from twinvec.training.objectives.pairs import (
    ContrastiveObjective,
    CosentObjective,
    CosineObjective,
    DistillationObjective,
    SoftmaxObjective,
    TripletObjective,
)
from twinvec.training.objectives.ranking import RankingObjective, copies
from twinvec.training.objectives.table import OBJECTIVES, ObjectiveKind, build_objective

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
