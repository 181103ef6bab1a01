"""What users give to a collection, of whatever type and value: it is taken, or a TwinvecError says what is wrong."""

from __future__ import annotations

from datetime import date, datetime, timedelta, timezone, tzinfo
from enum import Enum, IntEnum

import numpy as np
import pytest

from collections_of_fakes import CountingEmbedder, contents, fake_collection
from twinvec.collection import Collection
from twinvec.errors import CollectionError, InputError, TwinvecError, shown

pytest.importorskip("lancedb")

TEXTS = ["a cat sits", "the dog runs", "a bird sings"]
ROWS = [{"i": 0, "s": "x", "f": 1.5}, {"i": 1, "s": "2", "f": 2.0}, {"i": 2}]


@pytest.fixture
def filled(tmp_path):
    collection, _ = fake_collection(tmp_path / "c")
    collection.add(TEXTS, list("abc"), ROWS)
    return collection


class NotATime(datetime):
    """As pandas' NaT: a datetime that is none."""

    year = float("nan")

    def __eq__(self, other):
        return False

    __hash__ = datetime.__hash__


class Stamp(datetime):
    """As pandas' Timestamp: a datetime that is finer than a microsecond, and so equals no plain one."""

    def __eq__(self, other):
        return isinstance(other, Stamp) and super().__eq__(other)

    __hash__ = datetime.__hash__


class BrokenZone(tzinfo):
    """A zone that fails."""

    def utcoffset(self, _):
        raise RuntimeError("no such place")


class Number(IntEnum):
    three = 3


class Word(str, Enum):
    x = "x"


FILTERS = {
    "1 / i > 0": "Divide by zero",
    "i / 0 = 1": "Divide by zero",
    "cast(s as int) > 1": "Cannot cast string 'x'",
    "power(i, -1) > 0": "zero raised to a negative power",
}


@pytest.mark.parametrize("mode", ["dense", "text", "hybrid", "delete"])
@pytest.mark.parametrize("where", FILTERS)
def test_a_filter_that_fails_on_some_texts_is_blamed_and_not_the_collection(filled, where, mode):
    with pytest.raises(InputError, match=f"cannot be worked out for some texts: {FILTERS[where]}.*nullif") as caught:
        filled.delete(where=where) if mode == "delete" else filled.search("cat", where=where, mode=mode)
    assert "damaged" not in str(caught.value)
    assert len(filled) == 3 and len(filled.search("cat", where="1 / nullif(i, 0) > 0")) == 1


@pytest.mark.parametrize("mode", ["dense", "text", "delete"])
@pytest.mark.parametrize("where", ["i = 0", "1 / i > 0"])
def test_a_damaged_file_is_blamed_also_where_there_is_a_filter(filled, tmp_path, where, mode):
    for file in (tmp_path / "c").rglob("data/*.lance"):
        file.write_bytes(b"x" * 100)
    opened = Collection.open(tmp_path / "c", model=CountingEmbedder())
    with pytest.raises(CollectionError, match="missing or damaged"):
        opened.delete(where=where) if mode == "delete" else opened.search("cat", where=where, mode=mode)


@pytest.mark.parametrize("kind", [Exception, BaseException])
def test_a_panic_of_lance_is_an_error_of_the_collection(filled, monkeypatch, kind):
    def panics(*_):
        raise type("RustPanic", (kind,), {})("rust future panicked")

    monkeypatch.setattr("twinvec.collection.search._best", panics)
    with pytest.raises(CollectionError, match=r"rust future panicked\. A file of the collection is missing or damaged"):
        filled.search("cat")


@pytest.mark.parametrize(
    "value",
    [1.5, True, "3", None, float("nan"), float("inf"), [1], 2j, np.float64(2), np.array([1, 2]), 0, -1],
    ids=shown,
)
def test_a_count_that_is_not_a_whole_number_is_refused(filled, value):
    for name in ("k", "candidates"):
        with pytest.raises(InputError, match=f"^{name} must be"):
            filled.search("cat", **{name: value}, mode="hybrid")


