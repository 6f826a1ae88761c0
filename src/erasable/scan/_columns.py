"""Columns of any decoded file, and what they hold by their names: users, items, a measure, or unknown.

A short id is only searched where user ids can stand; otherwise item 42, or a count of 42 users, would be taken for user
42. A name is split into words (user_id, userId, user-id). Words such as id, key or name at its end are ignored, and the
word before them decides: user_id holds users, item_id items, user_rating a measure. A plural at the end (users,
n_users) is a count if it holds a number, and ids if it holds a list. A bare `id` means users unless the table or a
column says otherwise. A name with a digit and without such a word (customer-12) is more likely an id itself.
"""

import math
import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from enum import Enum
from functools import cache, cached_property, lru_cache
from typing import Any, Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from erasable.scan._search import Cells, Places, Values
from erasable.scan._target import ArrowColumn, Floats


class Role(Enum):
    """What a field holds."""

    USER = "user"
    """One user."""
    USERS = "users"
    """A number of users, or a list of them."""
    ID = "id"
    """An id, of a user or of something else."""
    ITEM = "item"
    MEASURE = "measure"
    UNKNOWN = "unknown"


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


_USERS = _words(
    "user customer member person subject account client reviewer rater buyer shopper visitor reader viewer listener "
    "player patient student employee subscriber contact owner friend follower followee trustor truster trustee "
    "consumer guest patron uid userid username login email mail who individual household identity"
)
_PLURALS = frozenset({"people", "persons"})
_ITEMS = _words(
    "item product movie film book isbn asin sku article song track artist album title genre category tag page url "
    "video game news catalogue catalog brand business venue recipe iid file folder"
)
_MEASURES = _words(
    "rating score weight time timestamp date datetime count total position rank group cluster cohesion price "
    "amount size length offset seed epoch stage version level year month day hour minute second mean sum minimum "
    "maximum min max std share ratio sample loss quantity star step batch fold split byte row format error "
    "interaction number request event job certificate status erasure digest fingerprint hash"
)
_NEUTRAL = _words("id ids key no nr code name ref uuid guid token index idx pk fk text string str address seq")
_LETTERS = re.compile("[A-Za-z_ -]+")
_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[^\W\d_a-zA-Z]+")


@lru_cache(maxsize=4096)
def role_of(name: str | None) -> Role:
    """Return what a field of this name holds.

    >>> [role_of(name).value for name in ("user_id", "movieId", "n_users", "id", "user_rating", "user-7")]
    ['user', 'item', 'users', 'id', 'measure', 'unknown']
    """
    field = (name or "").split(":")[0]
    words = _words_of(field)
    plain = list(words)
    while plain and plain[-1] in _NEUTRAL:
        plain.pop()
    ends_neutral = len(plain) < len(words)
    if not plain:
        return Role.ID if words and words[-1] in ("id", "ids") else Role.UNKNOWN
    if not ends_neutral and any(letter.isdigit() for letter in field):
        return Role.UNKNOWN
    role = _role_of_word(plain[-1])
    if role is Role.USERS and ends_neutral:
        return Role.USER
    if role is Role.UNKNOWN and ends_neutral and any(_role_of_word(word) is Role.USER for word in plain):
        return Role.USER
    return role


def is_field_name(name: str) -> bool:
    """Whether a name consists only of words common in field names, so that it is no user's id.

    >>> [is_field_name(name) for name in ("user_id", "timestamp", "user:ann", "ann_user_id", "note")]
    [True, True, False, False, False]
    """
    known = (word in _NEUTRAL or _role_of_word(word) is not Role.UNKNOWN for word in _words_of(name))
    return _LETTERS.fullmatch(name) is not None and all(known)


