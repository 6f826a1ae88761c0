"""Stateless random numbers: the same seed and purpose give the same bits anywhere.

A key is hashed from the seed, a purpose and outside ids (blake2b). The draws under a key are numbered (a counter
through the SplitMix64 finaliser), so draw 17 never depends on draw 16. `compiled` has the same draws for numba code,
`hashing` the digests of many texts at once.
"""

from collections.abc import Iterable, Sized
from hashlib import blake2b
from typing import Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from erasable.seeding.hashing import FEW, Texts, digests

__all__ = ["child_key", "id_keys", "mix", "normals"]

_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_FIRST = np.uint64(0xBF58476D1CE4E5B9)
_SECOND = np.uint64(0x94D049BB133111EB)
_KEY_BYTES = 8
_LANES = np.arange(4, dtype=np.uint64) * np.uint64(16)
_WORDS_PER_NORMAL = 3
_UNIFORMS_PER_NORMAL = 12


@runtime_checkable
class _Written(Protocol):
    """Ids that can give their UTF-8 bytes, concatenated, and where each ends: `data.Ids`."""

    def written(self) -> tuple[bytes, NDArray[np.int64]]: ...


def child_key(seed: int, *purpose: str | int) -> int:
    """Return the 64-bit key of a purpose under a seed.

    Parameters
    ----------
    seed : int
        The seed of the recommender.
    *purpose : str or int
        What is drawn, such as "shuffle" and the number of the epoch.

    Returns
    -------
    int
        The key: the same for the same seed and purpose, on any machine.

    Examples
    --------
    >>> child_key(0, "stage", 3) == child_key(0, "stage", 3) != child_key(0, "stage", 4)
    True
    """
    return int.from_bytes(blake2b(_framed(seed, *purpose), digest_size=_KEY_BYTES).digest(), "little")


def id_keys(seed: int, purpose: str, ids: Iterable[str]) -> NDArray[np.uint64]:
    """Return one 64-bit key for each id, independent of the other ids.

    Parameters
    ----------
    seed : int
        The seed of the recommender.
    purpose : str
        What is drawn under the keys.
    ids : iterable of str
        Users or items; many of them are hashed fastest as `Ids`.

    Returns
    -------
    ndarray of uint64
        The keys, in the order of the ids.

    Examples
    --------
    >>> bool(id_keys(0, "start", ["a", "b"])[1] == id_keys(0, "start", ["b"])[0])
    True
    """
    common = _framed(seed, purpose)
    if isinstance(ids, Sized) and len(ids) >= FEW and isinstance(ids, _Written):
        return digests(Texts.of(*ids.written()), _KEY_BYTES, common).view("<u8").ravel().astype(np.uint64, copy=False)
    hasher = blake2b(common, digest_size=_KEY_BYTES)

    def key(text: str) -> bytes:
        own = hasher.copy()
        own.update(text.encode())
        return own.digest()

    return np.frombuffer(b"".join(map(key, ids)), dtype="<u8").astype(np.uint64, copy=False)


def mix(keys: NDArray[np.uint64], counters: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Return draw number `counters` under each key, elementwise.

    Parameters
    ----------
    keys, counters : ndarray of uint64
        Arrays that broadcast against each other.

    Returns
    -------
    ndarray of uint64
        64 random bits for each pair.

    Examples
    --------
    >>> keys, counters = id_keys(0, "start", ["a"]), np.arange(3, dtype=np.uint64)
    >>> bool(mix(keys, counters)[2] == mix(keys, counters[2:])[0])
    True
    """
    with np.errstate(over="ignore"):
        bits = keys + (counters + np.uint64(1)) * _GOLDEN
        bits = (bits ^ (bits >> np.uint64(30))) * _FIRST
        bits = (bits ^ (bits >> np.uint64(27))) * _SECOND
    return bits ^ (bits >> np.uint64(31))


def normals(keys: NDArray[np.uint64], width: int) -> NDArray[np.float32]:
    """Return a row of `width` draws, mean 0 and deviation 1, for each key.

    Each is the sum of twelve 16-bit uniforms (nearly Gaussian, within ±6). Integer sums are exact, so a row's bytes
    depend neither on its place in the table nor on a library's vectorised logarithm.

    Parameters
    ----------
    keys : ndarray of uint64
        A key for each row.
    width : int
        How many draws a row has.

    Returns
    -------
    ndarray of float32
        One row for each key.

    Examples
    --------
    >>> rows = normals(id_keys(0, "start", ["a", "b"]), 4)
    >>> rows.shape, bool((rows[1] == normals(id_keys(0, "start", ["b"]), 4)[0]).all())
    ((2, 4), True)
    """
    counters = np.arange(width * _WORDS_PER_NORMAL, dtype=np.uint64)
    words = mix(keys[:, None], counters[None, :]).reshape(len(keys), width, _WORDS_PER_NORMAL, 1)
    lanes = (words >> _LANES) & np.uint64(0xFFFF)
    total = lanes.sum(axis=(2, 3)).astype(np.int64)
    centre = _UNIFORMS_PER_NORMAL * 0xFFFF / 2
    return ((total - centre) / 65536.0).astype(np.float32)


def _framed(*parts: str | int) -> bytes:
    """Return the parts, each after its length, so that no two sequences of parts give the same bytes."""
    texts = [str(part).encode() for part in parts]
    return b"".join(len(text).to_bytes(4, "little") + text for text in texts)
