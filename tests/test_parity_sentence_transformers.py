"""Our vectors and folders against sentence-transformers: real weights, and every module of the layout."""

from __future__ import annotations

import gzip
import json
import shutil
import warnings

import numpy as np
import pytest

import twinvec
from tiny import FAMILIES, WIDTH, write_tiny_model
from twinvec.choices import POOLINGS
from twinvec.model.folder import POOLING_KEYS

pytest.importorskip("torch", reason="parity needs the extra 'train'")
sentence_transformers = pytest.importorskip("sentence_transformers", reason="parity needs sentence-transformers")
pytestmark = [
    pytest.mark.parity,
    pytest.mark.filterwarnings("ignore"),  # the rival's and torch's own warnings are not ours to fix
]

TEXTS = [
    "The cat sits on the mat.",
    "a small red house, under the old tree!",
    "",
    "rain",
    "the man reads a book and the woman writes a letter to the child in the city from the river with water " * 2,
    "Unknown wörds — and 12345 numbers?",
]


def theirs(folder, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return sentence_transformers.SentenceTransformer(str(folder), device="cpu", **options)


def sts_texts(data, count):
    with gzip.open(data / "sts/stsb-test.tsv.gz", "rt", encoding="utf-8") as file:
        next(file)
        return [text for line in file for text in line.rstrip("\n").split("\t")[-2:]][:count]


LONG = "Sentence vectors turn a text into numbers, so that near meanings get near numbers. " * 60


@pytest.mark.weights
@pytest.mark.parametrize("name", ["minilm", "mpnet"])
def test_vectors_of_real_models_equal_the_rivals(models, name):
    texts = [*TEXTS, LONG, "日本語のテキスト 🙂 naïve café", "x" * 500]
    if not (models / name).is_dir():
        pytest.skip(f"TWINVEC_MODELS holds no {name}")
    ours = twinvec.load(models / name, long="cut").encode(texts)
    np.testing.assert_allclose(ours, theirs(models / name).encode(texts), atol=1e-5)


@pytest.mark.weights
@pytest.mark.data
def test_vectors_of_real_sentences_equal_the_rivals(models, data):
    texts = sts_texts(data, 300)
    ours = twinvec.load(models / "minilm").encode(texts)
    np.testing.assert_allclose(ours, theirs(models / "minilm").encode(texts), atol=1e-5)


@pytest.mark.weights
@pytest.mark.parametrize("name", ["minilm", "mpnet"])
def test_real_models_saved_by_each_load_in_the_other(models, tmp_path, name):
    if not (models / name).is_dir():
        pytest.skip(f"TWINVEC_MODELS holds no {name}")
    ours, rival = twinvec.load(models / name, long="cut"), theirs(models / name)
    expected = ours.encode(TEXTS)
    ours.save(tmp_path / "ours")
    rival.save(str(tmp_path / "theirs"))
    np.testing.assert_allclose(theirs(tmp_path / "ours").encode(TEXTS), expected, atol=1e-5)
    np.testing.assert_allclose(twinvec.load(tmp_path / "theirs", long="cut").encode(TEXTS), expected, atol=1e-5)


@pytest.mark.parametrize("family", FAMILIES)
def test_tiny_models_of_every_architecture_equal_the_rivals(tiny_folders, family):
    ours = twinvec.load(tiny_folders[family], long="cut").encode(TEXTS)
    np.testing.assert_allclose(ours, theirs(tiny_folders[family]).encode(TEXTS), atol=1e-5)


OLD = {mode: key for key, mode in POOLING_KEYS.items()}


@pytest.mark.parametrize("mode", POOLINGS)
@pytest.mark.parametrize("generation", ["old", "new"])
def test_every_pooling_key_of_both_generations_is_read_alike(tmp_path, mode, generation):
    config = {OLD[mode]: True} if generation == "old" else {"embedding_dimension": WIDTH, "pooling_mode": mode}
    folder = write_tiny_model(tmp_path / "model", pooling=config, extra=())
    ours = twinvec.load(folder, long="cut").encode(TEXTS)
    np.testing.assert_allclose(ours, theirs(folder).encode(TEXTS), atol=2e-5)


def rival_with_every_module(backbone, modes):
    from sentence_transformers import models

    torch = pytest.importorskip("torch")
    torch.manual_seed(0)
    transformer = models.Transformer(str(backbone))
    modules = [
        transformer,
        models.Pooling(WIDTH, pooling_mode=modes),
        models.Dense(WIDTH * len(modes), 24),
        models.LayerNorm(24),
        models.Dense(24, 16, bias=False, activation_function=torch.nn.Identity()),
        models.Normalize(),
    ]
    return sentence_transformers.SentenceTransformer(
        modules=modules, device="cpu", prompts={"query": "the man ", "document": ""}, similarity_fn_name="dot"
    )


def test_every_module_survives_both_directions(tiny_folders, tmp_path):
    rival = rival_with_every_module(tiny_folders["roberta"], ["mean", "cls"])
    rival.save(str(tmp_path / "theirs"))
    expected = rival.encode(TEXTS)
    ours = twinvec.load(tmp_path / "theirs", long="cut")
    np.testing.assert_allclose(ours.encode(TEXTS), expected, atol=1e-5)
    assert ours.prompts == {"query": "the man ", "document": ""} and ours.folder.similarity == "dot"
    ours.save(tmp_path / "ours")
    again = theirs(tmp_path / "ours")
    np.testing.assert_allclose(again.encode(TEXTS), expected, atol=1e-5)
    np.testing.assert_allclose(again.encode_query(TEXTS), ours.encode_query(TEXTS), atol=1e-5)
    assert again.similarity_fn_name == "dot"
    types = [row["type"] for row in json.loads((tmp_path / "ours/modules.json").read_text())]
    assert types[1] == "sentence_transformers.models.Pooling"


@pytest.mark.parametrize("modes", [["mean"], ["cls"], ["weightedmean"], ["lasttoken"], ["max"]])
def test_a_prompt_left_out_of_the_pooling_is_left_out_alike(tiny_bert, tmp_path, modes):
    folder = shutil.copytree(tiny_bert, tmp_path / "model")
    config = {"embedding_dimension": WIDTH, "pooling_mode": modes, "include_prompt": False}
    (folder / "1_Pooling/config.json").write_text(json.dumps(config))
    texts = ["the cat sits", "rain and sun in the city"]
    ours = twinvec.load(folder).encode(texts, prompt="the old man: ")
    np.testing.assert_allclose(ours, theirs(folder).encode(texts, prompt="the old man: "), atol=1e-5)


@pytest.mark.parametrize("name", ["cosine", "dot", "euclidean", "manhattan"])
def test_similarities_equal_the_rivals(name):
    rng = np.random.default_rng(0)
    left, right = (rng.standard_normal((n, 8)).astype(np.float32) for n in (3, 5))
    from sentence_transformers import SimilarityFunction

    all_pairs = SimilarityFunction.to_similarity_fn(name)
    pairwise = SimilarityFunction.to_similarity_pairwise_fn(name)
    np.testing.assert_allclose(twinvec.similarity(left, right, name), all_pairs(left, right).numpy(), atol=1e-5)
    np.testing.assert_allclose(
        twinvec.similarity_pairwise(left, right[:3], name), pairwise(left, right[:3]).numpy(), atol=1e-5
    )
