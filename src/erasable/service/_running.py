"""Running the service: the FastAPI application, the serving process, its worker, slow connections, and restarts."""

import asyncio
import ctypes
import gc
import os
import secrets
import signal
import socket
import sys
import threading
import time
from asyncio.events import TimerHandle
from collections.abc import Callable
from contextlib import suppress
from datetime import timedelta
from importlib.metadata import version
from multiprocessing import get_context
from multiprocessing.process import BaseProcess
from pathlib import Path

import pyarrow as pa
import uvicorn
from fastapi import FastAPI
from pydantic import BaseModel, ConfigDict
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from erasable.errors import QueueUnreachable, WorkspaceBusy
from erasable.interrupts import end_at_once, kept_from_children
from erasable.models.machine import one_blas_thread
from erasable.operations.do_not_learn import prepare_list
from erasable.operations.storage import DiskStorage
from erasable.operations.work import safe_path
from erasable.proof.do_not_learn import DoNotLearnFiles
from erasable.requests.database import Connection, Database
from erasable.requests.lease import holder_of, read_progress, silent_seconds
from erasable.requests.queue import SERVICE
from erasable.service._http import BodyLimits, answer_problems, refuse_routes_without_rule
from erasable.service._service import Service
from erasable.service._worker import WorkerOptions, run_worker
from erasable.service.api import _items as items
from erasable.service.api import _recommending as recommending
from erasable.service.api import _routes as routes
from erasable.service.api import _status as status
from erasable.service.api._status import Metrics, MetricsMiddleware
from erasable.service.settings import DEFAULT_SETTINGS, ServiceSettings, log, log_everything_as_json, log_failure
from erasable.service.web import _overview as overview
from erasable.service.web import _pages as pages
from erasable.service.web import _receipt_page as receipt_page
from erasable.service.web import _reference as reference
from erasable.service.web import _request_list as request_list
from erasable.service.web import _request_page as request_page
from erasable.service.web._overview import LogWatch
from erasable.service.web._pages import PageHeaders, answer_problems_as_pages

_ABOUT = "Recommendations from a model that can forget, and requests to be forgotten."
_PAGES = (overview, request_list, request_page, receipt_page, reference, pages)


def add_pages(app: FastAPI) -> None:
    """Add the pages; `answer_problems` comes first."""
    app.state.log_watch = LogWatch(app.state.service.storage)
    for part in _PAGES:
        app.router.routes.extend(part.router.routes)
    answer_problems_as_pages(app)
    app.add_middleware(PageHeaders)


def make_application(service: Service) -> FastAPI:
    """Return the application of a service."""
    app = FastAPI(
        title="erasable",
        version=version("erasable"),
        description=_ABOUT,
        docs_url=None,
        redoc_url=None,
        openapi_url=None,
    )
    app.state.service = service
    app.state.metrics = Metrics()
    for router in (*routes.ROUTERS, *recommending.ROUTERS, items.router, status.router):
        app.router.routes.extend(router.routes)
    answer_problems(app)
    add_pages(app)
    app.add_middleware(BodyLimits, largest=service.settings.largest_body, slowest=service.settings.slowest_body)
    app.add_middleware(MetricsMiddleware, metrics=app.state.metrics)
    refuse_routes_without_rule(app)
    return app


RESTARTS = "server restarts"
_LARGEST_HEAD = 65_536  # bytes
_PARTS = 1_000
_TURN = timedelta(seconds=15)  # a server takes 2 to 5 seconds to answer again
_FOLLOW_SECONDS = 0.1
_REST_SECONDS = 0.05
_LOOK_SECONDS = 1.0
_END_SECONDS = 30
_START_SECONDS = 30
_LONGEST_SILENCE = 3.0  # seconds; the queue is read ten times a second, but one elsewhere may not answer
_FAILURE_SECONDS = 5.0
_PARTING_SECONDS = 0.5
_SWITCH_SECONDS = 0.0001  # Python's own is 5 ms: a thread back from the disk would wait that long for one that computes


