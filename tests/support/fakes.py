"""A fake encoder without weights, and a function that replaces real models with it."""

import hashlib
from pathlib import Path
from types import SimpleNamespace

import numpy as np

import twinvec
import twinvec.embedder
from twinvec.vectors import quantize_vectors, similarity, similarity_pairwise


class HashEncoder:
    """Texts with common words get similar vectors. ``calls`` records the arguments of each call."""

    width = 16

    def __init__(self, precision="float32"):
        self.calls = []
        self.engine = SimpleNamespace(precision=precision)
        self.settings = SimpleNamespace(unknown="ignore")

    def encode(self, texts, *, prompt=None, prompt_name=None, output="float32", progress=None):
        if isinstance(texts, str):
            return self.encode([texts], prompt=prompt, prompt_name=prompt_name, output=output)[0]
        texts = list(texts)
        self.calls.append({"texts": texts, "prompt": prompt, "prompt_name": prompt_name, "output": output})
        vectors = np.zeros((len(texts), self.width), dtype=np.float32)
        for row, text in zip(vectors, texts, strict=True):
            for word in f"{prompt or ''}{text}".lower().split():
                row[hashlib.md5(word.encode()).digest()[0] % self.width] += 1
        return quantize_vectors(vectors, output)

    def encode_query(self, texts, *, prompt=None, output="float32", progress=None):
        return self.encode(texts, prompt=prompt, prompt_name="query", output=output)

    def encode_document(self, texts, *, prompt=None, output="float32", progress=None):
        return self.encode(texts, prompt=prompt, prompt_name="document", output=output)

    def encode_iter(self, texts, *, prompt=None, prompt_name=None, output="float32"):
        for text in texts:
            yield self.encode(text, prompt=prompt, prompt_name=prompt_name, output=output)

    def similarity(self, left, right):
        return similarity(left, right)

    def similarity_pairwise(self, left, right):
        return similarity_pairwise(left, right)

    def count_tokens(self, texts):
        return len(texts.split()) if isinstance(texts, str) else np.array([len(text.split()) for text in texts])


def replace_models(monkeypatch, load=lambda name, **settings: HashEncoder()):
    """Load models with ``load``; their names need not exist."""
    monkeypatch.setattr(twinvec, "load", load)
    monkeypatch.setattr(twinvec.embedder, "load", lambda folder, **settings: load(str(folder), **settings))
    monkeypatch.setattr(twinvec.embedder, "find_model", lambda name, **_: Path(name))
    monkeypatch.setattr(twinvec.embedder, "model_files", lambda folder: [])
    monkeypatch.setattr(twinvec.embedder, "read_model_folder", lambda folder: SimpleNamespace(similarity="cosine"))
