"""Ids of users and items: text exactly as written; columns encoded as numbers; ids that are spelled almost alike."""

import re
import unicodedata
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import ArrayLike, NDArray

from erasable import fingerprint
from erasable.errors import DataRefused
from erasable.wording import listed

# Arrow's annotations change from version to version; Arrow checks types at runtime.
ArrowColumn: TypeAlias = Any

LONGEST_ID = 1_000  # characters; the service takes no longer ones either

# Up to this many texts, binary search is faster than hashing the whole list.
_FEW = 64


@dataclass(frozen=True, eq=False)
class Ids:
    """A frozen list of distinct texts; its order is the numbering.

    Parameters
    ----------
    array : pyarrow.Array
        The texts, without gaps; `Ids.of` takes any iterable of text.

    Examples
    --------
    >>> ids = Ids.of(["7", "007"])
    >>> ids.positions(["007", "8"]).tolist()
    [1, -1]
    """

    array: ArrowColumn

    def __post_init__(self) -> None:
        _require_texts(self.array)
        if pc.count_distinct(self.array).as_py() != len(self.array):
            raise DataRefused("ids must be distinct: drop the repeated ones")

    @classmethod
    def of(cls, texts: Iterable[str]) -> "Ids":
        """Return the texts as ids, in the same order."""
        return cls(_text_array(list(texts)))

    @classmethod
    def unchecked(cls, array: ArrowColumn) -> "Ids":
        """Return texts that are known to be distinct as ids: a million of them take half a second to compare."""
        _require_texts(array)
        ids = object.__new__(cls)
        object.__setattr__(ids, "array", array)
        return ids

    @cached_property
    def is_sorted(self) -> bool:
        """Whether the ids ascend by their UTF-8 bytes."""
        if len(self) < 2:
            return True
        return bool(pc.all(pc.less(self.array[:-1], self.array[1:])).as_py())

    def texts(self) -> list[str]:
        """Return the ids as a list of text."""
        texts: list[str] = self.array.to_pylist()
        return texts

    def positions(self, texts: Sequence[str]) -> NDArray[np.int64]:
        """Return the position of each text, -1 if it is unknown."""
        if len(texts) <= _FEW and self.is_sorted:
            return np.array([self._search(text) for text in texts], dtype=np.int64)
        return self.positions_of(_text_array(texts))

    def positions_of(self, array: ArrowColumn) -> NDArray[np.int64]:
        """Return the position of each text of an Arrow array, -1 if it is unknown."""
        found: ArrowColumn = pc.index_in(array, value_set=self.array)
        return np.asarray(found.fill_null(-1)).astype(np.int64)

    def take(self, indices: ArrayLike) -> "Ids":
        """Return the ids at the given positions, in the order given."""
        return Ids(self.array.take(pa.array(np.asarray(indices, dtype=np.int64))))

    def sorted(self) -> "Ids":
        """Return the same ids ordered by their UTF-8 bytes, which is also code point order."""
        return self if self.is_sorted else Ids(self.array.take(byte_order(self.array)))

    def digest(self) -> str:
        """Return the fingerprint of the texts and their order."""
        return self._digest

    @cached_property
    def _digest(self) -> str:
        return fingerprint.of_arrays({"lengths": _lengths(self.array), "bytes": _content(self.array)})

    def written(self) -> tuple[bytes, NDArray[np.int64]]:
        """Return the UTF-8 bytes of all ids, concatenated, and where each id ends."""
        return _content(self.array).tobytes(), np.cumsum(_lengths(self.array))

    def _search(self, text: str) -> int:
        place = bisect_left(self, text)
        return place if place < len(self) and self[place] == text else -1

    def __len__(self) -> int:
        return len(self.array)

    def __getitem__(self, position: int) -> str:
        text: str = self.array[int(position)].as_py()
        return text

    def __iter__(self) -> Iterator[str]:
        return iter(self.texts())

    def __contains__(self, text: object) -> bool:
        return isinstance(text, str) and bool(self.positions([text])[0] >= 0)

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        return bool(self.array.equals(other.array)) if isinstance(other, Ids) else NotImplemented

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"Ids({len(self)})"


def _require_texts(array: ArrowColumn) -> None:
    if array.type != pa.string() or array.null_count:
        raise DataRefused("ids must be text without gaps: give each row an id")


def byte_order(array: ArrowColumn) -> ArrowColumn:
    """Return the positions that sort an Arrow text array by its UTF-8 bytes."""
    return pc.sort_indices(array)


def _text_array(texts: Sequence[str]) -> ArrowColumn:
    try:
        return pa.array(texts, type=pa.string())
    except (pa.ArrowInvalid, pa.ArrowTypeError, UnicodeError) as error:
        raise DataRefused("an id is not valid Unicode text: give ids as text") from error


def _lengths(array: ArrowColumn) -> NDArray[np.int64]:
    return np.asarray(pc.binary_length(array)).astype(np.int64)


def _content(array: ArrowColumn) -> NDArray[Any]:
    _, offsets, content = array.buffers()
    if content is None or not len(array):
        return np.empty(0, dtype=np.uint8)
    bounds = np.frombuffer(offsets, dtype=np.int32)[array.offset : array.offset + len(array) + 1]
    return np.frombuffer(content, dtype=np.uint8)[bounds[0] : bounds[-1]]


def starts_and_bytes(array: ArrowColumn) -> tuple[NDArray[np.int64], NDArray[Any]]:
    """Return where each text of an Arrow array begins, with the end of the last, and the UTF-8 bytes of all."""
    return np.concatenate([[0], np.cumsum(_lengths(array))]), _content(array)