class _Impatient(HttpToolsProtocol):
    """Closes a connection whose request head does not arrive in time, and answers what arrives while the server stops.

    uvicorn itself would wait forever for a head. When it stops, it closes every connection that has no request in
    work, and a request that has just arrived there is answered with a reset.
    """

    seconds: float
    _timer: TimerHandle | None = None
    _size = 0
    _is_last = False

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Start the timer for the first head."""
        super().connection_made(transport)
        self._expect_head()

    def data_received(self, data: bytes) -> None:
        """Take data, and close the connection if a head has become too large."""
        super().data_received(data)
        if self._timer is not None:
            self._size += len(data)
            if self._size > _LARGEST_HEAD:
                self._give_up()

    def on_message_begin(self) -> None:
        """Start the timer for a head whose first byte has come."""
        super().on_message_begin()
        self._expect_head()

    def on_headers_complete(self) -> None:
        """Stop the timer: `BodyLimits` limits the body."""
        self._stop_waiting()
        super().on_headers_complete()
        if self._is_last:
            self.cycle.keep_alive = False

    def shutdown(self) -> None:
        """Close the connection after the request in work, or the next one if it comes within half a second."""
        self._is_last = True
        if self.cycle is None or self.cycle.response_complete:
            self.loop.call_later(_PARTING_SECONDS, super().shutdown)
        else:
            super().shutdown()

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop the timer."""
        self._stop_waiting()
        super().connection_lost(exc)

    def _expect_head(self) -> None:
        if self._timer is None:
            self._timer, self._size = self.loop.call_later(self.seconds, self._give_up), 0

    def _stop_waiting(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _give_up(self) -> None:
        if not self.transport.is_closing():
            self.transport.close()


def impatient(seconds: float) -> type[asyncio.Protocol]:
    """Return the protocol that closes a connection if a head takes longer than this."""
    return type("Impatient", (_Impatient,), {"seconds": seconds})


class Restart:
    """Says when a server restarts: at a random moment within the time set, and one server at a time."""

    def __init__(self, service: Service) -> None:
        self._service = service
        self._before = service.live.erasures
        self._moment: float | None = None

    def is_due(self) -> bool:
        """Whether someone was erased since this server started, and its moment has come."""
        seconds = self._service.settings.restart_seconds
        if not seconds or self._service.live.erasures == self._before:
            return False
        if self._moment is None:
            self._moment = time.monotonic() + seconds * secrets.randbelow(_PARTS) / _PARTS
        return time.monotonic() >= self._moment

    def take_turn(self) -> bool:
        """Record that this server restarts, unless another has just done so; return whether it was recorded."""
        service = self._service

        def take(connection: Connection) -> bool:
            last, now = service.history.last_event(RESTARTS), service.clock()
            if last is not None and now - last.at < _TURN:
                return False
            service.queue.note(None, RESTARTS, SERVICE, now)
            return True

        return service.database.change(take)


def replace_process(place: str, listening: socket.socket) -> None:
    """Replace this process by a fresh service, which keeps only the process id and the socket."""
    listening.set_inheritable(True)
    # With -P, as at the first start: nothing is imported from the working folder.
    os.execv(sys.executable, [sys.executable, "-P", "-m", "erasable.service", place])  # noqa: S606 - ourselves


def reap_children() -> None:
    """Reap the ended children of the process that this one has replaced: nobody else does."""
    with suppress(ChildProcessError):
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass


def give_back_memory() -> None:
    """Give free memory back to the system, so that less is left there of people who were erased."""
    # No gc.collect(): it delays every answer by 90 ms, and freed next to nothing more.
    pa.default_memory_pool().release_unused()
    with suppress(AttributeError, OSError):  # another C library has no such function
        ctypes.CDLL(None).malloc_trim(0)


class ServicePlace(BaseModel):
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
    """The file descriptor of the socket on which the replaced process listened, if there was one."""

    @property
    def do_not_learn(self) -> DoNotLearnFiles | None:
        """The do-not-learn list that was named instead of the workspace's own, if any."""
        if self.suppression_list is None or self.suppression_key is None:
            return None
        return DoNotLearnFiles(self.suppression_list, self.suppression_key)


def serve(place: ServicePlace) -> None:
    """Serve a workspace until told to stop; after erasures the process may replace itself."""
    stop, again = threading.Event(), threading.Event()
    sys.setswitchinterval(_SWITCH_SECONDS)
    log_everything_as_json()
    if place.listening is not None:
        reap_children()
    if place.do_not_learn is not None:
        prepare_list(DiskStorage(place.folder), place.do_not_learn)
    service = _opened(place)
    gc.collect()
    gc.freeze()  # else long-lived objects are traversed again and again, which delays every answer by 100 ms
    config = uvicorn.Config(
        make_application(service),
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
    server = StoppingServer(config, again)

    def stop_to_restart() -> None:
        again.set()
        server.should_exit = True

    threads = [
        threading.Thread(target=_suppress, args=(service, stop)),
        threading.Thread(target=_follow, args=(service, stop)),
        threading.Thread(target=_keep_working, args=(place, service, stop, stop_to_restart)),
    ]
    listening = config.bind_socket() if place.listening is None else socket.socket(fileno=place.listening)
    try:
        service.live.serve_only_if_told(_LONGEST_SILENCE)
        for thread in threads:
            thread.start()
        log("service started", host=place.host, port=place.port)
        for number in (signal.SIGINT, signal.SIGTERM):
            # uvicorn stops on these by itself, and then raises them again: the cleanup must still be done.
            signal.signal(number, lambda number, frame: _stop_or_end(stop))
        with one_blas_thread():
            server.run_on(listening)
        if stop.is_set():
            again.clear()  # told to stop meanwhile
    finally:
        stop.set()
        for thread in threads:
            if thread.ident is not None:
                thread.join()
        service.database.close()
        log("service restarts" if again.is_set() else "service stopped")
    if again.is_set():
        replace_process(place.model_copy(update={"listening": listening.fileno()}).model_dump_json(), listening)


class StoppingServer(uvicorn.Server):
    """A server whose socket outlives it only if the process replaces itself: else nobody waits for an answer."""

    def __init__(self, config: uvicorn.Config, again: threading.Event) -> None:
        super().__init__(config)
        self._again = again
        self._listening: socket.socket | None = None

    def run_on(self, listening: socket.socket) -> None:
        """Serve on a socket until told to stop."""
        self._listening = listening
        self.run([listening.dup()])  # it closes what it is given

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Stop listening, and end what is in work."""
        if self._listening is not None and not self._again.is_set():
            self._listening.close()
        await super().shutdown(sockets)


def _opened(place: ServicePlace) -> Service:
    """Open the workspace; wait for a database that is still starting, as after a reboot."""
    end = time.monotonic() + _START_SECONDS
    while True:
        try:
            return Service.open(place.folder, place.settings)
        except QueueUnreachable as error:
            if time.monotonic() > end:
                raise
            log_failure("waiting for the database", error)
            time.sleep(_LOOK_SECONDS)


def _stop_or_end(stop: threading.Event) -> None:
    """Stop in order on the first signal, and at once on the second."""
    if stop.is_set():
        end_at_once()
    stop.set()


def _suppress(service: Service, stop: threading.Event) -> None:
    """Keep suppressing whoever asks, also while another version is loaded, which may take long."""
    while not stop.is_set():
        try:
            service.database.wait(_FOLLOW_SECONDS)
            service.reception.suppress()
            stop.wait(_REST_SECONDS)  # whoever submits here is suppressed already: one read covers many changes
        except WorkspaceBusy as error:  # for a moment; if it lasts, nobody is served
            log_failure("looking at the queue failed", error)
            stop.wait(_LOOK_SECONDS)
        except Exception as error:
            service.live.serve_nobody(error)
            log_failure("nobody is served", error)
            stop.wait(_LOOK_SECONDS)


def _follow(service: Service, stop: threading.Event) -> None:
    """Keep serving the current version."""
    while not stop.wait(_FOLLOW_SECONDS):
        try:
            version = service.live.version
            service.live.follow()
            if service.live.version != version:
                give_back_memory()
        except Exception as error:
            log_failure("following failed", error)
            stop.wait(_FAILURE_SECONDS)


def _keep_working(
    place: ServicePlace, service: Service, stop: threading.Event, stop_to_restart: Callable[[], None]
) -> None:
    """Run a worker, and replace it when it ends or is silent for so long that it must be frozen."""
    worker, restart = None, Restart(service)
    while not stop.is_set():
        try:
            if restart.is_due() and not _is_busy(service, worker) and restart.take_turn():
                stop_to_restart()
                break
            worker = _at_work(place, service.database, worker)
            stop.wait(_LOOK_SECONDS)
        except Exception as error:
            log_failure("looking after the worker failed", error)
            stop.wait(_FAILURE_SECONDS)
    if worker is not None:
        worker.terminate()
        worker.join(_END_SECONDS)
        worker.kill()
        worker.join()


def _is_busy(service: Service, worker: BaseProcess | None) -> bool:
    """Whether a worker is in the middle of something that it would have to begin again."""
    holder = holder_of(service.database)
    if worker is None or holder is None or not holder.is_here or holder.number != worker.pid:
        return False
    return read_progress(service.database) is not None or bool(service.history.in_states(["erasing", "certifying"]))


def _at_work(place: ServicePlace, database: Database, worker: BaseProcess | None) -> BaseProcess:
    """Return the worker, or a new one if it has ended or is frozen."""
    if worker is not None and worker.pid and silent_seconds(database, worker.pid) > place.settings.lease_seconds:
        log("ending a frozen worker", process=worker.pid)
        worker.kill()
        worker.join()
    return worker if worker is not None and worker.is_alive() else _started(place)


@safe_path()
def _started(place: ServicePlace) -> BaseProcess:
    options = WorkerOptions(place.folder, place.settings, place.do_not_learn, place.threads)
    worker = get_context("spawn").Process(target=run_worker, args=(options,), name="erasable worker", daemon=True)
    with kept_from_children():
        worker.start()
    return worker
