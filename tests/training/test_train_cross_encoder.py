"""Training of cross-encoders: losses against a plain computation, saved folders, resume, dev scores, and bad input."""

from __future__ import annotations

import json
import random
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="training needs the extra 'train'")
transformers = pytest.importorskip("transformers", reason="training needs the extra 'train'")

import twinvec  # noqa: E402
from tiny import write_tiny_classifier, write_tiny_model  # noqa: E402
from training import (  # noqa: E402
    LABELS,
    assert_same_bits,
    run,
    sentence,
    sts_source,
    with_settings,
    write_nli,
    write_pairs,
    write_sts,
)
from twinvec.data.examples import read_examples  # noqa: E402
from twinvec.data.roles import DataSource, guess_source  # noqa: E402
from twinvec.errors import InputError, TwinvecError, UnknownNameError  # noqa: E402
from twinvec.metrics import spearman  # noqa: E402
from twinvec.model.classifier import HEADS  # noqa: E402
from twinvec.training.loop import StepReport  # noqa: E402
from twinvec.training.networks.cross_encoder import HEAD_FUNCTIONS  # noqa: E402
from twinvec.training.networks.pairs import N_OTHERS, _others  # noqa: E402
from twinvec.training.objectives import PAIR_OBJECTIVES  # noqa: E402
from twinvec.training.objectives.scores import RankedScoresObjective  # noqa: E402
from twinvec.training.prepare import prepare, read_inputs  # noqa: E402
from twinvec.training.processes import ALONE, Processes  # noqa: E402
from twinvec.training.recipe import DataPart, DevPart, ModelPart, Recipe, TrainSettings  # noqa: E402
from twinvec.training.recipe_file import read_recipe  # noqa: E402
from twinvec.training.report import Finished  # noqa: E402
from twinvec.training.run import RunOptions, run_recipe  # noqa: E402


def write_margins(path: Path, n: int = 24) -> Path:
    rng = random.Random(3)
    rows = [f"{sentence(rng)}\t{sentence(rng)}\t{sentence(rng)}\t{rng.uniform(-8, 8):.3f}" for _ in range(n)]
    path.write_text("\n".join(["anchor\tpositive\tnegative\tmargin", *rows]) + "\n")
    return path


def write_marks(path: Path, n: int = 24) -> Path:
    rng = random.Random(4)
    rows = [f"{sentence(rng)}\t{sentence(rng)}\t{i % 2}" for i in range(n)]
    path.write_text("\n".join(["text1\ttext2\tlabel", *rows]) + "\n")
    return path


def write_ranked(path: Path, n: int = 24) -> Path:
    """Anchors with positives only; the first two share their anchor."""
    rng = random.Random(5)
    rows = [(sentence(rng), sentence(rng)) for _ in range(n)]
    rows[1] = (rows[0][0], rows[1][1])
    path.write_text("\n".join(["anchor\tpositive", *("\t".join(row) for row in rows)]) + "\n")
    return path


PARTS = {
    "bce": lambda root: DataPart(sts_source(write_sts(root / "sts.tsv")), "bce"),
    "bce of marks": lambda root: DataPart(DataSource(write_marks(root / "marks.tsv"), "marked_pairs"), "bce"),
    "mse": lambda root: DataPart(sts_source(write_sts(root / "sts.tsv")), "mse"),
    "softmax": lambda root: DataPart(DataSource(str(write_nli(root / "nli.tsv")), "labelled_pairs"), "softmax"),
    "ranking": lambda root: DataPart(DataSource(write_pairs(root / "pairs.tsv"), "ranked"), "ranking"),
    "ranking in batch": lambda root: DataPart(
        DataSource(write_ranked(root / "ranked.tsv"), "ranked"), "ranking", {"in_batch": 3}
    ),
    "margin": lambda root: DataPart(DataSource(write_margins(root / "margins.tsv"), "scored_triplets"), "margin"),
    "margin of a teacher": lambda root: DataPart(
        DataSource(write_pairs(root / "pairs.tsv"), "triplets"),
        "margin",
        teachers=(str(write_tiny_classifier(root / "teacher", seed=7)),),
    ),
}


