"""Where buckets begin follows from how many people there are, and from nothing about anybody."""

import numpy as np
import pytest

from erasable.chain import Config
from erasable.chain.dataset import Dataset
from erasable.data import RatingScale
from erasable.data.slots import SLOTS
from kit.tables import table

PEOPLE = [f"u{number:03d}" for number in range(60)]


@pytest.fixture(autouse=True)
def _small(monkeypatch):
    monkeypatch.setattr("erasable.chain.buckets.PEOPLE_IN_A_BUCKET", 5)


def learned(people) -> Dataset:
    rows = table({user: ["a", "b"] if place % 2 else ["b", "c"] for place, user in enumerate(people)})
    nobody = rows.select(np.zeros(len(rows), bool))
    return Dataset.of_groups(Config(model="ease"), None, RatingScale(1, 5), (rows,), nobody)


def test_as_many_other_people_lie_in_the_same_runs_of_slots():
    one, other = learned(PEOPLE), learned([f"v{number}" for number in range(60)])
    assert one.buckets.starts == other.buckets.starts == tuple(range(0, SLOTS, SLOTS // 16))


@pytest.mark.parametrize("at", [0, -1], ids=["the first of a bucket", "the last of a bucket"])
def test_an_erasure_leaves_no_slot_of_the_person_behind(at):
    """Not even of the first or last person of a bucket; neither does that of everyone in it."""
    dataset = learned(PEOPLE)
    for bucket in list(dataset.buckets):
        if len(bucket.users):
            assert dataset.without([bucket.users[at]], []).buckets.starts == dataset.buckets.starts
            assert dataset.without(bucket.users.texts(), []).buckets.starts == dataset.buckets.starts


def test_a_bucket_that_got_too_large_is_divided_in_equal_runs():
    dataset = learned(PEOPLE[:8])
    assert dataset.buckets.starts == (0, SLOTS // 2)
    more = table({user: ["a", "b"] for user in PEOPLE[8:]}, dataset.items)
    grown = dataset.revised(dict.fromkeys(PEOPLE[8:], 0), more)
    sizes = [len(bucket.users) for bucket in grown.buckets]
    assert sum(sizes) == 60
    assert max(sizes) < 20
    for end in (SLOTS // 2, SLOTS):
        own = [start for start in grown.buckets.starts if end - SLOTS // 2 <= start < end]
        assert own == [end - SLOTS // 2 + SLOTS // 2 * part // len(own) for part in range(len(own))]
    assert [grown.buckets.find(user) is not None for user in PEOPLE] == [True] * 60
    again = Dataset.of_groups(grown.config, None, grown.scale, grown.groups, grown.held_out)
    assert again.buckets.starts != grown.buckets.starts
    assert again.data_name == grown.data_name
