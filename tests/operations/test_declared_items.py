"""Declared items: hidden ones are recommended to nobody, attributes filter; neither trains anything nor is lost."""

from pathlib import Path

import pyarrow as pa
import pytest

from erasable import Recommender
from erasable.chain import Config
from erasable.errors import DataRefused, ResidueFound, UnknownItem, WrongUse
from erasable.operations import DiskStorage, Inputs, forget, learn, learn_more, recommend, verify
from erasable.operations.declared_items import DeclaredItems, declare_items, items_of, read_declared
from erasable.operations.live import Live
from erasable.operations.recommend import recommend_to_all
from erasable.operations.scan import scan
from erasable.operations.selection import EVERYTHING, Selection
from erasable.proof.log import records_of
from erasable.requests import Request
from kit.cleared import Cleared

ATTRIBUTES = pa.table(
    {
        "item_id": ["a", "b", "c", "d", "new"],
        "kind": ["book", "book", "cd", "cd", "book"],
        "price": [5.0, 30.0, 12.0, None, 1.0],
        "pages": [100, 1, None, None, 7],
        "fresh": [True, False, True, None, True],
    }
)


def offered(storage, users=None, selection=EVERYTHING):
    return {one.user_id: [r.item_id for r in one] for one in recommend(storage, users, 100, selection=selection)}


def without(found, *items):
    return {user: [one for one in had if one not in items] for user, had in found.items()}


class TestHiding:
    def test_a_hidden_item_is_recommended_to_nobody_and_comes_back(self, storage, snapshot):
        before, bytes_before = offered(storage), snapshot(storage)
        declare_items(storage, ["e", "c"])
        assert offered(storage) == without(before, "c", "e") != before
        assert [
            one for part in recommend_to_all(storage, 100) for of_user in part for one in of_user if one.item_id in "ce"
        ] == []
        declare_items(storage, show=["c"])
        assert offered(storage) == without(before, "e")
        assert items_of(storage).hidden == ("e",)
        declare_items(storage, show=["e"])
        assert offered(storage) == before
        assert vars(snapshot(storage)) == vars(bytes_before)

    def test_it_is_no_popular_no_similar_and_no_scored_item_either(self, table):
        rec = Recommender("ease", regularisation=1, progress=False).fit(table)
        assert "a" in rec.similar_items("b")["similar_id"].to_pylist()
        rec.hide_items(["a", "d"])
        for found in (
            rec.recommend("zoe", unknown="popular", seen=True)["item_id"],
            rec.recommend(history=["c"], seen=True)["item_id"],
            rec.similar_items("b")["similar_id"],
        ):
            assert {*found.to_pylist()}.isdisjoint({"a", "d"})
        assert rec.score("ann", ["a", "b"])["score"].is_null().to_pylist() == [True, False]
        assert rec.recommend("ann", items=["a", "e"])["item_id"].to_pylist() == ["e"]

    def test_it_is_recorded_in_the_log(self, storage):
        declare_items(storage, ["a"])
        with storage.reading() as session:
            assert [one["what"] for one in records_of(session.documents().records())] == ["learn", "items"]

    def test_what_is_declared_already_is_not_written_again(self, storage):
        declare_items(storage, ["a", "new"], table=read_declared(ATTRIBUTES))
        mark, facts = storage.mark(), items_of(storage)
        assert declare_items(storage, ["a"], ["b"]) == facts
        assert declare_items(storage, table=read_declared(ATTRIBUTES)) == facts
        with storage.reading() as session:
            assert [one["what"] for one in records_of(session.documents().records())] == ["learn", "items"]
        assert storage.path is None or storage.mark() == mark

    def test_an_unknown_item_or_one_to_be_hidden_and_shown_is_refused(self, storage):
        for call in ({"hide": ["zz"]}, {"show": ["zz"]}):
            with pytest.raises(UnknownItem, match="no item 'zz': check the id"):
                declare_items(storage, **call)
        with pytest.raises(WrongUse, match="name it once"):
            declare_items(storage, ["a"], ["a"])
        assert items_of(storage).hidden == ()

    def test_a_server_follows_without_loading_the_model_again(self, learned, tmp_path):
        Recommender.load(learned, progress=False).save(tmp_path / "copy")
        storage = DiskStorage(tmp_path / "copy")
        live = Live(storage)
        before, whole = [one.item_id for one in live.recommend("ann", 10).ranked], live.served.scoring
        declare_items(storage, [before[0]])
        live.follow()
        assert [one.item_id for one in live.recommend("ann", 10).ranked] == before[1:]
        assert live.served.scoring is whole


