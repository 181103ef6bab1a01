"""One file by HTTP: to a temporary name, going on where a broken download stopped, checked before it is used.

What comes by plain http could be changed on its way, so it is taken only where its sha256 is known.
"""

from __future__ import annotations

import hashlib
import http.client
import logging
import urllib.error
import urllib.request
from collections.abc import Mapping
from pathlib import Path
from typing import IO, Any
from urllib.parse import urlsplit

from twinvec.errors import InputError
from twinvec.evaluate.fetching.sources import Download
from twinvec.evaluate.http_client import NoAnswer, RedirectRefused, open_url, read_parts
from twinvec.files import digest_files
from twinvec.progress import Progress

__all__ = ["TIMEOUT_S", "check_digest", "download"]

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
    told = headers.get("Content-Length", "")
    return n_there + int(told) if told.isdecimal() else None


def _starts_at(headers: Mapping[str, str], n_there: int) -> bool:
    told = headers.get("Content-Range")
    return told is None or told.startswith(f"bytes {n_there}-")


def _forget(partial: Path) -> None:
    for file in (partial, _tag_of(partial)):
        file.unlink(missing_ok=True)


def _tag_of(partial: Path) -> Path:
    return partial.with_name(f"{partial.name}.tag")
