"""A request: its subject, its states and deadlines, its events, and one submission of it."""

import calendar
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, time, timedelta
from functools import cached_property
from typing import Any, Literal, Protocol, get_args

from erasable.data.interactions import Subject
from erasable.errors import Refused

RequestState = Literal[
    "received",
    "suppressed",
    "erasing",
    "certifying",
    "erased",
    "rejected",
    "withdrawn",
    "on hold",
    "failed",
]
STATES: tuple[RequestState, ...] = get_args(RequestState)
ENDED: frozenset[RequestState] = frozenset({"erased", "rejected", "withdrawn"})
WAITING: frozenset[RequestState] = frozenset({"received", "suppressed", "on hold"})
"""Not begun: more can be asked for, and the request can be withdrawn."""
BEGUN: frozenset[RequestState] = frozenset({"erasing", "certifying", "failed"})
FORGOTTEN: frozenset[RequestState] = ENDED | {"certifying"}
"""In these states the subject is not kept."""
NOTHING_HELD = "nothing is held of what was asked for"
"""Why a request is rejected at once; in format 1 the only reason that nobody typed in."""

_FOLLOWING: dict[RequestState | None, frozenset[RequestState]] = {
    None: frozenset({"received"}),
    "received": frozenset({"suppressed", "rejected"}),
    "suppressed": frozenset({"erasing", "on hold", "withdrawn", "rejected"}),
    "on hold": frozenset({"suppressed", "withdrawn", "rejected"}),
    "erasing": frozenset({"certifying", "erased", "failed", "rejected", "suppressed"}),  # given back: nothing is erased
    "certifying": frozenset({"erased", "failed"}),
    "failed": frozenset({"erasing", "certifying", "failed", "erased", "rejected", "suppressed"}),
    **dict.fromkeys(ENDED, frozenset()),
}
_REMEDIES: dict[RequestState, str] = {
    "withdrawn": "it can be withdrawn until erasing begins",
    "on hold": "only a request that waits can be put on hold",
    "suppressed": "only a request that is on hold can be released",
}
_BEFORE_FORMAT_3: Mapping[str, RequestState] = {"accepted": "suppressed", "verifying": "certifying"}


def state_of(status: str) -> RequestState:
    """Return the state stored in a row; up to format 2 some had other names.

    >>> state_of("verifying"), state_of("erased")
    ('certifying', 'erased')
    """
    found: RequestState = _BEFORE_FORMAT_3.get(status, status)  # type: ignore[arg-type]
    return found


def refuse_unless_may_follow(before: RequestState | None, after: RequestState) -> None:
    """Refuse a change of state that is not allowed."""
    if after not in _FOLLOWING[before]:
        remedy = _REMEDIES.get(after, "look at its events")
        raise Refused(f"a request that is {before or 'unknown'} can't become {after}: {remedy}")


_EXTENSION_MONTHS = 2
_LONGEST_LEAD = timedelta(days=1)
_TIME_TO_TAKE_BACK = timedelta(days=1)


class Terms(Protocol):
    """The times within which requests are carried out, such as the settings of the service."""

    @property
    def batch_window(self) -> float:
        """The days within which a request is carried out; 0 is at once."""

    @property
    def alarm_day(self) -> int:
        """The day after receipt on which an open request raises an alarm."""

    @property
    def limit_day(self) -> int:
        """The day after receipt by which a request must be carried out."""


@dataclass(frozen=True)
class KeptTerms:
    """The terms in force when a request came in; later settings don't change them."""

    batch_window: float = 7
    alarm_day: int = 21
    limit_day: int = 28

    @staticmethod
    def of(terms: Terms) -> "KeptTerms":
        """Return the present terms."""
        return KeptTerms(terms.batch_window, terms.alarm_day, terms.limit_day)


AT_ONCE = KeptTerms(batch_window=0)
"""Requests from a command or the library are due at once."""


@dataclass(frozen=True)
class Deadlines:
    """The deadlines of a request, in UTC."""

    join: datetime
    """From when on it may join a batch that begins before its own: until then there is time to take it back."""
    begin: datetime
    """When its batch begins: early enough to be tried again."""
    erase_by: datetime
    """The end of the batch window."""
    alarm: datetime
    limit: datetime
    legal: datetime
    """The end of the legal month, or of two more if it was extended (GDPR Art. 12(3))."""

    @staticmethod
    def of(received: datetime, terms: Terms, extended: bool = False) -> "Deadlines":
        """Return the deadlines of a request; an extension moves alarm, limit and legal deadline alike."""
        month, legal = legal_deadline(received), legal_deadline(received, extended)
        window = timedelta(days=terms.batch_window)
        wait = window - min(_LONGEST_LEAD, window / 4)
        return Deadlines(
            join=received + min(_TIME_TO_TAKE_BACK, wait / 2),
            begin=received + wait,
            erase_by=received + window,
            alarm=received + timedelta(days=terms.alarm_day) + (legal - month),
            limit=min(legal, received + timedelta(days=terms.limit_day) + (legal - month)),
            legal=legal,
        )


