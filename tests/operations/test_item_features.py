"""Features of items from learning to serving: exact by any path, about nobody, and cold items are recommended."""

import numpy as np
import pyarrow as pa
import pytest

from erasable import Recommender
from erasable.chain import Config
from erasable.errors import DataRefused, WrongSetting, WrongUse
from erasable.operations import DiskStorage, Inputs, Work, forget, learn, learn_more, recommend, scan, upgrade, verify
from erasable.operations.again import learn_again
from erasable.operations.declared_items import items_of, read_declared
from erasable.operations.live import Live
from erasable.operations.planning import plan
from erasable.operations.sync import SyncRules, sync
from erasable.proof import records_of
from erasable.requests import Request
from kit import elsewhere
from kit.in_buckets import in_buckets_of
from kit.ray_here import ClusterHere, RayHere

MODELS = {
    "ease": {"neighbours": 4, "regularisation": 2.0},
    "item-knn": {"neighbours": 4, "shrinkage": 2.0},
    "als": {"factors": 4, "regularisation": 1.0, "epochs": 3},
}
WAYS = {**MODELS, "dense ease": {"neighbours": "all", "regularisation": 2.0}}


def config(way, **settings):
    return Config(**settings_of(way), **settings)


def settings_of(way):
    return {"model": way.split()[-1], "features": "maker,kind=2", **WAYS[way]}


@pytest.fixture(scope="module")
def shop():
    """People and 25 items, of which the last is only had by person 3."""
    generator = np.random.default_rng(5)
    pairs = [(f"person-{user:02d}", f"i{item:02d}") for user in range(30) for item in generator.choice(24, 7, False)]
    pairs += [("person-03", "i24"), ("person-03", "undeclared")]
    return pa.table({"user_id": [user for user, _ in pairs], "item_id": [item for _, item in pairs]})


def attributes(last=28):
    """Makers and kinds of items; some nobody has."""
    items = [f"i{number:02d}" for number in range(2, last)]
    makers = [f"maker {number % 5}" for number in range(len(items))]
    return pa.table({"item": items, "maker": makers, "kind": [f"{number % 3}|all" for number in range(len(items))]})


def given(last=28, groups_from=None):
    return Inputs(items=read_declared(attributes(last)), groups_from=groups_from)


def of_people(table, people):
    return table.filter(pa.compute.is_in(table["user_id"], value_set=pa.array([f"person-{one:02d}" for one in people])))


def arrays(path):
    with DiskStorage(path).reading() as session:
        state = session.state()
        return state.dataset.items.texts(), {
            (link.fingerprint, name): array.tobytes()
            for link in state.chain
            for name, array in session.checkpoints.get(link.fingerprint).parameters.shared.items()
        }


def served(storage, user, k=40):
    return [(one.item_id, one.score) for one in recommend(storage, [user], k)[0]]


@pytest.mark.parametrize("way", WAYS)
def test_any_path_gives_the_bytes_of_learning_the_outcome_with_the_latest_table(way, shop, tmp_path):
    path, storage = tmp_path / "a", DiskStorage(tmp_path / "a")
    learn(of_people(shop, range(20)), path, config(way), given(20))
    learn_more(storage, of_people(shop, range(20, 30)))
    forget(storage, [Request("person-03")])
    learn_more(storage, None, given(28))
    forget(storage, [Request("person-21"), Request("person-05")])
    left = [number for number in range(30) if number not in (3, 5, 21)]
    learn(of_people(shop, left), tmp_path / "b", config(way), given(28, path))
    assert arrays(path) == arrays(tmp_path / "b")
    assert verify(storage).identical
    assert served(storage, "person-01") == served(DiskStorage(tmp_path / "b"), "person-01")
    with storage.reading() as session:
        told = [one["what"] for one in records_of(session.documents().records())]
    assert told == ["learn", "items", "learn more", "forget", "learn more", "items", "forget", "verify"]


def test_a_table_of_items_that_nobody_has_for_the_most_part_is_pointed_out(shop, tmp_path):
    few = learn(shop, tmp_path / "few", config("ease"), given())
    many = learn(shop, tmp_path / "many", config("ease"), given(90))
    said = "they take places among others"
    assert not any(said in note for note in few.notes)
    (note,) = [note for note in many.notes if said in note]
    assert note.startswith("nobody has 65 of 91 items")


