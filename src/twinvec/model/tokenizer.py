"""Tokenization: input checks, special tokens, a cache of known words, and windows over long texts."""

from __future__ import annotations

import struct
from array import array
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import chain, islice
from pathlib import Path
from typing import Any, NamedTuple, TypeVar, cast

import numpy as np
from numpy.typing import NDArray
from tokenizers import Regex, models, normalizers, pre_tokenizers, processors
from tokenizers import Tokenizer as FastTokenizer
from tokenizers.implementations import BertWordPieceTokenizer
from tokenizers.normalizers import BertNormalizer

from twinvec.errors import InputError, ModelFolderError, shown
from twinvec.files import read_json
from twinvec.json_checks import JsonObject
from twinvec.model.folder import refuse_own_code
from twinvec.model.scripts import Scripts, covered_scripts
from twinvec.types import Ids

__all__ = [
    "Tokenizer",
    "WordReader",
    "check_text",
    "check_texts",
    "load_tokenizer",
    "read_sentencepiece",
]


def check_text(text: object, where: str) -> str:
    """Return ``text`` if it can be tokenized; else raise InputError that names ``where``.

    >>> check_text("a", "texts[0]")
    'a'
    """
    if not isinstance(text, str):
        hint = "Decode bytes first: data.decode('utf-8')." if isinstance(text, bytes) else "Every text must be a str."
        raise InputError(f"{where} is {shown(text)}, of type {type(text).__name__}, not a text.", hint=hint)
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise InputError(
            f"{where} holds a lone surrogate ({text[error.start]!a}) at character {error.start}.",
            hint="Read the file as UTF-8, or replace such characters: text.encode('utf-8', 'replace').decode().",
        ) from error
    return text


def check_texts(texts: Iterable[str], first: int = 0) -> list[str]:
    """Return the texts as a checked list; messages number them from ``first``."""
    if isinstance(texts, (bytes, dict)) or not isinstance(texts, Iterable):
        raise InputError(
            f"Expected a text or a list of texts, got {type(texts).__name__}.", hint="Pass a str or a list of str."
        )
    # ASCII needs no further check, which keeps the check cheap for most texts
    return [
        text if isinstance(text, str) and text.isascii() else check_text(text, f"texts[{i}]")
        for i, text in enumerate(texts, first)
    ]


Item = TypeVar("Item")

WORD_PIECE_FAMILIES = ("bert", "distilbert", "electra")
CASE_CLASSES = ("Bert", "DistilBert", "Electra", "MPNet")
PROBE = "a"


@dataclass(frozen=True, slots=True)
class Tokenizer:
    """A fast tokenizer with the special tokens around each text."""

    fast: Any = field(repr=False)
    prefix: tuple[int, ...]
    suffix: tuple[int, ...]
    lower_case: bool = False
    keeps_end: bool = False
    limit: int | None = None  # max_length in tokenizer.json; most models set it elsewhere

    @property
    def n_special(self) -> int:
        """Number of special tokens added to each text."""
        return len(self.prefix) + len(self.suffix)

    @property
    def n_vocabulary(self) -> int:
        """One more than the highest id."""
        return 1 + int(max([*self.fast.get_vocab(with_added_tokens=True).values(), *self.prefix, *self.suffix]))

    def special_ids(self) -> list[int]:
        """Sorted ids of the special tokens; a text that spells one out gets that id."""
        return sorted(id_ for id_, token in self.fast.get_added_tokens_decoder().items() if token.special)

    def ids(self, texts: Sequence[str]) -> list[list[int]]:
        """Ids of each full text, without special tokens."""
        if self.lower_case:
            texts = [text.lower() for text in texts]
        return [encoding.ids for encoding in _encoded(self.fast.encode_batch_fast, texts)]

    def tokens(self, ids: Sequence[int]) -> list[str]:
        """The vocabulary's tokens for some ids."""
        return [str(self.fast.id_to_token(id_)) for id_ in ids]

    def words(self, texts: Sequence[str]) -> list[list[str]]:
        """For each token of ``ids``, its word as in the text; empty for a piece of a longer word."""
        if self.lower_case:
            texts = [text.lower() for text in texts]
        encodings = _encoded(self.fast.encode_batch, texts)
        return [_whole_words(text, encoding) for text, encoding in zip(texts, encodings, strict=True)]

    def word_spans(self, text: str) -> list[tuple[int, int]]:
        """For each token of ``ids``, the first character of its word in the text and the one after the last."""
        encoding = _encoded(self.fast.encode_batch, [text.lower() if self.lower_case else text])[0]
        return [encoding.word_to_chars(word) if word is not None else (0, 0) for word in encoding.word_ids]

    def cut(self, ids: list[Item], room: int) -> list[Item]:
        """Truncate the ids of a text, or a list parallel to them; most models keep the beginning."""
        return ids[-room:] if self.keeps_end else ids[:room]

    def add_special_tokens(self, ids: Sequence[int]) -> list[int]:
        """Add the special tokens to the ids of a text."""
        return [*self.prefix, *ids, *self.suffix]