def legal_deadline(received: datetime, extended: bool = False) -> datetime:
    """Return the end of the last day on which the law allows an answer (GDPR Art. 12(3))."""
    day = months_later(received.date(), 1 + _EXTENSION_MONTHS if extended else 1)
    return datetime.combine(day, time(23, 59, 59), UTC)


def months_later(day: date, months: int) -> date:
    """Return the same date some months later, or the last day of that month if it has no such date.

    >>> months_later(date(2026, 1, 31), 1), months_later(date(2026, 12, 5), 1)
    (datetime.date(2026, 2, 28), datetime.date(2027, 1, 5))
    """
    years, month = divmod(day.year * 12 + day.month - 1 + months, 12)
    last = calendar.monthrange(years, month + 1)[1]
    return date(years, month + 1, min(day.day, last))


@dataclass(frozen=True)
class Asked:
    """The people with open requests; each is in one of the two sets only."""

    wholly: frozenset[str] = field(default=frozenset(), repr=False)
    """Those to be erased with everything."""
    some: Mapping[str, frozenset[str]] = field(default_factory=dict, repr=False, hash=False)
    """The items whose interactions are to be erased, by person."""

    @staticmethod
    def of(requests: Iterable[Subject]) -> "Asked":
        """Join requests; for a person who asks for everything, no items are listed.

        >>> found = Asked.of([Subject("ann"), Subject("ann", ("a",)), Subject("bob", ("a",)), Subject("bob", ("b",))])
        >>> sorted(found.wholly), sorted(found.some["bob"]), len(found.some)
        (['ann'], ['a', 'b'], 1)
        """
        wholly, some = set[str](), dict[str, frozenset[str]]()
        for one in requests:
            if one.items is None:
                wholly.add(one.user)
            else:
                some[one.user] = some.get(one.user, frozenset()).union(one.items)
        return Asked(frozenset(wholly), some).tidied()

    def __or__(self, other: "Asked") -> "Asked":
        """Return the union of both."""
        both = {user: self.some[user] | other.some[user] for user in self.some.keys() & other.some.keys()}
        return Asked(self.wholly | other.wholly, {**self.some, **other.some, **both}).tidied()

    @cached_property
    def people(self) -> frozenset[str]:
        """Everyone who has asked."""
        return self.wholly.union(self.some)

    def since(self, before: "Asked") -> "Asked | None":
        """Return who is new compared to before; None if anyone's request changed or went away."""
        if not before.wholly <= self.wholly or any(self.some.get(user) != own for user, own in before.some.items()):
            return None
        return Asked(
            self.wholly - before.wholly, {user: own for user, own in self.some.items() if user not in before.some}
        )

    def tidied(self) -> "Asked":
        """Return the same, without items of people who are to be erased with everything."""
        if self.wholly.isdisjoint(self.some):
            return self
        return Asked(self.wholly, {user: own for user, own in self.some.items() if user not in self.wholly})


NOBODY_ASKED = Asked()


Scope = Literal["all data of one person", "some interactions of one person"]
EVERYTHING: Scope = "all data of one person"
SOME: Scope = "some interactions of one person"
DISK_FULL = "the disk is full: free some space"
"""Why a request failed that is tried again until there is room."""
NOT_KEPT = "the reason is not kept any more"
LIMIT = "limit"
"""Marks a hold by the service, because a token asked for more people in a day than it may."""
TERMS = "terms"
"""The name under which an event stores the terms in force when the request came in."""


@dataclass(frozen=True)
class Event:
    """Something that happened to a request or to the service; never changed."""

    number: int
    request_id: str | None
    at: datetime
    name: str
    state: RequestState | None
    """The state that it led to, if it changed the state."""
    actor: str
    facts: Mapping[str, Any]


