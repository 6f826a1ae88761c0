"""Features of items: values that several items have, from columns that are declared."""

import pyarrow as pa
import pytest

from erasable.data.ids import Ids
from erasable.data.item_features import MOST_ITEMS, ItemFeatures
from erasable.errors import DataRefused
from kit.cleared import Cleared

TABLE = pa.table(
    {
        "item_id": ["c", "a", "b", "d"],
        "author": ["Ann", "Ann", None, "Bob|Cleo"],
        "genre": ["x| y", "y|y|", "", "x"],
        "year": [1999, 2000, 2000, 2000],
        "price": [1.5, 2.5, 1.5, 1.5],
    }
)


def rows(features, items, weights):
    found = features.over(Ids.of(items), weights)
    assert found.items.texts() == list(items)
    values, numbers = found.users.texts(), zip(found.user_index, found.item_index, found.rating.tolist(), strict=True)
    return [(values[value], items[item], weight) for value, item, weight in numbers]


class TestValues:
    def test_a_value_that_two_items_have_is_a_row_over_them_with_its_weight(self):
        features = ItemFeatures.chosen(TABLE, ["author", "genre"])
        found = rows(features, "abcd", {"author": 5, "genre": 1})
        assert found == [
            ("0=Ann", "a", 5.0),
            ("0=Ann", "c", 5.0),
            ("1=x", "c", 1.0),
            ("1=x", "d", 1.0),
            ("1=y", "a", 1.0),
            ("1=y", "c", 1.0),
        ]

    def test_the_order_of_the_table_and_of_its_columns_makes_no_difference(self):
        names = ["author", "year"]
        one = ItemFeatures.chosen(TABLE, names)
        other = ItemFeatures.chosen(TABLE.take([3, 1, 0, 2]).select(["item_id", "year", "author"]), names[::-1])
        items, weights = Ids.of("abcd"), {"author": 2, "year": 3}
        assert one.over(items, weights).digest() == other.over(items, weights).digest()
        assert one.over(items, weights).digest() != one.over(items, {"author": 3, "year": 3}).digest()

    def test_items_are_numbered_by_any_list_and_others_left_out(self):
        features = ItemFeatures.chosen(TABLE, ["year"])
        assert rows(features, ["z", "d", "b"], {"year": 1}) == [("0=2000", "d", 1.0), ("0=2000", "b", 1.0)]
        assert rows(features, ["z", "d", "c"], {"year": 1}) == []

    def test_a_value_of_too_many_items_is_left_out(self):
        items = [f"{number:05d}" for number in range(MOST_ITEMS + 1)]
        table = pa.table({"item_id": items, "shop": ["here"] * len(items), "two": ["yes", "yes", *items[2:]]})
        features = ItemFeatures.chosen(table, ["shop", "two"])
        assert {value for value, _, _ in rows(features, items, {"shop": 1, "two": 1})} == {"1=yes"}
        assert len(rows(features, items[1:], {"shop": 1})) == MOST_ITEMS

    def test_another_thread_that_asks_for_other_items_meanwhile_is_no_harm(self):
        features = ItemFeatures.chosen(TABLE, ["year"])
        vars(features)["_last"] = Cleared()
        assert rows(features, ["d", "b"], {"year": 1}) == [("0=2000", "d", 1.0), ("0=2000", "b", 1.0)]

    def test_an_absent_column_and_fractions_are_refused(self):
        for name in ("authors", "item_id"):
            with pytest.raises(DataRefused, match="author, genre, year, price"):
                ItemFeatures.chosen(TABLE, [name])
        with pytest.raises(DataRefused, match="price holds double"):
            ItemFeatures.chosen(TABLE, ["price"])
