"""One file by HTTP: to a temporary name, going on where a broken download stopped, checked before it is used."""

from __future__ import annotations

import hashlib
import http.client
import logging
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

from twinvec.errors import InputError
from twinvec.evaluate.fetching.sources import Download
from twinvec.files import digest_files
from twinvec.progress import Progress

__all__ = ["download"]

logger = logging.getLogger(__name__)

CHUNK_BYTES = 1 << 18
TIMEOUT_S = 60.0


def download(wanted: Download, folder: Path, *, timeout_s: float = TIMEOUT_S) -> Path:
    """The file, whole and checked, in ``folder``. A part of it that is there already is not asked for again."""
    folder.mkdir(parents=True, exist_ok=True)
    name = hashlib.sha256(wanted.address.encode()).hexdigest()[:12] + "-" + wanted.address.rsplit("/", 1)[-1]
    whole, partial = folder / name, folder / f"{name}.partial"
    if not whole.is_file():
        _fetch(wanted.address, partial, timeout_s)
        _check(wanted, partial)
        partial.replace(whole)
        _tag_of(partial).unlink(missing_ok=True)
    return whole


def _fetch(address: str, partial: Path, timeout_s: float) -> None:
    """Fill ``partial``; what a broken download left is kept, with the tag by which the server knows its version."""
    tag_file = _tag_of(partial)
    tag = tag_file.read_text(encoding="utf-8") if tag_file.is_file() and partial.is_file() else ""
    n_there = partial.stat().st_size if tag else 0
    asked = urllib.request.Request(address, headers={"User-Agent": "twinvec"})
    if n_there:
        asked.add_header("Range", f"bytes={n_there}-")
        asked.add_header("If-Range", tag)
    try:
        with urllib.request.urlopen(asked, timeout=timeout_s) as answer:
            n_there = n_there if answer.status == http.client.PARTIAL_CONTENT else 0
            tag = answer.headers.get("ETag") or answer.headers.get("Last-Modified") or ""
            tag_file.write_text(tag, encoding="utf-8")
            _copy(answer, partial, n_there=n_there, address=address)
    except urllib.error.HTTPError as error:
        error.close()
        if error.code == http.client.REQUESTED_RANGE_NOT_SATISFIABLE:  # all of it is there, or it is another file
            partial.unlink(missing_ok=True)
            return _fetch(address, partial, timeout_s)
        hint = "The data set may have moved." if error.code in (404, 410) else "Try again later."
        raise InputError(f"{address} answers with status {error.code}.", hint=hint) from error
    except TimeoutError as error:
        raise InputError(f"{address} gave nothing for {timeout_s:g} s.", hint="Run it again to go on.") from error
    except urllib.error.URLError as error:
        raise InputError(f"{address} cannot be reached: {error.reason}.", hint="Check the network.") from error
    return None


def _copy(answer: Any, partial: Path, *, n_there: int, address: str) -> None:  # noqa: ANN401 - urlopen's own type is Any
    told = answer.headers.get("Content-Length")
    total = n_there + int(told) if told else None
    n_done = n_there
    with partial.open("ab" if n_there else "wb") as file, Progress(total, address.rsplit("/", 1)[-1]) as bar:
        bar.advance(n_there)
        try:
            while chunk := answer.read(CHUNK_BYTES):
                file.write(chunk)
                n_done += len(chunk)
                bar.advance(len(chunk))
        except (http.client.HTTPException, ConnectionError) as error:
            raise InputError(f"{address} broke off after {n_done:,} bytes.", hint="Run it again to go on.") from error
    if total is not None and n_done != total:
        raise InputError(f"{address} broke off after {n_done:,} of {total:,} bytes.", hint="Run it again to go on.")


def _check(wanted: Download, file: Path) -> None:
    if wanted.sha256 is None:
        logger.warning("%s: not checked, its sha256 is not known.", wanted.address)
        return
    found = digest_files([file])
    if found != wanted.sha256:
        file.unlink()
        _tag_of(file).unlink(missing_ok=True)
        raise InputError(
            f"{wanted.address} has the sha256 {found}, not {wanted.sha256}.",
            hint="It was damaged on its way or has been changed, and is removed. Run it again, or report it.",
        )


def _tag_of(partial: Path) -> Path:
    return partial.with_name(f"{partial.name}.tag")
