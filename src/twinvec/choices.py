"""Allowed values of options, the default model, and sizes in bytes. Does not import numpy, so ``--help`` is fast."""

from __future__ import annotations

import re
from typing import Literal, get_args

from twinvec.errors import InputError

DEFAULT_MODEL = "twinvec-mini"
KOREAN_MODEL = "twinvec-ko"
SHIPPED = (DEFAULT_MODEL, "twinvec-static", KOREAN_MODEL)  # models that ship with the package
# Models to use for a script that a model has no words for; the default is for all others.
MULTILINGUAL_MODEL = "paraphrase-multilingual-MiniLM-L12-v2"
MODEL_BY_SCRIPT = {"Hangul": KOREAN_MODEL}
CANDIDATES = 100  # texts of each ranking that are fused or given to a scorer
DEFAULT_SCORE_RANGE = (0.0, 5.0)  # of pairs, as in the STS data sets

Precision = Literal["float32", "bfloat16", "int8"]
StoredPrecision = Literal["float32", "int8"]
OutputType = Literal["float32", "int8", "uint8", "binary", "ubinary"]
Similarity = Literal["cosine", "dot", "euclidean", "manhattan"]
LongPolicy = Literal["warn", "error", "cut", "chunk"]
UnknownPolicy = Literal["warn", "error", "ignore"]  # for texts in a script that the model has no words for
RuntimeName = Literal["auto", "onnxruntime", "openvino", "torch"]
ScoreActivation = Literal["none", "sigmoid", "softmax"]  # turns a cross-encoder's logits into scores
Device = Literal["cpu", "cuda"]
WKMode = Literal["paper", "reference"]
Role = Literal["text", "query", "document"]  # selects the model's prompt for a text, if it has one
PairMethod = Literal["auto", "exact", "index"]  # compare all pairs of texts, or only those an index finds
Keep = Literal["first", "longest"]  # which duplicate to keep
Linkage = Literal["average", "complete"]
Projection = Literal["auto", "pca", "umap"]
SearchMode = Literal["dense", "text", "hybrid"]
ShardFormat = Literal["parquet", "arrow"]
Correlation = Literal["spearman", "pearson"]
Aggregation = Literal["all", "mean", "weighted mean"]  # score all items together, or average over subsets
ClassifierName = Literal["logreg", "mlp"]
CommandLines = Literal["json", "plain"]  # input lines of an external embedding program
SweepPart = Literal["poolings", "layers", "wk", "whitening"]  # what a sweep varies
Format = Literal["lines", "csv", "tsv", "jsonl", "parquet"]  # of tables
ExampleKind = Literal[
    "labelled_pairs", "scored_pairs", "marked_pairs", "scored_triplets", "triplets", "ranked", "texts"
]
LexicalKind = Literal["tfidf", "bm25"]
LEXICAL_KINDS: tuple[LexicalKind, ...] = get_args(LexicalKind)
SCORER_KINDS = ("bm25",)  # folders of baselines that score pairs
NetworkKind = Literal["bi-encoder", "cross-encoder", "poly-encoder", "infersent", "dan"]  # what to train
TrainPrecision = Literal["float32", "bfloat16"]
TrainDevice = Literal["auto", "cpu", "cuda"]
Distance = Literal["cosine", "euclidean", "manhattan"]
Feature = Literal["u", "v", "|u-v|", "u*v"]  # of a pair of vectors (u, v), for a classifier
VectorLoss = Literal["cosine", "mse", "none"]  # distance to the teacher's vector; none: compare similarities only
TeacherSpace = Literal["own", "principal"]  # a teacher's vectors as they are, or centered and on their principal axes

PRECISIONS: tuple[str, ...] = get_args(Precision)
OUTPUT_TYPES: tuple[str, ...] = get_args(OutputType)
SIMILARITY_NAMES: tuple[str, ...] = get_args(Similarity)
LONG_POLICIES: tuple[str, ...] = get_args(LongPolicy)
UNKNOWN_POLICIES: tuple[str, ...] = get_args(UnknownPolicy)
RUNTIMES: tuple[str, ...] = get_args(RuntimeName)
SCORE_ACTIVATIONS: tuple[str, ...] = get_args(ScoreActivation)
DEVICES: tuple[str, ...] = get_args(Device)
PAIR_METHODS: tuple[str, ...] = get_args(PairMethod)
KEEPS: tuple[str, ...] = get_args(Keep)
LINKAGES: tuple[str, ...] = get_args(Linkage)
PROJECTIONS: tuple[str, ...] = get_args(Projection)
SEARCH_MODES: tuple[str, ...] = get_args(SearchMode)
SHARD_FORMATS: tuple[str, ...] = get_args(ShardFormat)

