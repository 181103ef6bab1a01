"""Texts to token ids: checking what the user gave, tokenizing, and what happens to long texts."""

from twinvec.text.check import check_text, check_texts
from twinvec.text.samples import sample_texts
from twinvec.text.tokenizer import Tokenizer, load_tokenizer
from twinvec.text.windows import windows
from twinvec.text.words import WordReader

__all__ = ["Tokenizer", "WordReader", "check_text", "check_texts", "load_tokenizer", "sample_texts", "windows"]
