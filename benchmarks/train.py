"""Training speed and loss curve beside sentence-transformers' trainer: SNLI, softmax objective, batches of 16.

    python benchmarks/train.py [--model FOLDER] [--data FOLDER] [--rounds 15]

Both train the same backbone in float32 on the same pairs with the same recipe and threads, each in one continuous run;
they take turns, a few dozen steps at a time, while the other stands still. Pairs per second are the median turn's.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from statistics import fmean, median
from typing import Any

import torch
from common import arguments, write_result

BATCH, TURN_STEPS = 16, 40
N_WARM_TURNS = 1
ANSWERS = sys.stdout  # before anything else is put in its place


class Turns:
    """The trainer's side: it waits for a line before each turn, and answers with the losses of its steps."""

    def __init__(self) -> None:
        self.losses: list[float] = []

    def wait(self) -> None:
        """Called before the first step and after each turn."""
        if not sys.stdin.readline():
            sys.exit()

    def end(self) -> None:
        """Called when a turn is over."""
        print(json.dumps(self.losses), file=ANSWERS, flush=True)
        self.losses.clear()


class Contender:
    """The other side: a trainer in a process of its own, which stands still between its turns."""

    def __init__(self, name: str, options: argparse.Namespace) -> None:
        given = ["--model", str(options.model), "--data", str(options.data), "--rounds", str(options.rounds)]
        self._process = subprocess.Popen(
            [sys.executable, __file__, *given, "--contender", name],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self.losses: list[float] = []
        self.seconds: list[float] = []

    def take_turn(self) -> None:
        """Give one turn, and wait until it is over."""
        assert self._process.stdin and self._process.stdout
        started = time.perf_counter()
        print(file=self._process.stdin, flush=True)
        answer = self._process.stdout.readline()
        self.seconds.append(time.perf_counter() - started)
        if not answer:
            sys.exit("A trainer ended before its time.")
        self.losses += json.loads(answer)

    def stop(self) -> None:
        """End the process."""
        self._process.kill()
        self._process.wait()


def snli_pairs(data: Path, n: int) -> list[tuple[str, str, str]]:
    """The first ``n`` pairs of the file, label first: neighbours share a premise, as in the whole of SNLI."""
    import gzip

    with gzip.open(data / "nli/snli-train-100k.tsv.gz", "rt", encoding="utf-8") as lines:
        next(lines)
        rows = [tuple(line.rstrip("\n").split("\t")) for line, _ in zip(lines, range(n), strict=False)]
    return rows  # type: ignore[return-value]


def train_ours(model: Path, pairs: list[tuple[str, str, str]], turns: Turns) -> None:
    """Our loop, over all pairs once."""
    from twinvec.data.roles import DataSource
    from twinvec.training.loop import start_training, train_steps
    from twinvec.training.prepare import prepare, read_inputs
    from twinvec.training.processes import ALONE
    from twinvec.training.recipe import DataPart, ModelPart, Recipe

    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "pairs.tsv"
        file.write_text("\n".join("\t".join(row) for row in [("label", "premise", "hypothesis"), *pairs]) + "\n")
        source = DataSource(str(file), "labelled_pairs")
        recipe = Recipe(ModelPart(str(model)), (DataPart(source, "softmax"),))
        prepared = prepare(recipe, read_inputs(recipe), work=Path(folder), processes=ALONE)
    training = start_training(prepared.network, prepared.tasks, settings=recipe.training)
    turns.wait()
    for report in train_steps(training, prepared.tasks, settings=recipe.training):
        turns.losses.append(report.loss)
        if report.step % TURN_STEPS == 0:
            turns.end()
            turns.wait()


def train_rival(model: Path, pairs: list[tuple[str, str, str]], turns: Turns) -> None:
    """sentence-transformers' trainer with the same recipe, over all pairs once."""
    from datasets import Dataset
    from sentence_transformers import (
        SentenceTransformer,
        SentenceTransformerTrainer,
        SentenceTransformerTrainingArguments,
    )
    from sentence_transformers.losses import SoftmaxLoss
    from transformers import PrinterCallback, TrainerCallback

    labels = sorted({row[0] for row in pairs})

    class TakeTurns(TrainerCallback):  # type: ignore[misc]
        def on_train_begin(self, *_: object, **__: object) -> None:
            turns.wait()

        def on_log(self, *_: object, logs: dict[str, Any] | None = None, **__: object) -> None:
            if logs and "loss" in logs:
                turns.losses.append(float(logs["loss"]))

        def on_step_end(self, _: object, state: Any, __: object, **___: object) -> None:  # noqa: ANN401
            if state.global_step % TURN_STEPS == 0:
                turns.end()
                turns.wait()

    encoder = SentenceTransformer(str(model), device="cpu")
    rows = {"label": [labels.index(row[0]) for row in pairs]}
    texts = {"premise": [row[1] for row in pairs], "hypothesis": [row[2] for row in pairs]}
    with tempfile.TemporaryDirectory() as folder:
        settings = SentenceTransformerTrainingArguments(
            output_dir=folder,
            num_train_epochs=1,
            per_device_train_batch_size=BATCH,
            learning_rate=2e-5,
            warmup_ratio=0.1,
            logging_steps=1,
            save_strategy="no",
            report_to="none",
            disable_tqdm=True,
            use_cpu=True,
        )
        trainer = SentenceTransformerTrainer(
            model=encoder,
            args=settings,
            train_dataset=Dataset.from_dict(texts | rows),
            loss=SoftmaxLoss(encoder, encoder.get_sentence_embedding_dimension(), num_labels=len(labels)),
            callbacks=[TakeTurns()],
        )
        trainer.remove_callback(PrinterCallback)
        trainer.train()


def curve(losses: list[float], size: int) -> Iterator[float]:
    """Mean loss of each run of ``size`` steps."""
    for start in range(0, len(losses) - size + 1, size):
        yield fmean(losses[start : start + size])


CONTENDERS = {"sentence-transformers": train_rival, "twinvec": train_ours}


def main() -> None:
    """Give turns, or be one of the two who take them."""
    parser = arguments(__doc__)
    parser.set_defaults(rounds=15)
    parser.add_argument("--contender", choices=CONTENDERS, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.data is None:
        sys.exit("This benchmark needs SNLI: name its folder with --data or TWINVEC_DATA.")
    n_turns = N_WARM_TURNS + options.rounds
    if options.contender:
        sys.stdout = sys.stderr  # a trainer that prints must not answer for the benchmark
        pairs = snli_pairs(options.data, BATCH * TURN_STEPS * n_turns)
        CONTENDERS[options.contender](options.model, pairs, Turns())
        return
    running = {name: Contender(name, options) for name in CONTENDERS}
    for turn in range(n_turns):
        for contender in running.values():
            contender.take_turn()
        speeds = [f"{name} {BATCH * TURN_STEPS / each.seconds[-1]:.1f} pairs/s" for name, each in running.items()]
        print(f"turn {turn}: {', '.join(speeds)}")
    for contender in running.values():
        contender.stop()
    report(running, options)


def report(running: dict[str, Contender], options: argparse.Namespace) -> None:
    """Print speeds and curves, and write them down."""
    rates = {name: BATCH * TURN_STEPS / median(contender.seconds[N_WARM_TURNS:]) for name, contender in running.items()}
    rival = rates["sentence-transformers"]
    size = min(len(contender.losses) for contender in running.values()) // 8
    curves = {name: list(curve(contender.losses, size)) for name, contender in running.items()}
    print(f"\nmean loss of every {size} steps")
    for name in running:
        print(f"{name:24s}", "  ".join(f"{loss:.3f}" for loss in curves[name]))
    print("\npairs per second, median of", options.rounds, "turns")
    for name in running:
        print(f"{name:24s} {rates[name]:6.1f}   ratio {rates[name] / rival:.2f}")
    rows = [
        {"name": name, "pairs_per_second": rates[name], "ratio": rates[name] / rival, "losses": curves[name]}
        for name in running
    ]
    n_pairs = BATCH * TURN_STEPS * (N_WARM_TURNS + options.rounds)
    content = {"model": options.model.name, "n_pairs": n_pairs, "batch": BATCH, "steps_per_loss": size, "rows": rows}
    write_result("train", content | {"threads": torch.get_num_threads()})


if __name__ == "__main__":
    main()
