"""Teach the Universal Sentence Encoder further: English by better teachers, Korean through translations.

A batch has English texts, pairs and Korean texts. The student's similarities within it follow those of the teachers:
among the English texts, among the Korean sides of the pairs, and across. Translations are ranked before other
sentences. Korean without translation keeps the similarities that it had. Everything is seeded, and a run that was
interrupted continues from its last checkpoint.
"""

from __future__ import annotations

import json
import math
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.func import functional_call
from torch.nn.functional import cross_entropy

from bilingual.teachers import Pool
from bilingual.texts import read_rows
from twinvec.baselines.use_torch import UseNetwork
from twinvec.engine.batches import pad
from twinvec.engine.use import TABLE
from twinvec.metrics import spearman
from twinvec.types import Vectors

__all__ = ["DevSets", "Lesson", "Settings", "draw_curve", "embed_rows", "train"]

ROWS_PER_PASS = 64  # texts of similar length that are padded together
TABLE_NAME = TABLE.replace(".", "_")
DEV_FILES = {"korsts-dev": "korean/korsts-dev", "stsb-dev": "sts/stsb-dev"}
Rows = Sequence[Sequence[int]]


@dataclass(frozen=True)
class Settings:
    """The settings of a training."""

    steps: int = 2_500
    n_english: int = 64
    n_pairs: int = 96
    n_others: int = 32
    n_korean: int = 64
    group: int = 6  # a text and its neighbors
    table_rate: float = 4e-4
    rate: float = 1e-4
    warmup: int = 50
    similarity: float = 50.0  # weights of the parts of the loss
    ranking: float = 2.0
    keeping: float = 100.0
    focus: float = 10.0  # how much more similar texts count than unlike ones
    dropout: float = 0.0  # share of the pieces of a text that are left out
    scale: float = 20.0  # of cosines, for the ranking
    averaging: float = 0.99  # of the weights that are kept
    every: int = 50
    seed: int = 0


@dataclass(frozen=True)
class Lesson:
    """The texts as ids, and their pools; ``pairs`` belongs to both ``pair_english`` and ``pair_korean``."""

    english_rows: Rows
    pair_english: Rows
    pair_korean: Rows
    other_english: Rows
    other_korean: Rows
    korean_rows: Rows
    english: Pool
    pairs: Pool
    korean: Pool


def train(
    network: UseNetwork, lesson: Lesson, settings: Settings, work: Path, score: Callable[[], dict[str, float]]
) -> Iterator[dict[str, float]]:
    """Train, and yield a row of the log every so many steps; in it, the network has the averaged weights."""
    others = [each for name, each in network.named_parameters() if name != TABLE_NAME]
    table = {"params": [network.get_parameter(TABLE_NAME)], "lr": settings.table_rate}
    groups = [table, {"params": others, "lr": settings.rate}]
    optimizer = torch.optim.Adam(groups)
    schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: _rate(step, settings))
    average = {name: each.detach().clone() for name, each in network.named_parameters()}
    step, losses, checkpoint = 0, [], work / "checkpoint.pt"
    if checkpoint.is_file():
        state = torch.load(checkpoint, weights_only=True)
        network.load_state_dict(state["network"])
        optimizer.load_state_dict(state["optimizer"])
        schedule.load_state_dict(state["schedule"])
        average, step = state["average"], state["step"]
    else:
        yield {"step": 0, **score()}
    began = time.perf_counter()
    while step < settings.steps:
        optimizer.zero_grad(set_to_none=True)
        loss = _loss(network, lesson, settings, np.random.default_rng((settings.seed, step)))
        loss.backward()
        optimizer.step()
        schedule.step()
        step += 1
        losses.append(float(loss.detach()))
        decay = min(settings.averaging, step / (step + 10))
        for name, each in network.named_parameters():
            average[name].lerp_(each.detach(), 1 - decay)
        if step % settings.every == 0 or step == settings.steps:
            state = {"network": network.state_dict(), "optimizer": optimizer.state_dict(), "average": average}
            _save({**state, "schedule": schedule.state_dict(), "step": step}, checkpoint)
            kept = {name: each.detach().clone() for name, each in network.named_parameters()}
            network.load_state_dict(average)
            mean, losses = float(np.mean(losses)), []
            yield {"step": step, "loss": mean, **score(), "seconds": time.perf_counter() - began}
            network.load_state_dict(kept)
    network.load_state_dict(average)


def _rate(step: int, settings: Settings) -> float:
    """Rises over the warmup, then falls along a cosine to a tenth."""
    if step < settings.warmup:
        return (step + 1) / settings.warmup
    share = (step - settings.warmup) / max(1, settings.steps - settings.warmup)
    return 0.1 + 0.45 * (1 + math.cos(math.pi * share))


