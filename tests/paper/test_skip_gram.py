import os
import subprocess
import sys

import numpy as np
import pytest

from erasable.paper import _skip_gram as module
from erasable.paper._skip_gram import (
    EPOCHS,
    GENSIM_READINGS,
    NEGATIVES,
    SIZE,
    WINDOW,
    SkipGram,
    gensim_vectors,
    noise_table,
    train_walks,
    user_vectors,
)
from erasable.seeding import id_keys, mix

USERS = 12
LONER = 11


def ids(users=USERS):
    return [f"u{number:02d}" for number in range(users)]


def by_ours(walks, users, seed, *advance):
    return user_vectors(walks, ids(users), seed, *advance)


BOTH = pytest.mark.parametrize(
    ("learn", "readings"), [(by_ours, EPOCHS), (gensim_vectors, GENSIM_READINGS)], ids=["ours", "gensim"]
)


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


@BOTH
class TestVectors:
    def test_every_user_has_one_of_32_numbers(self, learn, readings):
        vectors = learn(some_walks(), USERS, 0)
        assert vectors.shape == (USERS, SIZE) == (USERS, 32)
        assert vectors.dtype == np.float32
        assert vectors.flags.c_contiguous
        assert np.isfinite(vectors).all()
        assert len(np.unique(vectors, axis=0)) == USERS

    def test_who_meets_nobody_has_a_finite_one_too(self, learn, readings):
        loner = learn(some_walks(), USERS, 0)[LONER]
        assert np.isfinite(loner).all()
        assert loner.any()

    @pytest.mark.parametrize("users", [1, 5])
    def test_where_nobody_meets_anybody_they_are_finite(self, learn, readings, users):
        walks = np.repeat(np.arange(users, dtype=np.int32), 4)[:, None] + np.zeros((1, 9), np.int32)
        vectors = learn(walks, users, 0)
        assert vectors.shape == (users, SIZE)
        assert np.isfinite(vectors).all()

    def test_they_stand_in_the_order_of_users_however_often_those_are_walked_over(self, learn, readings):
        # gensim puts users 0 and 2 first, who are walked over most; whoever keeps company has vectors that are close.
        rows = [[0, 2, 0, 2], [1, 3, 1, 3]] * 600 + [[2, 0, 2, 0]] * 1200
        vectors = learn(np.array(rows, np.int32), 4, 0).astype(np.float64)
        directions = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
        cosines = directions @ directions.T
        assert cosines[0, 2] > max(cosines[0, 1], cosines[0, 3], cosines[2, 1], cosines[2, 3])
        assert cosines[1, 3] > max(cosines[0, 1], cosines[0, 3], cosines[2, 1], cosines[2, 3])

    def test_they_follow_seed_and_walks(self, learn, readings):
        walks = some_walks()
        first, again, other = (learn(walks, USERS, seed).tobytes() for seed in (3, 3, 4))
        assert first == again != other
        changed = walks.copy()
        changed[0, 1] = (changed[0, 1] + 2) % 10
        assert learn(changed, USERS, 3).tobytes() != first

    def test_the_reading_of_every_walk_is_told(self, learn, readings):
        told, walks = [], some_walks()
        learn(walks, USERS, 0, told.append)
        assert sum(told) == len(walks) * readings

    def test_many_walks_are_told_in_portions(self, learn, readings):
        told, walks = [], np.tile(np.arange(10, dtype=np.int32)[:, None], (1200, 2))
        learn(walks, 10, 0, told.append)
        assert sum(told) == len(walks) * readings
        assert len(told) == 2 * readings


_PRINT_VECTORS = """
import numpy as np
from erasable.paper._skip_gram import gensim_vectors, user_vectors
walks = np.array({walks}, dtype=np.int32)
found = gensim_vectors(walks, {users}, 3), user_vectors(walks, {ids}, 3)
print(b"".join(vectors.tobytes() for vectors in found).hex())
"""


