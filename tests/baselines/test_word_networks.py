"""InferSent and DAN without torch: the same vectors as an independent computation, and what is refused."""

import json
import logging
import shutil

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from safetensors.numpy import load_file, save_file

import twinvec
from twinvec.baselines.word_networks import DanEmbedder, InferSentEmbedder, bigram_rows, write_word_network
from twinvec.baselines.word_vectors import convert_word_vectors
from twinvec.cluster import KMeansSettings
from twinvec.embedder import as_embedder
from twinvec.errors import (
    InputError,
    ModelFolderError,
    ModelNotFoundError,
    TwinvecError,
    UnknownNameError,
    WeightsError,
)

WIDTH, HIDDEN, BUCKETS = 6, 8, 50
WORDS = ["the", "cat", "dog", "sits", "runs", "rain", "do", "n't", "a", "well-known"]
RNG = np.random.default_rng(0)
TABLE = {word: RNG.standard_normal(WIDTH).astype(np.float32) for word in WORDS}
TEXTS = ["The cat sits.", "dog", "A dog runs, the cat sits; rain!", "Don't run", "", "zebra", "the the the"]


def random(*shape):
    return (RNG.standard_normal(shape) / 2).astype(np.float32)


def infersent_weights():
    shapes = {"weight_ih": (4 * HIDDEN, WIDTH), "weight_hh": (4 * HIDDEN, HIDDEN)}
    shapes |= dict.fromkeys(("bias_ih", "bias_hh"), (4 * HIDDEN,))
    return {f"{name}_l0{way}": random(*shape) for way in ("", "_reverse") for name, shape in shapes.items()}


def dan_weights():
    return {
        "bigrams": random(BUCKETS, WIDTH),
        "layers.0.weight": random(HIDDEN, WIDTH),
        "layers.0.bias": random(HIDDEN),
        "layers.1.weight": random(HIDDEN, HIDDEN),
        "layers.1.bias": random(HIDDEN),
    }


KINDS = {
    "infersent": (InferSentEmbedder, 2 * HIDDEN, infersent_weights()),
    "dan": (DanEmbedder, HIDDEN, dan_weights()),
}


@pytest.fixture(scope="module")
def words(tmp_path_factory):
    root = tmp_path_factory.mktemp("words")
    lines = "".join(f"{word} {' '.join(map(str, vector.tolist()))}\n" for word, vector in TABLE.items())
    (root / "vectors.txt").write_text(lines)
    return convert_word_vectors(root / "vectors.txt", root / "words")


@pytest.fixture(scope="module")
def folders(words, tmp_path_factory):
    made = {}
    for kind, (_, width, weights) in KINDS.items():
        made[kind] = tmp_path_factory.mktemp(kind)
        write_word_network(made[kind], kind, words, weights, width=width)
    return made


@pytest.fixture(params=KINDS)
def kind(request):
    return request.param


@pytest.fixture
def folder(folders, kind, tmp_path):
    return shutil.copytree(folders[kind], tmp_path / "copy")


def known(words, text):
    return words.token_rows([text])[0]


def lstm(weights, states, way):
    """An LSTM step by step, in torch's order of gates: input, forget, cell, output."""
    w, u, b, c = (weights[f"{name}_l0{way}"] for name in ("weight_ih", "weight_hh", "bias_ih", "bias_hh"))
    hidden, cell, found = np.zeros(HIDDEN), np.zeros(HIDDEN), []
    for state in states:
        gates = np.split(w @ state + b + u @ hidden + c, 4)
        enter, forget, leave = (1 / (1 + np.exp(-gates[index])) for index in (0, 1, 3))
        cell = forget * cell + enter * np.tanh(gates[2])
        hidden = leave * np.tanh(cell)
        found.append(hidden)
    return np.stack(found)


