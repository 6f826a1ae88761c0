"""Lists of items in files: for everyone, or for each user."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from erasable.data._lines import numbered_lines
from erasable.data.columns import recognised_places, split_fields
from erasable.data.sources import local_source
from erasable.data.values import is_number
from erasable.errors import DataRefused
from erasable.wording import listed

ItemList = Collection[str] | Mapping[str, Collection[str]]
"""Items for everyone, or items by user; a user who is not in the mapping has no limit."""


_SEPARATORS = (",", "\t", ";", "|")
_HOW = "write one item id a line, or CSV with the header item_id or user_id,item_id"


def read_item_list(path: str | Path) -> ItemList:
    """Read a file with one item a line, or CSV whose header names the items and perhaps users; blanks are stripped.

    The columns are recognised by name, as where interactions are read; others, such as a quantity, are ignored.
    """
    path = Path(path)
    source = None if path.is_file() and not path.stat().st_size else local_source(path)
    lines = [(number, text) for number, text in numbered_lines(source) if text.strip()] if source else []
    found = _header(path, lines[0][1]) if lines else None
    if found is None:
        _refuse_table(path, [text for _, text in lines])
        items: ItemList = frozenset(text.strip() for _, text in lines)
    elif len(found.names) == 1:  # an id is quoted, or is all that the line holds
        items = frozenset("".join(_fields(text, ",")[:1]) if '"' in text else text.strip() for _, text in lines[1:])
    else:
        items = _of_rows(path, found, lines[1:])
    if not items:
        raise DataRefused(f"{path}: names no item: {_HOW}")
    return items


class _Header(NamedTuple):
    names: list[str]
    separator: str
    item: int
    user: int | None

    @property
    def places(self) -> list[int]:
        """The columns that every row has to fill."""
        return [self.item] if self.user is None else [self.item, self.user]


def _header(path: Path, line: str) -> _Header | None:
    """Return what the first line says of the columns; None if it names no item column."""
    for separator in _SEPARATORS:
        names = _fields(line, separator)
        item = _only(path, names, "item")
        if item is not None:
            return _Header(names, separator, item, _only(path, names, "user"))
    return None


def _only(path: Path, names: Sequence[str], role: str) -> int | None:
    places = recognised_places(names, role)
    if len(places) > 1:
        either = listed(names[place] for place in places)
        raise DataRefused(f"{path}: {either} may each be the {role}: give a file with one of them")
    return places[0] if places else None


def _refuse_table(path: Path, lines: Sequence[str]) -> None:
    """Refuse what is a table rather than one id a line, but does not say which column holds the items."""
    for separator in (one for one in _SEPARATORS if lines and one in lines[0]):
        rows = [_fields(text, separator) for text in lines]
        if len({*map(len, rows)}) == 1 and _is_table(separator, rows):
            raise DataRefused(f"{path}, line 1: no column is named as the item's: {_HOW}")


def _is_table(separator: str, rows: Sequence[Sequence[str]]) -> bool:
    """Whether a separator splits lines into columns: an id may hold a comma, but hardly a number after each."""
    return separator == "\t" or any(all(map(is_number, column)) for column in zip(*rows[1:], strict=True))


def _of_rows(path: Path, header: _Header, rows: Iterable[tuple[int, str]]) -> ItemList:
    by_user: dict[str, set[str]] = {}
    for number, text in rows:
        fields = _fields(text, header.separator)
        if len(fields) != len(header.names) or not all(fields[place] for place in header.places):
            raise DataRefused(f"{path}, line {number}: is no {header.separator.join(header.names)}: correct it")
        user = "" if header.user is None else fields[header.user]
        by_user.setdefault(user, set()).add(fields[header.item])
    return frozenset(by_user.get("", ())) if header.user is None else by_user


def _fields(text: str, separator: str) -> list[str]:
    return [field.strip() for field in split_fields(text, separator, quotes=True)]
