"""The library's front door: any table in, recommendations out, and forgetting in between."""

import logging
import pickle
import shutil
import subprocess
import sys
import threading
import warnings
from pathlib import Path

import numpy as np
import pandas
import polars
import pyarrow as pa
import pyarrow.csv as pacsv
import pytest
from scipy import sparse

from erasable import ALS, NMF, Claim, Recommender
from erasable.data import ColumnNames
from erasable.errors import (
    DataRefused,
    ErasableWarning,
    NotReproducible,
    Refused,
    UnknownInteraction,
    UnknownItem,
    UnknownUser,
    WorkspaceError,
    WrongUse,
)
from erasable.operations import Inputs
from erasable.operations.work import available_cores
from erasable.requests import Request
from erasable.workspace import Workspace
from kit import elsewhere

SETTINGS = {"model": "nmf", "groups": 3, "epochs": 3, "batch": 16}
USERS, ITEMS = [1, 1, 2, 2, 3, 3, 10, 10], [5, 7, 5, 8, 7, 8, 5, 9]
RATINGS = [1.0, 2.0, 3.0, 4.0, 5.0, 1.0, 2.0, 3.0]

SALES = {"user": "customer_email", "item": "sku", "time": "purchased_at"}


def numbers() -> pa.Table:
    return pa.table({"user_id": USERS, "item_id": ITEMS, "rating": RATINGS})


def stamp_of(folder):
    with Workspace.reading(folder) as workspace:
        return workspace.stamp


def checkpoints(folder):
    return {path.name: path.read_bytes() for path in folder.rglob("*.safetensors")}


@pytest.fixture
def recommender() -> Recommender:
    return Recommender(**SETTINGS).fit(numbers())


class TestSettings:
    @pytest.mark.parametrize(("jobs", "threads"), [(3, 3), (-1, available_cores()), (-1000, 1), (None, None)])
    def test_jobs_are_threads(self, jobs, threads):
        assert Recommender(n_jobs=jobs).get_params()["threads"] == threads

    def test_there_are_no_zero_jobs(self):
        with pytest.raises(WrongUse, match="0 threads make no sense: give 1 or more"):
            Recommender(n_jobs=0)

    def test_both_can_be_changed(self):
        assert Recommender(n_jobs=3).set_params(threads=2).get_params()["threads"] == 2
        assert Recommender(threads=3).set_params(n_jobs=2).get_params()["threads"] == 2
        assert Recommender("als", seed=3).set_params(random_state=2).get_params()["seed"] == 2

    @pytest.mark.parametrize(
        "twice", [{"threads": 1, "n_jobs": 1}, {"seed": 1, "random_state": 2}, {"model": ALS(factors=8), "factors": 9}]
    )
    def test_what_is_given_twice_is_refused(self, twice):
        with pytest.raises(WrongUse, match=r"is given twice, .*: leave one out"):
            Recommender(**twice)


