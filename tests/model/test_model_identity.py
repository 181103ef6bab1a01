"""Two different models never share an identity; what does not change vectors does not change it."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tiny import write_tiny_model
from training import make_recipe
from twinvec.collection.model import as_model
from twinvec.embedder import ModelEmbedder
from twinvec.errors import ModelFolderError
from twinvec.model.identity import model_digest, model_files

names = st.sampled_from(["training", "model", "1_Pooling", "0_Transformer", "a b", "ü", "checkpoint-7", "log", "docs"])
deciding = st.sampled_from(
    [
        "model.safetensors",
        "model-00001-of-00002.safetensors",
        "model.safetensors.index.json",
        "pytorch_model.bin",
        "config.json",
        "modules.json",
        "sentence_bert_config.json",
        "tokenizer.json",
        "tokenizer_config.json",
        "vocab.txt",
        "merges.txt",
        "spiece.model",
        "unheard.of",
        "noending",
    ]
)
harmless = st.sampled_from(
    ["README.md", "readme.MD", "LICENSE", "train.log", "card.png", "curve.svg", ".gitattributes"]
)
folders = st.lists(names, max_size=4).map(lambda parts: "/".join(parts))
some_bytes = st.binary(min_size=1, max_size=40)


@pytest.fixture(scope="module")
def bare(tmp_path_factory):
    folder = tmp_path_factory.mktemp("identity") / "bare"
    folder.mkdir()
    return folder


def fresh(bare: Path, name: str) -> Path:
    """A folder of this name with one deciding file, and nothing else."""
    place = bare / name
    shutil.rmtree(place, ignore_errors=True)
    place.mkdir()
    (place / "config.json").write_text("{}")
    return place


def put(place: Path, file: str, content: bytes) -> None:
    (place / file).parent.mkdir(parents=True, exist_ok=True)
    (place / file).write_bytes(content)


@settings(max_examples=200, deadline=None)
@given(names, folders, deciding, some_bytes, some_bytes)
def test_any_file_that_can_decide_vectors_changes_the_identity_at_any_depth(bare, name, folder, file, one, other):
    place = fresh(bare, name)
    path = f"{folder}/{file}" if folder else file
    if path.startswith("training/"):
        path = f"0_Transformer/{path}"  # at the top it is the record of our own training, tested below
    without = model_digest(place)
    put(place, path, one)
    before = model_digest(place)
    put(place, path, one + other)
    after = model_digest(place)
    assert len({without, before, after}) == 3 or (path == "config.json" and one == b"{}")
    os.rename(place / path, place / "renamed.json")
    assert model_digest(place) not in (before, after)


@settings(max_examples=100, deadline=None)
@given(names, folders, harmless, some_bytes)
def test_cards_logs_and_pictures_do_not_change_the_identity(bare, name, folder, file, content):
    place = fresh(bare, name)
    before = model_digest(place)
    put(place, f"{folder}/{file}" if folder else file, content)
    assert model_digest(place) == before


@settings(max_examples=100, deadline=None)
@given(st.lists(some_bytes, min_size=2, max_size=2, unique=True), st.integers(1, 40))
def test_swapped_contents_and_moved_bytes_change_the_identity(bare, contents, moved):
    place = fresh(bare, "swapped")
    one, two = contents
    seen = set()
    for first, second in ((one, two), (two, one), (one + two[:moved], two[moved:])):
        put(place, "a.json", first)
        put(place, "b.json", second)
        seen.add(model_digest(place))
    assert len(seen) == 3 - ((one + two[:moved], two[moved:]) == (two, one))


@pytest.mark.parametrize(
    "file", ["recipe.toml", "log.jsonl", "curve.png", "identity.json", "scores.json", "seeds.json"]
)
def test_the_record_of_the_training_does_not_change_the_identity(bare, file):
    place = fresh(bare, "trained")
    before = model_digest(place)
    put(place, f"training/{file}", b"{}")
    assert model_digest(place) == before


@pytest.mark.parametrize("folder", ["training", ".hidden", "training/deep/0_Transformer"])
def test_a_module_counts_whatever_its_folder_is_called(bare, folder):
    place = fresh(bare, "named")
    put(place, "modules.json", json.dumps([{"path": folder, "type": "sentence_transformers.models.Dense"}]).encode())
    put(place, f"{folder}/model.safetensors", b"one")
    before = model_digest(place)
    put(place, f"{folder}/model.safetensors", b"two")
    assert model_digest(place) != before


def test_a_shard_counts_whatever_it_is_called(bare):
    place = fresh(bare, "shards")
    put(place, "model.safetensors.index.json", json.dumps({"weight_map": {"a": "shard.md", "b": ".b.png"}}).encode())
    seen = set()
    for file, content in (("shard.md", b"1"), ("shard.md", b"2"), (".b.png", b"1"), (".b.png", b"2")):
        put(place, file, content)
        seen.add(model_digest(place))
    assert len(seen) == 4


def test_links_are_followed_and_loops_end(bare):
    place = fresh(bare, "links")
    put(place.parent, "blobs/1", b"one")
    (place / "model.safetensors").symlink_to(place.parent / "blobs/1")
    (place / "2_Dense").symlink_to(place.parent / "blobs")
    (place / "loop").symlink_to(place)
    before = model_digest(place)
    put(place.parent, "blobs/1", b"two")
    assert model_digest(place) != before
    assert [str(file.relative_to(place)) for file in model_files(place)] == [
        "2_Dense/1",
        "config.json",
        "model.safetensors",
    ]


def test_a_copy_of_a_linked_snapshot_has_the_same_identity(bare):
    place = fresh(bare, "snapshot")
    put(place.parent, "blobs/2", b"weights")
    (place / "model.safetensors").symlink_to("../blobs/2")
    copy = bare / "copy"
    shutil.rmtree(copy, ignore_errors=True)
    shutil.copytree(place, copy)
    assert model_digest(copy) == model_digest(place)


def test_a_folder_with_too_many_files_is_not_a_model(bare, monkeypatch):
    place = fresh(bare, "many")
    monkeypatch.setattr("twinvec.model.identity.MAX_FILES", 3)
    for index in range(4):
        put(place, f"{index}.json", b"{}")
    with pytest.raises(ModelFolderError, match=r"contains more than 3 files.*separate folder"):
        model_digest(place)


def test_every_identity_sees_a_model_in_a_folder_called_training(tmp_path):
    """An evaluation took scores from another model's cache, and a collection accepted the wrong model."""
    seen = []
    for seed in (0, 1):
        folder = tmp_path / str(seed) / "training"
        write_tiny_model(folder, seed=seed)
        seen.append(
            (
                model_digest(folder),
                ModelEmbedder(str(folder)).identity,
                as_model(folder).record.digest,
            )
        )
    assert all(one != other for one, other in zip(*seen, strict=True))


def test_a_run_knows_its_start_model_in_a_folder_called_training(tmp_path):
    preparing = pytest.importorskip("twinvec.training.prepare", reason="training needs the extra 'train'")
    seen = []
    for seed in (0, 1):
        folder = tmp_path / str(seed) / "training"
        write_tiny_model(folder, seed=seed)
        seen.append(preparing.read_material(make_recipe(tmp_path, folder)).identity["start model"])
    assert seen[0] != seen[1]
