"""Running the service: one process that answers, and a worker process that it starts again whenever it ends."""

import gc
import signal
import socket
import sys
import threading
import time
from collections.abc import Callable
from multiprocessing import get_context
from multiprocessing.process import BaseProcess
from pathlib import Path

import uvicorn
from pydantic import BaseModel, ConfigDict

from erasable.errors import QueueUnreachable, WorkspaceBusy
from erasable.interrupts import end_at_once, kept_from_children
from erasable.models.blas import one_blas_thread
from erasable.operations import DiskHome
from erasable.operations.do_not_learn import prepare_list
from erasable.operations.processes import safe_path
from erasable.proof.suppression import Suppression
from erasable.requests.database import Database
from erasable.requests.lease import holder_of, silent_seconds
from erasable.requests.progress import read_progress
from erasable.service.application import make_application
from erasable.service.connections import impatient
from erasable.service.logs import log, log_everything_as_json, log_failure
from erasable.service.restarting import Restart, give_back_memory, reap_children, replace_process
from erasable.service.settings import DEFAULT_SETTINGS, ServiceSettings
from erasable.service.shop import Shop
from erasable.service.worker import Post, run_worker

_FOLLOW_SECONDS = 0.1
_REST_SECONDS = 0.05
_LOOK_SECONDS = 1.0
_END_SECONDS = 30
_START_SECONDS = 30
_LONGEST_SILENCE = 3.0  # seconds; it is looked ten times a second, but a queue elsewhere may not answer
_FAILURE_SECONDS = 5.0
_SWITCH_SECONDS = 0.0001  # Python's own is 5 ms: whoever comes back from the disk waits that long for who computes


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
    listening: int | None = None
    """The number of the open socket that a process which this one replaces has listened on."""

    @property
    def suppression(self) -> Suppression | None:
        """Another do-not-learn list than the one that the workspace remembers, if one was named."""
        if self.suppression_list is None or self.suppression_key is None:
            return None
        return Suppression(self.suppression_list, self.suppression_key)


def serve(place: Place) -> None:
    """Serve a workspace until the process is told to end; after erasures another may be run in its place."""
    stop, again = threading.Event(), threading.Event()
    sys.setswitchinterval(_SWITCH_SECONDS)
    log_everything_as_json()
    if place.listening is not None:
        reap_children()
    if place.suppression is not None:
        prepare_list(DiskHome(place.folder), place.suppression)
    shop = _opened(place)
    gc.collect()
    gc.freeze()  # else what is held for good is walked through again and again, which holds everyone up for 100 ms
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
    server = uvicorn.Server(config)

    def start_anew() -> None:
        again.set()
        server.should_exit = True

    threads = [
        threading.Thread(target=_suppress, args=(shop, stop)),
        threading.Thread(target=_follow, args=(shop, stop)),
        threading.Thread(target=_keep_working, args=(place, shop, stop, start_anew)),
    ]
    listening = config.bind_socket() if place.listening is None else socket.socket(fileno=place.listening)
    try:
        shop.live.serve_only_if_told(_LONGEST_SILENCE)
        for thread in threads:
            thread.start()
        log("service started", host=place.host, port=place.port)
        for number in (signal.SIGINT, signal.SIGTERM):
            # uvicorn ends by itself on these, and then raises them again: what follows must still be done.
            signal.signal(number, lambda number, frame: _stop_or_end(stop))
        with one_blas_thread():
            server.run([listening.dup()])  # it closes what it is given
        if stop.is_set():
            again.clear()  # it was told to end meanwhile
    finally:
        stop.set()
        for thread in threads:
            if thread.ident is not None:
                thread.join()
        shop.database.close()
        log("service restarts" if again.is_set() else "service stopped")
    if again.is_set():
        replace_process(place.model_copy(update={"listening": listening.fileno()}).model_dump_json(), listening)


def _opened(place: Place) -> Shop:
    """Open the workspace; a database that is just being started, as the whole machine may be, is waited for."""
    end = time.monotonic() + _START_SECONDS
    while True:
        try:
            return Shop.open(place.folder, place.settings)
        except QueueUnreachable as error:
            if time.monotonic() > end:
                raise
            log_failure("waiting for the database", error)
            time.sleep(_LOOK_SECONDS)


def _stop_or_end(stop: threading.Event) -> None:
    """End in order when told to for the first time, and at once when told to again."""
    if stop.is_set():
        end_at_once()
    stop.set()


def _suppress(shop: Shop, stop: threading.Event) -> None:
    """Keep from being served whoever has asked, also while another version is loaded, which may take long."""
    while not stop.is_set():
        try:
            shop.database.wait(_FOLLOW_SECONDS)
            shop.reception.suppress()
            stop.wait(_REST_SECONDS)  # who submits is suppressed here already: one look serves many changes
        except WorkspaceBusy as error:  # for a moment; if it lasts, nobody is served
            log_failure("looking at the queue failed", error)
            stop.wait(_LOOK_SECONDS)
        except Exception as error:
            shop.live.serve_nobody(error)
            log_failure("nobody is served", error)
            stop.wait(_LOOK_SECONDS)


def _follow(shop: Shop, stop: threading.Event) -> None:
    """Keep serving what is current."""
    while not stop.wait(_FOLLOW_SECONDS):
        try:
            version = shop.live.version
            shop.live.follow()
            if shop.live.version != version:
                give_back_memory()
        except Exception as error:
            log_failure("following failed", error)
            stop.wait(_FAILURE_SECONDS)


def _keep_working(place: Place, shop: Shop, stop: threading.Event, start_anew: Callable[[], None]) -> None:
    """Run a worker, and another one whenever it ends, or is silent for so long that it must be frozen."""
    worker, restart = None, Restart(shop)
    while not stop.is_set():
        try:
            if restart.is_due() and not _is_busy(shop, worker) and restart.take_turn():
                start_anew()
                break
            worker = _at_work(place, shop.database, worker)
            stop.wait(_LOOK_SECONDS)
        except Exception as error:
            log_failure("looking after the worker failed", error)
            stop.wait(_FAILURE_SECONDS)
    if worker is not None:
        worker.terminate()
        worker.join(_END_SECONDS)
        worker.kill()
        worker.join()


def _is_busy(shop: Shop, worker: BaseProcess | None) -> bool:
    """Whether a worker is in the middle of something that it would have to begin again."""
    holder = holder_of(shop.database)
    if worker is None or holder is None or not holder.is_here or holder.number != worker.pid:
        return False
    return read_progress(shop.database) is not None or bool(shop.history.in_states(["erasing", "certifying"]))


def _at_work(place: Place, database: Database, worker: BaseProcess | None) -> BaseProcess:
    """Return the worker, or another one in its place."""
    if worker is not None and worker.pid and silent_seconds(database, worker.pid) > place.settings.lease_seconds:
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
