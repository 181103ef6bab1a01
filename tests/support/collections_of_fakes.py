"""Collections with a fake model."""

from __future__ import annotations

import numpy as np

from fakes import HashEncoder
from twinvec.collection import Collection


class CountingEmbedder:
    """A fake model whose identity is its name. ``texts`` are all documents that it has embedded."""

    width = HashEncoder.width

    def __init__(self, name="hash", *, similarity="cosine", sign=1):
        self.name, self.identity, self.similarity, self.settings = name, f"{name:0<32}", similarity, {}
        self.texts = []
        self._encoder = HashEncoder()
        self._sign = sign

    def embed(self, texts, *, role="text"):
        if role == "query":
            return self._encoder.encode_query(texts)
        return self.documents(texts)

    def documents(self, texts):
        self.texts += texts
        return self._sign * self._encoder.encode_document(texts)


def vectors_of(texts):
    """The vectors of the fake model, ``(n, 16)``."""
    return HashEncoder().encode(texts)


def fake_collection(folder, **options):
    """A new collection and its fake model."""
    model = CountingEmbedder(**options)
    return Collection.create(folder, model=model), model


def contents(collection):
    """Everything in a collection, by id."""
    entries = list(collection)
    found = {entry.id: (entry.text, dict(entry.metadata)) for entry in entries}
    assert len(found) == len(entries) == len(collection), "an id is duplicated"
    return found


def stored_vectors(collection):
    """The stored vectors, by id."""
    rows = collection._table().to_arrow()
    return dict(zip(rows["id"].to_pylist(), np.array(rows["vector"].to_pylist(), dtype=np.float32), strict=True))