def cross_recipe(root: Path, model: Path, name: str, **settings) -> Recipe:
    part = ModelPart(str(model), network="cross-encoder")
    return Recipe(part, (PARTS[name](root),), TrainSettings(**{"batch_size": 8, "learning_rate": 1e-3} | settings))


# --- losses and gradients


def texts_by_role(recipe: Recipe, rows) -> tuple[dict[str, list[str]], np.ndarray | None]:
    examples = read_examples(recipe.data[0].source)
    targets = None if examples.targets is None else torch.from_numpy(examples.targets[rows])
    return {role: np.array(examples.texts)[each[rows]].tolist() for role, each in examples.indices.items()}, targets


def plain_loss(name: str, folder: Path, recipe: Recipe, rows) -> tuple[torch.Tensor, torch.nn.Module]:
    """The loss of some examples, one pair at a time, with transformers' model and tokenizer."""
    model = transformers.AutoModelForSequenceClassification.from_pretrained(folder).eval()
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)

    def logits(first: str, second: str) -> torch.Tensor:
        inputs = tokenizer(first, second, return_tensors="pt", truncation="longest_first", max_length=40)
        return model(**inputs).logits[0]

    texts, target = texts_by_role(recipe, rows)
    losses = []
    for i in range(len(rows)):
        if name.startswith(("bce", "mse")):
            logit = logits(texts["text1"][i], texts["text2"][i])[0]
            share = torch.sigmoid(logit)
            entropy = -(target[i] * torch.log(share) + (1 - target[i]) * torch.log(1 - share))
            losses.append((logit - target[i]) ** 2 if name == "mse" else entropy)
        elif name == "softmax":
            losses.append(-torch.log_softmax(logits(texts["premise"][i], texts["hypothesis"][i]), 0)[target[i]])
        elif name.startswith("margin"):
            near, far = (logits(texts["anchor"][i], texts[role][i])[0] for role in ("positive", "negative"))
            losses.append((near - far - margin_of(recipe, texts, target, i)) ** 2)
        else:
            losses.append(plain_ranking(recipe, texts, i, logits))
    return torch.stack(losses).mean(), model


def margin_of(recipe: Recipe, texts, target, i: int) -> float:
    if target is not None:
        return float(target[i])
    teacher = twinvec.load_scorer(recipe.data[0].teachers[0], activation="none")
    near, far = (teacher.score([(texts["anchor"][i], texts[role][i])])[0] for role in ("positive", "negative"))
    return float(near) - float(far)


def plain_ranking(recipe: Recipe, texts, i: int, logits) -> torch.Tensor:
    anchor, positive, n = texts["anchor"], texts["positive"], len(texts["anchor"])
    others = [positive[(i + shift) % n] for shift in range(1, 1 + recipe.data[0].options.get("in_batch", 4))]
    right = {positive[j] for j in range(n) if anchor[j] == anchor[i]} | {anchor[i]}
    wrong = [text for text in [*texts.get("negative", [[]] * n)[i], *others] if text not in right]
    return -torch.log_softmax(torch.stack([logits(anchor[i], text)[0] for text in [positive[i], *wrong]]), 0)[0]