MOST_ALL_PAIRS = 200_000  # texts; comparing all their pairs takes a minute
CORRELATIONS: tuple[str, ...] = get_args(Correlation)
AGGREGATIONS: tuple[str, ...] = get_args(Aggregation)
CLASSIFIERS: tuple[str, ...] = get_args(ClassifierName)
COMMAND_LINES: tuple[str, ...] = get_args(CommandLines)
SWEEP_PARTS: tuple[str, ...] = get_args(SweepPart)
TASK_GROUPS: dict[str, tuple[str, ...]] = {
    "sts": ("sts12", "sts13", "sts14", "sts15", "sts16", "stsb", "sick-r"),
    "transfer": ("mr", "cr", "subj", "mpqa", "sst2", "trec", "mrpc"),
    "relatedness": ("stsb-trained", "sick-r-trained", "sick-e"),
    "probing": ("sentence-length", "word-content", "bigram-shift"),
    "pairs": ("mrpc-pairs",),
    "argument": ("argument",),
    "retrieval": ("cranfield",),
    "clustering": ("trec-clusters",),
    "triplets": ("sections",),
    "korean": ("korsts", "klue-sts", "korsts-cross", "tatoeba-ko", "parakqc"),
}
FORMATS: tuple[str, ...] = get_args(Format)
POOLINGS = ("cls", "max", "mean", "mean_sqrt_len_tokens", "weightedmean", "lasttoken")
READOUTS = (*POOLINGS, "wk")
# Training and its data. `twinvec.data.roles` lists the columns of each kind of example.
EXAMPLE_KINDS: tuple[ExampleKind, ...] = get_args(ExampleKind)
NETWORK_KINDS: tuple[NetworkKind, ...] = get_args(NetworkKind)
TRAIN_PRECISIONS: tuple[str, ...] = get_args(TrainPrecision)
TRAIN_DEVICES: tuple[str, ...] = get_args(TrainDevice)
DISTANCES: tuple[Distance, ...] = get_args(Distance)
FEATURES: tuple[Feature, ...] = get_args(Feature)
DEFAULT_FEATURES = FEATURES[:3]
SCORE_OBJECTIVES = ("cosine", "cosent")  # objectives for scored pairs
PAIR_SCORE_OBJECTIVES = ("bce", "mse")  # those of cross-encoders
VECTOR_LOSSES: tuple[VectorLoss, ...] = get_args(VectorLoss)
NLI_LABELS = ("contradiction", "entailment", "neutral")

UNITS = {"": 1, "k": 10**3, "m": 10**6, "g": 10**9, "t": 10**12, "ki": 2**10, "mi": 2**20, "gi": 2**30, "ti": 2**40}
NEXT_UNIT = 999.5  # rounds to 1000 with three digits


def parse_size(text: str) -> int:
    """Parse a size with a unit, such as 4GB, into bytes.

    >>> parse_size("4GB"), parse_size("512 MiB"), parse_size("1.5g")
    (4000000000, 536870912, 1500000000)
    """
    match = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([kmgt]?i?)b?\s*", text.lower())
    if not match or match[2] not in UNITS:
        raise InputError(f"Invalid size {text!r}.", hint="Write it like 4GB or 512MiB.")
    return int(float(match[1]) * UNITS[match[2]])


def show_size(n_bytes: int) -> str:
    """Format a size in bytes with three digits and a unit.

    >>> show_size(1234), show_size(5_600_000_000), show_size(999_900)
    ('1.23 kB', '5.6 GB', '1 MB')
    """
    value, unit = float(n_bytes), "B"
    for larger in ("kB", "MB", "GB", "TB"):
        if value >= NEXT_UNIT:
            value, unit = value / 1000, larger
    return f"{value:.3g} {unit}"
