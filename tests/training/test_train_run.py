"""Whole runs: what comes out, that it is the same however often it was stopped, and that nothing is lost."""

from __future__ import annotations

import json
import resource
import shutil
import signal
import subprocess
import sys
from argparse import Namespace
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import twinvec
from tiny import WORDS
from training import (
    assert_same_bits,
    make_recipe,
    run,
    sts_source,
    weights,
    with_settings,
    write_nli,
    write_pairs,
    write_sts,
)
from twinvec.data.roles import DataSource
from twinvec.errors import InputError, TrainingError, TwinvecError
from twinvec.metrics import spearman

torch = pytest.importorskip("torch", reason="training needs the extra 'train'")
for needed in ("transformers", "accelerate", "matplotlib"):
    pytest.importorskip(needed, reason="training needs the extra 'train'")

from twinvec.training.checkpoint import load_weights  # noqa: E402
from twinvec.training.loop import StepReport  # noqa: E402
from twinvec.training.recipe import DataPart, DevPart, ModelPart, Recipe, TrainSettings  # noqa: E402
from twinvec.training.report import DevReport, Finished, Started  # noqa: E402
from twinvec.training.run import RunOptions, run_recipe  # noqa: E402

TEXTS = ["the cat", "a dog runs in the house", "water"]


@pytest.fixture
def recipe(tmp_path, tiny_bert):
    return make_recipe(tmp_path, tiny_bert)


def stopped_after(recipe, target, step, **options):
    """Start a run and leave it after some step."""
    events = run_recipe(recipe, target, RunOptions(**options))
    for event in events:
        if isinstance(event, StepReport) and event.step == step:
            events.close()
            return


def losses(events):
    return [event.loss for event in events if isinstance(event, StepReport)]


def test_a_run_learns_and_its_folder_gives_the_same_vectors_everywhere(recipe, tmp_path):
    recipe = with_settings(replace(recipe, dev=None), epochs=20, learning_rate=1e-2)
    events = run(recipe, tmp_path / "model")
    assert np.mean(losses(events)[-8:]) < 0.85 * np.mean(losses(events)[:8])
    vectors = twinvec.load(tmp_path / "model").encode(TEXTS)
    np.testing.assert_allclose(twinvec.load(tmp_path / "model", runtime="torch").encode(TEXTS), vectors, atol=1e-5)
    sentence_transformers = pytest.importorskip("sentence_transformers")
    theirs = sentence_transformers.SentenceTransformer(str(tmp_path / "model"), device="cpu").encode(TEXTS)
    np.testing.assert_allclose(theirs, vectors, atol=1e-5)


def test_the_folder_documents_its_training(recipe, tmp_path):
    from twinvec.training.recipe_file import read_recipe

    recipe = replace(recipe, test=(sts_source(write_sts(tmp_path / "test.tsv", seed=9)),))
    events = run(recipe, tmp_path / "model")
    finished = events[-1]
    assert isinstance(events[0], Started) and isinstance(finished, Finished)
    card = (tmp_path / "model/README.md").read_text()
    for score in finished.scores:
        assert f"| {score.data} | {score.protocol} | {score.value:.2f} |" in card
    assert [score.data for score in finished.scores] == ["sts.tsv", "test.tsv"]
    assert read_recipe(tmp_path / "model/training/recipe.toml") == recipe
    rows = [json.loads(line) for line in (tmp_path / "model/training/log.jsonl").read_text().splitlines()]
    assert [row["step"] for row in rows if "loss" in row] == list(range(1, 17))
    assert [row["step"] for row in rows if "dev" in row] == [0, 5, 10, 15, 16]
    assert (tmp_path / "model/training/curve.png").read_bytes().startswith(b"\x89PNG")
    assert not (tmp_path / "model.run").exists()


