"""Training of networks over word vectors: gradients, what is written, resuming, and recipes that do not fit."""

from __future__ import annotations

import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from tiny import WORDS
from training import assert_same_bits, make_recipe, run, sts_source, weights, write_nli, write_pairs, write_sts
from twinvec.baselines.word_networks import bigram_rows
from twinvec.baselines.word_vectors import WordVectors, convert_word_vectors
from twinvec.data.roles import DataSource
from twinvec.embedder import as_embedder
from twinvec.errors import InputError, TwinvecError

torch = pytest.importorskip("torch", reason="training needs the extra 'train'")
for needed in ("transformers", "accelerate", "matplotlib"):
    pytest.importorskip(needed, reason="training needs the extra 'train'")

from twinvec.training.networks.words import DanNetwork, InferSentNetwork  # noqa: E402
from twinvec.training.recipe import DataPart, DevPart, ModelPart, Recipe, TrainSettings  # noqa: E402
from twinvec.training.recipe_file import read_recipe, recipe_as_toml  # noqa: E402
from twinvec.training.report import Finished, StepReport  # noqa: E402
from twinvec.training.run import RunOptions, run_recipe  # noqa: E402

WIDTH = 8
KINDS = ("infersent", "dan")
TEXTS = ["the cat", "a dog runs in the house", "water", "", "zzzz qqqq"]
FEATURES = {"features": ("u", "v", "|u-v|", "u*v")}


@pytest.fixture(scope="module")
def words(tmp_path_factory):
    root = tmp_path_factory.mktemp("vectors")
    rng = np.random.default_rng(0)
    names = [*dict.fromkeys(word.lower() for word in WORDS if word.isalpha()), "unseen", "never"]
    rows = (f"{word} {' '.join(f'{x:.4f}' for x in rng.standard_normal(WIDTH))}\n" for word in names)
    (root / "vectors.txt").write_text("".join(rows))
    return convert_word_vectors(root / "vectors.txt", root / "words")


def network(kind, words, **options):
    torch.manual_seed(0)
    if kind == "infersent":
        return InferSentNetwork(words, 6, **options)
    return DanNetwork(words, 6, n_buckets=20, **options)


def recipe_of(kind, folder, words, **settings):
    """Softmax on generated pairs over all four features, evaluated on generated scores."""
    made = make_recipe(folder, words.folder, **settings)
    extra = {"buckets": 40} if kind == "dan" else {}
    part = ModelPart(str(words.folder), network=kind, hidden=6, **extra)
    return replace(made, model=part, data=(replace(made.data[0], options=FEATURES),))


def losses(events):
    return [event.loss for event in events if isinstance(event, StepReport)]


ROWS = [np.array([0, 3, 1, 1]), np.array([], dtype=np.int64), np.array([2]), np.array([5, 4, 2, 0, 1, 3, 6])]


@pytest.mark.parametrize("trains_words", [False, True])
@pytest.mark.parametrize("kind", KINDS)
def test_gradients_are_those_of_finite_differences(kind, words, trains_words):
    made = network(kind, words, trains_words=trains_words, dropout=0.0).double()
    if not trains_words:
        made.look_up = lambda ids: torch.from_numpy(words.vectors[ids]).double()
    target = torch.linspace(-1, 1, 4 * made.width, dtype=torch.float64).reshape(4, -1)
    made.forward = lambda rows: _in_double(made, rows)
    parameters = dict(made.named_parameters())
    assert ("table.weight" in parameters) == trains_words

    def loss():
        return ((made(ROWS) - target) ** 2).sum()

    loss().backward()
    rng = np.random.default_rng(1)
    for name, values in parameters.items():
        flat, gradient = values.detach().view(-1), values.grad.view(-1)
        changed = np.flatnonzero(gradient.numpy())
        chosen = rng.choice(changed, min(len(changed), 6), replace=False)
        assert len(chosen), name
        for index in chosen:
            found = []
            with torch.no_grad():
                for step in (1e-6, -2e-6):
                    flat[index] += step
                    found.append(float(loss()))
                flat[index] += 1e-6
            assert (found[0] - found[1]) / 2e-6 == pytest.approx(float(gradient[index]), rel=1e-4, abs=1e-6), name


