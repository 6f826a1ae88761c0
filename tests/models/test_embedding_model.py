import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from erasable.data import Ids, RatingScale
from erasable.models import Effort, find_model
from erasable.models import _embedding_model as embedding_model
from erasable.models._embedding_model import blocks

both = pytest.mark.parametrize("name", ["nmf", "dmf"])


def contents(parameters):
    return {name: array.tobytes() for name, array in {**parameters.shared, **parameters.rows}.items()}


@both
@given(texts=st.lists(st.text(min_size=1, max_size=5), min_size=2, max_size=8, unique=True), data=st.data())
@settings(deadline=None, max_examples=25)
def test_an_item_starts_from_the_seed_and_its_own_id(name, texts, data):
    model = find_model(name)()
    chosen = data.draw(st.lists(st.sampled_from(texts), min_size=1, unique=True))
    rows = dict(zip(texts, model.start(Ids.of(texts), seed=3)["item"], strict=True))
    for text, row in zip(chosen, model.start(Ids.of(chosen), seed=3)["item"], strict=True):
        assert row.tobytes() == rows[text].tobytes()


@both
def test_the_network_starts_the_same_whatever_the_catalogue(name):
    model = find_model(name)()
    one, other = model.start(Ids.of("ab"), seed=1), model.start(Ids.of("xyz"), seed=1)
    assert all(one[array].tobytes() == other[array].tobytes() for array in model.shapes)


@both
def test_a_user_and_an_item_with_the_same_id_start_apart(name, tables, reference):
    model = find_model(name)()
    item = model.start(Ids.of(["same"]), seed=0)["item"]
    user = reference.starting_rows(reference.REFERENCES[name], Ids.of(["same"]), seed=0)
    assert item.shape == user.shape
    assert not np.array_equal(item, user)


@both
def test_without_a_step_user_rows_would_be_their_start(name, tables, reference):
    """A learning rate too small to change a number shows where the rows began."""
    rows = tables.random_table(0)
    model = find_model(name)(learning_rate=1e-30)
    trained = model.train(model.start(rows.items, 7), tables.stage(rows, seed=7), Effort())
    expected = reference.starting_rows(reference.REFERENCES[name], rows.users, seed=7)
    assert trained.rows["user"].tobytes() == expected.tobytes()


@both
def test_how_often_compiled_code_returns_changes_nothing(name, tables, monkeypatch):
    rows = tables.random_table(0, users=30, items=20)
    model = find_model(name)(batch=50)
    stage = tables.stage(rows, epochs=2)
    at_once = contents(model.train(model.start(rows.items, 0), stage, Effort()))
    monkeypatch.setattr(embedding_model, "_SAMPLES_PER_CALL", 120)
    assert contents(model.train(model.start(rows.items, 0), stage, Effort())) == at_once


@both
def test_progress_adds_up_to_the_samples(name, tables):
    rows = tables.table({"u": "abc", "v": "cd", "w": "a"}, catalogue="abcdef")
    model = find_model(name)(batch=10)
    told = []
    model.train(model.start(rows.items, 0), tables.stage(rows, epochs=3), Effort(advance=told.append))
    assert sum(told) == model.samples(rows, epochs=3) == 3 * 6 * 5


def test_samples_are_positives_and_negatives_in_every_epoch(tables):
    rows = tables.table({"all": "abcd", "one": "a", "two": "bc"})
    # "all" has every item and gets no negatives: 4 samples; the others have 3 positives with negatives each.
    counts = {n: find_model("nmf")(negatives=n).samples(rows, epochs=5) for n in (0, 1, 4)}
    assert counts == {0: 5 * 7, 1: 5 * (4 + 3 * 2), 4: 5 * (4 + 3 * 5)}


def test_no_interactions_are_no_samples(tables):
    assert find_model("nmf")().samples(tables.table({}, catalogue="ab"), epochs=5) == 0


@both
def test_stages_at_different_positions_draw_apart(name, tables):
    rows = tables.random_table(0)
    model = find_model(name)()
    start = model.start(rows.items, 0)
    first, second = (model.train(start, tables.stage(rows, position=place), Effort()) for place in (0, 1))
    assert contents(first) != contents(second)


@both
def test_a_target_is_the_rating_over_the_declared_maximum_whoever_has_rated(name, tables):
    few = {"u": {"a": 1.0, "b": 2.0}, "v": {"b": 1.0, "c": 2.0}}  # nobody gives the maximum
    doubled = {user: {item: 2 * rating for item, rating in has.items()} for user, has in few.items()}
    model = find_model(name)()

    def trained(ratings, high):
        rows = tables.table(ratings, catalogue="abcd")
        stage = tables.stage(rows, scale=RatingScale(1, high), epochs=2)
        return contents(model.train(model.start(rows.items, 0), stage, Effort()))

    assert trained(few, high=5) == trained(doubled, high=10)
    assert trained(few, high=5) != trained(few, high=10)


@given(st.integers(0, 50), st.integers(1, 20))
@settings(deadline=None, max_examples=50)
def test_blocks_cut_a_range_into_pieces_of_at_most_the_size(count, size):
    pieces = blocks(count, size)
    assert [number for piece in pieces for number in range(count)[piece]] == list(range(count))
    assert all(0 < piece.stop - piece.start <= size for piece in pieces)
