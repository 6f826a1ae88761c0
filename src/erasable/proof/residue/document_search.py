"""Searching a decoded JSON document, JSON inside its texts included.

Every text and every key is compared, except under a key that is named after items or a measure. Numbers are compared
under a key that is named like a user, in a list under a plural too, and under `id` where no other key of the object is
named like a user; those of 8 digits or more under any key that is not named after a measure. In our own files a field
of our own holds no id, unless it is named like a user.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from erasable.proof.residue.columns import as_id
from erasable.proof.residue.evidence import File
from erasable.proof.residue.field_names import Role, is_field_name, role_of
from erasable.proof.residue.json_values import Object, holds_pair, list_tables, nested_json, object_tables
from erasable.proof.residue.table_search import compare_numbers, search_values
from erasable.proof.residue.tables import Table
from erasable.proof.residue.vocabulary import FREE_FORM, is_place_beside


@dataclass(frozen=True)
class _Context:
    """Where in a document a value stands."""

    key: str | None
    """The nearest key above it."""
    own: bool = False
    """Whether the document is ours, so that its fields are known."""
    listed: bool = False
    """Whether a list stands between the key and the value."""
    free: bool = False
    """Whether it stands in a field of ours that holds no words of ours."""
    owned: bool = False
    """Whether somebody is named above it, whose it is."""
    bare: bool = False
    """Whether `id` means a user here."""

    def below(self, key: str, among: Sequence[Role], fields: frozenset[str]) -> "_Context":
        """Return the context of what stands under a key of an object, among keys of these roles."""
        named = Role.USER in among
        return _Context(
            key=key,
            own=self.own,
            free=self.free or (self.own and key in FREE_FORM and key in fields),
            owned=self.owned or named,
            bare=not named and role_of(self.key) not in (Role.ITEM, Role.MEASURE),
        )


@dataclass(frozen=True, eq=False)
class Document:
    """A JSON value that is searched: everything it says is collected and then searched at once."""

    file: File
    place: str
    texts: list[str] = field(default_factory=list)
    """What anyone may have written there."""
    sentences: list[str] = field(default_factory=list)
    """What stands in fields of our own."""

    def search(self, value: Any, name: str | None, own: bool) -> None:  # noqa: ANN401 - anything that JSON can say
        """Search a document of this name."""
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
            below = context.below(key, roles, self._fields)
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
        if context.own and is_place_beside(text):
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
        """Whether a value stands in a field of our own."""
        return context.free or (context.own and context.key in self._fields)

    def _is_own_key(self, key: str, context: _Context) -> bool:
        """Whether a key is one of ours."""
        return context.free or (context.own and key in self._fields)

    @property
    def _fields(self) -> frozenset[str]:
        return self.file.evidence.vocabulary.fields

    def _search_values(self, tables: Iterable[Table], context: _Context) -> None:
        wanted = self.file.wanted
        if context.own or not (wanted.runs.parts or wanted.shortest_row):
            return
        for table in tables:
            named = Table(f"{self.place}{table.place}", table.name, table.columns, owned=context.owned)
            search_values(self.file, named)

    def _under(self, context: _Context) -> str:
        # A key may be somebody's name, so only those that are field names are told.
        known = role_of(context.key) is not Role.UNKNOWN or context.key in self._fields
        return f"{self.place}under {context.key}" if known else f"{self.place}a text"
