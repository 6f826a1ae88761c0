"""Get a public data set: download it, check it, and write its ratings as one table."""

import errno
import hashlib
import http.client
import os
import secrets
import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO
from urllib.parse import urlsplit

import pooch

from erasable.data.public_sets import PublicSet, count_rows, write_table
from erasable.errors import Refused, option
from erasable.operations.work import QUIET_WORK, Work
from erasable.progress import SILENT, Advance, Reporter

TABLE_NAME = "ratings.csv"
TIMEOUT_SECONDS = 30.0
_BLOCK_BYTES = 2**16
_GONE = (404, 410)
_FULL = {errno.ENOSPC, errno.EDQUOT}
_HEADERS = {"User-Agent": "erasable", "Accept-Encoding": "identity"}  # the checksum is of the file as stored there


def download(address: str, checksum: str, into: IO[bytes], reporter: Reporter = SILENT) -> None:
    """Download an address into a file, and refuse it if the checksum is another."""
    if urlsplit(address).scheme not in ("http", "https"):
        raise Refused(f"{address}: unknown url type: give an address that begins with https:// or http://")
    algorithm, _, expected = checksum.partition(":")
    label = f"downloading {address.rpartition('/')[2]}"
    with ExitStack() as stack:
        received = _Received(into, algorithm, lambda size: stack.enter_context(reporter.track(label, size)))
        with _reaching(address, received):
            fetch = pooch.HTTPDownloader(received, _BLOCK_BYTES, timeout=TIMEOUT_SECONDS, headers=_HEADERS)
            fetch(address, received, None)
    found = received.digest.hexdigest()
    if found != expected:
        raise Refused(
            f"{address} is not what was expected ({algorithm} {found}, not {expected}), so it was "
            "not kept: run this again; if that does not help, the file was changed there or on its way"
        )


class _NotWritten(Exception):
    """The download can't be written; its cause says why."""


class _Received:
    """The file that pooch writes to and the progress bar that it moves; hashes and counts the bytes."""

    def __init__(self, into: IO[bytes], algorithm: str, follow: Callable[[int | None], Advance]) -> None:
        self.digest = hashlib.new(algorithm, usedforsecurity=False)
        self._into, self._follow = into, follow
        self._advance: Advance | None = None

    @property
    def begun(self) -> bool:
        """Whether the server has answered with the file."""
        return self._advance is not None

    @property
    def total(self) -> int | None:
        """The size in bytes, which pooch sets before the download; 0 if the server does not say."""
        return None

    @total.setter
    def total(self, size: int) -> None:
        self._advance = self._follow(size or None)

    def write(self, part: bytes) -> None:
        """Write and hash a part."""
        try:
            self._into.write(part)
        except OSError as error:  # must not look like an error of the server
            raise _NotWritten from error
        self.digest.update(part)
        if self._advance is not None:
            self._advance(len(part))

    def flush(self) -> None:
        """Do nothing: the file flushes itself."""

    def update(self, size: int) -> None:
        """Ignore pooch's own count: it counts whole blocks, and once more at the end."""

    reset = close = flush


@contextmanager
def _reaching(address: str, received: _Received) -> Iterator[None]:
    """Turn network errors into plain messages: the server can't be reached, or what it answered."""
    host = urlsplit(address).hostname
    try:
        yield
    except _NotWritten as error:
        raise error.__cause__ or error from None
    except (OSError, ValueError) as error:  # all errors of requests are OSErrors, except for wrong addresses
        answer = getattr(error, "response", None)
        if answer is not None and answer.status_code >= 400:
            said = f"{address}: the server answered {answer.status_code} {answer.reason}: {_remedy(answer.status_code)}"
            raise Refused(said) from None
        trouble = "broke off" if received.begun else "can't be reached"
        raise Refused(
            f"{host} {trouble} ({_reason(error)}): check the connection and run this again, or get {address} elsewhere"
        ) from error


def _remedy(status: int) -> str:
    if status in _GONE:
        return "it is no longer there; find the data elsewhere, and give the file of ratings to erasable learn"
    return "run this again later"


def _reason(error: BaseException) -> str:
    """Return the reason from the innermost error: what the system said, or how much is missing."""
    while (inner := error.__cause__ or error.__context__) is not None:
        error = inner
    if isinstance(error, http.client.IncompleteRead):
        return f"{error.expected:,} bytes are missing" if error.expected else "the end is missing"
    return str(getattr(error, "strerror", None) or error or type(error).__name__)


@dataclass(frozen=True)
class Fetched:
    """A public data set on disk: one that was there had its rows counted, a download had its checksum checked."""

    name: str
    path: str
    rows: int
    kept: bool
    checksum: str | None
    address: str
    licence: str
    terms: str


def get_public_set(wanted: PublicSet, into: Path, work: Work = QUIET_WORK) -> Fetched:
    """Put a public data set into a folder unless it is there already; if anything fails nothing is left behind."""
    table = into / wanted.name / TABLE_NAME
    with _on_disk(table):
        kept = _is_there(table, wanted)
        if not kept:
            work.reporter.note(f"the terms of {wanted.name}: {wanted.licence}; in full: {wanted.terms}")
            with _folder(table.parent):
                _fetch(wanted, table, work)
    checksum = None if kept else wanted.checksum
    return Fetched(wanted.name, str(table), wanted.rows, kept, checksum, wanted.address, wanted.licence, wanted.terms)


def _is_there(table: Path, wanted: PublicSet) -> bool:
    if not table.exists():
        return False
    with table.open("rb") as file:
        found = count_rows(file)
    if found != wanted.rows:
        raise Refused(
            f"{table} is there with {found:,} rows, but {wanted.name} has {wanted.rows:,}: "
            "move it away, or give another folder with ",
            option("into"),
        )
    return True


def _fetch(wanted: PublicSet, table: Path, work: Work) -> None:
    # The download is a file without a name: it is gone however this ends.
    with tempfile.TemporaryFile(dir=table.parent) as downloaded:
        download(wanted.address, wanted.checksum, downloaded, work.reporter)
        with _put_in_place(table) as partial, partial.open("wb") as file:
            with work.reporter.track(f"unpacking {wanted.name}", wanted.rows) as advance:
                write_table(downloaded, wanted, file, advance)
            file.flush()
            os.fsync(file.fileno())


@contextmanager
def _put_in_place(path: Path) -> Iterator[Path]:
    """Give a temporary path to write to; it replaces the file only if writing succeeds."""
    partial = path.with_name(f"{path.name}.{secrets.token_hex(4)}.partial")
    try:
        yield partial
        partial.replace(path)
    finally:
        partial.unlink(missing_ok=True)


@contextmanager
def _folder(path: Path) -> Iterator[None]:
    """Make a folder and its missing parents; those made here are removed if the block fails."""
    made = [folder for folder in (path, *path.parents) if not folder.exists()]
    try:
        path.mkdir(parents=True, exist_ok=True)
        yield
    except BaseException:
        for folder in made:
            with suppress(OSError):
                folder.rmdir()
        raise


@contextmanager
def _on_disk(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        if error.errno in _FULL:
            raise Refused(f"the disk is full at {path.parent}: free some space and run this again") from error
        reason = error.strerror or str(error)
        raise Refused(
            f"{path} can't be written or read ({reason}): check ", option("into"), " and its permissions"
        ) from error