class TestFit:
    def sources(self, tmp_path):
        pacsv.write_csv(numbers(), tmp_path / "ratings.csv")
        matrix = sparse.coo_array((RATINGS, (USERS, ITEMS)), shape=(11, 10))
        return {
            "arrow": numbers(),
            "pandas": numbers().to_pandas(),
            "pandas with text": pandas.DataFrame({"user": map(str, USERS), "item": map(str, ITEMS), "rating": RATINGS}),
            "polars": polars.DataFrame({"uid": USERS, "iid": ITEMS, "rating": RATINGS}),
            "path": tmp_path / "ratings.csv",
            "text of a path": str(tmp_path / "ratings.csv"),
            "csr": sparse.csr_array(matrix),
            "csr matrix": sparse.csr_matrix(matrix),
        }

    @pytest.mark.parametrize(
        "kind", ["pandas", "pandas with text", "polars", "path", "text of a path", "csr", "csr matrix"]
    )
    def test_any_table_of_the_same_gives_the_same_bytes(self, tmp_path, kind):
        sources = self.sources(tmp_path)
        for name in ("arrow", kind):
            Recommender(**SETTINGS).fit(sources[name]).save(tmp_path / name.replace(" ", "-"))
        assert len(checkpoints(tmp_path / "arrow")) == 3
        assert checkpoints(tmp_path / kind.replace(" ", "-")) == checkpoints(tmp_path / "arrow")

    def test_fitting_twice_equals_fitting_once(self, recommender, tmp_path):
        other = Recommender(**SETTINGS).fit(pa.table({"user_id": ["x", "y", "z"], "item_id": ["a", "b", "a"]}))
        other.forget(["x"])
        other.fit(numbers()).save(tmp_path / "twice")
        recommender.save(tmp_path / "once")
        assert checkpoints(tmp_path / "twice") == checkpoints(tmp_path / "once")
        own = {"public_key": None, "do_not_learn": None}
        assert {**other.status(), **own} == {**recommender.status(), **own}
        assert other.status()["public_key"] != recommender.status()["public_key"]

    def test_the_number_of_threads_changes_no_byte(self, tmp_path):
        for threads in (1, 2):
            Recommender(threads=threads, **SETTINGS).fit(numbers()).save(tmp_path / str(threads))
        assert checkpoints(tmp_path / "1") == checkpoints(tmp_path / "2")

    def test_it_says_what_was_learned(self, recommender):
        assert (recommender.learned.users, recommender.learned.items, recommender.learned.groups) == (4, 4, 3)

    def test_groups_may_come_from_elsewhere(self, recommender, tmp_path):
        recommender.save(tmp_path / "first")
        inputs = Inputs(groups_from=tmp_path / "first")
        Recommender(model="nmf", epochs=3, batch=16).fit(numbers(), inputs).save(tmp_path / "second")
        assert checkpoints(tmp_path / "first") == checkpoints(tmp_path / "second")

    def test_a_fit_that_fails_leaves_what_was_learned_before(self, recommender):
        with pytest.raises(DataRefused, match="one user only"):
            recommender.fit(pa.table({"user_id": ["x"], "item_id": ["a"]}))
        assert recommender.status()["users"] == 4


class TestRecommend:
    def test_a_table_of_user_item_score_rank_and_popular_comes_back(self, recommender):
        table = recommender.recommend([10, 1], k=2)
        assert isinstance(table, pa.Table)
        assert [(field.name, str(field.type)) for field in table.schema] == [
            ("user_id", "int64"),
            ("item_id", "int64"),
            ("score", "double"),
            ("rank", "int64"),
            ("popular", "bool"),
        ]
        assert table["user_id"].to_pylist() == [10, 10, 1, 1]
        assert table["rank"].to_pylist() == [1, 2, 1, 2]
        assert set(table["item_id"].to_pylist()[:2]) == {7, 8}
        assert set(table["item_id"].to_pylist()[2:]) == {8, 9}

    def test_whole_numbers_of_any_kind_and_texts_name_the_same_user(self, recommender):
        expected = recommender.recommend(["10"])
        many = ([10], (10,), np.array([10]), pandas.Series([10]), iter([10]), {10}, polars.Series([10]), pa.array([10]))
        for users in (10, "10", np.int64(10), np.array(10), *many):
            assert recommender.recommend(users) == expected

    def test_nobody_gets_an_empty_table_and_everyone_is_meant_if_nobody_is_named(self, recommender):
        assert recommender.recommend([]).num_rows == 0
        assert set(recommender.recommend(k=1)["user_id"].to_pylist()) == set(USERS)

    def test_someone_without_an_id_gets_items_by_their_history(self, recommender):
        found = recommender.recommend(history=[5, "7"], k=2)
        assert found.column("user_id").unique().to_pylist() == [""]
        assert set(found.column("item_id").to_pylist()) == {8, 9}
        assert found == recommender.recommend(history={5: None, 7: 5.0}, k=2)
        assert found != recommender.recommend(history={5: 1.0, 7: 1.0}, k=2)

    def test_users_and_a_history_together_are_refused(self, recommender):
        with pytest.raises(WrongUse, match="not both"):
            recommender.recommend([1], history=[5])

    def test_someone_unknown_is_refused_left_out_or_gets_what_is_popular(self, recommender):
        known = recommender.recommend(10, k=1).to_pylist()
        popular = [{"user_id": 99, "item_id": 5, "score": 3.0, "rank": 1, "popular": True}]
        with pytest.raises(UnknownUser, match="'99': check the id, or give unknown='skip' or 'popular'"):
            recommender.recommend([10, 99])
        assert recommender.recommend([99, 10], k=1, unknown="skip").to_pylist() == known
        assert recommender.recommend([99, 10], k=1, unknown="popular").to_pylist() == popular + known
        with pytest.raises(WrongUse, match="give one of raise, skip, popular"):
            recommender.recommend([99], unknown="ignore")

    def test_the_old_word_for_popular_items_is_understood_for_now(self, recommender):
        with pytest.warns(DeprecationWarning, match="unknown='popular'") as caught:
            old = recommender.recommend([99], popular_fallback=True)
        assert caught[0].filename == __file__
        assert old == recommender.recommend([99], unknown="popular")
        with pytest.warns(DeprecationWarning, match="unknown='raise'"), pytest.raises(UnknownUser):
            recommender.recommend([99], popular_fallback=False)

    @pytest.mark.parametrize("users", [10.0, None, True, b"10", [None], [1.5]])
    def test_what_is_no_id_is_refused_with_the_remedy(self, recommender, users):
        for method in (recommender.forget, recommender.plan):
            with pytest.raises(WrongUse, match="is no id: give text or a whole number"):
                method(users)

    def test_a_table_is_no_list_of_ids(self, recommender):
        for table in (numbers(), numbers().to_pandas(), polars.from_arrow(numbers())):
            with pytest.raises(WrongUse, match=r"give the column of it that has them"):
                recommender.recommend(table)


