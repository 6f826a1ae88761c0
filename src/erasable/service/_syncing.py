"""The daily sync with an export: when it is due, what became of it, and carrying it out."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, Literal

from erasable.errors import DataRefused, ErasableError, LeaseLost, Refused, WorkspaceBusy, WrongUse
from erasable.operations.declared_items import read_declared
from erasable.operations.prepare import Inputs
from erasable.operations.storage import Storage
from erasable.operations.sync import ExportDoubted, Synced, SyncRules, sync
from erasable.operations.work import Work
from erasable.proof.do_not_learn import DoNotLearnFiles
from erasable.requests.history import History
from erasable.requests.lease import Lease, QueueReporter
from erasable.requests.queue import Queue
from erasable.requests.request import Event
from erasable.service.settings import Clock, ServiceSettings, in_words, log, log_failure

ACTOR = "worker"
_ASKED, _BEGUN = "sync asked", "sync begun"
_ENDS: Mapping[str, Literal["synced", "refused", "failed"]] = {
    "synced": "synced",
    "sync refused": "refused",
    "sync failed": "failed",
}
_AGAIN = timedelta(hours=1)  # an export may come late
_ATTEMPTS = 3
_ENDED_WORKERS = "the worker ended again and again while at it: look at the service's output (standard error)"
_NO_EXPORT = "this service has no export to sync with: start it with erasable serve DIR --sync EXPORT"


@dataclass(frozen=True)
class SyncState:
    """When the next sync is, and what became of the last one."""

    next: datetime
    asked: bool
    """Whether one was asked for, or is under way."""
    last: datetime | None = None
    outcome: Literal["synced", "refused", "failed"] | None = None
    reason: str | None = None
    """Why it was refused or failed, naming nobody."""
    rows: int | None = None
    """How many rows the export had that was refused, if saying so confirms it."""
    needs_yes: bool = False
    """Whether it was refused because many people would be forgotten."""
    done: Mapping[str, int] | None = None
    """What a sync did: counts of people and interactions."""


def sync_state(history: History, settings: ServiceSettings, now: datetime) -> SyncState | None:
    """Return the state of the daily sync; None if there is none."""
    return None if settings.sync is None else _state(history, settings, now)


def _state(history: History, settings: ServiceSettings, now: datetime) -> SyncState:
    last, newest = history.last_event(*_ENDS), history.last_event(_ASKED, _BEGUN, *_ENDS)
    moment = _next_time(last, settings, now)
    asked = newest is not None and newest.name not in _ENDS
    if last is None:
        return SyncState(moment, asked)
    facts = dict(last.facts)
    return SyncState(
        next=moment,
        asked=asked,
        last=last.at,
        outcome=_ENDS[last.name],
        reason=facts.pop("reason", None),
        rows=facts.pop("rows", None),
        needs_yes=facts.pop("needs_yes", False),
        done=facts if last.name == "synced" else None,
    )


def _next_time(last: Event | None, settings: ServiceSettings, now: datetime) -> datetime:
    """Return when the next sync is due, which may be over, by how the last one ended."""
    today = settings.sync_time(now)
    moment = today if now < today or last is None or last.at < today else today + timedelta(days=1)
    return min(moment, last.at + _AGAIN) if last is not None and last.name == "sync failed" else moment


def last_sync(history: History) -> datetime | None:
    """Return when the last sync ended that was done."""
    done = history.last_event("synced")
    return None if done is None else done.at


def ask_for_sync(
    queue: Queue, settings: ServiceSettings, actor: str, now: datetime, facts: Mapping[str, Any]
) -> SyncState:
    """Have the worker sync next, and return the state; `facts` may say `yes` and `expect_rows`."""
    if settings.sync is None:
        raise Refused(_NO_EXPORT)
    queue.note(None, _ASKED, actor, now, facts)
    return _state(queue.history, settings, now)


@dataclass
class Syncer:
    """Makes the workspace equal to the export when that is due, while its process holds the lease."""

    queue: Queue
    lease: Lease
    storage: Storage
    settings: ServiceSettings
    clock: Clock
    threads: int
    do_not_learn: DoNotLearnFiles | None = None

    def due(self) -> Mapping[str, Any] | None:
        """Return what was said when a sync was asked for, nothing if it is time for one; None if it is not."""
        if self.settings.sync is None:
            return None
        last, now = self.queue.history.last_event(_ASKED, _BEGUN, *_ENDS), self.clock()
        if last is not None and last.name == _ASKED:
            return {"yes": False, "expect_rows": None, **last.facts}
        if last is not None and last.name == _BEGUN:  # by a worker that was killed
            return dict(last.facts["asked"])
        return {} if now >= _next_time(last, self.settings, now) else None

    def carry_out(self, asked: Mapping[str, Any]) -> None:
        """Sync, and record what came of it; whoever is forgotten is certified in the worker's next step."""
        last = self.queue.history.last_event(_ASKED, _BEGUN, *_ENDS)
        begun: Mapping[str, Any] = (
            last.facts if last is not None and last.name == _BEGUN else {"lease": None, "attempts": 0}
        )
        if begun["lease"] != self.lease.number:
            if begun["attempts"] >= _ATTEMPTS:
                self._end("sync failed", {"reason": _ENDED_WORKERS})
                return
            facts = {"asked": dict(asked), "lease": self.lease.number, "attempts": begun["attempts"] + 1}
            self._note(_BEGUN, facts)
        reporter = QueueReporter(self.lease, "sync")
        try:
            done = self._synced(asked, reporter)
        except (LeaseLost, WorkspaceBusy):
            raise
        except ExportDoubted as doubted:
            confirmed = {"rows": doubted.rows, "needs_yes": doubted.needs_yes} if doubted.can_be_confirmed else {}
            self._end("sync refused", {"reason": doubted.why, **confirmed})
        except (ErasableError, OSError, MemoryError) as error:
            log_failure("the sync failed", error)
            self._end("sync failed", {"reason": _in_words(error)})
        else:
            self._end("synced", _facts(done))
        reporter.clear()

    def _synced(self, asked: Mapping[str, Any], reporter: QueueReporter) -> Synced:
        rules = SyncRules(
            forget_missing=self.settings.sync_forget_missing,
            yes=asked.get("yes", False),
            expect_rows=asked.get("expect_rows"),
            certify=False,
        )
        items, catalogue = self.settings.sync_items, self.settings.sync_catalogue
        inputs = Inputs(
            catalogue=None if catalogue is None else Path(catalogue),
            do_not_learn=self.do_not_learn,
            items=None if items is None else read_declared(items),
        )
        return sync(self.storage, self.settings.sync, inputs, rules, Work(self.threads, reporter))

    def _end(self, name: str, facts: Mapping[str, object]) -> None:
        self._note(name, facts)
        log(name, **facts)

    def _note(self, name: str, facts: Mapping[str, object]) -> None:
        self.lease.change(lambda connection: self.queue.note(None, name, ACTOR, self.clock(), facts))


def _facts(done: Synced) -> dict[str, int]:
    """Return what a sync did, in counts."""
    forgotten = (done.users_missing, done.interactions_missing) if done.forgotten else (0, 0)
    return {
        "users_added": done.users_added,
        "interactions_added": done.interactions_added,
        "interactions_changed": done.interactions_changed,
        "users_forgotten": forgotten[0],
        "interactions_forgotten": forgotten[1],
        "left_out": done.suppressed,
    }


def _in_words(error: Exception) -> str:
    """Return a reason without the error's message, which may quote rows."""
    if isinstance(error, (DataRefused, WrongUse)):
        return "the export, or a file beside it, can't be used: the same erasable sync there with --dry-run says why"
    known = in_words(error).get("reason")
    return known or f"it could not be done ({type(error).__name__}): look at the service's output (standard error)"
