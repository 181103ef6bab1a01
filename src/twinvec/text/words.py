"""Ids of many texts, fast: a word that was seen before is not tokenized again.

Where words are tokenized one by one, as BERT's kin do it, the ids of a text are those of its words one after the
other. Natural texts repeat their words, so most of them are found in a dict. Nothing here changes any id.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Sequence
from itertools import chain, islice
from typing import Any, NamedTuple, cast

import numpy as np
from numpy.typing import NDArray
from tokenizers import normalizers, pre_tokenizers

from twinvec.text.tokenizer import Tokenizer
from twinvec.types import Ids

__all__ = ["FlatIds", "WordReader", "splits_at_spaces"]

N_REMEMBERED = 1 << 16  # words; with their ids some 15 MB
LONGEST_REMEMBERED = 64  # characters; what is longer is an address or a number, and rarely comes back

# Those that never look beyond a space.
NORMALIZERS = (type(None), normalizers.BertNormalizer, normalizers.Lowercase)
PRE_TOKENIZERS = (pre_tokenizers.BertPreTokenizer, pre_tokenizers.Whitespace, pre_tokenizers.WhitespaceSplit)


class FlatIds(NamedTuple):
    """Ids of all texts one after the other, ``(n_tokens,)``, and how many of them each text has, ``(n_texts,)``."""

    ids: NDArray[np.int32]
    counts: Ids


class WordReader:
    """Texts to ids without special tokens. Any number of threads may use one."""

    def __init__(self, tokenizer: Tokenizer) -> None:
        self.tokenizer = tokenizer
        self._by_words = splits_at_spaces(tokenizer.fast)
        self._known: dict[str, bytes] = {}  # ids as the bytes of int32, which join without a loop

    def read(self, texts: Sequence[str]) -> FlatIds:
        """The ids of each text, whole."""
        words = [text.split(" ") for text in texts] if self._by_words else [[text] for text in texts]
        found = self._look_up(list(chain.from_iterable(words)))
        n_bytes = np.fromiter(map(len, found), dtype=np.int64, count=len(found))
        n_words = np.fromiter(map(len, words), dtype=np.int64, count=len(words))
        firsts = np.cumsum(n_words) - n_words  # every text has a word, if an empty one
        counts = np.add.reduceat(n_bytes, firsts) // 4 if len(texts) else n_bytes
        return FlatIds(np.frombuffer(b"".join(found), dtype=np.int32), counts)

    def rows(self, texts: Sequence[str]) -> list[list[int]]:
        """The ids of each text as a list, whole."""
        if not self._by_words:
            return self.tokenizer.ids(texts)
        flat = self.read(texts)
        ids, stops = flat.ids.tolist(), np.cumsum(flat.counts).tolist()
        return [ids[start:stop] for start, stop in zip([0, *stops], stops, strict=False)]

    def _look_up(self, words: list[str]) -> list[bytes]:
        if not self._by_words:
            return list(self._tokenized(words))
        found = list(map(self._known.get, words))
        if None in found:
            places = [place for place, ids in enumerate(found) if ids is None]
            missing = list(dict.fromkeys(words[place] for place in places))
            new = dict(zip(missing, self._tokenized(missing), strict=True))
            self._remember(new)
            for place in places:
                found[place] = new[words[place]]
        return cast(list[bytes], found)

    def _tokenized(self, words: list[str]) -> Iterable[bytes]:
        return (array("i", ids).tobytes() for ids in self.tokenizer.ids(words))

    def _remember(self, new: dict[str, bytes]) -> None:
        room = N_REMEMBERED - len(self._known)
        if room <= 0:  # other texts have other words: begin anew
            self._known, room = {}, N_REMEMBERED
        usual = ((word, ids) for word, ids in new.items() if len(word) <= LONGEST_REMEMBERED)
        self._known.update(islice(usual, room))


def splits_at_spaces(fast: Any) -> bool:  # noqa: ANN401 - a compiled type without stubs
    """Whether the ids on one side of a space never depend on what stands on the other."""
    added = [token.content for token in fast.get_added_tokens_decoder().values()]
    return (
        isinstance(fast.normalizer, NORMALIZERS)
        and isinstance(fast.pre_tokenizer, PRE_TOKENIZERS)
        and all(content.isascii() and " " not in content for content in added)
    )
