"""Which items may be recommended: only some, not others, seen ones too; for everyone and for each user."""

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from erasable import Recommender
from erasable.errors import ErasableWarning, Suppressed, UnknownItem, UnknownUser, WrongUse
from erasable.operations import recommend
from erasable.operations.recommend import recommend_to_all
from erasable.operations.selection import EVERYTHING, Selection
from erasable.requests import Request
from kit.asking import submit


def offered(storage, users, selection, **options):
    return {
        one.user_id: [r.item_id for r in one] for one in recommend(storage, users, 100, selection=selection, **options)
    }


def kept(items, wanted):
    return [item for item in items if item in wanted]


class TestTheOrderIsThatOfTheWholeList:
    """The answer is the whole list, less what may not be recommended."""

    def test_only_some_items(self, storage):
        whole = offered(storage, None, EVERYTHING)
        found = offered(storage, None, Selection(only=({"c", "e", "f"},)))
        assert found == {user: kept(items, {"c", "e", "f"}) for user, items in whole.items()}
        assert sum(map(len, found.values())) > 4

    def test_not_some_items(self, storage):
        whole = offered(storage, None, EVERYTHING)
        found = offered(storage, None, Selection(exclude=({"e", "nothing"},)))
        assert found == {user: [item for item in items if item != "e"] for user, items in whole.items()}
        assert found != whole

    def test_items_of_some_users(self, storage):
        whole = offered(storage, None, EVERYTHING)
        found = offered(storage, None, Selection(only=({"ann": {"e"}, "nobody": {"a"}},), exclude=({"bob": {"c"}},)))
        assert found["ann"] == ["e"]
        assert found["bob"] == [item for item in whole["bob"] if item != "c"] != whole["bob"]
        assert {user: found[user] for user in ("cat", "dan", "fay")} == {u: whole[u] for u in ("cat", "dan", "fay")}

    def test_each_list_narrows_it_down(self, storage):
        selection = Selection(({"e", "f"},), ({"f", "d", "new"},), ({"ann": {"f"}},))
        assert offered(storage, ["ann", "bob"], selection) == {"ann": [], "bob": ["f"]}

    def test_a_list_of_nothing_known_leaves_nothing(self, storage):
        assert offered(storage, ["ann"], Selection(available=({"new"},))) == {"ann": []}

    def test_everyone_in_buckets_gets_the_same(self, storage):
        selection = Selection(({"c", "e"},), exclude=({"ann": {"e"}},), seen=True)
        found = {
            one.user_id: [r.item_id for r in one]
            for part in recommend_to_all(storage, 100, selection=selection)
            for one in part
        }
        assert found == offered(storage, None, selection)

    def test_a_selection_goes_to_workers_as_json_and_comes_back(self):
        selection = Selection(({"b", "a"},), ({"u": {"c"}},), (["d"],), seen=True)
        facts = selection.as_facts()
        assert facts == {
            "only": [["a", "b"]],
            "available": [{"u": ["c"]}],
            "exclude": [["d"]],
            "seen": True,
            "where": None,
        }
        assert Selection.of_facts(facts).as_facts() == facts


class TestSeenItems:
    def test_the_whole_catalogue_is_ranked_held_out_items_too(self, storage, ratings):
        with storage.reading() as session:
            assert len(session.state().dataset.held_out) > 0
        found = offered(storage, None, Selection(seen=True))
        assert {user: sorted(items) for user, items in found.items()} == {user: [*"abcdef"] for user in ratings}
        unseen = offered(storage, None, EVERYTHING)
        assert unseen == {user: [i for i in items if i not in ratings[user]] for user, items in found.items()}

    def test_a_history_may_be_recommended_its_own_items(self, learned):
        rec = Recommender.load(learned, progress=False)
        assert set(rec.recommend(history=["a", "b"])["item_id"].to_pylist()) == set("cdef")
        assert set(rec.recommend(history=["a", "b"], seen=True)["item_id"].to_pylist()) == set("abcdef")
        assert rec.recommend(history=["a"], items=["b", "c"], exclude=["c"])["item_id"].to_pylist() == ["b"]


