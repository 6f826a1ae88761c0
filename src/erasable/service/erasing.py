"""Carrying out requests of the ledger: erase, have it searched and certified, and write down what came of it."""

import json
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any

from erasable.errors import (
    DiskFull,
    ErasableError,
    LeaseLost,
    ListUnusable,
    ResidueFound,
    Unfinished,
    WorkspaceBusy,
    WorkspaceDamaged,
    WorkspaceError,
)
from erasable.operations import (
    Batch,
    Home,
    Outside,
    Work,
    batch,
    certificates_of,
    erasure_records,
    forget,
    learned_elsewhere,
    withdraw_pending,
)
from erasable.proof import NOTHING_PENDING, Accepted, Certificate, Pending, read_pending
from erasable.proof.suppression import Suppression
from erasable.service.clock import Clock
from erasable.service.filed import Filed
from erasable.service.intake import Intake
from erasable.service.lease import Lease
from erasable.service.lifecycle import BEGUN, RequestState
from erasable.service.logs import log
from erasable.service.progress import LedgerReporter
from erasable.service.requests import Requests
from erasable.service.settings import ServiceSettings
from erasable.store.ledger import Ledger

ACTOR = "worker"
NOTHING_HELD = "nothing is held any more of what was asked for"
_ENDED_WORKERS = "the worker ended again and again while it was carried out: look at the log of the service"
_SLOWER = 4  # each wait for the next attempt is so many times the one before
_SLOWEST = timedelta(hours=6)
_REASONS: Mapping[type[Exception], str] = {
    ResidueFound: "the data is erased, but a file of the workspace still holds the person: erasable forget DIR "
    "--resume says which; remove it, or change the label of the token (erasable token rename)",
    ListUnusable: "the do-not-learn list or its key is missing or damaged: restore it from its newest copy, or name "
    "another with erasable forget DIR --resume --do-not-learn LIST --do-not-learn-key KEY",
    DiskFull: "the disk is full: free some space",
    WorkspaceDamaged: "a file of the workspace is damaged: run erasable verify",
    WorkspaceError: "the workspace can't be used: look at the log of the service",
    MemoryError: "there is too little memory: give the service more",
}
"""What is said of a failure; the errors themselves may name people."""


