"""EASE from neighbourhoods: its closed form by numpy, and that exactly the columns that a change reaches are others."""

from fractions import Fraction

import numpy as np
import pytest

from erasable.data import Ids, over_own_items
from erasable.errors import Refused, WrongSetting
from erasable.models import Effort
from erasable.models import _ease_columns as ease_columns
from erasable.models import machine as memory
from erasable.models._columns_kernel import NOBODY, _solve, is_nearer
from erasable.models._ease import EASE
from erasable.models._ease_columns import LEAST_BASE, NEIGHBOURS, USUAL_PENALTY, WEIGHTS, count_pairs
from erasable.models.base import Change
from erasable.testing._suite import made_up
from kit.ease_cases import added, contents, dense, nobody, pruned, reverse, scores, taken, train

K = 6


@pytest.fixture(scope="module")
def model():
    return EASE(neighbours=K)


@pytest.fixture(scope="module")
def rows(tables):
    return tables.random_table(3, users=80, items=50, ratings=True)


def neighbourhood(gram, item, number):
    """Return the nearest items by exact cosines, ties by number, ascending."""
    others = [other for other in range(len(gram)) if other != item and gram[item, other] > 0]
    cosine = {other: Fraction(int(gram[item, other]) ** 2, int(gram[other, other])) for other in others}
    return sorted(sorted(others, key=lambda other: (-cosine[other], other))[:number])


def closed_form(rows, number, regularisation=None):
    """Return neighbours and weights by numpy, in float64: −p / p_own, p the inverse's last column."""
    gram = dense(rows).T @ dense(rows)
    near, weights = np.full((len(gram), number), NOBODY), np.zeros((len(gram), number))
    for item in range(len(gram)):
        found = neighbourhood(gram, item, number)
        if found:
            counts = gram[found, found]
            mean = counts.mean()
            added = USUAL_PENALTY.base + USUAL_PENALTY.share * counts * mean / (mean + USUAL_PENALTY.half)
            whole = [*found, item]
            added = added if regularisation is None else np.full(len(found), regularisation)
            matrix = gram[np.ix_(whole, whole)] + np.diag([*added, 1])
            column = np.linalg.inv(matrix)[:, -1]
            near[item, : len(found)], weights[item, : len(found)] = found, -column[:-1] / column[-1]
    return near, weights


@pytest.mark.parametrize("regularisation", [None, 20.0])
@pytest.mark.parametrize("number", [1, K, 49, 200])
def test_neighbours_and_weights_are_the_closed_form(rows, number, regularisation):
    shared = train(EASE(neighbours=number, regularisation=regularisation), rows)
    near, weights = closed_form(rows, number, regularisation)
    assert np.array_equal(shared[NEIGHBOURS], near)
    assert np.abs(shared[WEIGHTS] - weights).max() < 1e-6


def test_with_every_item_as_a_neighbour_it_is_ease_over_all_items(tables):
    full = tables.random_table(4, users=60, items=12)  # one user has every item
    few, whole = (EASE(neighbours=number, regularisation=7.0) for number in (20, "all"))
    assert np.abs(scores(few, train(few, full), full) - scores(whole, train(whole, full), full)).max() < 1e-5


def test_a_small_case_by_hand(tables):
    """Two items that one user has: one neighbour, 1 / (1 + 1)."""
    model = EASE(neighbours=3, regularisation=1.0)
    shared = train(model, tables.table({"u": "ab"}, catalogue="abc"))
    assert {name: array.tolist() for name, array in shared.items()} == {
        "neighbours": [[1, -1, -1], [0, -1, -1], [-1, -1, -1]],
        "weights": [[0.5, 0, 0], [0.5, 0, 0], [0, 0, 0]],
        "borders": [[-1, -1], [-1, -1], [-1, -1]],
    }
    assert model.score(model.prepare(shared), {}, np.array([0], np.int32)).tolist() == [0, 0.5, 0]


def test_what_is_counted_beforehand_and_what_is_not_gives_the_same_bytes(rows, model, monkeypatch):
    assert ease_columns._is_dense(rows)
    found = train(model, rows)
    monkeypatch.setattr(ease_columns, "_is_dense", lambda rows: False)
    assert contents(train(model, rows)) == contents(found)