def _encoded(encode: Callable[..., list[Any]], texts: Sequence[str], *, special: bool = False) -> list[Any]:
    try:
        return encode(list(texts), add_special_tokens=special)
    except Exception as error:  # bare Exception, for a word without a token
        raise ModelFolderError(
            f"The model's tokenizer failed on a text: {error}.", hint="Download the model again."
        ) from error


def _whole_words(text: str, encoding: Any) -> list[str]:  # noqa: ANN401 - a compiled type without stubs
    word_ids = encoding.word_ids
    pieces = Counter(word_ids)
    return [
        text[start:end].strip() if word_id is not None and pieces[word_id] == 1 else ""
        for word_id, (start, end) in zip(word_ids, encoding.offsets, strict=True)
    ]


def load_tokenizer(folder: Path, *, lower_case: bool = False) -> Tokenizer:
    """Load ``tokenizer.json``, or build a WordPiece tokenizer from an old ``vocab.txt``."""
    config = JsonObject(read_json(folder / "tokenizer_config.json"), folder / "tokenizer_config.json")
    refuse_own_code(config.content, "AutoTokenizer", file=config.source)
    fast = _read_fast(folder, config)
    truncation = fast.truncation or {}
    fast.no_truncation()
    fast.no_padding()
    prefix, suffix = _around(fast, folder)
    side = config.word("truncation_side", None, choices=("left", "right"))
    return Tokenizer(
        fast=fast,
        prefix=prefix,
        suffix=suffix,
        lower_case=lower_case,
        keeps_end="left" in (side, str(truncation.get("direction")).lower()),
        limit=truncation.get("max_length"),
    )


def _around(fast: Any, folder: Path) -> tuple[tuple[int, ...], tuple[int, ...]]:  # noqa: ANN401
    """The special ids before and after each text, found with a probe."""
    probe, bare = _encoded(fast.encode_batch, [PROBE], special=True)[0], _encoded(fast.encode_batch, [PROBE])[0].ids
    kinds = probe.special_tokens_mask
    if 0 not in kinds or not bare:
        raise ModelFolderError(f"The tokenizer in {folder} gives no token for the text {PROBE!r}.")
    first, last = kinds.index(0), len(kinds) - 1 - kinds[::-1].index(0)
    if probe.ids[first : last + 1] != bare or any(probe.type_ids):
        raise ModelFolderError(
            f"The tokenizer in {folder} does more than add special tokens around a text.",
            hint="Twinvec cannot load this model; use sentence-transformers.",
        )
    return tuple(probe.ids[:first]), tuple(probe.ids[last + 1 :])


def _read_fast(folder: Path, config: JsonObject) -> Any:  # noqa: ANN401 - a compiled type without stubs
    path = folder / "tokenizer.json"
    if path.is_file():
        try:
            fast = FastTokenizer.from_file(str(path))
        except Exception as error:  # the package raises bare Exception for any bad file
            raise ModelFolderError(
                f"{path} cannot be read as a tokenizer: {error}.", hint="Download the model again."
            ) from error
        return _with_case(fast, config)
    vocabulary = folder / "vocab.txt"
    has_more = (folder / "added_tokens.json").is_file() or "added_tokens_decoder" in config.content
    is_bert = read_json(folder / "config.json").get("model_type") in WORD_PIECE_FAMILIES
    if vocabulary.is_file() and is_bert and not has_more:
        return _word_piece(vocabulary, config)
    raise ModelFolderError(
        f"{folder} has no tokenizer.json"
        + (", and its vocab.txt alone is not enough." if vocabulary.is_file() else " and no vocab.txt."),
        hint="Save the fast tokenizer there: AutoTokenizer.from_pretrained(name).save_pretrained(folder).",
    )


