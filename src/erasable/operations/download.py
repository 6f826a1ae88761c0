"""Downloading a file over HTTP and checking it by its checksum; what the file means is not known here."""

import hashlib
import http.client
from collections.abc import Iterator
from contextlib import contextmanager
from typing import IO
from urllib import request
from urllib.error import HTTPError, URLError
from urllib.parse import urlsplit

from erasable.errors import Refused
from erasable.operations.reporting import SILENT, Reporter

TIMEOUT_SECONDS = 30.0
_BLOCK_BYTES = 2**16
_GONE = (404, 410)


def download(address: str, checksum: str, into: IO[bytes], reporter: Reporter = SILENT) -> None:
    """Write what an address holds into a file, which is what was expected only if this returns."""
    algorithm, _, expected = checksum.partition(":")
    digest = hashlib.new(algorithm, usedforsecurity=False)
    with _reaching(address, "can't be reached"):
        answer = _opener().open(address, timeout=TIMEOUT_SECONDS)
    with answer, reporter.track(f"downloading {address.rpartition('/')[2]}", answer.length) as advance:
        for part in _parts(answer, address):
            digest.update(part)
            into.write(part)
            advance(len(part))
    if digest.hexdigest() != expected:
        raise Refused(
            f"{address} is not what was expected ({algorithm} {digest.hexdigest()}, not {expected}), so nothing of it "
            "is kept: run this again; if it stays so, the file has changed there or on its way"
        )


def _opener() -> request.OpenerDirector:
    # The usual one would also follow an address to local files and to FTP.
    opener = request.OpenerDirector()
    for handler in (
        request.ProxyHandler,
        request.HTTPHandler,
        request.HTTPSHandler,
        request.HTTPRedirectHandler,
        request.HTTPDefaultErrorHandler,
        request.HTTPErrorProcessor,
        request.UnknownHandler,
    ):
        opener.add_handler(handler())
    opener.addheaders = [("User-Agent", "erasable")]
    return opener


def _parts(answer: http.client.HTTPResponse, address: str) -> Iterator[bytes]:
    size, received = answer.length, 0
    with _reaching(address, "broke off"):
        while part := answer.read(_BLOCK_BYTES):
            received += len(part)
            yield part
        if size is not None and received < size:  # which Python passes over in silence
            raise http.client.IncompleteRead(b"", size - received)


@contextmanager
def _reaching(address: str, trouble: str) -> Iterator[None]:
    """Say in plain words that a server can't be reached, or what it answered."""
    try:
        yield
    except HTTPError as error:
        with error:
            raise Refused(
                f"{address}: the server answered {error.code} {error.reason}: {_remedy(error.code)}"
            ) from None
    except (OSError, http.client.HTTPException) as error:
        host = urlsplit(address).hostname
        raise Refused(
            f"{host} {trouble} ({_reason(error)}): check the connection and run this again, or get {address} elsewhere"
        ) from error


def _remedy(status: int) -> str:
    if status in _GONE:
        return "it is no longer there; find the data elsewhere, and give the file of ratings to erasable learn"
    return "run this again later"


def _reason(error: Exception) -> str:
    if isinstance(error, http.client.IncompleteRead):
        return f"{error.expected:,} bytes are missing" if error.expected else "the end is missing"
    reason = error.reason if isinstance(error, URLError) else error
    return str(getattr(reason, "strerror", None) or reason or type(reason).__name__)
