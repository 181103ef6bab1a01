"""The training loop. It yields after every step; the caller logs, evaluates and saves."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence, Sized
from dataclasses import dataclass
from itertools import chain, islice

import numpy as np
import torch
from torch import Tensor, nn

from twinvec.errors import TrainingError
from twinvec.training.batches import Batch, LossOf, Task, n_batches, plan_epoch, used_ids
from twinvec.training.networks.setup import Trainable
from twinvec.training.processes import ALONE, DROPOUT, Processes, seeded
from twinvec.training.recipe import TrainSettings, learning_rate

__all__ = ["StepReport", "Training", "n_steps", "start_training", "train_steps"]


@dataclass(frozen=True, slots=True)
class RunNetwork:
    """Runs the network on the inputs of a batch: the tokens of texts, or of pairs of texts."""

    network: Trainable
    processes: Processes
    cached_texts: int | None = None
    in_bfloat16: bool = False

    def outputs(self, rows: Sequence[Sized], draw: tuple[int, ...]) -> Tensor:
        """The outputs for some inputs, ``(inputs, width)``, in float32."""
        device = self.processes.device
        with (
            seeded(*draw, device=device),
            torch.autocast(device.partition(":")[0], torch.bfloat16, enabled=self.in_bfloat16),
        ):
            return self.network(rows)


def backward(run: RunNetwork, rows: Sequence[Sized], loss_of: LossOf, *, draw: tuple[int, ...], scale: float) -> float:
    """Add the gradients of ``scale`` times the loss to the network and the objective; return the loss.

    ``rows`` are the inputs of the batch; ``draw`` identifies the step and seeds dropout.
    """
    processes = run.processes
    indices = processes.share(np.array([len(row) for row in rows]))
    mine = [rows[i] for i in indices]
    size = run.cached_texts or max(len(mine), 1)
    parts = [slice(start, start + size) for start in range(0, len(mine), size)]
    draws = [(*draw, processes.rank, number) for number in range(len(parts))]  # dropout seeds, the same in both passes
    with torch.set_grad_enabled(len(parts) == 1):
        empty = torch.zeros(0, run.network.width, device=processes.device)
        outputs = torch.cat([empty, *(run.outputs(mine[part], draws[i]) for i, part in enumerate(parts))])
    if len(parts) != 1:
        outputs.requires_grad_()
    loss = loss_of(processes.gather(outputs, indices, len(rows)))
    (scale * loss).backward()
    if len(parts) > 1:
        for i, part in enumerate(parts):
            run.outputs(mine[part], draws[i]).backward(outputs.grad[part])
    return float(loss.detach())


MAX_NAMED = 16  # examples of a bad batch to list


@dataclass(frozen=True, slots=True)
class StepReport:
    """The result of one step. ``step`` counts from 1."""

    step: int
    epoch: float
    loss: float
    rate: float
    grad_norm: float
    n_rows: int
    seconds: float


@dataclass
class Training:
    """The state of a run that a checkpoint stores."""

    network: Trainable
    objectives: nn.ModuleList
    optimizer: torch.optim.Optimizer
    step: int = 0

    def parameters(self) -> list[nn.Parameter]:
        """All trained parameters."""
        return [*self.network.parameters(), *self.objectives.parameters()]


def start_training(
    network: Trainable, tasks: Sequence[Task], *, settings: TrainSettings, processes: Processes = ALONE
) -> Training:
    """The state before the first step."""
    network.to(processes.device)
    if settings.weight_decay == 0:
        network.train_only(used_ids(tasks))
    objectives = nn.ModuleList(task.objective for task in tasks).to(processes.device)
    optimizer = torch.optim.AdamW(
        [*network.parameters(), *objectives.parameters()],
        lr=settings.learning_rate,
        weight_decay=settings.weight_decay,
        fused=True,
    )
    return Training(network, objectives, optimizer)


def n_steps(tasks: Sequence[Task], settings: TrainSettings) -> int:
    """The number of steps of the whole run."""
    per_epoch = n_batches([task.sampled for task in tasks], settings.batch_size, settings.mixing)
    steps = -(-per_epoch * settings.epochs // settings.accumulation)
    return min(steps, settings.max_steps or steps)


def train_steps(
    training: Training, tasks: Sequence[Task], *, settings: TrainSettings, processes: Processes = ALONE
) -> Iterator[StepReport]:
    """Train from ``training.step`` to the end, yielding after every step."""
    run = RunNetwork(training.network, processes, settings.cached_texts, settings.precision == "bfloat16")
    training.network.train()
    training.objectives.train()
    total = n_steps(tasks, settings)
    per_epoch = n_batches([task.sampled for task in tasks], settings.batch_size, settings.mixing)
    batches = _batches_from(training.step * settings.accumulation, tasks, settings)
    while training.step < total:
        started = time.perf_counter()
        together = list(islice(batches, settings.accumulation))
        loss = _gradients(run, together, tasks, draw=(DROPOUT, settings.seed, training.step))
        processes.add_gradients(training.network.parameters())
        norm = float(nn.utils.clip_grad_norm_(training.parameters(), settings.max_grad_norm or float("inf")))
        _check_finite(loss, norm, training.step + 1, batches=together, tasks=tasks)
        rate = learning_rate(training.step, total, settings)
        for group in training.optimizer.param_groups:
            group["lr"] = rate
        training.optimizer.step()
        training.network.zero_grad(set_to_none=False)  # freed memory would cause page faults
        training.objectives.zero_grad()  # None, so that an objective without a batch in the next step stays unchanged
        training.step += 1
        yield StepReport(
            step=training.step,
            epoch=training.step * settings.accumulation / per_epoch,
            loss=loss,
            rate=rate,
            grad_norm=norm,
            n_rows=sum(len(batch.rows) for batch in together),
            seconds=time.perf_counter() - started,
        )


def _batches_from(first: int, tasks: Sequence[Task], settings: TrainSettings) -> Iterator[Batch]:
    """Return the batches of all epochs, starting from batch ``first``."""
    sets = [task.sampled for task in tasks]
    done, skipped = divmod(first, n_batches(sets, settings.batch_size, settings.mixing))
    epochs = (
        plan_epoch(sets, settings.batch_size, mixing=settings.mixing, seed=settings.seed, epoch=epoch)
        for epoch in range(done, settings.epochs)
    )
    return islice(chain.from_iterable(epochs), skipped, None)


def _gradients(run: RunNetwork, batches: Sequence[Batch], tasks: Sequence[Task], *, draw: tuple[int, ...]) -> float:
    """Add the gradients of the mean loss of some batches to the parameters; return that loss."""
    losses = []
    for number, batch in enumerate(batches):
        rows, loss_of = tasks[batch.data_set].batch(batch.rows)
        losses.append(backward(run, rows, loss_of, draw=(*draw, number), scale=1 / len(batches)))
    return sum(losses) / len(losses)


def _check_finite(loss: float, norm: float, step: int, *, batches: Sequence[Batch], tasks: Sequence[Task]) -> None:
    """Stop before a step that would corrupt all weights, and name the examples that caused it."""
    if torch.isfinite(torch.tensor([loss, norm])).all():
        return
    names = "; ".join(
        f"{tasks[batch.data_set].examples.name}, examples {', '.join(str(row + 1) for row in batch.rows[:MAX_NAMED])}"
        for batch in batches
    )
    what = "gradient" if torch.isfinite(torch.tensor(loss)) else "loss"
    raise TrainingError(
        f"The {what} of step {step} is not finite (loss {loss}, gradient {norm}), in the batch of {names}.",
        hint="The state before this step is saved. Check these examples, or start over with a lower learning rate.",
    )
