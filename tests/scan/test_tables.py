"""Which columns of a table hold ids of users."""

import pytest

from erasable.scan._columns import ListColumn
from erasable.scan._tables import Table


@pytest.mark.parametrize(
    ("names", "called", "expected"),
    [
        (("user_id", "item_id", "rating"), "data", {0}),
        (("rating", "customer", "friend"), "data", {1, 2}),
        (("item_id", "rating"), "data", set()),
        (("id", "colour"), "data", {0}),
        (("id", "user_id"), "data", {1}),
        (("id", "title"), "movies", set()),
        (("id", "status"), "requests", set()),
        (("f0", "f1"), "data", {0}),
        ((None, None), "ratings.csv", {0}),
        ((None, None), "items.txt", set()),
        (("time", "x"), "data", set()),
        (("group", "users"), "data", {1}),
        ((), "data", set()),
    ],
)
def test_columns_named_like_a_user_else_id_else_the_first(names, called, expected):
    table = Table("", called, [ListColumn(name, ["a"]) for name in names])
    assert table.user_columns == expected


def test_a_column_is_described_by_its_name_or_its_number():
    table = Table("table x", "x", [ListColumn("user", []), ListColumn(None, [])])
    assert [table.described(0), table.described(1)] == ["table x, column user", "table x, column 2"]
    statistics = Table("row group 0", "x", [ListColumn("user", [])], part="statistics of")
    assert statistics.described(0) == "row group 0, statistics of user"
