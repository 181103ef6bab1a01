"""``twinvec words``: convert word vectors to a folder that works as a model."""

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
    help="Lowercase texts first, or not. Default: lowercase if fewer than 1 % of the words have capitals.",
)
@click.option("--sif", type=float, metavar="A", help="Weight a word by A / (A + its frequency), such as 0.001.")
@click.option(
    "--components",
    type=click.IntRange(min=0),
    default=0,
    help="Number of principal components of the vectors of --texts to remove; SIF removes 1.",
)
@click.option(
    "--texts",
    metavar="FILE",
    help="Texts to estimate word frequencies and components from, in the formats of twinvec embed.",
)
@column_option
@click.option("--frequencies", metavar="FILE", help="For --sif: file with a word and its count on each line.")
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
    """Convert word vectors to a folder that works as a model in evaluate, embed, search, pairs, cluster and index.

    FILE is in the text format of GloVe, word2vec or fastText (a word and its numbers on each line), plain or gzipped,
    or it is a .npy file of vectors next to a .parquet file of words. FOLDER contains such a pair, or word vectors
    that were converted before, to change their weights. The vector of a text is the mean of its word vectors.
    """
    import twinvec
    from twinvec.data.read import read_texts

    vectors = twinvec.convert_word_vectors(
        source,
        out,
        twinvec.WordSettings(lower_case, sif, components),
        texts=None if texts is None else read_texts(texts, column),
        frequencies=frequencies,
    )
    say(f"Saved {vectors.n_words:,} words, {vectors.width} wide, to {out}.")
