"""Download public data sets: resumable, checksum-verified, and installed as gzipped tables."""

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
MAX_BYTES = 1 << 32  # the largest of the data sets has 227 MB
GO_ON = "Run it again to go on."


def download(wanted: Download, folder: Path, *, timeout_s: float = TIMEOUT_S) -> Path:
    """The file, whole and checked, in ``folder``. A part of it that is there already is not asked for again."""
    if wanted.sha256 is None and urlsplit(wanted.address).scheme != "https":
        raise InputError(
            f"{wanted.address} is not fetched: plain http can be changed on its way, and the sha256 is not known.",
            hint=f"Fetch {wanted.name} yourself and name its folder with --from, or give a sha256 that you trust with "
            "--sha256.",
        )
    name = hashlib.sha256(wanted.address.encode()).hexdigest()[:12] + "-" + wanted.name
    whole, partial = folder / name, folder / f"{name}.partial"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        if not whole.is_file():
            _fetch(wanted.address, partial, timeout_s)
            _check(wanted, partial)
            partial.replace(whole)
            _tag_of(partial).unlink(missing_ok=True)
    except OSError as error:  # the disk is full, or the folder cannot be written
        raise InputError(
            f"{wanted.address} cannot be stored in {folder}: {error.strerror or error}.", hint=f"Make room. {GO_ON}"
        ) from error
    return whole


def check_digest(wanted: Download, file: Path, *, source: str, hint: str) -> None:
    """Refuse a file that does not have the sha256 that is known; ``source`` is what messages call it."""
    if wanted.sha256 is None:
        logger.warning("%s: not checked, its sha256 is not known.", source)
        return
    found = digest_files([file])
    if found != wanted.sha256:
        raise InputError(f"{source} has the sha256 {found}, not {wanted.sha256}.", hint=hint)


def _check(wanted: Download, partial: Path) -> None:
    hint = "It was damaged on its way or has been changed, and is removed. Run it again, or report it."
    try:
        check_digest(wanted, partial, source=wanted.address, hint=hint)
    except InputError:
        _forget(partial)
        raise


def _fetch(address: str, partial: Path, timeout_s: float) -> None:
    """Fill ``partial``, in two requests at most: if a part of an earlier download does not fit, it is dropped."""
    if _is_filled(address, partial, timeout_s):
        return
    _forget(partial)
    if not _is_filled(address, partial, timeout_s):
        raise InputError(f"{address} gives a part of the file where all of it was asked for.", hint="Try again later.")


def _is_filled(address: str, partial: Path, timeout_s: float) -> bool:
    """Ask for what is missing; False if the server cannot go on with the part that is there."""
    tag_file = _tag_of(partial)
    tag = tag_file.read_text(encoding="utf-8") if tag_file.is_file() and partial.is_file() else ""
    n_there = partial.stat().st_size if tag else 0
    asked = urllib.request.Request(address, headers={"User-Agent": "twinvec"})
    if n_there:
        asked.add_header("Range", f"bytes={n_there}-")
        asked.add_header("If-Range", tag)
    answer = _opened(asked, address, timeout_s, can_start_over=bool(n_there))
    if answer is None:
        return False
    with answer:
        found = _tag(answer.headers)
        if answer.status != http.client.PARTIAL_CONTENT:
            n_there = 0
        elif not n_there or found != tag or not _starts_at(answer.headers, n_there):
            return False
        tag_file.write_text(found, encoding="utf-8")
        _copy(answer, partial, n_there=n_there, address=address, timeout_s=timeout_s)
    return True


