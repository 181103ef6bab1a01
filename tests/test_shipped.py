"""The models of the package: there, found first, small, and at work without a network, an extra or torch."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import twinvec
from tiny import write_tiny_model
from twinvec.choices import DEFAULT_MODEL, KOREAN_MODEL, SHIPPED
from twinvec.engine.inspect import inspect_model
from twinvec.engine.weights import SCALE
from twinvec.errors import InputError, ModelNotFoundError
from twinvec.model import hub as shipped
from twinvec.model.folder import read_model_folder
from twinvec.model.hub import find_model, shipped_folder

MOST_BYTES = 25_000_000
TEXTS = [
    "A cat sits on the mat.",
    "A feline rests on a rug.",
    "",
    "Stocks fell sharply on Monday.",
    "Naïve café, 12345 🙂 日本語",
    "How do I run another program and read its output? " * 12,
]
QUESTIONS = [
    "비밀번호를 어떻게 재설정하나요?",
    "환불 정책이 뭔가요?",
    "비밀번호를 잊어버렸어요.",
    "환불은 어떻게 받나요?",
    "배송은 얼마나 걸려요?",
]
ALONE = """
import sys

def refuse(event, _):
    if event in ("socket.getaddrinfo", "socket.connect"):
        raise AssertionError(event)

sys.addaudithook(refuse)
for extra in ("torch", "transformers", "openvino", "pyarrow", "scipy", "sklearn", "sentence_transformers"):
    sys.modules[extra] = None  # importing it fails as if it were not installed
import json
import twinvec

