"""The demo: compare all pairs of 10,000 sentences found in every Python installation, and answer three questions."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple, TypeVar

from twinvec.choices import DEFAULT_MODEL
from twinvec.data.sentences import are_near_duplicates, gather_sentences, shared_words
from twinvec.embedder import Embedder, ModelEmbedder, ModelLike, as_embedder, embed_texts
from twinvec.search.exact import search
from twinvec.search.pairs import most_similar_pairs

__all__ = ["Answer", "Demo", "Match", "Times", "run_demo"]

Result = TypeVar("Result")

N_SENTENCES = 10_000
N_NEAREST, N_REWORDED = 5, 7
N_CANDIDATES = 20_000  # many of the best pairs differ in only one word
FEW_WORDS = 0.3  # largest share of common words in a reworded pair
N_ANSWERS = 3
QUESTIONS = (
    "How do I run another program and read its output?",
    "How can I make a temporary file that deletes itself?",
    "Which function guesses the type of a file from its name?",
)


@dataclass(frozen=True, slots=True)
class Times:
    """The seconds each step took."""

    gathering_s: float
    loading_s: float
    embedding_s: float
    comparing_s: float
    searching_s: float


class Match(NamedTuple):
    """Two rows and the score of their texts."""

    score: float
    left: int
    right: int


@dataclass(frozen=True, slots=True)
class Answer:
    """A question with the score and row of its best texts."""

    question: str
    hits: Sequence[tuple[float, int]]


@dataclass(frozen=True, slots=True)
class Demo:
    """The results of the demo: most similar pairs, reworded pairs, answers and times."""

    texts: Sequence[str]
    nearest: Sequence[Match]
    reworded: Sequence[Match]
    answers: Sequence[Answer]
    times: Times


def run_demo(
    model: ModelLike | Embedder = DEFAULT_MODEL,
    *,
    n_sentences: int = N_SENTENCES,
    tell: Callable[[str], None] | None = None,
) -> Demo:
    """Find the most similar pairs among sentences of Python's standard library, and answer three questions.

    ``tell`` is called with a line of text before each step.

    >>> demo = run_demo(n_sentences=50)
    >>> len(demo.texts), len(demo.answers)
    (50, 3)
    """
    say = tell or (lambda line: None)
    say("Gathering sentences from the docstrings of Python's standard library ...")
    texts, gathering_s = timed(lambda: gather_sentences(n_sentences))
    if len(texts) < n_sentences:
        say(f"This Python has only {len(texts):,} distinct sentences; using all of them.")
    embedder = as_embedder(model)
    say(f"Loading {_describe(embedder)} ...")
    _, loading_s = timed(lambda: embedder.encoder if isinstance(embedder, ModelEmbedder) else None)
    say(f"Embedding {len(texts):,} sentences ...")
    vectors, embedding_s = timed(lambda: embed_texts(embedder, texts, role="document"))
    say(f"Comparing all {len(texts) * (len(texts) - 1) // 2:,} pairs ...")
    found, comparing_s = timed(lambda: most_similar_pairs(vectors, N_CANDIDATES))
    hits, searching_s = timed(lambda: search(embed_texts(embedder, QUESTIONS, role="query"), vectors, k=N_ANSWERS))
    pairs = list(zip(*(part.tolist() for part in found), strict=True))
    return Demo(
        texts=texts,
        nearest=choose_pairs(pairs, lambda a, b: not are_near_duplicates(texts[a], texts[b]), n=N_NEAREST),
        reworded=choose_pairs(pairs, lambda a, b: shared_words(texts[a], texts[b]) <= FEW_WORDS, n=N_REWORDED),
        answers=[
            Answer(question, list(zip(scores, ids, strict=True)))
            for question, ids, scores in zip(QUESTIONS, hits.ids.tolist(), hits.scores.tolist(), strict=True)
        ],
        times=Times(gathering_s, loading_s, embedding_s, comparing_s, searching_s),
    )


def _describe(embedder: Embedder) -> str:
    if isinstance(embedder, ModelEmbedder):
        return f"{embedder.model} ({embedder.settings['precision']})"
    return embedder.name


def timed(work: Callable[[], Result]) -> tuple[Result, float]:
    """The result of a call and the seconds it took."""
    start = time.perf_counter()
    result = work()
    return result, time.perf_counter() - start


def choose_pairs(pairs: Iterable[tuple[int, int, float]], wanted: Callable[[int, int], bool], *, n: int) -> list[Match]:
    """The first ``n`` wanted pairs, using each text only once.

    >>> choose_pairs([(0, 1, 0.9), (1, 2, 0.8), (2, 3, 0.7)], lambda left, right: True, n=2)
    [Match(score=0.9, left=0, right=1), Match(score=0.7, left=2, right=3)]
    """
    chosen: list[Match] = []
    used: set[int] = set()
    for left, right, score in pairs:
        if len(chosen) == n:
            break
        if used.isdisjoint((left, right)) and wanted(left, right):
            used.update((left, right))
            chosen.append(Match(score, left, right))
    return chosen
