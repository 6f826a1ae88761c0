import numpy as np
import pytest

from erasable.data import Ids
from erasable.evaluation.protocols import UnseenItems

CATALOGUE = Ids.of([f"i{number:03d}" for number in range(300)])
NOTHING = np.empty(0, dtype=np.int64)


@pytest.fixture
def unseen():
    return UnseenItems(CATALOGUE, 0, "candidates")


def test_draws_distinct_items_that_are_not_seen(unseen):
    seen = np.arange(0, 300, 2)
    drawn = unseen.draw("ann", 99, seen)
    assert len(drawn) == len(set(drawn.tolist())) == 99
    assert not set(drawn.tolist()) & set(seen.tolist())
    assert drawn.tolist() == sorted(drawn.tolist())


def test_gives_those_there_are_if_there_are_fewer(unseen):
    assert unseen.draw("ann", 99, np.arange(298)).tolist() == [298, 299]
    assert unseen.draw("ann", 99, np.arange(300)).tolist() == []
    assert unseen.draw("ann", 0, NOTHING).tolist() == []


def test_depends_on_seed_purpose_and_user(unseen):
    drawn = unseen.draw("ann", 20, NOTHING).tolist()
    assert drawn == UnseenItems(CATALOGUE, 0, "candidates").draw("ann", 20, NOTHING).tolist()
    assert drawn != unseen.draw("bob", 20, NOTHING).tolist()
    assert drawn != UnseenItems(CATALOGUE, 1, "candidates").draw("ann", 20, NOTHING).tolist()
    assert drawn != UnseenItems(CATALOGUE, 0, "negatives").draw("ann", 20, NOTHING).tolist()


def test_asking_for_others_before_changes_nothing(unseen):
    first = unseen.draw("ann", 20, NOTHING).tolist()
    for user in ("bob", "cat"):
        unseen.draw(user, 50, np.arange(100))
    assert unseen.draw("ann", 20, NOTHING).tolist() == first


def test_an_item_more_that_is_seen_replaces_only_itself(unseen):
    before = set(unseen.draw("ann", 20, NOTHING).tolist())
    gone = min(before)
    after = set(unseen.draw("ann", 20, np.array([gone])).tolist())
    assert before - after == {gone}
    assert len(after - before) == 1


def test_items_are_drawn_by_id_not_by_number(unseen):
    texts = CATALOGUE.texts()
    turned = Ids.of(texts[::-1])
    drawn = UnseenItems(turned, 0, "candidates").draw("ann", 20, NOTHING)
    assert {turned[item] for item in drawn.tolist()} == {texts[item] for item in unseen.draw("ann", 20, NOTHING)}


def test_every_item_is_drawn_equally_often(unseen):
    counts = np.zeros(300)
    for number in range(2000):
        counts[unseen.draw(f"u{number}", 30, NOTHING)] += 1
    # 200 expected for each, with a deviation of √(2000 · 0.1 · 0.9) ≈ 13.4.
    assert abs(counts - 200).max() < 5 * 13.4
    assert counts.std() == pytest.approx(13.4, rel=0.2)