encoder = twinvec.load()
cat, kitten, market = encoder.encode(["a cat", "a kitten", "the stock market"])
print(json.dumps([float(encoder.similarity_pairwise(cat, other)[0]) for other in (kitten, market)]))
"""


@pytest.fixture(scope="module")
def own():
    return twinvec.load()


def test_the_default_works_alone_without_network_extras_or_torch(tmp_path):
    result = subprocess.run([sys.executable, "-c", ALONE], capture_output=True, text=True, cwd=tmp_path, check=False)
    assert result.returncode == 0, result.stderr
    near, far = json.loads(result.stdout)
    assert 1 > near > far + 0.2


def test_a_local_folder_takes_precedence_over_a_shipped_model_and_that_over_the_hub(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert find_model(DEFAULT_MODEL, offline=True) == Path(shipped.__file__).parents[1] / "models" / DEFAULT_MODEL
    write_tiny_model(tmp_path / DEFAULT_MODEL)
    assert find_model(DEFAULT_MODEL) == Path(DEFAULT_MODEL)
    assert twinvec.load().width == 32


def test_a_shipped_model_missing_from_the_installation_is_reported(tmp_path, monkeypatch):
    monkeypatch.setattr(shipped, "FOLDER", tmp_path)
    with pytest.raises(
        ModelNotFoundError, match=r"comes with Twinvec, but there is no folder .* Install Twinvec again"
    ):
        twinvec.load()


def test_every_folder_of_the_package_has_a_name_and_a_card():
    folders = sorted(path for path in shipped.FOLDER.iterdir() if path.is_dir())
    assert shipped.FOLDER / DEFAULT_MODEL in folders
    for folder in folders:
        assert folder.name in SHIPPED
        assert (folder / "README.md").is_file()
        assert not (folder / "training").exists()
        assert sum(file.stat().st_size for file in folder.rglob("*.safetensors")) <= MOST_BYTES
    assert shipped_folder("all-MiniLM-L6-v2") is None


@pytest.fixture(scope="module")
def korean():
    return twinvec.load(KOREAN_MODEL, threads=1)


def test_the_korean_model_finds_the_questions_that_belong_together(korean):
    pairs = twinvec.find_pairs(QUESTIONS, k=2, model=KOREAN_MODEL)
    assert set(zip(pairs.left.tolist(), pairs.right.tolist(), strict=True)) == {(0, 2), (1, 3)}
    vectors = korean.encode(["비밀번호를 잊어버렸어요.", "I forgot my password.", "The weather is fine."])
    same, other = korean.similarity(vectors[:1], vectors[1:])[0]
    assert same > 0.6 > 0.3 > other


def test_the_korean_model_is_an_encoder_like_others(korean, tmp_path):
    assert korean.width == 512 and korean.max_tokens is None and korean.encode("한 문장").shape == (512,)
    np.testing.assert_allclose(np.linalg.norm(korean.encode([*TEXTS, *QUESTIONS]), axis=1), 1, atol=1e-5)
    assert twinvec.load(KOREAN_MODEL, truncate_dim=64).encode(QUESTIONS).shape == (5, 64)
    korean.save(tmp_path / "copy")
    np.testing.assert_array_equal(
        twinvec.load(tmp_path / "copy", threads=1).encode(QUESTIONS), korean.encode(QUESTIONS)
    )
    found = inspect_model(KOREAN_MODEL)
    assert found.stored == "int8" and found.runs_without_torch and "Hangul" in found.scripts


@pytest.mark.parametrize("arguments", [{"readout": "wk"}, {"runtime": "openvino"}])
def test_the_korean_model_refuses_what_it_cannot_do(arguments):
    with pytest.raises(InputError, match="Universal Sentence Encoder"):
        twinvec.load(KOREAN_MODEL, **arguments)


def test_the_korean_model_has_no_token_states(korean):
    with pytest.raises(InputError, match="without layers of token states"):
        korean.encode_layers(QUESTIONS)
    with pytest.raises(InputError, match="are not sums of token vectors"):
        korean.explain("한 문장")


def test_a_collection_of_the_korean_model_opens_again(tmp_path):
    pytest.importorskip("lancedb")
    twinvec.Collection.create(tmp_path / "notes", model=KOREAN_MODEL).add(QUESTIONS)
    (hit,) = twinvec.Collection.open(tmp_path / "notes").search("I want my money back", k=1)
    assert "환불" in hit.text


def test_inspection_says_that_it_is_stored_as_int8():
    found = inspect_model(DEFAULT_MODEL)
    assert ("stored as", "int8") in found.rows()
    assert found.size_bytes < 1.2 * found.n_parameters  # a byte each, and the scales
    assert found.runs_without_torch and found.is_normalized and not found.warnings


@pytest.mark.parametrize("kind", ["float32", "float16", "bfloat16"])
def test_inspection_says_how_other_weights_are_stored(tmp_path, tiny_bert, kind):
    from safetensors import numpy as store

    folder = write_tiny_model(tmp_path / "model")
    weights = store.load_file(folder / "model.safetensors")
    if kind == "bfloat16":
        torch = pytest.importorskip("torch")
        from safetensors.torch import save_file

        save_file({name: torch.tensor(each).bfloat16() for name, each in weights.items()}, folder / "model.safetensors")
    else:
        store.save_file({name: each.astype(kind) for name, each in weights.items()}, folder / "model.safetensors")
    found = inspect_model(folder)
    assert found.stored == kind
    assert found.n_parameters == inspect_model(tiny_bert).n_parameters


def test_a_pickle_is_stored_in_an_unknown_way(tmp_path):
    folder = write_tiny_model(tmp_path / "model")
    (folder / "model.safetensors").rename(folder / "pytorch_model.bin")
    assert ("stored as", "unknown") in inspect_model(folder).rows()


def test_a_saved_copy_is_float32_and_gives_the_same_vectors(own, tmp_path):
    own.save(tmp_path / "copy")
    found = inspect_model(tmp_path / "copy")
    assert found.stored == "float32" and found.n_parameters == inspect_model(DEFAULT_MODEL).n_parameters
    from safetensors.numpy import load_file

    assert not any(name.endswith(SCALE) for name in load_file(tmp_path / "copy/model.safetensors"))
    np.testing.assert_array_equal(twinvec.load(tmp_path / "copy").encode(TEXTS), own.encode(TEXTS))


@pytest.mark.parity
@pytest.mark.filterwarnings("ignore")
def test_a_saved_copy_gives_the_same_vectors_in_sentence_transformers(own, tmp_path):
    pytest.importorskip("torch", reason="parity needs the extra 'train'")
    rival = pytest.importorskip("sentence_transformers", reason="parity needs sentence-transformers")
    own.save(tmp_path / "copy")
    theirs = rival.SentenceTransformer(str(tmp_path / "copy"), device="cpu").encode(TEXTS)
    np.testing.assert_allclose(theirs, own.encode(TEXTS), atol=1e-5)


def test_training_starts_from_the_same_vectors(own):
    pytest.importorskip("torch", reason="training needs the extra 'train'")
    pytest.importorskip("transformers", reason="training needs the extra 'train'")
    from twinvec.model.tokenizer import load_tokenizer
    from twinvec.training.batches import tokenize
    from twinvec.training.networks.bi_encoder import Network

    folder = read_model_folder(find_model(DEFAULT_MODEL))
    table = tokenize(TEXTS, load_tokenizer(folder.backbone, lower_case=folder.lower_case), own.max_tokens)
    vectors = Network(folder).encode(table.rows(range(len(TEXTS))))
    np.testing.assert_allclose(vectors, own.encode(TEXTS), atol=1e-5)