class TestAttributes:
    def test_a_filter_limits_what_is_recommended(self, storage):
        whole = offered(storage)
        declare_items(storage, table=read_declared(ATTRIBUTES))
        assert offered(storage) == whole
        found = offered(storage, None, Selection(where="price < 20 or kind == 'cd'"))
        assert found == {user: [one for one in had if one in "acd"] for user, had in whole.items()}
        assert any(found.values())
        both = Selection(({"a", "b", "c"},), exclude=({"c"},), seen=True, where="fresh == true and pages > 7")
        assert offered(storage, ["ann"], both) == {"ann": ["a"]}

    def test_what_is_declared_is_told(self, storage):
        declare_items(storage, table=read_declared(ATTRIBUTES))
        declare_items(storage, ["f", "new"])
        found = items_of(storage)
        assert (found.items, found.declared, found.unknown) == (6, 5, 1)
        assert (found.attributes, found.hidden) == (("kind", "price", "pages", "fresh"), ("f", "new"))

    def test_new_attributes_replace_those_before_and_hidden_items_stay(self, storage):
        declare_items(storage, table=read_declared(ATTRIBUTES))
        declare_items(storage, ["a", "f"])
        declare_items(storage, table=read_declared(pa.table({"sku": ["b"], "colour": ["red"]}), "sku"))
        found = items_of(storage)
        assert (found.attributes, found.declared, found.hidden) == (("colour",), 1, ("a", "f"))
        assert offered(storage, ["cat", "dan"], Selection(where="colour == 'red'")) == {"cat": [], "dan": ["b"]}

    def test_a_filter_without_attributes_or_without_sense_is_refused(self, storage):
        with pytest.raises(WrongUse) as refused:
            offered(storage, ["ann"], Selection(where="price < 3"))
        assert "give them with set_items(TABLE)" in str(refused.value)
        assert "erasable items DIR --set FILE" in refused.value.of_command
        declare_items(storage, table=read_declared(ATTRIBUTES))
        with pytest.raises(WrongUse, match="no column 'colour'"):
            offered(storage, ["ann"], Selection(where="colour == 'red'"))

    def test_another_thread_that_gives_many_filters_meanwhile_is_no_harm(self):
        declared = DeclaredItems().with_attributes(read_declared(ATTRIBUTES))
        declared._found = Cleared()
        assert declared.where("kind == 'cd'") == {"c", "d"}

    def test_a_table_without_attributes_or_with_our_name_is_refused(self):
        with pytest.raises(DataRefused, match="further columns"):
            read_declared(ATTRIBUTES.select(["item_id"]))
        with pytest.raises(DataRefused, match="rename it"):
            read_declared(ATTRIBUTES.append_column("hidden_item", pa.array([1] * 5)))


class TestTheirLife:
    """Declared items outlive learning more, forgetting, saving and verifying."""

    @pytest.fixture
    def rec(self, table, tmp_path):
        made = Recommender("ease", regularisation=1, progress=False).fit(table)
        made.set_items(ATTRIBUTES).hide_items(["b", "f"])
        made.save(tmp_path / "shop")
        return Recommender.load(tmp_path / "shop", progress=False)

    def is_kept(self, rec):
        assert "b" not in rec.recommend(seen=True)["item_id"].to_pylist()
        assert {*rec.recommend(seen=True, where="kind == 'cd'")["item_id"].to_pylist()} == {"c", "d"}
        return True

    def test_a_copy_has_them(self, rec):
        assert self.is_kept(rec)

    def test_forgetting_and_learning_more_keep_them_and_verify_agrees(self, rec):
        rec.forget("eve")  # whose own item f is hidden
        assert self.is_kept(rec)
        assert items_of(rec._storage).hidden == ("b", "f")
        assert rec.verify().identical
        rec.learn_more(pa.table({"user_id": ["gil", "gil"], "item_id": ["new", "f"], "rating": [5, 5]}))
        assert self.is_kept(rec)
        assert "new" in rec.recommend("ann", seen=True, where="price < 2")["item_id"].to_pylist()
        assert "f" not in rec.recommend(seen=True)["item_id"].to_pylist()
        assert rec.verify().identical

    def test_the_bytes_learned_are_those_without_any(self, rec, table, snapshot):
        plain = Recommender("ease", regularisation=1, progress=False).fit(table)
        assert snapshot(rec._storage).arrays == snapshot(plain._storage).arrays

    def test_a_changed_byte_is_noticed(self, rec, tmp_path):
        (file,) = (tmp_path / "shop").glob("declared-items-*.parquet")
        file.write_bytes(file.read_bytes()[:-1] + b"x")
        assert verify(DiskStorage(tmp_path / "shop")).identical is False

    def test_without_any_left_there_is_no_file(self, table, tmp_path):
        Recommender("ease", regularisation=1, progress=False).fit(table).save(tmp_path / "other")
        other = Recommender.load(tmp_path / "other", progress=False)
        assert not [*(tmp_path / "other").glob("declared-items*")]
        other.hide_items("a")
        assert len([*(tmp_path / "other").glob("declared-items*")]) == 1
        other.unhide_items("a")
        assert not [*(tmp_path / "other").glob("declared-items*")]


