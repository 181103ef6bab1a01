"""``twinvec data get``: public data sets into the data folder."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import click

from twinvec.cli.screen import open_console, plain_table, say

if TYPE_CHECKING:
    from twinvec.evaluate.fetching import DataSet

__all__ = ["get"]


@click.command(short_help="Fetch public data sets for evaluation and training.")
@click.argument("names", metavar="[NAME]...", nargs=-1)
@click.option(
    "--data",
    type=click.Path(path_type=Path, file_okay=False),
    envvar="TWINVEC_DATA",
    show_envvar=True,
    help="Folder to put them in.",
)
@click.option("--list", "is_list", is_flag=True, help="List the data sets, and stop.")
@click.option("--force", is_flag=True, help="Fetch again what is there, and replace it.")
@click.option(
    "--from",
    "files_in",
    type=click.Path(path_type=Path, file_okay=False, exists=True),
    help="Fetch nothing: the files are in this folder already, named as in their addresses.",
)
@click.option(
    "--sha256",
    "trusted",
    metavar="HEX",
    multiple=True,
    help="A checksum that you trust, for a file whose own is not known; once for each file of one NAME.",
)
def get(
    *,
    names: tuple[str, ...],
    data: Path | None,
    is_list: bool,
    force: bool,
    files_in: Path | None,
    trusted: tuple[str, ...],
) -> None:
    """Fetch the data sets of these NAMEs from their owners' addresses into the data folder.

    Each is downloaded once, checked where its checksum is known, and written as gzipped tables. An interrupted
    download goes on when the same command is given again. Mind the licences: most are for research. Without a known
    checksum, nothing is fetched by plain http.
    """
    from twinvec.errors import InputError
    from twinvec.evaluate.fetching import SOURCES, install

    if is_list:
        print_sources()
        return
    if not names:
        raise click.UsageError(f"No data set named. Choose from: {', '.join(SOURCES)}.")
    if data is None:
        raise InputError("No data folder was given.", hint="Name it with --data, or set TWINVEC_DATA.")
    if trusted and len(names) != 1:
        raise click.UsageError("--sha256 goes with one NAME.")
    for name in names:
        written = install(name, data, replace=force, sources=_sources(name, trusted), files_in=files_in)
        _say_written(name, written)


def _say_written(name: str, written: list[Path]) -> None:
    from twinvec.evaluate.fetching import SOURCES

    if not written:
        say(f"{name}: is there already.")
        return
    for file in written:
        say(f"{name}: wrote {file}")
    about = SOURCES[name]
    say(" ".join(part for part in (f"{name}: licence {about.licence}.", about.note) if part))


def _sources(name: str, trusted: tuple[str, ...]) -> Mapping[str, DataSet]:
    """The known data sets, one of them with checksums that the user trusts."""
    from twinvec.evaluate.fetching import SOURCES, with_checksums

    if not trusted or name not in SOURCES:
        return SOURCES
    return {name: with_checksums(SOURCES[name], trusted)}


def print_sources() -> None:
    """The data sets, with their licences and whether a download can be checked."""
    from twinvec.evaluate.fetching import SOURCES

    table = plain_table("name", "what", "licence", "checksum")
    for each in SOURCES.values():
        is_checked = all(download.sha256 for download in each.downloads)
        table.add_row(each.name, each.what, each.licence, "sha256" if is_checked else "not known")
    open_console().print(table)