@pytest.mark.parametrize("keep", ["best", "last"])
def test_the_weights_with_the_best_dev_score_are_kept_or_the_last_ones(recipe, tmp_path, keep):
    events = run(replace(recipe, dev=replace(recipe.dev, keep=keep)), tmp_path / "model")
    scores = {event.step: event.score for event in events if isinstance(event, DevReport)}
    finished = events[-1]
    assert finished.step == (max(scores) if keep == "last" else max(scores, key=lambda step: scores[step]))
    assert finished.scores[0].value == scores[finished.step]
    encoder = twinvec.load(tmp_path / "model")
    rows = [line.split("\t") for line in (tmp_path / "sts.tsv").read_text().splitlines()[1:]]
    stats = pytest.importorskip("scipy.stats")
    gold, left, right = zip(*rows, strict=True)
    cosines = encoder.similarity_pairwise(encoder.encode(list(left)), encoder.encode(list(right)))
    assert 100 * stats.spearmanr(cosines, np.array(gold, dtype=float)).statistic == pytest.approx(
        finished.scores[0].value, abs=0.05
    )


def test_patience_ends_a_run_and_a_second_start_does_not_go_on(recipe, tmp_path):
    recipe = with_settings(replace(recipe, dev=DevPart(recipe.dev.source, every=1, patience=2)), epochs=40)
    events = run(recipe, tmp_path / "model")
    scores = [event.score for event in events if isinstance(event, DevReport)]
    best = int(np.argmax(scores))
    assert len(scores) == best + 3 and events[-1].step == best + 1


def test_a_run_stopped_by_patience_does_not_continue(recipe, tmp_path, monkeypatch):
    from twinvec.training.networks.bi_encoder import Network

    recipe = with_settings(replace(recipe, dev=DevPart(recipe.dev.source, every=1, patience=2)), epochs=40)
    with monkeypatch.context() as patched:
        patched.setattr(Network, "write", refuse)
        with pytest.raises(TrainingError, match="Cannot write the model"):
            run(recipe, tmp_path / "model")
    assert losses(run(recipe, tmp_path / "model")) == []


def refuse(*_, **__):
    raise OSError("no space")


VARIANTS = {
    "plain": {},
    "accumulated": {"accumulation": 3},
    "cached": {"cached_texts": 5},
    "decayed": {"weight_decay": 0.01},
    "bfloat16": {"precision": "bfloat16"},
}


