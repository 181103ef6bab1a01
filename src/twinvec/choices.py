"""What users may write: allowed words, the default model, and sizes in bytes.

There is no numpy here, so that ``--help`` stays fast.
"""

from __future__ import annotations

import re
from typing import Literal, get_args

from twinvec.errors import InputError

__all__ = [
    "AGGREGATIONS",
    "CANDIDATES",
    "CLASSIFIERS",
    "COMMAND_LINES",
    "CORRELATIONS",
    "DEFAULT_FEATURES",
    "DEFAULT_MODEL",
    "DEFAULT_SCORE_RANGE",
    "DEVICES",
    "DISTANCES",
    "EXAMPLE_KINDS",
    "FEATURES",
    "FORMATS",
    "KEEPS",
    "LINKAGES",
    "LONG_POLICIES",
    "MOST_ALL_PAIRS",
    "NLI_LABELS",
    "OUTPUT_TYPES",
    "PAIR_METHODS",
    "POOLINGS",
    "PRECISIONS",
    "PROJECTIONS",
    "READOUTS",
    "RUNTIMES",
    "SCORE_ACTIVATIONS",
    "SCORE_OBJECTIVES",
    "SEARCH_MODES",
    "SHARD_FORMATS",
    "SHIPPED",
    "SIMILARITY_NAMES",
    "SWEEP_PARTS",
    "TASK_GROUPS",
    "TRAIN_DEVICES",
    "TRAIN_PRECISIONS",
    "VECTOR_LOSSES",
    "Aggregation",
    "ClassifierName",
    "CommandLines",
    "Correlation",
    "Device",
    "Distance",
    "ExampleKind",
    "Feature",
    "Format",
    "Keep",
    "Linkage",
    "LongPolicy",
    "OutputType",
    "PairMethod",
    "Precision",
    "Projection",
    "Role",
    "RuntimeName",
    "ScoreActivation",
    "SearchMode",
    "ShardFormat",
    "Similarity",
    "StoredPrecision",
    "SweepPart",
    "TrainDevice",
    "TrainPrecision",
    "VectorLoss",
    "WKMode",
    "parse_size",
    "show_size",
]

DEFAULT_MODEL = "twinvec-mini"
SHIPPED = (DEFAULT_MODEL, "twinvec-static")  # the models inside the package
CANDIDATES = 100  # texts that a search hands to a scorer, and of each ranking that is fused
DEFAULT_SCORE_RANGE = (0.0, 5.0)  # lowest and highest score of a pair, as in the STS data sets

Precision = Literal["float32", "bfloat16", "int8"]
StoredPrecision = Literal["float32", "int8"]
OutputType = Literal["float32", "int8", "uint8", "binary", "ubinary"]
Similarity = Literal["cosine", "dot", "euclidean", "manhattan"]
LongPolicy = Literal["warn", "error", "cut", "chunk"]
RuntimeName = Literal["auto", "onnxruntime", "openvino", "torch"]
ScoreActivation = Literal["none", "sigmoid", "softmax"]  # what makes scores of a classifier's raw outputs
Device = Literal["cpu", "cuda"]
WKMode = Literal["paper", "reference"]
Role = Literal["text", "query", "document"]  # what a text is for, where a model has prompts for it
PairMethod = Literal["auto", "exact", "index"]  # compare all pairs of texts, or those that an index finds
Keep = Literal["first", "longest"]  # which of several duplicates
Linkage = Literal["average", "complete"]
Projection = Literal["auto", "pca", "umap"]
SearchMode = Literal["dense", "text", "hybrid"]
ShardFormat = Literal["parquet", "arrow"]
Correlation = Literal["spearman", "pearson"]
Aggregation = Literal["all", "mean", "weighted mean"]  # all items of a task together, or a mean over its subsets
ClassifierName = Literal["logreg", "mlp"]
CommandLines = Literal["json", "plain"]  # what a program that embeds reads on each line
SweepPart = Literal["poolings", "layers", "wk", "whitening"]  # what a sweep tries
Format = Literal["lines", "csv", "tsv", "jsonl", "parquet"]  # of tables
ExampleKind = Literal["labelled_pairs", "scored_pairs", "marked_pairs", "triplets", "ranked", "texts"]
TrainPrecision = Literal["float32", "bfloat16"]
TrainDevice = Literal["auto", "cpu", "cuda"]
Distance = Literal["cosine", "euclidean", "manhattan"]
Feature = Literal["u", "v", "|u-v|", "u*v"]  # of two vectors, for a classifier
VectorLoss = Literal["cosine", "mse"]  # how far a vector is from a teacher's