def _opened(asked: urllib.request.Request, address: str, timeout_s: float, *, can_start_over: bool) -> Any:  # noqa: ANN401 - urllib's own type is Any
    """The open answer; None if the part that is there is all of the file, or one of another file."""
    try:
        return open_url(asked, timeout_s=timeout_s, redirects="secure")
    except urllib.error.HTTPError as error:
        error.close()
        if error.code == http.client.REQUESTED_RANGE_NOT_SATISFIABLE and can_start_over:
            return None
        hint = "The data set may have moved." if error.code in (404, 410) else "Try again later."
        raise InputError(f"{address} answers with status {error.code}.", hint=hint) from error
    except RedirectRefused as error:
        raise InputError(f"{address}: {error}, which is not https.", hint="It is not followed. Report it.") from error
    except NoAnswer as error:
        if error.is_timeout:
            raise InputError(f"{address} gave nothing for {timeout_s:g} s.", hint=GO_ON) from error
        raise InputError(f"{address} cannot be reached: {error}.", hint="Check the network.") from error


def _copy(answer: Any, partial: Path, *, n_there: int, address: str, timeout_s: float) -> None:  # noqa: ANN401 - urllib's own type is Any
    total = _total(answer.headers, n_there)
    limit = MAX_BYTES if total is None else total
    with partial.open("ab" if n_there else "wb") as file, Progress(total, address.rsplit("/", 1)[-1]) as bar:
        bar.advance(n_there)
        try:
            n_done = n_there + _write_parts(answer, file, bar, limit=limit - n_there, timeout_s=timeout_s)
        except NoAnswer as error:
            problem = f"gave nothing for {timeout_s:g} s" if error.is_timeout else f"broke off: {error}"
            raise InputError(f"{address} {problem}.", hint=GO_ON) from error
    if n_done > limit:
        _forget(partial)
        raise InputError(f"{address} gives more than {limit:,} bytes.", hint="It is removed. Report it.")
    if total is not None and n_done != total:
        raise InputError(f"{address} broke off after {n_done:,} of {total:,} bytes.", hint=GO_ON)


def _write_parts(answer: Any, file: IO[bytes], bar: Progress, *, limit: int, timeout_s: float) -> int:  # noqa: ANN401
    """How many bytes came; what is beyond the limit is not written."""
    n_done = 0
    for part in read_parts(answer, timeout_s=timeout_s):
        n_done += len(part)
        if n_done > limit:
            break
        file.write(part)
        bar.advance(len(part))
    return n_done


def _tag(headers: Mapping[str, str]) -> str:
    """The version of the file, in the server's words; empty where it names none that a later request may go on with."""
    strong = headers.get("ETag", "")
    return headers.get("Last-Modified", "") if not strong or strong.startswith("W/") else strong


def _total(headers: Mapping[str, str], n_there: int) -> int | None:
    """How many bytes the whole file has, if the server says so."""
    whole = headers.get("Content-Range", "").rpartition("/")[2] if n_there else ""
    if whole.isdecimal():
        return int(whole)
    header = headers.get("Content-Length", "")
    return n_there + int(header) if header.isdecimal() else None


def _starts_at(headers: Mapping[str, str], n_there: int) -> bool:
    header = headers.get("Content-Range")
    return header is None or header.startswith(f"bytes {n_there}-")


def _forget(partial: Path) -> None:
    for file in (partial, _tag_of(partial)):
        file.unlink(missing_ok=True)


def _tag_of(partial: Path) -> Path:
    return partial.with_name(f"{partial.name}.tag")


DOWNLOADS = ".downloads"
# What a file of another form makes the readers raise.
UNREADABLE = (
    *(zipfile.BadZipFile, tarfile.TarError, gzip.BadGzipFile, zlib.error, EOFError),
    *(LookupError, ValueError, TypeError, AttributeError, RuntimeError),  # RuntimeError: too deep, or encrypted
)

Item = TypeVar("Item")


class _NotReadable(Exception):
    """The files are not of the form that the data set has."""