@pytest.mark.parametrize("name", PARTS)
def test_losses_and_gradients_equal_a_plain_computation(name, tiny_bert, tmp_path):
    recipe = cross_recipe(tmp_path, tiny_bert, name, dropout=0.0)
    prepared = prepare(read_inputs(recipe), work=tmp_path / "work", processes=ALONE)
    network, (task,) = prepared.network, prepared.tasks
    (tmp_path / "model").mkdir()
    network.write(tmp_path / "model")
    rows = np.arange(8)
    inputs, loss_of = task.batch(rows)
    loss = loss_of(network(inputs))
    loss.backward()
    expected, model = plain_loss(name, tmp_path / "model", recipe, rows)
    expected.backward()
    assert loss.item() == pytest.approx(expected.item(), rel=1e-5)
    mine = {**{f"bert.{key}": each for key, each in network.backbone.model.named_parameters()}}
    mine |= dict(network.head.named_parameters())
    theirs = dict(model.named_parameters())
    assert mine.keys() == theirs.keys()
    for key, parameter in mine.items():
        torch.testing.assert_close(parameter.grad, theirs[key].grad, rtol=1e-4, atol=2e-6, msg=key)


def test_every_objective_and_head_is_compared():
    assert {name.split(" ")[0] for name in PARTS} == set(PAIR_OBJECTIVES)
    assert set(HEAD_FUNCTIONS) == set(HEADS)


def test_copies_of_right_answers_are_left_out_of_the_ranking():
    texts = {"anchor": np.array([0, 0, 1]), "positive": np.array([5, 6, 7]), "negative": np.array([[5], [8], [1]])}
    found = RankedScoresObjective(in_batch=2).candidates(texts)
    assert found.second.tolist() == [[5, 5, 6, 7], [6, 8, 7, 5], [7, 1, 5, 6]]
    assert found.is_copy.tolist() == [
        [False, True, True, False],
        [False, False, False, True],
        [False, True, False, False],
    ]
    loss = RankedScoresObjective(in_batch=2)(torch.zeros(3, 4, 1), is_copy=torch.from_numpy(found.is_copy))
    assert loss.item() == pytest.approx(np.log([2, 3, 3]).mean())  # equal logits


@pytest.mark.parametrize("family", sorted(HEAD_FUNCTIONS))
def test_logits_equal_those_of_the_written_folder(family, tmp_path):
    """The head of each architecture, in training and in the engine; pairs of different lengths in one batch."""
    write_tiny_model(tmp_path / "start", family)
    recipe = cross_recipe(tmp_path, tmp_path / "start", "softmax", learning_rate=1e-2, max_steps=4, dropout=0.0)
    run(recipe, tmp_path / "model")
    pairs = [("the cat", "a dog runs"), ("", "rain"), ("a small red house", "the old man reads a book on the river")]
    scorer = twinvec.load_scorer(tmp_path / "model")
    again = replace(recipe, model=replace(recipe.model, start=str(tmp_path / "model")))
    prepared = prepare(read_inputs(again), work=tmp_path / "work", processes=ALONE)
    reader = prepared.tasks[0].reader
    reader.texts = [text for pair in pairs for text in pair]
    rows = reader.rows(np.arange(2 * len(pairs)).reshape(-1, 2))
    logits = scorer.score(pairs)
    assert np.abs(logits).max() > 0.05 and scorer.labels == LABELS
    np.testing.assert_allclose(prepared.network.score(rows), logits, atol=1e-5)


def test_the_token_types_of_the_second_text_are_trained(tiny_bert, tmp_path):
    recipe = cross_recipe(tmp_path, tiny_bert, "bce")
    task = prepare(read_inputs(recipe), work=tmp_path, processes=ALONE).tasks[0]
    inputs, _ = task.batch(np.array([0]))
    assert inputs[0].types.tolist() == sorted(inputs[0].types.tolist()) and set(inputs[0].types.tolist()) == {0, 1}


# --- runs


