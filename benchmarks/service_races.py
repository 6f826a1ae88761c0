"""Many ask for one person at once, and workers are frozen past their lease at random moments: one erasure each.

Two workers share a workspace. Again and again two people ask to be erased, and whoever holds the lease is frozen a
random moment later. Every second one is woken once the other has taken over; the rest stay frozen, and have to be ended
by the other. In the end every request must have ended once, with one certificate, and with the bytes of an
undisturbed run.
"""

import argparse
import os
import random
import signal
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from multiprocessing import get_context
from multiprocessing.process import BaseProcess
from pathlib import Path

import httpx2

from erasable.requests import Request
from erasable.requests.lease import Process, holder_of
from erasable.requests.queue import Queue
from erasable.requests.sqlite import SqliteDatabase
from erasable.service._worker import WorkerOptions, run_worker
from kit import erasure_service, service_process, small_shop
from kit.copies import copy_of
from reporting import print_table, save

CLIENTS = 50
ROUNDS = 10
USERS = 800
_LEASE = 1.0
_PATIENCE = 60.0
_SETTINGS = erasure_service.AT_ONCE.model_copy(update={"lease_seconds": _LEASE})


def run(options: argparse.Namespace) -> None:
    """Put both to the test."""
    with tempfile.TemporaryDirectory() as folder:
        shop = erasure_service.learn(Path(folder) / "shop", USERS)
        crowd = copy_of(shop, Path(folder) / "elsewhere" / "crowd")
        before = copy_of(shop, Path(folder) / "apart" / "before")
        late = _many_at_once(crowd)
        pair = Pair(shop, random.Random(options.seed))
        found = [pair.freeze(wake=number % 2 == 0) for number in range(options.freezes)]
        pair.end()
        erasure_service.require_erased_once(shop, pair.request_ids, pair.people)
        small_shop.forget_in(before, *pair.people)
        same = small_shop.lasting_files(shop) == small_shop.lasting_files(before)
    freezes = {kind: found.count(kind) for kind in sorted(set(found))}
    print_table(("frozen workers", "times"), [[kind, str(times)] for kind, times in freezes.items()])
    crowds = {"people": ROUNDS, "clients_for_each": CLIENTS, "certificates": ROUNDS, "told_that_it_was_done": late}
    print(f"{ROUNDS} people, {CLIENTS} clients for each at once: one erasure and one certificate each")
    save("service-races", {"crowds": crowds, "freezes": freezes, "same_bytes": same, "seed": options.seed})
    assert same, "the bytes are not those of an undisturbed run"


def _many_at_once(shop: Path) -> int:
    """Have many clients ask for one person at once, erased at once; return how many came after it was done."""
    headers = {"Authorization": f"Bearer {erasure_service.new_token(shop, 'operator')}"}
    people, late = erasure_service.people_in(shop)[:ROUNDS], 0
    with service_process.running(shop, _SETTINGS) as service, httpx2.Client(timeout=60) as client:
        for person in people:

            def ask(number: int, person: str = person) -> dict[str, str]:
                return client.post(
                    f"{service.url}/v1/erasure-requests", json={"user_id": person}, headers=headers
                ).json()

            with ThreadPoolExecutor(CLIENTS) as pool:
                answers = list(pool.map(ask, range(CLIENTS)))
            taken = {answer["id"] for answer in answers if answer["state"] != "rejected"}
            assert len(taken) == 1, f"{len(taken)} requests for one person"
            late += sum(answer["state"] == "rejected" for answer in answers)
        with erasure_service.database_of(shop) as database:
            _wait_until(lambda: not Queue(database).history.open_requests())
    assert len(list(shop.glob("certificates/*.json"))) == ROUNDS
    return late


class Pair:
    """Two workers on one workspace, of which one is frozen now and then."""

    def __init__(self, shop: Path, moments: random.Random) -> None:
        self._shop = shop
        self._moments = moments
        self._everyone = iter(erasure_service.people_in(shop))
        self._database = SqliteDatabase.open(shop)
        self._workers = [self._started(), self._started()]
        self.people: list[str] = []
        self.request_ids: list[str] = []
        self._holder()

    def freeze(self, wake: bool) -> str:
        """Freeze whoever works, wake it or not, and wait until the requests are carried out all the same."""
        self._have_two_workers()
        people = [next(self._everyone), next(self._everyone)]
        self.people += people
        self.request_ids += erasure_service.file_requests(self._shop, *map(Request, people))
        time.sleep(self._moments.uniform(0, 0.8))
        holder = self._holder()
        os.kill(holder.number, signal.SIGSTOP)
        if wake:
            time.sleep(self._moments.uniform(_LEASE, 2 * _LEASE))
            with suppress(ProcessLookupError):
                os.kill(holder.number, signal.SIGCONT)
        _wait_until(lambda: not Queue(self._database).history.open_requests())
        return self._outcome(holder, wake)

    def end(self) -> None:
        """End both workers."""
        for worker in self._workers:
            worker.kill()
            worker.join()
        self._database.close()

    def _outcome(self, holder: Process, wake: bool) -> str:
        if not wake:
            _wait_until(lambda: not holder.alive)
        return "woken" if holder.alive else "woken, ended by the other" if wake else "never woken, ended by the other"

    def _have_two_workers(self) -> None:
        """Start others in the place of those that were ended, as the service does; one that woke may be ended late."""
        time.sleep(2 * _LEASE)
        self._workers = [one if one.is_alive() else self._started() for one in self._workers]

    def _holder(self) -> Process:
        _wait_until(lambda: holder_of(self._database) is not None)
        return holder_of(self._database) or self._holder()

    def _started(self) -> BaseProcess:
        post = WorkerOptions(self._shop, _SETTINGS, threads=1)
        worker = get_context("spawn").Process(target=run_worker, args=(post,), daemon=True)
        worker.start()
        return worker


def _wait_until(holds) -> None:
    end = time.monotonic() + _PATIENCE
    while not holds():
        assert time.monotonic() < end, "stuck"
        time.sleep(0.02)