@pytest.mark.parametrize("way", MODELS)
def test_in_many_buckets_and_by_workers_elsewhere_the_bytes_are_the_same(way, shop, tmp_path):
    learn(shop, tmp_path / "near", config(way), given())
    forget(DiskStorage(tmp_path / "near"), [Request("person-03")])
    far = Work(1, cluster=ClusterHere(RayHere()))
    with in_buckets_of(5):
        learn(shop, tmp_path / "far", config(way), given(), far)
        forget(DiskStorage(tmp_path / "far"), [Request("person-03")], work=far)
        assert verify(DiskStorage(tmp_path / "far"), work=far).identical
    assert arrays(tmp_path / "far") == arrays(tmp_path / "near")


@pytest.mark.parametrize("way", MODELS)
def test_learning_again_and_sync_give_them_too(way, shop, tmp_path):
    whole, tonight = of_people(shop, range(30)), of_people(shop, [*range(3), *range(4, 30)])
    learn(of_people(shop, range(25)), tmp_path / "a", Config(model="popular"))
    storage = DiskStorage(tmp_path / "a")
    learn_again(storage, of_people(shop, range(25, 30)), settings_of(way), given(20))
    sync(storage, tonight, given(28), SyncRules(forget_missing=True))
    learn(tonight, tmp_path / "b", config(way), given(28, storage.path))
    assert arrays(tmp_path / "a") == arrays(tmp_path / "b")
    sync(storage, whole, given(20))
    learn(whole, tmp_path / "c", config(way), given(20, storage.path))
    assert arrays(tmp_path / "a") == arrays(tmp_path / "c")
    done = sync(storage, whole, given(20))
    assert done.stages_rerun == 0
    again = learn_again(storage, settings={"features": "maker"})
    assert again.stages_rerun == 1
    learn(whole, tmp_path / "d", config(way).changed(features="maker"), given(20))
    assert arrays(tmp_path / "a") == arrays(tmp_path / "d")
    learn_again(storage, settings={"features": "none"})
    learn(whole, tmp_path / "e", config(way).changed(features=None))
    assert arrays(tmp_path / "a") == arrays(tmp_path / "e")


def test_forgetting_keeps_declared_items_and_drops_what_else_only_they_had(shop, tmp_path):
    storage = DiskStorage(tmp_path / "a")
    learn(shop, storage.path, config("ease"), given())
    planned = plan(storage, [Request("person-03")])
    done = forget(storage, [Request("person-03")])
    with storage.reading() as session:
        assert [link.samples for link in session.state().chain] == [planned.samples_retrain]
    items, _ = arrays(storage.path)
    assert "i24" in items
    assert "undeclared" not in items
    assert not scan(storage.path, "person-03").residues
    certificate = (storage.path / "certificates" / done.certificates[0].rsplit("/", 1)[-1]).read_text(encoding="utf-8")
    assert "those with declared features" in certificate
    learn(shop.filter(pa.compute.not_equal(shop["user_id"], "person-03")), tmp_path / "b", config("ease"), given())
    assert arrays(storage.path) == arrays(tmp_path / "b")


def test_an_id_among_the_values_is_found(shop, tmp_path):
    table = attributes().set_column(1, "maker", pa.array(["person-03", "person-03", *["x"] * 24]))
    storage = DiskStorage(tmp_path / "a")
    learn(shop, storage.path, config("ease"), Inputs(items=read_declared(table)))
    assert {one.file.split("-")[0] for one in scan(storage.path, "person-03").residues} >= {"item", "declared"}


@pytest.mark.parametrize("way", WAYS)
def test_whoever_asks_is_subtracted_at_once(way, shop, tmp_path):
    storage = DiskStorage(tmp_path / "a")
    learn(shop, storage.path, config(way), given())
    live = Live(storage)
    cold = {one.item_id for one in live.recommend("person-01", 40).ranked} & {"i25", "i26", "i27"}
    assert cold
    live.suppress(["person-03"])
    assert live.follow()
    now = {one.item_id: one.score for one in live.recommend("person-01", 40).ranked}
    assert {*now} & {"i25", "i26", "i27"} == cold  # nobody has them, yet they are declared
    assert "undeclared" not in now
    forget(storage, [Request("person-03")])
    if way in ("ease", "item-knn"):
        assert now == dict(served(storage, "person-01"))


