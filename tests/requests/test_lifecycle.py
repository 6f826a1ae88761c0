"""Which state may follow which."""

import itertools

import pytest

from erasable.errors import Refused
from erasable.requests.request import BEGUN, ENDED, STATES, WAITING, refuse_unless_may_follow

ALLOWED = """
received suppressed · received rejected
suppressed erasing · suppressed on hold · suppressed withdrawn · suppressed rejected
on hold suppressed · on hold withdrawn · on hold rejected
erasing certifying · erasing erased · erasing failed · erasing rejected · erasing suppressed
certifying erased · certifying failed
failed erasing · failed certifying · failed failed · failed erased · failed rejected · failed suppressed
"""


def allowed_pairs():
    for pair in ALLOWED.replace("\n", "·").split("·"):
        words = pair.strip()
        for before, after in itertools.product(STATES, STATES):
            if words == f"{before} {after}":
                yield before, after


@pytest.mark.parametrize(("before", "after"), list(itertools.product(STATES, STATES)))
def test_a_change_is_allowed_or_refused(before, after):
    if (before, after) in set(allowed_pairs()):
        refuse_unless_may_follow(before, after)
    else:
        with pytest.raises(Refused, match=before):
            refuse_unless_may_follow(before, after)


def test_every_state_is_of_one_kind():
    assert sorted([*WAITING, *BEGUN, *ENDED]) == sorted(STATES)


def test_a_request_begins_as_received():
    refuse_unless_may_follow(None, "received")
    with pytest.raises(Refused):
        refuse_unless_may_follow(None, "erased")
