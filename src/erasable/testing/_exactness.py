"""Tests of exactness in every way to learn a model, by any path; and of a model's optional abilities."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any, get_args

import numpy as np
import pytest
from numpy.typing import NDArray

from erasable.chain.plan import known_requests
from erasable.data.catalogue import over_own_items
from erasable.data.ids import Ids
from erasable.data.interactions import Interactions, RatingScale, Subject
from erasable.errors import WrongSetting
from erasable.models.base import (
    Amends,
    Arrays,
    Change,
    Effort,
    Explains,
    Model,
    Prepares,
    Subtracts,
    TellsSimilarItems,
    prepared_by,
)
from erasable.seeding import child_key
from erasable.testing._suite import (
    LearnedChain,
    Suite,
    as_rows,
    assert_same,
    bytes_by_user,
    checkerboard,
    config_of,
    contents,
    contents_of,
    forget,
    learn,
    learn_more,
    made_up,
    row_at,
    scorer,
    some_of,
    stage,
    table,
    timed,
    ways_of,
)

_SCALE = RatingScale(1, 5)


class InEveryWay(Suite):
    """Runs a test with a `way` argument once for each way to learn the model."""

    def pytest_generate_tests(self, metafunc: pytest.Metafunc) -> None:
        """Pass the model's ways to the tests that take one."""
        if "way" in metafunc.fixturenames and metafunc.cls is not None:
            metafunc.parametrize("way", ways_of(metafunc.cls.model))


class Exactness(InEveryWay):
    """Tests that after forgetting all is as if learned without.

    Names, bytes of every checkpoint, everyone's row and the holdout are compared, with every strategy of the model.

    Attributes
    ----------
    model : Model
        The model, with settings that are fast; two epochs are trained.

    Examples
    --------
    >>> from erasable import ALS
    >>> class TestMine(Exactness):
    ...     model = ALS(factors=4)
    """

    @pytest.mark.parametrize("seed", range(4))
    def test_after_any_requests_the_state_is_the_one_learned_without_them(self, way: str, seed: int) -> None:
        """Forget whole users and single interactions in several rounds, and compare after each."""
        rows = made_up(seed, users=8 + 4 * seed, items=10)
        config = config_of(self.model, way, holdout=0.3 * (seed % 2))
        learned = learn(rows, config, scale=_SCALE)
        positions = learned.positions
        for number in range(2):
            requests = _some_requests(rows, 10 * seed + number)
            rows = _remaining(rows, requests)
            learned = _forget_and_clean_up(learned, requests)
            assert_same(learned, learn(rows, config, positions, _SCALE))

    def test_all_interactions_of_a_person_one_by_one_are_the_whole_person(self, way: str) -> None:
        """Forget a user who has every item, one interaction at a time and all at once."""
        rows, config = made_up(3, users=9, items=6), config_of(self.model, way, holdout=0.3)
        learned = whole = learn(rows, config, scale=_SCALE)
        positions = learned.positions
        learned = LearnedChain(learned.state, learned.store.copy())
        for item in rows.items.texts():
            learned = _forget_and_clean_up(learned, [Subject("u0000", (item,))])
        assert_same(_forget_and_clean_up(whole, [Subject("u0000")]), learned)
        assert_same(learned, learn(rows.without(users=["u0000"]), config, positions, _SCALE))

    def test_the_order_of_requests_does_not_matter(self, way: str) -> None:
        """Forget two people in both orders, and at once."""
        rows, config = made_up(5, users=10, items=8), config_of(self.model, way, holdout=0.3)
        one, other = Subject("u0003"), Subject("u0000", ("i002",))
        ends = []
        for steps in ([[one], [other]], [[other], [one]], [[one, other]]):
            learned = learn(rows, config, scale=_SCALE)
            for requests in steps:
                learned = _forget_and_clean_up(learned, requests)
            ends.append((learned.names, learned.contents(), learned.rows()))
        assert ends[0] == ends[1] == ends[2]

    def test_everyone_can_be_forgotten_one_after_the_other(self, way: str) -> None:
        """Forget until nobody is left, and compare after each."""
        rows, config = made_up(6, users=6, items=7), config_of(self.model, way)
        learned = learn(rows, config, scale=_SCALE)
        positions = learned.positions
        for user in rows.users.texts():
            learned = _forget_and_clean_up(learned, [Subject(user)])
            rows = rows.without(users=[user])
            assert_same(learned, learn(rows, config, positions, _SCALE))
        assert learned.state.dataset.interactions == 0

    def test_with_times_the_state_is_the_one_learned_without_too(self, way: str) -> None:
        """Forget people and single interactions, after which the order of the others has no gap."""
        rows, config = timed(made_up(4, users=10, items=9), 4), config_of(self.model, way)
        learned = learn(rows, config, scale=_SCALE)
        positions, requests = learned.positions, _some_requests(rows, 4)
        learned = _forget_and_clean_up(learned, requests)
        assert_same(learned, learn(_remaining(rows, requests), config, positions, _SCALE))

    def test_a_person_s_own_order_counts_for_a_model_that_uses_time_and_for_no_other(self, way: str) -> None:
        """Only the order counts: the same people a year later are the same."""
        rows, config = timed(made_up(8, users=10, items=9), 8), config_of(self.model, way)
        times = np.nan_to_num(np.asarray(rows.time))
        other = replace(rows, time=100 - times)
        learned, otherwise = (learn(one, config, scale=_SCALE) for one in (rows, other))
        assert_same(learned, learn(replace(rows, time=times + 365), config, scale=_SCALE))
        if self.model.uses_time and learned.state.dataset.counts.learned.any():
            assert learned.names != otherwise.names
            assert learned.rows() != otherwise.rows()
        elif not self.model.uses_time:
            assert_same(learned, otherwise)

    def test_what_someone_taught_does_reach_the_bytes(self) -> None:
        """Bytes do depend on each person, so that equal bytes after forgetting mean something."""
        rows = made_up(7, users=10, items=8)
        config = config_of(self.model, ways_of(self.model)[0])
        learned = learn(rows, config, scale=_SCALE, declared=True)
        before, first = learned.contents(), learned.state.dataset.groups[0].users[0]
        assert before[0] != _forget_and_clean_up(learned, [Subject(first)]).contents()[0]