@pytest.mark.parametrize("variant", VARIANTS)
def test_a_stopped_run_ends_with_the_same_bits(recipe, tmp_path, variant):
    recipe = with_settings(recipe, **VARIANTS[variant])
    n_steps = len(losses(run(recipe, tmp_path / "whole")))
    for step in (1, n_steps // 2):
        stopped_after(recipe, tmp_path / "parts", step)
        assert not (tmp_path / "parts").exists()
    events = run(recipe, tmp_path / "parts")
    assert events[0].step == n_steps // 2
    assert_same_bits(tmp_path / "whole", tmp_path / "parts")
    logs = [(tmp_path / name / "training/log.jsonl").read_text().splitlines() for name in ("whole", "parts")]
    for one, other in zip(*logs, strict=True):
        left, right = json.loads(one), json.loads(other)
        assert {**left, "seconds": 0} == {**right, "seconds": 0}


def test_a_run_stopped_after_any_step_keeps_the_same_weights(recipe, tmp_path):
    recipe = with_settings(replace(recipe, dev=DevPart(recipe.dev.source, every=3)), epochs=1)
    kept = run(recipe, tmp_path / "whole")[-1].step
    for step in range(1, 9):
        stopped_after(recipe, tmp_path / f"stopped {step}", step)
        assert run(recipe, tmp_path / f"stopped {step}")[-1].step == kept
        assert_same_bits(tmp_path / "whole", tmp_path / f"stopped {step}")


def test_several_data_sets_each_with_its_objective_resume_exactly(recipe, tmp_path):
    ranked = DataSource(str(write_pairs(tmp_path / "pairs.tsv")), "ranked")
    triplets = DataSource(str(tmp_path / "pairs.tsv"), "triplets")
    parts = (
        *recipe.data,
        DataPart(sts_source(tmp_path / "sts.tsv"), "cosent"),
        DataPart(ranked, "ranking", {"symmetric": True}, matryoshka=(8, 16)),
        DataPart(triplets, "triplet", share=0.5),
    )
    for mixing in ("proportional", "in turn"):
        mixed = with_settings(replace(recipe, data=parts), mixing=mixing, epochs=1)
        run(mixed, tmp_path / f"whole {mixing}")
        stopped_after(mixed, tmp_path / f"parts {mixing}", 2)
        run(mixed, tmp_path / f"parts {mixing}")
        assert_same_bits(tmp_path / f"whole {mixing}", tmp_path / f"parts {mixing}")


def test_another_seed_gives_other_weights(recipe, tmp_path):
    for seed in (0, 1):
        run(with_settings(recipe, seed=seed, epochs=1), tmp_path / f"seed {seed}")
    one, other = weights(tmp_path / "seed 0"), weights(tmp_path / "seed 1")
    assert any(not np.array_equal(one[name], other[name]) for name in one)


CHILD = """
import sys
sys.path.insert(0, sys.argv[1])
from pathlib import Path
from training import make_recipe
from twinvec.training.loop import StepReport
from twinvec.training.run import RunOptions, run_recipe
recipe = make_recipe(Path(sys.argv[2]), Path(sys.argv[3]), epochs=8)
for event in run_recipe(recipe, Path(sys.argv[2]) / "killed", RunOptions(checkpoint_every=2)):
    if isinstance(event, StepReport):
        print(event.step, flush=True)
"""


def test_a_run_killed_at_ten_random_steps_ends_with_the_same_bits(tmp_path, tiny_bert):
    run(make_recipe(tmp_path, tiny_bert, epochs=8), tmp_path / "whole", checkpoint_every=2)
    command = [sys.executable, "-c", CHILD, str(Path(__file__).parents[1] / "support"), str(tmp_path), str(tiny_bert)]
    rng = np.random.default_rng()  # not seeded: every run of this test tries other steps
    seen = []
    for kill_at in sorted(rng.choice(np.arange(1, 50), 10, replace=False)):
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as child:
            for line in child.stdout:
                seen.append(int(line))
                if int(line) >= kill_at:
                    child.send_signal(signal.SIGKILL)
                    break
            child.stdout.close()
        assert child.returncode == -signal.SIGKILL
        assert not (tmp_path / "killed").exists()
    subprocess.run(command, stdout=subprocess.DEVNULL, check=True)
    assert len(seen) > len(set(seen)), "no step was made twice, so nothing was lost and nothing was tested"
    assert_same_bits(tmp_path / "whole", tmp_path / "killed")


def test_a_loss_that_is_not_a_number_stops_before_it_spoils_the_weights(recipe, tmp_path, monkeypatch):
    from twinvec.training.batches import TextTask

    good_loss, calls = TextTask.loss, []

    def bad_at_third(self, vectors, rows, texts):
        calls.append(rows)
        loss = good_loss(self, vectors, rows, texts)
        return loss * float("nan") if len(calls) == 3 else loss

    monkeypatch.setattr(TextTask, "loss", bad_at_third)
    with pytest.raises(TrainingError, match=r"The loss of step 3 is not finite .*nli\.tsv, examples \d+, \d+"):
        run(recipe, tmp_path / "model")
    monkeypatch.undo()
    events = run(recipe, tmp_path / "model")
    assert events[0].step == 2
    run(recipe, tmp_path / "whole")
    assert_same_bits(tmp_path / "whole", tmp_path / "model")


def test_a_folder_that_exists_is_not_overwritten_unless_asked(recipe, tmp_path):
    run(with_settings(recipe, epochs=1), tmp_path / "model")
    before = weights(tmp_path / "model")
    with pytest.raises(InputError, match=r"model already exists\. Choose another name, or overwrite it with --force"):
        run(recipe, tmp_path / "model")
    assert not (tmp_path / "model.run").exists()
    run(with_settings(recipe, seed=5, epochs=1), tmp_path / "model", force=True)
    after = weights(tmp_path / "model")
    assert any(not np.array_equal(before[name], after[name]) for name in before)
    assert [path.name for path in tmp_path.iterdir() if "partial" in path.name] == []


def test_a_checkpoint_of_another_recipe_is_refused_and_kept(recipe, tmp_path):
    stopped_after(recipe, tmp_path / "model", 3)
    kept = (tmp_path / "model.run/checkpoint.safetensors").read_bytes()
    with pytest.raises(
        TrainingError, match=r"another recipe: it has learning_rate = 0\.001 instead of learning_rate = 0\.0005"
    ):
        run(with_settings(recipe, learning_rate=5e-4), tmp_path / "model")
    write_nli(tmp_path / "nli.tsv", seed=7)
    with pytest.raises(TrainingError, match=r"its data 1 \(nli\.tsv\) changed"):
        run(recipe, tmp_path / "model")
    assert (tmp_path / "model.run/checkpoint.safetensors").read_bytes() == kept
    events = run(recipe, tmp_path / "model", force=True)
    assert events[0].step == 0


def test_a_broken_checkpoint_gives_no_traceback(recipe, tmp_path):
    stopped_after(recipe, tmp_path / "model", 3)
    (tmp_path / "model.run/checkpoint.safetensors").write_bytes(b"not a checkpoint")
    with pytest.raises(TrainingError, match="is not a valid checkpoint"):
        run(recipe, tmp_path / "model")


@contextmanager
def no_file_larger_than(n_bytes):
    """Let the system refuse to write on, as a full disk does."""
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (n_bytes, limits[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
        signal.signal(signal.SIGXFSZ, handler)


def test_a_full_disk_leaves_the_last_good_checkpoint(recipe, tmp_path):
    recipe = replace(recipe, dev=None)
    stopped_after(recipe, tmp_path / "model", 3)
    kept = (tmp_path / "model.run/checkpoint.safetensors").read_bytes()
    with no_file_larger_than(20_000), pytest.raises(InputError, match=r"Cannot write .*checkpoint\.safetensors"):
        run(recipe, tmp_path / "model", checkpoint_every=1)
    assert (tmp_path / "model.run/checkpoint.safetensors").read_bytes() == kept
    assert [path.name for path in (tmp_path / "model.run").iterdir() if "partial" in path.name] == []
    run(recipe, tmp_path / "model")
    run(recipe, tmp_path / "whole")
    assert_same_bits(tmp_path / "whole", tmp_path / "model")


def test_a_disk_that_is_full_at_the_end_loses_no_work(recipe, tmp_path):
    recipe = replace(recipe, dev=None)
    stopped_after(recipe, tmp_path / "model", 16)
    with no_file_larger_than(20_000), pytest.raises(TrainingError, match="Cannot write the model"):
        run(recipe, tmp_path / "model")
    assert not (tmp_path / "model").exists()
    assert losses(run(recipe, tmp_path / "model")) == []


LAUNCHED = """
import os, sys
sys.path.insert(0, sys.argv[1])
from pathlib import Path
from dataclasses import replace
from training import LABELS, sts_source
from twinvec.data.roles import DataSource
from twinvec.training import DataPart, DevPart, ModelPart, Recipe, TrainSettings, run_recipe
from twinvec.training.processes import find_processes
root = Path(sys.argv[2])
assert find_processes().count == int(os.environ.get("WORLD_SIZE", 1)) == int(sys.argv[6])
recipe = Recipe(
    ModelPart(sys.argv[3]),
    (
        DataPart(DataSource(root / "nli.tsv", "labelled_pairs"), "softmax"),
        DataPart(DataSource(root / "pairs.tsv", "ranked"), "ranking"),
    ),
    TrainSettings(dropout=0.0, batch_size=16, learning_rate=1e-3, cached_texts=int(sys.argv[5]) or None),
    DevPart(sts_source(root / "sts.tsv"), every=2),
)
list(run_recipe(recipe, root / sys.argv[4]))
"""
LAUNCH = [sys.executable, "-m", "accelerate.commands.launch", "--multi_gpu", "--num_processes=2", "--num_machines=1"]
LAUNCH += ["--mixed_precision=no", "--dynamo_backend=no", "--main_process_port=0"]  # without a GPU they meet on the CPU


def launch(command, target):
    """Train in several processes, again if torch aborts one at exit; a stopped run continues with the same bits.

    Now and then a thread of gloo is still running when Python exits (exit code -6), and the launcher stops the others.
    """
    for _ in range(4):
        done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
        assert done.returncode == 0 or "exitcode: -6" in done.stderr, done.stderr
        if target.is_dir():
            return
    pytest.fail(done.stderr)


@pytest.mark.parametrize("cached_texts", ["0", "6"])
def test_two_processes_train_as_one_with_the_joint_batch(tmp_path, tiny_bert, cached_texts):
    write_pairs(tmp_path / "pairs.tsv")
    write_nli(tmp_path / "nli.tsv")
    write_sts(tmp_path / "sts.tsv")
    script = tmp_path / "launched.py"
    script.write_text(LAUNCHED)
    arguments = [str(Path(__file__).parents[1] / "support"), str(tmp_path), str(tiny_bert)]
    launch([*LAUNCH, str(script), *arguments, "two", cached_texts, "2"], tmp_path / "two")
    subprocess.run([sys.executable, str(script), *arguments, "one", cached_texts, "1"], check=True, timeout=300)
    logs = [(tmp_path / name / "training/log.jsonl").read_text().splitlines() for name in ("one", "two")]
    one, two = ([json.loads(line) for line in log] for log in logs)
    assert [row["step"] for row in one] == [row["step"] for row in two]
    for left, right in zip(one, two, strict=True):
        for name, tolerance in (("loss", 1e-4), ("grad_norm", 1e-2), ("dev", 0.5)):
            assert (name in left) == (name in right)
            assert left.get(name, 0) == pytest.approx(right.get(name, 0), abs=tolerance)


def test_several_processes_print_one_error(tmp_path, tiny_bert):
    (tmp_path / "taken").mkdir()
    (tmp_path / "taken/mine.txt").write_text("mine")
    arguments = ["train", "nli", str(write_nli(tmp_path / "nli.tsv")), "-m", str(tiny_bert)]
    command = [*LAUNCH, "-m", "twinvec.cli", *arguments, "-o", str(tmp_path / "taken")]
    result = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert result.returncode != 0
    assert result.stderr.count("taken already exists") == 1
    assert (tmp_path / "taken/mine.txt").read_text() == "mine"


def test_two_runs_do_not_share_a_folder(recipe, tmp_path):
    events = run_recipe(recipe, tmp_path / "model")
    next(events)
    with pytest.raises(InputError, match="Another process is training in"):
        run(recipe, tmp_path / "model")
    events.close()


def test_force_replaces_models_and_nothing_else(recipe, tmp_path):
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine/thesis.txt").write_text("years of work")
    with pytest.raises(InputError, match=r"mine holds 'thesis\.txt', which Twinvec did not write"):
        run(recipe, tmp_path / "mine", force=True)
    assert (tmp_path / "mine/thesis.txt").read_text() == "years of work"


def test_accumulated_batches_are_one_large_batch(recipe, tmp_path):
    recipe = with_settings(replace(recipe, dev=None), dropout=0.0, epochs=1, max_grad_norm=0)
    large = run(with_settings(recipe, batch_size=60), tmp_path / "large")
    parts = run(with_settings(recipe, batch_size=20, accumulation=3), tmp_path / "parts")
    for one, other in zip(
        *([e for e in events if isinstance(e, StepReport)] for events in (large, parts)), strict=True
    ):
        assert one.loss == pytest.approx(other.loss, abs=1e-5)
        assert one.grad_norm == pytest.approx(other.grad_norm, abs=1e-4)


def test_bfloat16_computes_the_backbone_in_it_and_pools_in_float32(recipe, tmp_path, tiny_bert):
    recipe = with_settings(replace(recipe, dev=None), dropout=0.0, epochs=1)
    exact = losses(run(recipe, tmp_path / "float32"))
    rounded = losses(run(with_settings(recipe, precision="bfloat16"), tmp_path / "bfloat16"))
    assert exact != rounded
    assert rounded == pytest.approx(exact, abs=0.05)


def test_cached_gradients_are_those_of_the_whole_batch(recipe, tmp_path):
    recipe = with_settings(replace(recipe, dev=None), dropout=0.0)
    whole = losses(run(recipe, tmp_path / "whole"))
    cached = losses(run(with_settings(recipe, cached_texts=3), tmp_path / "cached"))
    assert cached == pytest.approx(whole, abs=1e-4)


def test_dropout_draws_the_same_in_both_passes_of_cached_gradients(tiny_bert):
    from twinvec.model.folder import read_model_folder
    from twinvec.training.loop import RunNetwork, backward
    from twinvec.training.networks.bi_encoder import Network
    from twinvec.training.processes import Processes

    network = Network(read_model_folder(tiny_bert), dropout=0.4).train()
    rows = [np.array([2, 7 + i, 9, 3]) for i in range(4)]
    seen = []

    class Watched(RunNetwork):
        def outputs(self, rows, draw):
            found = super().outputs(rows, draw)
            seen.append((draw, found.detach().clone()))
            return found

    backward(Watched(network, Processes(), cached_texts=2), rows, lambda v: v.square().sum(), draw=(0, 1), scale=1.0)
    assert [draw for draw, _ in seen] == [(0, 1, 0, 0), (0, 1, 0, 1)] * 2
    for (_, first), (_, second) in zip(seen[:2], seen[2:], strict=True):
        assert torch.equal(first, second)
    assert not torch.equal(seen[0][1], seen[1][1])


@pytest.mark.parametrize("family", ["mpnet", "modernbert"])
def test_a_network_that_pads_its_texts_is_trained_too(family, tiny_folders, tmp_path):
    """The id of padding need not occur in any text."""
    run(make_recipe(tmp_path, tiny_folders[family], max_steps=3), tmp_path / "model")
    assert twinvec.load(tmp_path / "model").encode(["the cat"]).shape == (1, 32)


@pytest.mark.parametrize("teachers", [("mpnet",), ("mpnet", "roberta")])
def test_distilling_brings_the_student_near_its_teachers(tmp_path, tiny_folders, teachers):
    texts = [" ".join((WORDS[i % 17], WORDS[(3 * i + 1) % 23], WORDS[(7 * i + 2) % 29])) for i in range(60)]
    (tmp_path / "texts.txt").write_text("\n".join(texts) + "\n")
    part = DataPart(
        DataSource(str(tmp_path / "texts.txt"), "texts"),
        "distillation",
        {"loss": "cosine", "similarity_weight": 50.0},
        teachers=tuple(str(tiny_folders[name]) for name in teachers),
    )
    settings = TrainSettings(epochs=40, learning_rate=1e-2, dropout=0.0)
    run(Recipe(ModelPart(str(tiny_folders["bert"])), (part,), settings), tmp_path / "student")

    def similarities(folder):
        vectors = twinvec.load(folder).encode(texts)
        return twinvec.similarity(vectors, vectors)[np.triu_indices(len(texts), 1)]

    wanted = sum(similarities(tiny_folders[name]) for name in teachers)
    before, after = similarities(tiny_folders["bert"]), similarities(tmp_path / "student")
    assert spearman(after, wanted) > max(0.8, spearman(before, wanted) + 0.2)


def test_seeds_are_reported_and_done_ones_are_not_trained_again(recipe, tmp_path):
    from twinvec.training.seeds import SeedsFinished, SeedStarted, run_seeds

    recipe = with_settings(recipe, epochs=1)
    events = list(run_seeds(recipe, tmp_path / "model", 3))
    finished = events[-1]
    assert isinstance(finished, SeedsFinished) and finished.seeds == (0, 1, 2)
    spread = finished.spreads[0]
    ends = [event.scores[0].value for event in events if isinstance(event, Finished)]
    assert list(spread.values) == ends
    assert spread.mean == pytest.approx(np.mean(ends)) and spread.deviation == pytest.approx(np.std(ends, ddof=1))
    assert_same_bits(tmp_path / "model", tmp_path / f"model.seeds/seed-{int(np.argmax(ends))}")
    assert f"{spread.mean:.2f} ± {spread.deviation:.2f}" in (tmp_path / "model/README.md").read_text()
    card = (tmp_path / "model/README.md").read_text()
    assert 'twinvec.load("model")' in card and "seed-" not in card

    def done(target):
        again = run_seeds(recipe, target, 3, RunOptions(force=True))
        return [event.is_done for event in again if isinstance(event, SeedStarted)]

    assert done(tmp_path / "model") == [True, True, True]
    write_nli(tmp_path / "nli.tsv", seed=4)
    assert done(tmp_path / "model") == [False, False, False]


def test_leftovers_of_another_recipe_are_not_used(recipe, tmp_path):
    """The start model of another recipe was reused: the result had layer 0, while its recipe said 2."""
    small = lambda layer: replace(recipe, model=replace(recipe.model, layers=(layer,)))  # noqa: E731
    events = run_recipe(small(0), tmp_path / "model")
    next(events)  # stopped before its first step was saved
    events.close()
    (tmp_path / "model.run/checkpoint.safetensors").unlink(missing_ok=True)
    run(small(2), tmp_path / "model")
    run(small(2), tmp_path / "other")
    assert_same_bits(tmp_path / "other", tmp_path / "model")
    assert not (tmp_path / "model.run").exists()


def test_force_clears_all_that_another_recipe_left(recipe, tmp_path):
    small = lambda layer: replace(recipe, model=replace(recipe.model, layers=(layer,)))  # noqa: E731
    stopped_after(small(0), tmp_path / "model", 3)
    with pytest.raises(TrainingError, match=r"another recipe: it has layers = \[0\] instead of layers = \[2\]"):
        run(small(2), tmp_path / "model")
    run(small(2), tmp_path / "model", force=True)
    run(small(2), tmp_path / "other")
    assert_same_bits(tmp_path / "other", tmp_path / "model")


def test_a_checkpoint_from_another_run_folder_is_refused(recipe, tmp_path):
    stopped_after(recipe, tmp_path / "model", 3)
    stopped_after(with_settings(recipe, seed=9), tmp_path / "other", 3)
    (tmp_path / "other.run/checkpoint.safetensors").replace(tmp_path / "model.run/checkpoint.safetensors")
    with pytest.raises(TrainingError, match="another recipe: its checkpoint changed"):
        run(recipe, tmp_path / "model")


DAMAGES = {
    "empty": lambda whole: b"",
    "cut": lambda whole: whole[: len(whole) // 2],
    "noise": lambda whole: b"\xff" * 40,
    "other tensors": lambda whole: _safetensors({"step": 1, "progress": {}}),
    "a wrong step": lambda whole: _safetensors({"step": -1, "progress": {}}),
    "other progress": lambda whole: _safetensors({"step": 1, "progress": {"unheard": "of"}}),
    "no progress": lambda whole: _safetensors([]),
    "lines of other things": lambda whole: b'{"step": "x"}\n[]\n',
    "nested": lambda whole: b"[" * 100_000 + b"\n",
}


def _safetensors(progress):
    header = json.dumps({"__metadata__": {"progress": json.dumps(progress)}}).encode()
    return len(header).to_bytes(8, "little") + header


def test_a_damaged_run_folder_raises_a_twinvec_error(recipe, tmp_path):
    recipe = with_settings(recipe, epochs=1)
    stopped_after(recipe, tmp_path / "model", 5)
    (tmp_path / "model.run").rename(tmp_path / "kept")
    for name, damage in DAMAGES.items():
        for file in ("checkpoint.safetensors", "identity.json", "log.jsonl"):
            shutil.copytree(tmp_path / "kept", tmp_path / "model.run")
            path = tmp_path / "model.run" / file
            path.write_bytes(damage(path.read_bytes()))
            events = run_recipe(recipe, tmp_path / "model")
            try:
                next(events), next(events)
            except TwinvecError as error:
                assert file in str(error) or "another recipe" in str(error), (name, file)
            else:
                assert file == "log.jsonl" and name not in ("lines of other things", "nested"), (name, file)
            events.close()
            shutil.rmtree(tmp_path / "model.run")


def test_damaged_best_weights_raise_a_twinvec_error(recipe, tmp_path):
    recipe = with_settings(recipe, epochs=1)
    stopped_after(recipe, tmp_path / "model", 7)
    training = Namespace(network=torch.nn.Linear(2, 2))
    for damage in DAMAGES.values():
        path = tmp_path / "model.run/best.safetensors"
        whole = path.read_bytes()
        path.write_bytes(damage(whole))
        with pytest.raises(TrainingError, match=r"best\.safetensors"):
            load_weights(path, training)
        path.write_bytes(whole)