def _loss(network: UseNetwork, lesson: Lesson, settings: Settings, random: np.random.Generator) -> Tensor:
    group = settings.group
    english = lesson.english.draw(settings.n_english, group, random)
    pairs = lesson.pairs.draw(settings.n_pairs, group, random)
    others = random.choice(len(lesson.other_english), size=settings.n_others, replace=False)
    korean = lesson.korean.draw(settings.n_korean, group, random)
    parts = [
        [lesson.english_rows[i] for i in english],
        [lesson.pair_english[i] for i in pairs],
        [lesson.pair_korean[i] for i in pairs],
        [lesson.other_english[i] for i in others],
        [lesson.other_korean[i] for i in others],
        [lesson.korean_rows[i] for i in korean],
    ]
    rows = [_thinned(row, settings.dropout, random) for part in parts for row in part]
    vectors = embed_rows(network, rows)
    alone, left, right, other_left, other_right, kept = vectors.split([len(part) for part in parts])
    taught = _wanted(lesson.pairs, pairs)
    own = (other_left @ other_left.T).detach()  # without a teacher, the English side teaches the Korean one
    following = (
        _distance(alone @ alone.T, _wanted(lesson.english, english), settings.focus)
        + _distance(left @ left.T, taught, settings.focus)
        + _distance(right @ right.T, taught, settings.focus)
        + _distance(left @ right.T, taught, settings.focus)
        + _distance(other_right @ other_right.T, own, settings.focus)
        + _distance(other_left.detach() @ other_right.T, own, settings.focus)
    )
    ranking = _ranking(left, right, settings.scale) + _ranking(other_left, other_right, settings.scale)
    keeping = _distance(kept @ kept.T, _wanted(lesson.korean, korean), settings.focus)
    return settings.similarity * following + settings.ranking * ranking + settings.keeping * keeping


def _ranking(left: Tensor, right: Tensor, scale: float) -> Tensor:
    """How far translations are from being nearest to each other, in both directions."""
    cosines, own = scale * left @ right.T, torch.arange(len(left))
    return cross_entropy(cosines, own) + cross_entropy(cosines.T, own)


def _thinned(row: Sequence[int], share: float, random: np.random.Generator) -> Sequence[int]:
    """A text without some of its pieces; its begin and end stay."""
    if not share:
        return row
    is_kept = random.random(len(row)) >= share
    is_kept[[0, -1]] = True
    return [piece for piece, kept in zip(row, is_kept, strict=True) if kept]


def _wanted(pool: Pool, indices: NDArray[np.int64]) -> Tensor:
    vectors = torch.from_numpy(pool.vectors[indices])
    return vectors @ vectors.T


def _distance(found: Tensor, wanted: Tensor, focus: float) -> Tensor:
    """The weighted mean of the squared differences; nearly all pairs of texts are unlike, and say little."""
    weights = 1 + focus * wanted.clamp(min=0)
    return (weights * (found - wanted).square()).sum() / weights.sum()


def embed_rows(network: UseNetwork, rows: Rows) -> Tensor:
    """Vectors of texts as ids, ``(len(rows), width)``; texts of similar length are padded together."""
    order = sorted(range(len(rows)), key=lambda index: len(rows[index]))
    used = np.unique([piece for row in rows for piece in row])
    table = {TABLE_NAME: network.get_parameter(TABLE_NAME)[torch.from_numpy(used)]}  # so its gradient is made once
    parts = []
    for start in range(0, len(order), ROWS_PER_PASS):
        batch = pad([rows[index] for index in order[start : start + ROWS_PER_PASS]])
        ids = torch.from_numpy(np.searchsorted(used, batch.ids) * batch.mask)
        with torch.autocast("cpu", torch.bfloat16):
            parts.append(functional_call(network, table, (ids, torch.from_numpy(batch.mask))).float())
    places = torch.empty(len(order), dtype=torch.long)
    places[torch.tensor(order)] = torch.arange(len(order))
    return torch.cat(parts)[places]


def _save(state: dict[str, object], file: Path) -> None:
    partial = file.with_suffix(".part")
    torch.save(state, partial)
    partial.replace(file)


class DevSets:
    """KorSTS dev and STSb dev, which are the same pairs in two languages."""

    def __init__(self, data: Path, network: UseNetwork) -> None:
        self._network = network
        tables = {name: list(read_rows(data, file)) for name, file in DEV_FILES.items()}
        self._rows = {
            name: tuple(network.rows([row[column] for row in table]) for column in ("text1", "text2"))
            for name, table in tables.items()
        }
        self._gold = {name: [float(row["score"]) for row in table] for name, table in tables.items()}

    def scores(self) -> dict[str, float]:
        """Spearman of cosine x 100 on each, and English against Korean."""
        with torch.no_grad():
            found = {
                name: [embed_rows(self._network, side).numpy() for side in sides] for name, sides in self._rows.items()
            }
        (ko_left, ko_right), (en_left, en_right) = found.values()
        korean, english = self._gold.values()
        return {
            "korsts-dev": _agreement(ko_left, ko_right, korean),
            "stsb-dev": _agreement(en_left, en_right, english),
            "cross-dev": _agreement(en_left, ko_right, korean),
        }


def _agreement(left: Vectors, right: Vectors, gold: Sequence[float]) -> float:
    return 100 * spearman((left * right).sum(axis=1), np.array(gold))


def draw_curve(log: Path, file: Path) -> None:
    """Draw the dev scores of a log."""
    from matplotlib.figure import Figure

    rows = [json.loads(line) for line in log.read_text(encoding="utf-8").splitlines()]
    figure = Figure(figsize=(7, 4), layout="constrained")
    axes = figure.subplots()
    for name in ("stsb-dev", "korsts-dev", "cross-dev"):
        axes.plot([row["step"] for row in rows], [row[name] for row in rows], marker="o", label=name)
    axes.set(xlabel="step", ylabel="Spearman x 100")
    axes.grid(alpha=0.3)
    axes.legend()
    figure.savefig(file, dpi=110)
