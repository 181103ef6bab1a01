"""Python code that a model folder brings along: it is never run, and nobody is asked whether it may."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

import twinvec
from tiny import FAMILIES, write_json, write_tiny_model
from twinvec.errors import ModelFolderError

EVIL = """
from pathlib import Path
Path({marker!r}).write_text("ran")
from transformers import BertConfig, BertModel, BertTokenizerFast
class EvilConfig(BertConfig):
    model_type = "evil"
class EvilModel(BertModel):
    config_class = EvilConfig
class EvilTokenizer(BertTokenizerFast):
    pass
"""
MODEL_CODE = {"AutoConfig": "evil_code.EvilConfig", "AutoModel": "evil_code.EvilModel"}


@pytest.fixture
def marker(tmp_path):
    return tmp_path / "ran"


def write_evil(folder, marker, *, model_type="evil", code=MODEL_CODE, tokenizer=False):
    write_tiny_model(folder)
    (folder / "evil_code.py").write_text(EVIL.format(marker=str(marker)))
    if code:
        write_json(folder / "config.json", {**FAMILIES["bert"], "model_type": model_type, "auto_map": code})
    if tokenizer:
        settings = json.loads((folder / "tokenizer_config.json").read_text())
        code = {"AutoTokenizer": ["evil_code.EvilTokenizer", "evil_code.EvilTokenizer"]}
        write_json(folder / "tokenizer_config.json", settings | {"tokenizer_class": "EvilTokenizer", "auto_map": code})
    return folder


def run(arguments, given, tmp_path):
    """The command line with ``given`` on stdin; ``HF_HOME`` is empty, so that no code is trusted from earlier."""
    return subprocess.run(
        [sys.executable, "-m", "twinvec.cli", *arguments],
        input=given,
        env={**os.environ, "HF_HOME": str(tmp_path / "hf")},
        capture_output=True,
        text=True,
        timeout=300,
    )


@pytest.mark.parametrize("model_type", ["evil", "bert"])
@pytest.mark.parametrize("runtime", ["auto", "torch"])
def test_a_models_own_code_is_refused_and_an_answer_on_stdin_is_not_taken(tmp_path, marker, model_type, runtime):
    pytest.importorskip("transformers", reason="only transformers would run it")
    folder = write_evil(tmp_path / "evil", marker, model_type=model_type)
    done = run(["embed", "-m", str(folder), "--runtime", runtime], "hello\ny\ny\ny\n", tmp_path)
    assert not marker.exists()
    assert done.returncode == 1, done.stderr
    assert done.stdout == ""
    assert "custom code" in done.stderr and "never run" in done.stderr
    assert "Traceback" not in done.stderr
    assert "[y/N]" not in done.stderr + done.stdout


def test_a_tokenizers_own_code_is_refused(tmp_path, marker):
    folder = write_evil(tmp_path / "evil", marker, code=None, tokenizer=True)
    with pytest.raises(ModelFolderError, match=r"tokenizer_config.json names custom code .*never run"):
        twinvec.load(folder)
    assert not marker.exists()


@pytest.mark.parametrize("part", ["model", "tokenizer"])
def test_training_refuses_a_models_own_code(tmp_path, marker, part):
    pytest.importorskip("transformers", reason="training needs the extra 'train'")
    folder = write_evil(
        tmp_path / "evil", marker, code=MODEL_CODE if part == "model" else None, tokenizer=part == "tokenizer"
    )
    pairs = tmp_path / "pairs.tsv"
    pairs.write_text("text1\ttext2\tscore\n" + "the cat\ta cat\t0.9\nthe dog\train\t0.1\n" * 8)
    arguments = ["train", "sts", str(pairs), "-m", str(folder), "-o", str(tmp_path / "out")]
    done = run(arguments, "y\ny\ny\n", tmp_path)
    assert not marker.exists()
    assert done.returncode == 1, done.stderr
    assert "custom code" in done.stderr
    assert not (tmp_path / "out").exists()


def test_code_for_a_task_that_is_not_the_encoder_does_not_matter(tmp_path, marker):
    folder = write_evil(tmp_path / "evil", marker, model_type="bert", code={"AutoModelForMaskedLM": "evil_code.X"})
    expected = twinvec.load(write_tiny_model(tmp_path / "plain")).encode("the cat")
    assert (twinvec.load(folder).encode("the cat") == expected).all()
    assert not marker.exists()


def test_an_architecture_that_transformers_has_itself_loads_without_the_folders_code(tmp_path, marker):
    transformers = pytest.importorskip("transformers")
    config = transformers.AutoConfig.for_model(
        "deberta-v2",
        vocab_size=200,
        hidden_size=32,
        num_hidden_layers=1,
        num_attention_heads=4,
        intermediate_size=32,
        max_position_embeddings=40,
    )
    folder = write_evil(tmp_path / "evil", marker)
    transformers.AutoModel.from_config(config).save_pretrained(folder)
    content = json.loads((folder / "config.json").read_text())
    write_json(folder / "config.json", content | {"auto_map": {"AutoModel": "evil_code.EvilModel"}})
    assert twinvec.load(folder).encode("the cat").shape == (32,)
    assert not marker.exists()
