"""What comes in and goes out as JSON."""

from collections.abc import Sequence
from datetime import datetime
from typing import Annotated, Any, Literal, get_args

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field

from erasable.data import LONGEST_ID
from erasable.operations.meanwhile import NOT_SERVED, SERVED_WITHOUT, Meanwhile
from erasable.requests import Request
from erasable.requests.lifecycle import Deadlines, RequestState
from erasable.requests.request import EVERYTHING, SOME, TERMS, Event, Scope
from erasable.requests.request import Submission as TakenInRequest
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


def _encodable(value: str) -> str:
    value.encode()  # half a surrogate pair is no text
    return value


Id = Annotated[
    str,
    BeforeValidator(_as_text, json_schema_input_type=str | int),
    Field(min_length=1, max_length=LONGEST_ID),
    AfterValidator(_encodable),
]
"""An id exactly as in the data; integers are written in decimal."""
Reference = Annotated[str, Field(min_length=1, max_length=100, pattern=r"\S"), AfterValidator(_encodable)]
Reason = Annotated[str, Field(min_length=1, max_length=500, pattern=r"\S"), AfterValidator(_encodable)]


class _Schema(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)


class _Incoming(_Schema):
    """What comes in is taken as it is: text is no number, and neither is true."""

    model_config = ConfigDict(strict=True)


class Submission(_Incoming):
    """A request to erase a person, or some of a person's interactions."""

    user_id: Id
    item_ids: list[Id] | None = Field(default=None, min_length=1, max_length=10_000)
    """Only the interactions with these items; everything if none are named."""
    reference: Reference | None = None
    """The case number of whoever submits it; kept as long as who asked is."""


class Explanation(_Incoming):
    """Why something is done; kept as long as who asked is, and it must name nobody."""

    reason: Reason


class Remark(_Incoming):
    """Why something is done, if that is said; kept as long as who asked is, and it must name nobody."""

    reason: Reason | None = None


class Clocks(_Schema):
    """The two clocks of a request, in universal time: suppressed from serving, and erased."""

    suppressed: datetime | None
    """Since when the person is not served any more, or not with the items asked for: `meanwhile` says which."""
    erased: datetime | None
    begin: datetime
    """When its batch is begun at the latest; a day after its receipt at the earliest, if others are due then."""
    erase_by: datetime
    """The end of the batch window."""
    alarm: datetime
    limit: datetime
    legal: datetime
    """The end of the legal month, or of two more if it was extended."""


class Happening(_Schema):
    """Something that happened to a request."""

    at: datetime
    event: str
    actor: str
    facts: dict[str, Any]

    @staticmethod
    def of(event: Event) -> "Happening":
        """Return an event as JSON has it."""
        facts = {name: value for name, value in event.facts.items() if name != TERMS}  # told as clocks
        name = in_v1(event.state) if event.state == event.name else event.name
        return Happening(at=event.at, event=name, actor=event.actor, facts=facts)


class ErasureRequest(_Schema):
    """A request and how far it is; who asked is not shown."""

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
    def fields_of(filed: Request, settings: ServiceSettings, now: datetime) -> dict[str, Any]:
        """Return what is shown of a request."""
        deadlines = filed.deadlines(settings)
        return {
            "id": filed.request_id,
            "state": in_v1(filed.state),
            "scope": filed.scope,
            "received": filed.received,
            "changed": filed.changed,
            "reason": filed.reason,
            "extended": filed.extended,
            "reference": filed.reference,
            "late": filed.late(settings, now),
            "attempts": filed.attempts,
            "retry_at": filed.retry_at,
            "clocks": Clocks(suppressed=filed.when("suppressed"), erased=filed.when("erased"), **vars(deadlines)),
            "certificate": f"/v1/erasure-requests/{filed.request_id}/certificate" if filed.outcome else None,
            "outcome": None if filed.outcome is None else dict(filed.outcome),
        }

    @staticmethod
    def of(filed: Request, settings: ServiceSettings, now: datetime) -> "ErasureRequest":
        """Return a request as JSON has it."""
        return ErasureRequest(**ErasureRequest.fields_of(filed, settings, now))


class ErasureRequestDetail(ErasureRequest):
    """A request with everything that happened to it."""

    events: list[Happening]
    places: list[str]
    """Where something of the person is still found, which keeps it from being certified; it names nobody."""
    meanwhile: Meanwhile | None
    """What holds for the person while it is open: not served, or served from a row without the items asked for."""

    @staticmethod
    def in_full(
        filed: Request, settings: ServiceSettings, now: datetime, meanwhile: Meanwhile | None, places: Sequence[str]
    ) -> "ErasureRequestDetail":
        """Return a request with its events as JSON has it."""
        fields = ErasureRequest.fields_of(filed, settings, now)
        events = [*map(Happening.of, filed.events)]
        return ErasureRequestDetail(**fields, events=events, places=[*places], meanwhile=meanwhile)


