"""Traces: what must be gone of a person; their rows only where a stage trained them."""

import numpy as np
import pyarrow.parquet as pq
import pytest

from erasable.chain import Config, Scoring
from erasable.data import Ids
from erasable.errors import ResidueFound
from erasable.grouping.registry import anchors_among
from erasable.operations import DiskStorage, forget, learn, verify
from erasable.operations.scan import held_of
from erasable.requests import Request
from erasable.scan import PERSONAL_OR_SHARED
from erasable.workspace import Workspace

SOLVED = Config(model="als", factors=6, regularisation=0.5, anchors=0.5)
TRAINED = Config(model="nmf", groups=2, epochs=2)
TWINS = [f"twin{number}" for number in range(8)]
NO_ANCHORS = [
    user for user, anchor in zip(TWINS, anchors_among(Ids.of(TWINS), 0.5, SOLVED.seed), strict=True) if not anchor
]


@pytest.fixture
def make(ratings, as_table, tmp_path):
    """Make a shop in which some people have the very same data, and so, if rows are solved, the very same rows."""

    def make(config):
        likes = {user: {"a": 5, "c": 2} for user in TWINS}
        learn(as_table({**ratings, **likes}), tmp_path / "shop", config)
        return tmp_path / "shop"

    return make


def row_of(shop, user):
    with Workspace.reading(shop) as workspace:
        state = workspace.state()
        (row,) = Scoring(state, workspace.checkpoints).rows([state.dataset.find(user)])
        return row["user"]


def certificate_in(shop):
    with Workspace.reading(shop) as workspace:
        (content,) = [paper for name, paper in workspace.issued().items() if name.endswith(".json")]
    return content.decode()


def test_someone_whose_row_is_also_another_s_is_forgotten_and_certified(make):
    shop, (first, second, *_) = make(SOLVED), NO_ANCHORS
    assert np.array_equal(row_of(shop, first), row_of(shop, second))
    assert len(forget(DiskStorage(shop), [Request(first)]).certificates) == 1
    assert (
        len(forget(DiskStorage(shop), [Request(user) for user in NO_ANCHORS[1:]]).certificates) == len(NO_ANCHORS) - 1
    )
    assert verify(DiskStorage(shop)).identical


def test_forgetting_who_is_no_anchor_writes_no_checkpoint(make):
    shop = make(SOLVED)
    before = {path: (path.stat().st_ino, path.stat().st_mtime_ns) for path in (shop / "checkpoints").iterdir()}
    done = forget(DiskStorage(shop), [Request(NO_ANCHORS[0])])
    assert (done.stages_rerun, done.cost_ratio) == (0, 0.0)
    after = {path: (path.stat().st_ino, path.stat().st_mtime_ns) for path in (shop / "checkpoints").iterdir()}
    assert after == before


class TestAnItemOfTheirsAlone:
    """It is gone with them, from every file; what holds it still is found."""

    @pytest.fixture
    def shop(self, ratings, as_table, tmp_path):
        likes = {"zoe": {"a": 5, "a present for zoe": 2}, "yan": {"b": 1, "d": 4, "7": 2}, "7": {"a": 3, "b": 1}}
        learn(as_table({**ratings, **likes}), tmp_path / "shop", SOLVED)
        return tmp_path / "shop"

    def test_no_file_holds_it_any_more(self, shop):
        forget(DiskStorage(shop), [Request("zoe")])
        files = [path for path in shop.rglob("*") if path.is_file()]
        assert not [path for path in files if b"a present for zoe" in path.read_bytes()]
        tables = [pq.read_table(path) for path in files if path.suffix == ".parquet"]
        assert len([table for table in tables if "item_id" in table.column_names]) >= 2
        assert not [column for table in tables for column in table.columns if "a present for zoe" in column.to_pylist()]

    def test_a_list_of_items_that_holds_it_is_found(self, shop):
        (shop / "items.csv").write_text("item_id,price\na,1\na present for zoe,2\n")
        with pytest.raises(ResidueFound, match=r"items\.csv"):
            forget(DiskStorage(shop), [Request("zoe")])
        (shop / "items.csv").unlink()
        assert len(forget(DiskStorage(shop), []).certificates) == 1

    def test_somebody_s_id_is_no_item(self, shop):
        """The item 7 goes, and the user 7 stays."""
        assert len(forget(DiskStorage(shop), [Request("yan", ("7",))]).certificates) == 1
        assert len(forget(DiskStorage(shop), [Request("yan")]).certificates) == 1

    def test_an_item_named_like_the_person_hides_nothing_any_more(self, ratings, as_table, tmp_path):
        name = "someone-with-a-long-id"
        learn(as_table({**ratings, name: {"a": 5, f"a gift for {name}": 2}}), tmp_path / "gifts", SOLVED)
        (tmp_path / "gifts" / "old.txt").write_text(f"a gift for {name}")
        with pytest.raises(ResidueFound, match=r"old\.txt"):
            forget(DiskStorage(tmp_path / "gifts"), [Request(name)])


def test_a_trained_row_is_looked_for(make):
    shop = make(TRAINED)
    (shop / "forgotten.bin").write_bytes(b"before" + row_of(shop, "eve").tobytes() + b"after")
    with pytest.raises(ResidueFound, match=r"forgotten\.bin"):
        forget(DiskStorage(shop), [Request("eve")])


@pytest.mark.parametrize(("config", "said"), [(SOLVED, False), (TRAINED, True)], ids=["solved", "trained"])
def test_a_certificate_speaks_of_rows_only_where_they_are_stored(make, config, said):
    shop = make(config)
    forget(DiskStorage(shop), [Request("eve")])
    assert (PERSONAL_OR_SHARED in certificate_in(shop)) == said


def test_what_is_held_of_many_is_what_is_held_of_each(make):
    shop = make(TRAINED)
    asked = [Request("ann"), Request("twin3", ("a",)), Request("bob"), Request("twin1")]
    with DiskStorage(shop).reading() as session:
        state = session.state()
        held = held_of(asked, session, state)
        for request, target in zip(asked, held, strict=True):
            own = state.dataset.data_of({request.user})
            wanted = own.without(pairs=[(request.user, "c")]) if request.items else own
            assert (target.user, target.items) == (request.user, request.items)
            assert target.rows.items == [wanted.items[number] for number in wanted.item_index.tolist()]
            assert target.rows.ratings.tolist() == wanted.rating.tolist()
            np.testing.assert_equal(target.rows.times, wanted.time)
            assert len(target.rows.items) > 0
