"""Write docs/pictures/service-*.png: the pages of the service over a made-up shop, with requests in every state."""

import socket
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pyarrow as pa
import uvicorn
from PIL import Image
from playwright.sync_api import Page, sync_playwright

from erasable.chain import Config
from erasable.data import SyntheticSettings, synthesise
from erasable.operations import Work, learn
from erasable.requests import Request
from erasable.requests.lease import Lease, QueueReporter
from erasable.service._running import make_application
from erasable.service._service import Service
from erasable.service._worker import Worker, WorkerOptions
from erasable.service.settings import ServiceSettings

PICTURES = Path(__file__).parent / "pictures"
START = datetime(2026, 10, 12, 8, 40, tzinfo=UTC)
WIDE, PHONE = {"width": 1280, "height": 900}, {"width": 390, "height": 1260}
COLOURS = 64
OFFICER = "officer 3f9a01c2"


class Clock:
    """A clock that goes when it is told to."""

    now = START

    def __call__(self) -> datetime:
        return self.now

    def advance(self, **span: float) -> None:
        self.now += timedelta(**span)


def made_up_table() -> pa.Table:
    rows = synthesise(SyntheticSettings(users=600, items=150, groups=6, per_user=12, ratings=True)).interactions
    return pa.table(
        {
            "user_id": rows.users.array.take(pa.array(rows.user_index)),
            "item_id": rows.items.array.take(pa.array(rows.item_index)),
            "rating": rows.rating,
        }
    )


def filled_shop(folder: Path) -> tuple[Service, dict[str, str]]:
    """Learn a shop, let five weeks pass, and return it with the ids of some requests."""
    clock, settings = Clock(), ServiceSettings()
    learn(made_up_table(), folder, Config(model="nmf", groups=10, epochs=5, holdout=0.1), work=Work(1))
    shop = Service.open(folder, settings, clock)
    worker = Worker(WorkerOptions(folder, settings, threads=1, clock=clock))
    groups = shop.live.dataset.groups
    ids = {"held": file(shop, groups[2].users[0])}
    shop.queue.advance(ids["held"], "on hold", OFFICER, clock(), {"reason": "identity is being checked"})
    for place, user in enumerate((groups[7].users[1], groups[4].users[3], groups[8].users[0])):
        clock.advance(days=2, hours=3)
        ids[f"erased {place}"] = file(shop, user)
        clock.advance(days=6, hours=1)
        shop.decisions.reveal(ids[f"erased {place}"], OFFICER, clock())
        while worker.step():
            shop.reception.follow()
    worker.lease.release()
    worker.database.close()
    file_the_rest(shop, clock, ids)
    return shop, ids


def file_the_rest(shop: Service, clock: Clock, ids: dict[str, str]) -> None:
    """Leave some requests open: one that failed, one under way, and some that wait."""
    groups = shop.live.dataset.groups
    ids["failed"] = file(shop, groups[5].users[2])
    clock.advance(hours=5)
    ids["under way"] = file(shop, groups[3].users[1])
    for place in (9, 6, 1, 8):
        clock.advance(hours=9)
        file(shop, groups[place].users[4])
    clock.advance(days=1, hours=2, minutes=13)
    begin(shop, clock, ids["failed"], 5)
    reason = "the disk is full: free some space"
    shop.queue.advance(ids["failed"], "failed", "worker", clock(), {"reason": reason, "retry_at": None})
    clock.advance(minutes=40)
    begin(shop, clock, ids["under way"], 3)


def file(shop: Service, user: str) -> str:
    return shop.reception.submit(Request(user), "application 81be44d0").request_id


def begin(shop: Service, clock: Clock, request_id: str, first: int) -> None:
    stages = len(shop.live.dataset.groups)
    rerun = list(range(first, stages))
    facts = {"batch": request_id, "requests": 1, "stages_rerun": len(rerun), "stages_total": stages, "rerun": rerun}
    shop.queue.advance(request_id, "erasing", "worker", clock(), facts)


@contextmanager
def served(shop: Service) -> Iterator[str]:
    """Serve a shop for a while, and return its address."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        server = uvicorn.Server(uvicorn.Config(make_application(shop), log_config=None))
        thread = threading.Thread(target=server.run, args=([listener],))
        thread.start()
        while not server.started:
            time.sleep(0.05)
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"
        server.should_exit = True
        thread.join()


def sign_in(page: Page, address: str, shop: Service) -> None:
    _, token = shop.tokens.create("officer", "pictures", shop.clock())
    page.goto(f"{address}/login")
    page.get_by_label("Token").fill(token)
    page.get_by_role("button", name="Sign in").click()


def take(page: Page, address: str, name: str, size: dict[str, int]) -> None:
    page.set_viewport_size(size)
    page.goto(address)
    picture = PICTURES / f"service-{name}.png"
    page.screenshot(path=picture, full_page=size is WIDE)
    with Image.open(picture) as taken:
        taken.convert("RGB").quantize(COLOURS).save(picture, optimize=True)


def main() -> None:
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        shop, ids = filled_shop(Path(folder) / "shop")
        lease = Lease(shop.database, 3600)
        lease.take()
        with served(shop) as address, QueueReporter(lease, ids["under way"]).track("forgetting", 100) as advance:
            advance(58)
            advance.write()
            browser = playwright.chromium.launch(executable_path="/usr/bin/chromium", args=["--no-sandbox"])
            page = browser.new_page()
            sign_in(page, address, shop)
            take(page, f"{address}/", "overview", WIDE)
            take(page, f"{address}/requests/{ids['erased 1']}", "request", WIDE)
            take(page, f"{address}/requests/{ids['under way']}", "phone", PHONE)
            browser.close()
        shop.database.close()


if __name__ == "__main__":
    sys.exit(main())