@dataclass(frozen=True)
class Request(Subject):
    """What one person asks to be forgotten: everything, or the interactions with some items.

    A submitted request has an id, and events from which its other properties follow. Its subject is only there if the
    queue was asked for it, and only as long as the queue keeps it: without it `items` is None, so ask `scope`.

    Parameters
    ----------
    user : str
        The person's id as text; integers in decimal.
    items : tuple of str, optional
        The items whose interactions are meant; everything if not given.

    Examples
    --------
    >>> Request("42").everything, Request("42", ("a", "b")).everything
    (True, False)
    """

    user: str = field(default="", repr=False)
    items: tuple[str, ...] | None = field(default=None, repr=False)
    request_id: str = ""
    receipt_code: str | None = field(default=None, repr=False)
    """With it the person can follow the request, and later show that the certificate is about them."""
    events: tuple[Event, ...] = field(default=(), repr=False)

    @property
    def state(self) -> RequestState:
        """Its state."""
        return self._last_change.state or "received"

    @property
    def received(self) -> datetime:
        """When it came in."""
        return self.events[0].at

    @property
    def changed(self) -> datetime:
        """When something last happened to it."""
        return self.events[-1].at

    @property
    def from_application(self) -> bool:
        """Whether an application submitted it, which must not learn who asked before."""
        return self.events[0].actor.startswith("application ")

    @property
    def scope(self) -> Scope:
        """How much is to be erased; the latest event counts, since later requests of a person join the first."""
        if not self.events:
            return EVERYTHING if self.everything else SOME
        return next(event.facts["scope"] for event in reversed(self.events) if "scope" in event.facts)

    @property
    def open(self) -> bool:
        """Whether it has not ended."""
        return self.state not in ENDED

    @property
    def extended(self) -> str | None:
        """The reason for its extension, if it was extended."""
        return next((event.facts.get("reason", NOT_KEPT) for event in self.events if event.name == "extended"), None)

    @property
    def reference(self) -> str | None:
        """The submitter's case number, if one was given and is still kept."""
        return next((event.facts["reference"] for event in self.events if "reference" in event.facts), None)

    @property
    def over_limit(self) -> bool:
        """Whether it is on hold because a token asked for more people in a day than it may."""
        return self._last_change.state == "on hold" and LIMIT in self._last_change.facts

    @property
    def attempts(self) -> int:
        """How often it failed since someone last asked for a retry; a full disk does not count."""
        names = [event.name for event in self.events if event.facts.get("reason") != DISK_FULL]
        last_look = max((place for place, name in enumerate(names) if name == "retry asked"), default=-1)
        return sum(name in ("failed", "resumed") for name in names[last_look + 1 :])

    @property
    def retry_at(self) -> datetime | None:
        """When a failed request is tried again; None if it waits for someone's decision."""
        last = next((e for e in reversed(self.events) if e.name in ("failed", "retry asked")), None)
        if self.state != "failed" or last is None or last.facts.get("retry_at") is None:
            return None
        return datetime.fromisoformat(last.facts["retry_at"])

    @property
    def reason(self) -> str | None:
        """Why it is in its state, if a reason is kept."""
        return self._last_change.facts.get("reason")

    @property
    def outcome(self) -> Mapping[str, Any] | None:
        """The facts of the erasure, once it is done."""
        return next((event.facts for event in reversed(self.events) if event.state == "erased"), None)

    @property
    def terms(self) -> KeptTerms | None:
        """The terms in force when it came in; None if terms were not kept yet."""
        return next((KeptTerms(**event.facts[TERMS]) for event in self.events if TERMS in event.facts), None)

    def when(self, state: RequestState) -> datetime | None:
        """Return when it first reached a state, whatever holds came in between."""
        return next((event.at for event in self.events if event.state == state), None)

    def deadlines(self, today: Terms) -> Deadlines:
        """Return its deadlines, by its own terms, or by today's if none were kept with it."""
        return Deadlines.of(self.received, self.terms or today, self.extended is not None)

    def late(self, today: Terms, now: datetime) -> bool:
        """Whether it was erased after the legal deadline, or is still open after it."""
        done = self.when("erased") or (now if self.open else None)
        return done is not None and done > self.deadlines(today).legal

    @property
    def _last_change(self) -> Event:
        return next(event for event in reversed(self.events) if event.state is not None)


@dataclass(frozen=True)
class Submission:
    """One submission: it became a new request, or joined the person's open one."""

    request: Request
    """The request that it became or joined; with its subject if it is new."""
    submission_id: str
    """The id that the submitter was given, which may differ from that of the request it joined."""
    at: datetime
    joined: bool
    receipt_code: str | None = field(default=None, repr=False)
    """Shown once, to the submitter; None if another submitter has the code."""
    salting_code: str = field(default="", repr=False)
    """The code whose salt the certificate uses: that of the request it joined, or its own."""

    @property
    def request_id(self) -> str:
        """The id of the request that it became or joined."""
        return self.request.request_id

    @property
    def rejected(self) -> bool:
        """Whether it was rejected, since nothing is held."""
        return self.request.state == "rejected"

    @property
    def unaware(self) -> bool:
        """Whether the submitter must not learn that someone had asked before."""
        return self.joined or self.request.from_application

    def left_out(self) -> datetime | None:
        """Return since when the person is not served, but no earlier than this submission."""
        first = self.request.when("suppressed")
        return None if first is None else max(first, self.at)

    def terms(self, today: Terms) -> Terms:
        """Return the terms in force when it came in; those of a request it joined must not show."""
        kept = [event.facts[TERMS] for event in self.request.events if TERMS in event.facts and event.at == self.at]
        return KeptTerms(**kept[-1]) if kept else self.request.terms or today

    def deadlines(self, today: Terms) -> Deadlines:
        """Return its deadlines, counted from this submission."""
        return Deadlines.of(self.at, self.terms(today), self.request.extended is not None)

    def missed(self, today: Terms, now: datetime) -> datetime | None:
        """Return the legal deadline, if it passed before the person was erased."""
        done = self.request.when("erased") or (now if self.request.open else None)
        legal = self.deadlines(today).legal
        return legal if done is not None and done > legal else None