class TestTypesOfIds:
    """Ids come back as they went in."""

    @pytest.mark.parametrize(
        ("users", "items", "kinds"),
        [
            ([1, 2, 2], [7, 7, 8], (int, int)),
            (["1", "2", "2"], [7, 7, 8], (str, int)),
            ([1, 2, 2], ["a", "a", "b"], (int, str)),
            (["007", "2", "2"], ["a", "a", "b"], (str, str)),
            (np.array([1, 2, 2], np.uint64) + np.uint64(2**63), [7, 7, 8], (int, int)),
        ],
    )
    def test_in_answers_and_what_is_held_before_and_after_saving(self, tmp_path, users, items, kinds):
        recommender = Recommender(model="ease", regularisation=1).fit(pa.table({"user": users, "item": items}))
        recommender.save(tmp_path / "shop")
        for one in (recommender, Recommender.load(tmp_path / "shop")):
            row = one.recommend(users[0], k=1).to_pylist()[0]
            assert (row["user_id"], row["item_id"]) == (users[0], items[2])
            held = one.show(users[0])
            alike = one.similar_items(items[0], k=1).to_pylist()[0]
            assert (alike["item_id"], alike["similar_id"]) == (items[0], items[2])
            assert tuple(map(type, (held.user_id, held.interactions[0].item_id))) == kinds

    def test_a_matrix_has_numbers_and_a_file_of_text_has_text(self, tmp_path):
        matrix = sparse.csr_array(sparse.coo_array((RATINGS, (USERS, ITEMS)), shape=(11, 10)))
        assert Recommender(model="ease").fit(matrix).show(10).user_id == 10
        pacsv.write_csv(numbers(), tmp_path / "ratings.csv")
        assert Recommender(model="ease").fit(tmp_path / "ratings.csv").show(10).user_id == "10"

    def test_whoever_comes_later_with_text_makes_text_of_all(self):
        recommender = Recommender(model="ease").fit(numbers())
        recommender.learn_more(pa.table({"user_id": ["zoe"], "item_id": [5], "rating": [1.0]}))
        assert recommender.show(10).user_id == "10"
        assert recommender.show(10).interactions[0].item_id == 5
        recommender.learn_more(pa.table({"user_id": [77], "item_id": [5], "rating": [1.0]}))
        assert recommender.show(77).user_id == "77"

    def test_an_unknown_id_that_is_no_number_stays_as_it_was_given(self, recommender):
        found = recommender.recommend(["010", 10], k=1, unknown="popular")
        assert found["user_id"].to_pylist() == ["010", "10"]

    def test_a_workspace_of_the_command_gives_text(self, learned):
        assert Recommender.load(learned).show("ann").user_id == "ann"


