"""Evaluation tasks: a task is data, and a function ``(task, embed) -> outcomes`` runs it. Data sets have names."""

from twinvec.evaluation.tasks.argument import ArgumentTask, run_argument
from twinvec.evaluation.tasks.clustering import ClusteringTask, run_clustering
from twinvec.evaluation.tasks.common import Embed, embed_once
from twinvec.evaluation.tasks.data_sets import KNOWN, Task, load_task
from twinvec.evaluation.tasks.documents import read_documents
from twinvec.evaluation.tasks.pairs import PairTask, run_pairs
from twinvec.evaluation.tasks.paraphrases import BitextTask, ParaphraseTask, run_bitext, run_paraphrases
from twinvec.evaluation.tasks.probing import bigram_shift_task, read_probing, sentence_length_task, word_content_task
from twinvec.evaluation.tasks.retrieval import RetrievalTask, run_retrieval
from twinvec.evaluation.tasks.sts import RelatednessTask, StsTask, run_relatedness, run_sts
from twinvec.evaluation.tasks.transfer import TransferTask, run_transfer
from twinvec.evaluation.tasks.triplets import SectionRule, TripletTask, build_triplets, run_triplets

__all__ = [
    "KNOWN",
    "ArgumentTask",
    "BitextTask",
    "ClusteringTask",
    "Embed",
    "PairTask",
    "ParaphraseTask",
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
    "run_bitext",
    "run_clustering",
    "run_pairs",
    "run_paraphrases",
    "run_relatedness",
    "run_retrieval",
    "run_sts",
    "run_transfer",
    "run_triplets",
    "sentence_length_task",
    "word_content_task",
]
