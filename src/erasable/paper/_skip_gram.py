"""User vectors (Algorithm 1): walks as sentences, embedded by skip-gram with negative sampling, ours or gensim's.

Ours is word2vec's algorithm in compiled code on one thread: each walk in turn, so every row has one writer. What is
drawn for a walk depends on the seed and on the id of the user it starts from. gensim's is for workspaces that were
learned with it, and needs the extra `paper`.
"""

from collections.abc import Iterable, Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from erasable.progress import Advance, ignore
from erasable.seeding import child_key, id_keys, mix
from erasable.seeding.compiled import below, compiled, draw

SIZE = 32
WINDOW = 5
EPOCHS = 5
NEGATIVES = 5
FIRST_RATE, LAST_RATE = 0.025, 0.0001
"""The learning rate falls evenly from the first to the last over all walks of all epochs."""
GENSIM_READINGS = EPOCHS + 1
"""How often gensim reads the walks: once for the vocabulary, then once for each epoch."""
_WALKS_AT_ONCE = 10_000
_STEEP = 6.0
"""Products beyond this are not trained on: their sigmoid is nearly 0 or 1."""
_SIGMOIDS = 1000
_LINE = 16
"""How many numbers a line of the processor's cache holds: 64 bytes."""

Walks = NDArray[np.int32]
"""A row for each walk: the user it starts from, then one user for each step; the walks of a user lie together."""
Vectors = NDArray[np.float32]


class SkipGram(NamedTuple):
    """What training a walk reads and changes."""

    vectors: Vectors
    """A row for each user, as the centre of a window: the result."""
    contexts: Vectors
    """A row for each user, as company in the window of another."""
    noise: NDArray[np.uint64]
    """The table that negatives are drawn from (`noise_table`)."""
    sigmoids: NDArray[np.float32]
    """The sigmoid at evenly spaced places from −6 to 6."""


def user_vectors(walks: Walks, users: Iterable[str], seed: int, advance: Advance = ignore) -> Vectors:
    """Return a vector for each user; `users` are all ids, in the order of their numbers."""
    starts = id_keys(seed, "user vector", users)
    keys = mix(starts[walks[:, 0]], _places_of_walks(walks))
    counts = np.bincount(walks.ravel(), minlength=len(starts))
    state = SkipGram(_table(len(starts)), _table(len(starts)), noise_table(counts), _sigmoids())
    state.vectors[:] = _first_vectors(starts)
    for epoch in range(EPOCHS):
        for begin in range(0, len(walks), _WALKS_AT_ONCE):
            end = min(begin + _WALKS_AT_ONCE, len(walks))
            train_walks(begin, end, epoch, walks, keys, state)
            advance(end - begin)
    return state.vectors


