"""A collection behaves as a dict does, whatever is done to it in whatever order."""

from __future__ import annotations

import shutil
from pathlib import Path
from tempfile import mkdtemp

import numpy as np
import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from collections_of_fakes import CountingEmbedder, contents, fake_collection, vectors_of
from twinvec.collection import Collection
from twinvec.errors import InputError
from twinvec.search import search as exact_search

pytest.importorskip("lancedb")

IDS = st.sampled_from("abcdef")
WORDS = st.sampled_from(["cat", "dog", "bird", "fish", "tree"])
TEXTS = st.lists(WORDS, max_size=3).map(" ".join)
METADATA = st.fixed_dictionaries({}, optional={"year": st.integers(0, 3), "genre": st.sampled_from(["x", "y"])})
ROWS = st.dictionaries(IDS, st.tuples(TEXTS, METADATA), min_size=1, max_size=4)


class CollectionMachine(RuleBasedStateMachine):
    """The same calls to a collection and to a dict of id to (text, metadata)."""

    @initialize()
    def start(self):
        self.folder = Path(mkdtemp())
        self.collection, self.counter = fake_collection(self.folder / "c")
        self.expected = {}

    def teardown(self):
        if hasattr(self, "folder"):
            shutil.rmtree(self.folder)

    def arguments(self, rows):
        return [text for text, _ in rows.values()], list(rows), [row for _, row in rows.values()]

    @rule(rows=ROWS)
    def add(self, rows):
        if rows.keys() & self.expected:
            with pytest.raises(InputError, match="already"):
                self.collection.add(*self.arguments(rows))
        else:
            assert self.collection.add(*self.arguments(rows)).n_added == len(rows)
            self.expected |= rows

    @rule(rows=ROWS)
    def upsert(self, rows):
        known = {text for text, _ in self.expected.values()}
        self.counter.texts.clear()
        written = self.collection.upsert(*self.arguments(rows))
        assert written.n_added == len(rows.keys() - self.expected)
        assert written.n_unchanged == sum(self.expected.get(name) == row for name, row in rows.items())
        assert set(self.counter.texts) == {text for text, _ in rows.values()} - known
        assert len(self.counter.texts) == len(set(self.counter.texts)) == written.n_embedded
        self.expected |= rows

    @rule(ids=st.sets(IDS))
    def delete(self, ids):
        assert self.collection.delete(ids) == len(ids & self.expected.keys())
        self.expected = {name: row for name, row in self.expected.items() if name not in ids}

    @rule(year=st.integers(0, 3))
    def delete_where(self, year):
        if "year" not in self.collection.columns:
            return
        gone = {name for name, (_, row) in self.expected.items() if row.get("year") == year}
        assert self.collection.delete(where=f"year = {year}") == len(gone)
        self.expected = {name: row for name, row in self.expected.items() if name not in gone}

    @rule()
    def reopen(self):
        self.collection = Collection.open(self.folder / "c", model=self.counter)

    @rule(again=st.booleans())
    def reindex(self, again):
        if again:
            name = "other" if self.collection.model.name == "hash" else "hash"
            self.counter = CountingEmbedder(name)
            self.collection.reindex(self.counter)
        else:
            self.collection.reindex()

    @rule(word=WORDS, k=st.integers(1, 8))
    def search_by_words(self, word, k):
        having = {name for name, (text, _) in self.expected.items() if word in text.split()}
        found = [hit.id for hit in self.collection.search(word, k, mode="text")]
        assert len(found) == len(set(found)) == min(k, len(having))
        assert set(found) <= having

    @rule(query=TEXTS, k=st.integers(1, 8), genre=st.sampled_from(["x", "y", None]))
    def search_by_meaning(self, query, k, genre):
        where = None if genre is None or "genre" not in self.collection.columns else f"genre = '{genre}'"
        hits = self.collection.search(query, k, where=where)
        fits = {n: text for n, (text, row) in self.expected.items() if where is None or row.get("genre") == genre}
        left = {n: text for n, text in fits.items() if text and query}  # the others' vectors have no direction
        assert {hit.id for hit in hits} <= left.keys()
        assert all((hit.text, hit.metadata) == self.expected[hit.id] for hit in hits)
        expected = exact_search(vectors_of([query]), vectors_of(list(left.values())), k=k).scores[0] if left else []
        np.testing.assert_allclose([hit.score for hit in hits], expected, atol=1e-6)

    @invariant()
    def holds_what_the_dict_holds(self):
        if hasattr(self, "collection"):
            assert contents(self.collection) == self.expected


TestCollectionIsADict = CollectionMachine.TestCase
TestCollectionIsADict.settings = settings(
    max_examples=12, stateful_step_count=12, deadline=None, suppress_health_check=list(HealthCheck)
)