def test_a_run_learns_and_its_folder_gives_the_same_scores_everywhere(tiny_bert, tmp_path):
    recipe = cross_recipe(tmp_path, tiny_bert, "bce", epochs=30, learning_rate=3e-3)
    recipe = replace(recipe, dev=DevPart(recipe.data[0].source, every=50))
    *_, finished = run(recipe, tmp_path / "model")
    assert isinstance(finished, Finished) and finished.scores[0].value > 60
    assert finished.scores[0].protocol == "Spearman x 100 of score"
    scorer = twinvec.load_scorer(tmp_path / "model")
    rows = [line.split("\t") for line in (tmp_path / "sts.tsv").read_text().splitlines()[1:]]
    pairs = [(left, right) for _, left, right in rows]
    scores = scorer.score(pairs)
    assert scorer.activation == "sigmoid" and 0 < scores.min() < scores.max() < 1
    gold = np.array([float(score) for score, *_ in rows])
    assert 100 * spearman(scores, gold) == pytest.approx(finished.scores[0].value, abs=0.05)
    theirs = pytest.importorskip("sentence_transformers").CrossEncoder(str(tmp_path / "model"), device="cpu")
    np.testing.assert_allclose(theirs.predict(pairs), scores, atol=1e-5)


SAVED = {
    "bce": ("sigmoid", None, ("LABEL_0",)),
    "mse": ("none", "regression", ("LABEL_0",)),
    "softmax": ("none", "single_label_classification", LABELS),
    "ranking": ("sigmoid", None, ("LABEL_0",)),
    "margin": ("none", "regression", ("LABEL_0",)),
}


@pytest.mark.parametrize("name", SAVED)
def test_the_folder_says_how_to_read_the_logits(name, tiny_bert, tmp_path):
    run(cross_recipe(tmp_path, tiny_bert, name, max_steps=1), tmp_path / "model")
    scorer = twinvec.load_scorer(tmp_path / "model")
    config = json.loads((tmp_path / "model/config.json").read_text())
    assert (scorer.activation, config.get("problem_type"), scorer.labels) == SAVED[name]
    assert config["architectures"] == ["BertForSequenceClassification"] and scorer.max_tokens == 40
    assert not (tmp_path / "model/modules.json").exists()
    theirs = pytest.importorskip("sentence_transformers").CrossEncoder(str(tmp_path / "model"), device="cpu")
    pairs = [("the cat", "a dog"), ("rain", "the old man")]
    np.testing.assert_allclose(theirs.predict(pairs), scorer.score(pairs), atol=1e-5)


def stopped(recipe: Recipe, target: Path, *, after: int) -> None:
    with closing(run_recipe(recipe, target, RunOptions())) as events:
        for event in events:
            if isinstance(event, StepReport) and event.step == after:
                return


@pytest.mark.parametrize("name", PARTS)
def test_a_stopped_run_continues_with_the_same_bits(name, tiny_bert, tmp_path):
    recipe = cross_recipe(tmp_path, tiny_bert, name, max_steps=5, epochs=3)
    run(recipe, tmp_path / "whole")
    stopped(recipe, tmp_path / "parts", after=2)
    events = run(recipe, tmp_path / "parts")
    assert [event.step for event in events if isinstance(event, StepReport)] == [3, 4, 5]
    assert_same_bits(tmp_path / "whole", tmp_path / "parts")


def test_another_seed_gives_another_head_and_the_same_seed_the_same_bits(tiny_bert, tmp_path):
    recipe = cross_recipe(tmp_path, tiny_bert, "bce", max_steps=1)
    for name, seed in (("one", 0), ("same", 0), ("other", 1)):
        run(with_settings(recipe, seed=seed), tmp_path / name)
    assert_same_bits(tmp_path / "one", tmp_path / "same")
    with pytest.raises(AssertionError):
        assert_same_bits(tmp_path / "one", tmp_path / "other")


def test_cached_gradients_and_two_processes_share_the_pairs(tiny_bert, tmp_path):
    recipe = cross_recipe(tmp_path, tiny_bert, "ranking", max_steps=4, dropout=0.0)
    whole, cached = (
        [event.loss for event in run(each, tmp_path / name) if isinstance(event, StepReport)]
        for name, each in (("whole", recipe), ("cached", with_settings(recipe, cached_texts=3)))
    )
    assert cached == pytest.approx(whole, abs=1e-4)
    task = prepare(read_inputs(recipe), work=tmp_path, processes=ALONE).tasks[0]
    inputs, _ = task.batch(np.arange(8))
    lengths = np.array([len(each) for each in inputs])
    shares = [Processes(rank, 2).share(lengths).tolist() for rank in range(2)]
    assert sorted(shares[0] + shares[1]) == list(range(len(inputs)))


