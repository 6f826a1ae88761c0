"""Queues in a Postgres of the tests, each in a schema of its own, opened as often as wanted."""

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING

from kit.postgres_server import PostgresServer

if TYPE_CHECKING:
    from erasable.requests.postgres import PostgresDatabase

_NUMBERS = count()
Opened = Callable[..., "PostgresDatabase"]


@contextmanager
def queue_in(address: str, keys: Path) -> Iterator[Opened]:
    """Make a queue, and give how to open it, at another address if one is given; all are closed at the end."""
    from erasable.requests.postgres import PostgresDatabase  # an extra, which may be missing

    schema = f"erasable_t{os.getpid()}_{next(_NUMBERS)}"
    opened = []

    def open_one(another: str | None = None, queue_id: str | None = None) -> "PostgresDatabase":
        opened.append(PostgresDatabase(another or address, schema, keys, queue_id))
        return opened[-1]

    open_one().create()
    try:
        yield open_one
    finally:
        for one in opened:
            one.close()


def cut(postgres: PostgresServer) -> None:
    """End every connection of ours at the server."""
    import psycopg  # an extra, which may be missing

    with psycopg.connect(postgres.address, autocommit=True) as connection:
        connection.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'erasable' "
            "AND pid <> pg_backend_pid()"
        )
