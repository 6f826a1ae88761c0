"""A request: whom it is about and what they ask to be forgotten, and what its events tell of its life."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Literal

from erasable.requests.lifecycle import ENDED, Deadlines, KeptTerms, RequestState, Terms
from erasable.unlearning import Subject

Scope = Literal["all data of one person", "some interactions of one person"]
EVERYTHING: Scope = "all data of one person"
SOME: Scope = "some interactions of one person"
DISK_FULL = "the disk is full: free some space"
"""Why requests fail that are tried again until there is room."""
NOT_KEPT = "the reason is not kept any more"
LIMIT = "limit"
"""The fact of a hold that the service made because a token asked for more people in a day than it may."""
TERMS = "terms"
"""The fact of the event that keeps the terms in force when the request came in."""


@dataclass(frozen=True)
class Event:
    """Something that happened, to a request or to the service; never changed."""

    number: int
    request_id: str | None
    at: datetime
    name: str
    state: RequestState | None
    """The state that it led to, if it led to another."""
    actor: str
    facts: Mapping[str, Any]


@dataclass(frozen=True)
class Request(Subject):
    """What one person asks to be forgotten: everything, or the interactions with some items.

    One that was submitted has an id and events, from which everything else about it is told. Whom it is about is there
    only where the queue was asked for it, and only while it is kept.

    Parameters
    ----------
    user : str
        The person's id as text; whole numbers in decimal.
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
    """With it the person follows the request, and shows later that the certificate is about them."""
    events: tuple[Event, ...] = field(default=(), repr=False)

    @property
    def state(self) -> RequestState:
        """Its state."""
        return self._last_change.state or "received"

    @property
    def received(self) -> datetime:
        """When it came."""
        return self.events[0].at

    @property
    def changed(self) -> datetime:
        """When something last happened to it."""
        return self.events[-1].at

    @property
    def from_application(self) -> bool:
        """Whether an application submitted it, which may not learn who asked."""
        return self.events[0].actor.startswith("application ")

    @property
    def scope(self) -> Scope:
        """How much is to be erased: the last word counts, since requests of one person are joined."""
        if not self.events:
            return EVERYTHING if self.everything else SOME
        return next(event.facts["scope"] for event in reversed(self.events) if "scope" in event.facts)

    @property
    def open(self) -> bool:
        """Whether something is left to do."""
        return self.state not in ENDED

    @property
    def extended(self) -> str | None:
        """The reason for which it was extended, if it was."""
        return next((event.facts.get("reason", NOT_KEPT) for event in self.events if event.name == "extended"), None)

    @property
    def reference(self) -> str | None:
        """The case number of whoever submitted it, if one was given and as long as it is kept."""
        return next((event.facts["reference"] for event in self.events if "reference" in event.facts), None)

    @property
    def over_limit(self) -> bool:
        """Whether it is on hold because a token asked for more people in a day than it may."""
        return self._last_change.state == "on hold" and LIMIT in self._last_change.facts

    @property
    def attempts(self) -> int:
        """How often carrying it out came to nothing since someone last looked at it; a full disk does not count."""
        names = [event.name for event in self.events if event.facts.get("reason") != DISK_FULL]
        last_look = max((place for place, name in enumerate(names) if name == "retry asked"), default=-1)
        return sum(name in ("failed", "resumed") for name in names[last_look + 1 :])

    @property
    def retry_at(self) -> datetime | None:
        """When a failed request is tried again; None if it waits for someone to look at it."""
        last = next((e for e in reversed(self.events) if e.name in ("failed", "retry asked")), None)
        if self.state != "failed" or last is None or last.facts.get("retry_at") is None:
            return None
        return datetime.fromisoformat(last.facts["retry_at"])

    @property
    def reason(self) -> str | None:
        """Why it is in its state, if that has to be explained."""
        return self._last_change.facts.get("reason")

    @property
    def outcome(self) -> Mapping[str, Any] | None:
        """What the erasure took, once it is done."""
        return next((event.facts for event in reversed(self.events) if event.state == "erased"), None)

    @property
    def terms(self) -> KeptTerms | None:
        """The terms that were in force when it came in; None if it came in before they were kept."""
        return next((KeptTerms(**event.facts[TERMS]) for event in self.events if TERMS in event.facts), None)

    def when(self, state: RequestState) -> datetime | None:
        """Return when it first came into a state; a hold in between changes nothing about since when it is in it."""
        return next((event.at for event in self.events if event.state == state), None)

    def deadlines(self, today: Terms) -> Deadlines:
        """Return by when what has to happen, by its own terms, or by today's if it came in before terms were kept."""
        return Deadlines.of(self.received, self.terms or today, self.extended is not None)

    def late(self, today: Terms, now: datetime) -> bool:
        """Whether it was erased after the legal time, or is open after it."""
        done = self.when("erased") or (now if self.open else None)
        return done is not None and done > self.deadlines(today).legal

    @property
    def _last_change(self) -> Event:
        return next(event for event in reversed(self.events) if event.state is not None)


@dataclass(frozen=True)
class Submission:
    """One submission: of a request of its own, or one that joined a person's open request."""

    request: Request
    """The request that it became, or joined; with its subject where that was just taken in."""
    submission_id: str
    """What whoever submitted it calls it: its own id, also where it joined another."""
    at: datetime
    joined: bool
    receipt_code: str | None = field(default=None, repr=False)
    """Of this submission, shown to who submitted it, once; None where another has the code."""
    salting_code: str = field(default="", repr=False)
    """The code that the certificate is salted with: of the request that it joined, or its own."""

    @property
    def request_id(self) -> str:
        """The id of the request that it became or joined."""
        return self.request.request_id

    @property
    def rejected(self) -> bool:
        """Whether nothing was held of what was asked for."""
        return self.request.state == "rejected"

    @property
    def unaware(self) -> bool:
        """Whether an application submitted it, which may not learn who had asked before."""
        return self.joined or self.request.from_application

    def left_out(self) -> datetime | None:
        """Return since when the person is not served, as far as this submission had to do with it."""
        first = self.request.when("suppressed")
        return None if first is None else max(first, self.at)

    def terms(self, today: Terms) -> Terms:
        """Return the terms that were in force when it came: whoever joined must not learn those of the first."""
        kept = [event.facts[TERMS] for event in self.request.events if TERMS in event.facts and event.at == self.at]
        return KeptTerms(**kept[-1]) if kept else self.request.terms or today

    def deadlines(self, today: Terms) -> Deadlines:
        """Return by when what has to happen, counted from this submission."""
        return Deadlines.of(self.at, self.terms(today), self.request.extended is not None)

    def missed(self, today: Terms, now: datetime) -> datetime | None:
        """Return the end of the legal time, if it was over before the person was erased."""
        done = self.request.when("erased") or (now if self.request.open else None)
        legal = self.deadlines(today).legal
        return legal if done is not None and done > legal else None
