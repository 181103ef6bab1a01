"""Collections whose model needs no weights, for tests."""

from __future__ import annotations

import numpy as np

from fakes import HashEncoder
from twinvec.collection import Collection


class CountingEmbedder:
    """A fake model by a name, which is its content too. ``texts`` are all that it has embedded for storing."""

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
    """What the fake model makes of texts, ``(n, 16)``."""
    return HashEncoder().encode(texts)


def fake_collection(folder, **options):
    """A collection in a new folder, and the counter of what it embeds."""
    model = CountingEmbedder(**options)
    return Collection.create(folder, model=model), model


def contents(collection):
    """Everything in a collection, by id."""
    entries = list(collection)
    found = {entry.id: (entry.text, dict(entry.metadata)) for entry in entries}
    assert len(found) == len(entries) == len(collection), "an id is there twice"
    return found


def stored_vectors(collection):
    """The vectors by id, as they lie in the table."""
    rows = collection._table().to_arrow()
    return dict(zip(rows["id"].to_pylist(), np.array(rows["vector"].to_pylist(), dtype=np.float32), strict=True))