@dataclass(frozen=True)
class Eraser:
    """Carries out requests, as the holder of the lease."""

    ledger: Ledger
    lease: Lease
    home: Home
    settings: ServiceSettings
    clock: Clock
    threads: int
    suppression: Suppression | None = None

    def resume(self) -> bool:
        """Go on with what was begun and not finished, or failed and is to be tried again; say whether there was any."""
        begun = self._requests.in_states(["erasing", "verifying"])
        now = self.clock()
        failed = [one for one in self._requests.in_states(["failed"]) if one.retry_at and one.retry_at <= now]
        for together in (*self._apart_if_often(begun), *self._apart_if_often(failed)):
            self._carry_out(together)
        return bool(begun or failed)

    def finish_commands(self) -> bool:
        """Finish what a command has begun in the workspace and left, if there is any."""
        self._end_what_is_certified()
        if self._is_of_commands(self._pending()):
            self._carry_out([])
            return True
        return False

    def seal_ended(self) -> bool:
        """Seal requests that have ended, once there are enough, and delete them from the ledger; say whether it was so.

        Each erasure searches the ledger, so it must not grow with those that were ever carried out. Nothing is searched
        here, where nobody knows any more who asked: these rows lay in the ledger when the erasure of each of these
        people searched it. What came since is how it ended, and that names nobody.
        """
        ended = self._requests.to_seal()
        if ended:
            with self.home.writing() as session:
                session.amend(replace(session.papers(), requests=self.ledger.sealed_with(ended)))
        elif not self.ledger.sealed_twice():
            return False
        with self.lease.writing():
            self.ledger.delete_sealed()
        self.ledger.wipe()
        log("ended requests sealed", requests=len(ended))
        return True

    def _end_what_is_certified(self) -> None:
        """Write down what a command has certified that had failed here."""
        failed = [one.request_id for one in self._requests.in_states(["failed"])]
        outcomes = self._outcomes(failed) if failed else {}
        with self.lease.writing():
            for request_id, outcome in outcomes.items():
                self._change(request_id, "erased", outcome)

    def carry_out_due(self) -> bool:
        """Carry out the requests that are due, and those that are best done with them; say whether there were any."""
        now, waiting = self.clock(), self._requests.in_states(["suppressed"])
        due = [one for one in waiting if one.deadlines(self.settings).begin <= now]
        if not due or self._pending().accepted:  # what is not certified yet comes first
            return False
        chosen = self._batch(due, waiting)
        if chosen is None:
            self._carry_out(due)
        else:
            asked = self._requests.accepted([one.request_id for one in waiting])
            ids = {one.request_id for one in asked if one.user in chosen.users}
            self._carry_out([one for one in waiting if one.request_id in ids], chosen)
        return True

    def _batch(self, due: Sequence[Filed], waiting: Sequence[Filed]) -> Batch | None:
        """Choose who is best carried out with those who are due; what is wrong is found again when they are."""
        urgent = {one.request_id for one in due}
        asked = self._requests.accepted([one.request_id for one in waiting])
        try:
            return batch(
                self.home,
                [one.request for one in asked if one.request_id in urgent],
                [one.request for one in asked if one.request_id not in urgent],
                Work(self.threads),
            )
        except (LeaseLost, WorkspaceBusy):
            raise
        except ErasableError:
            return None

    @property
    def _requests(self) -> Requests:
        return Requests(self.ledger)

    def _carry_out(self, filed: Sequence[Filed], chosen: Batch | None = None) -> None:
        number = secrets.token_hex(8)
        ids = self._begin([one.request_id for one in self._resumed(filed, number)], number, chosen)
        if filed and not ids:
            return
        people = self._requests.accepted(ids)
        reporter = LedgerReporter(self.lease, number)
        try:
            outside = Outside(suppression=self.suppression, erased=self._forget_people)
            # A law that has to be kept does not wait for someone to notice that the machine was updated.
            rerun = learned_elsewhere(self.home)
            forget(
                self.home, people, ignore_unknown=True, rerun=rerun, work=Work(self.threads, reporter), outside=outside
            )
        except (LeaseLost, WorkspaceBusy, Unfinished):
            raise  # nothing is wrong with the requests
        except (ErasableError, OSError, MemoryError) as error:
            self._fail(ids, error)
        else:
            self._end(ids)
        reporter.clear()

    def _pending(self) -> Pending:
        with self.home.reading() as session:
            return read_pending(session.papers().pending)

    def _is_of_commands(self, pending: Pending) -> bool:
        """Whether something of what is pending in the workspace was not asked for here."""
        ids = {one.request_id for one in pending.accepted}
        return len(self._requests.some(sorted(ids))) < len(ids)

    def _apart_if_often(self, filed: Sequence[Filed]) -> list[list[Filed]]:
        """Return what came to nothing once together, and what did so more often each by itself.

        What is wrong with one must not keep others waiting; so what they were begun with is taken back, if it can be.
        """
        often = [one for one in filed if one.attempts > 1]
        pending = self._pending() if often else NOTHING_PENDING
        if pending.accepted and pending.erased is None and not self._is_of_commands(pending):
            withdraw_pending(self.home)
        return [part for part in ([one for one in filed if one not in often], *([one] for one in often)) if part]

    def _resumed(self, filed: Sequence[Filed], number: str) -> list[Filed]:
        """Return requests, less what has ended too many workers; what another worker had begun is gone on with."""
        begun = [one for one in filed if one.state in ("erasing", "verifying") and not self._is_begun_here(one)]
        too_often = [one for one in begun if one.attempts >= self.settings.attempts]
        with self.lease.writing():
            for one in begun:
                if one in too_often:
                    self._change(one.request_id, "failed", {"reason": _ENDED_WORKERS, "retry_at": None})
                else:
                    facts = {"batch": number, "lease": self.lease.number}
                    self._requests.note(one.request_id, "resumed", ACTOR, self.clock(), facts)
        return [one for one in filed if one not in too_often]

    def _is_begun_here(self, filed: Filed) -> bool:
        """Whether a request was begun, or gone on with, under this lease: then it ended no worker, it has to wait."""
        return any(event.facts.get("lease") == self.lease.number for event in filed.events)

    def _begin(self, ids: Sequence[str], number: str, chosen: Batch | None) -> list[str]:
        """Begin requests, and return which; not those that were taken back, or put on hold, since they were chosen."""
        with self.lease.writing():
            people = _one_for_each(self._requests.accepted(ids))
            facts = {"batch": number, "requests": len(people), "lease": self.lease.number}
            for one in self._requests.some(ids):
                if one.request_id in people and one.state in ("suppressed", "failed"):
                    self._change(one.request_id, "erasing", facts | (_plan_facts(chosen) if chosen else {}))
            begun = [one.request_id for one in self._requests.some(ids) if one.state in BEGUN]
            later = {one.request_id for one in self._requests.accepted(begun)} - people
            return [request_id for request_id in begun if request_id not in later]

    def _forget_people(self, pending: Pending) -> None:
        """Forget who asked, since their data is gone; what they asked for is known by its id from now on."""
        with self.lease.writing():
            for one in self._requests.some([accepted.request_id for accepted in pending.accepted]):
                if one.state in ("erasing", "failed"):
                    self._change(one.request_id, "verifying")
            Intake(self.ledger).forget(pending.requests)
            erased = {accepted.user for accepted in pending.accepted if accepted.items is None}
            struck = self._requests.strike(erased)
            for one in self._requests.of_people(erased):  # by command, under another id
                self._change(one.request_id, "rejected", {"reason": NOTHING_HELD})
        if struck:
            log("remarks struck out that named someone", remarks=struck)
        self.ledger.wipe()

    def _end(self, ids: Sequence[str]) -> None:
        outcomes = self._outcomes(ids)
        with self.lease.writing():
            for one in self._requests.some(ids):
                if one.request_id in outcomes:
                    self._change(one.request_id, "erased", outcomes[one.request_id])
                elif one.state == "erasing":
                    self._change(one.request_id, "rejected", {"reason": NOTHING_HELD})
                else:
                    self._change(one.request_id, "failed", {"reason": "its certificate is missing", "retry_at": None})
        self.ledger.wipe()

    def _outcomes(self, ids: Sequence[str]) -> dict[str, dict[str, Any]]:
        """Return what is shown beside the certificates of some requests, as far as there are such."""
        certificates, records = certificates_of(self.home, ids), erasure_records(self.home, ids)
        return {one: _outcome(certificate, records.get(one, {})) for one, certificate in certificates.items()}

    def _fail(self, ids: Sequence[str], error: Exception) -> None:
        log("erasing failed", error=type(error).__name__)
        reason = next((_REASONS[kind] for kind in type(error).__mro__ if kind in _REASONS), "an unexpected error")
        with self.lease.writing():
            for one in self._requests.some(ids):
                again = one.attempts + 1 < self.settings.attempts
                at = self.clock() + self._pause(one.attempts) if again else None
                retry_at = None if at is None else at.isoformat()
                self._change(one.request_id, "failed", {"reason": reason, "retry_at": retry_at})

    def _pause(self, failures: int) -> timedelta:
        return min(_SLOWEST, timedelta(seconds=self.settings.retry_seconds) * _SLOWER ** min(failures, 10))

    def _change(self, request_id: str, state: RequestState, facts: Mapping[str, Any] | None = None) -> None:
        self._requests.change(request_id, state, ACTOR, self.clock(), facts)
        log("request changed", request_id=request_id, state=state)


