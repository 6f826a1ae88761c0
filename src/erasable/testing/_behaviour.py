"""Tests of every model's behaviour: training, user rows, scores, and items and users that come and go."""

import inspect
import json
import os
import subprocess
import sys
from collections.abc import Callable

import numpy as np
import pytest

from erasable.data.ids import Ids
from erasable.data.interactions import Interactions, RatingScale
from erasable.fingerprint import of_arrays
from erasable.models import calls
from erasable.models.base import Arrays, Effort, prepared_by, probability_by
from erasable.testing._exactness import Abilities
from erasable.testing._features import WithFeatures
from erasable.testing._suite import (
    Suite,
    bytes_by_user,
    checkerboard,
    contents,
    contents_of,
    made_up,
    represent,
    row_at,
    scorer,
    scores,
    stage,
    table,
    train,
)

_SCALE = RatingScale(1, 5)
_ROWS = made_up(5, users=30, items=25)
_OTHERS = made_up(6, users=40, items=25)
_FURTHER = Ids.of([*_ROWS.items, "a further one", "zz"])
_GONE = {
    "the first": ["u0000"],
    "one in the middle": ["u0014"],
    "the last": ["u0029"],
    "every second": _ROWS.users.texts()[::2],
    "all but the first": _ROWS.users.texts()[1:],
    "all but one in the middle": [user for user in _ROWS.users if user != "u0014"],
}
_FEW: dict[str, dict[str, dict[str, float]]] = {
    "one interaction": {"u": {"a": 1.0}},
    "one user with everything": {"u": {"a": 1.0, "b": 1.0, "c": 1.0}},
    "two users with everything": {"u": {"a": 1.0, "b": 1.0, "c": 1.0}, "v": {"a": 1.0, "b": 1.0, "c": 1.0}},
    "one item with an extreme each": {"u": {"a": 1.0}, "v": {"a": 5.0}},
    "a user who rates 0 alone": {"u": {"a": 0.0, "b": 0.0}, "v": {"a": 5.0}},
}


