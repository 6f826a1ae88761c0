"""What is asked of our own models beyond the suites that every model inherits (test_suites.py)."""

import json
import os
import subprocess
import sys
from contextlib import contextmanager

import numpy as np
import pytest

from erasable.models import Effort
from kit.model_suite import MODELS, contents_of, represent, train
from kit.tables import stage


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


def test_another_seed_gives_other_bytes_in_every_array_or_in_none(kind, model, rows):
    one, other = (contents_of(train(model, rows, seed=seed)) for seed in (3, 4))
    assert one.keys() == other.keys()
    assert {name: one[name] != other[name] for name in one} == dict.fromkeys(one, kind.seeded)


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


def test_rows_that_are_solved_are_of_32_bits(kind, model, rows):
    found = represent(model, train(model, rows).shared, stage(rows), Effort())
    assert {name: array.dtype for name, array in found.items()} == dict.fromkeys(kind.rows, np.float32)


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
from erasable.models import Effort, Stage, find_model
from erasable.models.base import prepared_by

rows = synthesise(SyntheticSettings(users=60, items=50, groups=4, per_user=15, ratings=True)).interactions
found = {}
for name, (kind, settings) in json.loads(sys.argv[1]).items():
    model = find_model(kind)(**{**settings, **({"batch": 300} if "batch" in settings else {})})
    stage = Stage(rows, RatingScale(1, 5), epochs=2, seed=1, position=0)
    trained = model.train(model.start(rows.items, 1), stage, Effort(2))
    found[name] = of_arrays({**trained.shared, **trained.rows})
    found[name + ", solved"] = of_arrays(dict(model.represent(prepared_by(model, trained.shared), stage, Effort(2))))
print(json.dumps(found))
"""


def digests_of_a_process(**environment):
    settings = json.dumps({name: (kind.name, dict(kind.settings)) for name, kind in MODELS.items()})
    command = [sys.executable, "-c", _TRAIN_ALL, settings]
    answer = subprocess.run(command, env={**os.environ, **environment}, capture_output=True, check=True)
    return json.loads(answer.stdout)


@pytest.mark.full
def test_freshly_compiled_code_gives_the_same_bytes_as_code_that_was_kept(tmp_path):
    fresh = digests_of_a_process(NUMBA_CACHE_DIR=str(tmp_path))
    assert any(tmp_path.iterdir())
    kept = digests_of_a_process(NUMBA_CACHE_DIR=str(tmp_path))
    assert fresh == kept == digests_of_a_process()
