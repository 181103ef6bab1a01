"""Tasks are data, running one is a function ``(task, embed) -> outcomes``; the known data sets are read by name."""

from twinvec.evaluate.tasks.argument import ArgumentTask, run_argument
from twinvec.evaluate.tasks.clustering import ClusteringTask, run_clustering
from twinvec.evaluate.tasks.data_sets import KNOWN, Task, load_task
from twinvec.evaluate.tasks.embed import Embed, embed_once
from twinvec.evaluate.tasks.pairs import PairTask, run_pairs
from twinvec.evaluate.tasks.probing import bigram_shift_task, read_probing, sentence_length_task, word_content_task
from twinvec.evaluate.tasks.readers import read_documents
from twinvec.evaluate.tasks.relatedness import RelatednessTask, run_relatedness
from twinvec.evaluate.tasks.retrieval import RetrievalTask, run_retrieval
from twinvec.evaluate.tasks.running import run_task
from twinvec.evaluate.tasks.sections import SectionRule, build_triplets
from twinvec.evaluate.tasks.sts import StsTask, run_sts
from twinvec.evaluate.tasks.transfer import TransferTask, run_transfer
from twinvec.evaluate.tasks.triplets import TripletTask, run_triplets

__all__ = [
    "KNOWN",
    "ArgumentTask",
    "ClusteringTask",
    "Embed",
    "PairTask",
    "RelatednessTask",
    "RetrievalTask",
    "SectionRule",
    "StsTask",
    "Task",
    "TransferTask",
    "TripletTask",
    "bigram_shift_task",
    "build_triplets",
    "embed_once",
    "load_task",
    "read_documents",
    "read_probing",
    "run_argument",
    "run_clustering",
    "run_pairs",
    "run_relatedness",
    "run_retrieval",
    "run_sts",
    "run_task",
    "run_transfer",
    "run_triplets",
    "sentence_length_task",
    "word_content_task",
]
