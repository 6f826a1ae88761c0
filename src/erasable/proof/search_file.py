"""The search file: whose data is erased and not certified yet, and what to look for until nothing of it is left.

It lies in the workspace as the paper `pending`, for its owner alone; the scan skips it, and it goes with the
certificates. Who has asked and is not erased yet stands in the queue.
"""

from collections.abc import Collection, Iterator, Mapping
from datetime import datetime
from typing import Annotated, Any

from pydantic import AfterValidator, ConfigDict, Field

from erasable.documents import newer, read_json
from erasable.errors import SuppressionUnknown
from erasable.fingerprint import canonical_json
from erasable.proof.paper import Paper
from erasable.requests import Request

FORMAT = 3
"""What 0.1 wrote names no format; that is 1. Up to 2 it also held who had asked and was not erased yet."""
IN_MEMORY = ("", "")
"""What stands for the do-not-learn list of a recommender in memory, which has no place."""


def _moment(text: str) -> str:
    datetime.fromisoformat(text)
    return text


Moment = Annotated[str, AfterValidator(_moment)]
"""A time with its zone, as text."""
Places = tuple[tuple[str, str], ...]
"""Do-not-learn lists, each with its key."""


NOTHING_SHOWN: Mapping[str, tuple[str, ...]] = {}


class _Part(Paper):
    # A field that a newer version has added is kept when it is written again.
    model_config = ConfigDict(extra="allow")


class Sought(_Part):
    """What one person asked for, under the id of the request, and what was held of it."""

    request_id: str = Field(pattern="^[0-9a-f]{32}$")
    received: Moment
    user: str = Field(repr=False)
    items: tuple[str, ...] | None = Field(repr=False)
    salt: str = Field(pattern="^[0-9a-f]{64}$", repr=False)
    """Of the commitments in the certificate; the receipt holds it."""
    reference: str | None = Field(None, repr=False)
    """What was typed in beside the request, such as an own case number; it goes into the receipt."""
    rows: tuple[tuple[str, float, float | None], ...] = Field((), repr=False)
    """Item, rating and time of each interaction that was erased."""
    personal: tuple[tuple[str, str], ...] = Field((), repr=False)
    """Each personal row, as its type and its bytes in hexadecimal."""
    found: str | None = Field(None, repr=False)
    """Where something of the person was found that keeps the certificate from being issued."""
    shown: tuple[str, ...] = ()
    """The same places as pages show them: in words that hold nothing of the person."""

    @property
    def request(self) -> Request:
        """Return what was asked for."""
        return Request(self.user, self.items, self.request_id)


class Erased(_Part):
    """One erasure that is done: who was erased in it, and what is known about it only while it happens."""

    people: tuple[Sought, ...]
    version: int | None = None
    """The version that it made; releases up to format 2 certified no other than the current one."""
    suppression: Places = ()
    """The do-not-learn lists that they are on; none if none is kept."""
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
    texts: tuple[str, ...] = ()
    """Names of checkpoints that were destroyed."""
    own_items: tuple[str, ...] = Field((), repr=False)
    """Items that nobody has any more."""

    @property
    def requests(self) -> list[Request]:
        """Return what was asked for."""
        return [one.request for one in self.people]

    def of(self, request_ids: Collection[str]) -> "Erased":
        """Return the same about some of its people."""
        return self.model_copy(update={"people": tuple(one for one in self.people if one.request_id in request_ids)})


