"""Files that are whole or not there: their partial names, links that others plant, rights, and rivals."""

from __future__ import annotations

import os
import stat

import pytest

from twinvec.bulk.rows import RowsWriter
from twinvec.data.write import write_rows
from twinvec.errors import InputError
from twinvec.files import new_file, open_partial, whole_file
from twinvec.vector_store import VectorStore, text_key


def names_of(folder):
    return sorted(path.name for path in folder.iterdir())


def test_a_symlink_at_a_guessable_name_is_not_written_through(tmp_path):
    precious = tmp_path / "precious"
    precious.write_text("mine")
    (tmp_path / f".out.csv.partial-{os.getpid()}").symlink_to(precious)
    write_rows([("a", "b")], ("x", "y"), tmp_path / "out.csv")
    assert precious.read_text() == "mine"
    assert (tmp_path / "out.csv").read_text() == "x,y\na,b\n"


def test_no_file_that_is_there_is_opened_as_a_partial_one(tmp_path, monkeypatch):
    precious = tmp_path / "precious"
    precious.write_text("mine")
    monkeypatch.setattr("twinvec.files.token_hex", lambda _: "guessed")
    (tmp_path / ".out.partial-guessed").symlink_to(precious)
    with pytest.raises(FileExistsError):
        open_partial(tmp_path / "out")
    with pytest.raises(InputError, match="Cannot write"), new_file(tmp_path / "out") as file:
        file.write(b"x")
    assert precious.read_text() == "mine" and names_of(tmp_path) == [".out.partial-guessed", "precious"]


def test_the_rows_of_a_bulk_job_are_not_written_through_a_planted_link(tmp_path):
    pytest.importorskip("pyarrow")
    precious = tmp_path / "precious"
    precious.write_text("mine")
    (tmp_path / ".rows.partial").symlink_to(precious)
    with RowsWriter(tmp_path, has_ids=False) as rows:
        rows.finish()
    assert precious.read_text() == "mine"


def test_two_partial_files_of_one_target_have_different_names(tmp_path):
    with open_partial(tmp_path / "a") as one, open_partial(tmp_path / "a") as other:
        assert one.name != other.name


@pytest.mark.parametrize(("umask", "rights"), [(0o077, 0o600), (0o022, 0o644), (0o007, 0o660)])
def test_a_file_has_the_permissions_that_the_umask_allows(tmp_path, umask, rights):
    before = os.umask(umask)
    try:
        with whole_file(tmp_path / "a") as file:
            file.write(b"x")
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "a").stat().st_mode) == rights


def test_a_block_that_fails_leaves_the_old_file_and_nothing_else(tmp_path):
    (tmp_path / "a").write_text("old")
    with pytest.raises(KeyboardInterrupt), whole_file(tmp_path / "a") as file:
        file.write(b"new")
        raise KeyboardInterrupt
    assert names_of(tmp_path) == ["a"] and (tmp_path / "a").read_text() == "old"


def test_a_file_that_another_process_has_made_meanwhile_is_kept(tmp_path):
    with pytest.raises(InputError, match="exists already"), new_file(tmp_path / "a") as file:
        file.write(b"ours")
        (tmp_path / "a").write_text("theirs")
    assert names_of(tmp_path) == ["a"] and (tmp_path / "a").read_text() == "theirs"


def test_a_long_name_leaves_room_for_its_partial_file(tmp_path):
    name = "ü" * 127
    with new_file(tmp_path / name) as file:
        file.write(b"x")
    assert names_of(tmp_path) == [name]


def test_a_store_of_vectors_leaves_whole_files_only(tmp_path):
    np = pytest.importorskip("numpy")
    store = VectorStore(tmp_path)
    store.add([text_key("a")], np.ones((1, 4), dtype=np.float32))
    assert len(names_of(tmp_path)) == 1 and not names_of(tmp_path)[0].startswith(".")
    assert VectorStore(tmp_path).rows([text_key("a")]).tolist() == [0]
