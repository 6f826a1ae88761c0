"""Lists of items in files: for everyone, or for each user."""

import csv
from collections.abc import Collection, Mapping
from pathlib import Path

from erasable.data._lines import numbered_lines
from erasable.data.sources import local_source
from erasable.errors import DataRefused

ItemList = Collection[str] | Mapping[str, Collection[str]]
"""Items for everyone, or items by user; a user who is not in the mapping has no limit."""


def read_item_list(path: str | Path) -> ItemList:
    """Read a file with one item a line, or CSV with the header item_id or user_id,item_id."""
    path = Path(path)
    source = None if path.is_file() and not path.stat().st_size else local_source(path)
    lines = [(number, text) for number, text in numbered_lines(source) if text.strip()] if source else []
    header = [name.strip() for name in next(csv.reader([lines[0][1]]))] if lines else []
    if len(header) > 1 and "item_id" in header and header != ["user_id", "item_id"]:
        raise DataRefused(f"{path}: has the columns {', '.join(header)}: give item_id alone, or user_id,item_id")
    rows = lines[1:] if "item_id" in header else lines
    if not rows:
        raise DataRefused(f"{path}: names no item: write one item id a line")
    if len(header) > 1 and "item_id" in header:
        return _by_user(path, rows)
    if header == ["item_id"]:  # CSV, in which an id may be quoted
        return frozenset(text if '"' not in text else next(csv.reader([text]))[0] for _, text in rows)
    return frozenset(text for _, text in rows)


def _by_user(path: Path, rows: list[tuple[int, str]]) -> dict[str, set[str]]:
    items: dict[str, set[str]] = {}
    for number, text in rows:
        fields = next(csv.reader([text]))
        if len(fields) != 2 or not all(fields):
            raise DataRefused(f"{path}, line {number}: is no user_id,item_id: correct it")
        items.setdefault(fields[0], set()).add(fields[1])
    return items