def test_bfloat16_and_int8_storage(tiny_bert, tmp_path):
    recipe = cross_recipe(tmp_path, tiny_bert, "bce", max_steps=3, precision="bfloat16")
    run(replace(recipe, model=replace(recipe.model, stored="int8")), tmp_path / "small")
    run(recipe, tmp_path / "model")
    pairs = [("the cat", "a dog"), ("rain", "the old man")]
    small, whole = (twinvec.load_scorer(tmp_path / name).score(pairs) for name in ("small", "model"))
    np.testing.assert_allclose(small, whole, atol=0.02)
    run(replace(recipe, model=replace(recipe.model, start=str(tmp_path / "small"))), tmp_path / "next")


def test_the_card_shows_how_to_score(tiny_bert, tmp_path):
    recipe = cross_recipe(tmp_path, tiny_bert, "softmax", max_steps=2)
    recipe = replace(recipe, dev=DevPart(recipe.data[0].source, every=1))
    run(recipe, tmp_path / "model")
    card = (tmp_path / "model/README.md").read_text()
    assert 'twinvec.load_scorer("model")' in card and "A cross-encoder" in card and "accuracy, %" in card
    assert "pipeline_tag: text-classification" in card and 'network = "cross-encoder"' in card
    assert read_recipe(tmp_path / "model/training/recipe.toml") == recipe


# --- start models


def test_a_head_with_the_same_labels_is_kept_in_the_order_of_the_data(tmp_path):
    names = {"0": "neutral", "1": "contradiction", "2": "entailment"}
    start = write_tiny_classifier(tmp_path / "start", n_labels=3, config={"id2label": names})
    recipe = cross_recipe(tmp_path, start, "softmax", max_steps=1, learning_rate=0.0)
    run(recipe, tmp_path / "model")
    pairs = [("the cat", "a dog"), ("rain", "the old man")]
    before, after = twinvec.load_scorer(start), twinvec.load_scorer(tmp_path / "model")
    assert after.labels == LABELS
    np.testing.assert_allclose(after.score(pairs), before.score(pairs)[:, [1, 2, 0]], atol=1e-6)


def test_a_head_with_other_labels_is_replaced_with_a_warning(tmp_path, caplog):
    start = write_tiny_classifier(tmp_path / "start", n_labels=3)
    run(cross_recipe(tmp_path, start, "softmax", max_steps=1), tmp_path / "model")
    assert "has other labels (label 0, label 1, label 2)" in caplog.text
    assert twinvec.load_scorer(tmp_path / "model").labels == LABELS


def test_training_starts_from_a_bare_backbone_and_from_fewer_layers(tiny_folders, tmp_path):
    transformers.AutoModel.from_pretrained(tiny_folders["bert"]).save_pretrained(tmp_path / "plain")
    for name in ("tokenizer.json", "tokenizer_config.json"):
        (tmp_path / "plain" / name).write_bytes((tiny_folders["bert"] / name).read_bytes())
    recipe = cross_recipe(tmp_path, tmp_path / "plain", "bce", max_steps=1)
    run(replace(recipe, model=replace(recipe.model, layers=(0, 2), max_tokens=20)), tmp_path / "model")
    scorer = twinvec.load_scorer(tmp_path / "model")
    assert scorer.max_tokens == 20 and scorer.classifier.folder.config["num_hidden_layers"] == 2


