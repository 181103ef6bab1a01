"""Triplet accuracy (SBERT's Table 4), and triplets from documents with sections."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np

from twinvec.choices import Similarity
from twinvec.data.sentences import split_sentences
from twinvec.errors import InputError
from twinvec.evaluation.statistics import Outcome
from twinvec.evaluation.tasks.common import Embed, check_choice, check_columns, embed_once
from twinvec.evaluation.tasks.documents import Document
from twinvec.types import Array
from twinvec.vectors import PAIRWISE, similarity_pairwise

__all__ = ["SectionRule", "TripletTask", "build_triplets", "run_triplets", "triplet_outcome", "usable_sections"]


@dataclass(frozen=True)
class TripletTask:
    """In each row an anchor, a positive that should be near it, and a negative that should be farther away."""

    name: str
    anchors: Sequence[str]
    positives: Sequence[str]
    negatives: Sequence[str]

    def __post_init__(self) -> None:
        columns = {"anchors": self.anchors, "positives": self.positives, "negatives": self.negatives}
        check_columns(self.name, columns)

    def __len__(self) -> int:
        return len(self.anchors)


def run_triplets(
    task: TripletTask, embed: Embed, *, similarities: Sequence[Similarity] = ("cosine", "euclidean", "manhattan")
) -> list[Outcome]:
    """One outcome per similarity: 1 for each triplet whose positive is strictly nearer, else 0. Ties count as wrong."""
    for name in similarities:
        check_choice("similarity", name, known=PAIRWISE)
    anchors, positives, negatives = embed_once(embed, task.anchors, task.positives, task.negatives)
    return [
        triplet_outcome(
            task,
            similarity_pairwise(anchors, positives, name),
            similarity_pairwise(anchors, negatives, name),
            by=name,
        )
        for name in similarities
    ]


def triplet_outcome(task: TripletTask, near: Array, far: Array, *, by: str) -> Outcome:
    """The outcome of the scores with the positives and with the negatives, ``(triplets,)`` each."""
    protocol = f"Triplet accuracy x 100 by {by}, a tie counts as wrong"
    return Outcome(task.name, protocol, statistic="mean", predicted=(near > far).astype(np.float64))


Lead = Literal["skip", "keep"]
NO_CONTENT = ("references", "external links", "see also", "further reading", "notes", "bibliography", "sources")


@dataclass(frozen=True)
class SectionRule:
    """Which sections and sentences to use, and how many triplets to build.

    Args:
        min_sentences: skip sections with fewer usable sentences; at least 2, an anchor and its positive.
        min_words: skip shorter sentences, such as captions and remains of markup.
        per_section: maximum number of triplets per section; no sentence is used twice as an anchor or positive.
        lead: whether to use the text before the first heading. It covers all topics, so the default is "skip".
        skip_titles: skip sections with these headings, in lower case.
    """

    min_sentences: int = 4
    min_words: int = 5
    per_section: int = 5
    lead: Lead = "skip"
    skip_titles: tuple[str, ...] = NO_CONTENT

    def __post_init__(self) -> None:
        check_choice("lead", self.lead, known=get_args(Lead))
        for name, least in (("min_sentences", 2), ("min_words", 1), ("per_section", 1)):
            if getattr(self, name) < least:
                raise InputError(f"{name} must be at least {least}, got {getattr(self, name)}.")


def build_triplets(
    documents: Iterable[Document], *, name: str = "sections", rule: SectionRule | None = None, seed: int = 0
) -> TripletTask:
    """Build triplets from all documents with at least two usable sections; the same seed gives the same triplets."""
    generator = np.random.default_rng(seed)
    rows = [row for document in documents for row in _triplets(document, rule or SectionRule(), generator)]
    if not rows:
        raise InputError(
            f"{name}: no document has two sections with enough sentences.",
            hint="Check that the documents have headings, or lower min_sentences and min_words.",
        )
    anchors, positives, negatives = zip(*rows, strict=True)
    return TripletTask(name, anchors, positives, negatives)


def usable_sections(document: Document, rule: SectionRule) -> list[list[str]]:
    """The sentences of every usable section; sentences that occur in several sections are removed."""
    sections = [
        list(dict.fromkeys(_sentences(section.paragraphs, rule)))
        for section in document.sections
        if section.title.lower() not in rule.skip_titles and (section.title or rule.lead == "keep")
    ]
    counts = Counter(sentence for section in sections for sentence in section)
    unique = [[sentence for sentence in section if counts[sentence] == 1] for section in sections]
    return [section for section in unique if len(section) >= rule.min_sentences]


def _sentences(paragraphs: Iterable[str], rule: SectionRule) -> Iterator[str]:
    for paragraph in paragraphs:
        for sentence in split_sentences(paragraph):
            if len(sentence.split()) >= rule.min_words:
                yield sentence


def _triplets(document: Document, rule: SectionRule, generator: np.random.Generator) -> Iterator[tuple[str, str, str]]:
    sections = usable_sections(document, rule)
    if len(sections) < 2:
        return
    for index, section in enumerate(sections):
        order = generator.permutation(len(section))
        for anchor, positive in list(zip(order[::2], order[1::2], strict=False))[: rule.per_section]:
            other = int(generator.integers(len(sections) - 1))
            others = sections[other + (other >= index)]
            yield section[anchor], section[positive], others[int(generator.integers(len(others)))]