class TestWhoIsUnknown:
    def test_popular_items_are_limited_in_the_same_way(self, storage):
        whole = offered(storage, ["zoe"], EVERYTHING, unknown="popular")["zoe"]
        selection = Selection(({"a", "c", "f"},), exclude=({"zoe": {"c"}},))
        found = offered(storage, ["zoe", "yan"], selection, unknown="popular")
        assert found == {"zoe": kept(whole, {"a", "f"}), "yan": kept(whole, {"a", "c", "f"})}

    def test_a_suppressed_person_is_not_served_by_naming_items(self, storage):
        submit(storage, Request("eve"))
        with pytest.raises(Suppressed):
            offered(storage, ["eve"], Selection(seen=True))

    def test_an_item_that_only_a_suppressed_person_has_is_unknown(self, storage):
        submit(storage, Request("eve"))
        with pytest.raises(UnknownItem, match="no item 'f'"):
            offered(storage, ["ann"], Selection(only=({"f"},)))
        assert offered(storage, ["ann"], Selection(available=({"f", "d"},))) == {"ann": ["d"]}

    def test_the_forgotten_are_unknown_and_their_own_item_is_gone(self, learned, tmp_path):
        rec = Recommender.load(learned, progress=False)
        rec.save(tmp_path / "copy")
        rec = Recommender.load(tmp_path / "copy", progress=False)
        assert rec.recommend("eve", seen=True, items=["f"])["item_id"].to_pylist() == ["f"]
        rec.forget("eve")
        with pytest.raises(UnknownUser):
            rec.recommend("eve", seen=True)
        with pytest.raises(UnknownItem):
            rec.recommend("ann", items=["f"])
        with pytest.warns(ErasableWarning, match="0 of 1 id to leave out are in the catalogue"):
            assert rec.recommend("ann", exclude=["f"], seen=True).num_rows == 5
        assert rec.verify().identical


class TestWhatIsRefused:
    def test_an_unknown_item_with_what_to_do(self, storage):
        for only in ({"a", "zz"}, {"bob": {"zz"}}):
            with pytest.raises(UnknownItem) as refused:
                offered(storage, ["ann"], Selection(only=(only,)))
            assert str(refused.value) == (
                "the catalogue has no item 'zz': check the id, exactly as in the data, or give available, which passes "
                "over unknown items"
            )
            assert "or give --available FILE, which" in refused.value.of_command


class TestTheLibrary:
    @pytest.fixture
    def rec(self, table):
        return Recommender("ease", regularisation=1, progress=False).fit(table)

    def test_numbers_are_ids_too(self):
        rec = Recommender("ease", regularisation=1, progress=False).fit(
            pa.table({"user": [1, 1, 2, 2, 3], "item": [10, 11, 10, 12, 11]})
        )
        assert rec.recommend(3, items=[10])["item_id"].to_pylist() == [10]
        assert rec.recommend([3, 1], items={3: 12})["item_id"].to_pylist() == [12, 12]

    def test_a_file_is_a_stock_list(self, rec, tmp_path):
        (tmp_path / "stock.csv").write_text("item_id\nd\nnew\n")
        assert rec.recommend("ann", available=tmp_path / "stock.csv")["item_id"].to_pylist() == ["d"]
        assert "d" not in rec.recommend("ann", exclude=tmp_path / "stock.csv")["item_id"].to_pylist()

    @pytest.mark.parametrize("name", ["items", "available", "exclude"])
    def test_a_text_that_may_be_an_id_or_a_file_is_refused_with_what_to_give(self, rec, name):
        with pytest.raises(WrongUse) as refused:
            rec.recommend("ann", **{name: "stock.csv"})
        assert str(refused.value) == (
            f"{name}='stock.csv' may be an id or a file: give ids as a list, ['stock.csv'], or a file as "
            "Path('stock.csv')"
        )

    @pytest.mark.parametrize("name", ["items", "available", "exclude"])
    def test_any_list_of_ids_is_taken(self, rec, name):
        as_list = rec.recommend("ann", **{name: ["d"]})
        frame = pd.DataFrame({"item": ["d"]})
        for ids in ({"d"}, ("d",), np.array(["d"]), frame["item"], pa.array(["d"]), iter("d"), {"ann": "d"}):
            assert rec.recommend("ann", **{name: ids}) == as_list
        with pytest.raises(WrongUse, match="give the column of it that has them"):
            rec.recommend("ann", **{name: frame})

    def test_why_names_the_own_items(self, rec):
        rows = rec.recommend("ann", why=True, k=2).to_pylist()
        for row in rows:
            expected = rec.explain("ann", row["item_id"], k=3).because
            assert row["because"] == [own._asdict() for own in expected]
        assert any(row["because"] for row in rows)
        assert "because" not in rec.recommend("ann").column_names


def test_the_library_warns_where_nothing_of_a_list_is_known(tmp_path):
    table = pa.table({"user": [1, 1, 2, 2, 3], "item": ["a", "b", "a", "c", "b"]})
    recommender = Recommender(model="ease", regularisation=1).fit(table)
    (tmp_path / "sold-out").write_text("SKU\tqty\nc\t1\nz\t2\n")
    assert recommender.recommend(3, exclude=tmp_path / "sold-out")["item_id"].to_pylist() == ["a"]
    for named in ({"users": 3}, {"history": ["b"]}):
        with pytest.warns(ErasableWarning, match=r"0 of 2 ids to leave out are in the catalogue: check the ids"):
            recommender.recommend(**named, exclude=["A", "C"])
