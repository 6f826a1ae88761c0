"""What every model does, whatever it is: a new model needs one line in MODELS."""

import json
import os
import subprocess
import sys
from contextlib import contextmanager

import numpy as np
import pytest

from erasable.data import RatingScale
from erasable.models import Effort, ModelSettings, make_model

MODELS = {
    "nmf": ModelSettings(model="nmf", batch=128),
    "dmf": ModelSettings(model="dmf", batch=128),
}


def by_row(scorer):
    """Score from a user's one row; these models do not look at what the user has."""
    return lambda row: scorer({"user": row}, np.empty(0, np.int32))


@pytest.fixture(params=MODELS)
def model(request):
    return make_model(MODELS[request.param])


@pytest.fixture(scope="module")
def rows(tables):
    """User 0 has every item, user 1 has one, the last item is nobody's but user 0's."""
    return tables.random_table(5, users=60, items=40, ratings=True)


def train(model, tables, rows, threads=1, start=None, **facts):
    start = model.start(rows.items, facts.get("seed", 0)) if start is None else start
    return model.train(start, tables.stage(rows, **facts), Effort(threads))


def contents(parameters):
    """Return type, shape and bytes of every array."""
    named = {**parameters.shared, **parameters.rows}
    return {name: (array.dtype.str, array.shape, array.tobytes()) for name, array in named.items()}


def copies(arrays):
    return {name: array.copy() for name, array in arrays.items()}