def by_hand(kind, words, text):
    _, width, weights = KINDS[kind]
    ids = known(words, text)
    if not len(ids):
        return np.zeros(width)
    states = words.vectors[ids].astype(np.float64)
    if kind == "infersent":
        ways = lstm(weights, states, ""), lstm(weights, states[::-1], "_reverse")
        return np.concatenate([each.max(axis=0) for each in ways])
    buckets = [int(bigram_rows(ids[i : i + 2], np.array([2]), BUCKETS)[0]) for i in range(len(ids) - 1)]
    mean = np.concatenate([states, weights["bigrams"][buckets]]).mean(axis=0)
    for layer in (0, 1):
        mean = np.tanh(weights[f"layers.{layer}.weight"] @ mean + weights[f"layers.{layer}.bias"])
    return mean


def test_vectors_are_those_of_a_plain_computation(folders, kind, words):
    found = KINDS[kind][0](folders[kind]).embed(TEXTS)
    assert found.dtype == np.float32
    np.testing.assert_allclose(found, [by_hand(kind, words, text) for text in TEXTS], atol=1e-6)


def test_infersent_has_the_vectors_of_torch(folders, words):
    torch = pytest.importorskip("torch")
    module = torch.nn.LSTM(WIDTH, HIDDEN, bidirectional=True)
    module.load_state_dict({name: torch.from_numpy(array) for name, array in KINDS["infersent"][2].items()})
    for text, vector in zip(TEXTS, InferSentEmbedder(folders["infersent"]).embed(TEXTS), strict=True):
        ids = known(words, text)
        if len(ids):
            states = module(torch.from_numpy(words.vectors[ids]))[0].amax(dim=0).detach().numpy()
            np.testing.assert_allclose(vector, states, atol=1e-6)


@settings(max_examples=30, deadline=None)
@given(st.lists(st.lists(st.sampled_from([*WORDS, "zebra"]), max_size=40), max_size=30))
def test_a_vector_does_not_depend_on_the_other_texts(folders, texts):
    joined = [" ".join(text) for text in texts]
    for name, (kind, width, _) in KINDS.items():
        embedder = kind(folders[name])
        found = embedder.embed(joined)
        assert found.shape == (len(texts), width) and np.isfinite(found).all()
        for text, vector in zip(joined, found, strict=True):
            np.testing.assert_allclose(embedder.embed([text])[0], vector, atol=1e-6)


def test_max_pooling_ignores_padding(folders, words):
    """With a bias that makes all states negative, a padded zero would be the maximum."""
    weights = dict(KINDS["infersent"][2])
    for way in ("", "_reverse"):
        bias = np.zeros((4, HIDDEN), dtype=np.float32)
        bias[2] = -20  # the cell's input is -1
        weights[f"bias_ih_l0{way}"] = bias.reshape(-1)
    target = folders["infersent"].parent / "negative"
    target.mkdir()
    write_word_network(target, "infersent", words, weights, width=2 * HIDDEN)
    found = InferSentEmbedder(target).embed(["dog", "the cat sits the cat sits the cat sits"])
    assert (found < 0).all()


def test_texts_without_a_known_word_are_zero_counted_and_logged_once(folders, kind, caplog):
    embedder = KINDS[kind][0](folders[kind])
    with caplog.at_level(logging.WARNING):
        found = embedder.embed(["", "zebra", "...", "cat"])
        embedder.embed(["\u3000"])
    assert (found[:3] == 0).all() and found[3].any()
    assert embedder.n_empty == 4
    assert len(caplog.records) == 1 and "3 of 4 texts have no word" in caplog.text
    assert embedder.embed([]).shape == (0, embedder.width)


def test_a_bigram_depends_on_the_order_of_its_words_and_stays_inside_its_text():
    ids = np.array([1, 2, 2, 1], dtype=np.int32)
    one, other = bigram_rows(ids, np.array([2, 2]), 10**6)
    assert one != other
    assert bigram_rows(ids, np.array([1, 1, 1, 1]), 10).shape == (0,)
    many = bigram_rows(np.arange(100_001, dtype=np.int32), np.array([100_001]), 64)
    assert np.bincount(many, minlength=64).min() > 1300  # of 1,562 on average