def _with_case(fast: Any, config: JsonObject) -> Any:  # noqa: ANN401
    """Apply the case settings of the config, which BERT's tokenizer classes prefer to ``tokenizer.json``."""
    follows = (config.text("tokenizer_class", None) or "").startswith(CASE_CLASSES)
    own = fast.normalizer
    if follows and config.content.get("do_lower_case") is not None and isinstance(own, BertNormalizer):
        fast.normalizer = BertNormalizer(
            clean_text=own.clean_text,
            handle_chinese_chars=config.flag("tokenize_chinese_chars", own.handle_chinese_chars),
            strip_accents=_accents(config, own.strip_accents),
            lowercase=config.flag("do_lower_case"),
        )
    return fast


def _accents(config: JsonObject, default: bool | None) -> bool | None:
    """Whether to strip accents; None means only when lowercasing."""
    if config.content.get("strip_accents", default) is None:
        return None
    return config.flag("strip_accents", bool(default))


def _word_piece(vocabulary: Path, config: JsonObject) -> Any:  # noqa: ANN401
    special = {
        name: _content(config, name, default)
        for name, default in (("unk_token", "[UNK]"), ("sep_token", "[SEP]"), ("cls_token", "[CLS]"))
    }
    settings = {
        "lowercase": config.flag("do_lower_case", True),
        "strip_accents": _accents(config, None),
        "handle_chinese_chars": config.flag("tokenize_chinese_chars", True),
    }
    try:
        return BertWordPieceTokenizer(str(vocabulary), **settings, **special)._tokenizer
    except Exception as error:  # the package raises bare Exception for any bad file
        raise ModelFolderError(
            f"{vocabulary} cannot be read as a vocabulary: {error}.", hint="Download the model again."
        ) from error


def _content(config: JsonObject, name: str, default: str) -> str:
    """A special token, stored as a text or as an object with ``content``."""
    if isinstance(config.content.get(name), dict):
        return str(config.inner(name).text("content"))
    return str(config.text(name, default))


NEVER_MATCHED = 2, 3  # types of pieces: unknown and control, which sentencepiece never matches in a text


def read_sentencepiece(file: Path) -> Any:  # noqa: ANN401 - a compiled type without stubs
    """Read a sentencepiece unigram model as a tokenizer that adds its begin and end tokens to every text.

    Its ids equal those of sentencepiece, except for some combining marks after unusual characters.
    """
    try:
        parts = list(_fields(file.read_bytes()))
        pieces = [dict(_fields(part)) for number, part in parts if number == 1]
        settings = {n: dict(_fields(part)) for n, part in parts if n in (2, 3)}
        names = [str(piece[1], "utf-8") for piece in pieces]
        begin, end, unknown = (names.index(name) for name in ("<s>", "</s>", "<unk>"))
        # A space before a name keeps it from being found in a text: there, every space has become a mark.
        prefixes = [" " if piece.get(3) in NEVER_MATCHED else "" for piece in pieces]
        scores = [struct.unpack("<f", piece.get(2, bytes(4)))[0] for piece in pieces]
        vocabulary = [(a + b, score) for a, b, score in zip(prefixes, names, scores, strict=True)]
        is_usual = settings[2].get(3, 1) == 1 and all(settings[3].get(key, 1) for key in (3, 4, 5))
        fast = FastTokenizer(models.Unigram(vocabulary, unknown, False))
        charsmap = normalizers.Precompiled(settings[3][2])
    except Exception as error:  # many kinds for a bad file; the package raises bare ones
        raise InputError(f"{file} cannot be read as a sentencepiece model: {error!s:.200}.") from error
    if not is_usual:
        raise InputError(f"{file} is not a unigram model, or keeps spaces as they are, which is not supported.")
    joined = normalizers.NFC()  # the package's charsmap does not look beyond one character, sentencepiece's does
    spaces = normalizers.Replace(Regex(" {2,}"), " "), normalizers.Strip()
    fast.normalizer = normalizers.Sequence([joined, charsmap, joined, *spaces])
    fast.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme="always", split=False)
    special = [("<s>", begin), ("</s>", end)]
    fast.post_processor = processors.TemplateProcessing(single="<s> $A </s>", special_tokens=special)
    return fast


