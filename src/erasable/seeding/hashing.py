"""BLAKE2b (RFC 7693) of many short messages at once: the digests of hashlib, without a Python object for each.

Eight messages are hashed side by side, so that the compiler can use the processor's vector instructions. There are
integers only, so a digest depends neither on the processor nor on the number of threads.
"""

from collections.abc import Iterator
from hashlib import blake2b
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from erasable.seeding.compiled import compiled
from erasable.threads import pool_of

FEW = 50_000
"""With fewer messages hashlib is used.

Measured: hashlib takes 0.4 µs a message, compiled code 0.07 µs, and loading that 8 ms; 180 ms more if no other compiled
code is loaded yet. From here on it is worth the first, and little is lost with the second.
"""
# A share takes a few milliseconds, so that Ctrl-C is noticed.
_SHARE = 1 << 16
_BLOCK = 128
_LANES = 8
# The rows of the table of lanes: eight of state, the bytes so far, whether this is the last block, its 16 words. One
# table, because the compiler uses no vector instructions if it must suppose that two arrays overlap.
_COUNT, _LAST, _WORDS, _ROWS = 8, 9, 10, 26
_ONES, _ZEROS = np.uint64(0xFFFFFFFFFFFFFFFF), np.uint64(0)
_START = (
    np.uint64(0x6A09E667F3BCC908),
    np.uint64(0xBB67AE8584CAA73B),
    np.uint64(0x3C6EF372FE94F82B),
    np.uint64(0xA54FF53A5F1D36F1),
    np.uint64(0x510E527FADE682D1),
    np.uint64(0x9B05688C2B3E6C1F),
    np.uint64(0x1F83D9ABFB41BD6B),
    np.uint64(0x5BE0CD19137E2179),
)

_Words: TypeAlias = tuple[np.uint64, ...]


class Texts(NamedTuple):
    """Texts as the UTF-8 bytes of all, concatenated, and where each of them ends."""

    content: NDArray[np.uint8]
    ends: NDArray[np.int64]

    @classmethod
    def of(cls, content: bytes, ends: NDArray[np.int64]) -> "Texts":
        """Return texts given as bytes."""
        return cls(np.frombuffer(content, dtype=np.uint8), ends)

    def at(self, numbers: NDArray[np.int32]) -> "Pairs":
        """Return the texts with some numbers, as messages without a second part."""
        nothing = Texts(np.empty(0, dtype=np.uint8), np.zeros(1, dtype=np.int64))
        return Pairs(self, nothing, numbers, np.zeros(len(numbers), dtype=np.int32))


class Pairs(NamedTuple):
    """Messages of two parts: for each its number among the first parts, and among the second parts."""

    firsts: Texts
    seconds: Texts
    first: NDArray[np.int32]
    second: NDArray[np.int32]