@pytest.mark.full
@pytest.mark.parametrize("threads", ["1", "2"])
def test_another_process_with_another_hash_seed_gives_the_same_bytes(threads):
    walks = some_walks()
    program = _PRINT_VECTORS.format(walks=walks.tolist(), users=USERS, ids=ids())
    here = gensim_vectors(walks, USERS, 3).tobytes() + by_ours(walks, USERS, 3).tobytes()
    assert answer_of(program, PYTHONHASHSEED="4242", NUMBA_NUM_THREADS=threads) == here.hex()


def test_gensim_waits_until_it_is_needed():
    program = "import sys, erasable, erasable.paper; print('gensim' in sys.modules)"
    assert answer_of(program) == "False"


class TestOneStep:
    """A walk of two users: each is once the centre, and the other their company."""

    def trained(self, vectors, contexts, noise):
        state = SkipGram(np.array(vectors, np.float32), np.array(contexts, np.float32), noise, module._sigmoids())
        train_walks(0, 1, 0, np.array([[0, 1]], np.int32), np.array([7], np.uint64), state)
        return state

    def test_follows_the_formula(self):
        # Negatives are all user 2, whose five steps come one after the other; the first learning rate is 0.025.
        zeros = [0.0] * 6
        vectors, contexts = [[1, 1, *zeros], [0, 2, *zeros], [0] * 8], [[0] * 8, [2, 1, *zeros], [0] * 8]
        state = self.trained(vectors, contexts, np.array([2, 2, 2], np.uint64))
        # Centre 0, company 1: the product is 3, and the table is read at 2.996 or 3.
        step = 0.025 * (1 - module._sigmoids()[int((3 + 6) * 1000 / 12)])
        assert state.contexts[1, :2] == pytest.approx([2 + step, 1 + step])
        negative, pull = np.zeros(2), step * np.array([2.0, 1.0])
        for _ in range(NEGATIVES):  # products near 0, with a sigmoid of about 1/2
            product = negative @ [1, 1]
            push = -0.025 * module._sigmoids()[int((product + 6) * 1000 / 12)]
            pull, negative = pull + push * negative, negative + push * np.array([1.0, 1.0])
        assert state.vectors[0, :2] == pytest.approx(1 + pull, abs=1e-6)
        assert not state.vectors[2].any()

    def test_begins_with_a_sigmoid_of_one_half(self):
        vectors = np.eye(8)[:3]
        state = self.trained(vectors, np.zeros((3, 8)), np.array([2, 2, 2], np.uint64))
        assert state.contexts[1] == pytest.approx(0.5 * 0.025 * vectors[0])
        assert state.contexts[0] == pytest.approx(0.5 * 0.025 * vectors[1])

    def test_a_negative_that_is_the_company_is_left_out(self):
        vectors, noise = np.eye(8)[:2], np.array([1, 1], np.uint64)
        state = self.trained(vectors, np.zeros((2, 8)), noise)
        assert state.contexts[1, 0] == pytest.approx(0.5 * 0.025)

    @pytest.mark.parametrize(("length", "changes"), [(2.4, True), (2.5, False)])
    def test_where_the_sigmoid_is_nearly_0_or_1_nothing_changes(self, length, changes):
        vectors, contexts = np.zeros((3, 8)), np.zeros((3, 8))
        vectors[:2, 0] = contexts[:2, 0] = length  # its square is 5.76 or 6.25
        state = self.trained(vectors, contexts, np.array([2, 2, 2], np.uint64))
        assert bool(state.contexts[1, 0] != np.float32(length)) is changes

    def test_just_below_the_steepest_product_the_last_entry_of_the_table_counts(self):
        vectors, contexts = np.zeros((3, 8)), np.zeros((3, 8))
        vectors[:2, 0], contexts[:2, 0] = 1, np.nextafter(np.float32(6), np.float32(0))
        state = self.trained(vectors, contexts, np.array([2, 2, 2], np.uint64))
        assert abs(state.contexts[1, 0] - 6) < 0.01
        assert abs(state.vectors[0, 0] - 1) < 0.01


