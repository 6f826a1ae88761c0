"""Weights, from learning to forgetting: rows of one pair add up to a cap, and no path leaves a trace."""

import numpy as np
import pyarrow as pa
import pytest
from scipy import sparse

from erasable import DataRefused, Recommender, WrongUse
from erasable.chain import Config
from erasable.operations.forget import forget
from erasable.operations.learn import learn, learn_more
from erasable.operations.prepare import Inputs
from erasable.operations.scan import scan
from erasable.operations.storage import DiskStorage
from erasable.operations.sync import SyncRules, sync
from erasable.operations.verify import verify
from erasable.requests import Request
from kit.small_shop import lasting_files

EVENTS = {"view": 1, "cart": 3, "buy": 5, "glance": 0}
COLUMNS = {"weight": "quantity", "event": "event"}
WAYS = {
    "ease": {"model": "ease"},
    "all neighbours": {"model": "ease", "neighbours": "all"},
    "als": {"model": "als", "factors": 4, "epochs": 2},
    "nmf": {"model": "nmf", "epochs": 2, "grouping": "independent", "groups": 2},
}


def shop(seed: int = 3, people: int = 14, rows: int = 12) -> pa.Table:
    """Make up rows of a shop in which pairs come up several times."""
    chance = np.random.default_rng(seed)
    count = people * rows
    return pa.table(
        {
            "customer_id": [f"c{number // rows:02d}" for number in range(count)],
            "sku": [f"s{number}" for number in np.minimum(chance.geometric(0.2, count), 9)],
            "quantity": chance.integers(1, 4, count),
            "event": chance.choice(list(EVENTS), count),
        }
    )


def named(**columns: str) -> Inputs:
    return Inputs(Inputs().columns.model_copy(update=columns or COLUMNS))


def settings(way: str, **more: object) -> Config:
    return Config(**WAYS[way], event_weights=EVENTS, seed=1, **more)


def without(table: pa.Table, user: str, item: str | None = None) -> pa.Table:
    rows = zip(table["customer_id"].to_pylist(), table["sku"].to_pylist(), strict=True)
    return table.filter(pa.array([one != user or item not in (None, other) for one, other in rows]))


def arrays(path) -> dict[str, bytes]:
    return {name: content for name, content in lasting_files(path).items() if name.endswith(".safetensors")}


@pytest.mark.parametrize("way", WAYS)
def test_forgetting_a_person_and_a_pair_equals_never_having_known_them(tmp_path, way):
    table = shop()
    learn(table, tmp_path / "a", settings(way), named())
    item = table.filter(pa.compute.equal(table["customer_id"], "c04"))["sku"][0].as_py()
    for request in (Request("c03"), Request("c04", (item,))):
        forget(DiskStorage(tmp_path / "a"), [request])
    learn(without(without(table, "c03"), "c04", item), tmp_path / "b", settings(way), named())
    assert arrays(tmp_path / "a") == arrays(tmp_path / "b")
    assert verify(DiskStorage(tmp_path / "a")).identical
    file = tmp_path / "shop.csv"
    pa.csv.write_csv(table, file)
    assert not scan(tmp_path / "a", "c03", str(file)).residues


@pytest.mark.parametrize("way", WAYS)
def test_a_sync_gives_the_weights_and_bytes_of_learning_the_export(tmp_path, way):
    """Weights of an export are not added to those held, not even after learning more."""
    table, tonight = shop(), shop(seed=4)
    learn(table, tmp_path / "a", settings(way), named())
    learn_more(DiskStorage(tmp_path / "a"), table.slice(0, 30))
    for export in (tonight, tonight):
        sync(DiskStorage(tmp_path / "a"), export, rules=SyncRules(forget_missing=True, yes=True))
    learn(tonight, tmp_path / "b", settings(way), named())
    assert arrays(tmp_path / "a") == arrays(tmp_path / "b")
    assert verify(DiskStorage(tmp_path / "a")).identical


@pytest.mark.parametrize("way", ["ease", "all neighbours"])
def test_rows_of_one_pair_in_two_files_add_up_as_in_one(tmp_path, way):
    table = shop()
    learn(table, tmp_path / "one", settings(way), named())
    learn(table.slice(0, 70), tmp_path / "two", settings(way), named())
    learn_more(DiskStorage(tmp_path / "two"), table.slice(70, 40))
    learn_more(DiskStorage(tmp_path / "two"), table.slice(110))
    assert arrays(tmp_path / "one") == arrays(tmp_path / "two")


