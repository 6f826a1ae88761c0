"""Public data sets: addresses, checksums and licences; downloading one and writing its ratings as one table."""

import hashlib
import http.client
import os
import re
import tempfile
import zipfile
import zlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import IO
from urllib.parse import urlsplit

import pooch

from erasable.data._placing import made_folder, on_disk, put_in_place
from erasable.errors import DataRefused, Refused, WrongUse, option
from erasable.progress import SILENT, Advance, Reporter

_HEX_DIGITS = {"sha256": 64, "md5": 32}


@dataclass(frozen=True)
class PublicSet:
    """One public data set; without a member, the download is the table itself rather than a zip file."""

    name: str
    address: str
    checksum: str
    """The algorithm and the digest of the download, as sha256:... or md5:..."""
    rows: int
    separator: str
    licence: str
    terms: str
    """The address of the full terms."""
    member: str | None = None
    header: bool = False

    def __post_init__(self) -> None:
        if not re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", self.name):
            raise WrongUse(f"{self.name!r} can't name a data set: use small letters, digits and hyphens")
        if not self.address.startswith(("https://", "http://")):
            raise WrongUse(f"{self.address!r} is not a web address: give one that begins with https:// or http://")
        algorithm, _, digest = self.checksum.partition(":")
        if algorithm not in _HEX_DIGITS or not re.fullmatch(f"[0-9a-f]{{{_HEX_DIGITS[algorithm]}}}", digest):
            raise WrongUse(
                f"{self.checksum!r} is not a checksum: give sha256: or md5: and the digest in small hex digits"
            )


_GROUPLENS = "https://files.grouplens.org/datasets/movielens"
_MOVIELENS_LICENCE = (
    "for research, with GroupLens acknowledged in what is published; "
    "not to be passed on, and no commercial use, without their permission"
)
_AMAZON_LICENCE = (
    "no licence is stated; "
    "those who collected it ask to be cited (McAuley et al., SIGIR 2015; He and McAuley, WWW 2016)"
)
_SETS = (
    PublicSet(
        name="ml-100k",
        address=f"{_GROUPLENS}/ml-100k.zip",
        checksum="sha256:50d2a982c66986937beb9ffb3aa76efe955bf3d5c6b761f4e3a7cd717c6a3229",
        rows=100_000,
        separator="\t",
        licence=_MOVIELENS_LICENCE,
        terms=f"{_GROUPLENS}/ml-100k-README.txt",
        member="ml-100k/u.data",
    ),
    PublicSet(
        name="ml-1m",
        address=f"{_GROUPLENS}/ml-1m.zip",
        checksum="sha256:a6898adb50b9ca05aa231689da44c217cb524e7ebd39d264c56e2832f2c54e20",
        rows=1_000_209,
        separator="::",
        licence=_MOVIELENS_LICENCE,
        terms=f"{_GROUPLENS}/ml-1m-README.txt",
        member="ml-1m/ratings.dat",
    ),
    PublicSet(
        name="ml-10m",
        address=f"{_GROUPLENS}/ml-10m.zip",
        checksum="sha256:813c411ccb6122564edfe752e7f80c4dcc5aa25fa94c93622f6877a7ba252862",
        rows=10_000_054,
        separator="::",
        licence=_MOVIELENS_LICENCE,
        terms=f"{_GROUPLENS}/ml-10m-README.html",
        member="ml-10M100K/ratings.dat",
    ),
    PublicSet(
        name="ml-20m",
        address=f"{_GROUPLENS}/ml-20m.zip",
        checksum="sha256:96f243c338a8665f6bcc89c53edf6ee39162a846940de6b7c8c48aeada765ff3",
        rows=20_000_263,
        separator=",",
        licence=_MOVIELENS_LICENCE,
        terms=f"{_GROUPLENS}/ml-20m-README.html",
        member="ml-20m/ratings.csv",
        header=True,
    ),
    PublicSet(
        name="amazon-digital-music",
        address="https://snap.stanford.edu/data/amazon/productGraph/categoryFiles/ratings_Digital_Music.csv",
        checksum="sha256:fdf164882460ff26fa2521e01f6a9cf8005ad252ddce308dd03519064f02d80e",
        rows=836_006,
        separator=",",
        licence=_AMAZON_LICENCE,
        terms="https://cseweb.ucsd.edu/~jmcauley/datasets/amazon/links.html",
    ),
)
PUBLIC_SETS: Mapping[str, PublicSet] = MappingProxyType({known.name: known for known in _SETS})


