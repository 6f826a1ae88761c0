"""Any path: whatever was learned and forgotten in which order, the state is that of learning the outcome."""

import pytest

from erasable.data import Interactions, RatingScale
from erasable.seeding import child_key
from erasable.testing.chains import assert_same, config_of, forget, learn, learn_more
from erasable.testing.exactness import InEveryWay
from erasable.testing.tables import as_rows, made_up, some_of, table
from erasable.unlearning import Subject, known_requests

_SCALE = RatingScale(1, 5)
_EVENTS = ("more", "forget", "more", "forget")


class AnyPath(InEveryWay):
    """Learning and forgetting in turn gives what learning the outcome gives."""

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
                requests = known_requests([Subject(user) for user in people], learned.state.knowledge)
                rows, learned = rows.without(users=people), forget(learned, requests, threads=2)
            learned.store.keep_only(learned.names)
            assert_same(learned, learn(rows, learned.state.knowledge.config, learned.positions, _SCALE))


def _some_that_come(seed: int) -> Interactions:
    """Make up a table whose people and items are known in part."""
    by_user: dict[str, dict[str, float]] = {}
    for user, item, rating in sorted(as_rows(made_up(100 + seed, users=6, items=7))):
        name, what = f"u{int(user[1:]) + 2 * (seed % 3):04d}", f"i{int(item[1:]) + seed % 3:03d}"
        by_user.setdefault(name, {})[what] = rating
    return table(by_user)


def _joined(rows: Interactions, coming: Interactions) -> Interactions:
    """Return the rows of both; of two rows of one pair the later stays."""
    cells = {(user, item): rating for part in (rows, coming) for user, item, rating in as_rows(part)}
    by_user: dict[str, dict[str, float]] = {}
    for (user, item), rating in cells.items():
        by_user.setdefault(user, {})[item] = rating
    return table(by_user)