class _Training(Suite):
    """Tests of `start`, `train` and `score`."""

    def test_it_learns_a_checkerboard(self) -> None:
        """Users like the items of their own colour; two of each user's twenty items are left out of training."""
        rows, left_out = checkerboard()
        for user, found in enumerate(scores(self.model, self.learned(rows), rows)):
            wrong = [item for item in range(len(rows.items)) if item % 2 != user % 2]
            assert found[left_out[user]].min() > found[wrong].max()

    def test_its_settings_can_be_written_and_read(self) -> None:
        """A workspace keeps settings as JSON."""
        written = json.dumps(self.model.settings.model_dump(mode="json"), allow_nan=False)
        assert type(self.model)(**json.loads(written)).settings == self.model.settings

    def test_the_same_seed_gives_the_same_bytes_whatever_was_trained_before(self) -> None:
        """Train again with something else in between, and with a new model of the same settings."""
        first = contents_of(train(self.model, _ROWS, epochs=2, seed=3))
        train(self.model, made_up(9, users=20, items=30), epochs=3, seed=8)
        assert contents_of(train(self.model, _ROWS, epochs=2, seed=3)) == first
        assert contents_of(train(self.made_anew(), _ROWS, epochs=2, seed=3)) == first

    def test_an_item_starts_from_the_seed_and_its_id_alone(self) -> None:
        """More items, or another order of items, do not change how an item starts."""
        extended = self.model.extended(self.model.start(_ROWS.items, 3), _FURTHER, 3)
        assert contents(extended) == contents(self.model.start(_FURTHER, 3))
        turned = self.model.start(Ids.of(_ROWS.items.texts()[::-1]), 3)
        for name, array in self.model.start(_ROWS.items, 3).items():
            if array.shape[:1] == (len(_ROWS.items),) and array.shape[1:] != (len(_ROWS.items),):
                assert np.array_equal(turned[name][::-1], array)

    def test_training_never_changes_its_start(self) -> None:
        """Nothing is changed in place, and what is returned is a new array."""
        start = self.model.start(_ROWS.items, 0)
        before = contents(start)
        trained = train(self.model, _ROWS, start=start)
        assert contents(start) == before
        assert contents(trained.shared) != before
        assert trained.shared.keys() == start.keys()
        assert not any(np.shares_memory(array, trained.shared[name]) for name, array in start.items())

    def test_what_comes_back_are_plain_numbers(self) -> None:
        """Arrays of numbers, contiguous and read-only, as checkpoints keep them."""
        trained = train(self.model, _ROWS)
        for array in (*trained.shared.values(), *trained.rows.values()):
            assert array.dtype.kind in "fiu"
            assert array.flags.c_contiguous
            assert not array.flags.writeable

    def test_rows_that_are_trained_are_like_those_that_are_represented(self) -> None:
        """There is one for each user of the stage, or none at all."""
        trained = self.model.train(self.model.start(_ROWS.items, 0), stage(_ROWS), Effort())
        like = represent(self.model, trained.shared, stage(_ROWS), Effort())
        expected = {name: array.shape for name, array in like.items()} if self.model.trains_rows else {}
        assert {name: array.shape for name, array in trained.rows.items()} == expected

    def test_a_stage_can_start_from_what_another_returned(self) -> None:
        """A later stage trains on, if the model can be learned in a chain; the earlier result stays unchanged."""
        first = train(self.model, _ROWS)
        before = contents_of(first)
        further = contents_of(train(self.model, _ROWS, start=first.shared, position=1))
        assert further != before or "laser" not in self.model.strategies
        assert contents_of(first) == before

    def test_without_interactions_the_shared_parameters_stay_as_they_are(self) -> None:
        """A stage whose users were all forgotten changes nothing."""
        nobody = table({}, catalogue=["a", "b", "c"])
        start = self.model.start(nobody.items, 0)
        trained = self.model.train(start, stage(nobody, scale=_SCALE, epochs=3), Effort(2))
        assert contents(trained.shared) == contents(start)
        assert not any(np.shares_memory(array, start[name]) for name, array in trained.shared.items())
        assert all(len(array) == 0 for array in trained.rows.values())
        assert not any(array.flags.writeable for array in trained.shared.values())

    def test_scores_are_finite_for_everyone_and_everything(self) -> None:
        """There is one float32 for each item."""
        for found in scores(self.model, train(self.model, _ROWS, epochs=5), _ROWS):
            assert found.shape == (len(_ROWS.items),)
            assert found.dtype == np.float32
            assert np.isfinite(found).all()

    def test_probabilities_lie_between_0_and_1_in_the_order_of_scores(self) -> None:
        """The sigmoid of scores, or the model's own probabilities."""
        found = scores(self.model, train(self.model, _ROWS, epochs=5), _ROWS)[2]
        likely = probability_by(self.model, found)
        assert likely.shape == found.shape
        assert (likely > 0).all()
        assert (likely < 1).all()
        assert (np.diff(likely[np.argsort(found)]) >= 0).all()

    @pytest.mark.parametrize("few", _FEW.values(), ids=_FEW)
    def test_the_smallest_tables_train_to_finite_numbers(self, few: dict[str, dict[str, float]]) -> None:
        """A user with every item, and an item without users, do no harm."""
        rows = table(few, catalogue="abc")
        trained = train(self.model, rows, epochs=20)
        assert trained.all_finite()
        assert all(np.isfinite(found).all() for found in scores(self.model, trained, rows))

    def test_a_catalogue_of_one_item_works(self) -> None:
        """Then nobody lacks any item."""
        rows = table({"u": "a", "v": "a"})
        assert scores(self.model, train(self.model, rows, epochs=3), rows)[0].shape == (1,)

    def test_without_any_item_there_is_nothing_to_score(self) -> None:
        """Once everyone is forgotten there may be no items either."""
        start = self.model.start(Ids.of([]), 0)
        prepared = prepared_by(self.model, start)
        newcomer = row_at(self.model.newcomers(prepared, Ids.of(["new"]), Ids.of([]), 0), 0)
        assert self.model.score(prepared, newcomer, np.empty(0, np.int32)).shape == (0,)

    def test_scores_do_not_depend_on_who_was_scored_before(self) -> None:
        """Score in turn, backwards and each alone; returned arrays belong to the caller, and nothing else changes."""
        trained = train(self.model, _ROWS, epochs=2)
        before, users = contents_of(trained), range(len(_ROWS.users))
        score = scorer(self.model, trained.shared)
        in_turn = [score(row_at(trained.rows, user), _ROWS.items_at(user)) for user in users]
        backwards = [score(row_at(trained.rows, user), _ROWS.items_at(user)).tobytes() for user in users[::-1]]
        alone = [scorer(self.model, trained.shared)(row_at(trained.rows, u), _ROWS.items_at(u)) for u in users]
        assert [one.tobytes() for one in in_turn] == [one.tobytes() for one in alone] == backwards[::-1]
        in_turn[0][:] = 0
        assert contents_of(trained) == before

    @pytest.mark.parametrize("threads", [2, 3])
    def test_threads_do_not_change_a_byte_of_training(self, threads: int) -> None:
        """Threads affect only speed."""
        several, one = (contents_of(train(self.model, _ROWS, count, epochs=3)) for count in (threads, 1))
        assert several == one

    def test_another_process_gives_the_same_bytes(self) -> None:
        """Nothing depends on Python's own hashes, on addresses or on a clock."""
        found = train(self.model, _ROWS, epochs=2, seed=1)
        there = _digest_elsewhere(type(self.model), self.model.settings.model_dump(mode="json"))
        assert there == of_arrays({**found.shared, **found.rows})