def test_a_cap_that_was_reached_hides_no_later_row_and_no_order(tmp_path):
    rows = {"user": ["a", "a", "a", "b"], "item": ["x", "x", "y", "x"], "n": [9, 3, 2, 1]}
    table, inputs = pa.table(rows), named(weight="n")
    held = []
    for cut in range(1, 4):
        path = tmp_path / str(cut)
        learn(pa.concat_tables([table.slice(0, cut), table.slice(3)]), path, Config(model="ease"), inputs)
        learn_more(DiskStorage(path), table.slice(cut, 3 - cut) if cut < 3 else table.slice(2, 1))
        held.append(Recommender.load(path).show("a"))
    assert [[(one.item_id, one.rating) for one in of.interactions] for of in held] == [
        [("x", 10), ("y", 2)],
        [("x", 10), ("y", 2)],
        [("x", 10), ("y", 4)],
    ]


def test_a_person_on_the_do_not_learn_list_stays_out_with_weights(tmp_path):
    table = shop()
    learn(table, tmp_path / "a", settings("ease"), named())
    forget(DiskStorage(tmp_path / "a"), [Request("c03")])
    again = learn_more(DiskStorage(tmp_path / "a"), table.filter(pa.compute.equal(table["customer_id"], "c03")))
    assert (again.left_out.users, again.users_added) == (1, 0)


def test_weights_change_what_is_recommended_and_a_weight_of_one_changes_nothing():
    table = shop().drop_columns(["event"])
    ones = table.set_column(2, "quantity", pa.array([1] * len(table)))
    once = ones.group_by(["customer_id", "sku"]).aggregate([("quantity", "max")])
    for way in ("ease", "als"):
        plain, weighed, heavy = (Recommender(**WAYS[way], seed=1) for _ in range(3))
        plain.fit(once.select(["customer_id", "sku"]))
        weighed.fit(once, weight="quantity_max")
        heavy.fit(table, weight="quantity")
        assert scores(plain) == scores(weighed)
        assert scores(plain) != scores(heavy)


def scores(rec: Recommender) -> list[float]:
    return rec.recommend("c03", k=3)["score"].to_pylist()


def test_the_library_takes_a_sparse_matrix_of_weights():
    matrix = sparse.csr_array(np.array([[0, 2, 30], [1, 1, 0], [0, 4, 1]]))
    rec = Recommender("als", factors=2, epochs=1, max_weight=20).fit(matrix, weight="value")
    assert [one.rating for one in rec.show(0).interactions] == [2, 20]


def test_a_model_that_uses_no_weights_says_so(tmp_path):
    notes = learn(shop(), tmp_path / "a", settings("nmf"), named()).notes
    assert notes == ("the model nmf uses no weights: each pair counts once; als and ease use them",)
    assert learn(shop(), tmp_path / "b", settings("ease"), named()).notes == ()


def test_without_weights_nothing_of_them_is_written(tmp_path):
    learn(shop(), tmp_path / "a", Config(model="ease"))
    assert all(b"weight" not in content for name, content in lasting_files(tmp_path / "a").items() if "config" in name)
    assert "weights" not in Config(model="ease").stage_facts()


@pytest.mark.parametrize(
    ("columns", "given", "said"),
    [
        ({"event": "event"}, {}, "need each other"),
        ({}, {"event_weights": {"view": 1}}, "need each other"),
        ({}, {"max_weight": 3}, "is for weights"),
        ({"weight": "quantity", "rating": "quantity"}, {}, "either ratings or weights"),
        ({"weight": "quantity"}, {"rating_scale": (1, 5)}, "either ratings or weights"),
    ],
)
def test_what_does_not_go_together_is_refused(tmp_path, columns, given, said):
    inputs = Inputs(Inputs().columns.model_copy(update=columns))
    with pytest.raises(WrongUse, match=said):
        learn(shop(), tmp_path / "a", Config(model="ease", **given), inputs)
    assert not (tmp_path / "a").exists()


def test_more_needs_the_columns_of_weights_and_no_others(tmp_path):
    learn(shop(), tmp_path / "a", settings("ease"), named())
    with pytest.raises(DataRefused, match="there is no weight, and this was learned with weights"):
        learn_more(DiskStorage(tmp_path / "a"), shop().drop_columns(["quantity"]))
    with pytest.raises(WrongUse, match="learned with weights: leave out"):
        learn_more(DiskStorage(tmp_path / "a"), shop(), named(rating="quantity"))
    learn(shop(), tmp_path / "b", Config(model="ease"))
    with pytest.raises(WrongUse, match="learned without weights: leave out"):
        learn_more(DiskStorage(tmp_path / "b"), shop(), named(weight="quantity"))