def subject_of(name: str | None) -> Role:
    """Return what a table or file of this name is about: users if any word says so, else items, else measures.

    >>> [subject_of(name).value for name in ("kept-items-670d0bac", "user_items", "requests", "x.csv")]
    ['item', 'user', 'measure', 'unknown']
    """
    roles = {_role_of_word(word) for word in _words_of(name or "")}
    if roles & {Role.USER, Role.USERS}:
        return Role.USER
    return next((role for role in (Role.ITEM, Role.MEASURE) if role in roles), Role.UNKNOWN)


def _words_of(name: str) -> list[str]:
    """Return the words of a name, with a joined `id` split off: movieid is movie id."""
    return [part for word in _WORD.findall(name) for part in _parted(word.lower())]


def _parted(word: str) -> list[str]:
    for ending in ("ids", "id"):
        stem = word.removesuffix(ending)
        if stem != word and _role_of_word(stem) not in (Role.UNKNOWN, Role.USERS):
            return [stem, ending]
    return [word]


def _role_of_word(word: str) -> Role:
    if word in _PLURALS:
        return Role.USERS
    for words, one, several in (
        (_USERS, Role.USER, Role.USERS),
        (_ITEMS, Role.ITEM, Role.ITEM),
        (_MEASURES, Role.MEASURE, Role.MEASURE),
    ):
        if word in words:
            return one
        if word.endswith("s") and word[:-1] in words:
            return several
    return Role.UNKNOWN


# Columns, with one interface for Arrow arrays and Python values

_WHOLE = re.compile(r"([+-]?\d+)\.0+")
_MICROSECONDS = 1_000_000
_BLANKS = b" \t\x0b\x0c\r\n"
_PLAIN = frozenset({str, bytes, int, float, Decimal, bool, type(None)})


@cache
def _no_cells() -> Cells:
    """Return no cells; not a constant, since Arrow must not be used while modules are imported."""
    return Cells.of([])


class Column(Protocol):
    """The values of a column, as they are compared."""

    @property
    def name(self) -> str | None:
        """Its name, if it has one."""

    @property
    def listed(self) -> bool:
        """Whether its values come from lists, so that a plural name means ids."""

    def __len__(self) -> int: ...

    def texts(self) -> Cells:
        """Return its texts, including bytes that are text."""

    def blobs(self) -> Cells:
        """Return its bytes that are not text."""

    def with_text(self, values: Values) -> frozenset[str]:
        """Return which of some values stand in it as text."""

    def with_number(self, values: Values) -> frozenset[str]:
        """Return which of some values stand in it as an integer."""

    def rows_with(self, values: Values) -> Places:
        """Return for each row which of some values it holds, as text or as an integer; -1 if none."""

    def floats(self) -> Floats | None:
        """Return each row as a number, NaN if it is not one; None if the column has no numbers."""


def as_id(value: Any) -> str | None:  # noqa: ANN401 - whatever a file holds
    """Return a value as an id would be written: text unchanged, an integer in decimal.

    >>> [as_id(value) for value in ("007", 7, 7.0, 7.5, True, b"ann")]
    ['007', '7', '7', None, None, 'ann']
    """
    if isinstance(value, str):
        return value
    if isinstance(value, bool) or value is None:
        return None
    if isinstance(value, int):
        return str(value)
    if isinstance(value, float | Decimal):
        return str(int(value)) if math.isfinite(value) and value == int(value) else None
    return _decoded(value) if isinstance(value, bytes) else None


