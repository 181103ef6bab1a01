"""Train a bi-, poly- and cross-encoder from the same model on the same data, and compare them on test data.

    python benchmarks/three_encoders.py OUT --start FOLDER --data $TWINVEC_DATA [--seeds 3] [--only stsb]

Two tasks. ``stsb``: similarity, trained and tested on the STS benchmark (bi- and cross-encoder, as in Table 2 of the
SBERT paper). ``ranking``: find the sentence that follows from another one, trained and tested on SNLI (all three).
Writes a model per system and seed to OUT, and the scores as a result file. A second run continues.
"""

from __future__ import annotations

import gzip
import json
import logging
from collections import defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import click
import numpy as np
from common import write_result
from numpy.typing import NDArray

import twinvec
from twinvec.choices import NetworkKind
from twinvec.data.write import write_rows
from twinvec.evaluation.resampling import interval
from twinvec.evaluation.statistics import Outcome, value_of
from twinvec.scorer import Pair, Scorer
from twinvec.training import DataPart, DataSource, DevPart, ModelPart, Recipe, TrainSettings

N_CANDIDATES = 20
MOST = {"train": 6_000, "dev": 1_000}  # premises of SNLI
IN_BATCH = 2  # other positives that a cross-encoder sees per premise; the others see all of the batch
SEED = 0
RATES = 5e-5, 1e-4, 2e-4  # learning rates; the one with the best dev score of seed 0 is used for all seeds
OBJECTIVES: dict[str, dict[NetworkKind, str]] = {
    "stsb": {"bi-encoder": "cosine", "cross-encoder": "bce"},
    "ranking": {"bi-encoder": "ranking", "poly-encoder": "ranking", "cross-encoder": "ranking"},
}


class Query(NamedTuple):
    """A premise with its candidates; the first one follows from it."""

    premise: str
    candidates: tuple[str, ...]


def read_nli(path: Path) -> Iterator[tuple[str, dict[str, str]]]:
    """Each premise with one hypothesis per label."""
    found: dict[str, dict[str, str]] = defaultdict(dict)
    for line in gzip.decompress(path.read_bytes()).decode("utf-8").splitlines()[1:]:
        label, premise, hypothesis = line.split("\t")
        found[premise].setdefault(label, hypothesis)
    return ((premise, labels) for premise, labels in found.items() if {"entailment", "contradiction"} <= labels.keys())


def write_triplets(source: Path, target: Path, most: int) -> Path:
    """The first premises of a file: premise, entailed hypothesis, contradicting hypothesis."""
    if not target.is_file():
        rows = [(premise, labels["entailment"], labels["contradiction"]) for premise, labels in read_nli(source)]
        write_rows(rows[:most], ("anchor", "positive", "negative"), target)
    return target


def read_queries(path: Path) -> list[Query]:
    """The premises of a test file; candidates beyond their own hypotheses are those of other premises, seeded."""
    rows = list(read_nli(path))
    pool = [hypothesis for _, labels in rows for hypothesis in labels.values()]
    rng = np.random.default_rng(SEED)
    queries = []
    for premise, labels in rows:
        own = [labels["entailment"], *(text for label, text in labels.items() if label != "entailment")]
        others = [pool[i] for i in rng.integers(len(pool), size=2 * N_CANDIDATES)]
        queries.append(Query(premise, tuple(dict.fromkeys([*own, *others]))[:N_CANDIDATES]))
    return queries


class CosineScorer:
    """A bi-encoder as a scorer."""

    def __init__(self, folder: Path) -> None:
        self.name = self.identity = folder.name
        self._encoder = twinvec.load(folder)

    def score(self, pairs: Sequence[Pair]) -> NDArray[np.float32]:
        """The cosine of each pair."""
        texts = list(dict.fromkeys(text for pair in pairs for text in pair))
        rows, vectors = {text: i for i, text in enumerate(texts)}, self._encoder.encode(texts)
        vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
        return np.array([vectors[rows[a]] @ vectors[rows[b]] for a, b in pairs], dtype=np.float32)


def reciprocal_ranks(scorer: Scorer, queries: list[Query]) -> NDArray[np.float64]:
    """1 / rank of the right candidate of each query; a tie counts as wrong."""
    pairs = [(query.premise, text) for query in queries for text in query.candidates]
    scores = np.split(scorer.score(pairs), np.cumsum([len(query.candidates) for query in queries])[:-1])
    return np.array([1 / (1 + (each[1:] >= each[0]).sum()) for each in scores])


