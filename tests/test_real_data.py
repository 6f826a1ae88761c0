"""The whole way on MovieLens data, where it is at hand (see CONTRIBUTING)."""

import os
from pathlib import Path

import pytest

from erasable import Recommender
from erasable.data import read_interactions

DATA = Path(os.environ.get("ERASABLE_DATA", Path(__file__).parent.parent / "data"))

pytestmark = pytest.mark.realdata


def ratings(name: str) -> Path:
    path = DATA / name / "ratings.csv"
    if not path.exists():
        pytest.skip(f"{path} is not there: set ERASABLE_DATA to the folder that holds {name}/ratings.csv")
    return path


@pytest.mark.parametrize(
    ("name", "users", "items", "rows"), [("ml-100k", 943, 1682, 100_000), ("ml-1m", 6040, 3706, 1_000_209)]
)
def test_all_of_it_is_read(name, users, items, rows):
    interactions = read_interactions(ratings(name)).interactions
    assert (len(interactions.users), len(interactions.items), len(interactions)) == (users, items, rows)


@pytest.mark.full
@pytest.mark.parametrize("model", ["nmf", "dmf"])
def test_it_beats_popularity_and_forgets_exactly(model):
    recommender = Recommender(model=model, groups=4, epochs=16, holdout=0.1).fit(ratings("ml-100k"))
    before = recommender.evaluate().values["ndcg@10"]
    users = ["42", "7", "196"]
    assert recommender.forget(users).stages_rerun >= 1
    assert recommender.verify().identical
    assert recommender.status()["users"] == 943 - len(users)
    after = recommender.evaluate().values["ndcg@10"]
    assert before > 0.1
    assert after == pytest.approx(before, abs=0.03)


@pytest.mark.full
def test_nmf_is_as_good_as_it_should_be():
    recommender = Recommender(model="nmf", strategy="retrain", epochs=8, holdout=0.1).fit(ratings("ml-1m"))
    assert recommender.evaluate().values["ndcg@10"] > 0.235