@dataclass(frozen=True, eq=False)
class ListColumn:
    """A column of Python values of any type."""

    name: str | None
    values: Sequence[Any]
    listed: bool = False
    numeric: bool | None = None
    """Whether it holds numbers, if that is known from earlier rows."""

    def __len__(self) -> int:
        return len(self.values)

    @property
    def is_numeric(self) -> bool:
        """Whether one of its first values is a number."""
        return any(map(_is_number, self.values[:100])) if self.numeric is None else self.numeric

    def like_first(self, numeric: dict[int, bool], place: int) -> "ListColumn":
        """Return it with what is known from the first rows, or note what they tell."""
        return replace(self, numeric=numeric.setdefault(place, self.is_numeric))

    @cached_property
    def _distinct(self) -> Collection[Any]:
        kinds = set(map(type, self.values))
        if bool not in kinds and kinds <= _PLAIN:
            return set(self.values)
        # True equals 1, and a list can't be in a set.
        return {(type(value), value): value for value in self.values if type(value) in _PLAIN}.values()

    @cached_property
    def _texts(self) -> frozenset[str]:
        """Its distinct texts, also stripped of blanks, including bytes that are text."""
        found = {text for value in self._distinct if isinstance(value, str | bytes) and (text := as_id(value))}
        return frozenset(found | {text.strip() for text in found})

    def texts(self) -> Cells:
        """Return its distinct texts, also stripped of blanks, including bytes that are text."""
        return Cells.of(sorted(self._texts))

    def with_text(self, values: Values) -> frozenset[str]:
        """Return which of some values stand in it as text."""
        return self._texts.intersection(values.texts)

    def with_number(self, values: Values) -> frozenset[str]:
        """Return which of some values stand in it as an integer, including texts such as 7.0."""
        numbers = {as_id(value) for value in self._distinct if isinstance(value, int | float | Decimal)}
        written = (_WHOLE.fullmatch(text) for text in self._texts)
        return frozenset(values.texts).intersection(numbers | {match[1] for match in written if match})

    def rows_with(self, values: Values) -> Places:
        """Return for each row which of some values it holds, as text or as an integer; -1 if none."""
        known = {text: place for place, text in enumerate(values.texts)}
        ids = (as_id(value) for value in self.values)
        return np.array([known.get(text.strip(), -1) if text else -1 for text in ids], dtype=np.int64)

    def floats(self) -> Floats | None:
        """Return each row as a number, NaN if it is not one; None if the column has no numbers."""
        if not self.is_numeric:
            return None
        try:
            return np.array(self.values, dtype=np.float64)
        except (TypeError, ValueError):
            return np.array([float(value) if _is_number(value) else math.nan for value in self.values])

    def blobs(self) -> Cells:
        """Return its distinct bytes that are not text."""
        found = {value for value in self._distinct if isinstance(value, bytes) and _decoded(value) is None}
        return Cells.of(sorted(found))


@dataclass(frozen=True, eq=False)
class ArrayColumn:
    """An Arrow column that is not nested."""

    name: str | None
    array: ArrowColumn
    listed: bool = False

    def __len__(self) -> int:
        return len(self.array)

    @cached_property
    def _kind(self) -> ArrowColumn:
        kind = self.array.type
        return kind.value_type if pa.types.is_dictionary(kind) else kind

    @cached_property
    def _values(self) -> ArrowColumn:
        """The values in one array; of a dictionary all of its own, also those that no row refers to."""
        if not pa.types.is_dictionary(self.array.type):
            return _viewless(_one(self.array))
        return _one(_joined([_viewless(chunk.dictionary) for chunk in _chunks(self.array)], _viewless_type(self._kind)))

    @cached_property
    def _parts(self) -> tuple[Cells, Cells]:
        """The texts, and the bytes that are not text."""
        if _is_text(self._kind):
            return Cells.of(self._values), _no_cells()
        if not _is_binary(self._kind):
            return _no_cells(), _no_cells()
        whole = self._values.cast(pa.large_binary())
        try:  # Arrow decodes them at once, if all are text
            return Cells.of(whole.cast(pa.large_string())), _no_cells()
        except pa.ArrowException:
            distinct = pc.drop_null(pc.unique(whole)).to_pylist()
        is_text = [_decoded(value) is not None for value in distinct]
        parts = ([value for value, fits in zip(distinct, is_text, strict=True) if fits is one] for one in (True, False))
        texts, blobs = (Cells.of(pa.array(part, pa.large_binary())) for part in parts)
        return texts, blobs

    def texts(self) -> Cells:
        """Return its texts, including bytes that are text."""
        return self._parts[0]

    def blobs(self) -> Cells:
        """Return its bytes that are not text."""
        return self._parts[1]

    def with_text(self, values: Values) -> frozenset[str]:
        """Return which of some values stand in it as text."""
        return values.chosen(values.in_cells(self.texts()))

    def with_number(self, values: Values) -> frozenset[str]:
        """Return which of some values stand in it as an integer."""
        return values.chosen(values.in_numbers(self._values)) if _holds_numbers(self._kind) else frozenset()

    def rows_with(self, values: Values) -> Places:
        """Return for each row which of some values it holds, as text or as an integer; -1 if none."""
        array = _one(self.array)
        if pa.types.is_dictionary(array.type):
            array = array.cast(array.type.value_type)
        array = _viewless(array)
        if _holds_numbers(self._kind):
            return values.in_numbers(array)
        holds_text = _is_text(self._kind) or _is_binary(self._kind)
        return values.in_cells(Cells.of(array)) if holds_text else np.full(len(array), -1, dtype=np.int64)

    def floats(self) -> Floats | None:
        """Return each row as a number, times in seconds, NaN if it is not one; None if the type holds no numbers."""
        array = self.array
        if pa.types.is_timestamp(self._kind) or pa.types.is_date(self._kind):
            moments = array.cast(pa.timestamp("us", getattr(self._kind, "tz", None)), safe=False).cast(pa.int64())
            return _as_floats(moments) / _MICROSECONDS
        return _as_floats(array) if _holds_numbers(self._kind) else None


