"""Whose data changed between two tables."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from erasable.data import differing_rows, unchanged_users

ITEMS = ["a", "b", "c", "d"]
cells = st.dictionaries(
    st.sampled_from(["ann", "bob", "cy", "dee"]),
    st.dictionaries(st.sampled_from(ITEMS), st.sampled_from([1.0, 2.0]), min_size=1),
)


@given(before=cells, after=cells)
@settings(deadline=None)
def test_a_user_is_unchanged_exactly_if_items_and_ratings_are_the_same(tables, before, after):
    one, other = tables.table(before, ITEMS), tables.table(after, ITEMS)
    places = unchanged_users(one, other)
    expected = [one.users.texts().index(user) if before.get(user) == after[user] else -1 for user in other.users]
    assert places.tolist() == expected


@given(before=cells, after=cells)
@settings(deadline=None)
def test_the_rows_that_differ_lead_from_one_table_to_the_other(tables, before, after):
    one, other = tables.table(before, ITEMS), tables.table(after, ITEMS)
    taken, given = differing_rows(one, other)
    assert tables.as_rows(one) - tables.as_rows(taken) | tables.as_rows(given) == tables.as_rows(other)
    changed = {user for user in {*before, *after} if before.get(user) != after.get(user)}
    assert {*taken.users, *given.users} == changed


@pytest.mark.parametrize("rows", [{}, {"ann": ["a"]}])
def test_nothing_differs_between_equals(tables, rows):
    table = tables.table(rows, ITEMS)
    assert [len(part) for part in differing_rows(table, table)] == [0, 0]