class _Rows(Suite):
    """Tests of `represent` and `newcomers`: a row comes from shared parameters and the user's own data alone."""

    def test_everyone_has_a_finite_row(self) -> None:
        """Contiguous, read-only, and separate from the shared parameters."""
        shared = self._shared()
        found = represent(self.model, shared, stage(_ROWS, scale=_SCALE, epochs=2), Effort())
        for array in found.values():
            assert len(array) == len(_ROWS.users)
            assert array.flags.c_contiguous
            assert not array.flags.writeable
            assert np.isfinite(array).all()
            assert not any(np.shares_memory(array, other) for other in shared.values())

    @pytest.mark.parametrize("gone", _GONE.values(), ids=_GONE)
    def test_nobody_s_leaving_moves_a_byte_of_the_others(self, gone: list[str]) -> None:
        """The row of everyone who stays keeps its bytes, even when only one stays."""
        everyone, left = self._solved(_ROWS), _ROWS.without(users=gone)
        assert self._solved(left) == {user: everyone[user] for user in left.users}

    def test_nobody_else_s_data_moves_a_byte(self) -> None:
        """Others come and change; only a user's own data changes the user's own row."""
        before = self._solved(_ROWS)
        after = self._solved(
            _changed({"a first": {"i003": 2.0}, "u0014": {"i002": 1.0}, "u0010x": {"i000": 5.0}, "z": {"i001": 4.0}})
        )
        others = before.keys() - {"u0014"}
        assert {user: after[user] for user in others} == {user: before[user] for user in others}
        assert all(before["u0014"][name] != after["u0014"][name] for name in before["u0014"])

    def test_neither_threads_nor_the_place_in_a_chain_change_a_byte(self) -> None:
        """Solve on several threads, at another position, and once more with others in between."""
        first = self._solved(_ROWS)
        assert self._solved(_ROWS, threads=2) == self._solved(_ROWS, threads=5) == first
        assert self._solved(_ROWS, position=7) == first
        represent(self.model, self._shared(), stage(made_up(9, users=8, items=25), epochs=4, seed=8), Effort(2))
        assert self._solved(_ROWS) == first

    def test_a_model_made_anew_and_parameters_that_can_be_written_give_the_same_rows(self) -> None:
        """The model keeps no state between calls."""
        writable = {name: array.copy() for name, array in self._shared().items()}
        found = represent(self.made_anew(), writable, stage(_ROWS, scale=_SCALE, epochs=2, seed=3), Effort())
        assert bytes_by_user(found, _ROWS.users) == self._solved(_ROWS)

    def test_what_an_item_is_called_is_not_looked_at(self) -> None:
        """Items are found by number."""
        names = Ids.of([f"x{item}" for item in _ROWS.items])
        renamed = Interactions(_ROWS.users, names, _ROWS.user_index, _ROWS.item_index, _ROWS.rating)
        assert self._solved(renamed) == self._solved(_ROWS)

    def test_solving_changes_nothing_in_place(self) -> None:
        """Shared parameters and the table stay as they are."""
        shared = {name: array.copy() for name, array in self._shared().items()}
        before, columns = contents(shared), _columns(_ROWS)
        represent(self.model, shared, stage(_ROWS, scale=_SCALE, epochs=2), Effort(2))
        assert contents(shared) == before
        assert _columns(_ROWS) == columns

    def test_nobody_has_no_rows(self) -> None:
        """Without people there are rows of length 0."""
        nobody = _ROWS.without(users=_ROWS.users.texts())
        found = represent(self.model, self._shared(), stage(nobody, scale=_SCALE), Effort(2))
        assert all(len(array) == 0 for array in found.values())

    @pytest.mark.parametrize("scale", [RatingScale(0, 5), RatingScale(0, 100)], ids=str)
    def test_ratings_at_the_low_end_give_finite_rows(self, scale: RatingScale) -> None:
        """Ratings of 0 alone."""
        zeros = np.zeros(len(_ROWS), np.float32)
        rows = Interactions(_ROWS.users, _ROWS.items, _ROWS.user_index, _ROWS.item_index, zeros)
        found = represent(self.model, self._shared(), stage(rows, scale=scale, epochs=20), Effort())
        assert all(np.isfinite(array).all() for array in found.values())

    def test_a_newcomer_s_row_depends_on_the_seed_and_the_own_id_alone(self) -> None:
        """Neither other users nor the learned parameters change it."""
        some = Ids.of(["u0007", "nobody knows", "u0003"])
        shared = self._shared()
        twice = {name: array * 2 for name, array in shared.items()}
        everyone, few, otherwise = (
            self._newcomers(*asked) for asked in ((shared, _ROWS.users), (shared, some), (twice, some))
        )
        assert {user: everyone[user] for user in ("u0003", "u0007")} == {user: few[user] for user in ("u0003", "u0007")}
        assert otherwise == few

    def test_newcomers_have_rows_like_those_that_are_solved_and_can_be_scored(self) -> None:
        """Their scores are finite."""
        shared = self._shared()
        found = self.model.newcomers(prepared_by(self.model, shared), _ROWS.users, _ROWS.items, 3)
        like = represent(self.model, shared, stage(_ROWS, scale=_SCALE), Effort())
        assert {name: (array.shape, array.dtype) for name, array in found.items()} == {
            name: (array.shape, array.dtype) for name, array in like.items()
        }
        assert np.isfinite(scorer(self.model, shared)(row_at(found, 0), np.empty(0, np.int32))).all()

    def _shared(self) -> Arrays:
        """Return shared parameters that other users shaped."""
        return train(self.model, _OTHERS, epochs=3).shared

    def _solved(self, rows: Interactions, threads: int = 1, position: int = 0) -> dict[str, dict[str, bytes]]:
        at = stage(rows, scale=_SCALE, epochs=2, seed=3, position=position)
        return bytes_by_user(represent(self.model, self._shared(), at, Effort(threads)), rows.users)

    def _newcomers(self, shared: Arrays, users: Ids) -> dict[str, dict[str, bytes]]:
        return bytes_by_user(self.model.newcomers(prepared_by(self.model, shared), users, _ROWS.items, 3), users)


