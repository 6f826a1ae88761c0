"""Server, worker or both are killed at random moments while people ask to be erased: nothing is lost or done twice.

A client asks for one person after the other, each with an Idempotency-Key, and repeats a request until it is answered.
The moments of the kills are drawn over the time in which a server starts, its worker starts, and both work, so a kill
may come before a server answers; one that was killed is started again. In the end every request must have ended once,
with one certificate, and every file of data and checkpoints must be byte for byte what forgetting the same people
undisturbed leaves.

With several servers on one workspace the queue lies in a private Postgres, which is killed or stopped now and then and
comes back after a moment. A client asks any of them, another one if the first is away. Who has an answer is not served
any more by the one that gave it, and within a second by none.
"""

import argparse
import random
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path

import httpx2

from erasable.operations import DiskStorage
from erasable.operations.recording import name_queue
from erasable.requests.queue import Queue
from kit import erasure_service, service_process, small_shop
from kit.copies import copy_of
from kit.postgres_server import PostgresServer, private_postgres
from kit.service_process import ServiceProcess
from reporting import print_table, save

USERS = 2_400  # more than half of them are never asked for: a token may ask for as many people in a day as are left
MOST_PEOPLE = 1_000
_LATEST = 4.0  # seconds; the server takes 2 to 3 to answer, and its worker about as long again
_REST = 600.0
_PAUSE = 0.5  # long enough that there is somebody left to ask for until the last kill
_REACH = 1.0  # seconds within which every server knows who has asked
_LOOK = 0.02
_LONGEST_AWAY = 2.0
_OF_THE_DATABASE = 20  # one kill in so many is one of the database
WAYS = ("server", "worker", "both")


def run(options: argparse.Namespace) -> None:
    """Kill again and again, and look at what is left; with a queue in SQLite, if nothing else is said."""
    for queue in ("sqlite", "postgres") if options.queue == "both" else (options.queue or "sqlite",):
        _run(argparse.Namespace(**{**vars(options), "queue": queue}))


def _run(options: argparse.Namespace) -> None:
    with tempfile.TemporaryDirectory() as folder, _database(options) as postgres:
        shop = erasure_service.learn(Path(folder) / "shop", USERS)
        before = copy_of(shop, Path(folder) / "apart" / "before")
        if postgres is not None:
            name_queue(DiskStorage(shop), postgres.address)
        client = Client(shop, [service_process.free_port() for _ in range(options.servers)])
        killer = Killer(shop, client.ports, random.Random(options.seed), postgres)
        try:
            client.start()
            kills = killer.kill_often(options.kills, 60 * options.minutes)
            client.stop()
            killer.wait_until_all_ended()
        finally:
            killer.end()
        erasure_service.require_erased_once(shop, client.request_ids, client.people)
        assert [*shop.glob("keys/*")] == [], "keys of people are left"
        small_shop.forget_in(before, *client.people)
        same = small_shop.lasting_files(shop) == small_shop.lasting_files(before)
    rows = [[way, met, str(count)] for (way, met), count in sorted(kills.items())]
    print_table(("killed", "while there was", "times"), rows)
    print(f"{len(client.people)} requests, lost 0, stuck 0, done twice 0, served after the answer {client.served}")
    result = {
        "servers": options.servers,
        "queue": options.queue,
        "kills": kills.total(),
        "killed": rows,
        "requests": len(client.people),
        "repeated": client.repeated,
        "served_after_the_answer": client.served,
        "same_bytes": same,
        "seed": options.seed,
    }
    if options.servers > 1:
        reached = client.reached
        print(f"others were reached after {max(reached):.3f} s at most ({len(reached)} looked at)")
        result |= {"others_looked_at": len(reached), "slowest_reach_seconds": round(max(reached), 3)}
    save("service-kills" if options.queue == "sqlite" else f"service-kills-{options.queue}", result)
    assert same, "the bytes are not those of an undisturbed run"
    assert client.served == 0, "someone was served after the request was taken in"


@contextmanager
def _database(options: argparse.Namespace) -> Iterator[PostgresServer | None]:
    """Run a Postgres of our own, if the queue is to lie in one."""
    if options.queue == "sqlite":
        assert options.servers == 1, "several servers need --queue postgres"
        yield None
        return
    with private_postgres("max_connections = 100") as postgres:
        yield postgres


