"""Training objectives: each compares vectors, and none owns an encoder.

An objective is a small ``nn.Module``. Its attribute ``examples`` names the kind of examples it reads; the arguments of
``forward`` are named after the roles and the target of that kind, and it gives a scalar. ``compare`` calls any alike.
"""

from __future__ import annotations

from twinvec.train.objectives.comparing import compare
from twinvec.train.objectives.contrastive import ContrastiveObjective
from twinvec.train.objectives.cosent import CosentObjective
from twinvec.train.objectives.cosine import CosineObjective
from twinvec.train.objectives.distillation import DistillationObjective
from twinvec.train.objectives.examples import EXAMPLE_KINDS, ExampleKind
from twinvec.train.objectives.matryoshka import Matryoshka
from twinvec.train.objectives.ranking import RankingObjective, copies
from twinvec.train.objectives.softmax import FEATURES, SoftmaxObjective
from twinvec.train.objectives.table import OBJECTIVES, ObjectiveKind, build_objective
from twinvec.train.objectives.triplet import TripletObjective

__all__ = [
    "EXAMPLE_KINDS",
    "FEATURES",
    "OBJECTIVES",
    "ContrastiveObjective",
    "CosentObjective",
    "CosineObjective",
    "DistillationObjective",
    "ExampleKind",
    "Matryoshka",
    "ObjectiveKind",
    "RankingObjective",
    "SoftmaxObjective",
    "TripletObjective",
    "build_objective",
    "compare",
    "copies",
]