def public_set(name: str) -> PublicSet:
    """Return the public data set of that name."""
    if name not in PUBLIC_SETS:
        raise WrongUse(f"there is no data set {name!r}: give one of {', '.join(PUBLIC_SETS)}")
    return PUBLIC_SETS[name]


TABLE_HEADER = b"user_id,item_id,rating,timestamp\n"
_BLOCK_BYTES = 2**20


def write_table(download: IO[bytes], wanted: PublicSet, into: IO[bytes], advance: Callable[[int], None]) -> None:
    """Write the ratings of a downloaded set as CSV with a header; refuse an unexpected number of rows."""
    rows = 0
    separator = wanted.separator.encode()
    into.write(TABLE_HEADER)
    with _ratings_of(download, wanted) as stream:
        if wanted.header:
            stream.readline()
        for lines in _blocks_of_lines(stream):
            table = lines.replace(b"\r\n", b"\n").replace(separator, b",")
            into.write(table)
            done = table.count(b"\n")
            rows += done
            advance(done)
    if rows != wanted.rows:
        raise DataRefused(f"{wanted.address} holds {rows:,} rows and not {wanted.rows:,}: it may have changed there")


def count_rows(table: IO[bytes]) -> int:
    """Return the number of rows below a table's header."""
    return max(0, sum(lines.count(b"\n") for lines in _blocks_of_lines(table)) - 1)


@contextmanager
def _ratings_of(download: IO[bytes], wanted: PublicSet) -> Iterator[IO[bytes]]:
    download.seek(0)
    if wanted.member is None:
        yield download
        return
    try:
        with zipfile.ZipFile(download) as archive, _member(archive, wanted) as stream:
            yield stream
    except (zipfile.BadZipFile, zlib.error, EOFError) as error:
        raise DataRefused(f"{wanted.address} is not a readable zip file ({error}): run this again") from error


def _member(archive: zipfile.ZipFile, wanted: PublicSet) -> IO[bytes]:
    try:
        return archive.open(str(wanted.member))
    except KeyError:
        raise DataRefused(f"{wanted.address} holds no {wanted.member}: it may have changed there") from None
    except RuntimeError as error:  # a password, or a compression that Python does not know
        raise DataRefused(f"{wanted.member} in {wanted.address} can't be unpacked ({error})") from error


def _blocks_of_lines(stream: IO[bytes]) -> Iterator[bytes]:
    while block := stream.read(_BLOCK_BYTES):
        lines = block if block.endswith(b"\n") else block + stream.readline()
        yield lines if lines.endswith(b"\n") else lines + b"\n"


TABLE_NAME = "ratings.csv"
TIMEOUT_SECONDS = 30.0
_CHUNK_BYTES = 2**16
_GONE = (404, 410)
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
            fetch = pooch.HTTPDownloader(received, _CHUNK_BYTES, timeout=TIMEOUT_SECONDS, headers=_HEADERS)
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


def get_public_set(wanted: PublicSet, into: Path, reporter: Reporter = SILENT) -> Fetched:
    """Put a public data set into a folder unless it is there already; if anything fails nothing is left behind."""
    table = into / wanted.name / TABLE_NAME
    with on_disk(table, "check ", option("into"), " and its permissions"):
        kept = _is_there(table, wanted)
        if not kept:
            reporter.note(f"the terms of {wanted.name}: {wanted.licence}; in full: {wanted.terms}")
            with made_folder(table.parent):
                _fetch(wanted, table, reporter)
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


def _fetch(wanted: PublicSet, table: Path, reporter: Reporter) -> None:
    # The download is a file without a name: it is gone however this ends.
    with tempfile.TemporaryFile(dir=table.parent) as downloaded:
        download(wanted.address, wanted.checksum, downloaded, reporter)
        with put_in_place(table) as partial, partial.open("wb") as file:
            with reporter.track(f"unpacking {wanted.name}", wanted.rows) as advance:
                write_table(downloaded, wanted, file, advance)
            file.flush()
            os.fsync(file.fileno())
