"""Turning options into erasure requests: users, a file of users, or items of one user."""

import csv
from pathlib import Path
from typing import Annotated

import typer

from erasable.errors import DataRefused, WrongUse
from erasable.unlearning import Request

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
        raise WrongUse("--item needs exactly one --user")
    if not users and users_file is None:
        raise WrongUse("say who: give --user U (may be repeated) or --users-file F")
    named = [Request(user, tuple(items or ())) for user in users or []]
    return named + (read_requests(users_file) if users_file else [])


def read_requests(path: Path) -> list[Request]:
    """Read requests from a file with one user id a line, or CSV with the header user_id[,item_id]."""
    lines = read_lines(path)
    if not lines:
        raise DataRefused(f"{path}: the file is empty: write one user id a line")
    if lines[0].split(",")[0].strip() != "user_id":
        return [Request(line) for line in lines]
    items: dict[str, list[str]] = {}
    for row in csv.DictReader(lines):
        items.setdefault(row["user_id"], []).extend([row["item_id"]] if row.get("item_id") else [])
    return [Request(user, tuple(of_user)) for user, of_user in items.items()]


def read_lines(path: Path) -> list[str]:
    """Return the lines of a file that are not empty."""
    try:
        return [line for line in path.read_text(encoding="utf-8-sig").splitlines() if line]
    except OSError:
        raise DataRefused(f"{path}: can't be read: give a file with one user id a line") from None
    except UnicodeDecodeError:
        raise DataRefused(f"{path}: not UTF-8 text: save it as UTF-8") from None
