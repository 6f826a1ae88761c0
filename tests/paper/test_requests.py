import numpy as np
import pyarrow as pa
import pytest

from erasable.data import Interactions, SyntheticSettings, synthesise
from erasable.paper._cells import users_to_forget
from erasable.paper._workbench import arrange_into_groups


@pytest.fixture(scope="module")
def dataset():
    rows = synthesise(SyntheticSettings(users=200, items=60, groups=4, per_user=8)).interactions
    return arranged(rows)


def arranged(rows, **settings):
    from erasable.data import recognise_scale

    return arrange_into_groups(
        rows, recognise_scale(rows.rating), {"model": "nmf", "groups": 4, "holdout": 0.1, **settings}, 1
    )


def everyone(dataset):
    return [user for group in dataset.groups for user in group.users]


def test_learn_forgets_nobody(dataset):
    assert users_to_forget(dataset, "learn") == []


@pytest.mark.parametrize(("request_name", "count"), [("rand@2.5", 5), ("rand@5", 10), ("top@5", 10), ("one", 1)])
def test_a_share_of_all_users(dataset, request_name, count):
    users = users_to_forget(dataset, request_name)
    assert len(set(users)) == len(users) == count
    assert set(users) <= set(everyone(dataset))


def test_a_smaller_share_is_part_of_a_larger_one(dataset):
    for kind in ("rand", "top"):
        assert set(users_to_forget(dataset, f"{kind}@2.5")) < set(users_to_forget(dataset, f"{kind}@5"))


def test_top_means_most_ratings_held_out_or_not():
    pairs = [(f"u{user:02d}", f"i{item:02d}") for user in range(40) for item in range(2 + user % 20)]
    rows, _ = Interactions.from_columns(*map(pa.array, zip(*pairs, strict=True)))
    dataset = arranged(rows)
    chosen = users_to_forget(dataset, "top@5")
    ratings = {user: len(dataset.items_of(user)) for user in everyone(dataset)}
    assert len(set(ratings.values())) == 20
    others = [count for user, count in ratings.items() if user not in chosen]
    assert min(ratings[user] for user in chosen) >= max(others)


@pytest.mark.parametrize(("request_name", "position"), [("first group@5", 0), ("last group@5", 3)])
def test_users_of_one_group(dataset, request_name, position):
    users = users_to_forget(dataset, request_name)
    assert len(users) == round(len(dataset.groups[position].users) * 0.05)
    assert {dataset.find(user)[0] for user in users} == {position}


def test_users_of_a_random_group_are_of_one_group(dataset):
    assert len({dataset.find(user)[0] for user in users_to_forget(dataset, "random group@5")}) == 1


def test_whom_a_request_means_does_not_depend_on_the_groups(dataset):
    rows = synthesise(SyntheticSettings(users=200, items=60, groups=4, per_user=8)).interactions
    one_group = arranged(rows, groups=1)
    for name in ("rand@5", "top@5", "one"):
        assert users_to_forget(one_group, name) == users_to_forget(dataset, name)


def test_another_seed_means_other_users(dataset):
    rows = synthesise(SyntheticSettings(users=200, items=60, groups=4, per_user=8)).interactions
    other = users_to_forget(arranged(rows, seed=1), "rand@5")
    assert np.mean([user in users_to_forget(dataset, "rand@5") for user in other]) < 0.5