def test_columns_solved_in_many_parts_have_the_same_bytes(sparse, model, monkeypatch):
    whole, counted = contents(train(model, sparse)), []
    count = ease_columns._pairs_within
    monkeypatch.setattr(ease_columns, "_pairs_within", lambda *given: counted.append(len(given[0])) or count(*given))
    monkeypatch.setattr(ease_columns, "_PAIRS_AT_ONCE", 100)
    assert contents(train(model, sparse)) == whole
    assert len(counted) > 10
    assert max(counted) * K * (K + 1) // 2 <= 100 + K * (K + 1) // 2


def test_equal_cosines_go_by_id(tables):
    """Each of five items goes with the first in the same way: the earliest two are its neighbours."""
    shared = train(EASE(neighbours=2), tables.table({user: f"a{user}" for user in "fdbec"}))
    assert shared[NEIGHBOURS][0].tolist() == [1, 2]


@pytest.mark.parametrize("largest", [3, 2**16, 2**31 - 1])
def test_cosines_are_compared_exactly_whatever_the_counts(largest):
    generator = np.random.default_rng(largest)
    for _ in range(300):
        owners, others = (int(n) for n in generator.integers(max(1, largest - 50), largest, 2, endpoint=True))
        count, other = (int(generator.integers(1, most, endpoint=True)) for most in (owners, others))
        for near in {other, min(others, max(1, round(count * (others / owners) ** 0.5)))}:
            one, two = Fraction(count**2, owners), Fraction(near**2, others)
            assert is_nearer(count, owners, near, others) == (one > two) - (one < two)
    assert is_nearer(2, 4, 3, 9) == 0


def test_counts_that_float64_can_not_tell_apart_are_told_apart():
    largest = 2**31 - 1
    assert (largest**2 / largest) / ((largest - 1) ** 2 / (largest - 2)) == pytest.approx(1, abs=1e-15)
    assert is_nearer(largest, largest, largest - 1, largest - 2) == -1


@pytest.mark.parametrize("seed", range(6))
def test_amending_gives_the_bytes_of_training_on_changed_data(model, rows, seed):
    after, change = pruned(rows, seed)
    before_shared, after_shared = train(model, rows), train(model, after)
    assert contents(before_shared) != contents(after_shared)
    assert contents(model.amended(before_shared, change, Effort(2))) == contents(after_shared)
    assert contents(model.amended(after_shared, reverse(change, rows), Effort())) == contents(before_shared)


def test_an_item_that_nobody_has_any_more_keeps_nothing_where_items_change_places(tables):
    rows, model = tables.table({"u": "abc", "v": "ab", "w": "c"}), EASE(neighbours=2)
    after = rows.without(["u", "w"]).with_items(Ids.of(["c", "b", "a"]))
    found = model.amended(train(model, rows), Change.between(rows, after), Effort())
    assert contents(found) == contents(train(model, after))


@pytest.mark.parametrize("order", ["as it was", "turned round"])
def test_amending_follows_items_that_come_go_and_change_places(model, tables, order):
    rows = tables.random_table(7, users=40, items=30)
    after, change = pruned(rows, 2)
    (after,) = over_own_items([after])
    if order == "turned round":
        after = after.with_items(Ids.of(after.items.texts()[::-1]))
    given = change.given.with_items(after.items)
    found = model.amended(train(model, rows), Change(change.taken, given, after), Effort())
    assert contents(found) == contents(train(model, after))
    back = model.amended(found, Change(given, change.taken, rows), Effort())
    assert contents(back) == contents(train(model, rows))


class TestAnItemThatComesIn:
    """Item n has b nearer than c until z, who has c alone, leaves: then c, with the same pairs, is the nearer one."""

    @pytest.fixture
    def rows(self, tables):
        return tables.table({"u": "bn", "v": "bn", "w": "cn", "x": "cn", "y": "b", "z": "c", "zz": "c"})

    def near(self, shared):
        return dict(zip("bcn", shared[NEIGHBOURS][:, 0].tolist(), strict=True))

    def test_it_does(self, rows):
        model = EASE(neighbours=1)
        before, left = train(model, rows), rows.without(["z", "zz"])
        assert self.near(before)["n"] == 0
        found = model.amended(before, taken(rows, ["z", "zz"]), Effort())
        assert self.near(found)["n"] == 1
        assert contents(found) == contents(train(model, left))

    def test_whoever_looks_only_at_columns_that_held_it_before_is_wrong(self, rows, monkeypatch):
        """The rule that this module does without: solve the person's items and what held one of them."""
        model = EASE(neighbours=1)
        before = train(model, rows)
        monkeypatch.setattr(ease_columns, "coming_in", lambda items, *rest: np.zeros(3, bool))
        found = model.amended(before, taken(rows, ["z", "zz"]), Effort())
        assert contents(found) != contents(train(model, rows.without(["z", "zz"])))