def reference(walks, users, seed):
    """Return vectors as word2vec's algorithm, written out in plain Python, gives them in double precision."""
    keys = id_keys(seed, "user vector", users)
    numbers = np.arange(SIZE, dtype=np.uint64)
    vectors = [((mix(key[None], numbers) >> np.uint64(40)) * 2.0**-24 - 0.5) / SIZE for key in keys]
    contexts, sigmoids = np.zeros((len(keys), SIZE)), module._sigmoids()
    table = noise_table(np.bincount(walks.ravel(), minlength=len(keys))).tolist()
    for round_number in range(EPOCHS * len(walks)):
        epoch, row = divmod(round_number, len(walks))
        rate = 0.025 - (0.025 - 0.0001) * round_number / (EPOCHS * len(walks))
        walk, place_of_walk = walks[row].tolist(), SIZE + row % 4
        own = mix(keys[walk[0]][None], np.array([place_of_walk], np.uint64))
        own = mix(own, np.array([epoch], np.uint64))
        bits = [int(one) for one in mix(own, np.arange(1000, dtype=np.uint64))]
        reaches = [WINDOW - ((one >> 32) * WINDOW >> 32) for one in bits[: len(walk)]]
        drawn = iter(bits[len(walk) :])
        for place, centre in enumerate(walk):
            for near in range(max(0, place - reaches[place]), min(len(walk), place + reaches[place] + 1)):
                if near == place:
                    continue
                targets = [(walk[near], 1.0)]
                for _ in range(NEGATIVES):
                    draw = next(drawn)
                    user = (draw >> 32) * len(keys) >> 32
                    user = user if draw % 2**32 < table[user] >> 32 else table[user] % 2**32
                    targets += [(user, 0.0)] if user != walk[near] else []
                change = np.zeros(SIZE)
                for target, label in targets:
                    product = vectors[centre] @ contexts[target]
                    if abs(product) < 6:
                        step = rate * (label - sigmoids[int((product + 6) * 1000 / 12)])
                        change = change + step * contexts[target]
                        contexts[target] += step * vectors[centre]
                vectors[centre] = vectors[centre] + change
    return np.array(vectors)


def test_all_of_it_is_what_plain_python_gives():
    walks = some_walks()
    assert user_vectors(walks, ids(), 3) == pytest.approx(reference(walks, ids(), 3), abs=1e-3)


def test_a_start_depends_on_seed_and_id_alone():
    def starts(seed, *users):
        return module._first_vectors(id_keys(seed, "user vector", users))

    assert np.array_equal(starts(0, "ann", "bob")[1], starts(0, "bob")[0])
    assert not np.array_equal(starts(0, "ann"), starts(1, "ann"))
    many = starts(0, *map(str, range(1000)))
    assert np.abs(many).max() <= 0.5 / SIZE
    assert many.mean() == pytest.approx(0, abs=1e-4)


class TestNoise:
    def shares(self, table):
        """Return each user's share of all draws, by counting what the entries of a table give away."""
        found = np.zeros(len(table))
        for user, entry in enumerate(table.tolist()):
            found[user] += (entry >> 32) / 2**32
            found[entry % 2**32] += 1 - (entry >> 32) / 2**32
        return found / len(table)

    @pytest.mark.parametrize("counts", [[1], [16, 81, 1], [5, 5, 5, 5], [4] * 50 + [4000], list(range(1, 200))])
    def test_users_are_drawn_in_proportion_to_count_to_the_power_of_three_quarters(self, counts):
        expected = np.array(counts) ** 0.75
        assert self.shares(noise_table(np.array(counts))) == pytest.approx(expected / expected.sum(), rel=1e-6)

    def test_by_hand(self):
        # 16 and 81 weigh 8 and 27, 35 in all: each entry stands for half, and the first gives 19/35 of it away.
        first, second = noise_table(np.array([16, 81])).tolist()
        assert ((first >> 32) / 2**32, first % 2**32) == (pytest.approx(16 / 35), 1)
        assert second % 2**32 == 1
