"""What the page of a request shows: its clock as a bar, its groups as a strip, and how far the work is."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal

from erasable.service.filed import Filed
from erasable.service.lifecycle import ENDED
from erasable.service.progress import Progress, read_progress
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
    """From 0 where the request was received to 100 where the legal time ends."""


@dataclass(frozen=True)
class ClockBar:
    """The time from receipt to the end of the legal month, with what is due in between."""

    marks: Sequence[Mark]
    filled: float
    """How far it has run: until now, or until the request was done with."""

    @staticmethod
    def of(filed: Filed, shop: Shop) -> "ClockBar":
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

        def place(time: datetime) -> float:
            share = (time - filed.received) / (deadlines.legal - filed.received)
            return round(100 * min(1.0, max(0.0, share)), 2)

        end = next((event.at for event in filed.events if event.state in ENDED), shop.clock())
        return ClockBar([Mark(name, at, at >= deadlines.alarm, place(at)) for name, at in times.items()], place(end))


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
    def of(filed: Filed, shop: Shop) -> "WorkView":
        """Return how far the work on a request is."""
        begun = _last_erasing(filed)
        progress = read_progress(shop.ledger) if begun and filed.open else None
        if progress is not None and progress.batch != begun.get("batch"):
            progress = None
        return WorkView(_steps(filed, begun, shop.live.knowledge, progress), progress)

    def count(self, fate: Fate) -> int:
        """Return how many steps had a fate."""
        return sum(step.fate == fate for step in self.steps)


def left_out_since(filed: Filed) -> datetime | None:
    """Return since when the person is left out of recommendations; a hold in between changes nothing."""
    return next((event.at for event in filed.events if event.state == "suppressed"), None)


def _last_erasing(filed: Filed) -> Mapping[str, Any]:
    """Return what was said when erasing was last begun; a second attempt does not say the plan again."""
    said = [event.facts for event in filed.events if event.state == "erasing"]
    return {name: value for facts in said for name, value in facts.items()}


def _steps(filed: Filed, begun: Mapping[str, Any], knowledge: Knowledge, progress: Progress | None) -> Sequence[Step]:
    if filed.outcome is not None:
        fates: list[Fate] = ["kept" if kept else "run again" for kept in filed.outcome["kept"]]
        return _named(fates, filed.outcome["stages_total"])
    if filed.state not in ("erasing", "verifying") or "rerun" not in begun:
        return ()
    again, length = begun["rerun"], knowledge.stages + len(knowledge.groups) * knowledge.solves_rows
    done = len(again) if filed.state == "verifying" else _steps_done(len(again), progress)
    fates = ["kept"] * max(length, *(place + 1 for place in again), 0)
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
