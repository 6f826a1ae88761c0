"""Made-up data: a person's rows depend on the own number alone, and are as many and of the kind that is asked for."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from erasable.data.made_up import MOST_ITEMS_OF_A_PERSON, ROWS_AT_ONCE, MadeUpSettings, made_up_pieces

SHOP = MadeUpSettings(users=5_000, items=600, interactions=50_000, ratings=True, times=True)

LARGE = MadeUpSettings(users=20_000, items=10_000, interactions=200_000, ratings=True)


def rows_of(pieces):
    """All rows of pieces, as (person, item, rating, time)."""
    return [
        row
        for piece in pieces
        for row in zip(
            (piece.first + piece.user_index).tolist(),
            piece.item_index.tolist(),
            piece.rating.tolist(),
            piece.time.tolist(),
            strict=True,
        )
    ]


def whole(wanted):
    (piece,) = made_up_pieces(wanted, people_at_once=wanted.users)
    return piece


@pytest.mark.parametrize("at_once", [1, 7, 999, 5_000])
def test_the_pieces_change_no_row(at_once):
    few = SHOP.model_copy(update={"users": 300, "interactions": 3_000})
    assert rows_of(made_up_pieces(few, people_at_once=at_once)) == rows_of(made_up_pieces(few))


def test_some_people_have_the_rows_that_they_have_among_all():
    everyone = rows_of(made_up_pieces(SHOP))
    some = rows_of(made_up_pieces(SHOP, first=1_000, end=1_010))
    assert some == [row for row in everyone if 1_000 <= row[0] < 1_010]


def test_another_seed_gives_other_rows():
    assert rows_of(made_up_pieces(SHOP)) != rows_of(made_up_pieces(SHOP.model_copy(update={"seed": 1})))


def test_ratings_and_times_change_no_item():
    plain = whole(MadeUpSettings(users=5_000, items=600, interactions=50_000))
    assert np.array_equal(plain.item_index, whole(SHOP).item_index)
    assert plain.rating is None
    assert plain.time is None


@given(st.integers(1, 60), st.integers(1, 40), st.floats(0, 1), st.integers(0, 50))
@settings(max_examples=60, deadline=None)
def test_nobody_has_an_item_twice_or_nothing_at_all(users, items, filled, seed):
    wanted = MadeUpSettings(
        users=users, items=items, interactions=users + int(filled * users * (items - 1)), ratings=True, seed=seed
    )
    piece = whole(wanted)
    pairs = piece.user_index.astype(np.int64) * items + piece.item_index
    assert len(np.unique(pairs)) == len(pairs)
    assert np.diff(piece.starts).min() >= 1
    assert piece.item_index.min() >= 0
    assert piece.item_index.max() < items
    assert 1 <= piece.rating.min() <= piece.rating.max() <= 5


def test_everyone_may_have_everything():
    piece = whole(MadeUpSettings(users=7, items=11, interactions=77))
    assert len(piece.item_index) == 77


@pytest.mark.parametrize(("users", "interactions", "near"), [(1_000, 5_000, 0.05), (50_000, 700_000, 0.005)])
def test_there_are_about_as_many_rows_as_are_asked_for(users, interactions, near):
    piece = whole(MadeUpSettings(users=users, items=5_000, interactions=interactions))
    assert len(piece.item_index) == pytest.approx(interactions, rel=near)


def test_most_people_have_few_items_and_some_have_many():
    counts = np.diff(whole(MadeUpSettings(users=50_000, items=5_000, interactions=500_000)).starts)
    assert np.median(counts) < counts.mean()
    assert np.quantile(counts, 0.99) > 5 * np.median(counts)
    assert counts.max() > 20 * counts.mean()


def test_some_items_are_far_more_popular_than_others():
    had = np.sort(np.bincount(whole(LARGE).item_index, minlength=LARGE.items))[::-1]
    assert had[: LARGE.items // 100].sum() > 0.15 * had.sum()
    assert had[0] > 20 * np.median(had[had > 0])


def test_a_person_prefers_two_kinds_of_items_and_rates_them_higher():
    piece = whole(LARGE)
    kinds = np.zeros((LARGE.users, LARGE.kinds))
    np.add.at(kinds, (piece.user_index, piece.item_index % LARGE.kinds), 1)
    busy = kinds.sum(axis=1) >= 20
    best_two = np.sort(kinds[busy], axis=1)[:, -2:].sum(axis=1) / kinds[busy].sum(axis=1)
    assert best_two.mean() == pytest.approx(0.8, abs=0.07)
    best = kinds.argmax(axis=1)[piece.user_index] == piece.item_index % LARGE.kinds
    assert piece.rating[best].mean() > piece.rating[~best].mean() + 0.5


def test_the_rows_of_a_person_are_in_the_order_of_their_times():
    piece = whole(SHOP)
    later = np.diff(piece.time) > 0
    same_person = np.diff(piece.user_index) == 0
    assert later[same_person].all()


def test_a_piece_has_a_bounded_number_of_rows():
    large = MadeUpSettings(users=10**8, items=100_000, interactions=10**9)
    piece = next(made_up_pieces(large))
    assert 0.9 * ROWS_AT_ONCE < len(piece.item_index) < 1.1 * ROWS_AT_ONCE
    lonely = MadeUpSettings(users=10**9, items=10, interactions=10**9)
    assert lonely.people_at_once <= ROWS_AT_ONCE


def test_there_are_fewer_clusters_where_items_are_few():
    assert MadeUpSettings().kinds == 20
    assert MadeUpSettings(users=1, items=3, interactions=2).kinds == 1
    assert MadeUpSettings(clusters=3).kinds == 3


@pytest.mark.parametrize(
    "wrong",
    [
        {"users": 0},
        {"items": 0},
        {"clusters": 0},
        {"clusters": 2_000},
        {"interactions": 9_999},
        {"users": 10, "items": 3, "interactions": 31},
        {"users": 1, "items": 10**6, "interactions": MOST_ITEMS_OF_A_PERSON + 1},
        {"x": 1},
    ],
)
def test_settings_that_make_no_sense_are_refused(wrong):
    with pytest.raises(ValidationError):
        MadeUpSettings(**wrong)