@pytest.mark.parametrize("value", [2, np.int64(2), np.uint8(2), 2**63, 10**5000], ids=shown)
def test_a_count_may_be_numpys_or_huge(filled, value):
    assert len(filled.search("cat", value)) == min(value, 3)


@pytest.mark.parametrize("version", [1.5, True, "1", "tag", 10**30, 2**63 - 1, 10**5000, -1, 0, {}, b"1"], ids=shown)
def test_a_version_that_cannot_be_is_refused(filled, version):
    with pytest.raises(InputError, match=r"version"):
        Collection.open(filled.path, version=version)


ANYTHING = [5, 1.5, None, b"abc", [1], [None], ["\ud800"], [[1]], {"a": 1}, {1}, object(), "", 10**5000]


@pytest.mark.parametrize("given", ANYTHING, ids=lambda value: type(value).__name__)
def test_no_argument_of_a_wrong_type_ends_in_a_raw_error(filled, tmp_path, given):
    before = contents(filled)
    embedder = CountingEmbedder()
    calls = [
        lambda: filled.add(given, ["x"]),
        lambda: filled.add(["x"], given if given is not None else 0),
        lambda: filled.add(["x"], ["x"], given if given is not None else 0),
        lambda: filled.upsert(["x"], ["x"], [{"new": given if given is not None else b""}]),
        lambda: filled.add(["x"], ["x"], [{given if isinstance(given, (int, bytes)) else "": 1}]),
        lambda: filled.get(given),
        lambda: filled.delete(given),
        lambda: filled.delete(where=given),
        lambda: filled.search(given if given != "" else 0),
        lambda: filled.search("cat", where=given if given is not None else 0),
        lambda: filled.search("cat", mode=given),
        lambda: filled.search("cat", rerank=given if given is not None else 0),
        lambda: filled.reindex(given if given is not None else 0),
        lambda: Collection.open(given),
        lambda: Collection.open(filled.path, model=given if given is not None else 0),
        lambda: Collection.open(filled.path, storage=given if given is not None else 0),
        lambda: Collection.create(given, model=embedder),
        lambda: Collection.create(tmp_path / "new", model=given),
        lambda: Collection.create(tmp_path / "new", model=embedder, language=given if given is not None else 0),
    ]
    allowed = {5: [{"a": 1}], 6: [{"a": 1}], 3: [5, 1.5, ""]}  # ids may be keys; numbers and texts are metadata
    for place, call in enumerate(calls):
        if any(given == each and type(given) is type(each) for each in allowed.get(place, [])):
            continue
        with pytest.raises(TwinvecError):
            call()
    assert contents(filled) == before and not (tmp_path / "new").exists()


@pytest.mark.parametrize("path", ["a\0b", "x" * 300, "x/" * 3000])
def test_a_path_that_no_file_can_have_is_refused(tmp_path, path):
    with pytest.raises(TwinvecError):
        Collection.open(tmp_path / path)
    with pytest.raises(TwinvecError):
        Collection.create(tmp_path / path, model=CountingEmbedder())


WEST, EAST = timezone(timedelta(hours=-5)), timezone(timedelta(hours=5))
BAD_VALUES = {
    "NaT": np.datetime64("NaT"),
    "NaT in ns": np.datetime64("NaT", "ns"),
    "pandas' NaT": NotATime(2020, 1, 1),
    "year 9999": datetime(9999, 12, 31, 23, tzinfo=WEST),
    "year 1": datetime(1, 1, 1, tzinfo=EAST),
    "year 20200": np.datetime64("20200", "Y"),
    "duration": timedelta(1),
    "duration in ns": np.timedelta64(5, "ns"),
    "zone": datetime(2020, 1, 1, tzinfo=BrokenZone()),
    "huge": 10**5000,
    "65 bits": 2**63,
    "bytes": b"x",
    "surrogate": "\ud800",
}


@pytest.mark.parametrize("name", BAD_VALUES)
def test_metadata_that_cannot_be_stored_is_refused_with_its_place(filled, name):
    with pytest.raises(InputError, match=r"^metadata\[1\]\['m'\] "):
        filled.upsert(["new", "newer"], ["n", "o"], [{}, {"m": BAD_VALUES[name]}])
    assert len(filled) == 3 and "m" not in filled.columns