class TestWhoIsErased:
    """People and items with the same numbers as ids, prices and counts: none of these is taken for a person."""

    def test_is_certified_beside_attributes_that_look_like_ids(self, tmp_path):
        rows = [(user, item) for user in range(1, 9) for item in range(1, 9) if (user * item) % 3 != 1]
        users, items = zip(*rows, strict=True)
        rec = Recommender("ease", regularisation=1, progress=False).fit(pa.table({"user": users, "item": items}))
        names = [str(number) for number in range(1, 9)]
        rec.set_items(
            pa.table({"item": range(1, 9), "price": range(1, 9), "stars": [1.0] * 8, "new": [True] * 8, "code": names})
        ).hide_items([2, 5])
        rec.save(tmp_path / "shop")
        rec = Recommender.load(tmp_path / "shop", progress=False)
        for user in (2, 5, 1):
            assert len(rec.forget(user).certificates) == 1
        assert rec.verify().identical

    @pytest.mark.parametrize("seller", ["someone-who-sells@example.org", "u03", "x|u03", 12345603])
    def test_an_id_in_an_attribute_is_found(self, table, tmp_path, seller):
        Recommender("ease", regularisation=1, progress=False).fit(table).save(tmp_path / "shop")
        storage = DiskStorage(tmp_path / "shop")
        declare_items(storage, table=read_declared(pa.table({"item_id": ["a", "b"], "seller": [seller, None]})))
        found = scan(tmp_path / "shop", str(seller).removeprefix("x|"))
        assert [residue.file.split("-")[0] for residue in found.residues] == ["declared"]
        assert scan(tmp_path / "shop", "somebody else").clean

    @pytest.mark.parametrize(("who", "other"), [("u03", "u04"), ("12345603", "12345604")])
    @pytest.mark.parametrize("features", [None, "seller"])
    def test_nothing_is_certified_until_the_attributes_name_nobody(self, table, tmp_path, who, other, features):
        def sold_by(seller):
            (tmp_path / "items.csv").write_text(f"item_id,seller,size\na,{seller},12\nb,{seller},3\n")
            return read_declared(tmp_path / "items.csv")

        more = pa.table({"user_id": [who, who, "12"], "item_id": ["a", "c", "b"], "rating": [4, 2, 3]})
        storage, config = DiskStorage(tmp_path / "shop"), Config(model="ease", regularisation=1.0, features=features)
        learn(pa.concat_tables([table, more]), storage.path, config, Inputs(items=sold_by(who)))
        assert len(forget(storage, [Request("12")]).certificates) == 1  # 12 is a size
        with pytest.raises(ResidueFound, match="declared-items") as refused:
            forget(storage, [Request(who)])
        remedy = "learn --more --into {} --items FILE" if features else "items {} --set FILE"
        assert f"erasable {remedy.format(storage.path)}" in refused.value.of_command
        with pytest.raises(ResidueFound):
            forget(storage, [])
        if features:
            learn_more(storage, None, Inputs(items=sold_by(other)))
        else:
            declare_items(storage, table=sold_by(other))
        (certificate,) = forget(storage, []).certificates
        assert "In tables of items that were declared" in Path(certificate).read_text(encoding="utf-8")
        assert verify(storage).identical
