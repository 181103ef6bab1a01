"""What a collection that others have made can have this machine do: name a model that is here, and no more."""

from __future__ import annotations

import json
import shutil

import pytest
from click.testing import CliRunner

import twinvec
from fuzzed_collection import header_of, with_header
from tiny import write_tiny_model
from twinvec import embedder
from twinvec.cli import main
from twinvec.collection import Collection, ModelRecord
from twinvec.errors import CollectionError, InputError, ModelNotFoundError, TwinvecError, WeightsError

pytest.importorskip("lancedb")


@pytest.fixture
def shared(tmp_path, tiny_bert):
    """A collection of a tiny model, as somebody else might have sent it."""
    path = tmp_path / "shared"
    Collection.create(path, model=tiny_bert).add(["the cat sits", "a dog runs"], ["a", "b"])
    return path


@pytest.fixture
def asked(monkeypatch):
    """What was asked of the hub; nothing is answered."""
    calls = []

    def refused(*arguments, **options):
        calls.append(arguments)
        raise OSError("no network in tests")

    monkeypatch.setattr("huggingface_hub.snapshot_download", refused)
    monkeypatch.setattr("huggingface_hub.hf_hub_download", refused)
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", False)
    return calls


def run(*arguments):
    return CliRunner().invoke(main, [str(argument) for argument in arguments], prog_name="twinvec")


def changed(path, **model):
    """The collection with other words about its model in its header."""
    header = header_of(path)
    with_header(path, json.dumps({**header, "model": {**header["model"], **model}}).encode())
    return path


SETTINGS = {
    "trust_pickle": True,
    "offline": False,
    "revision": "main",
    "runtime": "torch",
    "device": "cuda",
    "threads": 10**6,
    "name_or_folder": "x",
    "precision": "float64",
    "long": 7,
    "truncate_dim": True,
    "readout": {"mode": "paper", "code": "x"},
}


@pytest.mark.parametrize("name", SETTINGS)
def test_a_header_can_only_set_harmless_options(shared, monkeypatch, name):
    monkeypatch.setattr(embedder, "load", lambda *_, **__: pytest.fail("a model was loaded"))
    changed(shared, settings={name: SETTINGS[name]})
    with pytest.raises(CollectionError, match=f"has an invalid header: .*{name}"):
        Collection.open(shared).search("cat")


def test_only_the_caller_not_a_header_can_allow_a_pickle(shared, tmp_path, tiny_bert):
    torch = pytest.importorskip("torch")
    from safetensors.torch import load_file

    folder = tmp_path / "pickled"
    shutil.copytree(tiny_bert, folder)
    torch.save(load_file(folder / "model.safetensors"), folder / "pytorch_model.bin")
    (folder / "model.safetensors").unlink()
    path = tmp_path / "c"
    Collection.create(path, model=twinvec.load(folder, trust_pickle=True)).add(["the cat sits"], ["a"])
    with pytest.raises(WeightsError, match="is a pickle, which can run code"):
        Collection.open(path).search("cat")
    refused = run("search", path, "cat")
    assert refused.exit_code == 1 and "is a pickle, which can run code" in refused.stderr
    assert run("search", path, "cat", "--trust-pickle").exit_code == 0
    assert Collection.open(path, model=twinvec.load(folder, trust_pickle=True)).search("cat")[0].id == "a"


HUB_NAMES = [
    "someone/model",
    "all-MiniLM-L6-v2",
    "someone/model\n",
    "//host/share",
    "\\\\host\\share",
    "~nobody-here/x",
]


@pytest.mark.parametrize("name", [*HUB_NAMES, "/nowhere/at/all", "a/b/c/d", "x" * 5000, "a\0b", "../../etc"])
def test_a_model_named_only_in_a_header_is_not_downloaded(shared, asked, name):
    changed(shared, name=name)
    with pytest.raises(
        ModelNotFoundError, match=r"which is not on this machine\. A collection cannot start a download"
    ):
        Collection.open(shared).search("cat")
    assert asked == []
    assert Collection.open(shared).search("cat", mode="text")[0].id == "a"  # what needs no model works