class TestColumns:
    """Columns are named where the table is given, and read again later."""

    def sales(self) -> pandas.DataFrame:
        emails = [f"{name}@shop.example" for name in ("ann", "ann", "bob", "bob", "cat")]
        days = pandas.to_datetime(["2026-01-01", "2026-01-02", "2026-01-03", "2026-01-04", "2026-01-05"])
        return pandas.DataFrame({"customer_email": emails, "sku": [7, 8, 7, 9, 8], "purchased_at": days})

    def test_fit_learn_more_and_evaluate_take_names_and_remember_them(self):
        recommender = Recommender(model="ease", regularisation=1).fit(self.sales(), **SALES)
        assert recommender.learned.columns == SALES
        held = recommender.show("ann@shop.example")
        assert [(one.item_id, one.time) for one in held.interactions] == [
            (7, "2026-01-01T00:00:00"),
            (8, "2026-01-02T00:00:00"),
        ]
        more = self.sales().assign(customer_email="dan@shop.example")
        assert recommender.learn_more(more.iloc[:1]).users_added == 1
        test = pandas.DataFrame({"customer_email": ["cat@shop.example"], "sku": [7]})
        assert recommender.evaluate(test).users == 1
        assert recommender.evaluate(test.rename(columns={"sku": "what"}), item="what").values["hr@10"] == 1.0
        other = more.iloc[:2].rename(columns={"customer_email": "who", "sku": "what"})
        assert recommender.learn_more(other, user="who", item="what").interactions_added == 1

    def test_numbers_name_columns_where_there_are_no_names(self, tmp_path):
        (tmp_path / "plain.csv").write_text("2026,a,7\n2026,a,8\n2026,b,7\n")
        recommender = Recommender(model="ease").fit(tmp_path / "plain.csv", user=2, item="3")
        assert (recommender.learned.users, recommender.learned.items) == (2, 2)

    def test_keywords_go_before_inputs(self, tmp_path):
        (tmp_path / "items.txt").write_text("7\n8\n9\n10\n")
        inputs = Inputs(ColumnNames(user="nobody", item="sku"))
        fitted = Recommender(model="ease").fit(
            self.sales(), inputs, user="customer_email", catalogue=str(tmp_path / "items.txt")
        )
        assert fitted.learned.items == 4

    def test_bad_rows_may_be_left_out(self):
        table = pa.table({"user": [1, None, 2], "item": [7, 7, 8]})
        assert Recommender(model="ease").fit(table, on_bad_row="skip").learned.bad_rows == 1
        with pytest.raises(WrongUse, match="give one of refuse, skip"):
            Recommender(model="ease").fit(table, on_bad_row="ignore")


class TestForget:
    def test_a_person_is_gone_and_the_rest_verifies(self, recommender):
        planned = recommender.plan([10])
        receipt = recommender.forget([10])
        assert (receipt.stages_rerun, receipt.stages_total) == (planned.stages_rerun, 3)
        assert len(receipt.certificates) == 1
        assert recommender.verify().identical is True
        with pytest.raises(UnknownUser):
            recommender.show(10)

    def test_some_items_of_one_person(self, recommender):
        recommender.forget([10], items=[5])
        assert [one.item_id for one in recommender.show(10).interactions] == [9]
        with pytest.raises(UnknownInteraction):
            recommender.forget([10], items=[5])

    def test_unknown_people_may_be_left_out(self, recommender):
        receipt = recommender.forget([10, 99], ignore_unknown=True)
        assert (len(receipt.certificates), receipt.left_out) == (1, 1)

    def test_everything_may_be_trained_again(self, recommender):
        assert recommender.forget([10], rerun=True).stages_rerun == 3
        assert recommender.verify().identical is True

    def test_items_of_several_people_are_refused(self, recommender):
        with pytest.raises(WrongUse, match="items need exactly one user"):
            recommender.forget([10, 1], items=[5])

    def test_one_person_and_one_item_need_no_list(self, recommender):
        assert recommender.plan(10, items=5).people == 1
        assert len(recommender.forget(10, items=5).receipts) == 1
        assert [one.item_id for one in recommender.show(10).interactions] == [9]
        assert len(recommender.forget(10).receipts) == 1
        with pytest.raises(UnknownUser):
            recommender.show(10)

    def test_an_unknown_person_among_known_ones_changes_nothing(self, recommender):
        before = recommender.status()
        with pytest.raises(UnknownUser):
            recommender.forget([10, 99])
        assert recommender.status() == before


