"""The search file: the people who are erased but not certified yet, and what the scan must look for.

It is the workspace's document `pending`, readable by the owner only; the scan skips it, and it is deleted once the
certificates are issued. People who have asked but are not erased yet are in the queue.
"""

from collections.abc import Collection, Iterator, Mapping
from datetime import datetime
from typing import Annotated, Any

from pydantic import AfterValidator, ConfigDict, Field

from erasable.documents import newer, read_json
from erasable.errors import SuppressionUnknown
from erasable.fingerprint import canonical_json
from erasable.proof.certificate import FrozenDocument
from erasable.requests.request import Request

FORMAT = 3
"""Files of 0.1 have no format number, which counts as 1; up to 2 they also held people not erased yet."""
IN_MEMORY = ("", "")
"""Stands for the do-not-learn list of a recommender in memory, which has no path."""


def _moment(text: str) -> str:
    datetime.fromisoformat(text)
    return text


Moment = Annotated[str, AfterValidator(_moment)]
"""A time with its zone, in ISO 8601."""
Places = tuple[tuple[str, str], ...]
"""The paths of do-not-learn lists, each with its key."""


NOTHING_SHOWN: Mapping[str, tuple[str, ...]] = {}


class _SearchPart(FrozenDocument):
    # Fields that a newer version added are kept when the file is written again.
    model_config = ConfigDict(extra="allow")


class Sought(_SearchPart):
    """One request that was carried out, and the data that was held."""

    request_id: str = Field(pattern="^[0-9a-f]{32}$")
    received: Moment
    user: str = Field(repr=False)
    items: tuple[str, ...] | None = Field(repr=False)
    salt: str = Field(pattern="^[0-9a-f]{64}$", repr=False)
    """The salt of the commitments in the certificate; the receipt holds it."""
    reference: str | None = Field(None, repr=False)
    """Text typed in with the request, such as a case number; it goes into the receipt."""
    rows: tuple[tuple[str, float, float | None], ...] = Field((), repr=False)
    """Item, rating and time of each erased interaction."""
    personal: tuple[tuple[str, str], ...] = Field((), repr=False)
    """Each user row, as its type and its bytes in hexadecimal."""
    found: str | None = Field(None, repr=False)
    """Where residue was found that prevents the certificate."""
    shown: tuple[str, ...] = ()
    """The same places as pages show them, without personal data."""

    @property
    def request(self) -> Request:
        """The request."""
        return Request(self.user, self.items, self.request_id)


class Erased(_SearchPart):
    """One erasure: the people in it, and the facts that can only be measured while it happens."""

    people: tuple[Sought, ...]
    version: int | None = None
    """The version that it made; up to format 2 only the current version was certified."""
    suppression: Places = ()
    """The do-not-learn lists that these people are on, if any are kept."""
    may_return: bool = False
    """Whether they are on no list, because nobody asked: they were missing in an export."""
    at: Moment
    seconds: float
    threads: int
    rerun: tuple[int, ...]
    cost_ratio: float
    cost_at_most: float | None = None
    """The most that an erasure of anyone would have cost; None in files of 0.1."""
    seconds_at_most: float | None = None
    """The longest that an erasure of anyone would have taken; None in files of 0.1."""
    data_before: str
    utility_before: dict[str, float] | None
    texts: tuple[str, ...] = ()
    """The names of removed checkpoints."""
    own_items: tuple[str, ...] = Field((), repr=False)
    """Items that nobody has any longer."""

    @property
    def requests(self) -> list[Request]:
        """The requests carried out."""
        return [one.request for one in self.people]

    def of(self, request_ids: Collection[str]) -> "Erased":
        """Return the erasure with only some of its people."""
        return self.model_copy(update={"people": tuple(one for one in self.people if one.request_id in request_ids)})


