"""What the page of a request shows: its clock as a bar, its groups as a strip, and how far the work is."""

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal

from erasable.requests import Request
from erasable.requests.lifecycle import ENDED
from erasable.requests.progress import Progress, read_progress
from erasable.service.shop import Shop
from erasable.training import Knowledge

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
    """Where it stands above its words, in per cent of the bar; marks are equally far apart, days are not."""


@dataclass(frozen=True)
class ClockBar:
    """The time from receipt to the end of the legal month, with what is due in between."""

    marks: Sequence[Mark]
    filled: float
    """How far it has run: until now, or until the request was done with."""

    @staticmethod
    def of(filed: Request, shop: Shop) -> "ClockBar":
        """Return the clock of a request."""
        deadlines = filed.deadlines(shop.settings)
        times = {
            "Received": filed.received,
            "Batch begins": deadlines.begin,
            "Erase by": deadlines.erase_by,
            "Alarm": deadlines.alarm,
            "Limit": deadlines.limit,
            "Extended month ends" if filed.extended else "Legal month ends": deadlines.legal,
        }

        end = next((event.at for event in filed.events if event.state in ENDED), shop.clock())
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
    """The chain and how far the work on it is."""

    steps: Sequence[Step]
    progress: Progress | None
    """What the worker does about this request just now."""

    @staticmethod
    def of(filed: Request, shop: Shop) -> "WorkView":
        """Return how far the work on a request is."""
        begun = _last_batch(filed, shop)
        progress = read_progress(shop.database) if filed.state in ("erasing", "certifying") else None
        if progress is not None and progress.batch != begun.get("batch"):
            progress = None
        return WorkView(_steps(filed, begun, shop.live.knowledge, progress), progress)

    def count(self, fate: Fate) -> int:
        """Return how many steps had a fate."""
        return sum(step.fate == fate for step in self.steps)


def _last_batch(filed: Request, shop: Shop) -> Mapping[str, Any]:
    """Return what was said of the batch when erasing was last begun, and what was planned for it."""
    said = [event.facts for event in filed.events if "batch" in event.facts]
    begun = {name: value for facts in said for name, value in facts.items()}
    planned = shop.history.last_event("planned") if filed.state in ("erasing", "certifying") else None
    is_own = planned is not None and planned.facts["batch"] == begun.get("batch")
    return begun | dict(planned.facts) if planned and is_own else begun


def _steps(filed: Request, begun: Mapping[str, Any], knowledge: Knowledge, progress: Progress | None) -> Sequence[Step]:
    if filed.outcome is not None:
        fates: list[Fate] = ["kept" if kept else "run again" for kept in filed.outcome["kept"]]
        return _named(fates, filed.outcome["stages_total"])
    if filed.state not in ("erasing", "certifying") or "rerun" not in begun:
        return ()
    again = begun["rerun"]
    done = len(again) if filed.state == "certifying" else _steps_done(len(again), progress)
    fates = ["kept"] * max(knowledge.stages, *(place + 1 for place in again), 0)
    for number, place in enumerate(again):
        fates[place] = "run again" if number < done else "rolled back"
    return _named(fates, begun["stages_total"])


def _steps_done(steps: int, progress: Progress | None) -> int:
    """Return about how many steps are made again, from the samples that were visited."""
    if progress is None or progress.step != _TRAINING:
        return 0
    return int((progress.share or 0.0) * steps)


def _named(fates: Sequence[Fate], stages: int) -> Sequence[Step]:
    names = (f"Group {place + 1}" if place < stages else f"Rows {place - stages + 1}" for place in range(len(fates)))
    return [Step(name, fate) for name, fate in zip(names, fates, strict=True)]
