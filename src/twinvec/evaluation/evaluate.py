"""Evaluate a system on tasks chosen by name, and compare two systems on the same tasks."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from twinvec.choices import DEFAULT_MODEL, TASK_GROUPS, Aggregation, ClassifierName, Correlation, Similarity
from twinvec.embedder import TEXTS_PER_CALL, CachedEmbedder, Embedder, as_embedder
from twinvec.errors import InputError, UnknownNameError
from twinvec.evaluation.compare import Compared, compare_evaluations
from twinvec.evaluation.result_file import Evaluation, Result, now, read_evaluation, score, used_versions
from twinvec.evaluation.statistics import Outcome
from twinvec.evaluation.systems import CommandEmbedder, System, open_system
from twinvec.evaluation.tasks.argument import ArgumentTask, run_argument
from twinvec.evaluation.tasks.clustering import ClusteringTask, run_clustering
from twinvec.evaluation.tasks.common import Embed, embed_once
from twinvec.evaluation.tasks.data_sets import KNOWN, Task
from twinvec.evaluation.tasks.pairs import PairTask, pair_outcomes, run_pairs
from twinvec.evaluation.tasks.paraphrases import BitextTask, ParaphraseTask, run_bitext, run_paraphrases
from twinvec.evaluation.tasks.retrieval import RetrievalTask, run_retrieval
from twinvec.evaluation.tasks.sts import RelatednessTask, StsTask, run_relatedness, run_sts, sts_outcomes
from twinvec.evaluation.tasks.transfer import TransferTask, run_transfer
from twinvec.evaluation.tasks.triplets import TripletTask, run_triplets, triplet_outcome
from twinvec.model.identity import DECIDING
from twinvec.pairs.cross_encoder import ScorerLike, as_scorer
from twinvec.scorer import Scorer, checked_scores, is_scorer
from twinvec.types import Array
from twinvec.vector_store import cache_folder

__all__ = [
    "SuiteSettings",
    "TaskRun",
    "compare",
    "evaluate",
    "load_tasks",
    "run_scorer",
    "run_suite",
    "run_task",
    "task_names",
]

DATA_VARIABLE = "TWINVEC_DATA"


@dataclass(frozen=True, slots=True)
class SuiteSettings:
    """Options that the protocols leave open; each result's protocol names the choices.

    Args:
        correlation: correlation for STS.
        similarity: similarity of two vectors for STS.
        subsets: for STS, all pairs together (SBERT, MTEB) or a mean of the subsets' correlations (SentEval).
        classifier: for transfer and probing, logistic regression (SBERT) or a small network (SBERT-WK).
        seed: seed of folds and random starts.
    """

    correlation: Correlation = "spearman"
    similarity: Similarity = "cosine"
    subsets: Aggregation = "all"
    classifier: ClassifierName = "logreg"
    seed: int = 0


DEFAULT_SETTINGS = SuiteSettings()


@dataclass(frozen=True, slots=True, eq=False)
class TaskRun:
    """The results of one task, and the seconds it took after the STS texts were embedded."""

    name: str
    results: tuple[Result, ...]
    seconds: float


def evaluate(
    system: System = DEFAULT_MODEL,
    tasks: str | Iterable[str] = "sts",
    data: str | os.PathLike[str] | None = None,
    *,
    settings: SuiteSettings = DEFAULT_SETTINGS,
    rerank: ScorerLike | None = None,
    cache: bool | str | os.PathLike[str] | None = True,
    watch: Callable[[TaskRun], None] | None = None,
) -> Evaluation:
    r"""Evaluate a system on tasks; each score has its protocol and a confidence interval.

    Each distinct text is embedded once, and cached for the next evaluation.

    Args:
        system: the name or folder of a model, an encoder, any :class:`~twinvec.embedder.Embedder`, the address of a
            server (``https://host/v1#model-name``), or a :class:`SystemChoice` (a program, a file of vectors). A
            cross-encoder or another :class:`~twinvec.scorer.Scorer` works for STS, pairs, triplets and retrieval.
        tasks: names of tasks or groups, such as "sts" or "stsb,mr" or a list of names.
        data: the folder of the data sets; by default the environment variable TWINVEC_DATA.
        settings: options that the protocols leave open.
        rerank: a scorer that ranks the first 100 documents of every query again, in retrieval tasks.
        cache: the folder of cached vectors; True for the default folder, None for no cache.
        watch: called with each task when it is finished.

    >>> import tempfile
    >>> pairs = ["5\ta cat\ta kitten", "3\ta cat\ta dog", "1\ta cat\ta car", "0\ta cat\tan idea"]
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     Path(folder, "sts").mkdir()
    ...     table = Path(folder, "sts", "sts12.tsv")
    ...     _ = table.write_text("\n".join(["subset\tscore\ttext1\ttext2", *("toy\t" + pair for pair in pairs)]))
    ...     evaluation = evaluate("twinvec-mini", "sts12", folder, cache=None)
    >>> result = evaluation.results[0]
    >>> result.task, result.n, result.protocol
    ('sts12', 4, 'Spearman of cosine x 100, all pairs together')
    """
    names = task_names(tasks)
    folder = data or os.environ.get(DATA_VARIABLE)
    if not folder:
        raise InputError("No data folder was given.", hint=f"Pass data or --data, or set {DATA_VARIABLE}.")
    loaded = load_tasks(names, Path(folder))
    opened = open_system(system)
    scorer = None if rerank is None else as_scorer(rerank)
    if is_scorer(opened):
        if scorer is not None:
            raise InputError(f"{opened.name} is a scorer, so there is nothing to re-rank.", hint="Remove rerank.")
        first = as_embedder(DEFAULT_MODEL)
        started = run_scorer(loaded, opened, _cached(first, cache).embed, settings)
    else:
        embedder = cast(Embedder, opened)
        started = run_suite(loaded, _cached(embedder, cache).embed, settings, rerank=scorer)
    runs = []
    for run in started:
        runs.append(run)
        if watch is not None:
            watch(run)
    return evaluation_of(opened, runs, scorer)


def _cached(embedder: Embedder, cache: bool | str | os.PathLike[str] | None) -> CachedEmbedder:
    folder = cache_folder() if cache is True else Path(cache) if cache else None
    at_once = None if isinstance(embedder, CommandEmbedder) else TEXTS_PER_CALL  # one call starts the command once
    return CachedEmbedder(embedder, folder, at_once=at_once)


def compare(
    first: System | Evaluation,
    second: System | Evaluation,
    tasks: str | Iterable[str] = "sts",
    data: str | os.PathLike[str] | None = None,
    *,
    settings: SuiteSettings = DEFAULT_SETTINGS,
    rerank: ScorerLike | None = None,
    cache: bool | str | os.PathLike[str] | None = True,
    watch: Callable[[TaskRun], None] | None = None,
) -> Compared:
    r"""Compare two systems item by item, on every task that both have.

    Each side is an :class:`Evaluation`, the ``.json`` file of one, or a system, which is evaluated first; the other
    arguments are the same as in :func:`evaluate`. Each comparison has the difference, its confidence interval, and a
    sentence that says whether it is more than chance: paired tests, after Holm's correction for the number of tasks.

    >>> import tempfile
    >>> pairs = ["5\ta cat\ta kitten", "3\ta cat\ta dog", "1\ta cat\ta car", "0\ta cat\tan idea"]
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     Path(folder, "sts").mkdir()
    ...     table = Path(folder, "sts", "sts12.tsv")
    ...     _ = table.write_text("\n".join(["subset\tscore\ttext1\ttext2", *("toy\t" + pair for pair in pairs)]))
    ...     found = compare("twinvec-mini", "twinvec-mini", "sts12", folder, cache=None)
    >>> found.comparisons[0].difference
    0.0
    """

    def evaluated(side: System | Evaluation) -> Evaluation:
        if isinstance(side, Evaluation):
            return side
        if isinstance(side, (str, os.PathLike)) and os.fspath(side).endswith(".json"):
            return read_evaluation(Path(side))
        return evaluate(side, tasks, data, settings=settings, rerank=rerank, cache=cache, watch=watch)

    return compare_evaluations(evaluated(first), evaluated(second))


def task_names(wanted: str | Iterable[str]) -> list[str]:
    """Expand names of tasks and groups into task names, each once, in order.

    >>> task_names("stsb, sts")[:3]
    ['stsb', 'sts12', 'sts13']
    """
    listed = wanted.split(",") if isinstance(wanted, str) else wanted
    names: dict[str, None] = {}
    for name in filter(None, (each.strip().lower() for each in listed)):
        if name not in TASK_GROUPS and name not in KNOWN:
            raise UnknownNameError("task", name, {*TASK_GROUPS, *KNOWN})
        names.update(dict.fromkeys(TASK_GROUPS.get(name, (name,))))
    if not names:
        raise InputError("No task was given.", hint=f"Choose from: {', '.join(TASK_GROUPS)}.")
    return list(names)


def load_tasks(names: Iterable[str], folder: Path) -> dict[str, Task]:
    """Read the tasks from the data folder; raises errors in the data before anything is embedded."""
    if not folder.is_dir():
        raise InputError(
            f"There is no data folder {folder}.",
            hint=f"Download the data with: twinvec data get. Set another folder with --data or {DATA_VARIABLE}.",
        )
    return {name: KNOWN[name](folder) for name in names}


def run_suite(
    tasks: Mapping[str, Task],
    embed: Embed,
    settings: SuiteSettings = DEFAULT_SETTINGS,
    *,
    rerank: Scorer | None = None,
) -> Iterator[TaskRun]:
    """Run tasks and yield each when it is finished. The texts of all STS tasks are embedded first, in one call."""
    if rerank is not None and not any(isinstance(task, RetrievalTask) for task in tasks.values()):
        raise InputError("rerank requires a retrieval task.", hint="Add cranfield to the tasks, or remove rerank.")
    columns = [column for task in tasks.values() if isinstance(task, StsTask) for column in (task.left, task.right)]
    if columns:
        embed_once(embed, *columns)
    for name, task in tasks.items():
        started = time.perf_counter()
        if rerank is not None and isinstance(task, RetrievalTask):
            outcomes = run_retrieval(task, embed, rerank=rerank)
        else:
            outcomes = run_task(task, embed, settings)
        yield TaskRun(name, tuple(map(score, outcomes)), time.perf_counter() - started)


def run_scorer(
    tasks: Mapping[str, Task], scorer: Scorer, first: Embed, settings: SuiteSettings = DEFAULT_SETTINGS
) -> Iterator[TaskRun]:
    """Run tasks with a scorer of pairs and yield each when it is finished.

    In retrieval, it ranks the first documents by ``first``, the vectors of the default model, again.
    """
    for name, task in tasks.items():
        if not isinstance(task, (StsTask, PairTask, TripletTask, RetrievalTask)):
            raise InputError(
                f"The task {name} requires vectors, but {scorer.name} scores pairs.",
                hint="A scorer works for STS, pairs, triplets and retrieval.",
            )
    for name, task in tasks.items():
        started = time.perf_counter()
        results = tuple(map(score, _score_task(task, scorer, first, settings)))
        yield TaskRun(name, results, time.perf_counter() - started)


def _score_task(task: Task, scorer: Scorer, first: Embed, settings: SuiteSettings) -> list[Outcome]:
    def scores(left: Sequence[str], right: Sequence[str]) -> Array:
        return checked_scores(scorer.score(list(zip(left, right, strict=True))), len(left), source=scorer.name)

    if isinstance(task, StsTask):
        found, aggregation = scores(task.left, task.right), settings.subsets if task.subsets else "all"
        return sts_outcomes(task, found, of="score", statistic=settings.correlation, aggregation=aggregation)
    if isinstance(task, PairTask):
        return pair_outcomes(task, scores(task.left, task.right), of="score")
    if isinstance(task, TripletTask):
        near, far = scores(task.anchors, task.positives), scores(task.anchors, task.negatives)
        return [triplet_outcome(task, near, far, by="score")]
    assert isinstance(task, RetrievalTask)  # checked above
    return run_retrieval(task, first, rerank=scorer, first=f"cosine of {DEFAULT_MODEL}")


def run_task(task: Task, embed: Embed, settings: SuiteSettings = DEFAULT_SETTINGS) -> list[Outcome]:
    """Run a task of any kind and return its outcomes."""
    return RUNNERS[type(task)](task, embed, settings)


def _run_sts(task: StsTask, embed: Embed, settings: SuiteSettings) -> list[Outcome]:
    aggregation = settings.subsets if task.subsets else "all"
    return run_sts(task, embed, statistic=settings.correlation, similarity=settings.similarity, aggregation=aggregation)


RUNNERS: Mapping[type, Callable[[Any, Embed, SuiteSettings], list[Outcome]]] = {
    StsTask: _run_sts,
    TransferTask: lambda task, embed, each: run_transfer(task, embed, classifier=each.classifier, seed=each.seed),
    ArgumentTask: lambda task, embed, each: run_argument(task, embed, seed=each.seed),
    ClusteringTask: lambda task, embed, each: run_clustering(task, embed, seed=each.seed),
    PairTask: lambda task, embed, _: run_pairs(task, embed),
    TripletTask: lambda task, embed, _: run_triplets(task, embed),
    RelatednessTask: lambda task, embed, _: run_relatedness(task, embed),
    RetrievalTask: lambda task, embed, _: run_retrieval(task, embed),
    BitextTask: lambda task, embed, _: run_bitext(task, embed),
    ParaphraseTask: lambda task, embed, _: run_paraphrases(task, embed),
}


def evaluation_of(system: Embedder | Scorer, runs: Iterable[TaskRun], rerank: Scorer | None = None) -> Evaluation:
    """All results of a system, with the date, versions, precision and all non-default settings."""
    results = tuple(result for run in runs for result in run.results)
    own = getattr(system, "settings", {})
    found = own if isinstance(own, Mapping) else {"precision": getattr(own, "precision", None)}
    if rerank is not None:
        found = {**found, "rerank": rerank.identity}
    settings = {
        name: value
        for name, value in found.items()
        if name == "precision" or (value is not None and value != DECIDING.get(name))
    }
    return Evaluation(system.name, system.identity, now(), results, settings, used_versions())
