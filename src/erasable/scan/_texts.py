"""Searching JSON values: documents, lines, texts and metadata.

In JSON, also inside texts, every text and key is compared, except under a key named after items or a measure. Numbers
are compared under a key named like a user, in a list under a plural too, and under `id` if no other key of the object
is named like a user; numbers of 8 digits or more under any key not named after a measure. In documents of the
vocabulary its fields hold no id, unless they are named like a user.
"""

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from erasable.scan import _source
from erasable.scan._columns import ListColumn, Role, as_id, is_field_name, role_of
from erasable.scan._evidence import File
from erasable.scan._search import Cells
from erasable.scan._tables import Table, compare_numbers, search_values
from erasable.scan._target import Vocabulary
from erasable.scan._wanted import RUN

# JSON as it is in a file: objects with all of their keys, and lists and objects as tables

_DEEPEST = 200
_CLOSING = {"[": "]", "{": "}"}
_BLANK = re.compile(r"[ \t\r\n]*")


@dataclass(frozen=True)
class Object:
    """A JSON object with all of its keys, including duplicates."""

    pairs: Sequence[tuple[str, Any]]


def parse_json(text: str | bytes) -> Any:  # noqa: ANN401 - anything that JSON can say
    """Read JSON, or raise ValueError."""
    try:
        value = json.loads(text, object_pairs_hook=Object)
    except RecursionError:
        raise ValueError("nested too deeply") from None
    if _is_deeper(value, _DEEPEST):
        raise ValueError("nested too deeply")
    return value


def nested_json(text: str) -> Any:  # noqa: ANN401 - anything that JSON can say
    """Return the value of a text that is itself a JSON object or list, else None."""
    if text.lstrip()[:1] not in ("{", "["):
        return None
    try:
        return parse_json(text)
    except ValueError:
        return None


def _is_deeper(value: Any, levels: int) -> bool:  # noqa: ANN401 - anything that JSON can say
    layer = [value]
    while layer and levels:
        children = [one.pairs if isinstance(one, Object) else one for one in layer]
        layer = [
            part[1] if isinstance(part, tuple) else part
            for child in children
            if isinstance(child, list)
            for part in child
        ]
        levels -= 1
    return bool(layer)


def list_tables(values: Sequence[Any], name: str | None) -> Iterator[Table]:
    """Return a JSON list as a table: of objects, of lists, or one column of plain values."""
    if values and all(isinstance(value, Object) for value in values):
        rows = [dict(value.pairs) for value in values]
        names = dict.fromkeys(key for row in rows for key in row)
        yield Table("a list", name, [ListColumn(key, [row.get(key) for row in rows]) for key in names])
    elif values and all(isinstance(value, list) and len(value) == len(values[0]) for value in values):
        columns = zip(*values, strict=True)
        yield Table("a list", name, [ListColumn(None, column) for column in columns])
    elif values and not any(isinstance(value, list | Object) for value in values):
        yield Table("a list", name, [ListColumn(name, values, listed=True)])


def object_tables(pairs: Sequence[tuple[str, Any]], name: str | None) -> Iterator[Table]:
    """Return a JSON object as tables: lists of equal length, or a number for each key; short ones are left out."""
    lists = [(key, value) for key, value in pairs if isinstance(value, list) and len(value) >= RUN]
    for size in {len(value) for _, value in lists}:
        columns = [ListColumn(key, value, listed=True) for key, value in lists if len(value) == size]
        yield Table("an object", name, columns)
    numbers = [(key, value) for key, value in pairs if isinstance(value, int | float)]
    if len(numbers) >= RUN:
        keys, values = zip(*numbers, strict=True)
        yield Table("an object", name, [ListColumn(None, keys), ListColumn(None, values)])


def holds_pair(pairs: Sequence[tuple[str, Any]], wanted: Mapping[str, frozenset[str]]) -> bool:
    """Whether an object pairs a user who stays with an erased item."""
    if not wanted:
        return False
    for key, value in pairs:
        if key in wanted and not wanted[key].isdisjoint(_items_below(value, None)):
            return True
        user = as_id(value) if role_of(key) is Role.USER else None
        if user is not None and not wanted.get(user, frozenset()).isdisjoint(_items_below(Object(pairs), None)):
            return True
    return False


def _items_below(value: Any, key: str | None) -> Iterator[str]:  # noqa: ANN401 - anything that JSON can say
    if isinstance(value, Object):
        for name, child in value.pairs:
            yield name
            yield from _items_below(child, name)
    elif isinstance(value, list):
        for child in value:
            yield from _items_below(child, key)
    elif (isinstance(value, str) or role_of(key) is Role.ITEM) and (text := as_id(value)) is not None:
        yield text


# A document that is too large to hold: its long lists and objects are read in parts


