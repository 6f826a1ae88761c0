import numpy as np
import pytest
from pydantic import ValidationError

from erasable.data import SyntheticSettings, recognise_scale, synthesise


def test_the_same_settings_give_the_same_bytes_and_another_seed_does_not():
    settings = SyntheticSettings(users=60, seed=4)
    assert synthesise(settings).interactions.digest() == synthesise(settings).interactions.digest()
    other = settings.model_copy(update={"seed": 5})
    assert synthesise(settings).interactions.digest() != synthesise(other).interactions.digest()


def test_a_users_rows_depend_on_the_own_id_alone():
    few = synthesise(SyntheticSettings(users=40, ratings=True)).interactions
    many = synthesise(SyntheticSettings(users=400, ratings=True)).interactions
    assert many.of_users(few.users.texts()).digest() == few.digest()


def test_users_come_in_even_groups_and_every_user_has_rows():
    data = synthesise(SyntheticSettings(users=80, groups=8))
    assert len(data.interactions.users) == len(data.labels) == 80
    assert np.bincount(data.labels).tolist() == [10] * 8


def test_ids_are_padded_so_that_bytes_order_as_numbers():
    data = synthesise(SyntheticSettings(users=12_000, items=40, per_user=1))
    assert data.interactions.users.texts()[:2] == ["u00001", "u00002"]
    assert data.interactions.items.texts()[-1] == "i0040"
    assert data.interactions.users.is_sorted


def test_each_user_has_about_as_many_items_as_asked_for():
    data = synthesise(SyntheticSettings(users=300, items=400, per_user=20))
    counts = np.diff(data.interactions.user_starts)
    assert counts.max() == 20
    assert counts.mean() > 19


def test_most_draws_fall_into_the_own_block():
    data = synthesise(SyntheticSettings(users=2000, items=4000, per_user=5))
    own = data.block_of_item[data.interactions.item_index] == data.labels[data.interactions.user_index]
    assert own.mean() == pytest.approx(0.8, abs=0.02)


def test_how_often_items_are_drawn_agrees_with_the_true_probabilities():
    data = synthesise(SyntheticSettings(users=60_000, items=12, groups=3, per_user=1))
    members = data.labels[data.interactions.user_index] == 1
    share = np.bincount(data.interactions.item_index[members], minlength=12) / members.sum()
    np.testing.assert_allclose(share, data.probabilities(1), atol=0.01)


def test_probabilities_sum_to_one():
    data = synthesise(SyntheticSettings(users=10, groups=5))
    assert data.probabilities(3).sum() == pytest.approx(1)
    lone = synthesise(SyntheticSettings(users=10, groups=1))
    assert lone.probabilities(3).sum() == pytest.approx(1)


def test_the_best_items_lead_the_own_block_and_leave_out_what_is_there():
    data = synthesise(SyntheticSettings(users=10, items=40, groups=4, per_user=3))
    assert data.best_items(1, 3, exclude_seen=False) == ["i0011", "i0012", "i0013"]
    seen = set(data.interactions.items.take(data.interactions.item_index[3:6]).texts())
    assert not seen.intersection(data.best_items(1, 40))
    assert len(data.best_items(1, 40)) == 37


def test_ratings_are_high_in_the_own_block():
    data = synthesise(SyntheticSettings(users=200, ratings=True))
    own = data.block_of_item[data.interactions.item_index] == data.labels[data.interactions.user_index]
    assert set(data.interactions.rating[own]) == {3, 4, 5}
    assert set(data.interactions.rating[~own]) == {1, 2, 3}
    assert str(recognise_scale(data.interactions.rating)) == "1–5"


@pytest.mark.parametrize("wrong", [{"users": 0}, {"in_group": 2}, {"items": 3}, {"per_user": 9999}, {"x": 1}])
def test_settings_that_make_no_sense_are_refused(wrong):
    with pytest.raises(ValidationError):
        SyntheticSettings(**wrong)
