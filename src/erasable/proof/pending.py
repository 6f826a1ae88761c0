"""Requests that were accepted and are being carried out: who asked is kept until the certificates are written."""

import secrets
from collections.abc import Sequence
from datetime import datetime
from typing import Annotated

from pydantic import AfterValidator, ConfigDict, Field, ValidationError

from erasable.documents import newer
from erasable.errors import SuppressionUnknown
from erasable.fingerprint import canonical_json
from erasable.proof.clock import now
from erasable.proof.paper import Paper
from erasable.proof.salting import new_salt
from erasable.unlearning import Request

FORMAT = 2
"""What 0.1 wrote names no format; that is 1."""


def _moment(text: str) -> str:
    datetime.fromisoformat(text)
    return text


Moment = Annotated[str, AfterValidator(_moment)]
"""A time with its zone, as text."""


class _Part(Paper):
    # A field that a newer version has added is kept when it is written again.
    model_config = ConfigDict(extra="allow")


class Accepted(_Part):
    """What one person asked for, under a random id, with the salt of the receipt."""

    request_id: str = Field(pattern="^[0-9a-f]{32}$")
    received: Moment
    user: str = Field(repr=False)
    items: tuple[str, ...] | None = Field(repr=False)
    salt: str = Field(pattern="^[0-9a-f]{64}$", repr=False)
    reference: str | None = Field(None, repr=False)
    """What was typed in beside the request, such as an own case number; it goes into the receipt."""

    @staticmethod
    def of(request: Request, reference: str | None = None) -> "Accepted":
        """Accept a request now, under a new id."""
        items = None if request.items is None else tuple(dict.fromkeys(request.items))
        return Accepted(
            request_id=secrets.token_hex(16),
            received=now(),
            user=request.user,
            items=items,
            salt=new_salt(),
            reference=reference,
        )

    @property
    def request(self) -> Request:
        """Return what was asked for."""
        return Request(self.user, self.items)

    def joined_with(self, other: "Accepted") -> "Accepted":
        """Return the same with one more request of the same person."""
        everything = self.items is None or other.items is None
        items = None if everything else tuple(dict.fromkeys([*(self.items or ()), *(other.items or ())]))
        return self.model_copy(update={"items": items, "reference": self.reference or other.reference})


class Trace(_Part):
    """What was held of one person, to search for until nothing of it is left."""

    user: str = Field(repr=False)
    items: tuple[str, ...] | None = Field(repr=False)
    rows: tuple[tuple[str, float, float | None], ...] = Field(repr=False)
    """Item, rating and time of each interaction that was erased."""
    personal: tuple[tuple[str, str], ...] = Field(repr=False)
    """Each personal row, as its type and its bytes in hexadecimal."""
    texts: tuple[str, ...]
    """Names of checkpoints that were destroyed."""
    own_items: tuple[str, ...] = Field((), repr=False)
    """Items that nobody has any more."""


class Erased(_Part):
    """What is known about an erasure only while it happens."""

    at: Moment
    seconds: float
    threads: int
    rerun: tuple[int, ...]
    cost_ratio: float
    cost_at_most: float | None = None
    """What it would have cost whoever it is about; 0.1 did not say."""
    seconds_at_most: float | None = None
    """About how long it would have taken whoever it is about; 0.1 did not say."""
    data_before: str
    utility_before: dict[str, float] | None
    traces: tuple[Trace, ...] = ()


IN_MEMORY = ("", "")
"""What stands for the do-not-learn list of a recommender in memory, which has no place."""


class Pending(_Part):
    """Accepted requests, one for each person; once their data is gone, also what the certificates will say of it."""

    format: int = FORMAT
    accepted: tuple[Accepted, ...] = ()
    suppression: tuple[tuple[str, str], ...] = ()
    """The do-not-learn lists that they are put on, each with its key; none if none is kept."""
    erased: Erased | None = None

    @property
    def requests(self) -> list[Request]:
        """Return what was asked for."""
        return [accepted.request for accepted in self.accepted]

    @property
    def users(self) -> frozenset[str]:
        """Return who asked."""
        return frozenset(accepted.user for accepted in self.accepted)

    def left_of(self, request: Request) -> Request | None:
        """Return what of a request is not among these already; None if all of it is."""
        same = next((accepted for accepted in self.accepted if accepted.user == request.user), None)
        if same is None or (request.items is None and same.items is not None):
            return request
        left = () if same.items is None else tuple(item for item in request.items or () if item not in same.items)
        return Request(request.user, left) if left else None

    def joined_with(self, requests: Sequence[Request | Accepted]) -> "Pending":
        """Return these requests and more; several of one person become one."""
        people = {accepted.user: accepted for accepted in self.accepted}
        for asked in requests:
            coming = asked if isinstance(asked, Accepted) else Accepted.of(asked)
            known = people.get(coming.user)
            people[coming.user] = known.joined_with(coming) if known else coming
        return self.model_copy(update={"accepted": tuple(people.values())})

    def put_on(self, list_file: str, key_file: str) -> "Pending":
        """Return the same requests, to be put on one more do-not-learn list."""
        lists = dict.fromkeys([*self.suppression, (list_file, key_file)])
        return self.model_copy(update={"suppression": tuple(lists)})

    def encoded(self) -> bytes:
        """Return it as JSON."""
        return canonical_json(self.model_dump(mode="json"))


NOTHING_PENDING = Pending()


class _Numbered(Paper):
    """What tells how the rest is to be read."""

    model_config = ConfigDict(extra="ignore")

    format: int = Field(1, ge=1, strict=True)


def read_pending(content: bytes) -> Pending:
    """Read pending requests, whose bytes the store has checked; without content there are none."""
    if not content:
        return NOTHING_PENDING
    try:
        found = _Numbered.model_validate_json(content).format
        if found <= FORMAT:
            return Pending.model_validate_json(content).model_copy(update={"format": FORMAT})
    except ValidationError:  # whose words would show who asked
        raise SuppressionUnknown(
            "who is being erased can't be read, so nobody is served: restore the workspace from a copy made after the "
            "last erasure"
        ) from None
    raise SuppressionUnknown(f"the file of who is being erased {newer(found, FORMAT)}; until then nobody is served")