class _Changes(Suite):
    """Tests of items and users that come and go, and of what that costs."""

    def test_further_items_leave_what_is_known_and_begin_as_at_the_start(self) -> None:
        """The parameters of known items keep their values and places, unless they are among `rounded_anew`."""
        trained, start = train(self.model, _ROWS, epochs=2).shared, self.model.start(_FURTHER, 3)
        before = contents(trained)
        extended = calls.extended(self.model, trained, _FURTHER, 3)
        assert contents(trained) == before
        assert extended.keys() == trained.keys()
        for name, array in extended.items():
            known = array[tuple(slice(len(_ROWS.items) if size == len(_FURTHER) else size) for size in array.shape)]
            assert np.allclose(known, trained[name], rtol=1e-6 if name in self.rounded_anew else 0, atol=0)
            assert np.array_equal(array[len(_ROWS.items) :], start[name][len(_ROWS.items) :]) or len(array) != len(
                _FURTHER
            )
            assert array.flags.c_contiguous
            assert not array.flags.writeable

    def test_an_extended_model_can_train_on(self) -> None:
        """A later stage brings items."""
        extended = self.model.extended(train(self.model, _ROWS).shared, _FURTHER, 0)
        assert train(self.model, _OTHERS.with_items(_FURTHER), start=extended, position=1).all_finite()

    def test_work_is_counted_in_whole_numbers_and_more_is_never_less(self) -> None:
        """No users are no work."""
        people = [_ROWS.of_users(_ROWS.users.texts()[:count]) for count in (0, 1, 2, 10, 29, 30)]
        amounts = [self.model.samples(rows, 2) for rows in people]
        assert all(isinstance(amount, int) for amount in amounts)
        assert amounts == sorted(amounts)
        assert amounts[0] == 0 < amounts[-1]
        assert self.model.samples(_ROWS, 1) <= amounts[-1] <= self.model.samples(_ROWS, 20)

    def test_what_is_told_while_training_adds_up_to_what_was_counted(self) -> None:
        """So that a progress bar ends where it should."""
        some = _ROWS.without(users=["u0000"])  # who has everything may count for less
        start = self.model.start(some.items, 0)
        at = stage(some, scale=_SCALE, epochs=3)
        assert _told(lambda effort: self.model.train(start, at, effort)) == self.model.samples(some, 3)