def digests(
    messages: Texts | Pairs, size: int, prefix: bytes = b"", key: bytes = b"", threads: int = 1
) -> NDArray[np.uint8]:
    """Return the BLAKE2b digest of each message after a common prefix, one to a row.

    >>> found = digests(Texts.of(b"anncat", np.array([3, 6])), size=32, prefix=b"user ")
    >>> found[1].tobytes() == blake2b(b"user cat", digest_size=32).digest()
    True
    """
    count = len(messages.ends) if isinstance(messages, Texts) else len(messages.first)
    hasher = blake2b(prefix, key=key, digest_size=size)  # refuses a size or a key that there can't be
    if count < FEW:
        return _by_hashlib(_share_of(messages, 0, count), hasher)
    # A key is hashed as a block of its own, before the message.
    common = np.frombuffer((key.ljust(_BLOCK, b"\0") if key else b"") + prefix, dtype=np.uint8)
    parameters = np.uint64(0x01010000 ^ len(key) << 8 ^ size)
    words = np.empty((count, (size + 7) // 8), dtype=np.uint64)

    def hash_share(begin: int) -> None:
        end = min(begin + _SHARE, count)
        _hash_all(_share_of(messages, begin, end), common, parameters, words[begin:end])

    begins = range(0, count, _SHARE)
    if threads == 1:
        for begin in begins:
            hash_share(begin)
    else:
        with pool_of(threads) as pool:
            list(pool.map(hash_share, begins))
    return np.ascontiguousarray(words.astype("<u8", copy=False).view(np.uint8)[:, :size])


def _share_of(messages: Texts | Pairs, begin: int, end: int) -> Pairs:
    """Return some of the messages as pairs of read-only arrays: for arrays of another kind numba compiles again."""
    if isinstance(messages, Texts):
        return _share_of(messages.at(np.arange(begin, end, dtype=np.int32)), 0, end - begin)
    (firsts, first_ends), (seconds, second_ends) = messages.firsts, messages.seconds
    return Pairs(
        Texts(_frozen(firsts), _frozen(first_ends)),
        Texts(_frozen(seconds), _frozen(second_ends)),
        _frozen(messages.first[begin:end]),
        _frozen(messages.second[begin:end]),
    )


def _frozen(array: NDArray[Any]) -> NDArray[Any]:
    view = np.ascontiguousarray(array).view()
    view.setflags(write=False)
    return view


def _by_hashlib(pairs: Pairs, common: blake2b) -> NDArray[np.uint8]:
    def digest(first: memoryview, second: memoryview) -> bytes:
        hasher = common.copy()
        hasher.update(first)
        hasher.update(second)
        return hasher.digest()

    found = b"".join(map(digest, _parts(pairs.firsts, pairs.first), _parts(pairs.seconds, pairs.second)))
    return np.frombuffer(found, dtype=np.uint8).reshape(len(pairs.first), common.digest_size)


def _parts(texts: Texts, numbers: NDArray[np.int32]) -> Iterator[memoryview]:
    content = texts.content.data
    begins = np.where(numbers > 0, texts.ends[numbers - 1], 0)
    return (content[begin:end] for begin, end in zip(begins.tolist(), texts.ends[numbers].tolist(), strict=True))


@compiled(nogil=True)
def _hash_all(pairs: Pairs, common: NDArray[np.uint8], parameters: np.uint64, digests: NDArray[np.uint64]) -> None:
    """Write the digest of each message, after the common bytes, as words."""
    lanes = np.zeros(_ROWS * _LANES, dtype=np.uint64)
    for row in range(8):
        lanes[row * _LANES : (row + 1) * _LANES] = _START[row]
    lanes[:_LANES] ^= parameters
    # One common byte at least stays with the messages: a message may be empty, and a last block is hashed differently.
    begin = max(len(common) - 1, 0) // _BLOCK * _BLOCK
    for block in range(0, begin, _BLOCK):
        lanes[_COUNT * _LANES : (_COUNT + 1) * _LANES] = np.uint64(block + _BLOCK)
        for lane in range(_LANES):
            _copy(lanes, lane, 0, common, block, block + _BLOCK)
        _compress(lanes)
        lanes[_WORDS * _LANES :] = 0
    common_state = lanes[: 8 * _LANES].copy()
    _copy(lanes, 0, 0, common, begin, len(common))
    common_words = lanes[_WORDS * _LANES :: _LANES].copy()
    for message in range(0, len(digests), _LANES):
        lanes[: 8 * _LANES] = common_state
        _hash_lanes(lanes, pairs, len(common), common_words, message, digests)


@compiled(nogil=True)
def _hash_lanes(
    lanes: NDArray[np.uint64],
    pairs: Pairs,
    common: int,
    common_words: NDArray[np.uint64],
    message: int,
    digests: NDArray[np.uint64],
) -> None:
    """Hash one message in each lane, after so many common bytes; what a lane computes after its end is not read."""
    used = min(_LANES, len(digests) - message)
    begin = first = max(common - 1, 0) // _BLOCK * _BLOCK
    unfinished = True
    while unfinished:
        unfinished = False
        for lane in range(used):
            for word in range(16):
                lanes[(_WORDS + word) * _LANES + lane] = common_words[word] if begin == first else _ZEROS
            length = begin + _fill(lanes, lane, common - begin, pairs, message + lane)
            last = max(length - 1, 0) // _BLOCK * _BLOCK
            lanes[_COUNT * _LANES + lane] = np.uint64(min(length, begin + _BLOCK))
            lanes[_LAST * _LANES + lane] = _ONES if begin == last else _ZEROS
            unfinished |= begin < last
        _compress(lanes)
        for lane in range(used):
            if lanes[_LAST * _LANES + lane] != 0:
                for word in range(digests.shape[1]):
                    digests[message + lane, word] = lanes[word * _LANES + lane]
        begin += _BLOCK


@compiled(forceinline=True)
def _fill(lanes: NDArray[np.uint64], lane: int, at: int, pairs: Pairs, message: int) -> int:
    """Write both parts of a message into a lane's block at a place; returns where they end."""
    first, second = pairs.first[message], pairs.second[message]
    first_begin = pairs.firsts.ends[first - 1] if first > 0 else 0
    second_begin = pairs.seconds.ends[second - 1] if second > 0 else 0
    at = _copy(lanes, lane, at, pairs.firsts.content, first_begin, pairs.firsts.ends[first])
    return _copy(lanes, lane, at, pairs.seconds.content, second_begin, pairs.seconds.ends[second])


@compiled(forceinline=True)
def _copy(lanes: NDArray[np.uint64], lane: int, at: int, source: NDArray[np.uint8], begin: int, end: int) -> int:
    """Write bytes into a lane's block at a place, as far as they are inside it; returns where they end."""
    low, high = max(at, 0), min(at + end - begin, _BLOCK)
    bits = np.uint64(0)
    for place in range(low, high):
        bits |= np.uint64(source[begin + place - at]) << np.uint64(8 * (place & 7))
        if place & 7 == 7 or place + 1 == high:
            lanes[(_WORDS + (place >> 3)) * _LANES + lane] |= bits
            bits = np.uint64(0)
    return at + end - begin


@compiled(nogil=True)
def _compress(lanes: NDArray[np.uint64]) -> None:
    """RFC 7693, section 3.2: the function F on the block of each lane, with the order of words in each round."""
    for lane in range(_LANES):
        count, last = lanes[_COUNT * _LANES + lane], lanes[_LAST * _LANES + lane]
        changed = (_START[4] ^ count, _START[5], _START[6] ^ last, _START[7])
        v = _four(lanes, 0, lane) + _four(lanes, 4, lane) + _START[:4] + changed
        m0, m1, m2, m3 = _four(lanes, _WORDS, lane)
        m4, m5, m6, m7 = _four(lanes, _WORDS + 4, lane)
        m8, m9, m10, m11 = _four(lanes, _WORDS + 8, lane)
        m12, m13, m14, m15 = _four(lanes, _WORDS + 12, lane)
        v = _round(v, (m0, m1, m2, m3, m4, m5, m6, m7, m8, m9, m10, m11, m12, m13, m14, m15))
        v = _round(v, (m14, m10, m4, m8, m9, m15, m13, m6, m1, m12, m0, m2, m11, m7, m5, m3))
        v = _round(v, (m11, m8, m12, m0, m5, m2, m15, m13, m10, m14, m3, m6, m7, m1, m9, m4))
        v = _round(v, (m7, m9, m3, m1, m13, m12, m11, m14, m2, m6, m5, m10, m4, m0, m15, m8))
        v = _round(v, (m9, m0, m5, m7, m2, m4, m10, m15, m14, m1, m11, m12, m6, m8, m3, m13))
        v = _round(v, (m2, m12, m6, m10, m0, m11, m8, m3, m4, m13, m7, m5, m15, m14, m1, m9))
        v = _round(v, (m12, m5, m1, m15, m14, m13, m4, m10, m0, m7, m6, m3, m9, m2, m8, m11))
        v = _round(v, (m13, m11, m7, m14, m12, m1, m3, m9, m5, m0, m15, m4, m8, m6, m2, m10))
        v = _round(v, (m6, m15, m14, m9, m11, m3, m0, m8, m12, m2, m13, m7, m1, m4, m10, m5))
        v = _round(v, (m10, m2, m8, m4, m7, m6, m1, m5, m15, m11, m9, m14, m3, m12, m13, m0))
        v = _round(v, (m0, m1, m2, m3, m4, m5, m6, m7, m8, m9, m10, m11, m12, m13, m14, m15))
        v = _round(v, (m14, m10, m4, m8, m9, m15, m13, m6, m1, m12, m0, m2, m11, m7, m5, m3))
        lanes[lane] ^= v[0] ^ v[8]
        lanes[_LANES + lane] ^= v[1] ^ v[9]
        lanes[2 * _LANES + lane] ^= v[2] ^ v[10]
        lanes[3 * _LANES + lane] ^= v[3] ^ v[11]
        lanes[4 * _LANES + lane] ^= v[4] ^ v[12]
        lanes[5 * _LANES + lane] ^= v[5] ^ v[13]
        lanes[6 * _LANES + lane] ^= v[6] ^ v[14]
        lanes[7 * _LANES + lane] ^= v[7] ^ v[15]


@compiled(forceinline=True)
def _four(lanes: NDArray[np.uint64], row: int, lane: int) -> _Words:
    """Return a lane's words in four rows."""
    n = _LANES
    begin = row * n + lane
    return lanes[begin], lanes[begin + n], lanes[begin + 2 * n], lanes[begin + 3 * n]


@compiled(forceinline=True)
def _round(v: _Words, m: _Words) -> _Words:
    """One round: the function G on columns and diagonals."""
    v0, v1, v2, v3, v4, v5, v6, v7, v8, v9, v10, v11, v12, v13, v14, v15 = v
    v0, v4, v8, v12 = _mix(v0, v4, v8, v12, m[0], m[1])
    v1, v5, v9, v13 = _mix(v1, v5, v9, v13, m[2], m[3])
    v2, v6, v10, v14 = _mix(v2, v6, v10, v14, m[4], m[5])
    v3, v7, v11, v15 = _mix(v3, v7, v11, v15, m[6], m[7])
    v0, v5, v10, v15 = _mix(v0, v5, v10, v15, m[8], m[9])
    v1, v6, v11, v12 = _mix(v1, v6, v11, v12, m[10], m[11])
    v2, v7, v8, v13 = _mix(v2, v7, v8, v13, m[12], m[13])
    v3, v4, v9, v14 = _mix(v3, v4, v9, v14, m[14], m[15])
    return v0, v1, v2, v3, v4, v5, v6, v7, v8, v9, v10, v11, v12, v13, v14, v15


@compiled(forceinline=True)
def _mix(a: np.uint64, b: np.uint64, c: np.uint64, d: np.uint64, x: np.uint64, y: np.uint64) -> _Words:
    """RFC 7693, section 3.1: the function G."""
    a = a + b + x
    d = _rotated(d ^ a, 32)
    c = c + d
    b = _rotated(b ^ c, 24)
    a = a + b + y
    d = _rotated(d ^ a, 16)
    c = c + d
    b = _rotated(b ^ c, 63)
    return a, b, c, d


@compiled(forceinline=True)
def _rotated(bits: np.uint64, places: int) -> np.uint64:
    return (bits >> np.uint64(places)) | (bits << np.uint64(64 - places))
