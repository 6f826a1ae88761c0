"""The page of one request: its deadlines, the progress of the work, its events, and the actions on offer."""

from bisect import bisect_right
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from http import HTTPStatus
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Depends, Form, Response
from fastapi import Request as HttpRequest
from fastapi.responses import RedirectResponse

from erasable.chain.dataset import Dataset
from erasable.errors import Refused, WrongUse
from erasable.operations.inspect import certificate_file
from erasable.operations.people import SERVED_WITHOUT
from erasable.progress import Progress
from erasable.requests.lease import read_progress
from erasable.requests.request import ENDED, Request, RequestState, legal_deadline, refuse_unless_may_follow
from erasable.requests.tokens import Caller
from erasable.service._http import PAGES, RequestId, service_of
from erasable.service._service import Service
from erasable.service.web._pages import CERTIFICATE_POLICY, page, refuse_foreign_forms

Fate = Literal["kept", "rolled back", "run again"]
_TRAINING = "forgetting"


@dataclass(frozen=True)
class Mark:
    """A point on the clock's bar."""

    name: str
    at: datetime
    alarming: bool
    """Whether something is wrong if the request is open after it."""
    place: float
    """Where it is on the bar, in per cent; marks are equally far apart, days are not."""


@dataclass(frozen=True)
class ClockBar:
    """The time from receipt to the end of the legal month, with the deadlines in between."""

    marks: Sequence[Mark]
    filled: float
    """How far it has run, in per cent: until now, or until the request ended."""

    @staticmethod
    def of(erasure_request: Request, service: Service) -> "ClockBar":
        """Return the clock of a request."""
        deadlines = erasure_request.deadlines(service.settings)
        times = {
            "Received": erasure_request.received,
            "Batch begins": deadlines.begin,
            "Erase by": deadlines.erase_by,
            "Alarm": deadlines.alarm,
            "Limit": deadlines.limit,
            "Extended month ends" if erasure_request.extended else "Legal month ends": deadlines.legal,
        }

        end = next((event.at for event in erasure_request.events if event.state in ENDED), service.clock())
        marks = [
            Mark(name, at, at >= deadlines.alarm, round(100 * place / len(times), 2))
            for place, (name, at) in enumerate(times.items())
        ]
        return ClockBar(marks, round(100 * _marks_passed(list(times.values()), end) / len(times), 2))


def _marks_passed(marks: Sequence[datetime], time: datetime) -> float:
    """Return how many marks a time has passed since the first, and the share of the way to the next."""
    passed = bisect_right(marks, time) - 1
    if passed < 0:
        return 0.0
    if passed == len(marks) - 1:
        return float(len(marks))
    return passed + (time - marks[passed]) / (marks[passed + 1] - marks[passed])


@dataclass(frozen=True)
class Step:
    """One step of the chain, and what became of its checkpoint."""

    name: str
    fate: Fate


@dataclass(frozen=True)
class WorkView:
    """The chain and the progress of the work on it."""

    steps: Sequence[Step]
    progress: Progress | None
    """What the worker is doing about this request."""

    @staticmethod
    def of(erasure_request: Request, service: Service) -> "WorkView":
        """Return the progress of the work on a request."""
        begun = _last_batch(erasure_request, service)
        progress = read_progress(service.database) if erasure_request.state in ("erasing", "certifying") else None
        if progress is not None and progress.batch != begun.get("batch"):
            progress = None
        return WorkView(_steps(erasure_request, begun, service.live.dataset, progress), progress)

    def count(self, fate: Fate) -> int:
        """Return how many steps had a fate."""
        return sum(step.fate == fate for step in self.steps)


def _last_batch(erasure_request: Request, service: Service) -> Mapping[str, Any]:
    """Return the facts of the batch in which erasing last began, and of its plan."""
    said = [event.facts for event in erasure_request.events if "batch" in event.facts]
    begun = {name: value for facts in said for name, value in facts.items()}
    planned = service.history.last_event("planned") if erasure_request.state in ("erasing", "certifying") else None
    is_own = planned is not None and planned.facts["batch"] == begun.get("batch")
    return begun | dict(planned.facts) if planned and is_own else begun


