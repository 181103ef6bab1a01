"""Servers of public data cannot be trusted: what is not checked is refused, and nothing is half done."""

import errno
import hashlib
import io
from contextlib import suppress

import pytest
from test_fetching import CRANFIELD, NLI_LINE, SICK, SNLI, Flaky, no_proxy, serve_all, source, zipped

from servers import reply, serving
from twinvec.data import download as installing
from twinvec.data.download import install
from twinvec.data.sources import SOURCES, with_checksums
from twinvec.errors import InputError

assert no_proxy  # a fixture for every test here, too


def test_plain_http_without_a_checksum_is_refused_before_anything_is_asked(tmp_path):
    seen = []
    with serving(lambda handler, _: seen.append(handler.path)) as address:
        sources = source("sick", address, [SICK], checked=False)
        with pytest.raises(InputError, match=rf"sick: Refusing to download {address}/0: plain http.*--from.*--sha256"):
            install("sick", tmp_path, sources=sources)
    assert seen == [] and list(tmp_path.iterdir()) == []


def test_a_checksum_that_the_user_trusts_allows_plain_http(tmp_path):
    with serving(serve_all([SICK])) as address:
        unknown = source("sick", address, [SICK], checked=False)["sick"]
        trusted = with_checksums(unknown, [hashlib.sha256(SICK).hexdigest().upper()])
        assert len(install("sick", tmp_path, sources={"sick": trusted})) == 3
        wrong = {"sick": with_checksums(unknown, ["0" * 64])}
        with pytest.raises(InputError, match=r"has the sha256 \w{64}, expected 0{64}"):
            install("sick", tmp_path / "other", sources=wrong)


@pytest.mark.parametrize(
    ("trusted", "message"),
    [
        ([], "has 1 files, but 0 sha256"),
        (["12"], "Invalid sha256 '12'"),
        (["g" * 64], "Invalid sha256"),
        (["0" * 64], "The known sha256 of snli_1.0.zip is afb3"),
    ],
)
def test_a_trusted_checksum_must_be_one_and_cannot_replace_a_known_one(trusted, message):
    with pytest.raises(InputError, match=message):
        with_checksums(SOURCES["snli"], trusted)


def test_files_that_the_user_downloaded_are_checked_used_and_kept(tmp_path):
    mine = tmp_path / "mine"
    mine.mkdir()
    sources = source("snli", "http://127.0.0.1:9", [SNLI])
    with pytest.raises(InputError, match=r"snli: file not found: .*mine/0\. Download it from http"):
        install("snli", tmp_path, sources=sources, files_in=mine)
    (mine / "0").write_bytes(b"something else")
    with pytest.raises(InputError, match=r"mine/0 has the sha256 \w{64}, expected \w{64}"):
        install("snli", tmp_path, sources=sources, files_in=mine)
    (mine / "0").write_bytes(SNLI)
    assert len(install("snli", tmp_path, sources=sources, files_in=mine)) == 3
    assert (mine / "0").read_bytes() == SNLI
    (mine / "0").write_bytes(b"no zip")
    unreadable = source("snli", "http://127.0.0.1:9", [b"no zip"])
    with pytest.raises(InputError, match=r"cannot be read \(BadZipFile.*Check the files in"):
        install("snli", tmp_path, sources=unreadable, files_in=mine, replace=True)
    assert (mine / "0").exists()


def test_the_command_takes_files_and_checksums(tmp_path):
    from click.testing import CliRunner

    from twinvec.cli import main

    mine, data = tmp_path / "mine", tmp_path / "data"
    mine.mkdir()
    (mine / "cran.tar.gz").write_bytes(CRANFIELD)
    call = ["data", "get", "cranfield", "--data", str(data), "--from", str(mine), "--sha256"]
    wrong = CliRunner().invoke(main, [*call, "0" * 64])
    assert wrong.exit_code == 1 and "has the sha256" in wrong.output and not (data / "search").exists()
    right = CliRunner().invoke(main, [*call, hashlib.sha256(CRANFIELD).hexdigest()])
    assert right.exit_code == 0 and (data / "search/cranfield-docs.tsv.gz").is_file()


@pytest.mark.parametrize("has_part", [False, True])
def test_a_server_that_always_answers_416_is_asked_twice_at_most(tmp_path, has_part):
    asked = []

    def refuse(handler, _):
        asked.append(handler.headers.get("Range"))
        reply(handler, 416, b"")

    with serving(Flaky(SNLI)) as address:
        sources = source("snli", address, [SNLI])
        if has_part:
            with pytest.raises(InputError, match="was interrupted"):
                install("snli", tmp_path, sources=sources)
        port = int(address.rsplit(":", 1)[1])
    with serving(refuse, port=port), pytest.raises(InputError, match="returned status 416"):
        install("snli", tmp_path, sources=sources)
    assert asked == ([f"bytes={len(SNLI) // 2}-", None] if has_part else [None])
    assert not (tmp_path / "nli").exists()


@pytest.mark.parametrize("target", ["http://127.0.0.1:9/x", "ftp://127.0.0.1/x", "file:///etc/passwd"])
def test_an_https_download_does_not_follow_a_redirect_to_http(tmp_path, target):
    def redirect(handler, _):
        reply(handler, 302, b"", [("Location", target)])

    with serving(redirect, secure=True) as address, pytest.raises(InputError, match=r"snli: https://.*302"):
        install("snli", tmp_path, sources=source("snli", address, [SNLI]))
    assert list((tmp_path / ".downloads").iterdir()) == []


def test_a_download_follows_a_redirect_that_stays_with_https(tmp_path):
    with serving(serve_all([SNLI]), secure=True) as target:

        def redirect(handler, _):
            reply(handler, 302, b"", [("Location", f"{target}/0")])

        with serving(redirect, secure=True) as address:
            assert len(install("snli", tmp_path, sources=source("snli", address, [SNLI]))) == 3