@dataclass(frozen=True, eq=False)
class TextColumn:
    """A column of cells of a text file, as Arrow reads them; blanks around a value do not count."""

    name: str | None
    array: ArrowColumn
    listed: bool = False
    numeric: bool | None = None
    """Whether it holds numbers, if that is known from earlier rows."""

    def __len__(self) -> int:
        return len(self.array)

    def like_first(self, numeric: dict[int, bool], place: int) -> "TextColumn":
        """Return it with what is known from the first rows, or note what they tell."""
        first = any(map(_is_number, self.array.slice(0, 100).to_pylist()))
        return replace(self, numeric=numeric.setdefault(place, first))

    @cached_property
    def _cells(self) -> Cells:
        return Cells.of(self.array)

    @cached_property
    def _stripped(self) -> Cells:
        content = self._cells.content.tobytes()
        has_blanks = not content.isascii() or len(content.translate(None, _BLANKS)) < len(content)
        return Cells.of(pc.utf8_trim_whitespace(_one(self.array))) if has_blanks else self._cells

    def texts(self) -> Cells:
        """Return its texts."""
        return self._cells

    def blobs(self) -> Cells:
        """Return nothing: all of it is text."""
        return _no_cells()

    def with_text(self, values: Values) -> frozenset[str]:
        """Return which of some values stand in it, also with blanks around them."""
        return values.chosen(values.in_cells(self._cells)) | values.chosen(values.in_cells(self._stripped))

    def with_number(self, values: Values) -> frozenset[str]:
        """Return which of some values stand in it as texts such as 7.0."""
        if b".0" not in self._cells.content.tobytes():
            return frozenset()
        array = pc.utf8_trim_whitespace(_one(self.array))
        whole = array.filter(pc.match_substring_regex(array, r"^[+-]?\d+\.0+$"))
        return values.chosen(values.in_cells(Cells.of(pc.replace_substring_regex(whole, r"\.0+$", ""))))

    def rows_with(self, values: Values) -> Places:
        """Return for each row which of some values it holds; -1 if none."""
        return values.in_cells(self._stripped)

    def floats(self) -> Floats | None:
        """Return each row as a number, NaN if it is not one; None if the column has no numbers."""
        if not self.numeric:
            return None
        try:
            return _as_floats(pc.utf8_trim_whitespace(_one(self.array)))
        except pa.ArrowException:
            return ListColumn(self.name, self.array.to_pylist(), numeric=True).floats()


