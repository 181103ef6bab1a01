"""``twinvec words``: word vectors of others as a folder that is used like a model."""

from __future__ import annotations

import click

from twinvec.cli.options import column_option, out_option
from twinvec.cli.screen import say

__all__ = ["words"]


@click.command()
@click.argument("source", metavar="FILE|FOLDER")
@out_option("FOLDER", "Folder to write; it must not exist yet.", required=True)
@click.option(
    "--lower-case/--keep-case",
    default=None,
    help="Lower-case texts first, or not. Default: lower-case them if fewer than 1 % of the words have capitals.",
)
@click.option("--sif", type=float, metavar="A", help="Weight a word by A / (A + its frequency), such as 0.001.")
@click.option(
    "--components",
    type=click.IntRange(min=0),
    default=0,
    show_default=True,
    help="Remove this many directions that the vectors of most texts of --texts share; SIF removes 1.",
)
@click.option(
    "--texts", metavar="FILE", help="Texts to count words in and to find the components by; read as by embed."
)
@column_option
@click.option("--frequencies", metavar="FILE", help="For --sif, a file with a word and its count on each line.")
def words(
    *,
    source: str,
    out: str,
    lower_case: bool | None,
    sif: float | None,
    components: int,
    texts: str | None,
    column: str | None,
    frequencies: str | None,
) -> None:
    """Convert word vectors to FOLDER, which evaluate, embed, search, pairs, cluster and index take as a model.

    FILE has a word and its numbers on each line, as GloVe, word2vec and fastText write text, plain or gzipped; or it is
    a .npy of vectors beside a .parquet of words. FOLDER, in its place, holds such a pair, or word vectors that were
    converted before, to be weighted anew. The vector of a text is the mean of the vectors of its words.
    """
    import twinvec
    from twinvec.data.read import read_texts

    found = twinvec.convert_word_vectors(
        source,
        out,
        twinvec.WordSettings(lower_case, sif, components),
        texts=None if texts is None else read_texts(texts, column),
        frequencies=frequencies,
    )
    say(f"{out} holds {found.n_words:,} words, {found.width} wide.")