def recipe(task: str, network: NetworkKind, start: Path, files: dict[str, Path], rate: float, seed: int) -> Recipe:
    """The recipe of one model; only the network and its objective differ within a task."""
    if task == "stsb":
        source = {name: DataSource(files[name], "scored_pairs", score_range=(0, 5)) for name in ("train", "dev")}
        settings = TrainSettings(epochs=4, batch_size=16, learning_rate=rate, seed=seed)
    else:
        source = {"train": DataSource(files["train"], "ranked"), "dev": DataSource(files["dev"], "triplets")}
        settings = TrainSettings(epochs=1, batch_size=16, learning_rate=rate, seed=seed)
    options = {"in_batch": IN_BATCH} if (task, network) == ("ranking", "cross-encoder") else {}
    return Recipe(
        ModelPart(str(start), network=network, max_tokens=128),
        (DataPart(source["train"], OBJECTIVES[task][network], options),),
        settings,
        DevPart(source["dev"]),
    )


def outcome(task: str, network: NetworkKind, folder: Path, data: Path) -> Outcome:
    """The test result of a trained model."""
    if task == "stsb":
        return twinvec.evaluate(folder, "stsb", data, cache=None).results[0].outcome
    scorer: Scorer = CosineScorer(folder) if network == "bi-encoder" else twinvec.load_scorer(folder)
    ranks = reciprocal_ranks(scorer, read_queries(data / "nli/snli-test.tsv.gz"))
    return Outcome("snli", f"MRR x 100 of {N_CANDIDATES} candidates", "mean", ranks)


def dev_score(folder: Path) -> float:
    """The dev score of a trained model."""
    scores = json.loads((folder / "training/scores.json").read_text(encoding="utf-8"))
    return float(scores["scores"][0]["value"])


def measured(task: str, network: NetworkKind, folder: Path, data: Path) -> dict[str, object]:
    """The dev score and the test score with its interval."""
    found = outcome(task, network, folder, data)
    value, (low, high) = value_of(found), interval(found)
    row: dict[str, object] = {"task": task, "network": network, "protocol": found.protocol}
    numbers = {"dev": dev_score(folder), "test": value, "low": low, "high": high}
    return row | {name: round(number, 2) for name, number in numbers.items()}


@click.command(help=__doc__)
@click.argument("out", type=click.Path(path_type=Path))
@click.option("--start", required=True, type=click.Path(path_type=Path, exists=True), help="The model to start from.")
@click.option("--data", envvar="TWINVEC_DATA", required=True, type=click.Path(path_type=Path), help="The data sets.")
@click.option("--seeds", default=3, show_default=True, help="Seeds per system.")
@click.option("--only", "tasks", multiple=True, type=click.Choice(list(OBJECTIVES)), help="Only this task. Repeatable.")
@click.option("--network", "networks", multiple=True, help="Only this network. Repeatable.")
@click.option("--rate", "rates", multiple=True, type=float, help="A learning rate to try. Repeatable.")
def main(
    out: Path,
    start: Path,
    data: Path,
    seeds: int,
    tasks: tuple[str, ...],
    networks: tuple[str, ...],
    rates: tuple[float, ...],
) -> None:
    """Train, test and write."""
    logging.basicConfig(level=logging.WARNING, format="%(message)s")
    out.mkdir(parents=True, exist_ok=True)
    rows = []
    for task in tasks or OBJECTIVES:
        if task == "stsb":
            files = {name: data / f"sts/stsb-{name}.tsv.gz" for name in ("train", "dev")}
        else:
            sources = {"train": data / "nli/snli-train-100k.tsv.gz", "dev": data / "nli/snli-dev.tsv.gz"}
            files = {name: write_triplets(path, out / f"snli-{name}.tsv", MOST[name]) for name, path in sources.items()}
        for network in OBJECTIVES[task]:
            if networks and network not in networks:
                continue

            def trained(rate: float, seed: int, task: str = task, network: NetworkKind = network) -> Path:
                folder = out / f"{task}-{network}-{rate:g}-{seed}"
                if not folder.is_dir():
                    twinvec.train(recipe(task, network, start, files, rate, seed), folder)  # noqa: B023 - called here
                return folder

            rate = max(rates or RATES, key=lambda each: dev_score(trained(each, 0)))
            for seed in range(seeds):
                rows.append(measured(task, network, trained(rate, seed), data) | {"rate": rate, "seed": seed})
                print(rows[-1], flush=True)
    write_result("three-encoders", {"start": start.name, "rows": rows})


if __name__ == "__main__":
    main()
