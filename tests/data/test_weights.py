"""Weights of rows: quantities times events, which add up to a cap."""

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from erasable import BadRows, WrongUse
from erasable.data import read_interactions
from erasable.data.columns import ColumnNames
from erasable.data.interactions import DataSettings, Interactions
from erasable.data.values import Weights

BOTH = ColumnNames(weight="n", event="kind")
SHOP = Weights(10, {"view": 1, "buy": 5, "glance": 0})
CSV = "user,item,n,kind\na,x,2,view\na,x,1,buy\na,y,4,buy\nb,x,1,glance\nb,y,1,view\n"


def read(tmp_path, text, columns=BOTH, weights=SHOP, **more):
    (tmp_path / "shop.csv").write_text(text)
    return read_interactions(tmp_path / "shop.csv", columns, weights=weights, fewest_users=1, **more)


def test_a_row_weighs_quantity_times_event_and_rows_of_a_pair_add_up(tmp_path):
    found = read(tmp_path, CSV)
    rows = found.interactions
    assert [rows.users[int(user)] for user in rows.user_index] == ["a", "a", "b"]
    assert rows.rating.tolist() == [7, 10, 1]
    assert found.notes[-2:] == (
        "1 rows left out: their events count 0",
        "1 rows added to others of the same user and item",
    )


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("a,x,0,view", "no whole number from 1 up"),
        ("a,x,-1,view", "no whole number from 1 up"),
        ("a,x,1.5,view", "no whole number from 1 up"),
        ("a,x,,view", "no whole number from 1 up"),
        ("a,x,1,click", "its event is none of view, buy, glance: add it to"),
        ("a,x,1,", "its event is none of"),
    ],
)
def test_what_can_not_be_weighed_is_a_bad_row(tmp_path, line, said):
    with pytest.raises(BadRows, match=said):
        read(tmp_path, f"{CSV}{line}\n")
    assert read(tmp_path, f"{CSV}{line}\n", on_bad_row="skip").bad_rows == 1


def test_nullable_and_categorical_columns_are_weighed_row_by_row():
    table = pa.table(
        {
            "user": ["a", "b", "c"],
            "item": ["x", "x", "x"],
            "n": pa.array([2, None, 1]),
            "kind": pa.array(["buy", "view", None]).dictionary_encode(),
        }
    )
    found = read_interactions(table, BOTH, weights=SHOP, fewest_users=1, on_bad_row="skip")
    assert (found.interactions.rating.tolist(), found.bad_rows) == ([10], 2)


def test_columns_of_weights_need_someone_who_weighs_them(tmp_path):
    with pytest.raises(WrongUse, match="no weights are learned here"):
        read(tmp_path, CSV, ColumnNames(weight="n"), None)
    with pytest.raises(WrongUse, match="no types of events are weighed here"):
        read(tmp_path, CSV, BOTH, Weights(10))


@given(st.lists(st.integers(1, 12), min_size=2, max_size=8), st.integers(1, 20), st.data())
def test_a_capped_sum_does_not_depend_on_order_or_on_how_rows_come(weights, most, data):
    def held(rows):
        columns = pa.array(["a"] * len(rows)), pa.array(["x"] * len(rows))
        return Interactions.from_columns(*columns, rows, None, most)[0].rating.tolist()

    cut = data.draw(st.integers(1, len(weights) - 1))
    shuffled = data.draw(st.permutations(weights))
    whole = held(weights)
    assert whole == [min(sum(weights), most)]
    assert held([*held(shuffled[:cut]), *shuffled[cut:]]) == whole


@pytest.mark.parametrize(
    "text", ["view", "view=", "=1", "view=-1", "view=x", "view=0", "view=1.5", "", "view=1,view=2"]
)
def test_event_weights_that_make_no_sense_are_refused(text):
    with pytest.raises(ValueError, match="event_weights"):
        DataSettings(event_weights=text)


def test_event_weights_may_be_text_or_a_table():
    assert DataSettings(event_weights=" view=1, add to cart = 3").event_weights == {"add to cart": 3, "view": 1}
    assert DataSettings(event_weights={"view": 1}).event_weights == {"view": 1}
