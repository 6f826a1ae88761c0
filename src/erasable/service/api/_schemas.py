"""The JSON bodies that the API takes and gives."""

from collections.abc import Sequence
from datetime import datetime
from typing import Annotated, Any, Literal, get_args

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field

from erasable.data.ids import LONGEST_ID
from erasable.operations.people import NOT_SERVED, SERVED_WITHOUT, Meanwhile
from erasable.requests.request import (
    EVERYTHING,
    SOME,
    TERMS,
    Deadlines,
    Event,
    Request,
    RequestState,
    Scope,
    Submission,
)
from erasable.service.settings import ServiceSettings

V1State = Literal[
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
"""The states as version 1 of the API names them; none is `accepted` any more."""
V1_STATES: tuple[V1State, ...] = get_args(V1State)


def in_v1(state: RequestState) -> V1State:
    """Return how version 1 of the API names a state.

    >>> in_v1("certifying"), in_v1("erased")
    ('verifying', 'erased')
    """
    return "verifying" if state == "certifying" else state


def from_v1(state: V1State) -> RequestState:
    """Return the state that version 1 of the API names.

    >>> from_v1("verifying"), from_v1("accepted")
    ('certifying', 'received')
    """
    if state == "accepted":
        return "received"
    return "certifying" if state == "verifying" else state


def _as_text(value: Any) -> Any:  # noqa: ANN401 - whatever JSON holds
    return str(value) if isinstance(value, int) and not isinstance(value, bool) else value


def encodable(value: str) -> str:
    """Return a text; refuse one that is none, with half a surrogate pair.

    >>> encodable("a")
    'a'
    """
    value.encode()
    return value


Id = Annotated[
    str,
    BeforeValidator(_as_text, json_schema_input_type=str | int),
    Field(min_length=1, max_length=LONGEST_ID),
    AfterValidator(encodable),
]
"""An id exactly as in the data; integers are written in decimal."""
Reference = Annotated[str, Field(min_length=1, max_length=100, pattern=r"\S"), AfterValidator(encodable)]
Reason = Annotated[str, Field(min_length=1, max_length=500, pattern=r"\S"), AfterValidator(encodable)]


class Schema(BaseModel):
    """What a route takes or gives."""

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)


class Incoming(Schema):
    """Read strictly: text is no number, and neither is true."""

    model_config = ConfigDict(strict=True)


class NewErasureRequest(Incoming):
    """A request to erase a person, or some of a person's interactions."""

    user_id: Id
    item_ids: list[Id] | None = Field(default=None, min_length=1, max_length=10_000)
    """Only the interactions with these items; everything if none are named."""
    reference: Reference | None = None
    """The case number of whoever submits it; kept as long as the user's id."""


class RequiredRemark(Incoming):
    """Why something is done; kept as long as the user's id. It must name nobody."""

    reason: Reason


class Remark(Incoming):
    """Why something is done, if that is said; kept as long as the user's id. It must name nobody."""

    reason: Reason | None = None


class Clocks(Schema):
    """The two clocks of a request, in universal time: suppressed from serving, and erased."""

    suppressed: datetime | None
    """Since when the person is not served any more, or not with the items asked for: `meanwhile` says which."""
    erased: datetime | None
    join: datetime
    """From when on it may join a batch that others are due in; until then there is time to take it back."""
    begin: datetime
    """When its batch begins at the latest."""
    erase_by: datetime
    """The end of the batch window."""
    alarm: datetime
    limit: datetime
    legal: datetime
    """The end of the legal month, or of two more if it was extended."""


class Happening(Schema):
    """Something that happened to a request."""

    at: datetime
    event: str
    actor: str
    facts: dict[str, Any]

    @staticmethod
    def of(event: Event) -> "Happening":
        """Return an event for the API."""
        facts = {name: value for name, value in event.facts.items() if name != TERMS}  # shown as clocks
        name = in_v1(event.state) if event.state == event.name else event.name
        return Happening(at=event.at, event=name, actor=event.actor, facts=facts)


