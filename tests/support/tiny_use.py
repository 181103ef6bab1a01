"""A tiny Universal Sentence Encoder with seeded weights: its pieces, its tokenizer, its tensors."""

from __future__ import annotations

import numpy as np
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors

from twinvec.engine.use import _shapes

TABLE_WIDTH, BRANCH, POOLED, HIDDEN, WIDTH = 12, 4, 10, 6, 8
LETTERS = "abcdefghijklmnopqrstuvwxyz.,한국고양이"
WORDS = ["▁the", "▁cat", "▁sits", "▁on", "▁mat", "▁a", "▁dog", "▁고양이", "at", "og", "un"]
PIECES = [" <unk>", " <s>", " </s>", "▁", *LETTERS, *WORDS]
TEXTS = [
    "the cat sits on the mat",
    "a dog runs",
    "",
    "고양이",
    "z" * 90,
    "the cat",
    "한국 ☃☃ the",
    "<s> </s>",
    "a  dog\truns ",
]
LEFT = {1: 0, 2: 0, 3: 1, 5: 2}


def tiny_tokenizer():
    scores = [
        0.0,
        0.0,
        0.0,
        -3.0,
        *[-6.0 - 0.01 * i for i in range(len(LETTERS))],
        *[-2.0 - 0.1 * i for i in range(11)],
    ]
    fast = Tokenizer(models.Unigram(list(zip(PIECES, scores, strict=True)), 0, False))
    fast.normalizer = normalizers.Sequence([normalizers.NFC(), normalizers.Replace("\t", " "), normalizers.Strip()])
    fast.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme="always", split=False)
    special = [("<s>", 1), ("</s>", 2)]
    fast.post_processor = processors.TemplateProcessing(single="<s> $A </s>", special_tokens=special)
    return fast


def tiny_weights(orders=(2, 3, 5)):
    draw = np.random.default_rng(7)
    shapes = _shapes([BRANCH * len(orders), POOLED, HIDDEN, WIDTH], TABLE_WIDTH, orders)
    shapes["embedding.weight"] = (len(PIECES), TABLE_WIDTH)
    return {name: draw.normal(size=shape).astype(np.float32) / shape[-1] ** 0.5 for name, shape in shapes.items()}