class TestSaveAndLoad:
    @pytest.mark.parametrize("model", ["nmf", NMF, NMF(epochs=3)])
    def test_the_model_may_be_named_or_handed_over(self, recommender, tmp_path, model):
        recommender.save(tmp_path / "shop")
        assert Recommender.load(tmp_path / "shop", model=model).recommend([1]) == recommender.recommend([1])

    @pytest.mark.parametrize(
        ("model", "reason"),
        [
            ("als", "has the model 'nmf', not 'als'"),
            (ALS, "has the model 'nmf', not 'als'"),
            ("nmff", "there is no model 'nmff'"),
            (3, "is not a model"),
            (["nmf"], "is not a model"),
            (dict, "is not a model"),
        ],
    )
    def test_anything_else_is_refused(self, recommender, tmp_path, model, reason):
        recommender.save(tmp_path / "shop")
        with pytest.raises(WrongUse, match=reason):
            Recommender.load(tmp_path / "shop", model=model)

    def test_what_is_loaded_recommends_the_same(self, recommender, tmp_path):
        expected = recommender.recommend([1, 2, 3])
        recommender.save(tmp_path / "shop")
        assert recommender.recommend([1, 2, 3]) == expected
        for folder in (tmp_path / "shop", str(tmp_path / "shop")):
            assert Recommender.load(folder).recommend([1, 2, 3]) == expected

    def test_forgetting_after_loading_changes_the_workspace(self, recommender, tmp_path):
        recommender.save(tmp_path / "shop")
        receipt = Recommender.load(tmp_path / "shop", threads=1).forget([10])
        assert [str(path) for path in (tmp_path / "shop" / "certificates").glob("*.json")] == list(receipt.certificates)
        assert Recommender.load(tmp_path / "shop").status()["users"] == 3
        assert Recommender.load(tmp_path / "shop").verify().identical is True

    def test_forgetting_before_saving_keeps_the_certificates(self, recommender, tmp_path):
        receipt = recommender.forget([10, 1])
        recommender.save(tmp_path / "shop")
        loaded = Recommender.load(tmp_path / "shop")
        assert loaded.status()["erasures"] == 2
        assert sorted(path.name for path in (tmp_path / "shop" / "certificates").glob("*.json")) == sorted(
            receipt.certificates
        )
        assert loaded.verify().identical is True

    def test_forgetting_before_and_after_saving_is_the_same(self, tmp_path):
        for name in ("before", "after"):
            recommender = Recommender(**SETTINGS).fit(numbers())
            if name == "before":
                recommender.forget([2])
            recommender.save(tmp_path / name)
            if name == "after":
                Recommender.load(tmp_path / name).forget([2])
        assert checkpoints(tmp_path / "before") == checkpoints(tmp_path / "after")

    def test_saving_makes_a_copy_and_the_original_stays_where_it_is(self, recommender, tmp_path):
        recommender.save(tmp_path / "one")
        recommender.save(tmp_path / "two")
        loaded = Recommender.load(tmp_path / "one")
        loaded.save(tmp_path / "three")
        with pytest.warns(ErasableWarning, match="three keeps whom you forget here: load it and forget there too"):
            loaded.forget(2)
        users = [Recommender.load(tmp_path / name).status()["users"] for name in ("one", "two", "three")]
        assert users == [3, 4, 4]
        assert recommender.status()["users"] == 4

    def test_forgetting_warns_of_each_copy_that_is_still_there_before_anything_is_done(self, recommender, tmp_path):
        for name in ("kept", "gone"):
            recommender.save(tmp_path / name)
        shutil.rmtree(tmp_path / "gone")
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            with pytest.raises(ErasableWarning, match="kept keeps whom you forget here"):
                recommender.forget(10)
        assert recommender.status()["users"] == 4
        with pytest.warns(ErasableWarning) as caught:
            recommender.forget(10)
        assert [one.filename for one in caught] == [__file__]
        recommender.fit(numbers()).forget(10)  # learned anew: there is no copy of this

    def test_nobody_is_warned_of_copies_where_nobody_is_forgotten(self, recommender, tmp_path):
        recommender.save(tmp_path / "copy")
        for unknown in ({"users": 999}, {"users": [10, 999]}, {"users": 10, "items": "nothing"}):
            with warnings.catch_warnings():
                warnings.simplefilter("error")
                with pytest.raises(Refused):
                    recommender.forget(**unknown)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            recommender.forget(999, ignore_unknown=True)
        with pytest.warns(ErasableWarning, match="keeps whom you forget here"):
            recommender.forget([10, 999], ignore_unknown=True)

    def test_a_workspace_of_the_command_is_loaded_and_copied(self, learned, tmp_path):
        loaded = Recommender.load(learned)
        loaded.save(tmp_path / "copy")
        assert checkpoints(tmp_path / "copy") == checkpoints(learned)

    def test_a_copy_says_where_it_was_learned_and_not_where_it_was_copied(self, recommender, tmp_path):
        recommender.save(tmp_path / "shop")
        elsewhere.moved(tmp_path / "shop", processor="abacus")
        Recommender.load(tmp_path / "shop").save(tmp_path / "copy")
        copy = Recommender.load(tmp_path / "copy")
        assert "was abacus" in copy.verify().reason
        with pytest.raises(NotReproducible, match=r"was abacus.* with upgrade\(\)"):
            copy.forget([2])
        assert copy.upgrade().adopted > 0
        assert copy.verify().identical is True

    def test_a_copy_has_documents_that_check_and_goes_its_own_way_from_then_on(self, recommender, tmp_path):
        recommender.save(tmp_path / "one")
        one = Recommender.load(tmp_path / "one")
        (before,) = one.forget(10).certificates
        one.save(tmp_path / "two")
        two = Recommender.load(tmp_path / "two")
        assert two.verify(Claim(tmp_path / "two" / "certificates" / Path(before).name)).identical
        with pytest.warns(ErasableWarning, match="keeps whom you forget here"):
            (after,) = one.forget(2).certificates
        assert one.verify(Claim(Path(after))).identical
        assert two.verify(Claim(Path(after))).identical is False
        two.forget(2)
        foreign = two.verify(Claim(Path(after)))
        assert foreign.identical is False
        assert "the workspace does not have this certificate" in foreign.reason
        salts = [stamp_of(tmp_path / name).salt for name in ("one", "two")]
        assert salts[0] != salts[1]
        assert two.verify(Claim(Path(before))).identical

    def test_a_folder_in_use_is_refused(self, recommender, tmp_path):
        recommender.save(tmp_path / "shop")
        with pytest.raises(WorkspaceError, match="holds a workspace already"):
            recommender.save(tmp_path / "shop")
        with pytest.raises(WorkspaceError, match="there is no folder"):
            Recommender.load(tmp_path / "nowhere")