def _table(rows: int) -> Vectors:
    """Return zeros whose rows begin at cache lines: with reading ahead, large tables take half the time (measured)."""
    numbers = np.zeros(rows * SIZE + _LINE, np.float32)
    first = -(numbers.ctypes.data // numbers.itemsize) % _LINE
    return numbers[first : first + rows * SIZE].reshape(rows, SIZE)


def _places_of_walks(walks: Walks) -> NDArray[np.uint64]:
    """Return which of its user's walks each walk is, counted from the size of a vector on: draws before are taken."""
    begins = np.flatnonzero(np.diff(walks[:, 0], prepend=-1))
    lengths = np.diff(begins, append=len(walks))
    return (np.arange(len(walks)) - np.repeat(begins, lengths) + SIZE).astype(np.uint64)


def _first_vectors(keys: NDArray[np.uint64]) -> Vectors:
    """Return a row for each key, evenly distributed between −1/2 and 1/2, divided by the size."""
    bits = mix(keys[:, None], np.arange(SIZE, dtype=np.uint64)[None, :]) >> np.uint64(40)
    return (bits.astype(np.float32) * np.float32(2.0**-24) - np.float32(0.5)) / np.float32(SIZE)


def _sigmoids() -> NDArray[np.float32]:
    places = (2.0 * np.arange(_SIGMOIDS) / _SIGMOIDS - 1.0) * _STEEP
    return (1.0 / (1.0 + np.exp(-places))).astype(np.float32)


def noise_table(counts: NDArray[np.int64]) -> NDArray[np.uint64]:
    """Return a table to draw users from in proportion to count ^ 3/4 with one look (Walker's alias method).

    An entry holds another user (low half) and the share of draws, out of 2 ^ 32, that stay with the entry's own user.
    """
    roots = np.sqrt(counts)  # only square roots: every machine rounds them alike
    weights = roots * np.sqrt(roots)
    table = np.empty(len(counts), np.uint64)
    _fill_noise_table(weights * (len(weights) / weights.sum()), table)
    return table


@compiled(nogil=True)
def _fill_noise_table(shares: NDArray[np.float64], table: NDArray[np.uint64]) -> None:
    """Fill up each user whose share is below 1 from one whose share is above; shares change in place."""
    users = len(shares)
    waiting = np.empty(users, np.int64)  # users below 1 from the left, all others from the right
    below_one, above = 0, users
    for user in range(users):
        table[user] = np.uint64(user)  # of whoever remains in the end, all draws stay
        if shares[user] < 1.0:
            waiting[below_one] = user
            below_one += 1
        else:
            above -= 1
            waiting[above] = user
    while below_one > 0 and above < users:
        below_one -= 1
        user, other = waiting[below_one], waiting[above]
        table[user] = np.uint64(other) | (np.uint64(shares[user] * 2.0**32) << np.uint64(32))
        shares[other] -= 1.0 - shares[user]
        if shares[other] < 1.0:
            above += 1
            waiting[below_one] = other
            below_one += 1


@compiled(inline="always")
def _noise(bits: np.uint64, table: NDArray[np.uint64]) -> int:
    """Turn a draw into a user: its high half chooses an entry, its low half whether to stay there."""
    user = below(bits, len(table))
    entry = table[user]
    stays = (bits & np.uint64(0xFFFFFFFF)) < (entry >> np.uint64(32))
    return int(user if stays else np.int64(entry & np.uint64(0xFFFFFFFF)))


@compiled(nogil=True)
def train_walks(begin: int, end: int, epoch: int, walks: Walks, keys: NDArray[np.uint64], state: SkipGram) -> None:
    """Train on a range of walks, one after the other; `keys` has one for each walk."""
    depth = walks.shape[1]
    windows = np.empty((depth, 2), np.int64)
    negatives = np.empty((depth * (depth - 1), NEGATIVES), np.int64)
    work = np.empty((2, state.vectors.shape[1]), np.float32)
    for walk in range(begin, end):
        done = (epoch * len(walks) + walk) / (EPOCHS * len(walks))
        rate = np.float32(FIRST_RATE - (FIRST_RATE - LAST_RATE) * done)
        pairs = _draw_for_walk(draw(keys[walk], np.uint64(epoch)), windows, negatives, state.noise)
        work[0, 0] = _read_ahead(negatives[:pairs], state.contexts)  # kept, or the compiler would leave it out
        _train_walk(walks[walk], rate, windows, negatives, work, state)


@compiled(nogil=True)
def _draw_for_walk(
    key: np.uint64, windows: NDArray[np.int64], negatives: NDArray[np.int64], noise: NDArray[np.uint64]
) -> int:
    """Draw windows around the places of a walk, 1 to `WINDOW` to each side, then negatives; return how many pairs."""
    depth, pairs = len(windows), 0
    for place in range(depth):
        reach = WINDOW - below(draw(key, np.uint64(place)), WINDOW)
        windows[place, 0], windows[place, 1] = max(0, place - reach), min(depth, place + reach + 1)
        pairs += windows[place, 1] - windows[place, 0] - 1
    for pair in range(pairs):
        for number in range(NEGATIVES):
            negatives[pair, number] = _noise(draw(key, np.uint64(depth + pair * NEGATIVES + number)), noise)
    return pairs


@compiled(nogil=True)
def _read_ahead(negatives: NDArray[np.int64], contexts: Vectors) -> np.float32:
    """Touch the rows that a walk needs: they come from memory at the same time, and not one after the other."""
    total = np.float32(0.0)
    for pair in range(len(negatives)):
        for number in range(NEGATIVES):
            for column in range(0, contexts.shape[1], _LINE):
                total += contexts[negatives[pair, number], column]
    return total


# One function for all its loops: where the innermost are a function of their own, even an inlined one, they take twice
# as long. The size is read from the array because the compiler unrolls a loop of constant length before it could use
# vector instructions, and the sum is written in halves because it may not reorder sums: 27 ns a target instead of 72.
@compiled(nogil=True)
def _train_walk(  # noqa: C901 - as said above
    walk: NDArray[np.int32],
    rate: np.float32,
    windows: NDArray[np.int64],
    negatives: NDArray[np.int64],
    work: NDArray[np.float32],
    state: SkipGram,
) -> None:
    """Train on each pair of a walk: the centre's product with the company must be large, with negatives small."""
    vectors, contexts, sigmoids = state.vectors, state.contexts, state.sigmoids
    products, change, size, pair = work[0], work[1], vectors.shape[1], 0
    for place in range(len(walk)):
        centre = walk[place]
        for near in range(windows[place, 0], windows[place, 1]):
            if near == place:
                continue
            change[:] = 0.0
            for number in range(NEGATIVES + 1):  # the company first, then what is drawn
                target = np.int64(walk[near]) if number == 0 else negatives[pair, number - 1]
                if number > 0 and target == walk[near]:
                    continue
                for column in range(size):
                    products[column] = vectors[centre, column] * contexts[target, column]
                half = size
                while half > 4:
                    half >>= 1
                    for column in range(half):
                        products[column] += products[column + half]
                product = (products[0] + products[2]) + (products[1] + products[3])
                if abs(product) >= np.float32(_STEEP):
                    continue
                entry = int((product + np.float32(_STEEP)) * np.float32(_SIGMOIDS / (2 * _STEEP)))
                sigmoid = sigmoids[min(entry, _SIGMOIDS - 1)]  # just below the steepest product it rounds up
                step = (np.float32(number == 0) - sigmoid) * rate
                for column in range(size):
                    change[column] += step * contexts[target, column]
                for column in range(size):
                    contexts[target, column] += step * vectors[centre, column]
            for column in range(size):
                vectors[centre, column] += change[column]
            pair += 1


def gensim_vectors(walks: Walks, users: int, seed: int, advance: Advance = ignore) -> Vectors:
    """Return a vector for each user by gensim; with one worker, so that the bytes repeat."""
    from gensim.models import Word2Vec

    model = Word2Vec(
        sentences=_Sentences(walks, advance),
        vector_size=SIZE,
        window=WINDOW,
        epochs=EPOCHS,
        negative=NEGATIVES,
        sg=1,
        min_count=1,
        sample=0,
        workers=1,
        seed=child_key(seed, "user vectors") % 2**31,
    )
    places = [model.wv.key_to_index[user] for user in range(users)]
    return np.ascontiguousarray(model.wv.vectors[places])


class _Sentences:
    """Walks as lists of user numbers; can be iterated several times."""

    def __init__(self, walks: Walks, advance: Advance) -> None:
        self._walks = walks
        self._advance = advance

    def __iter__(self) -> Iterator[list[int]]:
        for begin in range(0, len(self._walks), _WALKS_AT_ONCE):
            part = self._walks[begin : begin + _WALKS_AT_ONCE]
            yield from part.tolist()
            self._advance(len(part))
