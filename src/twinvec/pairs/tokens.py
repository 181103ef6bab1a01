"""Two texts to one row of token ids, by the tokenizer's own template for pairs, cut as transformers cuts them."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

from twinvec.choices import LongPolicy
from twinvec.errors import ModelFolderError, TextTooLongError
from twinvec.files import read_json
from twinvec.json_checks import JsonObject
from twinvec.model.tokenizer import Tokenizer, WordReader
from twinvec.scorer import Pair
from twinvec.token_rows import LongTexts

__all__ = ["LongPairs", "PairRow", "PairRowMaker", "PairTemplate", "longest_first", "pair_template", "reads_types"]

logger = logging.getLogger(__name__)

PROBE = "a"
TYPES = "token_type_ids"
# Tokenizers of transformers that do not give types to a model unless their config says so.
WITHOUT_TYPES = ("Roberta", "XLMRoberta", "Camembert", "DistilBert", "MPNet", "ModernBert")


class Part(NamedTuple):
    """Special tokens that stand at one place of the template, and their types."""

    ids: tuple[int, ...]
    types: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class PairTemplate:
    """The special tokens around two texts, and the types of the tokens of the first and the second."""

    before: Part
    between: Part
    after: Part
    types: tuple[int, int]

    @property
    def n_special(self) -> int:
        """How many special tokens a pair has."""
        return len(self.before.ids) + len(self.between.ids) + len(self.after.ids)

    def join(self, first: Sequence[int], second: Sequence[int]) -> tuple[list[int], list[int]]:
        """The ids of a pair, special tokens included, and their types."""
        before, between, after = self.before, self.between, self.after
        ids = [*before.ids, *first, *between.ids, *second, *after.ids]
        types = [*before.types, *[self.types[0]] * len(first), *between.types]
        return ids, [*types, *[self.types[1]] * len(second), *after.types]

    def halves(self, body: Sequence[int], *, most: int) -> tuple[list[int], list[int]]:
        """The ids of one text as if its halves were a pair of at most ``most`` tokens: what calibrates int8."""
        body = body[: most - self.n_special]
        return self.join(body[: len(body) // 2], body[len(body) // 2 :])


def pair_template(tokenizer: Tokenizer, source: Path) -> PairTemplate:
    """The template of a tokenizer, as a probe shows it."""
    probe: Any = tokenizer.fast.encode(PROBE, PROBE)
    bare = tokenizer.ids([PROBE])[0]
    owners = probe.sequence_ids
    places = [[index for index, owner in enumerate(owners) if owner == text] for text in (0, 1)]
    is_usual = all(place and place == list(range(place[0], place[-1] + 1)) for place in places)
    if not is_usual or places[0][0] > places[1][0] or any([probe.ids[i] for i in place] != bare for place in places):
        raise ModelFolderError(
            f"The tokenizer in {source} does not put two texts one after the other with special tokens around them.",
            hint="Such a model cannot be loaded here; use sentence-transformers for it.",
        )
    (first, first_end), (second, second_end) = ((place[0], place[-1] + 1) for place in places)

    def part(start: int, stop: int) -> Part:
        return Part(tuple(probe.ids[start:stop]), tuple(probe.type_ids[start:stop]))

    return PairTemplate(
        before=part(0, first),
        between=part(first_end, second),
        after=part(second_end, len(owners)),
        types=(probe.type_ids[first], probe.type_ids[second]),
    )


def reads_types(folder: Path) -> bool:
    """Whether transformers gives a model the types of its tokens, by what the tokenizer's config says."""
    config = JsonObject(read_json(folder / "tokenizer_config.json"), folder / "tokenizer_config.json")
    names = config.items("model_input_names", None)
    if names is not None:
        return TYPES in names
    return not (config.text("tokenizer_class", None) or "").startswith(WITHOUT_TYPES)


def longest_first(n_first: int, n_second: int, room: int) -> tuple[int, int]:
    """How many tokens are kept of two texts that share ``room``: the longer one is cut first, then both alike.

    >>> longest_first(3, 9, 8), longest_first(9, 9, 7), longest_first(2, 3, 8)
    ((3, 5), (3, 4), (2, 3))
    """
    if n_first + n_second <= room:
        return n_first, n_second
    short = min(n_first, n_second)
    long = max(short, room - short)
    if short + long > room:
        short, long = room // 2, room - room // 2
    return (long, short) if n_first > n_second else (short, long)


class PairRow(NamedTuple):
    """Ids of a pair, special tokens included, their types, and the pair's index."""

    owner: int
    ids: list[int]
    types: list[int]


class LongPairs(LongTexts):
    """Collects which pairs were cut during a run, so that it is said once."""

    def warn(self) -> None:
        """Log one warning, if anything was cut."""
        if self.n_cut:
            logger.warning(
                "%d pair%s longer than the %d tokens this model reads; the longer text of each was cut first (the "
                "longest pair has %d tokens). Use long='error' to refuse such pairs, 'cut' to cut without a warning.",
                self.n_cut,
                " is" if self.n_cut == 1 else "s are",
                self.max_tokens,
                self.longest,
            )


@dataclass(frozen=True)
class PairRowMaker:
    """Makes rows of pairs under one policy for long ones."""

    words: WordReader
    template: PairTemplate
    max_tokens: int
    long: LongPolicy
    cut: LongPairs = field(compare=False)

    def rows(self, pairs: Sequence[Pair], owners: Sequence[int]) -> list[PairRow]:
        """The rows of some pairs; ``owners`` are their indices. A text that is in several pairs is tokenized once."""
        texts = list(dict.fromkeys(chain.from_iterable(pairs)))
        ids = dict(zip(texts, self.words.rows(texts), strict=True))
        return [self._row(owner, ids[first], ids[second]) for owner, (first, second) in zip(owners, pairs, strict=True)]

    def _row(self, owner: int, first: list[int], second: list[int]) -> PairRow:
        room = self.max_tokens - self.template.n_special
        if len(first) + len(second) > room:
            self._refuse_or_note(owner, len(first) + len(second) + self.template.n_special)
            kept = longest_first(len(first), len(second), room)
            first, second = (self._cut(ids, count) for ids, count in zip((first, second), kept, strict=True))
        return PairRow(owner, *self.template.join(first, second))

    def _cut(self, ids: list[int], count: int) -> list[int]:
        return self.words.tokenizer.cut(ids, count) if count else []

    def _refuse_or_note(self, owner: int, n_tokens: int) -> None:
        if self.long == "error":
            raise TextTooLongError(
                f"pairs[{owner}] has {n_tokens} tokens, but this model reads {self.max_tokens}.",
                hint="Shorten the texts, or use long='warn' or 'cut' to cut the longer text of each pair first.",
            )
        self.cut.note(n_tokens)
