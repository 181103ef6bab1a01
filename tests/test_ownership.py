"""Nothing is replaced or deleted that Twinvec did not write, also with --force."""

from __future__ import annotations

import json
import os
import stat
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

import twinvec
from bulk_fakes import FakeModel, ListSource
from tiny import write_tiny_model
from training import make_recipe, run
from twinvec.bulk import BulkSettings, embed_bulk
from twinvec.cli import main
from twinvec.errors import InputError, TwinvecError
from twinvec.files import new_folder
from twinvec.ownership import INDEX, MARKER, MODEL, check_ours, remove_ours
from twinvec.report.html import write_folder
from twinvec.search import build_index, load_index, save_index
from twinvec.vector_store import VectorStore

TEXTS = [f"text {i}" for i in range(9)]
FORCE = BulkSettings(shard_rows=4, force=True)


def content(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def bulk(folder: Path) -> None:
    embed_bulk(ListSource(TEXTS), folder, FakeModel(), settings=FORCE)


def index(folder: Path) -> None:
    save_index(build_index(np.eye(4, dtype=np.float32), progress=False), folder, replace=True)


def report(folder: Path) -> None:
    pytest.importorskip("matplotlib")
    write_folder(folder, page="<p>", files={"a.png": b""}, data=("layers.json", {}), replace=True)


def model(folder: Path) -> None:
    with new_folder(folder, MODEL, replace=True) as place:
        (place / "config.json").write_text("{}")
        (place / "2_Normalize").mkdir()


WRITERS = {"bulk": bulk, "index": index, "report": report, "model": model}
OTHERS = {  # what made someone else's folder pass for ours
    "manifest.json": '{"name": "my web app"}',
    "index.json": '{"name": "my package"}',
    "layers.json": "{}",
    "config.json": '{"port": 80}',
}


@pytest.fixture(params=WRITERS)
def write(request):
    return WRITERS[request.param]


@pytest.mark.parametrize("file", OTHERS)
def test_a_folder_that_twinvec_did_not_write_is_never_replaced(write, tmp_path, file):
    mine = tmp_path / "mine"
    (mine / "texts").mkdir(parents=True)
    (mine / file).write_text(OTHERS[file])
    (mine / "rows-of-seats.parquet").write_text("years of work")
    (mine / "texts/chapter-1").write_text("years of work")
    before = content(mine)
    with pytest.raises(InputError, match=r"mine holds '.*', "):
        write(mine)
    assert content(mine) == before


@pytest.mark.parametrize("name", ["notes.md", ".git/config", "deep/er/notes.md", "texts/notes.md", "empty/"])
def test_a_user_file_in_a_twinvec_folder_is_named_and_kept(write, tmp_path, name):
    folder = tmp_path / "ours"
    write(folder)
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.mkdir() if name.endswith("/") else path.write_text("mine")
    before = content(folder)
    with pytest.raises(InputError, match=rf"holds '{name}', which Twinvec did not write"):
        write(folder)
    assert content(folder) == before and path.exists()


def test_our_own_folder_is_replaced_when_asked(write, tmp_path):
    write(tmp_path / "ours")
    write(tmp_path / "ours")
    assert [path.name for path in tmp_path.iterdir()] == ["ours"]
    (tmp_path / "empty").mkdir()
    write(tmp_path / "empty")


def test_a_folder_of_another_kind_of_ours_is_not_replaced(tmp_path):
    index(tmp_path / "index")
    for write in (bulk, model, report):
        with pytest.raises(InputError, match=r"twinvec-index-1|holds no bulk job"):
            write(tmp_path / "index")
    assert len(load_index(tmp_path / "index")) == 4


def test_a_symlink_is_not_replaced_and_nothing_is_deleted_through_it(write, tmp_path):
    write(tmp_path / "ours")
    before = content(tmp_path / "ours")
    (tmp_path / "link").symlink_to(tmp_path / "ours")
    with pytest.raises(InputError, match="link is a symbolic link"):
        write(tmp_path / "link")
    assert content(tmp_path / "ours") == before and (tmp_path / "link").is_symlink()


def test_a_folder_of_ours_with_a_link_in_it_is_refused(tmp_path):
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine/config.json").write_text("years of work")
    model(tmp_path / "ours")
    (tmp_path / "ours/2_Normalize").rmdir()
    (tmp_path / "ours/2_Normalize").symlink_to(tmp_path / "mine")
    with pytest.raises(InputError, match="holds '2_Normalize'"):
        model(tmp_path / "ours")
    assert not remove_ours(tmp_path / "ours", MODEL)
    assert (tmp_path / "mine/config.json").read_text() == "years of work"


def test_a_file_that_comes_while_the_new_folder_is_written_is_kept(tmp_path):
    model(tmp_path / "ours")
    with (
        pytest.raises(InputError, match=r"holds 'late\.txt'"),
        new_folder(tmp_path / "ours", MODEL, replace=True) as place,
    ):
        (place / "config.json").write_text("new")
        (tmp_path / "ours/late.txt").write_text("mine")
    assert (tmp_path / "ours/late.txt").read_text() == "mine"
    assert (tmp_path / "ours/config.json").read_text() == "{}"


@pytest.mark.parametrize(
    "marker", ["", "{", "[]", '{"format": 3}', '{"format": "twinvec-model-1", "files": {}}', "[" * 9999]
)
def test_an_unreadable_marker_is_ignored(tmp_path, marker):
    model(tmp_path / "ours")
    (tmp_path / "ours" / MARKER).write_text(marker)
    with pytest.raises(InputError, match="holds '2_Normalize/'"):
        check_ours(tmp_path / "ours", MODEL)


def test_the_marker_changes_neither_identity_nor_vectors(tmp_path):
    from twinvec.model.identity import model_digest

    encoder = twinvec.load(write_tiny_model(tmp_path / "tiny"))
    encoder.save(tmp_path / "saved")
    assert json.loads((tmp_path / "saved" / MARKER).read_text())["format"] == MODEL.format
    before = model_digest(tmp_path / "saved")
    (tmp_path / "saved" / MARKER).unlink()
    assert model_digest(tmp_path / "saved") == before
    assert np.array_equal(twinvec.load(tmp_path / "saved").encode(TEXTS), encoder.encode(TEXTS))


class TestTraining:
    @pytest.fixture
    def recipe(self, tmp_path, tiny_bert):
        pytest.importorskip("twinvec.training.run", reason="training needs the extra 'train'")
        return make_recipe(tmp_path, tiny_bert, epochs=1)

    @pytest.mark.parametrize("force", [False, True])
    def test_a_run_folder_of_the_users_is_kept(self, recipe, tmp_path, force):
        (tmp_path / "z.run").mkdir()
        (tmp_path / "z.run/checkpoint.safetensors").write_text("years of work")
        with pytest.raises(InputError, match=r"z\.run holds 'checkpoint\.safetensors', which Twinvec did not write"):
            run(recipe, tmp_path / "z", force=force)
        assert (tmp_path / "z.run/checkpoint.safetensors").read_text() == "years of work"

    def test_a_file_of_the_users_in_our_run_folder_is_kept(self, recipe, tmp_path):
        from twinvec.training.run import run_recipe

        events = run_recipe(recipe, tmp_path / "z")
        next(events)
        events.close()
        (tmp_path / "z.run/notes.md").write_text("mine")
        with pytest.raises(InputError, match=r"holds 'notes\.md'"):
            run(recipe, tmp_path / "z", force=True)
        assert (tmp_path / "z.run/notes.md").read_text() == "mine"

    def test_a_linked_run_folder_is_refused(self, recipe, tmp_path):
        (tmp_path / "elsewhere").mkdir()
        (tmp_path / "z.run").symlink_to(tmp_path / "elsewhere")
        with pytest.raises(InputError, match="is a symbolic link"):
            run(recipe, tmp_path / "z")

    def test_force_replaces_no_app_that_has_a_config(self, recipe, tmp_path):
        (tmp_path / "app").mkdir()
        (tmp_path / "app/config.json").write_text("{}")
        (tmp_path / "app/main.py").write_text("years of work")
        with pytest.raises(InputError, match=r"app holds 'config\.json', which Twinvec did not write"):
            run(recipe, tmp_path / "app", force=True)
        assert (tmp_path / "app/main.py").read_text() == "years of work"


def test_permissions_that_the_umask_forbids_stay_forbidden(tmp_path):
    code = (
        "import sys, os; os.umask(0o{umask}); sys.path.insert(0, {tests!r})\n"
        "from pathlib import Path; import twinvec; from tiny import write_tiny_model\n"
        "twinvec.load(write_tiny_model(Path({place!r}, 'tiny'))).save(Path({place!r}, 'saved'))\n"
    )
    for umask in ("077", "022", "027", "002"):
        place = tmp_path / umask
        place.mkdir()
        told = code.format(umask=umask, tests=str(Path(__file__).parent / "support"), place=str(place))
        subprocess.run([sys.executable, "-c", told], check=True, capture_output=True)
        allowed = 0o777 & ~int(umask, 8)
        for path in [place / "saved", *(place / "saved").rglob("*")]:
            expected = allowed if path.is_dir() else allowed & 0o666
            assert stat.S_IMODE(path.stat().st_mode) == expected, (umask, path)


LONG = "n" * 256


@pytest.mark.parametrize("name", [LONG, "n" * 250, "ü" * 127, "n" * 255])
def test_a_name_that_is_too_long_raises_a_twinvec_error_or_works(write, tmp_path, name):
    try:
        write(tmp_path / name)
    except TwinvecError as error:
        assert "too long" in str(error) and len(os.fsencode(name)) > 255
    else:
        assert len(os.fsencode(name)) <= 255 and (tmp_path / name).is_dir()


@pytest.mark.parametrize(
    "command", [["embed", "in.txt", "-o"], ["embed", "in.txt", "--out"], ["index", "in.txt", "--out"]]
)
def test_a_command_says_that_a_name_is_too_long(tmp_path, monkeypatch, command):
    monkeypatch.chdir(tmp_path)
    Path("in.txt").write_text("a cat\n")
    write_tiny_model(tmp_path / "tiny")
    suffix = ".npy" if command[-1] == "-o" else ""
    result = CliRunner().invoke(main, [*command, LONG + suffix, "-m", "tiny"])
    assert result.exit_code == 1 and "too long" in result.stderr and LONG[:20] in result.stderr, result.stderr


def test_a_saved_index_stores_its_format(tmp_path):
    index(tmp_path / "index")
    assert json.loads((tmp_path / "index" / MARKER).read_text())["format"] == INDEX.format


def test_a_re_embedding_removes_only_its_own_files(tmp_path):
    pytest.importorskip("lancedb")
    from collections_of_fakes import CountingEmbedder, fake_collection

    collection, _ = fake_collection(tmp_path / "notes")
    collection.add(TEXTS)
    other = CountingEmbedder("other")
    (tmp_path / "notes/re-embedding").mkdir()
    (tmp_path / "notes/re-embedding/mine.txt").write_text("mine")
    with pytest.raises(InputError, match=r"holds 'mine\.txt', which Twinvec did not write"):
        collection.reindex(other)
    assert (tmp_path / "notes/re-embedding/mine.txt").read_text() == "mine"
    (tmp_path / "notes/re-embedding/mine.txt").unlink()
    collection.reindex(other)
    assert not (tmp_path / "notes/re-embedding").exists()


def test_a_cache_removes_only_files_that_it_wrote(tmp_path):
    (tmp_path / "mine.vectors").write_text("years of work")
    (tmp_path / f"{'0' * 32}.vectors").write_text("damaged")
    old = tmp_path / ".mine.partial"
    old.write_text("years of work")
    os.utime(old, (0, 0))
    VectorStore(tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == [".mine.partial", "mine.vectors"]
