"""Download public data sets, with resume and checksums, and install them as gzipped tables."""

from __future__ import annotations

import gzip
import hashlib
import http.client
import logging
import tarfile
import urllib.error
import urllib.request
import zipfile
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from itertools import chain
from pathlib import Path
from typing import IO, Any, TypeVar
from urllib.parse import urlsplit

from twinvec.data.http_client import NoAnswer, RedirectRefused, open_url, read_parts
from twinvec.data.source_rows import RawTable
from twinvec.data.sources import SOURCES, DataSet, Download, with_checksums
from twinvec.errors import InputError, UnknownNameError
from twinvec.files import digest_files, new_file
from twinvec.progress import Progress

__all__ = ["get_data_sets"]

logger = logging.getLogger(__name__)

TIMEOUT_S = 60.0
MAX_BYTES = 1 << 32  # the largest data set has 227 MB
RESUME = "Run the command again to resume."
CHANGED = "The file was corrupted or has changed, and was deleted. Try again; if it fails again, report it."


def download(wanted: Download, folder: Path, *, timeout_s: float = TIMEOUT_S) -> Path:
    """Download a file into ``folder``, verify its checksum, and return its path. Resumes a partial download."""
    if wanted.sha256 is None and urlsplit(wanted.address).scheme != "https":
        raise InputError(
            f"Refusing to download {wanted.address}: plain http can be tampered with, and the sha256 is not known.",
            hint=f"Download {wanted.name} yourself and pass its folder with --from, or pass a trusted sha256 with "
            "--sha256.",
        )
    name = hashlib.sha256(wanted.address.encode()).hexdigest()[:12] + "-" + wanted.name
    whole, partial = folder / name, folder / f"{name}.partial"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        if not whole.is_file():
            _fetch(wanted.address, partial, timeout_s)
            try:
                check_digest(wanted, partial, source=wanted.address, hint=CHANGED)
            except InputError:
                _delete_partial(partial)
                raise
            partial.replace(whole)
            _tag_of(partial).unlink(missing_ok=True)
    except OSError as error:  # disk full, or folder not writable
        raise InputError(
            f"Cannot store {wanted.address} in {folder}: {error.strerror or error}.",
            hint=f"Check the disk space and the permissions. {RESUME}",
        ) from error
    return whole


def check_digest(wanted: Download, file: Path, *, source: str, hint: str) -> None:
    """Raise an error if the sha256 of a file is not the known one; ``source`` is its name in messages."""
    if wanted.sha256 is None:
        logger.warning("%s: not verified, because its sha256 is not known.", source)
        return
    sha256 = digest_files([file])
    if sha256 != wanted.sha256:
        raise InputError(f"{source} has the sha256 {sha256}, expected {wanted.sha256}.", hint=hint)


def _fetch(address: str, partial: Path, timeout_s: float) -> None:
    """Complete ``partial`` in at most two requests; a partial download that cannot be resumed is deleted."""
    if _is_filled(address, partial, timeout_s):
        return
    _delete_partial(partial)
    if not _is_filled(address, partial, timeout_s):
        raise InputError(f"{address} returned only part of the file.", hint="Try again later.")


def _is_filled(address: str, partial: Path, timeout_s: float) -> bool:
    """Download the missing part; False if the server cannot resume the partial file."""
    tag_file = _tag_of(partial)
    tag = tag_file.read_text(encoding="utf-8") if tag_file.is_file() and partial.is_file() else ""
    n_there = partial.stat().st_size if tag else 0
    request = urllib.request.Request(address, headers={"User-Agent": "twinvec"})
    if n_there:
        request.add_header("Range", f"bytes={n_there}-")
        request.add_header("If-Range", tag)
    answer = _open(request, address, timeout_s, can_start_over=bool(n_there))
    if answer is None:
        return False
    with answer:
        new_tag = _tag(answer.headers)
        if answer.status != http.client.PARTIAL_CONTENT:
            n_there = 0
        elif not n_there or new_tag != tag or not _starts_at(answer.headers, n_there):
            return False
        tag_file.write_text(new_tag, encoding="utf-8")
        _copy(answer, partial, n_there=n_there, address=address, timeout_s=timeout_s)
    return True