def test_groups_are_shown_in_their_order():
    found = Recommender(**SETTINGS).fit(numbers()).groups()
    assert [group.position for group in found] == [1, 2, 3]
    assert sum(group.users for group in found) == 4


class TestWrongUse:
    @pytest.mark.parametrize(
        "settings", [{"groups": 0}, {"colour": "red"}, {"model": "svd"}, {"holdout": 1.0}, {"rating_scale": (5, 1)}]
    )
    def test_settings_that_make_no_sense_are_refused_at_once(self, settings):
        with pytest.raises(WrongUse):
            Recommender(**settings)

    def test_no_threads_are_refused(self):
        with pytest.raises(WrongUse, match="threads"):
            Recommender(threads=0)

    def test_nothing_can_be_asked_before_fit(self):
        recommender = Recommender()
        for ask in (recommender.verify, recommender.status, recommender.evaluate, lambda: recommender.save("shop")):
            with pytest.raises(WrongUse, match="nothing was learned yet: call fit first"):
                ask()

    def test_a_list_is_no_table(self):
        with pytest.raises(WrongUse, match="can't read interactions from a list"):
            Recommender().fit([(1, 2)])


@pytest.mark.parametrize(
    "ask", [Recommender.show, lambda rec, user: rec.plan([user]), lambda rec, user: rec.forget([user])]
)
def test_near_ids_are_told_where_nothing_is_held_under_an_id(ask):
    recommender = Recommender(model="als", factors=2).fit(
        pa.table({"user_id": ["Zoë", "Zoë", "bob", "bob"], "item_id": ["a", "b", "a", "c"]})
    )
    with pytest.raises(UnknownUser, match="nothing under this id; ids that differ only in Unicode form are held: 1"):
        ask(recommender, "Zoe\u0308")
    with pytest.raises(UnknownUser, match="nothing is held about the user 'zed'"):
        ask(recommender, "zed")