@pytest.fixture(scope="module")
def sparse():
    rows = made_up(8, users=300, items=500)
    return rows.select(np.random.default_rng(8).random(len(rows)) < 0.03)


@pytest.mark.parametrize("seed", range(3))
def test_a_column_that_keeps_its_neighbours_has_the_bytes_of_selecting_them_anew(model, sparse, seed):
    after, change = pruned(sparse, seed)
    before_shared, after_shared = train(model, sparse), train(model, after)
    assert contents(model.amended(before_shared, change, Effort())) == contents(after_shared)
    assert contents(model.amended(after_shared, reverse(change, sparse), Effort())) == contents(before_shared)


def test_whoever_keeps_a_neighbour_that_more_people_have_is_wrong(tables, monkeypatch):
    """Item n has b nearer than c until more people have b alone: then c, with the same pairs, is the nearer one."""
    model, few = EASE(neighbours=1), {"u": "bn", "v": "bn", "w": "cn", "x": "cn", "y": "c"}
    rows = tables.table({**few, "z": "b", "zz": "b"})
    before, change = train(model, rows.without(["z", "zz"])), added(rows, ["z", "zz"])
    assert contents(model.amended(before, change, Effort())) == contents(train(model, rows))
    assert before[NEIGHBOURS][2, 0] == 0
    monkeypatch.setattr(ease_columns, "_reached", lambda touched, made, table: (np.arange(3), touched.items))
    assert contents(model.amended(before, change, Effort())) != contents(train(model, rows))


class TestTheEstimate:
    """How much work a change is said to be, in units of training from the start, beside the columns that it reaches."""

    @pytest.mark.parametrize("kind", ["dense", "sparse"])
    def test_it_is_within_a_factor_of_two_of_the_columns_solved(self, kind, rows, sparse, monkeypatch):
        table = {"dense": rows, "sparse": sparse}[kind]
        assert ease_columns._is_dense(table) == (kind == "dense")
        model, solved = EASE(neighbours=K), []
        before, kept = train(model, table), model._form._weights
        monkeypatch.setattr(model._form, "_weights", lambda near, *rest: solved.extend(near) or kept(near, *rest))
        monkeypatch.setattr(ease_columns, "_ADDITIONS_OF_A_ROW", 0)
        for user in table.users.texts()[:20]:
            change = taken(table, [user])
            solved.clear()
            model.amended(before, change, Effort())
            pairs = count_pairs(change.after.user_starts)
            said = model.samples_amended(change.after, change) - (pairs if kind == "dense" else 0)
            columns = len(set(solved)) * 0.75 * model._form._work(1, len(table.items))
            assert columns / 2 <= said <= 2 * columns

    def test_it_looks_at_some_columns_only(self, rows, monkeypatch):
        monkeypatch.setattr(ease_columns, "_SAMPLED", 25)
        change = taken(rows, rows.users.texts()[:1])
        some = EASE(neighbours=K).samples_amended(change.after, change)
        monkeypatch.setattr(ease_columns, "_SAMPLED", 1000)
        assert some == pytest.approx(EASE(neighbours=K).samples_amended(change.after, change), rel=0.5)

    def test_a_change_of_nothing_is_no_work(self, rows):
        assert EASE(neighbours=K).samples_amended(rows, Change(nobody(rows), nobody(rows), rows)) == 0


def test_only_the_columns_that_a_change_reaches_are_solved(tables, monkeypatch):
    """Two shops that share nobody: who leaves one moves no column of the other."""
    rows = tables.table({"a": "abc", "b": "abd", "c": "acd", "x": "xyz", "y": "wxy", "z": "wz"})
    model, solved = EASE(neighbours=2), []
    before = train(model, rows)
    kept = model._form._weights
    monkeypatch.setattr(model._form, "_weights", lambda columns, *rest: solved.extend(columns) or kept(columns, *rest))
    found = model.amended(before, taken(rows, ["z"]), Effort())
    assert {rows.items[int(column)] for column in solved} == set("wxyz")
    assert contents(found) == contents(train(EASE(neighbours=2), rows.without(["z"])))