def large_json(read: Callable[[], Iterator[str]], overlap: int) -> Iterator[Any]:
    """Yield a large JSON document as several, each with a part of one long list or object in its place.

    Raise ValueError before anything is yielded if it is not JSON. `overlap` members of the part before are repeated.
    """
    users: dict[int, list[tuple[str, Any]]] = {}
    for _ in _Cursor(read(), overlap, users).documents():
        pass
    return _Cursor(read(), overlap, users).documents()


class _Cursor:
    """Goes through a long JSON text."""

    def __init__(self, texts: Iterator[str], overlap: int, users: dict[int, list[tuple[str, Any]]]) -> None:
        self._texts, self._overlap, self._users = texts, overlap, users
        self._text, self._place, self._passed, self._ended = "", 0, 0, False
        self._decoder = json.JSONDecoder(object_pairs_hook=Object)

    def documents(self) -> Iterator[Any]:
        """Yield the documents, or raise ValueError."""
        yield from self._long(lambda value: value, 0)
        if self._next():
            raise ValueError("more follows")

    def _next(self) -> str:
        """Return the next sign that is no blank, empty at the end; as much as a piece is read beyond it."""
        while True:
            self._place = _BLANK.match(self._text, self._place).end()  # type: ignore[union-attr]
            if len(self._text) - self._place > _source.PIECE or self._ended:
                return self._text[self._place : self._place + 1]
            more = next(self._texts, None)
            self._ended = more is None
            self._passed += self._place
            self._text, self._place = self._text[self._place :] + (more or ""), 0

    def _take(self, sign: str) -> None:
        if self._next() != sign:
            raise ValueError(f"{sign} is missing")
        self._place += 1

    def _short(self) -> Any:  # noqa: ANN401 - anything that JSON can say
        """Return the next value; LookupError if it is a list or an object that goes on beyond a piece."""
        sign = self._next()
        try:
            value, self._place = self._decoder.raw_decode(self._text, self._place)
        except (ValueError, RecursionError):
            if sign in ("[", "{") and not self._ended:
                raise LookupError from None
            raise ValueError("no JSON") from None
        if _is_deeper(value, _DEEPEST):
            raise ValueError("nested too deeply")
        return value

    def _long(self, around: Callable[[Any], Any], depth: int) -> Iterator[Any]:
        """Yield a long list or object in parts, each in what is around it."""
        sign = self._next()
        if sign not in ("[", "{") or depth > _DEEPEST:
            raise ValueError("no JSON")
        # Who is named in a long object is repeated with each part of it.
        users = self._users.setdefault(self._passed + self._place, []) if sign == "{" else []

        def part(some: list[Any]) -> Any:  # noqa: ANN401 - anything that JSON can say
            return around(some if sign == "[" else Object([*users, *some]))

        self._place += 1
        members, begin = list[Any](), self._passed + self._place
        while self._next() != _CLOSING[sign]:
            key = self._key() if sign == "{" else None
            try:
                members.append(self._member(key, self._short(), users))
            except LookupError:
                yield from self._long(partial(self._around, part, key), depth + 1)
            if self._passed + self._place - begin > _source.PIECE:
                yield part(members)
                members, begin = members[len(members) - min(self._overlap, len(members)) :], self._passed + self._place
            self._separate(_CLOSING[sign])
        self._place += 1
        yield part(members)

    def _key(self) -> str:
        key = self._short()
        if not isinstance(key, str):
            raise ValueError("a key is missing")
        self._take(":")
        return key

    def _separate(self, close: str) -> None:
        """Go on to the next member, if there is one."""
        if self._next() != close:
            self._take(",")
            if self._next() == close:
                raise ValueError("a value is missing")

    @staticmethod
    def _member(key: str | None, value: Any, users: list[tuple[str, Any]]) -> Any:  # noqa: ANN401 - whatever JSON says
        if key is None:
            return value
        if role_of(key) is Role.USER and as_id(value) and (key, value) not in users:
            users.append((key, value))
        return key, value

    @staticmethod
    def _around(part: Callable[[list[Any]], Any], key: str | None, inner: Any) -> Any:  # noqa: ANN401 - whatever JSON says
        return part([inner] if key is None else [(key, inner)])


# Documents


@dataclass(frozen=True)
class _Context:
    """Where a value is in a document."""

    key: str | None
    """The nearest key above it."""
    own: bool = False
    """Whether the document belongs to the vocabulary, so that its fields are known."""
    listed: bool = False
    """Whether there is a list between the key and the value."""
    free: bool = False
    """Whether it is in a free-form field of the vocabulary."""
    owned: bool = False
    """Whether a user is named above it, to whom it belongs."""
    bare: bool = False
    """Whether `id` means a user here."""

    def below(self, key: str, among: Sequence[Role], vocabulary: Vocabulary) -> "_Context":
        """Return the context of the value under a key, among keys of these roles."""
        named = Role.USER in among
        return _Context(
            key=key,
            own=self.own,
            free=self.free or (self.own and key in vocabulary.free_form and key in vocabulary.fields),
            owned=self.owned or named,
            bare=not named and role_of(self.key) not in (Role.ITEM, Role.MEASURE),
        )


