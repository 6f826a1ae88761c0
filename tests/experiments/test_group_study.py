import numpy as np
import pyarrow as pa
import pytest

from erasable import Recommender
from erasable.errors import Refused
from erasable.experiments import study_groups
from erasable.operations import DiskHome, Work


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
        learned = [known.value for known in session.state().knowledge.cohesion]
    assert study.cohesion["bkm"] == pytest.approx(learned)
    assert study.cohesion["bkm"].mean() > study.cohesion["random"].mean()


def test_everyone_has_a_place_and_the_position_of_their_group(study, shop):
    assert study.places.shape == (60, 2)
    assert np.all(np.isfinite(study.places))
    with shop.reading() as session:
        groups = session.state().knowledge.groups
    assert np.bincount(study.positions).tolist() == [len(group.users) for group in groups]


def test_the_first_direction_varies_most(study):
    one, other = study.places.var(axis=0)
    assert one >= other > 0


def test_nothing_is_written_into_the_workspace(shop):
    before = {path: path.stat().st_mtime_ns for path in shop.path.rglob("*") if path.suffix != ".lock"}
    study_groups(shop, Work(1))
    assert {path: path.stat().st_mtime_ns for path in shop.path.rglob("*") if path.suffix != ".lock"} == before


def test_the_papers_grouping_is_left_out_where_it_would_take_hours(shop, monkeypatch):
    monkeypatch.setattr("erasable.experiments.group_study.MOST_PAIRS", 10)
    assert list(study_groups(shop, Work(1)).cohesion) == ["random", "bkm", "cbkm-near"]


def test_one_user_can_t_be_drawn(tmp_path):
    recommender = Recommender("nmf", groups=2, epochs=1).fit(pa.table({"user": ["ann", "bob"], "item": ["a", "b"]}))
    recommender.forget(["ann"])
    recommender.save(tmp_path / "shop")
    with pytest.raises(Refused, match="fewer than two users"):
        study_groups(DiskHome(tmp_path / "shop"), Work(1))
