"""What an officer can do about a request: what its state allows, and nothing else, is offered."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from erasable.errors import Refused, WrongUse
from erasable.requests import Request
from erasable.requests.lifecycle import RequestState, legal_deadline, refuse_unless_may_follow
from erasable.service.shop import Shop

ActionName = Literal["withdraw", "hold", "release", "extend", "retry"]


@dataclass(frozen=True)
class Action:
    """Something that can be done about a request."""

    name: ActionName
    title: str
    about: str
    needs_reason: bool
    offered: Callable[[Request, datetime], bool]
    """Whether it can be done about a request now."""
    carry_out: Callable[[Shop, str, str, str], None]
    """Does it to the request with an id, for an actor, with a reason."""


def offered(filed: Request, now: datetime) -> list[Action]:
    """Return what can be done about a request now."""
    return [action for action in _ACTIONS if action.offered(filed, now)]


def carry_out(shop: Shop, name: ActionName, request_id: str, actor: str, reason: str) -> None:
    """Do something about a request; what needs a reason is refused without one."""
    action = _BY_NAME[name]
    if action.needs_reason and not reason.strip():
        raise WrongUse("a reason is needed: say why, in words that name nobody")
    action.carry_out(shop, request_id, actor, reason.strip())


def _may_become(state: RequestState) -> Callable[[Request, datetime], bool]:
    def offered(filed: Request, now: datetime) -> bool:
        try:
            refuse_unless_may_follow(filed.state, state)
        except Refused:
            return False
        return True

    return offered


def _is_in(state: RequestState) -> Callable[[Request, datetime], bool]:
    return lambda filed, now: filed.state == state


def _is_extensible(filed: Request, now: datetime) -> bool:
    return filed.open and filed.extended is None and now <= legal_deadline(filed.received)


def _withdraw(shop: Shop, request_id: str, actor: str, reason: str) -> None:
    shop.reception.withdraw(request_id, actor, reason)


def _hold(shop: Shop, request_id: str, actor: str, reason: str) -> None:
    shop.reception.hold(request_id, actor, reason)


def _release(shop: Shop, request_id: str, actor: str, reason: str) -> None:
    shop.decisions.release(request_id, actor, shop.clock())


def _extend(shop: Shop, request_id: str, actor: str, reason: str) -> None:
    shop.reception.extend(request_id, actor, reason)


def _retry(shop: Shop, request_id: str, actor: str, reason: str) -> None:
    shop.decisions.retry(request_id, actor, shop.clock())


_ACTIONS = (
    Action(
        name="retry",
        title="Try again",
        about="The worker tries again at once. See first that what made it fail is put right.",
        needs_reason=False,
        offered=_is_in("failed"),
        carry_out=_retry,
    ),
    Action(
        name="release",
        title="Release",
        about="It goes on where it was, with the deadlines it always had.",
        needs_reason=False,
        offered=_is_in("on hold"),
        carry_out=_release,
    ),
    Action(
        name="hold",
        title="Put on hold",
        about="It is not carried out until it is released. The person stays out of recommendations, and the deadlines "
        "stay as they are.",
        needs_reason=True,
        offered=_may_become("on hold"),
        carry_out=_hold,
    ),
    Action(
        name="extend",
        title="Extend by two months",
        about="Once, if the request is complex or there are many. The person has to be told the reason within the "
        "first month (GDPR Art. 12(3)), and sees it on the receipt page.",
        needs_reason=True,
        offered=_is_extensible,
        carry_out=_extend,
    ),
    Action(
        name="withdraw",
        title="Take back",
        about="For a person who has changed their mind. Nothing is erased, and they get recommendations again. "
        "Neither who asked nor what was typed in is kept any more.",
        needs_reason=False,
        offered=_may_become("withdrawn"),
        carry_out=_withdraw,
    ),
)
_BY_NAME: Mapping[ActionName, Action] = {action.name: action for action in _ACTIONS}