def _fields(data: Any) -> Iterator[tuple[int, Any]]:  # noqa: ANN401
    """The field numbers and values of a protobuf message, read without its schema."""
    at = 0

    def varint() -> int:
        nonlocal at
        value = shift = 0
        while True:
            byte: int = data[at]
            at, value, shift = at + 1, value | (byte & 127) << shift, shift + 7
            if byte < 128:
                return value

    while at < len(data):
        number, wire = divmod(varint(), 8)
        if wire == 0:
            yield number, varint()
            continue
        n_bytes = {1: 8, 5: 4}[wire] if wire != 2 else varint()
        yield number, data[at : at + n_bytes]
        at += n_bytes


N_REMEMBERED = 1 << 16  # words; about 15 MB with their ids
LONGEST_REMEMBERED = 64  # characters; longer words are URLs or numbers, and rarely repeat

# Components that never look beyond a space.
NORMALIZERS = (type(None), normalizers.BertNormalizer, normalizers.Lowercase)
PRE_TOKENIZERS = (pre_tokenizers.BertPreTokenizer, pre_tokenizers.Whitespace, pre_tokenizers.WhitespaceSplit)


class FlatIds(NamedTuple):
    """Concatenated ids of all texts, ``(n_tokens,)``, and the number of ids per text, ``(n_texts,)``."""

    ids: NDArray[np.int32]
    counts: Ids


class WordReader:
    """Tokenizes texts without special tokens, caching words. Thread-safe."""

    def __init__(self, tokenizer: Tokenizer) -> None:
        self.tokenizer = tokenizer
        self._by_words = splits_at_spaces(tokenizer.fast)
        self._known: dict[str, bytes] = {}  # ids as the bytes of int32, which join without a loop

    @cached_property
    def scripts(self) -> Scripts:
        """The scripts that the vocabulary covers, computed at first use."""
        return covered_scripts(self.tokenizer.fast)

    def read(self, texts: Sequence[str]) -> FlatIds:
        """The ids of each full text, concatenated."""
        words = [text.split(" ") for text in texts] if self._by_words else [[text] for text in texts]
        found = self._look_up(list(chain.from_iterable(words)))
        n_bytes = np.fromiter(map(len, found), dtype=np.int64, count=len(found))
        n_words = np.fromiter(map(len, words), dtype=np.int64, count=len(words))
        firsts = np.cumsum(n_words) - n_words  # every text has at least one word, maybe empty
        counts = np.add.reduceat(n_bytes, firsts) // 4 if len(texts) else n_bytes
        return FlatIds(np.frombuffer(b"".join(found), dtype=np.int32), counts)

    def rows(self, texts: Sequence[str]) -> list[list[int]]:
        """The ids of each full text, as lists."""
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
            unknown = [index for index, ids in enumerate(found) if ids is None]
            missing = list(dict.fromkeys(words[index] for index in unknown))
            new = dict(zip(missing, self._tokenized(missing), strict=True))
            self._remember(new)
            for index in unknown:
                found[index] = new[words[index]]
        return cast(list[bytes], found)

    def _tokenized(self, words: list[str]) -> Iterable[bytes]:
        return (array("i", ids).tobytes() for ids in self.tokenizer.ids(words))

    def _remember(self, new: dict[str, bytes]) -> None:
        room = N_REMEMBERED - len(self._known)
        if room <= 0:  # full: start over, as other texts have other words
            self._known, room = {}, N_REMEMBERED
        self._known.update(islice((item for item in new.items() if len(item[0]) <= LONGEST_REMEMBERED), room))


def splits_at_spaces(fast: Any) -> bool:  # noqa: ANN401 - a compiled type without stubs
    """Whether the ids before a space never depend on the text after it, and vice versa."""
    added = [token.content for token in fast.get_added_tokens_decoder().values()]
    return (
        isinstance(fast.normalizer, NORMALIZERS)
        and isinstance(fast.pre_tokenizer, PRE_TOKENIZERS)
        and all(content.isascii() and " " not in content for content in added)
    )
