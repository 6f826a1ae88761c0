"""Exactness: forgetting equals never having known, in every way in which a model can be learned."""

from collections.abc import Sequence

import pytest

from erasable.data import Interactions, RatingScale
from erasable.testing.chains import Learned, assert_same, config_of, forget, learn, ways_of
from erasable.testing.suite import Suite
from erasable.testing.tables import as_rows, made_up, some_of
from erasable.unlearning import Subject, known_requests

_SCALE = RatingScale(1, 5)


class InEveryWay(Suite):
    """Runs a test that asks for a `way` in each way in which the model can be learned."""

    def pytest_generate_tests(self, metafunc: pytest.Metafunc) -> None:
        """Give the ways of the model to the tests that ask for one."""
        if "way" in metafunc.fixturenames and metafunc.cls is not None:
            metafunc.parametrize("way", ways_of(metafunc.cls.model))


class Exactness(InEveryWay):
    """Forget equals learned without: names, bytes of every checkpoint, everyone's row, the holdout."""

    @pytest.mark.parametrize("seed", range(4))
    def test_after_any_requests_the_state_is_the_one_learned_without_them(self, way: str, seed: int) -> None:
        """Forget whole people and single interactions in several rounds, and compare after each."""
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
        """Forget everything of someone who has every item, one by one and at once."""
        rows, config = made_up(3, users=9, items=6), config_of(self.model, way, holdout=0.3)
        learned = whole = learn(rows, config, scale=_SCALE)
        positions = learned.positions
        learned = Learned(learned.state, learned.store.copy())
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
        assert learned.state.knowledge.interactions == 0

    def test_what_someone_taught_does_reach_the_bytes(self) -> None:
        """The other side: bytes depend on each person, so that equal bytes after forgetting mean something."""
        rows = made_up(7, users=10, items=8)
        config = config_of(self.model, ways_of(self.model)[0])
        learned = learn(rows, config, scale=_SCALE, declared=True)
        before, first = learned.contents(), learned.state.knowledge.groups[0].users[0]
        assert before[0] != _forget_and_clean_up(learned, [Subject(first)]).contents()[0]


def _some_requests(rows: Interactions, seed: int) -> list[Subject]:
    """Draw two people; the second is forgotten in part."""
    one, other = some_of(rows.users.texts(), 2, seed, "who")
    own = sorted(item for _, item, _ in as_rows(rows.of_users([other])))
    return [Subject(one), Subject(other, tuple(some_of(own, (len(own) + 1) // 2, seed, "what")))]


def _remaining(rows: Interactions, requests: Sequence[Subject]) -> Interactions:
    whole = [request.user for request in requests if request.everything]
    pairs = [(request.user, item) for request in requests for item in request.items or ()]
    return rows.without(users=whole, pairs=pairs)


def _forget_and_clean_up(learned: Learned, requests: Sequence[Subject]) -> Learned:
    """Forget as an erasure does: the old checkpoints are destroyed afterwards."""
    after = forget(learned, known_requests(requests, learned.state.knowledge), threads=2)
    learned.store.keep_only(after.names)
    return after