def test_an_upgrade_trains_with_them(shop, tmp_path):
    storage = DiskStorage(tmp_path / "a")
    learn(shop, storage.path, config("ease"), given())
    before = arrays(storage.path)
    elsewhere.moved(storage.path, numpy="0.1")
    assert upgrade(storage).adopted == 1
    assert arrays(storage.path) == before


def test_a_catalogue_decides_which_items_there_are(shop, tmp_path):
    (tmp_path / "items.txt").write_text("".join(f"i{number:02d}\n" for number in range(26)) + "undeclared\n")
    learn(shop, tmp_path / "a", config("ease"), Inputs(items=given().items, catalogue=tmp_path / "items.txt"))
    items, _ = arrays(tmp_path / "a")
    assert items == [*(f"i{number:02d}" for number in range(26)), "undeclared"]
    assert verify(DiskStorage(tmp_path / "a")).identical


def test_a_model_that_uses_none_says_so_and_knows_the_items(shop, tmp_path):
    learned = learn(shop, tmp_path / "a", Config(model="popular", features="maker"), given())
    assert learned.notes == ("the model popular uses no features of items; als, ease and item-knn use them",)
    assert "i27" in arrays(tmp_path / "a")[0]


class TestRefused:
    def test_features_without_items_or_of_another_column(self, shop, tmp_path):
        with pytest.raises(WrongUse, match="columns of the items: give them too"):
            learn(shop, tmp_path / "a", config("ease"))
        with pytest.raises(DataRefused, match="no column 'colour', only maker, kind"):
            learn(shop, tmp_path / "a", config("ease").changed(features="colour"), given())
        with pytest.raises(WrongSetting, match="a whole number from 1 to 100"):
            config("ease").changed(features="maker=0")

    def test_learning_more_from_nothing(self, shop, tmp_path):
        storage = DiskStorage(tmp_path / "a")
        learn(shop, storage.path, Config(model="ease"), given())
        with pytest.raises(WrongUse, match="nothing to learn more from"):
            learn_more(storage, None, given())

    def test_other_features_that_are_not_held(self, shop, tmp_path):
        storage = DiskStorage(tmp_path / "a")
        learn(shop, storage.path, config("ease").changed(features="maker"), given())
        with pytest.raises(WrongUse, match="'kind' is not held: give the items"):
            learn_again(storage, settings={"features": "kind"})


class TestLibrary:
    @pytest.mark.parametrize("model", MODELS)
    def test_a_cold_item_is_recommended_similar_and_scored(self, model, shop):
        rec = Recommender(model, **MODELS[model], progress=False).fit(shop, items=attributes(), features=["maker"])
        same = [f"i{number:02d}" for number in (6, 11, 16, 21)]
        owner = next(one["user_id"] for one in shop.to_pylist() if one["item_id"] in same)
        assert "i26" in rec.recommend(owner, k=40)["item_id"].to_pylist()
        assert "i26" in rec.recommend(history=same[:2], k=10)["item_id"].to_pylist()
        assert {*rec.similar_items("i26", k=5)["similar_id"].to_pylist()} & {*same}
        assert rec.recommend(owner, where="maker == 'maker 4'", k=40)["item_id"].to_pylist()[-1:]
        rec.forget("person-03")
        assert rec.verify().identical

    def test_new_items_come_with_a_new_table(self, shop):
        rec = Recommender("ease", features="maker", progress=False).fit(shop, items=attributes(20))
        assert "i26" not in rec.items
        more = rec.learn_more(None, items=attributes())
        assert (more.users_added, more.items_added, more.stages_rerun) == (0, 8 - 4 - 1, 1)
        assert "i26" in rec.items
        assert rec.learn_more(None, items=attributes()).stages_rerun == 0
        assert items_of(rec._learned_storage()).attributes == ("maker", "kind")
