"""Ids of people in what an owner declared of items: found as a whole value in any column, beside others and numbers."""

import pyarrow as pa
import pytest

from erasable.data.item_attributes import read_attributes
from erasable.data.item_features import ItemFeatures
from erasable.operations._vocabulary import own_vocabulary
from erasable.scan import Held, Target, Vocabulary, scan_folder
from erasable.workspace.declared_items import HIDDEN, encode_declared
from erasable.workspace.tables import encode_features
from kit.planting import KINDS

ITEMS = ["i1", "i2", "i3"]
SAYS = "In tables of items that were declared"


@pytest.fixture
def declare(write):
    """Write a column of declared items as the workspace does, and as features if they are asked for."""

    def call(values, name="seller", features=False):
        table = read_attributes(pa.table({"item_id": ITEMS, name: values}))
        if features:
            write("item-features-0123456789ab.parquet", encode_features(ItemFeatures.chosen(table, [name])))
            return
        table = table.add_column(1, HIDDEN, pa.array([False, True, False]))
        write("declared-items-0123456789ab.parquet", encode_declared(table))

    return call


def found(folder, user, items=ITEMS, vocabulary=None):
    scan = scan_folder(folder, [Target(user)], vocabulary or own_vocabulary(), held=Held(items=(items,)))
    return {(one.file.split("-")[0], one.place, one.of) for one in scan.residues}


@pytest.mark.parametrize("features", [False, True], ids=["attributes", "features"])
class TestTexts:
    @pytest.mark.parametrize("kind", [kind for kind in KINDS if kind != "short number"])
    @pytest.mark.parametrize("cell", ["{}", " {} ", "first|{}", "{} | last"])
    def test_an_id_is_found_whatever_its_length_and_nobody_else(self, declare, tmp_path, kind, cell, features):
        who = KINDS[kind]
        if "|" in who and cell != "{}":
            pytest.skip("an id that is cut by the sign between values is compared as a whole cell")
        declare([None, cell.format(who), "x"], features=features)
        assert any(of == (who,) for _, _, of in found(tmp_path, who))
        assert not any(found(tmp_path, one) for one in (who[:2], f"{who[:2]}z", "nobody"))
        declare([None, cell.format(f"Z{who[:2]}Z"), "x"], features=features)
        assert not found(tmp_path, who)

    def test_in_a_column_of_any_name(self, declare, tmp_path, features):
        for name in ("seller", "brand", "price", "item code", "id", "a:b"):
            declare(["u03", "u0", None], name, features=features)
            assert len(found(tmp_path, "u03")) == 1
            assert not found(tmp_path, "u04")

    def test_a_short_number_is_a_size_or_a_count_but_under_the_name_of_a_user(self, declare, tmp_path, features):
        declare(["4711", "42", None], features=features)
        assert not found(tmp_path, "4711")
        declare(["4711", "42", None], "owner", features=features)
        assert {of for _, _, of in found(tmp_path, "4711")} == {("4711",)}
        assert not found(tmp_path, "43")

    def test_the_id_of_an_item_means_the_item_but_under_the_name_of_a_user(self, declare, tmp_path, features):
        declare(["i2", "u03", None], "bought with", features=features)
        assert not found(tmp_path, "i2")
        assert not found(tmp_path, "u03", [*ITEMS, "u03"])
        assert found(tmp_path, "u03")
        declare(["i2", "u03", None], "owner", features=features)
        assert found(tmp_path, "i2")

    def test_the_column_of_item_ids_names_items(self, declare, tmp_path, features):
        declare(["x", None, "y"], features=features)
        assert not found(tmp_path, "i2", [])


class TestNumbers:
    @pytest.mark.parametrize("kind", [pa.int32(), pa.int64(), pa.float64()], ids=str)
    @pytest.mark.parametrize("name", ["seller", "price", "released"])
    def test_a_number_of_8_digits_is_found_and_no_other(self, declare, tmp_path, kind, name):
        declare(pa.array([12345603, None, 7], kind), name)
        assert {of for _, _, of in found(tmp_path, "12345603")} == {("12345603",)}
        for other in ("12345604", "1234560", "123456030"):
            assert not found(tmp_path, other)

    @pytest.mark.parametrize(
        ("number", "user"), [(2**62 + 1, str(2**62 + 1)), (-12345603, "-12345603"), (12345603, "0012345603")]
    )
    def test_a_large_one_a_negative_one_and_one_whose_zeros_were_lost(self, declare, tmp_path, number, user):
        declare([number, 5, 6])
        assert {of for _, _, of in found(tmp_path, user)} == {(user,)}
        declare([number + 1, 5, 6])
        assert not found(tmp_path, user)

    def test_a_shorter_one_is_a_price_or_a_count_but_under_the_name_of_a_user(self, declare, tmp_path):
        for name in ("price", "seller", "readers"):
            declare([1234567, 42, None], name)
            assert not found(tmp_path, "42")
            assert not found(tmp_path, "1234567")
        declare([1234567, 42, None], "owner")
        assert {of for _, _, of in found(tmp_path, "42")} == {("42",)}
        assert found(tmp_path, "007") == found(tmp_path, "43") == set()

    def test_the_id_of_an_item_means_the_item(self, declare, tmp_path):
        declare([12345603, 42, None])
        assert not found(tmp_path, "12345603", ["12345603"])

    def test_times_and_truth_values_are_no_ids(self, declare, tmp_path):
        declare([True, False, None], "member")
        assert not found(tmp_path, "1")
        declare(pa.array([12345603, None, 5], pa.timestamp("us")))
        assert not found(tmp_path, "12345603")


def test_in_the_tables_alone_that_the_vocabulary_names_and_it_is_said_where_there_is_one(declare, tmp_path, write):
    declare(["u03", "x", None])
    known, unknown = own_vocabulary(), Vocabulary()
    assert found(tmp_path, "u03")
    assert not found(tmp_path, "u03", vocabulary=unknown)
    said = [scan_folder(tmp_path, [Target("u03")], one).searched for one in (known, unknown)]
    assert [any(sentence.startswith(SAYS) for sentence in one) for one in said] == [True, False]
