"""States made by hand, and one that was trained."""

import pytest

from erasable.chain import Config, Dataset, MemoryStore, train_chain
from erasable.data import Catalogue, RatingScale, SyntheticSettings, split_holdout, synthesise
from erasable.models import Effort
from kit.handmade import handmade
from kit.rated_shop import rated_shop


@pytest.fixture
def learned() -> object:
    """A state made by hand, whose scores anyone can read off."""
    return handmade()


@pytest.fixture
def shop() -> object:
    """A state made by hand with ratings from 1 to 5 and four items."""
    return rated_shop()


@pytest.fixture(scope="session")
def trained() -> tuple[object, MemoryStore]:
    """A chain of two groups over 40 items, with its checkpoints."""
    data = synthesise(SyntheticSettings(users=60, items=40, groups=2, per_user=8, ratings=True, seed=1)).interactions
    config = Config(model="nmf", groups=2, holdout=0.2, epochs=2)
    training, held_out = split_holdout(data, config.holdout, config.seed)
    groups = tuple(training.select(training.user_index % 2 == position) for position in (0, 1))
    dataset = Dataset.of_groups(config, Catalogue.from_items(data.items), RatingScale(1, 5), groups, held_out)
    store = MemoryStore()
    return train_chain(dataset, store, Effort()), store
