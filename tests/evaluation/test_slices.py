"""Slices of people and of test items; those that would show a few people are not shown."""

import pytest

from erasable.errors import WrongUse
from erasable.evaluation.slices import FEWEST, MOST_VALUES, OTHERS, UNKNOWN, assess, band_of
from erasable.evaluation.utility import Ranking, metrics_named

HR = metrics_named(["hr@2", "novelty@2"], "whole-catalogue")


@pytest.fixture
def dataset(trained):
    return trained[0].dataset


def assessed(dataset, rankings, by=None, attributes=None, protocol="whole-catalogue"):
    metrics = HR if protocol == "whole-catalogue" else HR[:1]
    return assess(dataset, rankings, protocol, metrics, by, attributes)


def some(count: int, hit: bool, learned: int = 7, item: int = 5) -> list[Ranking]:
    return [Ranking([item if hit else 30, 31], [item], (), learned)] * count


def test_every_number_is_in_one_band():
    names = [band_of(number, (0, 5, 20, 100)) for number in (0, 4, 5, 19, 20, 99, 100, 10**6)]
    assert names == ["0–4", "0–4", "5–19", "5–19", "20–99", "20–99", "100 and more", "100 and more"]


def test_without_a_wish_there_are_none(dataset):
    found = assessed(dataset, some(12, hit=True))
    assert (found.users, found.values["hr@2"], found.slices) == (12, 1.0, ())


def test_by_activity_people_are_told_apart_by_their_own_interactions(dataset):
    rankings = [*some(10, True, learned=3), *some(20, False, learned=5), *some(15, True, learned=400)]
    found = assessed(dataset, rankings, "activity")
    assert [(one.name, one.users, one.values["hr@2"]) for one in found.slices] == [
        ("1–4", 10, 1.0),
        ("5–19", 20, 0.0),
        ("100 and more", 15, 1.0),
    ]
    assert found.slices[0].intervals["hr@2"] == (1.0, 1.0)
    assert found.slices[0].values.keys() == {"hr@2", "novelty@2"}
    assert found.values == assessed(dataset, rankings).values


def test_by_popularity_only_the_items_of_a_slice_are_to_be_found(dataset):
    had = dataset.counts.trained
    rare, common = int(had.argmin()), int(had.argmax())
    assert had[rare] < 10 <= had[common] < 100
    outside = len(dataset.items) + 3
    both = [Ranking([common, 30], [common, rare, outside], (), 7)] * 12
    found = assessed(dataset, [*both, *some(11, hit=False, item=common)], "popularity")
    assert [(one.name, one.users) for one in found.slices] == [("0–9", 12), ("10–99", 23)]
    assert [one.values for one in found.slices] == [{"hr@2": 0.0}, {"hr@2": pytest.approx(12 / 23)}]


def test_by_an_attribute_each_value_has_a_slice_those_of_most_people_first(dataset):
    rankings = [*some(10, True, item=1), *some(15, False, item=2), *some(11, True, item=3)]
    found = assessed(dataset, rankings, "genre", {1: "drama", 2: "comedy"})
    assert [(one.name, one.users, one.values["hr@2"]) for one in found.slices] == [
        ("comedy", 15, 0.0),
        (UNKNOWN, 11, 1.0),
        ("drama", 10, 1.0),
    ]


def test_of_many_values_the_rest_are_together(dataset):
    rankings = [one for item in range(30) for one in some(12 if item < MOST_VALUES else 10, True, item=item)]
    found = assessed(dataset, rankings, "genre", {item: f"g{item:02d}" for item in range(30)})
    assert [one.name for one in found.slices] == [*(f"g{item:02d}" for item in range(MOST_VALUES)), OTHERS]
    assert found.slices[-1].users == 10 * (30 - MOST_VALUES)


def test_a_slice_of_few_people_is_not_shown_nor_another_so_that_the_rest_does_not_show_them(dataset):
    rankings = [*some(9, True, learned=3), *some(20, False, learned=5), *some(15, True, learned=400)]
    found = assessed(dataset, rankings, "activity")
    assert [(one.name, one.users) for one in found.slices] == [("1–4", None), ("5–19", 20), ("100 and more", None)]
    assert [len(one.values) + len(one.intervals) for one in found.slices] == [0, 4, 0]


def test_several_small_slices_hide_each_other(dataset):
    rankings = [*some(6, True, learned=3), *some(7, True, learned=400), *some(20, False, learned=5)]
    found = assessed(dataset, rankings, "activity")
    assert [one.users for one in found.slices] == [None, 20, None]


def test_people_who_are_in_two_small_slices_are_counted_once(dataset):
    """The same nine people have both kinds of items, so a third slice is not shown too."""
    nine = [Ranking([30], [1, 2], (), 7)] * 9
    rankings = [*nine, *some(FEWEST, True, item=3), *some(20, True, item=4)]
    found = assessed(dataset, rankings, "genre", {1: "a", 2: "b", 3: "c", 4: "d"})
    assert [(one.name, one.users) for one in found.slices] == [("d", 20), ("c", None), ("a", None), ("b", None)]


def test_none_may_be_shown(dataset):
    found = assessed(dataset, [*some(9, True, learned=3), *some(1, True, learned=30)], "activity")
    assert [one.users for one in found.slices] == [None, None]


def test_where_test_items_are_ranked_among_themselves_there_are_none_of_items(dataset):
    rankings = [Ranking([5], [5], (1.0,), 7)] * 12
    assert assessed(dataset, rankings, "activity", protocol="held-out-only").slices[0].users == 12
    with pytest.raises(WrongUse, match="slices of items say nothing: give by='activity', or another protocol"):
        assessed(dataset, rankings, "popularity", protocol="held-out-only")
