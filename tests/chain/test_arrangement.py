"""From interactions to dataset; the exactness of regrouping is tested with unlearning."""

import pytest

from erasable.chain import Config, Dataset, arrange, regrouped
from erasable.data import RatingScale
from erasable.grouping.points import ALONE
from kit.fitting import fitting

ROWS = {"a": "pqr", "b": "pq", "c": "qr", "d": "stu", "e": "st", "f": "tu"}


@pytest.fixture
def arranged(tables):
    rows = tables.table(ROWS)

    def call(given=None, **settings):
        config = Config(**fitting({"groups": 2, "grouping": "bkm", **settings}))
        return arrange(rows, Dataset.of_nobody(config, None, RatingScale(1, 1)), ALONE, given)

    return call


def users_of(dataset):
    return [set(group.users) for group in dataset.groups]


def test_people_alike_are_in_one_group_and_its_cohesion_is_known(arranged):
    dataset = arranged()
    assert sorted(map(sorted, users_of(dataset))) == [["a", "b", "c"], ["d", "e", "f"]]
    assert all(known.value > 0 and known.error == 0 for known in dataset.cohesion)


def test_nothing_is_decided_about_groups_that_are_given(arranged):
    dataset = arranged({user: int(user in "ad") for user in ROWS})
    assert users_of(dataset) == [{"b", "c", "e", "f"}, {"a", "d"}]
    assert dataset.cohesion == (None, None)


def test_groups_are_made_of_what_is_not_held_out(arranged):
    dataset = arranged(holdout=0.4)
    assert len(dataset.held_out) > 0
    assert sum(map(len, dataset.groups)) + len(dataset.held_out) == sum(map(len, ROWS.values()))


def test_what_is_gone_takes_all_cohesion_along_since_everyone_shaped_the_space(arranged):
    dataset = arranged()
    assert not any(dataset.without({"b"}, ()).cohesion)
    assert not any(dataset.without((), {("a", "p")}).cohesion)


def test_regrouping_knows_every_cohesion_again(arranged):
    after = regrouped(arranged(policy="regroup").without({"b"}, ()), ALONE)
    assert None not in after.cohesion


def test_regrouping_changes_nothing_if_nobody_left(arranged):
    dataset = arranged(policy="regroup", holdout=0.3)
    again = regrouped(dataset, ALONE)
    assert [group.digest() for group in again.groups] == [group.digest() for group in dataset.groups]
    assert again.held_out.digest() == dataset.held_out.digest()
    assert again.cohesion == dataset.cohesion


def test_regrouping_works_with_fewer_users_than_groups_and_with_nobody(arranged):
    dataset = arranged(policy="regroup", groups=3)
    few = regrouped(dataset.without(set("abcd"), ()), ALONE)
    assert sorted(map(len, users_of(few))) == [0, 1, 1]
    nobody = regrouped(dataset.without(set("abcdef"), ()), ALONE)
    assert users_of(nobody) == [set(), set(), set()]


def test_a_filter_is_applied_anew_and_drops_who_stood_and_fell_with_the_erased(arranged, tables):
    dataset = arranged(policy="regroup", min_interactions=2)
    after = regrouped(dataset.without({"d", "f"}, ()), ALONE)
    assert set.union(*users_of(after)) == {"a", "b", "c"}
    assert after.kept_items == {"p", "q", "r"}
