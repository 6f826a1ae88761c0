"""The states of a request, and which may follow which."""

from typing import Literal, get_args

from erasable.errors import Refused

RequestState = Literal[
    "received",
    "accepted",
    "suppressed",
    "erasing",
    "verifying",
    "erased",
    "rejected",
    "withdrawn",
    "on hold",
    "failed",
]
STATES: tuple[RequestState, ...] = get_args(RequestState)
ENDED: frozenset[RequestState] = frozenset({"erased", "rejected", "withdrawn"})
WAITING: frozenset[RequestState] = frozenset({"received", "accepted", "suppressed", "on hold"})
"""Nothing was begun yet: more can be asked for, and all can be taken back."""
BEGUN: frozenset[RequestState] = frozenset({"erasing", "verifying", "failed"})

_FOLLOWING: dict[RequestState | None, frozenset[RequestState]] = {
    None: frozenset({"received"}),
    "received": frozenset({"accepted", "rejected"}),
    "accepted": frozenset({"suppressed", "on hold", "withdrawn", "rejected"}),
    "suppressed": frozenset({"erasing", "on hold", "withdrawn", "rejected"}),
    "on hold": frozenset({"suppressed", "withdrawn", "rejected"}),
    "erasing": frozenset({"verifying", "erased", "failed", "rejected"}),
    "verifying": frozenset({"erased", "failed"}),
    "failed": frozenset({"erasing", "verifying", "failed", "erased", "rejected"}),
    **dict.fromkeys(ENDED, frozenset()),
}
_REMEDIES: dict[RequestState, str] = {
    "withdrawn": "it can be withdrawn until erasing begins",
    "on hold": "only a request that waits can be put on hold",
    "suppressed": "only a request that is on hold can be released",
}


def refuse_unless_may_follow(before: RequestState | None, after: RequestState) -> None:
    """Refuse a change that the states do not allow."""
    if after not in _FOLLOWING[before]:
        remedy = _REMEDIES.get(after, "look at its events")
        raise Refused(f"a request that is {before or 'unknown'} can't become {after}: {remedy}")
