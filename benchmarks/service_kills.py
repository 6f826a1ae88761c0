"""Server, worker or both are killed at random moments while people ask to be erased: nothing is lost or done twice.

A client asks for one person after the other, each with an Idempotency-Key, and repeats a request until it is answered.
The moments of the kills are drawn over the time in which a server starts, its worker starts, and both work, so a kill
may come before a server answers; one that was killed is started again. In the end every request must have ended once,
with one certificate, and every file of data and checkpoints must be byte for byte what forgetting the same people
undisturbed leaves.
"""

import argparse
import random
import shutil
import tempfile
import threading
import time
from collections import Counter
from contextlib import suppress
from pathlib import Path

import httpx2

from erasable.service.requests import Requests
from kit import erasure_service, service_process, small_shop
from kit.service_process import ServiceProcess
from reporting import print_table, save

USERS = 1_200
MOST_PEOPLE = 1_000
_LATEST = 4.0  # seconds; the server takes 2 to 3 to answer, and its worker about as long again
_REST = 120.0
_PAUSE = 0.5  # long enough that there is somebody left to ask for until the last kill
WAYS = ("server", "worker", "both")


def run(options: argparse.Namespace) -> None:
    """Kill again and again, and look at what is left."""
    with tempfile.TemporaryDirectory() as folder:
        shop = erasure_service.learn(Path(folder) / "shop", USERS)
        before = Path(shutil.copytree(shop, Path(folder) / "before"))
        client = Client(shop)
        killer = Killer(shop, client.port, random.Random(options.seed))
        client.start()
        kills = killer.kill_often(options.kills)
        client.stop()
        killer.wait_until_all_ended()
        killer.end()
        erasure_service.require_erased_once(shop, client.request_ids, client.people)
        small_shop.forget_in(before, *client.people)
        same = small_shop.lasting_files(shop) == small_shop.lasting_files(before)
    rows = [[way, met, str(count)] for (way, met), count in sorted(kills.items())]
    print_table(("killed", "while there was", "times"), rows)
    print(f"{len(client.people)} requests, lost 0, stuck 0, done twice 0, served after the answer {client.served}")
    result = {"kills": options.kills, "killed": rows, "requests": len(client.people), "repeated": client.repeated}
    save(
        "service-kills", {**result, "served_after_the_answer": client.served, "same_bytes": same, "seed": options.seed}
    )
    assert same, "the bytes are not those of an undisturbed run"
    assert client.served == 0, "someone was served after the request was taken in"


class Client(threading.Thread):
    """Asks for one person after the other to be erased, until it is stopped."""

    def __init__(self, shop: Path) -> None:
        super().__init__()
        self.port = service_process.free_port()
        self.people: list[str] = []
        self.request_ids: list[str] = []
        self.repeated = self.served = 0
        self._everyone = erasure_service.people_in(shop)
        self._token = erasure_service.new_token(shop, "operator")
        self._stopped = threading.Event()
        self._http = httpx2.Client(base_url=f"http://127.0.0.1:{self.port}", timeout=20)

    def run(self) -> None:
        """Ask, pause, ask."""
        for person in self._everyone[:MOST_PEOPLE]:
            if self._stopped.wait(_PAUSE):
                return
            self._ask_for(person)

    def stop(self) -> None:
        """Ask for nobody else."""
        self._stopped.set()
        self.join()

    def _ask_for(self, person: str) -> None:
        key = f"key of {person}"
        self.people.append(person)
        self.request_ids.append(self._answered(person, key)["id"])
        with suppress(httpx2.TransportError):
            found = self._http.get(f"/v1/recommendations/{person}", headers=self._headers(key))
            self.served += found.status_code == httpx2.codes.OK

    def _answered(self, person: str, key: str) -> dict[str, str]:
        """Repeat a request until it is answered."""
        while True:
            with suppress(httpx2.TransportError):
                found = self._http.post("/v1/erasure-requests", json={"user_id": person}, headers=self._headers(key))
                if found.status_code == httpx2.codes.CREATED:
                    return found.json()
                assert found.status_code == httpx2.codes.SERVICE_UNAVAILABLE, found.text
            self.repeated += 1
            time.sleep(0.05)

    def _headers(self, key: str) -> dict[str, str]:
        return {"Authorization": f"Bearer {self._token}", "Idempotency-Key": key}


class Killer:
    """Starts a service again and again, and kills it."""

    def __init__(self, shop: Path, port: int, moments: random.Random) -> None:
        self._shop = shop
        self._port = port
        self._moments = moments
        self._service = self._started()

    def kill_often(self, times: int) -> Counter[tuple[str, str]]:
        """Kill server, worker or both in turn, and return how often which was killed while there was what to do."""
        kills: Counter[tuple[str, str]] = Counter()
        while kills.total() < times:
            way = WAYS[kills.total() % len(WAYS)]
            self._wait_a_moment()
            if way == "worker" and not self._service.workers():
                continue  # it has not been started yet
            met = self._met()
            self._kill(way)
            kills[way, met] += 1
        return kills

    def wait_until_all_ended(self) -> None:
        """Let the service finish what is open."""
        end = time.monotonic() + _REST
        while self._met() != "nothing to do":
            assert time.monotonic() < end, f"stuck: {self._met()}"
            time.sleep(0.5)

    def end(self) -> None:
        """End the service for good."""
        self._service.kill_both()

    def _wait_a_moment(self) -> None:
        """Wait for a random time, every other time from when the server answers on, so that as many kills meet work."""
        if self._moments.random() < 0.5:
            self._service.wait_until_it_answers()
        time.sleep(self._moments.uniform(0, _LATEST))
        self._service.require_alive()

    def _kill(self, way: str) -> None:
        if way == "worker":
            self._service.kill_workers()
            return
        if way == "server":
            self._service.kill_server()
        else:
            self._service.kill_both()
        self._service = self._started()

    def _started(self) -> ServiceProcess:
        return ServiceProcess(self._shop, erasure_service.AT_ONCE, self._port)

    def _met(self) -> str:
        """Say how far the request is that is furthest of all that are open."""
        with erasure_service.ledger_of(self._shop) as ledger:
            found = {one.state for one in Requests(ledger).open_requests()}
        furthest = [state for state in ("verifying", "erasing", "failed", "suppressed", "accepted") if state in found]
        return furthest[0] if furthest else "nothing to do"
