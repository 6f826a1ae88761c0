"""Item-kNN and popular from learning to serving: what is only counted, walked through every operation."""

import numpy as np
import pyarrow as pa
import pytest

from erasable.chain import Config
from erasable.errors import UnknownUser
from erasable.operations import DiskStorage, forget, learn, learn_more, recommend, scan, upgrade, verify
from erasable.operations.live import Live
from erasable.requests import Request
from kit import elsewhere
from kit.in_buckets import SIZES, in_buckets_of

MODELS = {"item-knn": {"neighbours": 4, "shrinkage": 2.0}, "popular": {}}
LEAVING = ("3", "17")


def some_of(table, people):
    return table.filter(pa.compute.is_in(table["user_id"], value_set=pa.array(people)))


@pytest.fixture(scope="module")
def shop():
    """People whose ids are as small as the counts of items."""
    generator = np.random.default_rng(5)
    pairs = [(str(user), f"i{item:02d}") for user in range(40) for item in generator.choice(25, 8, replace=False)]
    return pa.table({"user_id": [user for user, _ in pairs], "item_id": [item for _, item in pairs]})


@pytest.fixture(params=SIZES)
def _in_buckets(request):
    with in_buckets_of(SIZES[request.param]):
        yield


def arrays(storage):
    with storage.reading() as session:
        return {
            (link.fingerprint, name): array.tobytes()
            for link in session.state().chain
            for name, array in session.checkpoints.get(link.fingerprint).parameters.shared.items()
        }


def served(storage, user):
    return [(one.item_id, one.score) for one in recommend(storage, [user], 5)[0]]


@pytest.mark.usefixtures("_in_buckets")
@pytest.mark.parametrize("model", MODELS)
def test_whoever_leaves_is_out_of_the_answers_at_once_and_of_all_files_afterwards(model, shop, tmp_path):
    config, everyone = Config(model=model, holdout=0.0, **MODELS[model]), [str(user) for user in range(40)]
    learn(some_of(shop, everyone[:30]), tmp_path / "shop", config)
    storage = DiskStorage(tmp_path / "shop")
    learn_more(storage, some_of(shop, everyone[30:]))
    learn(shop, tmp_path / "at once", config)
    assert arrays(storage) == arrays(DiskStorage(tmp_path / "at once"))

    live = Live(storage)
    live.suppress(LEAVING)
    assert live.follow()
    with pytest.raises(UnknownUser):
        live.recommend(LEAVING[0], 5)
    meanwhile = [(item, score) for item, score, _ in live.recommend("5", 5).ranked]
    before = served(storage, "5")

    forget(storage, [Request(user) for user in LEAVING])
    assert meanwhile == served(storage, "5") != before
    assert verify(storage).identical
    assert not any(scan(storage.path, user).residues for user in LEAVING)
    learn(some_of(shop, [user for user in everyone if user not in LEAVING]), tmp_path / "without", config)
    assert arrays(storage) == arrays(DiskStorage(tmp_path / "without"))
    elsewhere.moved(storage.path, numpy="0.0")
    assert upgrade(storage).adopted == (model == "item-knn")  # popular's whole numbers depend on no library
    assert verify(storage).identical