GOOD_VALUES = {
    "NaN": float("nan"),
    "infinity": float("inf"),
    "last time": datetime(9999, 12, 31, 23, tzinfo=timezone.utc),
    "last date": date(9999, 12, 31),
    "first date": date(1, 1, 1),
    "64 bits": -(2**63),
    "finer time": Stamp(2020, 1, 1, 2, 3, 4, 5),
    "NUL": "a\0b",
    "enum of int": Number.three,
    "enum of text": Word.x,
}


@pytest.mark.parametrize("name", GOOD_VALUES)
def test_metadata_that_is_stored_again_has_not_changed(filled, name):
    for expected in (1, 0, 0):
        written = filled.upsert(["new"], ["n"], [{"m": GOOD_VALUES[name]}])
        assert (written.n_added, written.n_replaced, written.n_unchanged) == (expected, 0, 1 - expected)


def test_a_nan_that_comes_or_goes_is_a_change(filled):
    filled.upsert(["new"], ["n"], [{"f": float("nan")}])
    assert np.isnan(filled.get(["n"])["n"].metadata["f"])
    assert filled.upsert(["new"], ["n"], [{"f": 0.0}]).n_replaced == 1
    assert filled.upsert(["new"], ["n"], [{"f": np.float32("nan")}]).n_replaced == 1
    assert filled.upsert(["new"], ["n"]).n_replaced == 1
    assert filled.upsert(["new"], ["n"], [{"f": float("nan")}]).n_replaced == 1


def test_times_of_numpy_are_times_of_every_unit(filled):
    units = {"D": date(2020, 1, 2), "M": date(2020, 1, 1), "h": datetime(2020, 1, 2), "ns": datetime(2020, 1, 2)}
    for unit, expected in units.items():
        filled.upsert(["new"], ["n"], [{f"in {unit}": np.datetime64("2020-01-02", unit)}])
        found = filled.get(["n"])["n"].metadata[f"in {unit}"]
        assert (found.replace(tzinfo=None) if isinstance(found, datetime) else found) == expected


def test_a_whole_number_that_a_float_would_change_is_refused(filled):
    with pytest.raises(InputError, match=r"metadata\[0\]\['f'\] is 9007199254740993, which a float cannot hold"):
        filled.upsert(["new"], ["n"], [{"f": 2**53 + 1}])
    with pytest.raises(InputError, match=r"metadata\[0\]\['g'\] is 4611686018427387905, which a float cannot hold"):
        filled.add(["new", "newer"], ["n", "o"], [{"g": 2**62 + 1}, {"g": 0.5}])
    assert filled.upsert(["new"], ["n"], [{"f": 2**62}]).n_added == 1


SCORES = [None, 5, [None] * 3, ["a"] * 3, [1], [float("nan")] * 3, np.zeros((3, 2)), [10**400] * 3]


@pytest.mark.parametrize("scores", SCORES, ids=shown)
def test_a_scorer_that_gives_no_scores_is_refused(filled, scores):
    with pytest.raises(InputError, match="The scorer returned"):
        filled.search("cat", 3, rerank=lambda query, texts: scores)


VECTORS = {
    "NaN": lambda texts: np.full((len(texts), 4), np.nan),
    "infinite in float32": lambda texts: np.full((len(texts), 4), 1e300),
    "ragged": lambda texts: [[1.0] * (place + 1) for place in range(len(texts) + 1)],
    "texts": lambda texts: [["a"] * 4] * len(texts),
    "nothing": lambda texts: None,
    "too wide": lambda texts: np.zeros((len(texts), 5)),
}


@pytest.mark.parametrize("name", VECTORS)
def test_vectors_that_cannot_be_stored_are_refused(tmp_path, name):
    class Wrong:
        name, identity, width, similarity, settings = "m", "d", 4, "cosine", {}

        def embed(self, texts, *, role="text"):
            return VECTORS[name](texts)

    collection = Collection.create(tmp_path / "c", model=Wrong())
    with pytest.raises(InputError, match=r"m returned"):
        collection.add(["a", "b"])
    with pytest.raises(InputError, match=r"m returned"):
        collection.search("a")
    assert len(collection) == 0
