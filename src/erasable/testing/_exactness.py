"""Tests of exactness: forgetting equals never having known, in every way to learn a model, by any path."""

from collections.abc import Sequence

import pytest

from erasable.chain.plan import known_requests
from erasable.data.interactions import Interactions, Subject
from erasable.data.rating_scale import RatingScale
from erasable.seeding import child_key
from erasable.testing._suite import (
    LearnedChain,
    Suite,
    as_rows,
    assert_same,
    config_of,
    forget,
    learn,
    learn_more,
    made_up,
    some_of,
    table,
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
    """After forgetting, all is as if learned without: names, bytes of every checkpoint, everyone's row, the holdout."""

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
    """Learning and forgetting in turn gives the same state as learning the final data."""

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
