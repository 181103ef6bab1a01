"""Train the bilingual model twinvec-ko from the Universal Sentence Encoder, English teachers and parallel text.

    python recipes/korean.py twinvec-ko --data $TWINVEC_DATA --start use-m --teacher gte --teacher mpnet

``--start`` is the folder with the original files of the encoder (sp.model and use_quantized.onnx), ``--teacher`` the
name or folder of a sentence model. The target gets the model in int8 and, in ``training/``, its log, learning curve and
the numbers of its texts. The same command continues a run that was interrupted.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path

import click
import numpy as np
from numpy.typing import NDArray

from bilingual.teachers import make_pool, own_vectors, teacher_vectors
from bilingual.texts import TRAIN_PART, Pair, Texts, collect, common_pieces
from bilingual.training import DevSets, Lesson, Settings, draw_curve, train
from twinvec.baselines.use import convert_use
from twinvec.baselines.use_torch import UseNetwork
from twinvec.errors import TwinvecError
from twinvec.files import write_json

TRAIN_SHARE = 0.4


@click.command(help=__doc__)
@click.argument("target", type=click.Path(path_type=Path))
@click.option("--data", envvar="TWINVEC_DATA", required=True, type=click.Path(path_type=Path), help="The data sets.")
@click.option("--start", required=True, type=click.Path(path_type=Path), help="The original encoder.")
@click.option("--teacher", "teachers", multiple=True, required=True, help="An English sentence model. Repeatable.")
@click.option("--work", default=".korean-work", type=click.Path(path_type=Path), help="Folder for unfinished work.")
@click.option("--steps", type=click.IntRange(min=1), default=Settings.steps, show_default=True, help="Steps.")
@click.option("--seed", type=int, default=0, show_default=True, help="Seed.")
def main(target: Path, data: Path, start: Path, teachers: tuple[str, ...], work: Path, steps: int, seed: int) -> None:
    """Collect the texts, embed them by the teachers, train, and write the model."""
    settings = replace(Settings(), steps=steps, seed=seed)
    run = work / f"seed-{seed}"
    run.mkdir(parents=True, exist_ok=True)
    try:
        texts = collect(data)
        reduced = start_model(start, data, work)
        network = UseNetwork.from_folder(reduced)
        lesson = make_lesson(network, texts, teachers, reduced, work / "vectors")
        dev = DevSets(data, network)
        log = run / "log.jsonl"
        for row in train(network, lesson, settings, run, dev.scores):
            click.echo(json.dumps(row))
            with log.open("a", encoding="utf-8") as lines:
                lines.write(json.dumps(row) + "\n")
        network.save(target, precision="int8")
    except TwinvecError as error:
        raise click.ClickException(str(error)) from error
    record = target / "training"
    record.mkdir()
    shutil.copyfile(log, record / "log.jsonl")
    draw_curve(log, record / "curve.png")
    about = {"settings": asdict(settings), "texts": texts.counts(), "removed": dict(texts.removed)}
    write_json(record / "texts.json", about)


def start_model(source: Path, data: Path, work: Path) -> Path:
    """The encoder with the pieces of Korean and English only, made once."""
    target = work / "start"
    if not target.is_dir():
        convert_use(source, target, common_pieces(source, data), weights="onnx")
    return target


def make_lesson(network: UseNetwork, texts: Texts, teachers: tuple[str, ...], start: Path, cache: Path) -> Lesson:
    """Tokenize the texts, and embed them by their teachers; vectors are kept in the cache."""
    english = [*texts.english, *(pair.english for pair in texts.pairs)]
    vectors, n = teacher_vectors(teachers, english, cache), len(texts.english)
    rows = network.rows(english)
    return Lesson(
        english_rows=rows[:n],
        pair_english=rows[n:],
        pair_korean=network.rows([pair.korean for pair in texts.pairs]),
        other_english=network.rows([pair.english for pair in texts.others]),
        other_korean=network.rows([pair.korean for pair in texts.others]),
        korean_rows=network.rows(list(texts.korean)),
        english=make_pool(vectors[:n]),
        pairs=make_pool(vectors[n:], chances(texts.pairs)),
        korean=make_pool(own_vectors(start, list(texts.korean), cache)),
    )


def chances(pairs: Sequence[Pair]) -> NDArray[np.float64]:
    """Those of the pairs to be drawn: the train part of STSb has a fixed share, whatever the number of the others."""
    is_train = np.array([pair.source == TRAIN_PART for pair in pairs])
    weights = np.where(is_train, TRAIN_SHARE / is_train.sum(), (1 - TRAIN_SHARE) / (~is_train).sum())
    return np.asarray(weights / weights.sum(), dtype=np.float64)


if __name__ == "__main__":
    main()