class Search(_Part):
    """All erasures that are done and not certified."""

    format: int = FORMAT
    erasures: tuple[Erased, ...] = ()
    accepted: tuple[Sought, ...] = ()
    """Who had asked an earlier release and is not erased yet: they are handed on to the queue."""

    @property
    def people(self) -> Iterator[Sought]:
        """Everyone who is erased and not certified."""
        return (one for erased in self.erasures for one in erased.people)

    @property
    def users(self) -> frozenset[str]:
        """Return whose requests these are."""
        return frozenset(one.user for one in (*self.people, *self.accepted))

    def left_of(self, request: Request) -> Request | None:
        """Return what of a request is not erased already; None if all of it is."""
        same = [one for one in self.people if one.user == request.user]
        if any(one.items is None for one in same):
            return None
        if not same or request.items is None:
            return request
        gone = {item for one in same for item in one.items or ()}
        left = tuple(item for item in request.items if item not in gone)
        return Request(request.user, left) if left else None

    def of(self, request_ids: Collection[str]) -> "Search":
        """Return the same about some people."""
        wanted = frozenset(request_ids)
        parts = (erased.of(wanted) for erased in self.erasures)
        return self.model_copy(update={"erasures": tuple(erased for erased in parts if erased.people)})

    def without(self, request_ids: Collection[str]) -> "Search":
        """Return the same without some people."""
        return self.of([one.request_id for one in self.people if one.request_id not in request_ids])

    def of_version(self, *versions: int | None) -> "Search":
        """Return the same about the erasures that made one of these versions."""
        parts = [one for one in self.erasures if one.version in versions]
        return self.model_copy(update={"erasures": tuple(parts)})

    def found_at(self, places: Mapping[str, str], shown: Mapping[str, tuple[str, ...]] = NOTHING_SHOWN) -> "Search":
        """Return the same, with where something was found of some people, by request, and how pages show it."""

        def told(one: Sought) -> Sought:
            found = {"found": places.get(one.request_id), "shown": shown.get(one.request_id, ())}
            return one.model_copy(update=found) if one.request_id in places else one

        parts = [one.model_copy(update={"people": tuple(map(told, one.people))}) for one in self.erasures]
        return self.model_copy(update={"erasures": tuple(parts)})

    @property
    def places_shown(self) -> dict[str, tuple[str, ...]]:
        """Where something was found of those who can't be certified, by request, as pages show it."""
        return {one.request_id: one.shown for one in self.people if one.shown}

    def made_again(self, rerun: Collection[int]) -> "Search":
        """Return the same once more stages were made again: whoever is left is certified for the version after that."""
        parts = [one.model_copy(update={"rerun": tuple(sorted({*one.rerun, *rerun}))}) for one in self.erasures]
        return self.model_copy(update={"erasures": tuple(parts)})

    def encoded(self) -> bytes:
        """Return it as JSON; nothing if nobody is in it."""
        return canonical_json(self.model_dump(mode="json")) if self.erasures or self.accepted else b""


NOTHING_SOUGHT = Search()


class _Numbered(Paper):
    """What tells how the rest is to be read."""

    model_config = ConfigDict(extra="ignore")

    format: int = Field(1, ge=1, strict=True)


class _Trace(_Part):
    """What was held of one person, up to format 2; texts and items of the whole erasure stand with the first."""

    user: str
    rows: tuple[tuple[str, float, float | None], ...]
    personal: tuple[tuple[str, str], ...]
    texts: tuple[str, ...]
    own_items: tuple[str, ...] = ()


class _Before3(_Part):
    """Up to format 2 one file held what was accepted, and the same people once they were erased."""

    accepted: tuple[Sought, ...] = ()
    suppression: Places = ()
    erased: dict[str, Any] | None = None

    def as_search(self) -> Search:
        """Return it as it is written now."""
        if self.erased is None:
            return Search(accepted=self.accepted)
        traces = [_Trace.model_validate(one) for one in self.erased.pop("traces", ())]
        by_user = {trace.user: trace for trace in traces}
        people = [
            one.model_copy(update={"rows": by_user[one.user].rows, "personal": by_user[one.user].personal})
            if one.user in by_user
            else one
            for one in self.accepted
        ]
        told = {
            "people": [one.model_dump() for one in people],
            "suppression": self.suppression,
            "texts": tuple(text for trace in traces for text in trace.texts),
            "own_items": tuple(item for trace in traces for item in trace.own_items),
        }
        return Search(erasures=(Erased.model_validate(self.erased | told),))


def read_search(content: bytes) -> Search:
    """Read the search file, whose bytes the store has checked; without content nobody is sought."""
    if not content:
        return NOTHING_SOUGHT
    try:
        read_json(content)  # what can be read in two ways is refused
        found = _Numbered.model_validate_json(content).format
        if found == FORMAT:
            return Search.model_validate_json(content)
        if found < FORMAT:
            return _Before3.model_validate_json(content).as_search()
    except ValueError:  # whose words would show who asked
        raise SuppressionUnknown(
            "who is being erased can't be read, so nobody is served: restore the workspace from a copy made after the "
            "last erasure"
        ) from None
    raise SuppressionUnknown(f"the file of who is being erased {newer(found, FORMAT)}; until then nobody is served")
