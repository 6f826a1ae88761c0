"""JSON as it stands in a file: objects with all of their keys, and the tables that lists and objects are."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from erasable.proof.residue.columns import ListColumn, as_id
from erasable.proof.residue.field_names import Role, role_of
from erasable.proof.residue.tables import Table
from erasable.proof.residue.values import RUN

_DEEPEST = 200


@dataclass(frozen=True)
class Object:
    """A JSON object with all of its keys, also those that stand there twice."""

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
    """Return what a text says if it is itself a JSON object or list, else nothing."""
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
    """Return the tables that a JSON list is: of objects, of lists, or one column of plain values."""
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
    """Return the tables that a JSON object is: lists side by side, or a number for each key; those of some length."""
    lists = [(key, value) for key, value in pairs if isinstance(value, list) and len(value) >= RUN]
    for size in {len(value) for _, value in lists}:
        columns = [ListColumn(key, value, listed=True) for key, value in lists if len(value) == size]
        yield Table("an object", name, columns)
    numbers = [(key, value) for key, value in pairs if isinstance(value, int | float)]
    if len(numbers) >= RUN:
        keys, values = zip(*numbers, strict=True)
        yield Table("an object", name, [ListColumn(None, keys), ListColumn(None, values)])


def holds_pair(pairs: Sequence[tuple[str, Any]], wanted: Mapping[str, frozenset[str]]) -> bool:
    """Whether an object names a user who stays together with an item that was erased."""
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