def _open(request: urllib.request.Request, address: str, timeout_s: float, *, can_start_over: bool) -> Any:  # noqa: ANN401 - urllib's own type is Any
    """The open response; None if the partial file is complete already or belongs to another file."""
    try:
        return open_url(request, timeout_s=timeout_s)
    except urllib.error.HTTPError as error:
        error.close()
        if error.code == http.client.REQUESTED_RANGE_NOT_SATISFIABLE and can_start_over:
            return None
        hint = "The data set may have moved." if error.code in (404, 410) else "Try again later."
        raise InputError(f"{address} returned status {error.code}.", hint=hint) from error
    except RedirectRefused as error:
        raise InputError(
            f"{address}: {error}, which is not https.", hint="The redirect was not followed. Please report it."
        ) from error
    except NoAnswer as error:
        if error.is_timeout:
            raise InputError(f"{address} sent no data for {timeout_s:g} s.", hint=RESUME) from error
        raise InputError(f"{address} cannot be reached: {error}.", hint="Check the network.") from error


def _copy(answer: Any, partial: Path, *, n_there: int, address: str, timeout_s: float) -> None:  # noqa: ANN401 - urllib's own type is Any
    total = _total(answer.headers, n_there)
    limit = MAX_BYTES if total is None else total
    with partial.open("ab" if n_there else "wb") as file, Progress(total, address.rsplit("/", 1)[-1]) as bar:
        bar.advance(n_there)
        try:
            n_done = n_there + _write_parts(answer, file, bar, limit=limit - n_there, timeout_s=timeout_s)
        except NoAnswer as error:
            problem = f"sent no data for {timeout_s:g} s" if error.is_timeout else f"was interrupted: {error}"
            raise InputError(f"{address} {problem}.", hint=RESUME) from error
    if n_done > limit:
        _delete_partial(partial)
        raise InputError(f"{address} sent more than {limit:,} bytes.", hint="The file was deleted. Please report it.")
    if total is not None and n_done != total:
        raise InputError(f"{address} was interrupted after {n_done:,} of {total:,} bytes.", hint=RESUME)


def _write_parts(answer: Any, file: IO[bytes], bar: Progress, *, limit: int, timeout_s: float) -> int:  # noqa: ANN401
    """Write the response and return its number of bytes; bytes beyond the limit are not written."""
    n_done = 0
    for part in read_parts(answer, timeout_s=timeout_s):
        n_done += len(part)
        if n_done > limit:
            break
        file.write(part)
        bar.advance(len(part))
    return n_done


def _tag(headers: Mapping[str, str]) -> str:
    """The server's version tag of the file; empty if it has none that can be used to resume."""
    strong = headers.get("ETag", "")
    return headers.get("Last-Modified", "") if not strong or strong.startswith("W/") else strong


def _total(headers: Mapping[str, str], n_there: int) -> int | None:
    """The size of the whole file in bytes, if the server reports it."""
    whole = headers.get("Content-Range", "").rpartition("/")[2] if n_there else ""
    if whole.isdecimal():
        return int(whole)
    header = headers.get("Content-Length", "")
    return n_there + int(header) if header.isdecimal() else None


def _starts_at(headers: Mapping[str, str], n_there: int) -> bool:
    header = headers.get("Content-Range")
    return header is None or header.startswith(f"bytes {n_there}-")


def _delete_partial(partial: Path) -> None:
    for file in (partial, _tag_of(partial)):
        file.unlink(missing_ok=True)


def _tag_of(partial: Path) -> Path:
    return partial.with_name(f"{partial.name}.tag")


DOWNLOADS = ".downloads"
# Raised by the readers for a file in another format.
UNREADABLE = (
    *(zipfile.BadZipFile, tarfile.TarError, gzip.BadGzipFile, zlib.error, EOFError),
    *(LookupError, ValueError, TypeError, AttributeError, RuntimeError),  # RuntimeError: nested too deep, or encrypted
)

Item = TypeVar("Item")


class _NotReadable(Exception):
    """The files do not have the format of the data set."""


def get_data_sets(
    names: Sequence[str],
    folder: str | Path,
    *,
    replace: bool = False,
    files_in: Path | None = None,
    trusted: Sequence[str] = (),
    tell: Callable[[str], None] | None = None,
) -> dict[str, list[Path]]:
    """Download public data sets into the data folder, and return the files written for each name.

    Args:
        names: Names in ``twinvec.data.sources.SOURCES``.
        files_in: Use the original files in this folder instead of downloading them.
        trusted: For a single name: one sha256 per file, in order, if they are not known.
        tell: Called with a line for each file written, and one with the license.

    >>> get_data_sets(["snli", "no-such-set"], "data")  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    twinvec.errors.UnknownNameError: Unknown data set 'no-such-set'. Choose from: ...
    """
    for name in names:
        if name not in SOURCES:
            raise UnknownNameError("data set", name, SOURCES)
    written: dict[str, list[Path]] = {}
    for name in names:
        about = with_checksums(SOURCES[name], trusted) if trusted else SOURCES[name]
        written[name] = install(name, Path(folder), replace=replace, sources={name: about}, files_in=files_in)
        if tell is not None:
            for line in _messages(about, written[name]):
                tell(line)
    return written


