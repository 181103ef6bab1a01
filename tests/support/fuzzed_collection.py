"""A collection whose header is a file of its own, so that it can be changed by hand or by a fuzzer.

``make(folder)`` makes a whole folder, ``FILES`` are those of it to change, and ``use(folder)`` opens it and does what
users do; with changed files it either does so, or raises a TwinvecError.
"""

from __future__ import annotations

import json

import numpy as np

from tiny import write_tiny_model
from twinvec.collection import Collection

FILES = ("header.json",)
KEY = b"twinvec"
TEXTS = ["the cat sits", "a dog runs"]


def make(folder):
    """A collection of two texts, the tiny model it is of, and its header in a file."""
    model = write_tiny_model(folder / "model")
    Collection.create(folder / "collection", model=model).add(TEXTS, ["a", "b"], [{"year": 1990}, {"year": 2003}])
    (folder / FILES[0]).write_text(json.dumps(header_of(folder / "collection"), indent=1))


def use(folder):
    """Put the file into the table as its header, open the collection, search it, and change it."""
    with_header(folder / "collection", (folder / FILES[0]).read_bytes())
    collection = Collection.open(folder / "collection")
    assert len(collection) == 2 and collection.columns == {"year": "int"}
    assert [hit.id for hit in collection.search("dog", mode="text")] == ["b"]
    hits = collection.search("the cat sits", where="year < 2000")
    assert [hit.id for hit in hits] == ["a"] and np.isclose(hits[0].score, 1, atol=0.05)  # 0.05 for int8
    assert collection.upsert(TEXTS, ["a", "b"], [{"year": 1990}, {"year": 2003}]).n_unchanged == 2


def header_of(path):
    """The header of a collection, read from its table."""
    return json.loads(_table(path).schema.metadata[KEY])


def with_header(path, content):
    """Write the table again with this header, whatever it is."""
    import lancedb

    rows = _table(path).to_arrow()
    text = content.decode("utf-8", "replace")  # Lance stores nothing else
    found = rows.replace_schema_metadata({KEY: text.encode()})
    lancedb.connect(str(path)).create_table("texts", data=found, schema=found.schema, mode="overwrite")


def _table(path):
    import lancedb

    return lancedb.connect(str(path)).open_table("texts")