class ErasureRequest(Schema):
    """A request and its state; who asked is not shown."""

    id: str
    state: V1State
    scope: Scope
    received: datetime
    changed: datetime
    reason: str | None
    """Why it is in its state, if that has to be explained."""
    extended: str | None
    """Why it was extended, if it was."""
    reference: str | None
    """The case number of whoever submitted it, while it is kept."""
    late: bool
    """Whether it was erased after the legal time, or is open after it."""
    attempts: int
    retry_at: datetime | None
    clocks: Clocks
    certificate: str | None
    """Where the certificate is."""
    outcome: dict[str, Any] | None
    """What the erasure took."""

    @staticmethod
    def fields_of(erasure_request: Request, settings: ServiceSettings, now: datetime) -> dict[str, Any]:
        """Return the fields of a request."""
        deadlines = erasure_request.deadlines(settings)
        return {
            "id": erasure_request.request_id,
            "state": in_v1(erasure_request.state),
            "scope": erasure_request.scope,
            "received": erasure_request.received,
            "changed": erasure_request.changed,
            "reason": erasure_request.reason,
            "extended": erasure_request.extended,
            "reference": erasure_request.reference,
            "late": erasure_request.late(settings, now),
            "attempts": erasure_request.attempts,
            "retry_at": erasure_request.retry_at,
            "clocks": Clocks(
                suppressed=erasure_request.when("suppressed"), erased=erasure_request.when("erased"), **vars(deadlines)
            ),
            "certificate": f"/v1/erasure-requests/{erasure_request.request_id}/certificate"
            if erasure_request.outcome
            else None,
            "outcome": None if erasure_request.outcome is None else dict(erasure_request.outcome),
        }

    @staticmethod
    def of(erasure_request: Request, settings: ServiceSettings, now: datetime) -> "ErasureRequest":
        """Return a request for the API."""
        return ErasureRequest(**ErasureRequest.fields_of(erasure_request, settings, now))


class ErasureRequestDetail(ErasureRequest):
    """A request with everything that happened to it."""

    events: list[Happening]
    places: list[str]
    """Where residue of the person is found, which keeps the request from being certified; names nobody."""
    meanwhile: Meanwhile | None
    """How the person is served while it is open: not at all, or from a row without the items asked for."""

    @staticmethod
    def in_full(
        erasure_request: Request,
        settings: ServiceSettings,
        now: datetime,
        meanwhile: Meanwhile | None,
        places: Sequence[str],
    ) -> "ErasureRequestDetail":
        """Return a request with its events for the API."""
        fields = ErasureRequest.fields_of(erasure_request, settings, now)
        events = [*map(Happening.of, erasure_request.events)]
        return ErasureRequestDetail(**fields, events=events, places=[*places], meanwhile=meanwhile)


class Submitted(ErasureRequest):
    """A request that was taken in. An application is told that it was, and nothing about what is held or open."""

    joined: bool
    """Whether it joined an earlier request of the same person; always false for applications."""
    receipt_code: str | None
    """For the person alone: follows the request at /receipt, and shows that the certificate is about them."""
    meanwhile: Meanwhile | None
    """How the person is served until then: not at all, or from a row without the items asked for; null if nothing is
    held. An application is told what follows from its own request alone."""

    @staticmethod
    def unaware(
        taken: Submission, asked: NewErasureRequest, settings: ServiceSettings, now: datetime, without: bool
    ) -> "Submitted":
        """Return the answer for an application: the same, whether or not anything is held or was asked for before."""
        return Submitted(
            id=taken.submission_id,
            state="received",
            scope=EVERYTHING if asked.item_ids is None else SOME,
            received=now,
            changed=now,
            reason=None,
            extended=None,
            reference=asked.reference,
            late=False,
            attempts=0,
            retry_at=None,
            clocks=Clocks(suppressed=None, erased=None, **vars(Deadlines.of(now, settings))),
            certificate=None,
            outcome=None,
            joined=False,
            receipt_code=taken.receipt_code,
            meanwhile=SERVED_WITHOUT if asked.item_ids is not None and without else NOT_SERVED,
        )


class RequestList(Schema):
    """Requests, newest first."""

    requests: list[ErasureRequest]
    next: int | None
    """Give it as `before` to get the next page."""


