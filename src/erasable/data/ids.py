"""Outside ids: the one place that turns the text of a user or an item into a position and back; no rows."""

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import ArrayLike, NDArray

from erasable import fingerprint
from erasable.errors import DataRefused

# Arrow's own annotations change from version to version; it checks its types when it runs.
ArrowColumn: TypeAlias = Any

LONGEST_ID = 1_000  # characters; the service takes no longer ones either

# Below this many texts a binary search is quicker than hashing the whole list.
_FEW = 64


@dataclass(frozen=True, eq=False)
class Ids:
    """A frozen list of distinct texts; its order is the numbering.

    >>> ids = Ids.of(["7", "007"])
    >>> ids.positions(["007", "8"]).tolist()
    [1, -1]
    """

    array: ArrowColumn

    def __post_init__(self) -> None:
        if self.array.type != pa.string() or self.array.null_count:
            raise DataRefused("ids must be text without gaps: give each row an id")
        if pc.count_distinct(self.array).as_py() != len(self.array):
            raise DataRefused("ids must be distinct: drop the repeated ones")

    @classmethod
    def of(cls, texts: Iterable[str]) -> "Ids":
        """Return the texts as ids, in their order."""
        return cls(_text_array(list(texts)))

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
        """Return where each text stands, -1 where it is unknown."""
        if len(texts) <= _FEW and self.is_sorted:
            return np.array([self._search(text) for text in texts], dtype=np.int64)
        return self.positions_of(_text_array(texts))

    def positions_of(self, array: ArrowColumn) -> NDArray[np.int64]:
        """Return where each text of an Arrow array stands, -1 where it is unknown."""
        found: ArrowColumn = pc.index_in(array, value_set=self.array)
        return np.asarray(found.fill_null(-1)).astype(np.int64)

    def take(self, indices: ArrayLike) -> "Ids":
        """Return the ids at the given positions, in the order given."""
        return Ids(self.array.take(pa.array(np.asarray(indices, dtype=np.int64))))

    def sorted(self) -> "Ids":
        """Return the same ids by their UTF-8 bytes, which is also code point order."""
        return self if self.is_sorted else Ids(self.array.take(byte_order(self.array)))

    def digest(self) -> str:
        """Return the fingerprint of the texts and their order."""
        return self._digest

    @cached_property
    def _digest(self) -> str:
        return fingerprint.of_arrays({"lengths": _lengths(self.array), "bytes": _content(self.array)})

    def written(self) -> tuple[bytes, NDArray[np.int64]]:
        """Return the UTF-8 bytes of all ids, one after another, and where each of them ends."""
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