def _in_double(made, rows):
    vectors = torch.zeros(len(rows), made.width, dtype=torch.float64)
    texts = [index for index, row in enumerate(rows) if len(row)]
    return vectors.index_copy(0, torch.tensor(texts), made.vectors_of([rows[index] for index in texts]))


@pytest.mark.parametrize("kind", KINDS)
def test_a_vector_does_not_depend_on_the_other_texts_and_an_empty_one_is_zero(kind, words):
    made = network(kind, words).eval()
    together = made(ROWS).detach().numpy()
    for row, vector in zip(ROWS, together, strict=True):
        np.testing.assert_allclose(made([row]).detach().numpy()[0], vector, atol=1e-6)
        assert vector.any() == bool(len(row))
    np.testing.assert_allclose(made.encode(ROWS), together, atol=1e-6)


def test_word_dropout_leaves_out_whole_words_and_their_bigrams(words):
    made = network("dan", words, dropout=0.5)
    text = np.array([3, 1, 4, 5])
    with torch.no_grad():
        made.bigrams.uniform_(-1, 1)
        made.kept_words = lambda n: torch.tensor([1.0, 0.0, 1.0, 1.0])
        dropped = made([text])[0]
        made.kept_words = torch.ones
        shorter = made([np.array([3, 4, 5])])[0]  # has a bigram across the gap
        bigram = made.bigrams[bigram_rows(np.array([4, 5]), np.array([2]), 20)]
        states = torch.cat([made.look_up(np.array([3, 4, 5])), bigram]).mean(dim=0)
        for layer in made.layers:
            states = torch.tanh(layer(states))
    torch.testing.assert_close(dropped, states)
    assert not torch.allclose(shorter, states)


def test_dropout_is_only_for_training(words):
    made = network("dan", words, dropout=0.5)
    assert 0 < made.kept_words(1000).sum() < 1000
    made.eval()
    assert made.kept_words(1000).sum() == 1000


@pytest.mark.parametrize("kind", KINDS)
def test_a_run_learns_and_its_folder_gives_the_vectors_of_the_network(kind, words, tmp_path):
    recipe = recipe_of(kind, tmp_path, words, dev=False, epochs=40, learning_rate=2e-2)
    events = run(recipe, tmp_path / "model")
    assert np.mean(losses(events)[-8:]) < 0.9 * np.mean(losses(events)[:8])
    embedder = as_embedder(tmp_path / "model")
    stored = weights(tmp_path / "model")
    written = WordVectors(tmp_path / "model/words")
    if kind == "infersent":
        made = InferSentNetwork(written, 6)
    else:
        made = DanNetwork(written, 6, n_buckets=40, trains_words=False)
    names = {f"lstm.{name}" if kind == "infersent" else name: torch.from_numpy(each) for name, each in stored.items()}
    made.load_state_dict(names)
    ids, counts = embedder.words.token_rows(TEXTS)
    rows = np.split(ids.astype(np.int64), np.cumsum(counts)[:-1])
    found = embedder.embed(TEXTS)
    np.testing.assert_allclose(found, made.encode(rows), atol=1e-5)
    assert (found[3:] == 0).all() and np.isfinite(found).all()
    card = (tmp_path / "model/README.md").read_text()
    assert "word vectors" in card and "twinvec.load" not in card and "sentence-transformers" not in card


@pytest.mark.parametrize("kind", KINDS)
def test_words_that_are_not_in_the_data_keep_their_vectors(kind, words, tmp_path):
    recipe = recipe_of(kind, tmp_path, words, dev=False)
    trained = replace(recipe, model=replace(recipe.model, train_words=True))
    fixed = replace(recipe, model=replace(recipe.model, train_words=False))
    run(trained, tmp_path / "trained")
    run(fixed, tmp_path / "fixed")
    changed, same = (WordVectors(tmp_path / name / "words") for name in ("trained", "fixed"))
    assert changed.words == same.words == words.words
    assert np.array_equal(same.vectors, words.vectors)
    rows = words.rows_of(["unseen", "never"])
    assert np.array_equal(changed.vectors[rows], words.vectors[rows])
    seen = np.setdiff1d(np.arange(words.n_words), rows)
    assert (changed.vectors[seen] != words.vectors[seen]).any()


