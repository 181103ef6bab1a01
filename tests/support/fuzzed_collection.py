"""A collection with its header in a separate file, so that a fuzzer can change it.

``make(folder)`` creates the folder, ``FILES`` are the files to change, and ``use(folder)`` opens and uses it as a user
would; with changed files it either works or raises a TwinvecError.
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
    """Create a collection of two texts, its tiny model, and its header in a file."""
    model = write_tiny_model(folder / "model")
    Collection.create(folder / "collection", model=model).add(TEXTS, ["a", "b"], [{"year": 1990}, {"year": 2003}])
    (folder / FILES[0]).write_text(json.dumps(header_of(folder / "collection"), indent=1))


def use(folder):
    """Write the file into the table as its header; open, search and change the collection."""
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
    """Rewrite the table with any header."""
    import lancedb

    rows = _table(path).to_arrow()
    text = content.decode("utf-8", "replace")  # Lance only stores UTF-8
    changed = rows.replace_schema_metadata({KEY: text.encode()})
    lancedb.connect(str(path)).create_table("texts", data=changed, schema=changed.schema, mode="overwrite")


def _table(path):
    import lancedb

    return lancedb.connect(str(path)).open_table("texts")
