import pytest

from erasable.data import ColumnNames
from erasable.data.columns import ColumnPositions, locate_by_name, locate_by_number, looks_like_header
from erasable.errors import DataRefused, WrongUse


@pytest.mark.parametrize(
    "names",
    [
        ("user_id", "item_id", "rating", "timestamp"),
        ("userId", "movieId", "rating", "timestamp"),
        ("userID", "itemID", "weight", "datetime"),
        ("USER", "Item", "Score", "Time"),
        ("uid", "iid", "rating", "timestamp"),
        ("user_id:token", "item_id:token", "rating:float", "timestamp:float"),
    ],
)
def test_usual_names_are_recognised(names):
    assert locate_by_name(names, ColumnNames(), "f") == ColumnPositions(0, 1, 2, 3)
    assert looks_like_header(names, ColumnNames())


@pytest.mark.parametrize(
    ("names", "places"),
    [
        (["order", "customer_id", "sku", "quantity", "purchased_at"], (1, 2, None, 4)),
        (["customer_email", "product_id", "created_at"], (0, 1, None, 2)),
        (["CustomerID", "customer_email", "ProductId", "price"], (0, 2, None, None)),
        (["email", "customer_id", "article_id", "created_at", "ordered_at"], (1, 2, None, 4)),
        (["customer_id", "user_id", "sku", "item_id", "created_at", "timestamp"], (1, 3, None, 5)),
    ],
)
def test_names_of_shops_are_recognised_after_the_usual_ones(names, places):
    assert locate_by_name(names, ColumnNames(), "f") == ColumnPositions(*places)
    assert looks_like_header(names, ColumnNames())


def test_of_two_names_of_shops_neither_is_taken():
    names = ["customer_id", "product_id", "sku"]
    with pytest.raises(DataRefused, match=r"f: product_id and sku may each be the item: name one .* item='NAME'"):
        locate_by_name(names, ColumnNames(), "f")
    assert locate_by_name(names, ColumnNames(item="sku"), "f") == ColumnPositions(0, 2)


def test_rating_and_time_may_be_missing():
    assert locate_by_name(["item", "x", "user"], ColumnNames(), "f") == ColumnPositions(2, 0)


def test_a_given_name_wins_over_a_recognised_one():
    names = ["user_id", "item_id", "stars", "rating"]
    assert locate_by_name(names, ColumnNames(rating="stars"), "f").rating == 2
    assert locate_by_name(names, ColumnNames(rating="3"), "f").rating == 2


def test_the_fuller_name_is_preferred():
    assert locate_by_name(["user", "user_id", "item"], ColumnNames(), "f").user == 1


def test_an_unknown_name_lists_those_there_and_the_option():
    with pytest.raises(DataRefused, match=r"f: .*'who'.*shop, buyer.*user='NAME'"):
        locate_by_name(["shop", "buyer"], ColumnNames(user="who"), "f")


def test_a_column_that_is_not_recognised_names_the_option():
    with pytest.raises(DataRefused, match=r"f: .*item.*user, thing.*item='NAME'"):
        locate_by_name(["user", "thing"], ColumnNames(), "f")


def test_a_file_that_is_no_table_is_told_as_such():
    with pytest.raises(DataRefused, match="f: does not look like a table: give a CSV or Parquet file"):
        locate_by_name(["", " ", "", "Apache", "License"], ColumnNames(), "f")


def test_without_a_header_the_usual_places_count():
    assert locate_by_number(2, ColumnNames(), "f") == ColumnPositions(0, 1)
    assert locate_by_number(5, ColumnNames(), "f") == ColumnPositions(0, 1, 2, 3)
    assert locate_by_number(3, ColumnNames(user="2", item="1"), "f") == ColumnPositions(1, 0, 2)
    assert locate_by_number(4, ColumnNames(user="3", item="1"), "f") == ColumnPositions(2, 0, None, 3)


def test_a_risk_is_found_only_when_it_is_named():
    names = ["user", "item", "risk", "rating"]
    assert locate_by_name(names, ColumnNames(), "f") == ColumnPositions(0, 1, 3)
    assert locate_by_name(names, ColumnNames(risk="risk"), "f") == ColumnPositions(0, 1, 3, risk=2)
    assert not looks_like_header(["risk", "x"], ColumnNames())
    assert looks_like_header(["risk", "x"], ColumnNames(risk="risk"))
    with pytest.raises(DataRefused, match=r"'danger'.*user, item, risk, rating.*risk='NAME'"):
        locate_by_name(names, ColumnNames(risk="danger"), "f")


def test_a_column_named_as_the_risk_is_nothing_else():
    assert locate_by_name(["user", "item", "score"], ColumnNames(risk="score"), "f") == ColumnPositions(0, 1, risk=2)
    with pytest.raises(WrongUse, match="twice"):
        locate_by_name(["user", "item", "score"], ColumnNames(rating="score", risk="score"), "f")


def test_without_a_header_a_risk_shifts_no_other_column():
    assert locate_by_number(5, ColumnNames(risk="5"), "f") == ColumnPositions(0, 1, 2, 3, 4)
    assert locate_by_number(5, ColumnNames(risk="3"), "f") == ColumnPositions(0, 1, None, 3, 2)
    with pytest.raises(DataRefused, match="give risk=NUMBER, a number from 1 to 3"):
        locate_by_number(3, ColumnNames(risk="4"), "f")


@pytest.mark.parametrize("name", ["0", "5", "name", "-1", "²"])
def test_a_number_that_is_not_there_is_refused(name):
    with pytest.raises(DataRefused, match="give item=NUMBER, a number from 1 to 4"):
        locate_by_number(4, ColumnNames(item=name), "f")


def test_a_role_whose_place_is_taken_must_be_given():
    with pytest.raises(DataRefused, match="Give user=NUMBER"):
        locate_by_number(3, ColumnNames(item="1"), "f")


def test_one_column_can_not_be_two_things():
    with pytest.raises(WrongUse, match="twice"):
        locate_by_name(["user", "item"], ColumnNames(user="item", item="item"), "f")


def test_first_rows_are_no_header():
    assert not looks_like_header(["A1B2", "B000", "5.0"], ColumnNames())
