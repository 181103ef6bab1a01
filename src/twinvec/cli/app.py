"""The command ``twinvec`` and its subcommands."""

from __future__ import annotations

import click

from twinvec.cli.bench import bench
from twinvec.cli.cluster import cluster
from twinvec.cli.compare import compare
from twinvec.cli.data import data, get, negatives
from twinvec.cli.dedup import dedup
from twinvec.cli.demo import demo
from twinvec.cli.distil import distil
from twinvec.cli.embed import embed
from twinvec.cli.evaluate import evaluate
from twinvec.cli.explain import explain
from twinvec.cli.index import index
from twinvec.cli.inspect import inspect
from twinvec.cli.layers import layers
from twinvec.cli.pairs import pairs
from twinvec.cli.screen import CleanErrors, show_version
from twinvec.cli.search import search
from twinvec.cli.similarity import similarity
from twinvec.cli.sweep import sweep
from twinvec.cli.train import train

__all__ = ["main"]


@click.group(cls=CleanErrors, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.option(
    "--version",
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=show_version,
    help="Show the version.",
)
def main() -> None:
    """Sentence vectors on the machine you have.

    Results go to standard output, all else to standard error. Exit codes: 0 done, 1 an error, 2 a wrong call,
    130 interrupted (Ctrl-C). Control characters in texts and names are shown on a terminal as \\uXXXX; data for a
    file or a pipe stay as they are.
    """


COMMANDS = (
    demo,
    embed,
    similarity,
    explain,
    pairs,
    search,
    index,
    dedup,
    cluster,
    inspect,
    layers,
    sweep,
    bench,
    data,
    train,
    distil,
    evaluate,
    compare,
)
for command in COMMANDS:
    main.add_command(command)
data.add_command(get)
data.add_command(negatives)