def test_learns_a_checkerboard(model, tables):
    """Users like the items of their own colour; two of each user's twenty are left out of training."""
    users, items = 200, 40
    liked = {user: [item for item in range(items) if item % 2 == user % 2] for user in range(users)}
    left_out = {user: [liked[user][(user // 2 + shift) % 20] for shift in (0, 3)] for user in range(users)}
    kept = {user: [item for item in liked[user] if item not in left_out[user]] for user in range(users)}
    rows = tables.table({f"u{user:03d}": [f"i{item:02d}" for item in kept[user]] for user in range(users)})
    trained = train(model, tables, rows, epochs=6)
    score = by_row(model.scorer(trained.shared))
    for user, row in enumerate(trained.rows["user"]):
        scores = score(row)
        wrong = [item for item in range(items) if item % 2 != user % 2]
        assert scores[left_out[user]].min() > scores[wrong].max()


def test_the_same_seed_gives_the_same_bytes(model, tables, rows):
    assert contents(train(model, tables, rows, seed=3)) == contents(train(model, tables, rows, seed=3))


def test_another_seed_gives_other_bytes_in_every_array(model, tables, rows):
    one, other = (contents(train(model, tables, rows, seed=seed)) for seed in (3, 4))
    assert all(one[name] != other[name] for name in one)


def test_training_something_else_in_between_leaves_no_trace(model, tables, rows):
    first = contents(train(model, tables, rows, epochs=2))
    train(model, tables, tables.random_table(9, users=20, items=30), epochs=3, seed=8)
    assert contents(train(model, tables, rows, epochs=2)) == first


def test_a_new_model_trains_as_one_that_has_trained_before(model, tables, rows):
    train(model, tables, rows)
    fresh = type(model)(model._settings)
    assert contents(train(fresh, tables, rows)) == contents(train(model, tables, rows))


def test_training_never_changes_its_start(model, tables, rows):
    start = model.start(rows.items, 0)
    before = copies(start)
    trained = train(model, tables, rows, start=start)
    for name, array in start.items():
        assert array.tobytes() == before[name].tobytes()
        assert not np.shares_memory(array, trained.shared[name])


def test_training_changes_every_shared_array_and_every_user(model, tables, rows):
    start = model.start(rows.items, 0)
    trained = train(model, tables, rows, start=start)
    assert all((trained.shared[name] != start[name]).any() for name in start)
    early = train(model, tables, rows, epochs=1).rows["user"]
    late = train(model, tables, rows, epochs=2).rows["user"]
    assert (early != late).any(axis=1).all()


def test_what_comes_back_is_read_only_and_of_32_bits(model, tables, rows):
    trained = train(model, tables, rows)
    for array in (*trained.shared.values(), *trained.rows.values()):
        assert not array.flags.writeable
        assert array.flags.c_contiguous
        assert array.dtype == np.float32


def test_a_stage_can_start_from_what_another_returned(model, tables, rows):
    first = train(model, tables, rows)
    before = contents(first)
    second = train(model, tables, rows, start=first.shared, position=1)
    assert contents(first) == before
    assert contents(second) != before


def test_without_interactions_the_shared_parameters_stay_as_they_are(model, tables):
    nobody = tables.table({}, catalogue=["a", "b", "c"])
    start = model.start(nobody.items, 0)
    stage = tables.stage(nobody, scale=RatingScale(1, 5), epochs=3)
    trained = model.train(start, stage, Effort(2))
    assert {name: array.tobytes() for name, array in trained.shared.items()} == {
        name: array.tobytes() for name, array in start.items()
    }
    assert not any(np.shares_memory(array, start[name]) for name, array in trained.shared.items())
    assert all(len(array) == 0 for array in trained.rows.values())
    assert not any(array.flags.writeable for array in trained.shared.values())


def test_scores_are_finite_for_everyone_and_everything(model, tables, rows):
    trained = train(model, tables, rows, epochs=5)
    score = by_row(model.scorer(trained.shared))
    for row in trained.rows["user"]:
        scores = score(row)
        assert scores.shape == (len(rows.items),)
        assert np.isfinite(scores).all()


def test_probabilities_lie_between_0_and_1_in_the_order_of_scores(model, tables, rows):
    trained = train(model, tables, rows, epochs=5)
    scores = by_row(model.scorer(trained.shared))(trained.rows["user"][0])
    found = model.probability(scores)
    assert found.shape == scores.shape
    assert (found > 0).all()
    assert (found < 1).all()
    assert (np.diff(found[np.argsort(scores)]) >= 0).all()


@pytest.mark.parametrize(
    "few",
    [{"u": "a"}, {"u": "abc"}, {"u": "abc", "v": "abc"}, {"u": {"a": 1.0}, "v": {"a": 5.0}}],
    ids=[
        "one interaction",
        "one user with everything",
        "two users with everything",
        "one item with an extreme each",
    ],
)
def test_the_smallest_tables_train_to_finite_numbers(model, tables, few):
    rows = tables.table(few, catalogue="abc")
    trained = train(model, tables, rows, epochs=20)
    assert trained.all_finite()
    assert np.isfinite(by_row(model.scorer(trained.shared))(trained.rows["user"][0])).all()


def test_an_item_that_nobody_has_can_be_scored(model, tables):
    rows = tables.table({"u": "ab", "v": "bc"}, catalogue="abcdefgh")
    trained = train(model, tables, rows, epochs=3)
    assert np.isfinite(by_row(model.scorer(trained.shared))(trained.rows["user"][0])).all()


def test_a_catalogue_of_one_item_works(model, tables):
    trained = train(model, tables, tables.table({"u": "a", "v": "a"}), epochs=3)
    assert by_row(model.scorer(trained.shared))(trained.rows["user"][0]).shape == (1,)


def test_a_user_s_scores_do_not_depend_on_who_was_scored_before(model, tables, rows):
    trained = train(model, tables, rows, epochs=2)
    score = by_row(model.scorer(trained.shared))
    in_turn = [score(row).tobytes() for row in trained.rows["user"]]
    alone = [by_row(model.scorer(trained.shared))(row).tobytes() for row in trained.rows["user"]]
    backwards = [score(row.copy()).tobytes() for row in trained.rows["user"][::-1]][::-1]
    assert in_turn == alone == backwards


def test_scoring_hands_out_an_array_of_its_own(model, tables, rows):
    trained = train(model, tables, rows)
    score = by_row(model.scorer(trained.shared))
    first = score(trained.rows["user"][0])
    kept = first.copy()
    score(trained.rows["user"][1])[:] = 0
    assert np.array_equal(first, kept)


@pytest.mark.parametrize("threads", [2, 3])
def test_threads_do_not_change_a_byte(model, tables, rows, threads):
    assert contents(train(model, tables, rows, threads, epochs=3)) == contents(train(model, tables, rows, 1, epochs=3))


@contextmanager
def busy_process():
    """Keep processors busy with a process that does nothing else."""
    process = subprocess.Popen(
        [sys.executable, "-c", "print('busy', flush=True)\nwhile True: pass"], stdout=subprocess.PIPE
    )
    try:
        process.stdout.readline()
        yield
    finally:
        process.kill()
        process.wait()
        process.stdout.close()


def test_busy_processes_beside_it_do_not_change_a_byte(model, tables, rows):
    in_peace = contents(train(model, tables, rows, 2, epochs=3))
    with busy_process(), busy_process():
        assert contents(train(model, tables, rows, 2, epochs=3)) == in_peace
        assert contents(train(model, tables, rows, 3, epochs=3)) == in_peace


_TRAIN_ALL = """
import json, sys
from erasable.data import RatingScale, SyntheticSettings, synthesise
from erasable.fingerprint import of_arrays
from erasable.models import Effort, ModelSettings, Stage, make_model

rows = synthesise(SyntheticSettings(users=60, items=50, groups=4, per_user=15, ratings=True)).interactions
found = {}
for name in json.loads(sys.argv[1]):
    model = make_model(ModelSettings(model=name, batch=300))
    stage = Stage(rows, RatingScale(1, 5), epochs=2, seed=1, position=0)
    trained = model.train(model.start(rows.items, 1), stage, Effort(2))
    found[name] = of_arrays({**trained.shared, **trained.rows})
print(json.dumps(found))
"""


def digests_of_a_process(**environment):
    command = [sys.executable, "-c", _TRAIN_ALL, json.dumps(list(MODELS))]
    answer = subprocess.run(command, env={**os.environ, **environment}, capture_output=True, check=True)
    return json.loads(answer.stdout)


def test_another_process_gives_the_same_bytes():
    assert digests_of_a_process(PYTHONHASHSEED="1") == digests_of_a_process(PYTHONHASHSEED="2")


@pytest.mark.slow
def test_freshly_compiled_code_gives_the_same_bytes_as_code_that_was_kept(tmp_path):
    fresh = digests_of_a_process(NUMBA_CACHE_DIR=str(tmp_path))
    assert any(tmp_path.iterdir())
    kept = digests_of_a_process(NUMBA_CACHE_DIR=str(tmp_path))
    assert fresh == kept == digests_of_a_process()
