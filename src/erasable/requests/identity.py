"""Which queue it is: a random id in the queue itself and in the manifest of its workspace.

A queue that is gone, empty or another one does not say who has asked to be erased: whoever took it for a queue without
requests would serve them all.
"""

import re
import secrets
import shlex
from pathlib import Path

from erasable.errors import QueueLost, Said
from erasable.requests.database import Connection

IDENTITY = re.compile("[0-9a-f]{32}")
NOBODY_SERVED = "and it says who has asked to be erased, so nobody is served"
READ_ID = "SELECT queue_id FROM identity"
_MAKE = "CREATE TABLE IF NOT EXISTS identity (queue_id TEXT PRIMARY KEY)"


def given_id(connection: Connection) -> str:
    """Return the id of a queue; one that has none yet is given one."""
    connection.execute(_MAKE)
    rows = connection.execute(READ_ID)
    if not rows:
        connection.execute("INSERT INTO identity VALUES (?)", (secrets.token_hex(16),))
        rows = connection.execute(READ_ID)
    return str(rows[0]["queue_id"])


def lost(workspace: Path, what: str, remedy: str = "put it back from its newest copy") -> QueueLost:
    """Say that a queue is lost, and what there is to do."""
    return QueueLost(
        f"{what}, {NOBODY_SERVED}: {remedy}; or, if there is no copy, begin a new queue with ", beginning(workspace)
    )


def beginning(workspace: Path) -> Said:
    """Return what begins a new queue, as it is typed."""
    return Said("forget([], new_queue=True)", f"erasable forget {shlex.quote(str(workspace))} --new-queue")