def get_data_sets(
    names: Sequence[str],
    folder: str | Path,
    *,
    replace: bool = False,
    files_in: Path | None = None,
    trusted: Sequence[str] = (),
    tell: Callable[[str], None] | None = None,
) -> dict[str, list[Path]]:
    """Fetch public data sets into the data folder; returns the files written for each name.

    Args:
        names: Those of ``twinvec.data.sources.SOURCES``.
        files_in: Fetch nothing; the owners' files are in this folder already.
        trusted: A sha256 for each file of a data set whose own is not known, in their order; for a single name.
        tell: Called with a line for each file that is written, and one with the license.

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
        for line in _lines_about(about, written[name]):
            if tell is not None:
                tell(line)
    return written


def _lines_about(about: DataSet, written: Sequence[Path]) -> Iterator[str]:
    if not written:
        yield f"{about.name}: is there already."
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
    """Fetch a data set into the data folder; returns the files written, none where all are there already.

    With ``files_in`` nothing is fetched: its files, named as in their addresses, are in that folder already. A kill at
    any moment leaves whole files only, an error none; running it again goes on where it was.
    """
    if name not in sources:
        raise UnknownNameError("data set", name, sources)
    data_set = sources[name]
    note = folder / DOWNLOADS / f"{name}.files"  # what an earlier call made
    if not replace and note.is_file() and all((folder / line).is_file() for line in note.read_text().splitlines()):
        return []
    if files_in is None:
        files = [_fetched(each, folder / DOWNLOADS, timeout_s, name) for each in data_set.downloads]
    else:
        files = [_local(each, files_in, name) for each in data_set.downloads]
    try:
        targets, written = _write_all(data_set, files, folder, replace=replace)
    except _NotReadable as error:
        raise InputError(f"{name}: {error}", hint=_dropped(files, files_in)) from error
    _dropped(files, files_in)
    note.parent.mkdir(parents=True, exist_ok=True)
    with new_file(note, replace=True) as noted:
        noted.write("".join(f"{target.relative_to(folder)}\n" for target in targets).encode())
    return written


def _fetched(wanted: Download, folder: Path, timeout_s: float, name: str) -> Path:
    try:
        return download(wanted, folder, timeout_s=timeout_s)
    except InputError as error:
        raise InputError(f"{name}: {error.problem}", hint=error.hint) from error


def _local(wanted: Download, folder: Path, name: str) -> Path:
    file = folder / wanted.name
    if not file.is_file():
        raise InputError(f"{name}: there is no file {file}.", hint=f"Fetch it from {wanted.address}.")
    check_digest(wanted, file, source=str(file), hint=f"It is not the file that {wanted.address} once gave.")
    return file


def _dropped(files: list[Path], files_in: Path | None) -> str:
    """Remove what was downloaded, never the user's own files; says which."""
    if files_in is not None:
        return f"Check the files in {files_in}."
    for file in files:
        file.unlink(missing_ok=True)
    return "It is removed. Its owner may have changed its form."


def _write_all(data_set: DataSet, files: list[Path], folder: Path, *, replace: bool) -> tuple[list[Path], list[Path]]:
    """The files of all tables, and those written now. They take their names when all of them are whole."""
    targets, written = [], []
    with ExitStack() as whole:
        for table in _readable(data_set.read(files)):
            target = folder / f"{table.path}.tsv.gz"
            targets.append(target)
            if target.exists() and not replace:  # the user's, or whole from a run that was killed
                logger.warning("%s exists already and is kept.", target)
                continue
            target.parent.mkdir(parents=True, exist_ok=True)
            _write(table, whole.enter_context(new_file(target, replace=True)))
            written.append(target)
    return targets, written


def _write(table: RawTable, raw: IO[bytes]) -> None:
    """Write a table as UTF-8, tab-separated, gzipped, one header line, white space folded, without quotes."""
    with gzip.GzipFile(fileobj=raw, mode="wb", filename="", mtime=0) as file:
        for line in _readable(_lines(table)):
            file.write(line)


def _lines(table: RawTable) -> Iterator[bytes]:
    for row in chain([table.columns], table.rows):
        yield ("\t".join(" ".join(cell.split()) for cell in row) + "\n").encode()


def _readable(items: Iterable[Item]) -> Iterator[Item]:
    """The items; whatever goes wrong while they are read is the fault of the files, unlike what the disk does."""
    try:
        yield from items
    except InputError as error:
        raise _NotReadable(error.problem) from error
    except UNREADABLE as error:
        raise _NotReadable(f"what was downloaded cannot be read ({type(error).__name__}: {error}).") from error