def flattened(name: str | None, array: ArrowColumn, listed: bool = False) -> list[ArrayColumn]:
    """Return the columns of a nested column, or the column itself if it is not nested.

    Values in a struct get the name of their field, values in a list the name of the list.
    """
    kind: Any = array.type
    if isinstance(kind, pa.BaseExtensionType):
        return flattened(name, _joined([chunk.storage for chunk in _chunks(array)], kind.storage_type), listed)
    if pa.types.is_dictionary(kind) and pa.types.is_nested(kind.value_type):
        return flattened(name, _joined([chunk.dictionary for chunk in _chunks(array)], kind.value_type), listed)
    if pa.types.is_struct(kind):
        parts = [
            (kind.field(place), [pc.struct_field(chunk, place) for chunk in _chunks(array)])
            for place in range(kind.num_fields)
        ]
        return [one for part, arrays in parts for one in flattened(part.name, _joined(arrays, part.type), listed)]
    if pa.types.is_map(kind):
        keys = _joined([chunk.keys for chunk in _chunks(array)], kind.key_type)
        values = _joined([chunk.items for chunk in _chunks(array)], kind.item_type)
        return [*flattened(name, keys, listed=True), *flattened(name, values, listed=True)]
    if pa.types.is_nested(kind) and hasattr(kind, "value_type"):
        return flattened(name, _joined([chunk.flatten() for chunk in _chunks(array)], kind.value_type), listed=True)
    return [ArrayColumn(name, array, listed)]


def is_nested(kind: ArrowColumn) -> bool:
    """Whether columns of this type fall apart into columns of other lengths."""
    if isinstance(kind, pa.BaseExtensionType):
        return is_nested(kind.storage_type)
    return bool(pa.types.is_nested(kind) or (pa.types.is_dictionary(kind) and pa.types.is_nested(kind.value_type)))


def _chunks(array: ArrowColumn) -> list[Any]:
    return list(array.chunks) if isinstance(array, pa.ChunkedArray) else [array]


def _one(array: ArrowColumn) -> ArrowColumn:
    if not isinstance(array, pa.ChunkedArray):
        return array
    return array.chunk(0) if array.num_chunks == 1 else array.unify_dictionaries().combine_chunks()


def _joined(arrays: list[ArrowColumn], kind: ArrowColumn) -> ArrowColumn:
    return pa.chunked_array(arrays, kind)


def _as_floats(array: ArrowColumn) -> Floats:
    if pa.types.is_dictionary(array.type):
        array = array.cast(array.type.value_type)
    return np.asarray(pc.fill_null(array.cast(pa.float64(), safe=False), math.nan), dtype=np.float64)


def _is_text(kind: ArrowColumn) -> bool:
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind))


def _is_binary(kind: ArrowColumn) -> bool:
    tests = (pa.types.is_binary, pa.types.is_large_binary, pa.types.is_fixed_size_binary, pa.types.is_binary_view)
    return any(test(kind) for test in tests)


def _holds_numbers(kind: ArrowColumn) -> bool:
    return bool(pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind))


def _viewless(array: ArrowColumn) -> ArrowColumn:
    # Arrow has no `unique` for views yet.
    kind = _viewless_type(array.type)
    return array if kind == array.type else array.cast(kind)


def _viewless_type(kind: ArrowColumn) -> ArrowColumn:
    if pa.types.is_string_view(kind):
        return pa.large_string()
    return pa.large_binary() if pa.types.is_binary_view(kind) else kind


def _is_number(value: object) -> bool:
    if not isinstance(value, str):
        return isinstance(value, int | float | Decimal) and not isinstance(value, bool)
    try:
        float(value)
    except ValueError:
        return False
    return value.isascii() and "_" not in value  # as Arrow reads numbers, not as Python does


def _decoded(value: bytes) -> str | None:
    try:
        return value.decode()
    except UnicodeDecodeError:
        return None