class Search(_SearchPart):
    """All erasures that are carried out but not certified."""

    format: int = FORMAT
    erasures: tuple[Erased, ...] = ()
    accepted: tuple[Sought, ...] = ()
    """People who asked an earlier release and are not erased yet; they are moved to the queue."""

    @property
    def people(self) -> Iterator[Sought]:
        """Everyone who is erased but not certified."""
        return (one for erased in self.erasures for one in erased.people)

    @property
    def users(self) -> frozenset[str]:
        """The ids of everyone in the file."""
        return frozenset(one.user for one in (*self.people, *self.accepted))

    def left_of(self, request: Request) -> Request | None:
        """Return the part of a request that is not erased yet; None if all of it is."""
        same = [one for one in self.people if one.user == request.user]
        if any(one.items is None for one in same):
            return None
        if not same or request.items is None:
            return request
        gone = {item for one in same for item in one.items or ()}
        left = tuple(item for item in request.items if item not in gone)
        return Request(request.user, left) if left else None

    def of(self, request_ids: Collection[str]) -> "Search":
        """Return the search for only some requests."""
        wanted = frozenset(request_ids)
        parts = (erased.of(wanted) for erased in self.erasures)
        return self.model_copy(update={"erasures": tuple(erased for erased in parts if erased.people)})

    def without(self, request_ids: Collection[str]) -> "Search":
        """Return the search without some requests."""
        return self.of([one.request_id for one in self.people if one.request_id not in request_ids])

    def without_items(self, declared: Collection[str]) -> "Search":
        """Return the search without items that are declared by now: the owner says so, so they are nobody's trace."""
        known = frozenset(declared)
        if not any(known.intersection(one.own_items) for one in self.erasures):
            return self
        left = ((one, tuple(item for item in one.own_items if item not in known)) for one in self.erasures)
        erasures = tuple(one.model_copy(update={"own_items": items}) for one, items in left)
        return self.model_copy(update={"erasures": erasures})

    def of_version(self, *versions: int | None) -> "Search":
        """Return only the erasures that made one of these versions."""
        parts = [one for one in self.erasures if one.version in versions]
        return self.model_copy(update={"erasures": tuple(parts)})

    def found_at(self, places: Mapping[str, str], shown: Mapping[str, tuple[str, ...]] = NOTHING_SHOWN) -> "Search":
        """Record where residue was found, by request, and how pages show it."""

        def told(one: Sought) -> Sought:
            found = {"found": places.get(one.request_id), "shown": shown.get(one.request_id, ())}
            return one.model_copy(update=found) if one.request_id in places else one

        parts = [one.model_copy(update={"people": tuple(map(told, one.people))}) for one in self.erasures]
        return self.model_copy(update={"erasures": tuple(parts)})

    @property
    def places_shown(self) -> dict[str, tuple[str, ...]]:
        """Where residue prevents a certificate, by request, as pages show it."""
        return {one.request_id: one.shown for one in self.people if one.shown}

    def made_again(self, rerun: Collection[int]) -> "Search":
        """Record further stages that were trained again; those left are certified for the version after that."""
        parts = [one.model_copy(update={"rerun": tuple(sorted({*one.rerun, *rerun}))}) for one in self.erasures]
        return self.model_copy(update={"erasures": tuple(parts)})

    def encoded(self) -> bytes:
        """Return it as JSON; empty if nobody is in it."""
        return canonical_json(self.model_dump(mode="json")) if self.erasures or self.accepted else b""


NOTHING_SOUGHT = Search()


class _Numbered(FrozenDocument):
    """The format number, read first."""

    model_config = ConfigDict(extra="ignore")

    format: int = Field(1, ge=1, strict=True)


class _Trace(_SearchPart):
    """The data of one person, up to format 2; the first also has texts and items of the whole erasure."""

    user: str
    rows: tuple[tuple[str, float, float | None], ...]
    personal: tuple[tuple[str, str], ...]
    texts: tuple[str, ...]
    own_items: tuple[str, ...] = ()


class _Before3(_SearchPart):
    """Formats 1 and 2, in which one file held accepted requests and, later, the same people erased."""

    accepted: tuple[Sought, ...] = ()
    suppression: Places = ()
    erased: dict[str, Any] | None = None

    def as_search(self) -> Search:
        """Return it in the current format."""
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
    """Read the search file, whose hash the workspace has checked; empty content means nobody."""
    if not content:
        return NOTHING_SOUGHT
    try:
        read_json(content)  # refuses JSON that can be read in two ways
        found = _Numbered.model_validate_json(content).format
        if found == FORMAT:
            return Search.model_validate_json(content)
        if found < FORMAT:
            return _Before3.model_validate_json(content).as_search()
    except ValueError:  # its message would show who asked
        raise SuppressionUnknown(
            "who is being erased can't be read, so nobody is served: restore the workspace from a copy made after the "
            "last erasure"
        ) from None
    raise SuppressionUnknown(f"the file of who is being erased {newer(found, FORMAT)}; until then nobody is served")