@pytest.mark.parametrize("kind", KINDS)
def test_an_interrupted_run_ends_with_the_same_bits(kind, words, tmp_path):
    recipe = recipe_of(kind, tmp_path, words, dropout=0.2)
    recipe = replace(recipe, model=replace(recipe.model, train_words=True))
    run(recipe, tmp_path / "whole")
    for step in (3, 8):
        events = run_recipe(recipe, tmp_path / "parts", RunOptions())
        for event in events:
            if isinstance(event, StepReport) and event.step == step:
                events.close()
                break
    assert isinstance(run(recipe, tmp_path / "parts")[-1], Finished)
    assert_same_bits(tmp_path / "whole", tmp_path / "parts")
    one, other = (tmp_path / name / "words/vectors.npy" for name in ("whole", "parts"))
    assert one.read_bytes() == other.read_bytes()
    assert as_embedder(tmp_path / "whole").identity == as_embedder(tmp_path / "parts").identity


KILLED = """
import sys
from pathlib import Path
from twinvec.training.recipe_file import read_recipe
from twinvec.training.run import RunOptions, run_recipe
for event in run_recipe(read_recipe(Path(sys.argv[1])), Path(sys.argv[2]), RunOptions(checkpoint_every=2)):
    print(getattr(event, "step", 0), flush=True)
"""


@pytest.mark.parametrize("kind", KINDS)
def test_a_killed_run_ends_with_the_same_bits(kind, words, tmp_path):
    recipe = recipe_of(kind, tmp_path, words)
    (tmp_path / "recipe.toml").write_text(recipe_as_toml(recipe))
    run(read_recipe(tmp_path / "recipe.toml"), tmp_path / "whole")
    command = [sys.executable, "-c", KILLED, str(tmp_path / "recipe.toml"), str(tmp_path / "killed")]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        for line in process.stdout:
            if int(line) >= 5:
                process.send_signal(signal.SIGKILL)
                break
    assert (tmp_path / "killed.run").exists() and not (tmp_path / "killed").exists()
    run(read_recipe(tmp_path / "recipe.toml"), tmp_path / "killed")
    assert_same_bits(tmp_path / "whole", tmp_path / "killed")


@pytest.mark.parametrize("kind", KINDS)
def test_a_seed_decides_the_weights(kind, words, tmp_path):
    recipe = recipe_of(kind, tmp_path, words, dev=False, max_steps=2)
    for name, seed in (("one", 0), ("same", 0), ("other", 1)):
        run(replace(recipe, training=replace(recipe.training, seed=seed)), tmp_path / name)
    assert_same_bits(tmp_path / "one", tmp_path / "same")
    one, other = weights(tmp_path / "one"), weights(tmp_path / "other")
    assert any(not np.array_equal(one[name], other[name]) for name in one)


OBJECTIVES = {
    "triplet": ("triplets", {"margin": 0.5}),
    "ranking": ("ranked", {}),
    "cosine": ("scored_pairs", {}),
}


@pytest.mark.parametrize("objective", OBJECTIVES)
@pytest.mark.parametrize("kind", KINDS)
def test_other_objectives_train_the_same_network(kind, words, tmp_path, objective):
    """The triplet objective gives the model of Dor et al. (2018)."""
    examples, options = OBJECTIVES[objective]
    file = write_pairs(tmp_path / "pairs.tsv")
    source = DataSource(str(file), examples)
    if examples == "scored_pairs":
        source = sts_source(write_sts(tmp_path / "sts.tsv"))
    recipe = Recipe(
        ModelPart(str(words.folder), network=kind, hidden=6),
        (DataPart(source, objective, options),),
        TrainSettings(epochs=30, batch_size=8, learning_rate=1e-2),
        DevPart(DataSource(str(file), "triplets"), every=50),
    )
    events = run(recipe, tmp_path / "model")
    assert np.mean(losses(events)[-5:]) < np.mean(losses(events)[:5])
    assert as_embedder(tmp_path / "model").width == (12 if kind == "infersent" else 6)


