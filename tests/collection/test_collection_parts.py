"""The pure parts of a collection: fusion of rankings, names in filters, kinds of columns, when to tidy up."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from twinvec.collection.indexes import lance_errors
from twinvec.collection.rows import check_filter, one_of
from twinvec.collection.schema import KINDS, column_kinds
from twinvec.collection.search import reciprocal_rank_fusion
from twinvec.collection.write import needs_optimize
from twinvec.errors import CollectionError, InputError, UnknownNameError

rankings = st.lists(st.lists(st.integers(0, 20), unique=True), max_size=4)


@given(rankings)
def test_fusion_ranks_every_id_once_best_first_by_the_sum_of_its_reciprocal_places(given_rankings):
    fused = reciprocal_rank_fusion(given_rankings)
    assert sorted(each for each, _ in fused) == sorted({each for ranking in given_rankings for each in ranking})
    for each, score in fused:
        places = [ranking.index(each) + 1 for ranking in given_rankings if each in ranking]
        assert score == pytest.approx(sum(1 / (60 + place) for place in places))
    scores = [score for _, score in fused]
    assert scores == sorted(scores, reverse=True)


@given(st.lists(st.integers(), unique=True), st.integers(1, 3))
def test_fusing_one_ranking_with_itself_keeps_its_order(ranking, n):
    assert [each for each, _ in reciprocal_rank_fusion([ranking] * n)] == ranking


@given(rankings, st.randoms())
def test_the_order_of_the_rankings_changes_no_score(given_rankings, random):
    shuffled = random.sample(given_rankings, len(given_rankings))
    fused, again = dict(reciprocal_rank_fusion(given_rankings)), dict(reciprocal_rank_fusion(shuffled))
    assert fused == pytest.approx(again)


@given(st.lists(st.integers(0, 20), unique=True, min_size=1), st.lists(st.integers(0, 20), unique=True))
def test_an_id_ahead_in_both_rankings_stays_ahead(first, second):
    fused = [each for each, _ in reciprocal_rank_fusion([first, second])]
    for one, other in pairwise(first):
        if one in second and (other not in second or second.index(one) < second.index(other)):
            assert fused.index(one) < fused.index(other)


COLUMNS = ["id", "text", "year", "two words"]
words = st.from_regex(r"[a-z][a-z0-9]{0,8}", fullmatch=True)


@given(words.filter(lambda word: word not in COLUMNS))
def test_every_unknown_name_is_found_however_it_is_written(word):
    for where in (f"`{word}` = 1", f'year = 1 and "{word}" > 2', f"`{word}` in ('a', 'b')"):
        with pytest.raises(UnknownNameError, match="Unknown column"):
            check_filter(where, COLUMNS)


@given(st.lists(st.text(st.characters(exclude_categories=["Cs"])), min_size=1))
def test_quoted_values_in_a_condition_are_not_column_names(values):
    where = one_of("id", values)
    assert check_filter(where, COLUMNS) == where
    with pytest.raises(UnknownNameError, match="'bogus'"):
        check_filter(f"{where} and bogus = 1", COLUMNS)


@pytest.mark.parametrize(
    "where",
    [
        "YEAR BETWEEN 1 AND 2.5e3",
        "not (lower(text) like '%--;%') or year is not null",
        "cast(id as int) % 2 = 0 and `two words` ilike 'a'",
        "regexp_like(text, '^a;b') and year <> -1",
        "year > date '2020-01-01'",
    ],
)
def test_conditions_that_name_known_columns_pass(where):
    assert check_filter(where, COLUMNS) == where


@given(st.lists(st.sampled_from(sorted(KINDS)), min_size=1, max_size=5))
def test_a_column_holds_what_its_first_value_is_and_numbers_may_widen(kinds):
    examples = {"bool": True, "int": 1, "float": 0.5, "text": "x"}
    values = [examples.get(kind) for kind in kinds]
    rows = [{"c": value} for value in values if value is not None]
    found = {kind for kind in kinds if kind in examples}
    if len(found) <= 1:
        assert column_kinds(rows, {}) == ({"c": found.pop()} if found else {})
    elif found == {"int", "float"}:
        assert column_kinds(rows, {}) == {"c": "float"}
    else:
        with pytest.raises(InputError, match="but the column has the type"):
            column_kinds(rows, {})


@given(st.integers(0, 10**8), st.integers(0, 1000))
def test_a_large_collection_is_not_rewritten_for_a_few_rows(n_rows, n_new):
    assert not needs_optimize(n_rows, n_new, 20)
    assert needs_optimize(n_rows, n_rows // 3 + 5001, 20)
    assert needs_optimize(n_rows, 0, n_rows // 500 + 100)


@pytest.mark.parametrize(
    ("error", "message"),
    [
        (RuntimeError("lance error: Commit conflict for version 4"), "Another process wrote .* Try again"),
        (
            RuntimeError("lance error: LanceError(IO): No space left on device (os error 28), /x.rs:1:2"),
            "Free some disk space",
        ),
        (OSError(13, "Permission denied"), "Check the permissions"),
        (RuntimeError("Generic S3 error: Failed to resolve region for bucket 'x'"), "Check the address"),
        (RuntimeError("Generic LocalFileSystem error: Unable to open file"), "is missing or damaged"),
        (ValueError("Invalid input, no magic"), "Cannot read notes: no magic. A file .* is missing or damaged"),
    ],
)
def test_errors_of_lance_have_a_hint(error, message):
    with pytest.raises(CollectionError, match=message), lance_errors("read notes"):
        raise error