def test_pairs_that_are_cut_are_counted(tiny_bert, tmp_path, caplog):
    recipe = cross_recipe(tmp_path, tiny_bert, "bce", max_steps=1)
    run(replace(recipe, model=replace(recipe.model, max_tokens=12)), tmp_path / "model")
    lines = (tmp_path / "sts.tsv").read_text().splitlines()[1:]
    n_long = sum(len(line.split()) - 1 + 3 > 12 for line in lines)
    assert f"sts.tsv: {n_long} of {len(lines)} pairs have more than 12 tokens and are truncated." in caplog.text


# --- dev scores


def dev_of(root: Path, model: Path, source: DataSource, name: str = "bce"):
    recipe = replace(cross_recipe(root, model, name), dev=DevPart(source))
    prepared = prepare(read_inputs(recipe), work=root, processes=ALONE)
    return prepared.dev, prepared.network


def test_dev_scores_equal_those_of_the_scorer(tmp_path):
    start = write_tiny_classifier(tmp_path / "start")
    scorer = twinvec.load_scorer(start, activation="none")
    rows = [line.split("\t") for line in write_pairs(tmp_path / "pairs.tsv").read_text().splitlines()[1:]]
    near, far = (scorer.score([(row[0], row[column]) for row in rows]) for column in (1, 2))
    for kind, protocol in (
        ("triplets", "accuracy by score, %"),
        ("ranked", "first hit by score among its negatives, %"),
    ):
        dev, network = dev_of(tmp_path, start, DataSource(tmp_path / "pairs.tsv", kind))
        assert dev.protocol == protocol and dev.score(network) == pytest.approx(100 * np.mean(near > far))


def test_without_negatives_the_own_positive_is_ranked_among_others(tmp_path):
    start = write_tiny_classifier(tmp_path / "start")
    source = DataSource(write_ranked(tmp_path / "ranked.tsv", n=40), "ranked")
    dev, network = dev_of(tmp_path, start, source)
    assert dev.protocol == "first hit by score among 20 other positives, %"
    rows = [line.split("\t") for line in (tmp_path / "ranked.tsv").read_text().splitlines()[1:]]
    scorer, hits = twinvec.load_scorer(start, activation="none"), 0
    for row, others in zip(rows, _others(len(rows)), strict=True):
        wrong = [rows[i][1] for i in others if rows[i][0] != row[0]]
        own, *rest = scorer.score([(row[0], text) for text in [row[1], *wrong]])
        hits += own > max(rest)
    assert dev.score(network) == pytest.approx(100 * hits / len(rows))


@pytest.mark.parametrize("n", [2, 21, 50])
def test_other_positives_are_different_rows(n):
    found = _others(n)
    assert found.shape == (n, min(N_OTHERS, n - 1)) and np.array_equal(found, _others(n))
    for row, others in enumerate(found.tolist()):
        assert row not in others and len(set(others)) == len(others) and set(others) <= set(range(n))


def test_accuracy_matches_labels_by_name(tmp_path):
    names = dict(enumerate(LABELS))
    start = write_tiny_classifier(
        tmp_path / "start", n_labels=3, config={"id2label": {str(k): v for k, v in names.items()}}
    )
    source = DataSource(write_nli(tmp_path / "dev.tsv", seed=5), "labelled_pairs", labels=LABELS[::-1])
    dev, network = dev_of(tmp_path, start, source, "softmax")
    rows = [line.split("\t") for line in (tmp_path / "dev.tsv").read_text().splitlines()[1:]]
    guesses = twinvec.load_scorer(start).score([(row[1], row[2]) for row in rows]).argmax(axis=1)
    hits = [names[guess] == row[0] for guess, row in zip(guesses, rows, strict=True)]
    assert dev.score(network) == pytest.approx(100 * np.mean(hits))


def test_several_seeds_keep_the_best(tiny_bert, tmp_path):
    recipe = cross_recipe(tmp_path, tiny_bert, "bce", max_steps=3)
    recipe = replace(recipe, dev=DevPart(recipe.data[0].source, every=1))
    result = twinvec.train(recipe, tmp_path / "model", seeds=2)
    assert result.dev.value == max(result.seeds.spreads[0].values)
    assert twinvec.load_scorer(tmp_path / "model").activation == "sigmoid"