class TestSimilarItems:
    TABLE = pa.table({"user": [1, 1, 2, 2, 3, 3, 4, 4], "item": [10, 11, 10, 11, 20, 21, 20, 21]})

    @pytest.mark.parametrize(
        "settings",
        [
            {"model": "als", "factors": 4, "regularisation": 0.1},
            *({"model": "ease", "neighbours": neighbours, "regularisation": 1} for neighbours in (1, 3, "all")),
        ],
    )
    def test_items_that_the_same_people_have_are_alike(self, settings):
        recommender = Recommender(**settings).fit(self.TABLE)
        found = recommender.similar_items([10, 21], k=1).to_pylist()
        assert [(row["item_id"], row["similar_id"], row["rank"]) for row in found] == [(10, 11, 1), (21, 20, 1)]
        assert all(row["score"] > 0 for row in found)
        for row in recommender.similar_items(10).to_pylist():
            assert row["similar_id"] != 10
            assert row["score"] > 0

    def test_unknown_items_and_no_items_are_refused(self):
        recommender = Recommender(model="ease").fit(self.TABLE)
        with pytest.raises(UnknownItem, match="no item '99': check the id"):
            recommender.similar_items(99)
        with pytest.raises(WrongUse, match="give k of 1 or more"):
            recommender.similar_items(10, k=0)

    def test_an_item_that_nobody_has_is_like_no_other(self, tmp_path):
        (tmp_path / "items.txt").write_text("10\n11\n20\n21\n30\n")
        for model in ("als", "ease"):
            recommender = Recommender(model=model, regularisation=0.1).fit(self.TABLE, catalogue=tmp_path / "items.txt")
            assert recommender.similar_items(30).num_rows == 0
            assert 30 not in recommender.similar_items(10)["similar_id"].to_pylist()


class TestAsAnEstimator:
    """What scikit-learn and notebooks ask of an estimator."""

    def test_what_it_was_made_with_makes_another_like_it(self):
        given = {"model": "als", "factors": 8, "rating_scale": (1, 5), "threads": 1}
        first = Recommender(**given)
        params = first.get_params()
        assert given.items() <= params.items()
        again = Recommender(**params).get_params(deep=False)
        assert all(again[name] is params[name] for name in params)  # what scikit-learn's clone checks
        params["factors"] = 9
        assert first.get_params()["factors"] == 8

    def test_settings_are_changed_for_the_next_fit_only(self, tmp_path):
        recommender = Recommender(**SETTINGS).fit(numbers())
        assert recommender.set_params(epochs=1, threads=1) is recommender
        assert recommender.verify().identical is True
        recommender.fit(numbers()).save(tmp_path / "changed")
        Recommender(**{**SETTINGS, "epochs": 1}).fit(numbers()).save(tmp_path / "made so")
        assert checkpoints(tmp_path / "changed") == checkpoints(tmp_path / "made so")

    def test_a_wrong_setting_changes_nothing(self):
        recommender = Recommender(model="als")
        with pytest.raises(WrongUse):
            recommender.set_params(colour="red")
        assert recommender.get_params() == Recommender(model="als").get_params()

    def test_what_is_loaded_can_be_made_again(self, recommender, tmp_path):
        recommender.save(tmp_path / "shop")
        loaded = Recommender.load(tmp_path / "shop", progress=False)
        Recommender(**loaded.get_params()).fit(numbers()).save(tmp_path / "again")
        assert checkpoints(tmp_path / "again") == checkpoints(tmp_path / "shop")

    @pytest.mark.parametrize(
        ("settings", "shown"),
        [
            ({"model": "popular"}, "Recommender(model='popular', seed=3)"),
            (
                {"factors": 4, "regularization": 2},
                "Recommender(model='als', factors=4, regularisation=2.0, epochs=1, seed=3)",
            ),
            (
                {"model": "nmf", "strategy": "sisa", "groups": 2, "epochs": 2},
                "Recommender(model='nmf', strategy='sisa', groups=2, epochs=2, seed=3)",
            ),
        ],
        ids=["another model", "other settings", "another strategy"],
    )
    def test_what_was_learned_again_shows_what_it_is_and_makes_another_like_it(self, settings, shown, tmp_path):
        recommender = Recommender("als", factors=8, epochs=1, seed=3, threads=1, progress=False).fit(numbers())
        recommender.learn_again(**settings)
        params = recommender.get_params()
        assert {"model": recommender.status()["model"], "seed": 3, "threads": 1}.items() <= params.items()
        assert repr(Recommender(**{**params, "threads": None, "progress": True})) == shown
        other = Recommender(**params).fit(numbers())
        recommender.set_params(threads=2).fit(numbers()).save(tmp_path / "again")
        other.save(tmp_path / "other")
        assert recommender.status()["model"] == params["model"]
        assert checkpoints(tmp_path / "again") == checkpoints(tmp_path / "other")

    def test_whether_it_has_learned(self, recommender):
        assert recommender.__sklearn_is_fitted__() is True
        assert Recommender().__sklearn_is_fitted__() is False

    def test_it_is_shown_as_it_is_written(self, recommender, tmp_path):
        assert repr(Recommender(model="als", threads=None)) == "Recommender(model='als')"
        assert repr(recommender) == "Recommender(model='nmf', groups=3, epochs=3, batch=16)"
        recommender.save(tmp_path / "shop")
        assert repr(Recommender.load(tmp_path / "shop")) == f"Recommender.load({str(tmp_path / 'shop')!r})"

    def test_a_notebook_shows_a_small_table(self, recommender, tmp_path):
        assert "<td>" not in Recommender(model="als")._repr_html_()
        assert "<tr><th>users</th><td>4</td></tr>" in recommender._repr_html_()
        recommender.save(tmp_path / "a <b> shop")
        loaded = Recommender.load(tmp_path / "a <b> shop")
        assert "a &lt;b&gt; shop" in loaded._repr_html_()
        shutil.rmtree(tmp_path / "a <b> shop")
        assert "there is no folder" in loaded._repr_html_()
        assert "<b>" not in loaded._repr_html_()

    def test_settings_are_pickled_and_what_was_learned_is_not(self):
        made = pickle.loads(pickle.dumps(Recommender("ease", regularisation=7, progress=False)))
        assert made.get_params() == Recommender("ease", regularisation=7, progress=False).get_params()
        with pytest.raises(TypeError, match="save"):
            pickle.dumps(made.fit(numbers()))


