import numpy as np
import pyarrow as pa
import pytest

from erasable import Recommender
from erasable.data import SyntheticSettings, synthesise
from erasable.errors import Refused
from erasable.operations import DiskStorage, Work
from erasable.operations.inspect import study_groups


@pytest.fixture(scope="module")
def shop(tmp_path_factory):
    """A recommender on a made-up shop with planted groups, learned once."""
    rows = synthesise(SyntheticSettings(users=60, items=40, groups=4, per_user=6)).interactions
    users = rows.users.array.take(pa.array(rows.user_index))
    items = rows.items.array.take(pa.array(rows.item_index))
    folder = tmp_path_factory.mktemp("study") / "shop"
    Recommender("nmf", groups=4, epochs=1, grouping="bkm").fit(pa.table({"user": users, "item": items})).save(folder)
    return DiskStorage(folder)


@pytest.fixture(scope="module")
def study(shop):
    return study_groups(shop, Work(2))


def test_sizes_go_from_large_to_small_and_count_everyone(study):
    assert list(study.sizes) == ["plain k-means on rating rows", "plain k-means on vectors", "bkm"]
    for sizes in study.sizes.values():
        assert (len(sizes), sizes.sum()) == (4, 60)
        assert np.all(np.diff(sizes) <= 0)


def test_only_plain_k_means_may_exceed_the_ceiling(study):
    assert study.sizes["bkm"].max() == 15
    assert study.sizes["plain k-means on rating rows"].max() > 15


def test_groupings_are_compared_in_one_space_and_the_own_one_is_as_it_was_learned(study, shop):
    assert list(study.cohesion) == ["random", "bkm", "cbkm", "cbkm-near"]
    with shop.reading() as session:
        learned = [known.value for known in session.state().dataset.cohesion]
    assert study.cohesion["bkm"] == pytest.approx(learned)
    assert study.cohesion["bkm"].mean() > study.cohesion["random"].mean()


def test_everyone_has_a_place_and_the_position_of_their_group(study, shop):
    assert study.places.shape == (60, 2)
    assert np.all(np.isfinite(study.places))
    with shop.reading() as session:
        groups = session.state().dataset.groups
    assert np.bincount(study.positions).tolist() == [len(group.users) for group in groups]


def test_the_first_direction_varies_most(study):
    one, other = study.places.var(axis=0)
    assert one >= other > 0


def test_nothing_is_written_into_the_workspace(shop):
    before = {path: path.stat().st_mtime_ns for path in shop.path.rglob("*") if path.suffix != ".lock"}
    study_groups(shop, Work(1))
    assert {path: path.stat().st_mtime_ns for path in shop.path.rglob("*") if path.suffix != ".lock"} == before


def test_the_documents_grouping_is_left_out_where_it_would_take_hours(shop, monkeypatch):
    monkeypatch.setattr("erasable.operations.inspect.MOST_PAIRS", 10)
    assert list(study_groups(shop, Work(1)).cohesion) == ["random", "bkm", "cbkm-near"]


def test_one_user_can_t_be_drawn(tmp_path):
    recommender = Recommender("nmf", groups=2, epochs=1).fit(pa.table({"user": ["ann", "bob"], "item": ["a", "b"]}))
    recommender.forget(["ann"])
    recommender.save(tmp_path / "shop")
    with pytest.raises(Refused, match="fewer than two users"):
        study_groups(DiskStorage(tmp_path / "shop"), Work(1))


def test_no_extra_is_needed(shop, reporter, study, monkeypatch):
    monkeypatch.setattr("erasable.grouping.registry.find_spec", lambda name: None)
    found = study_groups(shop, Work(1, reporter))
    assert np.array_equal(found.places, study.places)
    assert list(found.cohesion) == list(study.cohesion)