# --- bad input

WRONG = {
    "an objective of bi-encoders": ("scored_pairs", "cosine", {}, "objective of a cross-encoder: 'cosine'"),
    "an option of bi-encoders": ("ranked", "ranking", {"scale": 20.0}, "option of the objective 'ranking': 'scale'"),
    "features": ("labelled_pairs", "softmax", {"features": ["u"]}, "has no options, got 'features'"),
    "a wrong number of others": ("ranked", "ranking", {"in_batch": -1}, "in_batch must be a whole number"),
    "examples of another kind": ("triplets", "bce", {}, "requires scored_pairs or marked_pairs, got triplets"),
    "triplets without a teacher": ("triplets", "margin", {}, "at least one teacher for triplets"),
}


@pytest.mark.parametrize("case", WRONG)
def test_recipes_that_do_not_fit_are_refused(case):
    kind, objective, options, message = WRONG[case]
    with pytest.raises(TwinvecError, match=message):
        Recipe(ModelPart("x", network="cross-encoder"), (DataPart(DataSource("a.tsv", kind), objective, options),))


def test_settings_of_the_other_network_are_refused():
    part = DataPart(DataSource("a.tsv", "scored_pairs"), "bce")
    with pytest.raises(UnknownNameError, match="objective of a bi-encoder: 'bce'"):
        Recipe(ModelPart("x"), (part,))
    with pytest.raises(InputError, match="does not train shorter vectors"):
        Recipe(ModelPart("x", network="cross-encoder"), (replace(part, matryoshka=(8,)),))
    with pytest.raises(InputError, match="A cross-encoder has no pooling or static"):
        ModelPart("x", network="cross-encoder", pooling="mean")
    with pytest.raises(UnknownNameError, match="network 'cross'"):
        ModelPart("x", network="cross")
    labels = DevPart(DataSource("a.tsv", "labelled_pairs"))
    with pytest.raises(UnknownNameError, match="kind of dev examples of a bi-encoder: 'labelled_pairs'"):
        Recipe(ModelPart("x"), (replace(part, objective="cosine"),), dev=labels)


def refused(recipe: Recipe, tmp_path: Path, message: str) -> None:
    with pytest.raises(TwinvecError, match=message):
        run(recipe, tmp_path / "refused")


def test_ranking_needs_something_to_rank_against(tiny_bert, tmp_path):
    recipe = cross_recipe(tmp_path, tiny_bert, "ranking in batch")
    refused(with_settings(recipe, batch_size=1), tmp_path, "no negatives, .* a batch has 1 example.")
    alone = replace(recipe, data=(replace(recipe.data[0], options={"in_batch": 0}),))
    refused(alone, tmp_path, "in_batch is 0")


def test_data_sets_with_different_outputs_are_refused(tiny_bert, tmp_path):
    recipe = cross_recipe(tmp_path, tiny_bert, "bce")
    mixed = (*recipe.data, PARTS["softmax"](tmp_path))
    refused(replace(recipe, data=mixed), tmp_path, "different outputs")
    refused(replace(recipe, data=(*recipe.data, PARTS["mse"](tmp_path))), tmp_path, "bce sigmoid, mse none")
    events = run(
        replace(with_settings(recipe, max_steps=2), data=(*recipe.data, PARTS["ranking"](tmp_path))), tmp_path / "m"
    )
    assert isinstance(events[-1], Finished)