def test_taking_everyone_away_gives_the_start(model, rows):
    emptied = model.amended(train(model, rows), taken(rows, rows.users.texts()), Effort())
    assert contents(emptied) == contents(model.start(rows.items, 0))


def test_a_change_of_nothing_changes_nothing(model, rows):
    shared, nothing = train(model, rows), Change(nobody(rows), nobody(rows), rows)
    assert model.provisional(shared, nothing) is shared
    assert contents(model.amended(shared, nothing, Effort())) == contents(shared)


def test_what_is_served_in_between_is_what_is_trained_without_them(model, rows):
    gone = rows.users.texts()[5:9]
    served = model.provisional(train(model, rows), taken(rows, gone))
    assert contents(served) == contents(train(model, rows.without(gone)))


def test_reasons_add_up_to_the_score(rows):
    for model in (EASE(neighbours=K), EASE(neighbours="all", regularisation=9.0)):
        prepared = model.prepare(train(model, rows))
        owned = rows.items_at(4)
        found = model.score(prepared, {}, owned)
        for item in range(len(rows.items)):
            reasons = model.reasons(prepared, owned, item)
            assert reasons.shape == owned.shape
            assert float(reasons.sum()) == pytest.approx(float(found[item]), abs=1e-5)
            assert all(reasons[owned == item] == 0)


def test_the_samples_announced_are_the_samples_done(model, tables, rows):
    done = []
    shared = model.train(model.start(rows.items, 0), tables.stage(rows), Effort(2, done.append)).shared
    assert sum(done) == model.samples(rows, epochs=5)
    after, change = pruned(rows, 1)
    done.clear()
    model.amended(shared, change, Effort(1, done.append))
    assert sum(done) == model.samples_amended(after, change)
    assert model.samples(nobody(rows), 5) == 0


def test_one_person_takes_less_than_everyone(tables):
    rows = tables.table({f"u{user:03d}": [f"i{(user * 7 + n) % 300:03d}" for n in range(3)] for user in range(400)})
    change = taken(rows, [rows.users[3]])
    model = EASE(neighbours=40)
    assert model.samples_amended(rows, change) < model.samples(rows, 1) / 5


def test_a_catalogue_beyond_memory_is_refused_before_any_work(model, tables, rows, monkeypatch):
    shared = train(model, rows)
    monkeypatch.setattr(memory, "available_memory", lambda: 50 * K * 16 - 1)
    for attempt in (
        lambda: model.start(rows.items, 0),
        lambda: model.train(shared, tables.stage(rows), Effort()),
        lambda: model.amended(shared, taken(rows, ["u0003"]), Effort()),
    ):
        with pytest.raises(Refused, match=r"50 items needs .* GiB .*give a smaller neighbours, .*min_interactions"):
            attempt()


def test_100_000_items_fit_where_all_pairs_would_take_220_gibibytes(monkeypatch):
    monkeypatch.setattr(memory, "available_memory", lambda: 2 * 2**30)
    items = Ids.of(str(number) for number in range(100_000))
    assert EASE(neighbours=100).start(items, 0)[NEIGHBOURS].shape == (100_000, 100)
    with pytest.raises(Refused, match=r"give neighbours=100"):
        EASE(neighbours="all").start(items, 0)


@pytest.mark.parametrize("regularisation", [1e-300, 1e-12, 0.009])
def test_a_regularisation_that_may_be_too_small_once_somebody_has_left_is_refused_from_the_start(regularisation):
    with pytest.raises(WrongSetting, match=r"`regularisation` is at least 0\.01: give a larger one"):
        EASE(neighbours=2, regularisation=regularisation)
    EASE(neighbours="all", regularisation=regularisation)


def test_the_least_regularisation_solves_any_counts():
    """Of two neighbours that the same two thousand million people have, and of many that the same few have."""
    for size, count in ((2, 2**31 - 1), (200, 10**7)):
        matrix, weights = np.full((size, size), float(count)), np.full(size, float(count))
        matrix.ravel()[:: size + 1] += LEAST_BASE
        _solve(matrix, weights)
        assert np.isfinite(weights).all()


@pytest.mark.parametrize("wrong", [0, -3, 2.5, "some", 10_001])
def test_neighbours_are_a_number_or_all(wrong):
    with pytest.raises(WrongSetting, match="neighbours"):
        EASE(neighbours=wrong)