@pytest.mark.parametrize("stored", ["float32", "int8"])
def test_all_words_are_written_and_int8_is_close(folders, kind, words, tmp_path, stored):
    cls, width, weights = KINDS[kind]
    target = tmp_path / "made"
    target.mkdir()
    write_word_network(target, kind, words, weights, width=width, stored=stored)
    found = cls(target)
    assert found.words.words == WORDS
    assert np.array_equal(found.words.vectors, words.vectors)
    exact = cls(folders[kind]).embed(TEXTS)
    if stored == "float32":
        assert np.array_equal(found.embed(TEXTS), exact)
    else:
        np.testing.assert_allclose(found.embed(TEXTS), exact, atol=0.05)


def test_the_identity_is_that_of_the_content(folder, folders, kind):
    cls = KINDS[kind][0]
    assert cls(folder).identity == cls(folders[kind]).identity
    weights = load_file(folder / "model.safetensors")
    name = next(iter(weights))
    save_file(weights | {name: weights[name] + 1}, folder / "model.safetensors")
    assert cls(folder).identity != cls(folders[kind]).identity


def test_the_folder_works_as_a_model(folder, kind):
    assert isinstance(as_embedder(folder), KINDS[kind][0])
    with pytest.raises(InputError, match="--precision"):
        as_embedder(folder, {"precision": "int8"})
    texts = ["the cat sits", "rain", "the dog runs"]
    assert twinvec.search_texts("the cat sits", texts, 1, model=str(folder))[0].row == 0
    assert len(twinvec.cluster_texts(texts, KMeansSettings(n_clusters=2), model=folder).labels) == 3
    rows = dict(twinvec.inspect_model(folder).rows())
    assert rows["kind"] == kind and rows["words"] == str(len(WORDS))
    with pytest.raises(ModelFolderError, match="not a sentence model"):
        twinvec.load(folder)


def rewrite(folder, change):
    file = folder / "embedder.json"
    file.write_text(json.dumps(change(json.loads(file.read_text()))))


def without(name):
    def remove(folder):
        weights = load_file(folder / "model.safetensors")
        chosen = next(each for each in weights if each.startswith(name))
        weights.pop(chosen)
        save_file(weights, folder / "model.safetensors")

    return remove


def not_finite(folder):
    weights = load_file(folder / "model.safetensors")
    name = next(iter(weights))
    save_file(weights | {name: weights[name] * np.nan}, folder / "model.safetensors")


DAMAGE = {
    "no width": lambda folder: rewrite(folder, lambda about: {"kind": about["kind"]}),
    "another width": lambda folder: rewrite(folder, lambda about: about | {"width": 2 * about["width"]}),
    "an odd width": lambda folder: rewrite(folder, lambda about: about | {"width": 7}),
    "a huge width": lambda folder: rewrite(folder, lambda about: about | {"width": 10**9}),
    "no weights": lambda folder: (folder / "model.safetensors").unlink(),
    "no words": lambda folder: shutil.rmtree(folder / "words"),
    "cut weights": lambda folder: (folder / "model.safetensors").write_bytes(b"\x08"),
    "a weight less": without(""),
    "not finite": not_finite,
}


@pytest.mark.parametrize("damage", DAMAGE.values(), ids=DAMAGE)
def test_a_malformed_folder_is_refused(folder, kind, damage):
    damage(folder)
    with pytest.raises(TwinvecError) as caught:
        as_embedder(folder)
    assert str(folder) in str(caught.value)


def test_an_unknown_kind_is_refused(folder):
    rewrite(folder, lambda about: about | {"kind": "word2vec"})
    with pytest.raises(UnknownNameError, match="infersent"):
        as_embedder(folder)


def test_the_weights_of_the_other_kind_are_refused(folders, tmp_path):
    for own, other in (("infersent", "dan"), ("dan", "infersent")):
        mixed = shutil.copytree(folders[own], tmp_path / own)
        shutil.copyfile(folders[other] / "model.safetensors", mixed / "model.safetensors")
        with pytest.raises(WeightsError, match="lacks the weights"):
            as_embedder(mixed)


def test_a_changed_file_is_noticed(folder, kind):
    embedder = KINDS[kind][0](folder)
    rewrite(folder, lambda about: about | {"words": 1})
    with pytest.raises(TwinvecError, match="changed"):
        _ = embedder.identity


def test_a_missing_folder_is_not_found(tmp_path):
    with pytest.raises(ModelNotFoundError):
        as_embedder(tmp_path / "none")