class Behaviour(_Training, _Rows, _Changes, Abilities, WithFeatures):
    """Tests that the methods of a model are pure functions of seed, ids and the data that they are given.

    It learns a checkerboard, gives the same bytes on any thread and in another process, and solves everyone's row from
    their own data alone.

    Attributes
    ----------
    model : Model
        The model, with settings that are fast and yet learn.
    rounded_anew : frozenset of str
        Shared arrays in which new items may change the last bits of known values; none for most models.
    left_in_between : float
        The share of someone's influence that `provisional` may leave in the scores of others; 0.1 by default.
    other_values : dict
        Another value for a setting, where the suite finds none by itself.

    Examples
    --------
    >>> from erasable import ALS
    >>> class TestMine(Behaviour):
    ...     model = ALS(factors=4, epochs=3)
    """


def _told(work: Callable[[Effort], object]) -> int:
    """Return the total progress that some work reports."""
    done: list[int] = []
    work(Effort(2, done.append))
    return sum(done)


def _changed(ratings: dict[str, dict[str, float]]) -> Interactions:
    """Return the rows with the items of some users replaced."""
    coming = table(ratings, catalogue=_ROWS.items).with_items(_ROWS.items)
    return Interactions.merge([_ROWS.without(users=ratings), coming])


def _columns(rows: Interactions) -> list[bytes]:
    return [column.tobytes() for column in (rows.user_index, rows.item_index, rows.rating)]


_ELSEWHERE = """
import importlib.util, json, sys
module, name, file, settings, path = json.loads(sys.argv[1])
sys.path[:] = path
try:
    found = importlib.import_module(module)
except ImportError:
    spec = importlib.util.spec_from_file_location(module, file)
    found = sys.modules[module] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(found)
from erasable.fingerprint import of_arrays
from erasable.testing._suite import train
from erasable.testing._suite import made_up
trained = train(getattr(found, name)(**settings), made_up(5, users=30, items=25), epochs=2, seed=1)
print(of_arrays({**trained.shared, **trained.rows}))
"""


def _digest_elsewhere(kind: type, settings: dict[str, object]) -> str:
    """Train in a process of its own, with other hashes, and return the digest of all arrays."""
    facts = json.dumps([kind.__module__, kind.__name__, inspect.getsourcefile(kind), settings, sys.path])
    environment = {**os.environ, "PYTHONHASHSEED": "1"}
    command = [sys.executable, "-P", "-c", _ELSEWHERE, facts]
    answer = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)  # noqa: S603 - ours
    assert answer.returncode == 0, answer.stderr
    return answer.stdout.strip()
