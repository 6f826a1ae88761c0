"""What every model does when it trains and scores, whatever it is: a new model needs one line in kit/model_suite.py."""

import json
import os
import subprocess
import sys
from contextlib import contextmanager

import numpy as np
import pytest

from erasable.data import RatingScale
from erasable.models import Effort
from kit.model_suite import MODELS, contents_of, row_at, scores, train


@pytest.fixture(params=MODELS)
def kind(request):
    return MODELS[request.param]


@pytest.fixture
def model(kind):
    return kind.model


@pytest.fixture(scope="module")
def rows(tables):
    """User 0 has every item, user 1 has one, the last item is nobody's but user 0's."""
    return tables.random_table(5, users=60, items=40, ratings=True)


def copies(arrays):
    return {name: array.copy() for name, array in arrays.items()}


def test_learns_a_checkerboard(model, tables):
    """Users like the items of their own colour; two of each user's twenty are left out of training."""
    users, items = 200, 40
    liked = {user: [item for item in range(items) if item % 2 == user % 2] for user in range(users)}
    left_out = {user: [liked[user][(user // 2 + shift) % 20] for shift in (0, 3)] for user in range(users)}
    kept = {user: [item for item in liked[user] if item not in left_out[user]] for user in range(users)}
    rows = tables.table({f"u{user:03d}": [f"i{item:02d}" for item in kept[user]] for user in range(users)})
    for user, found in enumerate(scores(model, train(model, rows, epochs=6), rows)):
        wrong = [item for item in range(items) if item % 2 != user % 2]
        assert found[left_out[user]].min() > found[wrong].max()


def test_the_same_seed_gives_the_same_bytes(model, rows):
    assert contents_of(train(model, rows, seed=3)) == contents_of(train(model, rows, seed=3))


def test_another_seed_gives_other_bytes_in_every_array_or_in_none(kind, model, rows):
    one, other = (contents_of(train(model, rows, seed=seed)) for seed in (3, 4))
    assert one.keys() == other.keys()
    assert {name: one[name] != other[name] for name in one} == dict.fromkeys(one, kind.seeded)


def test_training_something_else_in_between_leaves_no_trace(model, tables, rows):
    first = contents_of(train(model, rows, epochs=2))
    train(model, tables.random_table(9, users=20, items=30), epochs=3, seed=8)
    assert contents_of(train(model, rows, epochs=2)) == first


def test_a_new_model_trains_as_one_that_has_trained_before(kind, model, rows):
    train(model, rows)
    assert contents_of(train(kind.model, rows)) == contents_of(train(model, rows))


def test_training_never_changes_its_start(model, rows):
    start = model.start(rows.items, 0)
    before = copies(start)
    trained = train(model, rows, start=start)
    assert trained.shared.keys() == start.keys()
    for name, array in start.items():
        assert array.tobytes() == before[name].tobytes()
        assert not np.shares_memory(array, trained.shared[name])


def test_training_changes_every_shared_array_and_every_user(kind, model, rows):
    start = model.start(rows.items, 0)
    trained = train(model, rows, start=start)
    assert all((trained.shared[name] != start[name]).any() for name in start)
    early, late = (train(model, rows, epochs=epochs).rows for epochs in (1, 2))
    assert early.keys() == late.keys() == kind.rows
    assert all((early[name] != late[name]).any(axis=1).all() for name in kind.rows)


def test_what_comes_back_is_read_only_and_of_32_bits(kind, model, rows):
    trained = train(model, rows)
    for name, array in {**trained.shared, **trained.rows}.items():
        assert not array.flags.writeable
        assert array.flags.c_contiguous
        assert array.dtype == (np.int32 if name in kind.whole_numbers else np.float32)


def test_there_is_a_row_for_each_user_of_the_stage(kind, model, rows):
    trained = train(model, rows)
    assert {name: len(array) for name, array in trained.rows.items()} == dict.fromkeys(kind.rows, len(rows.users))


def test_a_stage_can_start_from_what_another_returned(model, rows):
    first = train(model, rows)
    before = contents_of(first)
    second = train(model, rows, start=first.shared, position=1)
    assert contents_of(first) == before
    assert contents_of(second) != before


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


def test_scores_are_finite_for_everyone_and_everything(model, rows):
    for found in scores(model, train(model, rows, epochs=5), rows):
        assert found.shape == (len(rows.items),)
        assert found.dtype == np.float32
        assert np.isfinite(found).all()


def test_probabilities_lie_between_0_and_1_in_the_order_of_scores(model, rows):
    found = scores(model, train(model, rows, epochs=5), rows)[0]
    likely = model.probability(found)
    assert likely.shape == found.shape
    assert (likely > 0).all()
    assert (likely < 1).all()
    assert (np.diff(likely[np.argsort(found)]) >= 0).all()


@pytest.mark.parametrize(
    "few",
    [
        {"u": "a"},
        {"u": "abc"},
        {"u": "abc", "v": "abc"},
        {"u": {"a": 1.0}, "v": {"a": 5.0}},
        {"u": {"a": 0.0, "b": 0.0}, "v": {"a": 5.0}},
    ],
    ids=[
        "one interaction",
        "one user with everything",
        "two users with everything",
        "one item with an extreme each",
        "a user who rates 0 alone",
    ],
)
def test_the_smallest_tables_train_to_finite_numbers(model, tables, few):
    rows = tables.table(few, catalogue="abc")
    trained = train(model, rows, epochs=20)
    assert trained.all_finite()
    assert all(np.isfinite(found).all() for found in scores(model, trained, rows))


def test_an_item_that_nobody_has_can_be_scored(model, tables):
    rows = tables.table({"u": "ab", "v": "bc"}, catalogue="abcdefgh")
    assert np.isfinite(scores(model, train(model, rows, epochs=3), rows)[0]).all()


def test_a_catalogue_of_one_item_works(model, tables):
    rows = tables.table({"u": "a", "v": "a"})
    assert scores(model, train(model, rows, epochs=3), rows)[0].shape == (1,)


def test_a_user_s_scores_do_not_depend_on_who_was_scored_before(model, rows):
    trained = train(model, rows, epochs=2)
    score, users = model.scorer(trained.shared), range(len(rows.users))
    in_turn = [score(row_at(trained.rows, user), rows.items_at(user)).tobytes() for user in users]
    alone = [model.scorer(trained.shared)(row_at(trained.rows, user), rows.items_at(user)).tobytes() for user in users]
    backwards = [score(copies(row_at(trained.rows, user)), rows.items_at(user)).tobytes() for user in users[::-1]][::-1]
    assert in_turn == alone == backwards


def test_scoring_hands_out_an_array_of_its_own(model, rows):
    trained = train(model, rows)
    score = model.scorer(trained.shared)
    first = score(row_at(trained.rows, 0), rows.items_at(0))
    kept = first.copy()
    score(row_at(trained.rows, 1), rows.items_at(1))[:] = 0
    assert np.array_equal(first, kept)


def test_scoring_changes_nothing(model, rows):
    trained = train(model, rows)
    before, owned = contents_of(trained), rows.item_index.copy()
    scores(model, trained, rows)
    assert contents_of(trained) == before
    assert np.array_equal(rows.item_index, owned)


@pytest.mark.parametrize("threads", [2, 3])
def test_threads_do_not_change_a_byte(model, rows, threads):
    assert contents_of(train(model, rows, threads, epochs=3)) == contents_of(train(model, rows, 1, epochs=3))


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


def test_busy_processes_beside_it_do_not_change_a_byte(model, rows):
    in_peace = contents_of(train(model, rows, 2, epochs=3))
    with busy_process(), busy_process():
        assert contents_of(train(model, rows, 2, epochs=3)) == in_peace
        assert contents_of(train(model, rows, 3, epochs=3)) == in_peace


_TRAIN_ALL = """
import json, sys
from erasable.data import RatingScale, SyntheticSettings, synthesise
from erasable.fingerprint import of_arrays
from erasable.models import Effort, ModelSettings, Stage, make_model

rows = synthesise(SyntheticSettings(users=60, items=50, groups=4, per_user=15, ratings=True)).interactions
found = {}
for name, settings in json.loads(sys.argv[1]).items():
    model = make_model(ModelSettings(**{**settings, "batch": 300}))
    stage = Stage(rows, RatingScale(1, 5), epochs=2, seed=1, position=0)
    trained = model.train(model.start(rows.items, 1), stage, Effort(2))
    found[name] = of_arrays({**trained.shared, **trained.rows})
    found[name + ", solved"] = of_arrays(dict(model.solve(trained.shared, stage, Effort(2))))
print(json.dumps(found))
"""


def digests_of_a_process(**environment):
    settings = json.dumps({name: kind.settings.model_dump() for name, kind in MODELS.items()})
    command = [sys.executable, "-c", _TRAIN_ALL, settings]
    answer = subprocess.run(command, env={**os.environ, **environment}, capture_output=True, check=True)
    return json.loads(answer.stdout)


def test_another_process_gives_the_same_bytes():
    found = digests_of_a_process(PYTHONHASHSEED="1")
    assert len(found) == 2 * len(MODELS)
    assert found == digests_of_a_process(PYTHONHASHSEED="2")


@pytest.mark.slow
def test_freshly_compiled_code_gives_the_same_bytes_as_code_that_was_kept(tmp_path):
    fresh = digests_of_a_process(NUMBA_CACHE_DIR=str(tmp_path))
    assert any(tmp_path.iterdir())
    kept = digests_of_a_process(NUMBA_CACHE_DIR=str(tmp_path))
    assert fresh == kept == digests_of_a_process()
