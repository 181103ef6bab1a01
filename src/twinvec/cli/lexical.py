"""``twinvec lexical``: fit tf-idf or BM25 on texts."""

from __future__ import annotations

import click

from twinvec.choices import LEXICAL_KINDS, LexicalKind
from twinvec.cli.options import column_option, out_option
from twinvec.cli.screen import say

__all__ = ["lexical"]


@click.command()
@click.argument("kind", type=click.Choice(LEXICAL_KINDS))
@click.argument("source", metavar="FILE")
@out_option("FOLDER", "Folder to write; it must not exist yet.", required=True)
@column_option
def lexical(*, kind: LexicalKind, source: str, out: str, column: str | None) -> None:
    """Fit tf-idf or BM25 on the texts of FILE, in the formats of twinvec embed.

    A folder of tfidf works as a model in evaluate, embed, search, pairs, cluster and index. A folder of bm25 works as a
    scorer in score, rank, evaluate and search --rerank; it contains the texts.
    """
    import twinvec
    from twinvec.data.read import read_texts

    texts = list(read_texts(source, column))
    twinvec.fit_lexical(texts, out, kind)
    say(f"Fitted {kind} on {len(texts):,} texts; saved to {out}.")
