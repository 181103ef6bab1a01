"""Fewer special tokens around a text: each costs as much as a word of it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from tokenizers import Tokenizer as FastTokenizer
from tokenizers.processors import TemplateProcessing

from twinvec.errors import InputError, UnknownNameError
from twinvec.files import read_json, write_json
from twinvec.text import load_tokenizer

__all__ = ["keep_special_tokens"]


def keep_special_tokens(folder: Path, kept: Sequence[str]) -> None:
    """Rewrite the tokenizer in ``folder``: of its special tokens, only ``kept`` stand around a text from now on."""
    path = folder / "tokenizer.json"
    if not path.is_file():
        raise InputError(f"special_tokens changes {path.name}, but this model has only an old vocab.txt.")
    tokenizer = load_tokenizer(folder)
    before, after = tokenizer.tokens(tokenizer.prefix), tokenizer.tokens(tokenizer.suffix)
    for name in kept:
        if name not in (*before, *after):
            raise UnknownNameError("special token", name, (*before, *after))
    fast = FastTokenizer.from_file(str(path))
    frame = [name for name in before if name in kept], [name for name in after if name in kept]
    fast.post_processor = TemplateProcessing(
        single=[*frame[0], "$A", *frame[1]], special_tokens=[(name, fast.token_to_id(name)) for name in kept]
    )
    fast.save(str(path))
    # By the name of an architecture's own class, transformers would put that architecture's tokens around a text.
    config = read_json(folder / "tokenizer_config.json")
    write_json(folder / "tokenizer_config.json", config | {"tokenizer_class": "PreTrainedTokenizerFast"})