class PlanWanted(Incoming):
    """Whom to plan for: people by id, or everyone whose request waits."""

    user_ids: list[Id] = Field(default=[], max_length=10_000)
    waiting: bool = False
    """Plan for all requests that wait, too."""


class PlanFound(Schema):
    """What erasing them would touch and cost."""

    people: int
    served_meanwhile: int
    """How many are served until then, without the items that they asked for; the others are not served."""
    stages_rerun: int
    stages_total: int
    chain_ratio: float
    cost_ratio: float
    seconds_estimated: float
    one_by_one: dict[str, float] | None
    """What erasing the same people one after the other costs."""


class NewInteraction(Incoming):
    """One row to learn from."""

    user_id: Id
    item_id: Id
    rating: float | None = Field(default=None, allow_inf_nan=False)
    weight: int | None = Field(default=None, ge=1, le=1_000_000)
    event: Id | None = None
    time: float | None = Field(default=None, allow_inf_nan=False)


class NewInteractions(Incoming):
    """Rows to learn from."""

    interactions: list[NewInteraction] = Field(
        min_length=1, max_length=10_000, examples=[[{"user_id": "42", "item_id": "7", "rating": 5}]]
    )
    """Each with user_id and item_id; rating where ratings were learned, on their scale; time in seconds if known.

    Where weights were learned: weight (else 1), and event where types of events are weighed. Where a split by time
    decides what is held out: time.
    """


class TakenIn(Schema):
    """How many rows will be learned."""

    accepted: int
    left_out: int
    """Rows whose event counts 0, and rows of people whose erasure is under way; of those applications are not told."""


class SyncWanted(Incoming):
    """What is confirmed about the export, if a sync was refused."""

    yes: bool = False
    """Whether people whose data it lacks are forgotten even if they are many."""
    expect_rows: int | None = Field(default=None, ge=1)
    """How many rows it has; another number is refused."""


class SyncInfo(Schema):
    """When the workspace is next made equal to the export, and what became of the last time."""

    next: datetime
    asked: bool
    """Whether a sync was asked for or is under way."""
    last: datetime | None
    outcome: Literal["synced", "refused", "failed"] | None
    reason: str | None
    """Why it was refused or failed."""
    rows: int | None
    """If it was refused: what to confirm as `expect_rows` if the export is whole."""
    needs_yes: bool
    """Whether it was refused because it lacks the data of many people, so that `yes` is needed."""
    done: dict[str, int] | None
    """What was learned and forgotten: counts of people and interactions."""


class ServiceStatus(Schema):
    """What is served, and how many requests are in which state."""

    workspace: dict[str, Any]
    """As `erasable status` shows it."""
    requests: dict[str, int]
    """How many requests are in each state."""
    open: int
    suppressed_people: int
    """How many people are not served because they have asked to be erased and their data may still be there."""
    due_soon: int
    """To be erased within seven days."""
    overdue: int
    """Open past the limit."""
    late: int
    """Open past the legal time."""
    over_limit: int
    """On hold because a token asked for more people in a day than it may: an officer has to release them."""
    failed: int
    served_version: int
    interactions_waiting: int
    worker: bool
    """Whether a worker is at work, or about to be started after one that has ended with its batch."""
    doing: str | None
    """What the worker is doing."""
    progress: float | None
    """How much of that is done, from 0 to 1, if known."""
    sync: SyncInfo | None
    """The daily sync with an export; null if there is none."""
    problem: str | None
    """What keeps the service from working, such as a full disk, and what to do; null if nothing does."""


class Health(Schema):
    """Whether the service runs."""

    status: Literal["ok"]


class Readiness(Schema):
    """Whether the service can do all of its work."""

    status: Literal["ready", "not ready"]
    ledger: bool
    """Whether requests can be taken in."""
    worker: bool
    """Whether a worker is at work, or about to be started after one that has ended with its batch."""
    serving: bool
    """Whether anybody is served; nobody is while it is unknown who has asked to be erased."""
    problem: str | None
    """What to do; null if it is ready."""