def _one_for_each(asked: Sequence[Accepted]) -> set[str]:
    """Return the ids of one request for each person, the one for everything if there is one: others come after it."""
    chosen = {one.user: one.request_id for one in sorted(asked, key=lambda one: one.items is None)}
    return set(chosen.values())


def _plan_facts(chosen: Batch) -> dict[str, Any]:
    plan = chosen.plan
    return {"stages_rerun": plan.stages_rerun, "stages_total": plan.stages_total, "rerun": list(plan.rerun)}


def _outcome(certificate: Certificate, record: Mapping[str, Any]) -> dict[str, Any]:
    """Return what is shown beside a certificate: what it says, and what the log says of the work."""
    said = json.loads(certificate.content)
    scan, utility = said["scan"], said["utility"]
    kept = [step["kept"] for step in record.get("steps") or said.get("chain", ())]
    stages = record.get("stages", said.get("stages_total", len(kept)))
    return {
        "version": certificate.version,
        "duration": record.get("duration"),
        "stages_rerun": kept[:stages].count(False),
        "stages_total": stages,
        "cost": record.get("cost"),
        "kept": kept,
        "files_searched": record.get("files", scan["files"] if scan else 0),
        "utility": utility and {"before": utility["before"], "after": utility["after"], "grain": utility.get("grain")},
    }
