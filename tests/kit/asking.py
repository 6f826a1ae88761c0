"""Requests as a killed command leaves them: submitted and not begun, and people who are erased and sought."""

import secrets
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime
from unittest.mock import patch

from erasable.fingerprint import canonical_json
from erasable.operations import Work, forget
from erasable.operations.claims import COMMAND
from erasable.operations.storage import Storage
from erasable.proof import Erased, Search, Sought
from erasable.requests import Request

FACTS = {
    "at": "2026-01-01T00:00:02+00:00",
    "seconds": 1.25,
    "threads": 2,
    "rerun": (1, 2),
    "cost_ratio": 0.5,
    "data_before": "0b" * 32,
    "utility_before": {"hr@10": 0.125},
}


def submit(storage: Storage, *requests: Request) -> list[str]:
    """Submit requests as a command does that is killed before it begins, and return their ids."""
    with storage.queue() as queue:
        return [queue.submit(one, True, COMMAND, datetime.now(UTC)).request_id for one in requests]


def accept(storage: Storage, *requests: Request) -> None:
    """Leave requests in the workspace itself, as a command of an earlier release does that is killed."""
    with storage.writing() as session:
        session.amend(replace(session.documents(), pending=accepted_before(*requests)))


class Killed(BaseException):
    """Stands for the end of a process."""


def erase_only(storage: Storage, *requests: Request) -> None:
    """Forget as a process does that is killed once the people are gone, before their certificates are written."""
    with patch("erasable.operations.erase.search_for", side_effect=Killed), suppress(Killed):
        forget(storage, requests, work=Work(1))


def sought(request: Request, reference: str | None = None, **facts: object) -> Sought:
    """Return what is sought of someone, under a new id."""
    told = {"received": "2026-01-01T00:00:01+00:00", "salt": secrets.token_hex(32), "reference": reference}
    return Sought(user=request.user, items=request.items, request_id=secrets.token_hex(16), **told | facts)


def erased(*requests: Request, **facts: object) -> Erased:
    """Return an erasure that is done."""
    return Erased(people=tuple(map(sought, requests)), **FACTS | facts)


def search(*requests: Request) -> Search:
    """Return a search file."""
    return Search(erasures=(erased(*requests),))


def accepted_before(*requests: Request) -> bytes:
    """Return the file of an earlier release in which requests are accepted and not begun."""
    people = [sought(one).model_dump(mode="json", include=_ACCEPTED) for one in requests]
    return canonical_json({"accepted": people, "suppression": [], "erased": None})


_ACCEPTED = {"request_id", "received", "user", "items", "salt"}
