"""Searching text: JSON, JSON lines, delimited tables, and other lines such as logs.

In JSON, also inside texts, every text and key is compared, except under a key named after items or a measure. Numbers
are compared under a key named like a user, in a list under a plural too, and under `id` if no other key of the object
is named like a user; numbers of 8 digits or more under any key not named after a measure. In documents of the
vocabulary its fields hold no id, unless they are named like a user.
"""

import codecs
import csv
import html
import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import zip_longest
from typing import Any

from erasable.scan._columns import ListColumn, Role, as_id, is_field_name, role_of
from erasable.scan._evidence import RAW, File
from erasable.scan._tables import (
    Table,
    compare_numbers,
    search_column_names,
    search_fields,
    search_table,
    search_values,
)
from erasable.scan._target import Vocabulary
from erasable.scan._wanted import RUN

# JSON as it is in a file: objects with all of their keys, and lists and objects as tables

_DEEPEST = 200


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
        self.file.evidence.note_numbers(self.texts)
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
            search_values(self.file, named)

    def _under(self, context: _Context) -> str:
        # A key may be a person's id, so only field names are shown.
        known = role_of(context.key) is not Role.UNKNOWN or context.key in self._fields
        return f"{self.place}under {context.key}" if known else f"{self.place}a text"


# Text

_BOMS = {codecs.BOM_UTF8: "utf-8-sig", codecs.BOM_UTF32_LE: "utf-32", codecs.BOM_UTF32_BE: "utf-32"}
_BOMS |= {codecs.BOM_UTF16_LE: "utf-16", codecs.BOM_UTF16_BE: "utf-16"}
_CONTROL = re.compile("[\x00-\x08\x0e-\x1a\x1c-\x1f\x7f]")
_NAMED = re.compile(r"""([\w-]+)["']?\s*[=:]\s*["']?([^\s,;"'&]+)""")
_QUOTED = re.compile(r'"((?:[^"\\\n]|\\.)*)"|\'([^\'\n]*)\'')
_FIRST_CELL = re.compile(r"::|[\t,;|]")
_STYLE, _TAG = re.compile("<style>.*?</style>", re.DOTALL), re.compile("<[^>]*>")
_NAME = re.compile(r"(?:[^\W\d][\w .:()#-]*)?")
_SAMPLE_LINES = 50
_SEPARATORS = ("::", "\t", ",", ";", "|", " ")


def read_text(content: bytes) -> str | None:
    """Return the text of a file, None if it is not text."""
    bom = next((bom for bom in _BOMS if content.startswith(bom)), None)
    for codec in (_BOMS[bom],) if bom else ("utf-8", "cp1252"):
        try:
            text = content.decode(codec)
        except UnicodeDecodeError:
            continue
        return None if _CONTROL.search(text) else text
    return None


def search_json(file: File, text: str, name: str) -> bool:
    """Search a text if it is JSON or JSON lines; return whether it was."""
    own = file.vocabulary.documents.fullmatch(file.name) is not None and not file.inside
    whole = nested_json(text)
    if whole is not None:
        Document(file, "").search(whole, name, own)
        return True
    if nested_json(text.lstrip().partition("\n")[0]) is None:
        return False
    lines = [line for line in text.split("\n") if line.strip()]
    values = [nested_json(line) for line in lines]
    Document(file, "").search([value for value in values if value is not None], name, own)
    others = [line for line, value in zip(lines, values, strict=True) if value is None]
    if others:
        search_lines(file, others, name)
        file.search_texts("\n".join(others).encode(), "inside a line")
    return True


def search_plain_text(file: File, content: bytes, text: str, name: str) -> None:
    """Search a text that is not JSON: a delimited table, or lines."""
    if file.vocabulary.pages.fullmatch(file.name) and not file.inside:
        page = text.replace(file.vocabulary.style, "") if file.vocabulary.style else text
        for part in (_words_of_page(page), html.unescape(page)):
            file.search_texts(part.encode(), "inside a text", "sentences")
        return
    lines = [stripped for line in text.split("\n") if (stripped := line.rstrip("\r")).strip()]
    # Truncated JSON is not a table, whatever its commas separate.
    separator = None if text.lstrip()[:1] in ("{", "[") else _separator(lines[:_SAMPLE_LINES])
    table = _table(_columns(lines, separator), name)
    if separator is None and all(column.name is None for column in table.columns):
        search_lines(file, lines, name)
        search_values(file, table)
    else:
        search_column_names(file, table)
        search_table(file, table)
    file.search_texts(content, RAW)
    file.search_values(file.wanted.personal_rows, content, RAW)


def _words_of_page(page: str) -> str:
    return html.unescape(_TAG.sub("\n", _STYLE.sub("", page)))


def search_lines(file: File, lines: Sequence[str], name: str) -> None:
    """Search lines that are not a table: whole, first cells, quoted texts, and what follows a name such as user=."""
    firsts = [_FIRST_CELL.split(line, maxsplit=1)[0] for line in lines]
    search_fields(file, Table("lines", name, [ListColumn(None, [*lines, *firsts])]))
    for line in lines:
        for match in _QUOTED.finditer(line):
            file.compare_text(match[1] or match[2] or "", "a line, quoted")
        for match in _NAMED.finditer(line):
            if role_of(match[1]) is Role.USER:
                file.compare_text(match[2], f"a line, {match[1]}")


def _separator(lines: Sequence[str]) -> str | None:
    """Return the separator of the columns, if all lines have the same number of them."""
    for separator in _SEPARATORS:
        widths = {len(_cells(line, separator)) for line in lines}
        if len(widths) == 1 and min(widths) > 1:
            return separator
    return None


def _cells(line: str, separator: str) -> list[str]:
    if separator == "::" or '"' not in line:
        return line.split(separator)
    try:
        return next(csv.reader([line], delimiter=separator))
    except csv.Error:
        return []


def _columns(lines: Sequence[str], separator: str | None) -> list[Sequence[str | None]]:
    """Return the cells of each column; shorter lines are filled with None."""
    if separator is None:
        return [lines]
    if separator != "::" and any('"' in line for line in lines):
        try:
            return list(zip_longest(*csv.reader(lines, delimiter=separator)))
        except csv.Error:
            pass
    counts = {line.count(separator) for line in lines}
    if len(counts) > 1:
        return list(zip_longest(*(line.split(separator) for line in lines)))
    cells, width = separator.join(lines).split(separator), min(counts, default=0) + 1
    return [[*cells[place::width]] for place in range(width)]


def _table(columns: Sequence[Sequence[str | None]], name: str) -> Table:
    first = [column[0] or "" for column in columns if column]
    if not _is_header(first):
        return Table("", name, [ListColumn(None, column) for column in columns])
    return Table("", name, [ListColumn(cell.strip(), column[1:]) for cell, column in zip(first, columns, strict=True)])


def _is_header(cells: Sequence[str]) -> bool:
    roles = {role_of(cell.strip()) for cell in cells}
    return roles != {Role.UNKNOWN} and all(_NAME.fullmatch(cell.strip()) for cell in cells)