def encode_ids(column: ArrowColumn) -> tuple[Ids, NDArray[np.int32]]:
    """Return the distinct texts of a column, ordered by their UTF-8 bytes, and each row's position among them."""
    codes, values = _codes_and_values(column)
    # The values of a dictionary may repeat, or be unused (categories of a table).
    values = values.dictionary_encode()
    codes = np.asarray(values.indices)[codes]
    used = np.zeros(len(values.dictionary), dtype=bool)
    used[codes] = True
    order = np.asarray(byte_order(values.dictionary)).astype(np.int64)
    order = order[used[order]]
    rank = np.empty(len(used), dtype=np.int32)
    rank[order] = np.arange(len(order), dtype=np.int32)
    return Ids(values.dictionary.take(pa.array(order))), rank[codes]


def latest_of_each_pair(keys: NDArray[np.int64], time: NDArray[np.float64] | None) -> NDArray[np.int64]:
    """Return the rows to keep, by ascending key: the latest of each key, or the last in input order without times."""
    order = np.argsort(keys, kind="stable")
    last = _ends_of_runs(keys[order])
    if time is not None and not last.all():
        # An unknown time counts as the oldest; lexsort is stable, so equal times keep the input order.
        order = np.lexsort((np.where(np.isnan(time), -np.inf, time), keys))
    return order[last]


def _codes_and_values(column: ArrowColumn) -> tuple[NDArray[np.int64], ArrowColumn]:
    if not pa.types.is_dictionary(column.type):
        column = column.dictionary_encode()
    if isinstance(column, pa.ChunkedArray):
        column = column.unify_dictionaries().combine_chunks()
    if column.null_count or column.dictionary.null_count:
        raise DataRefused("an id is missing: give each row a user and an item, or drop the row")
    return np.asarray(column.indices), pc.cast(column.dictionary, pa.string())


def _ends_of_runs(keys: NDArray[np.int64]) -> NDArray[np.bool_]:
    ends = np.ones(len(keys), dtype=bool)
    np.not_equal(keys[1:], keys[:-1], out=ends[:-1])
    return ends


_TAG = re.compile(r"\+[^@]*(?=@[^@]*\Z)")
# No Unicode normal form unites these, though they look the same.
_STROKED = {"o\u0338": "ø", "O\u0338": "Ø", "l\u0335": "ł", "d\u0335": "đ"}
_OVERLAYS = ("\u0335", "\u0338")
_ZEROS = re.compile(r"\A0+(?=[0-9]+\Z)")

_UNIMPORTANT: dict[str, Callable[[str], str]] = {
    "surrounding blanks": str.strip,
    "Unicode form": lambda text: _stroked(unicodedata.normalize("NFKC", text)),
    "upper and lower case": lambda text: unicodedata.normalize("NFKC", text.casefold()),
    "a +tag": lambda text: _TAG.sub("", text) if "+" in text else text,
    "leading zeros": lambda text: _ZEROS.sub("", text) if text[:1] == "0" else text,
}
"""The differences that make ids near, and how each is removed; in this order."""


@dataclass(frozen=True)
class NearIds:
    """How many held ids are near one that is not held, and in what they differ."""

    held: int = 0
    differ_in: tuple[str, ...] = ()

    def sentence(self) -> str:
        """Describe this in a sentence that names nobody."""
        return (
            f"nothing under this id; ids that differ only in {listed(self.differ_in, 'or')} are held: {self.held:,}. "
            "Find out which of them is meant, and give it exactly as in the data"
        )


NONE_NEAR = NearIds()


def near_ids(ids: Iterable[Ids], text: str) -> NearIds:
    """Return how many ids differ from a text only in details; none if the text itself is among them.

    >>> near_ids([Ids.of(["Ann@x.org", "bob"])], "ann+shop@X.org")
    NearIds(held=1, differ_in=('upper and lower case', 'a +tag'))
    """
    parts = list(ids)
    if any(text in part for part in parts):
        return NONE_NEAR
    plain = _plain(text)
    found = list(dict.fromkeys(one for part in parts for one in _candidates(part.array, plain) if _plain(one) == plain))
    differences = {name for one in found for name in _differences(one, text)}
    return NearIds(len(found), tuple(name for name in _UNIMPORTANT if name in differences))


def _plain(text: str, less: Iterable[str] = _UNIMPORTANT) -> str:
    """Return a text with all unimportant differences removed, or some of them."""
    for name in less:
        text = _UNIMPORTANT[name](text)
    return text


def _stroked(text: str) -> str:
    """Return a text in which each letter with a combining stroke is one character."""
    if any(overlay in text for overlay in _OVERLAYS):
        for written, letter in _STROKED.items():
            text = text.replace(written, letter)
    return text


def _candidates(array: ArrowColumn, plain: str) -> list[str]:
    """Return the ids that may reduce to this plain text: all that are not ASCII, and the others that contain it."""
    ascii_only = pc.string_is_ascii(array)
    found: list[str] = array.filter(pc.invert(ascii_only)).to_pylist()
    if plain.isascii():
        near, lower = ascii_only, pc.ascii_lower(array)
        # A tag comes between the name and the rest of an address.
        for part in plain.rpartition("@"):
            near = pc.and_(near, pc.match_substring(lower, pattern=part))
        found += array.filter(near).to_pylist()
    return found


def _differences(one: str, other: str) -> Sequence[str]:
    """Return the fewest differences that explain how two near ids differ."""
    choices = (names for size in range(1, len(_UNIMPORTANT) + 1) for names in combinations(_UNIMPORTANT, size))
    return next(names for names in choices if _plain(one, names) == _plain(other, names))
