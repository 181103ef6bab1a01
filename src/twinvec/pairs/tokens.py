"""Token ids of pairs: joined by the tokenizer's own template, and cut as in transformers."""

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
# Tokenizers of transformers that return no types, unless their config asks for them.
WITHOUT_TYPES = ("Roberta", "XLMRoberta", "Camembert", "DistilBert", "MPNet", "ModernBert")


class Part(NamedTuple):
    """Special tokens at one position of the template, and their types."""

    ids: tuple[int, ...]
    types: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class PairTemplate:
    """The special tokens around two texts, and the token types of both texts."""

    before: Part
    between: Part
    after: Part
    types: tuple[int, int]

    @property
    def n_special(self) -> int:
        """The number of special tokens of a pair."""
        return len(self.before.ids) + len(self.between.ids) + len(self.after.ids)

    def join(self, first: Sequence[int], second: Sequence[int]) -> tuple[list[int], list[int]]:
        """The ids of a pair, special tokens included, and their types."""
        before, between, after = self.before, self.between, self.after
        ids = [*before.ids, *first, *between.ids, *second, *after.ids]
        types = [*before.types, *[self.types[0]] * len(first), *between.types]
        return ids, [*types, *[self.types[1]] * len(second), *after.types]

    def halves(self, body: Sequence[int], *, most: int) -> tuple[list[int], list[int]]:
        """Join the halves of one text as a pair of at most ``most`` tokens, to calibrate int8."""
        body = body[: most - self.n_special]
        return self.join(body[: len(body) // 2], body[len(body) // 2 :])


def pair_template(tokenizer: Tokenizer, source: Path) -> PairTemplate:
    """The tokenizer's template for pairs, found by encoding a sample pair."""
    probe: Any = tokenizer.fast.encode(PROBE, PROBE)
    bare = tokenizer.ids([PROBE])[0]
    owners = probe.sequence_ids
    spans = [[index for index, owner in enumerate(owners) if owner == text] for text in (0, 1)]
    is_usual = all(span and span == list(range(span[0], span[-1] + 1)) for span in spans)
    if not is_usual or spans[0][0] > spans[1][0] or any([probe.ids[i] for i in span] != bare for span in spans):
        raise ModelFolderError(
            f"The template for pairs of the tokenizer in {source} is not supported.",
            hint="Use sentence-transformers for this model.",
        )
    (first, first_end), (second, second_end) = ((span[0], span[-1] + 1) for span in spans)

    def part(start: int, stop: int) -> Part:
        return Part(tuple(probe.ids[start:stop]), tuple(probe.type_ids[start:stop]))

    return PairTemplate(
        before=part(0, first),
        between=part(first_end, second),
        after=part(second_end, len(owners)),
        types=(probe.type_ids[first], probe.type_ids[second]),
    )


def reads_types(folder: Path) -> bool:
    """Whether transformers passes token types to the model, according to the tokenizer's config."""
    config = JsonObject(read_json(folder / "tokenizer_config.json"), folder / "tokenizer_config.json")
    names = config.items("model_input_names", None)
    if names is not None:
        return TYPES in names
    return not (config.text("tokenizer_class", None) or "").startswith(WITHOUT_TYPES)


def longest_first(n_first: int, n_second: int, room: int) -> tuple[int, int]:
    """How many tokens to keep of two texts in ``room`` tokens: the longer is cut first, then both equally.

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
    """The index of a pair, its token ids (special tokens included), and their types."""

    owner: int
    ids: list[int]
    types: list[int]


class LongPairs(LongTexts):
    """Counts the pairs that were cut, to warn once per call."""

    def warn(self) -> None:
        """Log one warning if any pair was cut."""
        if self.n_cut:
            logger.warning(
                "%d pair%s longer than the model's limit of %d tokens and cut, the longer text first (the longest pair "
                "has %d tokens). Use long='error' to fail instead, or 'cut' to cut without a warning.",
                self.n_cut,
                " was" if self.n_cut == 1 else "s were",
                self.max_tokens,
                self.longest,
            )


@dataclass(frozen=True)
class PairRowMaker:
    """Turns pairs into rows, with one policy for long pairs."""

    words: WordReader
    template: PairTemplate
    max_tokens: int
    long: LongPolicy
    cut: LongPairs = field(compare=False)

    def rows(self, pairs: Sequence[Pair], owners: Sequence[int]) -> list[PairRow]:
        """The rows of some pairs with the indices ``owners``. A text in several pairs is tokenized once."""
        texts = list(dict.fromkeys(chain.from_iterable(pairs)))
        ids = dict(zip(texts, self.words.rows(texts), strict=True))
        return [self._row(owner, ids[first], ids[second]) for owner, (first, second) in zip(owners, pairs, strict=True)]

    def _row(self, owner: int, first: list[int], second: list[int]) -> PairRow:
        room = self.max_tokens - self.template.n_special
        if len(first) + len(second) > room:
            self._check_long(owner, len(first) + len(second) + self.template.n_special)
            kept = longest_first(len(first), len(second), room)
            first, second = (self._cut(ids, count) for ids, count in zip((first, second), kept, strict=True))
        return PairRow(owner, *self.template.join(first, second))

    def _cut(self, ids: list[int], count: int) -> list[int]:
        return self.words.tokenizer.cut(ids, count) if count else []

    def _check_long(self, owner: int, n_tokens: int) -> None:
        if self.long == "error":
            raise TextTooLongError(
                f"pairs[{owner}] has {n_tokens} tokens; the model's limit is {self.max_tokens}.",
                hint="Shorten the texts, or use long='warn' or 'cut' to cut the longer text first.",
            )
        self.cut.note(n_tokens)