def _steps(
    erasure_request: Request, begun: Mapping[str, Any], dataset: Dataset, progress: Progress | None
) -> Sequence[Step]:
    if erasure_request.outcome is not None:
        fates: list[Fate] = ["kept" if kept else "run again" for kept in erasure_request.outcome["kept"]]
        return _named(fates, erasure_request.outcome["stages_total"])
    if erasure_request.state not in ("erasing", "certifying") or "rerun" not in begun:
        return ()
    again = begun["rerun"]
    done = len(again) if erasure_request.state == "certifying" else _steps_done(len(again), progress)
    fates = ["kept"] * max(dataset.stages, *(place + 1 for place in again), 0)
    for number, place in enumerate(again):
        fates[place] = "run again" if number < done else "rolled back"
    return _named(fates, begun["stages_total"])


def _steps_done(steps: int, progress: Progress | None) -> int:
    """Return about how many steps have run again, from the share of the training that is done."""
    if progress is None or progress.step != _TRAINING:
        return 0
    return int((progress.share or 0.0) * steps)


def _named(fates: Sequence[Fate], stages: int) -> Sequence[Step]:
    names = (f"Group {place + 1}" if place < stages else f"Rows {place - stages + 1}" for place in range(len(fates)))
    return [Step(name, fate) for name, fate in zip(names, fates, strict=True)]


ActionName = Literal["withdraw", "hold", "release", "extend", "retry"]


@dataclass(frozen=True)
class Action:
    """An action on a request."""

    name: ActionName
    title: str
    about: str
    needs_reason: bool
    offered: Callable[[Request, datetime], bool]
    """Whether it is possible now."""
    carry_out: Callable[[Service, str, str, str], None]
    """Carries it out: service, id of the request, actor, reason."""


def offered(erasure_request: Request, now: datetime) -> list[Action]:
    """Return the actions that are possible now."""
    return [action for action in _ACTIONS if action.offered(erasure_request, now)]


def carry_out(service: Service, name: ActionName, request_id: str, actor: str, reason: str) -> None:
    """Carry out an action; one that needs a reason is refused without it."""
    action = _BY_NAME[name]
    if action.needs_reason and not reason.strip():
        raise WrongUse("a reason is needed: say why, in words that name nobody")
    action.carry_out(service, request_id, actor, reason.strip())


def _may_become(state: RequestState) -> Callable[[Request, datetime], bool]:
    def offered(erasure_request: Request, now: datetime) -> bool:
        try:
            refuse_unless_may_follow(erasure_request.state, state)
        except Refused:
            return False
        return True

    return offered


def _is_in(state: RequestState) -> Callable[[Request, datetime], bool]:
    return lambda erasure_request, now: erasure_request.state == state


def _is_extensible(erasure_request: Request, now: datetime) -> bool:
    return erasure_request.open and erasure_request.extended is None and now <= legal_deadline(erasure_request.received)


def _withdraw(service: Service, request_id: str, actor: str, reason: str) -> None:
    service.reception.withdraw(request_id, actor, reason)


def _hold(service: Service, request_id: str, actor: str, reason: str) -> None:
    service.reception.hold(request_id, actor, reason)


def _release(service: Service, request_id: str, actor: str, reason: str) -> None:
    service.decisions.release(request_id, actor, service.clock())


def _extend(service: Service, request_id: str, actor: str, reason: str) -> None:
    service.reception.extend(request_id, actor, reason)


def _retry(service: Service, request_id: str, actor: str, reason: str) -> None:
    service.decisions.retry(request_id, actor, service.clock())