def test_the_start_may_be_a_file_next_to_the_recipe(words, tmp_path, monkeypatch):
    monkeypatch.setenv("TWINVEC_CACHE", str(tmp_path / "cache"))
    (tmp_path / "vectors.txt").write_bytes((words.folder.parent / "vectors.txt").read_bytes())
    write_nli(tmp_path / "nli.tsv")
    lines = ["[model]", "network = 'dan'", "start = 'vectors.txt'", "hidden = 4", "[[data]]", "file = 'nli.tsv'"]
    (tmp_path / "recipe.toml").write_text("\n".join([*lines, "objective = 'softmax'"]))
    run(read_recipe(tmp_path / "recipe.toml"), tmp_path / "model")
    assert as_embedder(tmp_path / "model").words.words == words.words


def test_long_texts_are_cut(words, tmp_path, caplog):
    recipe = recipe_of("infersent", tmp_path, words, dev=False, max_steps=1)
    run(replace(recipe, model=replace(recipe.model, max_tokens=3)), tmp_path / "model")
    assert "have more than 3 tokens and are truncated" in caplog.text


@pytest.mark.parametrize("kind", KINDS)
def test_a_sentence_model_is_not_a_start_of_a_word_network(kind, tiny_bert, tmp_path):
    recipe = replace(make_recipe(tmp_path, tiny_bert), model=ModelPart(str(tiny_bert), network=kind))
    with pytest.raises(InputError, match="is not a folder or file of word vectors"):
        run(recipe, tmp_path / "model")
    assert not (tmp_path / "model.run").exists()


def test_word_vectors_and_word_networks_are_not_starts_of_a_bi_encoder(words, tmp_path):
    with pytest.raises(TwinvecError, match="is a folder of word-vectors, not a sentence model"):
        run(make_recipe(tmp_path, words.folder), tmp_path / "model")
    run(recipe_of("dan", tmp_path, words, dev=False, max_steps=1), tmp_path / "dan")
    with pytest.raises(TwinvecError, match="is a folder of dan, not a sentence model"):
        run(make_recipe(tmp_path, tmp_path / "dan"), tmp_path / "model")
    recipe = make_recipe(tmp_path, tmp_path)
    with pytest.raises(InputError, match="is not a folder or file of word vectors"):
        run(replace(recipe, model=ModelPart(str(tmp_path / "dan"), network="infersent")), tmp_path / "model")


WRONG = {
    "hidden is a setting of infersent and dan": {"hidden": 8},
    "train_words is a setting of infersent and dan": {"train_words": True},
    "buckets is a setting of dan": {"buckets": 8, "network": "infersent"},
    "buckets must be a whole number": {"buckets": 0, "network": "dan"},
    "hidden must be a whole number": {"hidden": 1.5, "network": "dan"},
    "train_words": {"train_words": "yes", "network": "dan"},
    "no pooling or static": {"pooling": "mean", "network": "dan"},
    "no layers, feed_forward or special_tokens": {"layers": [0], "network": "infersent"},
    "network": {"network": "infersnet"},
}


@pytest.mark.parametrize("message", WRONG)
def test_settings_that_do_not_fit_are_refused(message):
    with pytest.raises(TwinvecError, match=message):
        ModelPart("words", **WRONG[message])


@pytest.mark.parametrize("name", ["infersent", "dan"])
def test_the_shipped_recipes_are_valid(name):
    recipe = read_recipe(Path(__file__).parents[2] / f"recipes/{name}.toml")
    assert recipe.model.network == name and recipe.dev is not None
    assert all(part.options == FEATURES for part in recipe.data)