def _some_requests(rows: Interactions, seed: int) -> list[Subject]:
    """Draw two users; the second is forgotten in part."""
    one, other = some_of(rows.users.texts(), 2, seed, "who")
    own = sorted(item for _, item, _ in as_rows(rows.of_users([other])))
    return [Subject(one), Subject(other, tuple(some_of(own, (len(own) + 1) // 2, seed, "what")))]


def _remaining(rows: Interactions, requests: Sequence[Subject]) -> Interactions:
    whole = [request.user for request in requests if request.everything]
    pairs = [(request.user, item) for request in requests for item in request.items or ()]
    return rows.without(users=whole, pairs=pairs)


def _forget_and_clean_up(learned: LearnedChain, requests: Sequence[Subject]) -> LearnedChain:
    """Forget as an erasure does: the old checkpoints are destroyed afterwards."""
    after = forget(learned, known_requests(requests, learned.state.dataset), threads=2)
    learned.store.keep_only(after.names)
    return after


_EVENTS = ("more", "forget", "more", "forget")


class AnyPath(InEveryWay):
    """Tests that learning and forgetting in turn gives the same state as learning the final data.

    Attributes
    ----------
    model : Model
        The model, with settings that are fast; two epochs are trained.

    Examples
    --------
    >>> from erasable import ALS
    >>> class TestMine(AnyPath):
    ...     model = ALS(factors=4)
    """

    @pytest.mark.parametrize("seed", range(3))
    def test_any_order_of_learning_and_forgetting_gives_what_learning_the_outcome_gives(
        self, way: str, seed: int
    ) -> None:
        """Let people and items come and go, and compare after each event."""
        rows = made_up(seed, users=7, items=8)
        learned = learn(rows, config_of(self.model, way, holdout=0.3 * (seed % 2)), scale=_SCALE)
        for number, event in enumerate(_EVENTS[seed % 2 :]):
            if event == "more":
                coming = _some_that_come(10 * seed + number)
                rows, learned = _joined(rows, coming), learn_more(learned, coming, threads=2)
            else:
                people = some_of(rows.users.texts(), 1 + child_key(seed, "how many", number) % 3, seed, str(number))
                requests = known_requests([Subject(user) for user in people], learned.state.dataset)
                rows, learned = rows.without(users=people), forget(learned, requests, threads=2)
            learned.store.keep_only(learned.names)
            assert_same(learned, learn(rows, learned.state.dataset.config, learned.positions, _SCALE))


def _some_that_come(seed: int) -> Interactions:
    """Make up a table, some of whose users and items are known."""
    by_user: dict[str, dict[str, float]] = {}
    for user, item, rating in sorted(as_rows(made_up(100 + seed, users=6, items=7))):
        name, what = f"u{int(user[1:]) + 2 * (seed % 3):04d}", f"i{int(item[1:]) + seed % 3:03d}"
        by_user.setdefault(name, {})[what] = rating
    return table(by_user)


def _joined(rows: Interactions, coming: Interactions) -> Interactions:
    """Return the rows of both; of two rows of one pair the later is kept."""
    cells = {(user, item): rating for part in (rows, coming) for user, item, rating in as_rows(part)}
    by_user: dict[str, dict[str, float]] = {}
    for (user, item), rating in cells.items():
        by_user.setdefault(user, {})[item] = rating
    return table(by_user)


_ROWS = made_up(5, users=30, items=25)
_OTHERS = made_up(6, users=40, items=25)
_AFTER = {
    "nothing": _ROWS,
    "one goes": _ROWS.without(users=["u0004"]),
    "the one with every item goes": _ROWS.without(users=["u0000"]),
    "some in part": _ROWS.without(users=["u0003"], pairs=[("u0000", "i004"), ("u0000", "i009")]),
    "everyone goes": _ROWS.without(users=_ROWS.users.texts()),
}
_AT = stage(_OTHERS, scale=_SCALE, epochs=2)


class Abilities(Suite):
    """Tests of `Prepares`, `Amends`, `Subtracts`, `TellsSimilarItems`, `Explains` and `only_for_rows`."""

    def test_settings_that_reach_no_stage_change_no_byte_of_it(self) -> None:
        """Those of `only_for_rows`, and `epochs`, which the strategy divides among stages (`stage.epochs`)."""
        settings = self.model.settings
        trained = contents_of(self.model.train(self.model.start(_ROWS.items, 0), stage(_ROWS), Effort()))
        for name in sorted({"epochs", *settings.only_for_rows} & type(settings).model_fields.keys()):
            other = self._otherwise(name)
            found = other.train(other.start(_ROWS.items, 0), stage(_ROWS), Effort())
            assert contents_of(found) == trained, f"the setting {name!r} reaches a stage"

    def test_what_is_prepared_follows_from_the_shared_parameters_alone(self) -> None:
        """Earlier calls of `prepare` and `score` don't matter, and nothing is changed in place (`Prepares`)."""
        if isinstance(self.model, Prepares):
            several = [self._trained(rows) for rows in (_ROWS, _OTHERS)]
            several = [{name: array.copy() for name, array in one.items()} for one in several]
            before = [contents(one) for one in several]
            alone = [_judged(fresh, prepared_by(fresh, one)) for one in several for fresh in [self.made_anew()]]
            prepared = [self.model.prepare(one) for one in several]
            for _ in range(2):
                assert [_judged(self.model, one) for one in prepared] == alone
            assert alone[0] != alone[1]
            assert [contents(one) for one in several] == before

    @pytest.mark.parametrize("after", _AFTER.values(), ids=_AFTER)
    def test_to_amend_is_to_train_on_the_changed_data(self, after: Interactions) -> None:
        """Amending gives the same bytes, there and back, also when items come and go (`Amends`)."""
        if isinstance(self.model, Amends):
            (one,), (other,) = over_own_items([_ROWS]), over_own_items([after])
            for before, then in ((_ROWS, after), (after, _ROWS), (one, other), (other, one)):
                change, trained = Change.between(before, then), self._trained(before)
                known = contents(trained)
                assert contents(self.model.amended(trained, change, Effort(2))) == contents(self._trained(then))
                assert contents(trained) == known
                assert self.model.samples_amended(then, change) >= 0

    @pytest.mark.parametrize("after", _AFTER.values(), ids=_AFTER)
    def test_what_is_served_in_between_is_finite_and_changes_nothing(self, after: Interactions) -> None:
        """Until a change is trained (`Subtracts`)."""
        if isinstance(self.model, Subtracts):
            trained = self._trained(_ROWS)
            before = contents(trained)
            provisional = self.model.provisional(trained, Change.between(_ROWS, after))
            prepared = prepared_by(self.model, provisional)
            newcomer = row_at(self.model.newcomers(prepared, Ids.of(["new"]), _ROWS.items, 0), 0)
            score = scorer(self.model, provisional)
            assert all(np.isfinite(score(newcomer, after.items_at(user))).all() for user in range(len(after.users)))
            assert contents(trained) == before

    @pytest.mark.parametrize("after", _AFTER.values(), ids=_AFTER)
    def test_what_is_served_in_between_holds_nothing_of_who_leaves(self, after: Interactions) -> None:
        """Others are scored nearly as without them: at most `left_in_between` of their influence is left."""
        if isinstance(self.model, Subtracts):
            trained = self._trained(_ROWS)
            served = self.model.provisional(trained, Change.between(_ROWS, after))
            learned, found, wanted = (self._scores_of_others(one) for one in (trained, served, self._trained(after)))
            assert np.abs(found - wanted).sum() <= self.left_in_between * np.abs(learned - wanted).sum()

    def test_items_that_the_same_people_have_are_alike(self) -> None:
        """On a checkerboard the five most similar items have the item's colour (`TellsSimilarItems`)."""
        if isinstance(self.model, TellsSimilarItems):
            shared = self.learned(checkerboard()[0]).shared
            for number in (0, 7, 39):
                found = self.model.similar(shared, number)
                others = [item for item in np.argsort(-found, kind="stable") if item != number][:5]
                assert all(item % 2 == number % 2 for item in others)
                assert found[others].min() > 0

    def test_how_much_items_are_alike_follows_from_the_shared_parameters_alone(self) -> None:
        """One finite float32 for each item, whatever was called before (`TellsSimilarItems`)."""
        if isinstance(self.model, TellsSimilarItems):
            shared = self._trained(_ROWS)
            before, first = contents(shared), self.model.similar(shared, 3)
            assert first.shape == (len(_ROWS.items),)
            assert first.dtype == np.float32
            assert np.isfinite(first).all()
            kept = first.tobytes()
            first[:] = 0  # a returned array belongs to the caller
            self.model.similar(shared, 5)
            for other in (self.model, self.made_anew()):
                assert isinstance(other, TellsSimilarItems)
                assert other.similar(shared, 3).tobytes() == kept
            assert contents(shared) == before

    def test_reasons_add_up_to_the_score(self) -> None:
        """What the user's own items add sums to the score; an item adds nothing to itself (`Explains`)."""
        if isinstance(self.model, Explains):
            prepared, owned = prepared_by(self.model, self._trained(_ROWS)), _OTHERS.items_at(3)
            found = self.model.score(prepared, {}, owned)
            for item in range(len(_ROWS.items)):
                reasons = self.model.reasons(prepared, owned, item)
                assert reasons.shape == owned.shape
                assert reasons.dtype == np.float32
                assert np.isclose(reasons.sum(), found[item], rtol=1e-4, atol=1e-5)
                assert not reasons[owned == item].any()

    def _trained(self, rows: Interactions) -> Arrays:
        return self.model.train(self.model.start(rows.items, 0), stage(rows, scale=_SCALE), Effort()).shared

    def _scores_of_others(self, shared: Arrays) -> NDArray[np.float32]:
        """Return the scores, under shared parameters, of people whose data never change."""
        prepared = prepared_by(self.model, shared)
        rows = self.model.represent(prepared, _AT, Effort())
        people = range(len(_OTHERS.users))
        return np.stack([self.model.score(prepared, row_at(rows, user), _OTHERS.items_at(user)) for user in people])

    def _otherwise(self, name: str) -> Model:
        """Return the model with another value of one setting."""
        settings = self.model.settings
        given = [self.other_values[name]] if name in self.other_values else []
        annotation = type(settings).model_fields[name].annotation
        for value in (*given, *_other_values(getattr(settings, name), annotation)):
            try:
                other = type(self.model)(**{**settings.model_dump(), name: value})
            except WrongSetting:
                continue
            if other.settings != settings:
                return other
        raise AssertionError(f"the suite finds no other value of the setting {name!r}: give one in its other_values")


def _judged(model: Model, prepared: Any) -> tuple[object, ...]:  # noqa: ANN401 - the model's own
    """Return the bytes of some people's rows and scores under prepared parameters."""
    rows = model.represent(prepared, _AT, Effort())
    scores = [model.score(prepared, row_at(rows, user), _OTHERS.items_at(user)).tobytes() for user in range(5)]
    return bytes_by_user(rows, _OTHERS.users), scores


def _other_values(value: Any, annotation: Any) -> Iterator[Any]:  # noqa: ANN401 - settings of many types
    """Yield possible other values of a setting: another choice, or a nearby number."""
    yield from get_args(annotation)
    if isinstance(value, bool):
        yield not value
    elif isinstance(value, int | float):
        yield from (value + 1, value - 1, value * 2, value / 2)
