"""Item-kNN: its lists by numpy, and that amending gives the bytes of training, list by list."""

import numpy as np
import pytest

from erasable.data import over_own_items
from erasable.errors import Refused, WrongSetting, WrongUse
from erasable.models import Effort, ItemKNN
from erasable.models import machine as memory
from erasable.models._columns import NEIGHBOURS
from erasable.models._columns_kernel import NOBODY
from erasable.models._item_knn import OWNERS, TOGETHER, CosineColumns
from erasable.models.base import Change, Size
from kit.choosing import numbers
from kit.ease_cases import added, contents, dense, pruned, reverse, scores, taken, train

K, SHRINKAGE = 4, 3.0


@pytest.fixture(scope="module")
def model():
    return ItemKNN(neighbours=K, shrinkage=SHRINKAGE)


@pytest.fixture(scope="module")
def rows(tables):
    return tables.random_table(3, users=80, items=50, ratings=True)


def similarities(rows, shrinkage):
    """Return c / (√(n m) + shrinkage) of all pairs, as numbers of 32 bits; 0 on the diagonal."""
    gram = dense(rows).T @ dense(rows)
    owners = gram.diagonal()
    with np.errstate(invalid="ignore"):
        found = (gram / (np.sqrt(np.outer(owners, owners)) + shrinkage)).astype(np.float32)
    np.fill_diagonal(found, 0)
    return np.nan_to_num(found), gram.astype(int)


def by_numpy(rows, number, shrinkage):
    """Return each item's nearest ones, ascending, and the weights of all items for all: column j holds j's."""
    near, gram = similarities(rows, shrinkage)
    lists, weights = [], np.zeros_like(near)
    for item, of_item in enumerate(near):
        order = sorted(np.flatnonzero(of_item), key=lambda other: (-of_item[other], other))
        lists.append(sorted(int(other) for other in order[:number]))
        weights[lists[-1], item] = of_item[lists[-1]]
    return lists, weights, gram


@pytest.mark.parametrize("shrinkage", [0.0, 3.0, 100.0])
@pytest.mark.parametrize("number", [1, K, 49, 200])
def test_lists_counts_and_scores_are_those_of_numpy(rows, number, shrinkage):
    model = ItemKNN(neighbours=number, shrinkage=shrinkage)
    shared = train(model, rows)
    lists, weights, gram = by_numpy(rows, number, shrinkage)
    assert [[item for item in line if item != NOBODY] for line in shared[NEIGHBOURS].tolist()] == lists
    assert [line[: len(near)] for line, near in zip(shared[TOGETHER].tolist(), lists, strict=True)] == [
        gram[item, near].tolist() for item, near in enumerate(lists)
    ]
    assert np.array_equal(shared[OWNERS], gram.diagonal())
    assert np.abs(scores(model, shared, rows) - dense(rows) @ weights).max() < 1e-5


def test_a_small_case_by_hand(tables):
    """The item c is as near to a as b is: the earlier stays. Two of three people who have a have b: 2 / (√6 + 1)."""
    model = ItemKNN(neighbours=1, shrinkage=1.0)
    table = tables.table({"u": "abc", "v": "abc", "w": "a"}, catalogue="abcd")
    shared = train(model, table)
    assert {name: array.tolist() for name, array in shared.items()} == {
        "neighbours": [[1], [2], [1], [-1]],
        "joint_counts": [[2], [2], [2], [0]],
        "counts": [3, 2, 2, 0],
    }
    found = model.score(model.prepare(shared), {}, np.array([1], np.int32))
    assert found.tolist() == [np.float32(2 / (np.sqrt(6) + 1)), 0, np.float32(2 / 3), 0]
    assert model.similar(shared, 1).tolist() == [np.float32(2 / (np.sqrt(6) + 1)), 0, np.float32(2 / 3), 0]


def test_similarity_is_mutual_and_0_where_neither_is_among_the_nearest(model, rows):
    shared = train(model, rows)
    near, _ = similarities(rows, SHRINKAGE)
    found = np.stack([model.similar(shared, number) for number in range(len(rows.items))])
    assert np.array_equal(found, found.T)
    is_listed = np.zeros_like(near, bool)
    for item, line in enumerate(shared[NEIGHBOURS]):
        is_listed[item, line[line != NOBODY]] = True
    assert np.array_equal(found, np.where(is_listed | is_listed.T, near, 0))
    assert (found == 0).any()