class Submitted(ErasureRequest):
    """A request that was taken in. An application is told that it was, and nothing about what is held or open."""

    joined: bool
    """Whether it joined an earlier request of the same person; always false for applications."""
    receipt_code: str | None
    """For the person alone: follows the request at /receipt, and shows that the certificate is about them."""
    meanwhile: Meanwhile | None
    """What holds for the person until then: not served, or served from a row without the items asked for; null if
    nothing is held. An application is told what holds as far as its own request goes."""

    @staticmethod
    def unaware(
        taken: TakenInRequest, asked: Submission, settings: ServiceSettings, now: datetime, without: bool
    ) -> "Submitted":
        """Return the answer for whoever may not know who asked: the same, whether anything is held or was asked for."""
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


class RequestList(_Schema):
    """Requests, newest first."""

    requests: list[ErasureRequest]
    next: int | None
    """Give it as `before` to get those that follow."""


class PlanWanted(_Incoming):
    """Whom to plan for: people by id, or everyone whose request waits."""

    user_ids: list[Id] = Field(default=[], max_length=10_000)
    waiting: bool = False
    """Plan for all requests that wait, too."""


class PlanFound(_Schema):
    """What forgetting them would touch and cost."""

    people: int
    served_meanwhile: int
    """How many of them are served until then, without the items that they asked for; the others are not served."""
    stages_rerun: int
    stages_total: int
    chain_ratio: float
    cost_ratio: float
    seconds_estimated: float
    one_by_one: dict[str, float] | None
    """What the same people cost one after the other."""


class SpeakingItem(_Schema):
    """One item that the user has, and the weight that it adds to the score."""

    item_id: str
    weight: float


class RecommendedItem(_Schema):
    """One item; rank 1 is best."""

    item_id: str
    score: float
    rank: int
    popular: bool
    """Whether it fills up where the model says nothing; then the score is how many people have the item."""
    because: list[SpeakingItem] | None = None
    """Which items of the user speak most for it, the largest weight first; given with `why=true` only."""


class Recommended(_Schema):
    """The best items for a user, from one version of the model."""

    user_id: str
    version: int
    items: list[RecommendedItem]


class ManyUsers(_Incoming):
    """Users to recommend to."""

    user_ids: list[Id] = Field(min_length=1, max_length=1_000)
    k: int = Field(default=10, ge=1, le=1_000)
    """How many items for each; together at most 20,000."""


class RecommendedToMany(_Schema):
    """The best items for several users, all from one version of the model."""

    version: int
    recommendations: list[Recommended]
    unknown: list[int]
    """The places in the list of those of whom nothing is held, or nothing may be used."""
    suppressed: list[int] | None = None
    """Which of them have asked to be erased; given to operators only."""


class Interaction(_Incoming):
    """One row to learn from."""

    user_id: Id
    item_id: Id
    rating: float | None = Field(default=None, allow_inf_nan=False)
    time: float | None = Field(default=None, allow_inf_nan=False)


class Interactions(_Incoming):
    """Rows to learn from."""

    interactions: list[Interaction] = Field(
        min_length=1, max_length=10_000, examples=[[{"user_id": "42", "item_id": "7", "rating": 5}]]
    )
    """Each with user_id and item_id; rating where ratings were learned, on their scale; time in seconds if known."""


class TakenIn(_Schema):
    """How many rows will be learned."""

    accepted: int
    left_out: int
    """Rows of people whose erasure is under way; applications are not told, and always get 0."""


class ServiceStatus(_Schema):
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
    """Whether a worker is at work, or another is on its way after one that has ended its batch."""
    doing: str | None
    """What the worker does just now."""
    progress: float | None
    """How much of that is done, from 0 to 1, if it can be told."""
    problem: str | None
    """What keeps the service from its work, such as a full disk, and what to do; null if nothing does."""


class Health(_Schema):
    """Whether the service runs."""

    status: Literal["ok"]


class Readiness(_Schema):
    """Whether the service can do its work."""

    status: Literal["ready", "not ready"]
    ledger: bool
    """Whether requests can be taken in."""
    worker: bool
    """Whether a worker is at work, or another is on its way after one that has ended its batch."""
    serving: bool
    """Whether anybody is served: it is known who has asked to be erased."""
    problem: str | None
    """What is to be done, null if it is ready."""