@pytest.mark.parametrize("options", [[], ["--precision", "float32"], ["--threads", "1"], ["--trust-pickle"]])
def test_commands_ask_the_network_only_for_a_model_that_is_named_to_them(shared, asked, tmp_path, options):
    changed(shared, name="someone/model")
    (tmp_path / "a.txt").write_text("a bird sings\n")
    for command in (["search", shared, "cat"], ["index", tmp_path / "a.txt", "-o", shared]):
        result = run(*command, *options)
        assert result.exit_code == 1 and "was created with the model 'someone/model', which is not on" in result.stderr
        assert asked == []
        named = run(*command, *options, "--model", "someone/model")
        assert named.exit_code == 1 and "the hub did not provide it" in named.stderr
        assert asked.pop() == ("someone/model",)
    with pytest.raises(ModelNotFoundError, match="the hub did not provide it"):
        Collection.open(shared, model="someone/model")
    assert asked == [("someone/model",)]


def test_the_content_of_a_model_is_verified_before_it_is_loaded(shared, tmp_path, monkeypatch):
    other = write_tiny_model(tmp_path / "other", seed=5)
    changed(shared, name=str(other))
    monkeypatch.setattr(embedder, "load", lambda *_, **__: pytest.fail("it was loaded"))
    for arguments in ([], ["--threads", "1"]):
        result = run("search", shared, "cat", *arguments)
        assert result.exit_code == 1 and "was created with another model named" in result.stderr
    with pytest.raises(CollectionError, match="the files or settings differ"):
        Collection.open(shared).search("cat")


def test_a_folder_that_is_not_a_models_is_not_read(shared, tmp_path, monkeypatch):
    (tmp_path / "private").mkdir()
    (tmp_path / "private" / "notes.txt").write_text("mine")
    changed(shared, name=str(tmp_path / "private"))
    monkeypatch.setattr(embedder, "model_digest", lambda *_: pytest.fail("it was read"))
    with pytest.raises(ModelNotFoundError, match="not on this machine"):
        Collection.open(shared).search("cat")


def test_a_models_files_are_read_once_for_their_digest(shared, monkeypatch):
    calls = []
    digest = embedder.model_digest
    monkeypatch.setattr(embedder, "model_digest", lambda folder: calls.append(folder) or digest(folder))
    Collection.open(shared).search("cat")
    assert len(calls) == 1


def test_a_width_that_is_not_the_tables_is_refused(shared):
    changed(shared, width=7)
    with pytest.raises(CollectionError, match=r"The column 'vector' of .* has the type fixed_size_list"):
        Collection.open(shared)


def test_a_command_in_a_models_name_is_quoted_in_hints(shared, tmp_path):
    folder = write_tiny_model(tmp_path / "x; echo gone", seed=5)
    changed(shared, name=str(folder))
    with pytest.raises(CollectionError, match=r"--re-embed -m '.*; echo gone'"):
        Collection.open(shared).search("cat")


@pytest.mark.parametrize(
    "wrong",
    [
        {"name": 5},
        {"name": ""},
        {"digest": None},
        {"width": "4"},
        {"width": 0},
        {"width": True},
        {"width": 2**40},
        {"similarity": []},
        {"settings": 5},
        {"settings": {"a": {1}}},
        {"settings": {5: 5}},
    ],
    ids=str,
)
def test_a_record_of_a_model_is_checked_when_it_is_made(wrong):
    with pytest.raises(InputError):
        ModelRecord(**{"name": "m", "digest": "d", "width": 4, **wrong})


def test_a_model_of_an_own_class_needs_no_settings(tmp_path):
    import numpy as np

    class Ones:
        name, identity, width, similarity, settings = "mine", "d", 4, "cosine", {}

        def embed(self, texts, *, role="text"):
            return np.ones((len(texts), 4), dtype=np.float32)

    own = Ones()
    Collection.create(tmp_path / "c", model=own).add(["a"], ["a"])
    assert Collection.open(tmp_path / "c", model=own).search("b")[0].id == "a"
    with pytest.raises(TwinvecError, match="'mine', which is not on this machine"):
        Collection.open(tmp_path / "c").search("b")