@pytest.mark.parametrize("seed", numbers(range(40), range(8)))
@pytest.mark.parametrize("number", [1, K])
def test_to_amend_gives_the_bytes_of_training_there_and_back(tables, number, seed):
    """Few people of many items, so that most lists are reached by few; items come and go."""
    whole = tables.random_table(seed, users=30, items=60)
    (before,) = over_own_items([whole.without(users=["u0000"])])
    model = ItemKNN(neighbours=number, shrinkage=[0.0, 2.0][seed % 2])
    trained = train(model, before)
    for user in before.users.texts()[:4]:
        (after,) = over_own_items([before.without(users=[user])])
        change = Change.between(before, after)
        forgotten = model.amended(trained, change, Effort())
        assert contents(forgotten) == contents(train(model, after))
        assert contents(model.amended(forgotten, Change.between(after, before), Effort(2))) == contents(trained)


@pytest.mark.parametrize("seed", range(5))
def test_people_who_leave_in_part_are_amended_and_the_way_back_too(model, rows, seed):
    after, change = pruned(rows, seed)
    trained = train(model, rows)
    found = model.amended(trained, change, Effort(2))
    assert contents(found) == contents(train(model, after))
    assert contents(model.amended(found, reverse(change, rows), Effort())) == contents(trained)


def shop(tables):
    """Make up a table in which one person reaches few lists: people keep to ten departments of eight items."""
    generator = np.random.default_rng(2)
    has = {
        f"u{user:03d}": [f"i{8 * (user % 10) + item:02d}" for item in generator.permutation(8)[:5]]
        for user in range(120)
    }
    return tables.table(has)


def test_only_lists_of_the_person_s_items_are_found_anew_and_others_take_an_item_in(tables, monkeypatch):
    rows, model = shop(tables), ItemKNN(neighbours=3, shrinkage=1.0)
    trained, found, took_in = train(model, rows), [], 0
    monkeypatch.setattr(
        CosineColumns,
        "_find",
        lambda self, finding, *rest, of=CosineColumns._find: (found.append(finding), of(self, finding, *rest)),
    )
    for user in range(30):
        own, change = rows.items_at(user), taken(rows, [f"u{user:03d}"])
        after = model.amended(trained, change, Effort())
        assert found[-1].tolist() == sorted(own.tolist())
        changed = np.flatnonzero((after[NEIGHBOURS] != trained[NEIGHBOURS]).any(axis=1))
        assert set(changed // 8) <= {user % 10}
        took_in += len(np.setdiff1d(changed, own))
        assert contents(after) == contents(train(model, change.after))
    assert took_in, "no list took an item in: the case says nothing"


def test_a_list_that_holds_an_item_which_more_people_have_is_found_again(tables):
    rows, model = shop(tables), ItemKNN(neighbours=3, shrinkage=1.0)
    before = rows.without(users=["u007"])
    assert contents(model.amended(train(model, before), added(rows, ["u007"]), Effort())) == contents(
        train(model, rows)
    )


def test_to_amend_takes_everyone_s_rows(model, rows):
    with pytest.raises(WrongUse, match=r"give them as Change\.after"):
        model.amended(train(model, rows), Change(rows, rows.without(users=["u0003"])), Effort())


def test_what_amending_visits_is_told_and_never_more_than_training(model, tables):
    rows = shop(tables)
    change, done = taken(rows, ["u007"]), []
    model.amended(train(model, rows), change, Effort(2, done.append))
    assert sum(done) == model.samples_amended(change.after, change) <= model.samples(change.after, 1)
    assert model.samples_amended(rows, Change.between(rows, rows)) == 0
    assert model.samples(rows, 1) == Size.of(rows).pairs


def test_items_that_do_not_fit_into_memory_are_refused_with_the_remedy(model, rows, monkeypatch):
    monkeypatch.setattr(memory, "available_memory", lambda: 1000)
    with pytest.raises(Refused, match=r"item-knn on 50 items needs .* give a smaller neighbours"):
        model.start(rows.items, 0)


@pytest.mark.parametrize("wrong", [{"neighbours": 0}, {"neighbours": "all"}, {"shrinkage": -1}, {"shrinkage": 1e10}])
def test_settings_out_of_bounds_are_refused(wrong):
    with pytest.raises(WrongSetting, match=next(iter(wrong))):
        ItemKNN(**wrong)