@dataclass(frozen=True, eq=False)
class Document:
    """Searches a JSON value: its texts are collected first, and then searched at once."""

    file: File
    place: str
    texts: list[str] = field(default_factory=list)
    """Texts that anyone may have written."""
    sentences: list[str] = field(default_factory=list)
    """Texts in fields of the vocabulary."""

    def search(self, value: Any, name: str | None, own: bool) -> None:  # noqa: ANN401 - anything that JSON can say
        """Search a document with this name."""
        self._visit(value, _Context(name, own=own, bare=True))
        self.file.evidence.note_numbers(Cells.of(self.texts))
        self.file.search_texts("\n".join(self.texts).encode("utf-8", "surrogatepass"), f"{self.place}inside a text")
        self.file.search_texts(
            "\n".join(self.sentences).encode("utf-8", "surrogatepass"), f"{self.place}inside a text", "sentences"
        )

    def _visit(self, value: Any, context: _Context) -> None:  # noqa: ANN401 - anything that JSON can say
        if isinstance(value, Object):
            self._visit_object(value.pairs, context)
        elif isinstance(value, list):
            self._search_values(list_tables(value, context.key), context)
            inside = replace(context, listed=True)
            for one in value:
                self._visit(one, inside)
        elif isinstance(value, str):
            self._visit_text(value, context)
        else:
            self._visit_number(value, context)

    def _visit_object(self, pairs: Sequence[tuple[str, Any]], context: _Context) -> None:
        roles = [role_of(key) for key, _ in pairs]
        self._search_values(object_tables(pairs, context.key), context)
        for (key, value), role in zip(pairs, roles, strict=True):
            below = context.below(key, roles, self.file.vocabulary)
            self._visit_key(key, role, context)
            self._visit(value, below)
        if holds_pair(pairs, self.file.wanted.pairs):
            self.file.found(f"{self.place}an object", "interactions")

    def _visit_key(self, key: str, role: Role, context: _Context) -> None:
        if self._is_own_key(key, context):
            self.sentences.append(key)
        elif not is_field_name(key):
            self.texts.append(key)
            if role is Role.UNKNOWN and role_of(context.key) is not Role.ITEM:
                self.file.compare_text(key, f"{self.place}a key")

    def _visit_text(self, text: str, context: _Context) -> None:
        if context.own and self.file.vocabulary.places.fullmatch(text):
            return
        inside = nested_json(text)
        if inside is not None:
            self._visit(inside, context)
            return
        (self.sentences if self._is_own(context) else self.texts).append(text)
        if self._holds_users(context, number=False):
            self.file.compare_text(text, self._under(context))
        elif text in self.file.wanted.texts:
            self.file.found(self._under(context), "text", [text])

    def _visit_number(self, value: Any, context: _Context) -> None:  # noqa: ANN401 - a number, true, false or null
        text = as_id(value)
        if text is not None and self._holds_users(context, number=True):
            if text in self.file.wanted.ids:
                self.file.found(self._under(context), "id", [text])
        elif text is not None and not self._is_own(context) and role_of(context.key) is not Role.MEASURE:
            compare_numbers(self.file, {text}, self._under(context))

    def _holds_users(self, context: _Context, number: bool) -> bool:
        """Whether a text or a number is compared as an id."""
        role = role_of(context.key)
        if self._is_own(context):
            return role in (Role.USER, Role.USERS) and not number
        if role is Role.ID:
            return context.bare
        if number:
            return role is Role.USER or (role is Role.USERS and context.listed)
        return role is not Role.ITEM and (role is not Role.MEASURE or context.listed)

    def _is_own(self, context: _Context) -> bool:
        """Whether a value is in a field of the vocabulary."""
        return context.free or (context.own and context.key in self._fields)

    def _is_own_key(self, key: str, context: _Context) -> bool:
        """Whether a key belongs to the vocabulary."""
        return context.free or (context.own and key in self._fields)

    @property
    def _fields(self) -> frozenset[str]:
        return self.file.vocabulary.fields

    def _search_values(self, tables: Iterable[Table], context: _Context) -> None:
        wanted = self.file.wanted
        if context.own or not (wanted.runs.parts or wanted.shortest_row):
            return
        for table in tables:
            named = Table(f"{self.place}{table.place}", table.name, table.columns, owned=context.owned)
            search_values(self.file, lambda: (named,))  # noqa: B023 - used at once

    def _under(self, context: _Context) -> str:
        # A key may be a person's id, so only field names are shown.
        known = role_of(context.key) is not Role.UNKNOWN or context.key in self._fields
        return f"{self.place}under {context.key}" if known else f"{self.place}a text"
