"""``twinvec data get``: public data sets into the data folder."""

from __future__ import annotations

from pathlib import Path

import click

from twinvec.cli.screen import open_console, plain_table, say

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
def get(*, names: tuple[str, ...], data: Path | None, is_list: bool, force: bool) -> None:
    """Fetch the data sets of these NAMEs from their owners' addresses into the data folder.

    Each is downloaded once, checked where its checksum is known, and written as gzipped tables. An interrupted
    download goes on when the same command is given again. Mind the licences: most are for research.
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
    for name in names:
        written = install(name, data, replace=force)
        if not written:
            say(f"{name}: is there already.")
        for file in written:
            say(f"{name}: wrote {file}")
        if written and (about := SOURCES[name]).licence:
            say(" ".join(part for part in (f"{name}: licence {about.licence}.", about.note) if part))


def print_sources() -> None:
    """The data sets, with their licences and whether a download can be checked."""
    from twinvec.evaluate.fetching import SOURCES

    table = plain_table("name", "what", "licence", "checksum")
    for each in SOURCES.values():
        is_checked = all(download.sha256 for download in each.downloads)
        table.add_row(each.name, each.what, each.licence, "sha256" if is_checked else "not known")
    open_console().print(table)
