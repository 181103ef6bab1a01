"""Tasks by name or by group, run one after the other over one way to embed."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from types import MappingProxyType

from twinvec.choices import Similarity
from twinvec.embedder import Embedder
from twinvec.errors import InputError, UnknownNameError
from twinvec.evaluation.result_file import Evaluation, Result, judge, now, used_versions
from twinvec.evaluation.statistics import Aggregation, Outcome
from twinvec.evaluation.tasks.common import Embed
from twinvec.evaluation.tasks.data_sets import KNOWN, Task, read_data, run_task, text_in
from twinvec.evaluation.tasks.documents import READERS, read_documents
from twinvec.evaluation.tasks.probing import bigram_shift_task, sentence_length_task, word_content_task
from twinvec.evaluation.tasks.sts import Correlation, StsTask, run_sts
from twinvec.evaluation.tasks.transfer import TransferTask, run_transfer
from twinvec.evaluation.tasks.triplets import build_triplets
from twinvec.model.identity import DECIDING

__all__ = ["GROUPS", "LOADERS", "SuiteSettings", "TaskRun", "evaluation_of", "load_tasks", "run_suite", "task_names"]

CORPORA = ("transfer/mr", "transfer/subj")  # the texts that probing tasks are made of, short and long
DOCUMENTS = "documents"  # the folder of documents in sections that triplets are made of
COLUMNS = "left", "right", "texts", "others", "anchors", "positives", "negatives"  # of tasks, where texts stand


@dataclass(frozen=True, slots=True)
class SuiteSettings:
    """What a protocol leaves open; all of it stands in the protocol that is printed."""

    correlation: Correlation = "spearman"
    similarity: Similarity = "cosine"
    subsets: Aggregation = "all"
    classifier: str = "logreg"
    seed: int = 0


USUAL = SuiteSettings()


@dataclass(frozen=True, slots=True, eq=False)
class TaskRun:
    """A task that is done: its results, and how long it took after the texts were embedded together."""

    name: str
    results: tuple[Result, ...]
    seconds: float


def _probing(folder: str | Path, *, make: Callable[[Sequence[str]], TransferTask]) -> TransferTask:
    texts = [text for name in CORPORA for text in text_in(read_data(folder, name, columns=["text"]), "text")]
    return make(list(dict.fromkeys(texts)))


def _sections(folder: str | Path) -> Task:
    place = Path(folder, DOCUMENTS)
    endings = tuple(ending + packed for ending in READERS for packed in ("", ".gz", ".bz2"))
    files = sorted(file for file in place.glob("*") if file.name.lower().endswith(endings)) if place.is_dir() else []
    if not files:
        raise InputError(
            f"There are no documents in {place}.", hint=f"Put files with sections there: {', '.join(READERS)}."
        )
    return build_triplets(document for file in files for document in read_documents(file))


LOADERS: Mapping[str, Callable[[str | Path], Task]] = MappingProxyType(
    {
        **KNOWN,
        "sentence-length": partial(_probing, make=sentence_length_task),
        "word-content": partial(_probing, make=word_content_task),
        "bigram-shift": partial(_probing, make=bigram_shift_task),
        "sections": _sections,
    }
)
GROUPS: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
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
)


def task_names(wanted: Iterable[str]) -> list[str]:
    """The tasks of some names and groups, each once, in the order in which they were named.

    >>> task_names(["stsb", "sts"])[:3]
    ['stsb', 'sts12', 'sts13']
    """
    names: dict[str, None] = {}
    for name in wanted:
        if name not in GROUPS and name not in LOADERS:
            raise UnknownNameError("task", name, {*GROUPS, *LOADERS})
        names.update(dict.fromkeys(GROUPS.get(name, (name,))))
    if not names:
        raise InputError("No task was named.", hint=f"Choose from: {', '.join(GROUPS)}.")
    return list(names)


def load_tasks(names: Iterable[str], folder: Path) -> dict[str, Task]:
    """Read the tasks from the data folder; whatever is wrong with the data shows here, before anything is embedded."""
    if not folder.is_dir():
        raise InputError(
            f"There is no data folder {folder}.",
            hint="Name it with --data or TWINVEC_DATA; fill it with: twinvec data get.",
        )
    return {name: LOADERS[name](folder) for name in names}


def run_suite(tasks: Mapping[str, Task], embed: Embed, settings: SuiteSettings = USUAL) -> Iterator[TaskRun]:
    """Run tasks, giving each as it is done. The different texts of all STS tasks are embedded in one call first."""
    gathered = [text for task in tasks.values() if isinstance(task, StsTask) for text in _texts(task)]
    if gathered:
        embed(gathered)
    for name, task in tasks.items():
        started = time.perf_counter()
        outcomes = _outcomes(task, embed, settings)
        results = tuple(judge(outcome) for outcome in outcomes)
        yield TaskRun(name, results, time.perf_counter() - started)


def evaluation_of(system: Embedder, runs: Iterable[TaskRun]) -> Evaluation:
    """All results of a system, with date, versions, and the settings that are not the default."""
    results = tuple(result for run in runs for result in run.results)
    settings = {
        name: value
        for name, value in system.settings.items()
        if name == "precision" or (value is not None and value != DECIDING.get(name))
    }
    return Evaluation(system.name, system.identity, now(), results, settings, used_versions())


def _texts(task: Task) -> Iterator[str]:
    for column in COLUMNS:
        yield from getattr(task, column, ())


def _outcomes(task: Task, embed: Embed, settings: SuiteSettings) -> list[Outcome]:
    match task:
        case StsTask():
            return run_sts(
                task,
                embed,
                statistic=settings.correlation,
                similarity=settings.similarity,
                aggregation=settings.subsets if task.subsets else "all",
            )
        case TransferTask():
            return run_transfer(task, embed, classifier=settings.classifier, seed=settings.seed)
        case _:
            return run_task(task, embed, seed=settings.seed)
