import numpy as np
import pytest

from erasable.data import RatingScale, SyntheticSettings, split_holdout, synthesise
from erasable.paper._poison import FILLERS, PUSHED, make_fake_users, with_fake_users
from kit.tables import as_rows, table

REAL = synthesise(SyntheticSettings(users=200, items=100, groups=2, popularity_exponent=1.0, ratings=True)).interactions
SCALE = RatingScale(1, 5)


@pytest.fixture(scope="module")
def fakes():
    return make_fake_users(REAL, SCALE, 50, 0)


def test_each_pushes_the_same_unpopular_items_with_the_highest_rating(fakes):
    ratings = np.bincount(REAL.item_index, minlength=100)
    pushed = fakes.interactions.items.positions(fakes.pushed.texts())
    assert len(pushed) == PUSHED
    assert ratings[pushed].max() <= np.sort(ratings)[49]
    rows = np.isin(fakes.interactions.item_index, pushed)
    assert np.bincount(fakes.interactions.user_index[rows]).tolist() == [PUSHED] * 50
    assert set(fakes.interactions.rating[rows].tolist()) == {5.0}


def test_fillers_are_popular_and_have_the_highest_or_middle_rating(fakes):
    pushed = fakes.interactions.items.positions(fakes.pushed.texts())
    fillers = fakes.interactions.select(~np.isin(fakes.interactions.item_index, pushed))
    assert np.diff(fillers.user_starts).tolist() == [FILLERS] * 50
    assert set(fillers.rating.tolist()) == {3.0, 5.0}
    assert 0.4 < np.mean(fillers.rating == 5) < 0.6
    ratings = np.bincount(REAL.item_index, minlength=100)
    assert ratings[fillers.item_index].mean() > ratings.mean()


def test_the_first_filler_is_drawn_in_proportion_to_popularity(monkeypatch):
    monkeypatch.setattr("erasable.paper._poison.FILLERS", 1)
    real = table({**{f"u{n}": "a" for n in range(60)}, **{f"v{n}": "b" for n in range(20)}, "w": "cd"})
    made = make_fake_users(real, RatingScale(1, 1), 400, 0)
    assert made.pushed.texts() == ["c", "d"]
    items = made.interactions.item_index
    assert np.mean(items[items < 2] == 0) == pytest.approx(0.75, abs=0.06)


def test_what_is_drawn_depends_on_the_seed_and_nothing_else(fakes):
    again, other = (make_fake_users(REAL, SCALE, 50, seed) for seed in (0, 1))
    assert as_rows(again.interactions) == as_rows(fakes.interactions) != as_rows(other.interactions)
    assert again.pushed == fakes.pushed != other.pushed
    fewer = make_fake_users(REAL, SCALE, 5, 0)
    assert as_rows(fewer.interactions) <= as_rows(fakes.interactions)


def test_no_id_is_a_real_ones():
    real = table({"fake-00001": "ab", "fake-fake-7": "a", "zoe": "b"})
    made = make_fake_users(real, RatingScale(1, 1), 2, 0)
    assert made.ids == ["fake-fake-fake-00001", "fake-fake-fake-00002"]
    assert with_fake_users(real, made).users.texts() == ["fake-00001", "fake-fake-7", *made.ids, "zoe"]


def test_real_users_keep_their_rows_and_their_holdout(fakes):
    both = with_fake_users(REAL, fakes)
    assert len(both.users) == 250
    assert both.without(users=fakes.ids).digest() == REAL.digest()
    for alone, among in zip(split_holdout(REAL, 0.2, 3), split_holdout(both, 0.2, 3), strict=True):
        assert alone.digest() == among.without(users=fakes.ids).digest()


def test_a_catalogue_too_small_to_push_ten_is_pushed_by_half():
    made = make_fake_users(table({"ann": "abc", "bob": "bcd"}), RatingScale(1, 1), 3, 0)
    assert len(made.pushed) == 2
