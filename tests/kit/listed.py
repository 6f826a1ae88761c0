"""Whether somebody is on a do-not-learn list."""

from erasable.data import Ids
from erasable.proof.do_not_learn import DoNotLearnList


def is_listed(user: str, found: DoNotLearnList) -> bool:
    """Whether this person was erased whole."""
    return bool(found.users_among(Ids.of([user]))[0])
