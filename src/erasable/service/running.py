"""Running the service: one process that answers, and a worker process that it starts again whenever it ends."""

import signal
import threading
from multiprocessing import get_context
from multiprocessing.process import BaseProcess
from pathlib import Path

import uvicorn
from pydantic import BaseModel, ConfigDict

from erasable.interrupts import end_at_once, kept_from_children
from erasable.models.blas import one_blas_thread
from erasable.operations import DiskHome
from erasable.operations.do_not_learn import prepare_list
from erasable.operations.processes import safe_path
from erasable.proof.suppression import Suppression
from erasable.service.application import make_application
from erasable.service.connections import impatient
from erasable.service.lease import silent_seconds
from erasable.service.logs import log, log_everything_as_json, log_failure
from erasable.service.settings import DEFAULT_SETTINGS, ServiceSettings
from erasable.service.shop import Shop
from erasable.service.worker import Post, run_worker
from erasable.store.ledger import Ledger

_FOLLOW_SECONDS = 0.1
_LOOK_SECONDS = 1.0
_END_SECONDS = 30
_FAILURE_SECONDS = 5.0


class Place(BaseModel):
    """What is served, and where."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    folder: Path
    settings: ServiceSettings = DEFAULT_SETTINGS
    host: str = "127.0.0.1"
    port: int = 8080
    suppression_list: Path | None = None
    suppression_key: Path | None = None
    threads: int | None = None

    @property
    def suppression(self) -> Suppression | None:
        """Another do-not-learn list than the one that the workspace remembers, if one was named."""
        if self.suppression_list is None or self.suppression_key is None:
            return None
        return Suppression(self.suppression_list, self.suppression_key)


def serve(place: Place) -> None:
    """Serve a workspace until the process is told to end."""
    stop = threading.Event()
    log_everything_as_json()
    if place.suppression is not None:
        prepare_list(DiskHome(place.folder), place.suppression)
    shop = Shop.open(place.folder, place.settings)
    threads = [
        threading.Thread(target=_follow, args=(shop, stop)),
        threading.Thread(target=_keep_working, args=(place, shop.ledger, stop)),
    ]
    config = uvicorn.Config(
        make_application(shop),
        host=place.host,
        port=place.port,
        http=impatient(place.settings.slowest_body),
        log_config=None,
        access_log=False,
        server_header=False,
        date_header=True,
        timeout_keep_alive=30,
        timeout_graceful_shutdown=10,
    )
    try:
        for thread in threads:
            thread.start()
        log("service started", host=place.host, port=place.port)
        for number in (signal.SIGINT, signal.SIGTERM):
            # uvicorn ends by itself on these, and then raises them again: what follows must still be done.
            signal.signal(number, lambda number, frame: _stop_or_end(stop))
        with one_blas_thread():
            uvicorn.Server(config).run()
    finally:
        stop.set()
        for thread in threads:
            if thread.ident is not None:
                thread.join()
        shop.ledger.close()
        log("service stopped")


def _stop_or_end(stop: threading.Event) -> None:
    """End in order when told to for the first time, and at once when told to again."""
    if stop.is_set():
        end_at_once()
    stop.set()


def _follow(shop: Shop, stop: threading.Event) -> None:
    """Keep serving what is current."""
    while not stop.wait(_FOLLOW_SECONDS):
        try:
            shop.reception.follow()
        except Exception as error:
            log_failure("following failed", error)
            stop.wait(_FAILURE_SECONDS)


def _keep_working(place: Place, ledger: Ledger, stop: threading.Event) -> None:
    """Run a worker, and another one whenever it ends, or is silent for so long that it must be frozen."""
    worker: BaseProcess | None = None
    while not stop.is_set():
        try:
            worker = _at_work(place, ledger, worker)
            stop.wait(_LOOK_SECONDS)
        except Exception as error:
            log_failure("looking after the worker failed", error)
            stop.wait(_FAILURE_SECONDS)
    if worker is not None:
        worker.terminate()
        worker.join(_END_SECONDS)
        worker.kill()
        worker.join()


def _at_work(place: Place, ledger: Ledger, worker: BaseProcess | None) -> BaseProcess:
    """Return the worker, or another one in its place."""
    if worker is not None and worker.pid and silent_seconds(ledger, worker.pid) > place.settings.lease_seconds:
        log("ending a frozen worker", process=worker.pid)
        worker.kill()
        worker.join()
    return worker if worker is not None and worker.is_alive() else _started(place)


@safe_path()
def _started(place: Place) -> BaseProcess:
    post = Post(place.folder, place.settings, place.suppression, place.threads)
    worker = get_context("spawn").Process(target=run_worker, args=(post,), name="erasable worker", daemon=True)
    with kept_from_children():
        worker.start()
    return worker