class TestFromSeveralPlaces:
    def test_threads_recommend_side_by_side_while_one_forgets(self, recommender):
        wrong, stop = [], threading.Event()

        def ask():
            while not stop.is_set():
                found = recommender.recommend([1, 2, 10], k=1, unknown="skip")["user_id"].to_pylist()
                wrong.extend(found if not {1, 2} <= set(found) <= {1, 2, 10} else [])

        threads = [threading.Thread(target=ask) for _ in range(2)]
        for thread in threads:
            thread.start()
        recommender.forget(10)
        assert recommender.recommend([1, 10], k=1, unknown="skip")["user_id"].to_pylist() == [1]
        stop.set()
        for thread in threads:
            thread.join()
        assert wrong == []

    @pytest.mark.full
    def test_another_process_loads_what_was_saved_and_prints_nothing_of_its_own(self, recommender, tmp_path):
        recommender.save(tmp_path / "shop")
        code = f"from erasable import Recommender; rec = Recommender.load({str(tmp_path / 'shop')!r}); "
        code += "print(rec.recommend(10, k=1).to_pylist()); rec.forget(10); print(rec.status()['users'])"
        found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
        assert found.stdout == f"{recommender.recommend(10, k=1).to_pylist()}\n3\n"
        assert found.stderr == ""
        assert Recommender.load(tmp_path / "shop").status()["users"] == 3


@pytest.mark.parametrize("neighbours", [3, "all"])
def test_while_someone_waits_what_only_they_have_is_told_to_nobody(neighbours):
    likes = {1: "ab", 2: "abc", 3: ["a", "b", "a secret"], 4: "bc"}
    rows = [(user, item) for user, items in likes.items() for item in items]
    table = pa.table({"user": [user for user, _ in rows], "item": [item for _, item in rows]})
    recommender = Recommender("ease", neighbours=neighbours, regularisation=1).fit(table)
    assert "a secret" in recommender.similar_items("a")["similar_id"].to_pylist()
    serving = recommender._learned_serving()
    with serving.withdrawing([Request("3")]):
        assert "a secret" not in recommender.similar_items("a")["similar_id"].to_pylist()
        with pytest.raises(UnknownItem):
            recommender.similar_items("a secret")
        assert recommender.recommend(history=["a secret"]).equals(recommender.recommend(history=["never heard of"]))
    assert "a secret" in recommender.similar_items("a")["similar_id"].to_pylist()


def test_a_history_stands_in_no_log(caplog):
    recommender = Recommender("ease").fit(numbers())
    with caplog.at_level(logging.INFO, logger="erasable"):
        recommender.recommend(history=["a delicate thing", 5])
    assert "delicate" not in caplog.text
    assert "left out: 1" in caplog.text