class Client(threading.Thread):
    """Asks for one person after the other to be erased, until it is stopped; any server, another if it is away."""

    def __init__(self, shop: Path, ports: Sequence[int]) -> None:
        super().__init__(daemon=True)
        self.ports = ports
        self.people: list[str] = []
        self.request_ids: list[str] = []
        self.repeated = self.served = 0
        self._everyone = erasure_service.people_in(shop)
        self._token = erasure_service.new_token(shop, "operator")
        self._stopped = threading.Event()
        self._servers = [httpx2.Client(base_url=f"http://127.0.0.1:{port}", timeout=20) for port in ports]
        self._watchers = ThreadPoolExecutor(8)
        self._reached: list[Future[float]] = []

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
        self._watchers.shutdown()

    @property
    def reached(self) -> list[float]:
        """For how many seconds after the answer each of the other servers last served the person."""
        return [found.result() for found in self._reached]

    def _ask_for(self, person: str) -> None:
        self.people.append(person)
        request_id, which = self._answered(person)
        answered = time.monotonic()
        self.request_ids.append(request_id)
        self.served += self._is_served(self._servers[which], person)
        for other in self._servers[:which] + self._servers[which + 1 :]:
            self._reached.append(self._watchers.submit(self._last_served, other, person, answered))

    def _answered(self, person: str) -> tuple[str, int]:
        """Repeat a request until it is answered; return its id, and which server answered."""
        which = len(self.people) % len(self._servers)
        while True:
            with suppress(httpx2.TransportError):
                found = self._servers[which].post(
                    "/v1/erasure-requests",
                    json={"user_id": person},
                    headers={**self._headers, "Idempotency-Key": f"key of {person}"},
                )
                if found.status_code == httpx2.codes.CREATED:
                    return found.json()["id"], which
                assert found.status_code == httpx2.codes.SERVICE_UNAVAILABLE, found.text
            self.repeated += 1
            which = (which + 1) % len(self._servers)
            time.sleep(0.05)

    def _last_served(self, server: httpx2.Client, person: str, answered: float) -> float:
        """Ask for recommendations until the time is over in which all must know; return when they last came."""
        last = 0.0
        while (begun := time.monotonic() - answered) < _REACH:
            if self._is_served(server, person):
                last = begun
            time.sleep(_LOOK)
        if self._is_served(server, person):
            self.served += 1
            last = begun
        return last

    def _is_served(self, server: httpx2.Client, person: str) -> bool:
        with suppress(httpx2.TransportError):
            return server.get(f"/v1/recommendations/{person}", headers=self._headers).status_code == httpx2.codes.OK
        return False  # it is away

    @property
    def _headers(self) -> dict[str, str]:
        return {"Authorization": f"Bearer {self._token}"}


class Killer:
    """Starts services again and again, and kills them."""

    def __init__(
        self, shop: Path, ports: Sequence[int], moments: random.Random, postgres: PostgresServer | None
    ) -> None:
        self._shop = shop
        self._ports = ports
        self._moments = moments
        self._postgres = postgres
        self._services = [self._started(port) for port in ports]

    def kill_often(self, times: int, seconds: float) -> Counter[tuple[str, str]]:
        """Kill server, worker or both in turn, and return how often which was killed while there was what to do."""
        kills: Counter[tuple[str, str]] = Counter()
        end = time.monotonic() + seconds
        while kills.total() < times and time.monotonic() < end:
            way = self._way(kills.total())
            which = self._moments.randrange(len(self._services))
            self._wait_a_moment(which)
            if way == "worker" and not self._services[which].workers():
                continue  # it has not been started yet
            met = self._met()
            self._kill(way, which)
            kills[way, met] += 1
        return kills

    def wait_until_all_ended(self) -> None:
        """Let the services finish what is open."""
        end = time.monotonic() + _REST
        while self._met() != "nothing to do":
            assert time.monotonic() < end, f"stuck: {self._met()}, {self._services[0].log[-2000:]}"
            time.sleep(0.5)

    def end(self) -> None:
        """End the services for good."""
        for service in self._services:
            service.kill_both()

    def _way(self, number: int) -> str:
        if self._postgres is not None and number % _OF_THE_DATABASE == _OF_THE_DATABASE - 1:
            return "database"
        return WAYS[number % len(WAYS)]

    def _wait_a_moment(self, which: int) -> None:
        """Wait for a random time, every other time from when the server answers on, so that as many kills meet work."""
        if self._moments.random() < 0.5:
            self._services[which].wait_until_it_answers()
        time.sleep(self._moments.uniform(0, _LATEST))
        for service in self._services:
            service.require_alive()

    def _kill(self, way: str, which: int) -> None:
        service = self._services[which]
        if way == "worker":
            service.kill_workers()
        elif way == "database":
            self._restart_the_database()
        else:
            (service.kill_server if way == "server" else service.kill_both)()
            self._services[which] = self._started(self._ports[which])

    def _restart_the_database(self) -> None:
        assert self._postgres is not None
        self._moments.choice([self._postgres.kill, self._postgres.stop])()
        time.sleep(self._moments.uniform(0, _LONGEST_AWAY))
        self._postgres.start()

    def _started(self, port: int) -> ServiceProcess:
        return ServiceProcess(self._shop, erasure_service.AT_ONCE, port)

    def _met(self) -> str:
        """Say how far the request is that is furthest of all that are open."""
        with erasure_service.database_of(self._shop) as database:
            found = {one.state for one in Queue(database).history.open_requests()}
        furthest = [state for state in ("certifying", "erasing", "failed", "suppressed") if state in found]
        return furthest[0] if furthest else "nothing to do"
