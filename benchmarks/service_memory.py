"""How many copies of erased people's ids are left in the memory of server and worker.

People whose ids occur nowhere else are recommended to, ask to be erased, and are erased. All memory of server and
worker that can be read is searched for their ids: before, right after the last request has ended, and a minute later.
The control are people who stay: the server must hold each of them all the time, else the search finds nothing at all.
"""

import argparse
import re
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from hashlib import blake2b
from pathlib import Path

import httpx2
import pyarrow as pa

from erasable.requests.queue import Queue
from kit import erasure_service, small_shop
from kit.service_process import ServiceProcess, running
from reporting import print_table, save

USERS = 1_200
ERASED = 120
_ID = re.compile(rb"qz[0-9a-f]{20}zq")
_PART = 1 << 24
_LONGEST_ID = 24
_LATER = 60.0
_REST = 300.0
_HEADER = ("when", "erased people found", "copies in the server", "in the worker", "people who stay found")


def run(options: argparse.Namespace) -> None:
    """Erase people, and search memory for them."""
    settings = erasure_service.AT_ONCE.model_copy(update={"restart_seconds": options.restart_seconds})
    with tempfile.TemporaryDirectory() as folder:
        shop = small_shop.learn_shop(Path(folder) / "shop", _named_anew(small_shop.table(USERS, 30)))
        everyone = erasure_service.people_in(shop)
        erased, staying = everyone[:ERASED], everyone[ERASED : 2 * ERASED]
        token = erasure_service.new_token(shop, "operator")
        with running(shop, settings) as service:
            headers = {"Authorization": f"Bearer {token}"}
            with httpx2.Client(base_url=service.url, timeout=60, headers=headers) as client:
                for person in (*erased, *staying):
                    client.get(f"/v1/recommendations/{person}").raise_for_status()
                found = {"before": _found(service, erased, staying)}
                for person in erased:
                    client.post("/v1/erasure-requests", json={"user_id": person}).raise_for_status()
            _wait_until_erased(shop)
            for when, pause in (("when all are erased", 0), ("2 s later", 2), ("60 s later", _LATER - 2)):
                time.sleep(pause)
                found[when] = _found(service, erased, staying)
            log = service.log
    rows = [[when, *map(str, figures.values())] for when, figures in found.items()]
    print_table(_HEADER, rows)
    restarts = log.count('"service restarts"')
    name = "service-memory" if not options.restart_seconds else "service-memory-restarted"
    save(name, {"erased": ERASED, "restart_seconds": options.restart_seconds, "restarts": restarts, "found": found})
    assert found["before"]["people_erased"] == ERASED, "the search finds nobody before they are erased"
    assert all(one["people_staying"] == ERASED for one in found.values()), "the search does not find who is held"
    if options.restart_seconds:
        assert found["60 s later"]["people_erased"] == 0, "someone who is erased is still in memory"


def copies_in(process: int) -> Counter[bytes]:
    """Count every id in the memory of a process; what is mapped and can't be read is passed over."""
    found: Counter[bytes] = Counter()
    with Path(f"/proc/{process}/mem").open("rb", buffering=0) as memory:
        for line in Path(f"/proc/{process}/maps").read_text().splitlines():
            place, rights, *_ = line.split()
            if rights.startswith("r") and "[v" not in line:
                begin, end = (int(one, 16) for one in place.split("-"))
                for start in range(begin, end, _PART):
                    found.update(_ids_at(memory, start, min(end, start + _PART + _LONGEST_ID - 1), start + _PART))
    return found


def _ids_at(memory: object, start: int, end: int, last: int) -> list[bytes]:
    """Return the ids that begin in a part of memory."""
    try:
        memory.seek(start)
        content = memory.read(end - start)
    except OSError:
        return []
    return [match.group() for match in _ID.finditer(content) if start + match.start() < last]


def _found(service: ServiceProcess, erased: Sequence[str], staying: Sequence[str]) -> dict[str, int]:
    """Search server and worker."""
    httpx2.get(f"{service.url}/healthz", timeout=60).raise_for_status()  # one that starts anew has all in memory again
    server = copies_in(service.pid)
    workers: Counter[bytes] = Counter()
    for worker in service.workers():
        workers += copies_in(worker)
    gone = [person.encode() for person in erased]
    return {
        "people_erased": sum(1 for person in gone if server[person] or workers[person]),
        "copies_in_server": sum(server[person] for person in gone),
        "copies_in_worker": sum(workers[person] for person in gone),
        "people_staying": sum(1 for person in staying if server[person.encode()]),
    }


def _named_anew(table: pa.Table) -> pa.Table:
    """Give everyone an id that stands nowhere else in memory."""
    users = [f"qz{blake2b(user.encode(), digest_size=10).hexdigest()}zq" for user in table["user_id"].to_pylist()]
    return table.set_column(0, "user_id", pa.array(users))


def _wait_until_erased(shop: Path) -> None:
    end = time.monotonic() + _REST
    with erasure_service.database_of(shop) as database:
        while Queue(database).history.open_requests():
            assert time.monotonic() < end, "stuck"
            time.sleep(0.05)