_ACTIONS = (
    Action(
        name="retry",
        title="Try again",
        about="The worker tries again at once. First correct what made it fail.",
        needs_reason=False,
        offered=_is_in("failed"),
        carry_out=_retry,
    ),
    Action(
        name="release",
        title="Release",
        about="The request resumes where it was, with its original deadlines.",
        needs_reason=False,
        offered=_is_in("on hold"),
        carry_out=_release,
    ),
    Action(
        name="hold",
        title="Put on hold",
        about="It is not carried out until it is released. The person stays suppressed, and the deadlines stay as they "
        "are.",
        needs_reason=True,
        offered=_may_become("on hold"),
        carry_out=_hold,
    ),
    Action(
        name="extend",
        title="Extend by two months",
        about="Once, if the request is complex or there are many. The person must be told the reason within the "
        "first month (GDPR Art. 12(3)), and sees it on the receipt page.",
        needs_reason=True,
        offered=_is_extensible,
        carry_out=_extend,
    ),
    Action(
        name="withdraw",
        title="Take back",
        about="For a person who has changed their mind. Nothing is erased, and they get recommendations again. "
        "The person's id and everything typed in are deleted.",
        needs_reason=False,
        offered=_may_become("withdrawn"),
        carry_out=_withdraw,
    ),
)
_BY_NAME: Mapping[ActionName, Action] = {action.name: action for action in _ACTIONS}


router = APIRouter(prefix="/requests/{request_id}", include_in_schema=False)


@router.get("")
def show_request(request: HttpRequest, request_id: RequestId, caller: Annotated[Caller, Depends(PAGES)]) -> Response:
    """Show a request."""
    return _request_page(request, request_id)


@router.get("/progress")
def show_progress(request: HttpRequest, request_id: RequestId, caller: Annotated[Caller, Depends(PAGES)]) -> Response:
    """Show the progress of the work on a request, as a part of its page."""
    service = service_of(request)
    erasure_request = service.history.get(request_id)
    return page(
        request,
        "work.html",
        {
            "erasure_request": erasure_request,
            "work": WorkView.of(erasure_request, service),
            "places": service.places(erasure_request),
        },
    )


@router.post("/reveal", dependencies=[Depends(refuse_foreign_forms)])
def reveal(request: HttpRequest, request_id: RequestId, caller: Annotated[Caller, Depends(PAGES)]) -> Response:
    """Show who asked, this once, and record who looked."""
    service = service_of(request)
    return _request_page(request, request_id, service.decisions.reveal(request_id, caller.actor, service.clock()))


@router.post("/actions/{name}", dependencies=[Depends(refuse_foreign_forms)])
def act(
    request: HttpRequest,
    request_id: RequestId,
    name: ActionName,
    caller: Annotated[Caller, Depends(PAGES)],
    reason: Annotated[str, Form(max_length=500)] = "",
) -> Response:
    """Carry out an action on a request."""
    carry_out(service_of(request), name, request_id, caller.actor, reason)
    return RedirectResponse(f"/requests/{request_id}", HTTPStatus.SEE_OTHER)


@router.get("/certificate.html")
def certificate_page(
    request: HttpRequest, request_id: RequestId, caller: Annotated[Caller, Depends(PAGES)]
) -> Response:
    """Show the certificate as it was issued."""
    content = certificate_file(service_of(request).storage, f"{request_id}.html")
    return Response(content, headers={"Content-Security-Policy": CERTIFICATE_POLICY}, media_type="text/html")


@router.get("/certificate.json")
def certificate_json(
    request: HttpRequest, request_id: RequestId, caller: Annotated[Caller, Depends(PAGES)]
) -> Response:
    """Return the signed certificate, byte for byte as it was issued."""
    headers = {"Content-Disposition": f'attachment; filename="{request_id}.json"'}
    content = certificate_file(service_of(request).storage, f"{request_id}.json")
    return Response(content, headers=headers, media_type="application/json")


def _request_page(request: HttpRequest, request_id: str, person: str | None = None) -> Response:
    service = service_of(request)
    erasure_request = service.history.get(request_id)
    facts = {
        "erasure_request": erasure_request,
        "clock": ClockBar.of(erasure_request, service),
        "work": WorkView.of(erasure_request, service),
        "actions": offered(erasure_request, service.clock()),
        "deadlines": erasure_request.deadlines(service.settings),
        "left_out": erasure_request.when("suppressed"),
        "served_without": service.meanwhile(erasure_request) == SERVED_WITHOUT,
        "late": erasure_request.late(service.settings, service.clock()),
        "code_is_shown_again": erasure_request.state in ("suppressed", "on hold")
        and not erasure_request.from_application,
        "places": service.places(erasure_request),
        "person": person,
        "person_kept": erasure_request.open and erasure_request.when("certifying") is None,
    }
    return page(request, "request.html", facts)
