import os
import subprocess
import sys

import numpy as np
import pytest

from erasable.paper._walks import SENTENCE_READINGS, SIZE, user_vectors

USERS = 12
LONER = 11


def some_walks(users=USERS):
    """Return four walks for each user: the even among themselves, the odd among themselves, the last one alone."""
    walks = np.random.default_rng(0).integers(0, (users - 1) // 2, (4 * users, 9))
    starts = np.repeat(np.arange(users), 4)
    walks = 2 * walks + (starts % 2)[:, None]
    walks[:, 0] = starts
    walks[starts == users - 1] = users - 1
    return walks.astype(np.int32)


def answer_of(program, **environment):
    command = [sys.executable, "-c", program]
    answer = subprocess.run(command, env={**os.environ, **environment}, capture_output=True, check=True, text=True)
    return answer.stdout.strip()


def test_every_user_has_a_vector_of_32_numbers():
    vectors = user_vectors(some_walks(), USERS, seed=0)
    assert vectors.shape == (USERS, SIZE) == (USERS, 32)
    assert vectors.dtype == np.float32
    assert vectors.flags.c_contiguous
    assert np.isfinite(vectors).all()
    assert len(np.unique(vectors, axis=0)) == USERS


def test_who_meets_nobody_has_a_finite_vector_too():
    loner = user_vectors(some_walks(), USERS, seed=0)[LONER]
    assert np.isfinite(loner).all()
    assert loner.any()


@pytest.mark.parametrize("users", [1, 5])
def test_where_nobody_meets_anybody_vectors_are_finite(users):
    walks = np.repeat(np.arange(users, dtype=np.int32), 4)[:, None] + np.zeros((1, 9), np.int32)
    vectors = user_vectors(walks, users, seed=0)
    assert vectors.shape == (users, SIZE)
    assert np.isfinite(vectors).all()


def test_vectors_stand_in_the_order_of_users_however_often_they_are_walked_over():
    # gensim puts users 0 and 2 first, who are walked over most; whoever keeps company has vectors that are close.
    rows = [[0, 2, 0, 2], [1, 3, 1, 3]] * 600 + [[2, 0, 2, 0]] * 1200
    vectors = user_vectors(np.array(rows, np.int32), 4, seed=0).astype(np.float64)
    directions = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    cosines = directions @ directions.T
    assert cosines[0, 2] > max(cosines[0, 1], cosines[0, 3], cosines[2, 1], cosines[2, 3])
    assert cosines[1, 3] > max(cosines[0, 1], cosines[0, 3], cosines[2, 1], cosines[2, 3])


def test_vectors_follow_seed_and_walks():
    walks = some_walks()
    first, again, other = (user_vectors(walks, USERS, seed).tobytes() for seed in (3, 3, 4))
    assert first == again != other
    changed = walks.copy()
    changed[0, 1] = (changed[0, 1] + 2) % 10
    assert user_vectors(changed, USERS, seed=3).tobytes() != first


_PRINT_VECTORS = """
import numpy as np
from erasable.paper._walks import user_vectors
walks = np.array({walks}, dtype=np.int32)
print(user_vectors(walks, {users}, seed=3).tobytes().hex())
"""


@pytest.mark.full
def test_another_process_with_another_hash_seed_gives_the_same_bytes():
    program = _PRINT_VECTORS.format(walks=some_walks().tolist(), users=USERS)
    here = user_vectors(some_walks(), USERS, seed=3).tobytes().hex()
    assert answer_of(program, PYTHONHASHSEED="4242") == here


def test_the_reading_of_every_walk_is_told():
    told, walks = [], some_walks()
    user_vectors(walks, USERS, 0, told.append)
    assert sum(told) == len(walks) * SENTENCE_READINGS


def test_many_walks_are_told_in_portions():
    told, walks = [], np.tile(np.arange(10, dtype=np.int32)[:, None], (1200, 2))
    user_vectors(walks, 10, 0, told.append)
    assert sum(told) == len(walks) * SENTENCE_READINGS
    assert len(told) == 2 * SENTENCE_READINGS


def test_gensim_waits_until_it_is_needed():
    program = "import sys, erasable, erasable.paper; print('gensim' in sys.modules)"
    assert answer_of(program) == "False"
