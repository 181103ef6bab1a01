"""Training speed and loss curve compared with sentence-transformers' trainer: SNLI, softmax, batches of 16.

    python benchmarks/train.py [--model FOLDER] [--data FOLDER] [--rounds 15]

Both train the same backbone in float32 on the same pairs with the same recipe and threads, each in one continuous run.
They take turns of a few dozen steps, while the other one waits. Pairs per second are those of the median turn.
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
ANSWERS = sys.stdout  # kept before it is redirected


class Turns:
    """The side of the trainer: waits for a line before each turn, and answers with the losses of its steps."""

    def __init__(self) -> None:
        self.losses: list[float] = []

    def wait(self) -> None:
        """Wait for the next turn; called before the first step and after each turn."""
        if not sys.stdin.readline():
            sys.exit()

    def end(self) -> None:
        """Report the losses of a finished turn."""
        print(json.dumps(self.losses), file=ANSWERS, flush=True)
        self.losses.clear()


class Contender:
    """The side of the benchmark: a trainer in its own process, which waits between its turns."""

    def __init__(self, name: str, options: argparse.Namespace) -> None:
        arguments = ["--model", str(options.model), "--data", str(options.data), "--rounds", str(options.rounds)]
        self._process = subprocess.Popen(
            [sys.executable, __file__, *arguments, "--contender", name],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self.losses: list[float] = []
        self.seconds: list[float] = []

    def take_turn(self) -> None:
        """Start a turn and wait until it is finished."""
        assert self._process.stdin and self._process.stdout
        started = time.perf_counter()
        print(file=self._process.stdin, flush=True)
        answer = self._process.stdout.readline()
        self.seconds.append(time.perf_counter() - started)
        if not answer:
            sys.exit("A trainer exited too early.")
        self.losses += json.loads(answer)

    def stop(self) -> None:
        """End the process."""
        self._process.kill()
        self._process.wait()


def snli_pairs(data: Path, n: int) -> list[tuple[str, str, str]]:
    """The first ``n`` pairs of the file, label first. Adjacent pairs share a premise, as in all of SNLI."""
    import gzip

    with gzip.open(data / "nli/snli-train-100k.tsv.gz", "rt", encoding="utf-8") as lines:
        next(lines)
        rows = [tuple(line.rstrip("\n").split("\t")) for line, _ in zip(lines, range(n), strict=False)]
    return rows  # type: ignore[return-value]


def train_ours(model: Path, pairs: list[tuple[str, str, str]], turns: Turns) -> None:
    """Train with Twinvec, for one epoch."""
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
        prepared = prepare(read_inputs(recipe), work=Path(folder), processes=ALONE)
    training = start_training(prepared.network, prepared.tasks, settings=recipe.training)
    turns.wait()
    for report in train_steps(training, prepared.tasks, settings=recipe.training):
        turns.losses.append(report.loss)
        if report.step % TURN_STEPS == 0:
            turns.end()
            turns.wait()


def train_rival(model: Path, pairs: list[tuple[str, str, str]], turns: Turns) -> None:
    """Train with sentence-transformers and the same recipe, for one epoch."""
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
    """Mean loss of every ``size`` steps."""
    for start in range(0, len(losses) - size + 1, size):
        yield fmean(losses[start : start + size])


CONTENDERS = {"sentence-transformers": train_rival, "twinvec": train_ours}


def main() -> None:
    """Run the benchmark, or one of its two trainers."""
    parser = arguments(__doc__)
    parser.set_defaults(rounds=15)
    parser.add_argument("--contender", choices=CONTENDERS, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.data is None:
        sys.exit("This benchmark requires SNLI: pass --data or set TWINVEC_DATA.")
    n_turns = N_WARM_TURNS + options.rounds
    if options.contender:
        sys.stdout = sys.stderr  # what a trainer prints must not mix with its answers
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
    """Print and write the speeds and loss curves."""
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
