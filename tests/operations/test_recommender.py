"""The library's front door: any table in, recommendations out, and forgetting in between."""

import numpy as np
import pandas
import polars
import pyarrow as pa
import pyarrow.csv as pacsv
import pytest
from scipy import sparse

from erasable import Recommender
from erasable.errors import (
    DataRefused,
    NotReproducible,
    UnknownInteraction,
    UnknownUser,
    WorkspaceError,
    WrongUse,
)
from erasable.operations import Inputs
from erasable.store.manifest import decode_manifest, encode_manifest

SETTINGS = {"groups": 3, "epochs": 3, "batch": 16}
USERS, ITEMS = [1, 1, 2, 2, 3, 3, 10, 10], [5, 7, 5, 8, 7, 8, 5, 9]
RATINGS = [1.0, 2.0, 3.0, 4.0, 5.0, 1.0, 2.0, 3.0]


def numbers() -> pa.Table:
    return pa.table({"user_id": USERS, "item_id": ITEMS, "rating": RATINGS})


def checkpoints(folder):
    return {path.name: path.read_bytes() for path in folder.rglob("*.safetensors")}


@pytest.fixture
def recommender() -> Recommender:
    return Recommender(**SETTINGS).fit(numbers())


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

    def test_groups_and_catalogue_may_come_from_elsewhere(self, recommender, tmp_path):
        recommender.save(tmp_path / "first")
        inputs = Inputs(groups_from=tmp_path / "first", catalogue=tmp_path / "first")
        Recommender(epochs=3, batch=16).fit(numbers(), inputs).save(tmp_path / "second")
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
            ("user_id", "string"),
            ("item_id", "string"),
            ("score", "double"),
            ("rank", "int64"),
            ("popular", "bool"),
        ]
        assert table["user_id"].to_pylist() == ["10", "10", "1", "1"]
        assert table["rank"].to_pylist() == [1, 2, 1, 2]
        assert set(table["item_id"].to_pylist()[:2]) == {"7", "8"}
        assert set(table["item_id"].to_pylist()[2:]) == {"8", "9"}

    def test_whole_numbers_of_any_kind_and_texts_name_the_same_user(self, recommender):
        expected = recommender.recommend(["10"])
        for users in ([10], (10,), np.array([10]), pandas.Series([10]), iter([10]), {10}):
            assert recommender.recommend(users) == expected

    def test_nobody_gets_an_empty_table(self, recommender):
        assert recommender.recommend([]).num_rows == 0

    def test_someone_unknown_is_refused_or_gets_what_is_popular(self, recommender):
        with pytest.raises(UnknownUser):
            recommender.recommend([99])
        assert recommender.recommend([99], k=1, popular_fallback=True).to_pylist() == [
            {"user_id": "99", "item_id": "5", "score": 3.0, "rank": 1, "popular": True}
        ]

    @pytest.mark.parametrize("users", ["10", 10])
    def test_a_bare_id_is_refused_with_the_remedy(self, recommender, users):
        for method in (recommender.recommend, recommender.forget, recommender.plan):
            with pytest.raises(WrongUse, match="give a list of ids"):
                method(users)


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
        assert [one.item_id for one in recommender.show(10).interactions] == ["9"]
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

    def test_an_unknown_person_among_known_ones_changes_nothing(self, recommender):
        before = recommender.status()
        with pytest.raises(UnknownUser):
            recommender.forget([10, 99])
        assert recommender.status() == before


class TestSaveAndLoad:
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
        assert recommender.status()["users"] == 3
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
                recommender.forget([2])
        assert checkpoints(tmp_path / "before") == checkpoints(tmp_path / "after")

    def test_a_workspace_of_the_command_is_loaded_and_copied(self, learned, tmp_path):
        loaded = Recommender.load(learned)
        loaded.save(tmp_path / "copy")
        assert checkpoints(tmp_path / "copy") == checkpoints(learned)

    def test_a_copy_never_claims_to_have_been_learned_here(self, recommender, tmp_path):
        recommender.save(tmp_path / "shop")
        path = tmp_path / "shop" / "manifest.json"
        manifest = decode_manifest(path.read_bytes(), "manifest.json")
        elsewhere = {**manifest.environment, "processor": "abacus"}
        path.write_bytes(encode_manifest(manifest.model_copy(update={"environment": elsewhere}).sealed()))
        with pytest.raises(NotReproducible, match=r"was abacus.*copy its folder instead"):
            Recommender.load(tmp_path / "shop").save(tmp_path / "copy")
        assert not (tmp_path / "copy").exists()

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
