"""Whom an exact id does not find, though they are held under one that is written a little differently.

For those who answer for the data: commands, the library and officers' pages. What applications ask never says so.
"""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager

from erasable.data import NONE_NEAR, NearIds, near_ids
from erasable.errors import UnknownUser
from erasable.training import Knowledge


def near_in(knowledge: Knowledge, user: str) -> NearIds:
    """Return how many people are held under ids that differ only a little from one that is not held."""
    return near_ids((group.users for group in knowledge.groups), user)


@contextmanager
def telling_near_ids(knowledge: Knowledge, users: Iterable[str]) -> Iterator[None]:
    """Have whoever asks for someone unknown told that ids are held which differ from theirs only a little."""
    try:
        yield
    except UnknownUser:
        unknown = next((user for user in users if not any(user in group.users for group in knowledge.groups)), None)
        near = NONE_NEAR if unknown is None else near_in(knowledge, unknown)
        if not near.held:
            raise
        raise UnknownUser(near.sentence()) from None
