"""A request as its events tell it; who asked is not among them."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Literal

from erasable.service.deadlines import Deadlines
from erasable.service.lifecycle import ENDED, RequestState
from erasable.service.settings import ServiceSettings

Scope = Literal["all data of one person", "some interactions of one person"]
EVERYTHING: Scope = "all data of one person"
SOME: Scope = "some interactions of one person"
NOT_KEPT = "the reason is not kept any more"
LIMIT = "limit"
"""The fact of a hold that the service made because a token asked for more people in a day than it may."""


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
class Filed:
    """A request, as its events tell it; who asked is not among them."""

    request_id: str
    events: tuple[Event, ...] = field(repr=False)

    @property
    def state(self) -> RequestState:
        """Its state."""
        return next(event.state for event in reversed(self.events) if event.state is not None)

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
        last = next(event for event in reversed(self.events) if event.state is not None)
        return last.state == "on hold" and LIMIT in last.facts

    @property
    def attempts(self) -> int:
        """How often carrying it out came to nothing since someone last looked at it."""
        names = [event.name for event in self.events]
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
        last = next(event for event in reversed(self.events) if event.state is not None)
        return last.facts.get("reason")

    @property
    def outcome(self) -> Mapping[str, Any] | None:
        """What the erasure took, once it is done."""
        return next((event.facts for event in reversed(self.events) if event.state == "erased"), None)

    def when(self, state: RequestState) -> datetime | None:
        """Return when it first came into a state; a hold in between changes nothing about since when it is in it."""
        return next((event.at for event in self.events if event.state == state), None)

    def deadlines(self, settings: ServiceSettings) -> Deadlines:
        """Return by when what has to happen."""
        return Deadlines.of(self.received, settings, self.extended is not None)

    def late(self, settings: ServiceSettings, now: datetime) -> bool:
        """Whether it was erased after the legal time, or is open after it."""
        done = self.when("erased") or (now if self.open else None)
        return done is not None and done > self.deadlines(settings).legal


@dataclass(frozen=True)
class Manner:
    """How a request was submitted."""

    reference: str | None = None
    """The case number of whoever submits it."""
    unaware: bool = False
    """Whether whoever submits it may not learn that the person has asked before."""


PLAIN = Manner()


@dataclass(frozen=True)
class Submitted:
    """A submission, as whoever has its receipt code may follow it."""

    filed: Filed
    code: str
    """The code that the certificate is salted with: of the request that it joined, or its own."""
    at: datetime
    joined: bool

    @property
    def unaware(self) -> bool:
        """Whether an application submitted it, which may not learn who had asked before."""
        return self.joined or self.filed.from_application

    def left_out(self) -> datetime | None:
        """Return since when the person is not served, as far as this submission had to do with it."""
        first = self.filed.when("suppressed")
        return None if first is None else max(first, self.at)

    def deadlines(self, settings: ServiceSettings) -> Deadlines:
        """Return by when what has to happen, counted from this submission."""
        return Deadlines.of(self.at, settings, self.filed.extended is not None)

    def missed(self, settings: ServiceSettings, now: datetime) -> datetime | None:
        """Return the end of the legal time, if it was over before the person was erased."""
        done, legal = self.filed.when("erased") or (now if self.filed.open else None), self.deadlines(settings).legal
        return legal if done is not None and done > legal else None


@dataclass(frozen=True)
class Filing:
    """What became of a request that came in: a new one, or one more wish of a person whose request is open."""

    request_id: str
    receipt_code: str | None
    """With it the person follows the request, and shows later that the certificate is about them; told to who asked."""
    joined: bool
    rejected: bool = False
    submission_id: str = ""
    """What whoever submitted it calls it: its own id, also where it joined another."""