PRECISIONS: tuple[str, ...] = get_args(Precision)
OUTPUT_TYPES: tuple[str, ...] = get_args(OutputType)
SIMILARITY_NAMES: tuple[str, ...] = get_args(Similarity)
LONG_POLICIES: tuple[str, ...] = get_args(LongPolicy)
RUNTIMES: tuple[str, ...] = get_args(RuntimeName)
SCORE_ACTIVATIONS: tuple[str, ...] = get_args(ScoreActivation)
DEVICES: tuple[str, ...] = get_args(Device)
PAIR_METHODS: tuple[str, ...] = get_args(PairMethod)
KEEPS: tuple[str, ...] = get_args(Keep)
LINKAGES: tuple[str, ...] = get_args(Linkage)
PROJECTIONS: tuple[str, ...] = get_args(Projection)
SEARCH_MODES: tuple[str, ...] = get_args(SearchMode)
SHARD_FORMATS: tuple[str, ...] = get_args(ShardFormat)

MOST_ALL_PAIRS = 200_000  # texts; comparing all pairs of that many takes a minute
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
    "korean": ("korsts", "klue-sts"),
}
FORMATS: tuple[str, ...] = get_args(Format)
POOLINGS = ("cls", "max", "mean", "mean_sqrt_len_tokens", "weightedmean", "lasttoken")
READOUTS = (*POOLINGS, "wk")
# Training and its data. `twinvec.data.roles` says which columns a kind of examples has.
EXAMPLE_KINDS: tuple[ExampleKind, ...] = get_args(ExampleKind)
TRAIN_PRECISIONS: tuple[str, ...] = get_args(TrainPrecision)
TRAIN_DEVICES: tuple[str, ...] = get_args(TrainDevice)
DISTANCES: tuple[Distance, ...] = get_args(Distance)
FEATURES: tuple[Feature, ...] = get_args(Feature)
DEFAULT_FEATURES = FEATURES[:3]
SCORE_OBJECTIVES = ("cosine", "cosent")  # those that read scored pairs
VECTOR_LOSSES: tuple[VectorLoss, ...] = get_args(VectorLoss)
NLI_LABELS = ("contradiction", "entailment", "neutral")

UNITS = {"": 1, "k": 10**3, "m": 10**6, "g": 10**9, "t": 10**12, "ki": 2**10, "mi": 2**20, "gi": 2**30, "ti": 2**40}
LEAST_THREE_DIGITS = 999.5  # from here on, three digits round to a thousand


def parse_size(text: str) -> int:
    """A size in bytes, from a number with a unit.

    >>> parse_size("4GB"), parse_size("512 MiB"), parse_size("1.5g")
    (4000000000, 536870912, 1500000000)
    """
    match = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([kmgt]?i?)b?\s*", text.lower())
    if not match or match[2] not in UNITS:
        raise InputError(f"Invalid size {text!r}.", hint="Write it like 4GB or 512MiB.")
    return int(float(match[1]) * UNITS[match[2]])


def show_size(n_bytes: int) -> str:
    """A size for people.

    >>> show_size(1234), show_size(5_600_000_000), show_size(999_900)
    ('1.23 kB', '5.6 GB', '1 MB')
    """
    value, unit = float(n_bytes), "B"
    for larger in ("kB", "MB", "GB", "TB"):
        if value >= LEAST_THREE_DIGITS:
            value, unit = value / 1000, larger
    return f"{value:.3g} {unit}"
