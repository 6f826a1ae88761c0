"""Turning options into erasure requests: users, a file of users, or items of one user."""

import csv
from pathlib import Path
from typing import Annotated

import typer

from erasable.errors import DataRefused, WrongUse
from erasable.operations.meanwhile import NOT_SERVED, SERVED_WITHOUT
from erasable.requests import Request

Users = Annotated[
    list[str] | None,
    typer.Option("--user", metavar="U", help="A user's id, exactly as in the data; may be repeated."),
]
UsersFile = Annotated[
    Path | None,
    typer.Option("--users-file", help="A file with one user id a line, or CSV user_id[,item_id]."),
]
Items = Annotated[
    list[str] | None,
    typer.Option("--item", metavar="I", help="Only this item of the one user given; may be repeated."),
]


def requests_from(users: list[str] | None, users_file: Path | None, items: list[str] | None) -> list[Request]:
    """Return the requests that the options mean."""
    if items and (users_file is not None or len(users or []) != 1):
        raise WrongUse("--item needs exactly one --user: give one, and leave out --users-file")
    if not users and users_file is None:
        raise WrongUse("say who: give --user U (may be repeated) or --users-file F")
    named = [Request(user, tuple(items) if items else None) for user in users or []]
    return named + (read_requests(users_file) if users_file else [])


def until_then(people: int, served: int, done: bool = False) -> str:
    """Return what holds for those who ask until they are erased.

    >>> until_then(1, 1), until_then(3, 0, done=True)
    ('until that is done: served without these items', 'while that was done: not served')
    >>> until_then(3, 1)
    'until that is done: 1 served without the items asked for, 2 not served'
    """
    when = "while that was done" if done else "until that is done"
    if served and served < people:
        return f"{when}: {served} served without the items asked for, {people - served} {NOT_SERVED}"
    return f"{when}: {SERVED_WITHOUT if served else NOT_SERVED}"


def read_requests(path: Path) -> list[Request]:
    """Read requests from a file with one user id a line, or CSV with the header user_id[,item_id].

    With an item column every line needs an item: a blank one must not be taken to mean the whole person.
    """
    lines = _numbered_lines(path)
    header = _fields(lines[0][1]) if lines else []
    if header[:1] == ["user_id"]:
        requests = _requests_of_rows(path, header, lines[1:])
    else:
        requests = [Request(line) for _, line in lines]
    if not requests:
        raise DataRefused(f"{path}: names no user: write one user id a line")
    return requests


def _requests_of_rows(path: Path, header: list[str], rows: list[tuple[int, str]]) -> list[Request]:
    if header not in (["user_id"], ["user_id", "item_id"]):
        # Whatever a column with another name means, reading past it could forget more than was asked.
        raise DataRefused(f"{path}, line 1: the columns are {', '.join(header)}: give user_id or user_id,item_id")
    items: dict[str, list[str]] = {}
    for number, row in rows:
        fields = next(csv.reader([row]))
        if len(fields) != len(header) or not all(fields):
            raise DataRefused(
                f"{path}, line {number}: is no {','.join(header)}: correct it (whole people: leave out the item column)"
            )
        items.setdefault(fields[0], []).extend(fields[1:])
    return [Request(user, tuple(named) or None) for user, named in items.items()]


def _fields(header: str) -> list[str]:
    return [name.strip() for name in next(csv.reader([header]))]


def _numbered_lines(path: Path) -> list[tuple[int, str]]:
    """Return the lines that are not empty, each with its number from 1."""
    try:
        lines = path.read_text(encoding="utf-8-sig").split("\n")
    except OSError:
        raise DataRefused(f"{path}: can't be read: give a file with one user id a line") from None
    except UnicodeDecodeError:
        raise DataRefused(f"{path}: not UTF-8 text: save it as UTF-8") from None
    return [(number, line) for number, line in enumerate(lines, start=1) if line]