def _messages(about: DataSet, written: Sequence[Path]) -> Iterator[str]:
    if not written:
        yield f"{about.name}: already installed."
        return
    yield from (f"{about.name}: wrote {file}" for file in written)
    yield " ".join(part for part in (f"{about.name}: license {about.license}.", about.note) if part)


def install(
    name: str,
    folder: Path,
    *,
    replace: bool = False,
    sources: Mapping[str, DataSet] = SOURCES,
    files_in: Path | None = None,
    timeout_s: float = TIMEOUT_S,
) -> list[Path]:
    """Download a data set into the data folder, and return the files written; none if it is already installed.

    With ``files_in``, nothing is downloaded: that folder has the files, named as in their addresses. An interrupted
    run leaves only complete files, a failed one none; running it again resumes.
    """
    if name not in sources:
        raise UnknownNameError("data set", name, sources)
    data_set = sources[name]
    note = folder / DOWNLOADS / f"{name}.files"  # the files of an earlier call
    if not replace and note.is_file() and all((folder / line).is_file() for line in note.read_text().splitlines()):
        return []
    try:
        if files_in is None:
            files = [download(each, folder / DOWNLOADS, timeout_s=timeout_s) for each in data_set.downloads]
        else:
            files = [_local(each, files_in) for each in data_set.downloads]
    except InputError as error:
        raise InputError(f"{name}: {error.problem}", hint=error.hint) from error
    try:
        targets, written = _write_all(data_set, files, folder, replace=replace)
    except _NotReadable as error:
        raise InputError(f"{name}: {error}", hint=_remove_downloads(files, files_in)) from error
    _remove_downloads(files, files_in)
    note.parent.mkdir(parents=True, exist_ok=True)
    with new_file(note, replace=True) as noted:
        noted.write("".join(f"{target.relative_to(folder)}\n" for target in targets).encode())
    return written


def _local(wanted: Download, folder: Path) -> Path:
    file = folder / wanted.name
    if not file.is_file():
        raise InputError(f"file not found: {file}.", hint=f"Download it from {wanted.address}.")
    check_digest(wanted, file, source=str(file), hint=f"It differs from the file at {wanted.address}.")
    return file


def _remove_downloads(files: list[Path], files_in: Path | None) -> str:
    """Delete downloaded files, but never the user's own; return a hint about them."""
    if files_in is not None:
        return f"Check the files in {files_in}."
    for file in files:
        file.unlink(missing_ok=True)
    return "The download was deleted. Its owner may have changed the format."


def _write_all(data_set: DataSet, files: list[Path], folder: Path, *, replace: bool) -> tuple[list[Path], list[Path]]:
    """The files of all tables, and those written now; they appear only when all are complete."""
    targets, written = [], []
    with ExitStack() as whole:
        for table in _readable(data_set.read(files)):
            target = folder / f"{table.path}.tsv.gz"
            targets.append(target)
            if target.exists() and not replace:  # the user's own, or complete from an interrupted run
                logger.warning("%s already exists and is kept.", target)
                continue
            target.parent.mkdir(parents=True, exist_ok=True)
            _write(table, whole.enter_context(new_file(target, replace=True)))
            written.append(target)
    return targets, written


def _write(table: RawTable, raw: IO[bytes]) -> None:
    """Write a table as gzipped UTF-8 with tabs, one header line, white space collapsed, and no quotes."""
    with gzip.GzipFile(fileobj=raw, mode="wb", filename="", mtime=0) as file:
        file.writelines(_readable(_lines(table)))


def _lines(table: RawTable) -> Iterator[bytes]:
    for row in chain([table.columns], table.rows):
        yield ("\t".join(" ".join(cell.split()) for cell in row) + "\n").encode()


def _readable(items: Iterable[Item]) -> Iterator[Item]:
    """The items; errors in reading them, unlike disk errors, mean that the files have another format."""
    try:
        yield from items
    except InputError as error:
        raise _NotReadable(error.problem) from error
    except UNREADABLE as error:
        raise _NotReadable(f"the downloaded files cannot be read ({type(error).__name__}: {error}).") from error
