"""Entries of a do-not-learn list: keyed digests of people and of (user, item) pairs, and which of many are listed.

The digest is of canonical JSON, `["user",USER]` or `["interaction",USER,ITEM]`.
"""

from collections.abc import Iterable, Sequence
from hashlib import blake2b

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from erasable.data.ids import Ids
from erasable.data.interactions import Interactions
from erasable.errors import DataRefused
from erasable.fingerprint import DIGEST_BYTES, canonical_json
from erasable.seeding.hashing import Pairs, Texts, digests

# Rows hashed at a time; their digests take 32 MB.
_PIECE = 1 << 20
# The characters that JSON writes in another way; all others stand for themselves.
_ESCAPED = r'[\x00-\x1f"\\]'


def keyed(key: bytes, value: object) -> bytes:
    """Return the keyed digest of a JSON value."""
    return blake2b(canonical_json(value), key=key, digest_size=DIGEST_BYTES).digest()


def entries_of(key: bytes, values: Iterable[Sequence[str]]) -> frozenset[bytes]:
    """Return the entries of values such as ("user", USER)."""
    try:
        return frozenset(keyed(key, value) for value in values)
    except UnicodeEncodeError:
        raise DataRefused("an id is not valid Unicode text: give ids as text") from None


def users_among(users: Ids, entries: frozenset[bytes], key: bytes, threads: int) -> NDArray[np.bool_]:
    """Return for each user whether their entry is among these."""
    listed = np.zeros(len(users), dtype=bool)
    if entries:
        texts, table = _json_of(users, "]"), _first_bits(entries)
        for begin in range(0, len(users), _PIECE):
            numbers = np.arange(begin, min(begin + _PIECE, len(users)), dtype=np.int32)
            found = digests(texts.at(numbers), DIGEST_BYTES, b'["user","', key, threads)
            listed[numbers] = _are_among(found, entries, table)
    return listed


def rows_among(
    interactions: Interactions, skipped: NDArray[np.bool_], entries: frozenset[bytes], key: bytes, threads: int
) -> NDArray[np.bool_]:
    """Return for each row whether the entry of its pair is among these; rows of skipped users are not hashed."""
    listed = np.zeros(len(interactions), dtype=bool)
    if entries:
        users, items = _json_of(interactions.users, ',"'), _json_of(interactions.items, "]")
        table = _first_bits(entries)
        for begin in range(0, len(interactions), _PIECE):
            rows = begin + np.flatnonzero(~skipped[interactions.user_index[begin : begin + _PIECE]])
            pairs = Pairs(users, items, interactions.user_index[rows], interactions.item_index[rows])
            found = digests(pairs, DIGEST_BYTES, b'["interaction","', key, threads)
            listed[rows] = _are_among(found, entries, table)
    return listed


def _json_of(ids: Ids, ending: str) -> Texts:
    """Return the JSON of each id without its first quote, followed by an ending."""
    # Large: with the ending, the bytes of all may be too many for the offsets of an ordinary Arrow text array.
    array = pc.cast(ids.array, pa.large_string())
    # Most ids are written as they are: only the others are encoded one by one.
    escaped = pc.match_substring_regex(array, pattern=_ESCAPED)
    written = [canonical_json(text)[1:-1].decode() for text in array.filter(escaped).to_pylist()]
    if written:
        array = pc.replace_with_mask(array, escaped, pa.array(written, array.type))
    array = pc.binary_join_element_wise(array, *(pa.scalar(text, array.type) for text in ('"' + ending, "")))
    _, offsets, content = array.buffers()
    ends = np.frombuffer(offsets, dtype=np.int64)[1 : len(array) + 1]
    return Texts.of(content or b"", ends)


def _first_bits(entries: frozenset[bytes]) -> NDArray[np.bool_]:
    """Return which values occur in the first bits of the entries; at most one in 16 does."""
    table = np.zeros(1 << max(16, (16 * len(entries)).bit_length()), dtype=bool)
    table[_words(np.frombuffer(b"".join(entries), dtype=np.uint8)) & np.uint64(len(table) - 1)] = True
    return table


def _are_among(found: NDArray[np.uint8], entries: frozenset[bytes], first_bits: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Return for each digest whether it is an entry; only those whose first bits occur are compared whole."""
    among = first_bits[_words(found) & np.uint64(len(first_bits) - 1)]
    places = np.flatnonzero(among)
    among[places] = [digest.tobytes() in entries for digest in found[places]]
    return among


def _words(found: NDArray[np.uint8]) -> NDArray[np.uint64]:
    """Return the first eight bytes of each digest as a number."""
    return found.reshape(-1, DIGEST_BYTES).view("<u8")[:, 0].astype(np.uint64, copy=False)