def test_redirects_in_a_circle_end(tmp_path):
    def redirect(handler, _):
        reply(handler, 302, b"", [("Location", "/0")])

    with serving(redirect) as address, pytest.raises(InputError, match="status 302"):
        install("snli", tmp_path, sources=source("snli", address, [SNLI]))


@pytest.mark.parametrize("fault", ["another tag", "another start"])
def test_a_mismatched_partial_download_is_dropped_and_started_over(tmp_path, fault):
    """The server answers with a part, as if If-Range were unknown to it."""
    server, half = Flaky(SNLI), len(SNLI) // 2

    def careless(handler, body):
        if not handler.headers.get("Range"):
            return server(handler, body)
        server.asked.append("a part")
        start = 0 if fault == "another start" else half
        tag = "other" if fault == "another tag" else "1"
        told = [("ETag", tag), ("Content-Range", f"bytes {start}-{len(SNLI) - 1}/{len(SNLI)}")]
        return reply(handler, 206, b"X" * (len(SNLI) - half), told)

    with serving(careless) as address:
        sources = source("snli", address, [SNLI])
        with pytest.raises(InputError, match="was interrupted"):
            install("snli", tmp_path, sources=sources)
        assert len(install("snli", tmp_path, sources=sources)) == 3
    assert server.asked == [None, "a part", None]


def test_a_truncated_download_is_not_accepted(tmp_path):
    server, half = Flaky(SNLI), len(SNLI) // 2

    def short(handler, body):
        if not handler.headers.get("Range"):
            return server(handler, body)
        return reply(handler, 206, b"", [("ETag", "1"), ("Content-Range", f"bytes {half}-{half}/{len(SNLI)}")])

    with serving(short, secure=True) as address:
        sources = source("snli", address, [SNLI], checked=False)
        for _ in range(2):
            with pytest.raises(InputError, match=rf"was interrupted after {half:,} of {len(SNLI):,} bytes"):
                install("snli", tmp_path, sources=sources)
    assert not (tmp_path / "nli").exists()


def test_a_body_beyond_what_was_announced_is_not_taken(tmp_path):
    def longer(handler, _):
        handler.send_response(200)
        handler.send_header("Content-Length", str(len(SNLI)))
        handler.end_headers()
        handler.wfile.write(SNLI + b"more")

    with serving(longer) as address:
        assert len(install("snli", tmp_path, sources=source("snli", address, [SNLI]))) == 3


def test_an_endless_download_is_aborted(tmp_path, monkeypatch):
    monkeypatch.setattr("twinvec.data.download.MAX_BYTES", 1_000_000)

    def endless(handler, _):
        handler.send_response(200)
        handler.end_headers()
        with suppress(OSError):
            while True:
                handler.wfile.write(b" " * 10_000)

    with serving(endless) as address, pytest.raises(InputError, match="sent more than 1,000,000 bytes"):
        install("snli", tmp_path, sources=source("snli", address, [SNLI]))
    assert list((tmp_path / ".downloads").iterdir()) == []


@pytest.mark.parametrize("length", ["many", "-1", "1e3", ""])
def test_an_invalid_content_length_is_ignored(tmp_path, length):
    def answer(handler, _):
        handler.send_response(200)
        handler.send_header("Content-Length", length)
        handler.end_headers()
        handler.wfile.write(SNLI)

    with serving(answer) as address:
        assert len(install("snli", tmp_path, sources=source("snli", address, [SNLI]))) == 3


class FullDisk(io.BytesIO):
    def write(self, _):
        raise OSError(errno.ENOSPC, "No space left on device")


def test_a_full_disk_during_a_download_is_reported_and_nothing_is_installed(tmp_path, monkeypatch):
    opened = type(tmp_path).open

    def full(path, mode="r", **rest):
        return FullDisk() if path.name.endswith(".partial") and "b" in mode else opened(path, mode, **rest)

    monkeypatch.setattr(type(tmp_path), "open", full)
    message = r"snli: Cannot store http.*/0 in .*\.downloads: No space left on device\. Check the disk space"
    with serving(serve_all([SNLI])) as address, pytest.raises(InputError, match=message):
        install("snli", tmp_path, sources=source("snli", address, [SNLI]))
    assert not (tmp_path / "nli").exists()


def test_a_full_disk_while_writing_keeps_the_download_and_installs_nothing(tmp_path, monkeypatch):
    written = []

    def full(table, raw):
        written.append(table.path)
        if len(written) == 3:
            raise OSError(errno.ENOSPC, "No space left on device")
        raw.write(b"x")

    with serving(serve_all([SNLI])) as address, monkeypatch.context() as patched:
        patched.setattr(installing, "_write", full)
        sources = source("snli", address, [SNLI])
        with pytest.raises(InputError, match=r"Cannot write .*snli-test.*No space left on device"):
            install("snli", tmp_path, sources=sources)
        assert list((tmp_path / "nli").iterdir()) == []
    assert len(install("snli", tmp_path, sources=sources)) == 3  # without its server


def test_a_table_that_cannot_be_read_leaves_none_of_the_others(tmp_path):
    broken = zipped(
        **{f"snli_1.0/snli_1.0_{split}.jsonl": NLI_LINE for split in ("train", "dev")},
        **{"snli_1.0/snli_1.0_test.jsonl": "[" * 100_000},
    )
    with serving(serve_all([broken])) as address, pytest.raises(InputError, match="snli: the downloaded files cannot"):
        install("snli", tmp_path, sources=source("snli", address, [broken]))
    assert list((tmp_path / "nli").iterdir()) == []