def test_dev_data_must_fit_the_outputs(tiny_bert, tmp_path):
    labelled = cross_recipe(tmp_path, tiny_bert, "softmax")
    scored = DevPart(sts_source(write_sts(tmp_path / "sts.tsv")))
    refused(replace(labelled, dev=scored), tmp_path, "needs one score per pair; this network has 3 labels")
    bce = cross_recipe(tmp_path, tiny_bert, "bce")
    refused(replace(bce, dev=DevPart(labelled.data[0].source)), tmp_path, "label in nli.tsv")
    one = tmp_path / "one.tsv"
    one.write_text("anchor\tpositive\na\tb\n")
    refused(replace(bce, dev=DevPart(DataSource(one, "ranked"))), tmp_path, "nothing to rank")


def test_start_models_that_cannot_be_cross_encoders_are_refused(tiny_bert, tmp_path):
    recipe = cross_recipe(tmp_path, tiny_bert, "bce")
    refused(replace(recipe, model=replace(recipe.model, special_tokens=("[CLS]",))), tmp_path, "all special tokens")
    refused(replace(recipe, model=replace(recipe.model, max_tokens=41)), tmp_path, "max_tokens must be from 5 to 40")
    start = write_tiny_classifier(tmp_path / "start")
    pruned = replace(recipe.model, start=str(start), layers=(0,))
    refused(replace(recipe, model=pruned), tmp_path, "cannot be pruned")
    refused(replace(recipe, model=replace(recipe.model, start="twinvec-static")), tmp_path, "static model")
    taught = cross_recipe(tmp_path, tiny_bert, "margin of a teacher")
    several = write_tiny_classifier(tmp_path / "several", n_labels=3)
    wrong = replace(taught, data=(replace(taught.data[0], teachers=(str(several),)),))
    refused(wrong, tmp_path, "returns 3 scores per pair")


def test_networks_without_training_are_refused(tiny_bert, tmp_path, monkeypatch):
    from twinvec.training import prepare as preparing

    monkeypatch.delitem(preparing.NETWORKS, "cross-encoder")
    refused(cross_recipe(tmp_path, tiny_bert, "bce"), tmp_path, "A cross-encoder cannot be trained yet")


@pytest.mark.parametrize(
    ("value", "message"), [("", "not a number"), ("nan", "not a number"), ("1e40", "margin is 1e"), ("inf", "inf")]
)
def test_margins_are_finite_numbers(tmp_path, value, message):
    path = tmp_path / "margins.tsv"
    path.write_text(f"anchor\tpositive\tnegative\tmargin\na\tb\tc\t-3\na\tb\tc\t{value}\n")
    with pytest.raises(InputError, match=f"line 3: .*{message}"):
        read_examples(DataSource(path, "scored_triplets"))


def test_triplets_with_margins_are_recognized(tmp_path):
    source = guess_source(write_margins(tmp_path / "margins.tsv"), {}, score_range=(0, 1))
    assert source.kind == "scored_triplets" and read_examples(source).targets.min() < 0


# --- the command


def test_the_commands_train_cross_encoders(tiny_bert, tmp_path):
    from click.testing import CliRunner

    from twinvec.cli.app import main

    files = {
        "sts": write_sts(tmp_path / "s.tsv"),
        "nli": write_nli(tmp_path / "n.tsv"),
        "ranking": write_pairs(tmp_path / "r.tsv"),
    }
    for command, file in files.items():
        common = ["-m", str(tiny_bert), "--network", "cross-encoder", "--max-steps", "1", "--dev", str(file)]
        result = CliRunner().invoke(main, ["train", command, str(file), *common, "-o", str(tmp_path / command)])
        assert result.exit_code == 0, result.output
        scorer = twinvec.load_scorer(tmp_path / command)
        assert scorer.labels == (LABELS if command == "nli" else ("LABEL_0",))
    wrong = [
        "train",
        "sts",
        str(files["sts"]),
        "--network",
        "cross-encoder",
        "--objective",
        "cosine",
        "-o",
        str(tmp_path / "x"),
    ]
    result = CliRunner().invoke(main, wrong)
    assert result.exit_code == 1 and "Choose from: bce, margin, mse, ranking, softmax" in result.output
