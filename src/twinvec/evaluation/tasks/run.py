"""Any task, run under its usual protocol."""

from __future__ import annotations

from collections.abc import Callable

from twinvec.evaluation.statistics import Outcome
from twinvec.evaluation.tasks.argument import ArgumentTask, run_argument
from twinvec.evaluation.tasks.clustering import ClusteringTask, run_clustering
from twinvec.evaluation.tasks.common import Embed
from twinvec.evaluation.tasks.data_sets import Task
from twinvec.evaluation.tasks.pairs import PairTask, run_pairs
from twinvec.evaluation.tasks.relatedness import RelatednessTask, run_relatedness
from twinvec.evaluation.tasks.retrieval import RetrievalTask, run_retrieval
from twinvec.evaluation.tasks.sts import StsTask, run_sts
from twinvec.evaluation.tasks.transfer import TransferTask, run_transfer
from twinvec.evaluation.tasks.triplets import TripletTask, run_triplets

__all__ = ["RUNNERS", "SEEDED", "run_task"]

RUNNERS: dict[type, Callable[..., list[Outcome]]] = {
    StsTask: run_sts,
    PairTask: run_pairs,
    TripletTask: run_triplets,
    TransferTask: run_transfer,
    RelatednessTask: run_relatedness,
    ArgumentTask: run_argument,
    RetrievalTask: run_retrieval,
    ClusteringTask: run_clustering,
}
SEEDED = (TransferTask, ArgumentTask, ClusteringTask)  # their runners draw folds or starts


def run_task(task: Task, embed: Embed, *, seed: int = 0) -> list[Outcome]:
    """The outcomes of a task, with the defaults of its own run function; call that one for other choices."""
    run = RUNNERS[type(task)]
    return run(task, embed, seed=seed) if isinstance(task, SEEDED) else run(task, embed)
