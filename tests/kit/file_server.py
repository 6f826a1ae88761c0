"""A web server on this machine that serves small files well or badly, and imitations of public data sets."""

import hashlib
import io
import threading
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from erasable.data.public_sets import PublicSet

ROWS = [("1", "10", "5", "100"), ("1", "20", "3.5", "101"), ("2", "10", "4", "102"), ("3", "30", "1", "103")]


@dataclass(frozen=True)
class Answer:
    """What the server says to one request; a part of the body may be missing or never come."""

    body: bytes = b""
    status: int = 200
    missing: int = 0
    says_length: bool = True
    stalls: bool = False
    location: str = ""


@dataclass
class FileServer:
    """A server that runs, and the paths it was asked for."""

    address: str
    asked: list[str] = field(default_factory=list)


@contextmanager
def serving(answers: Mapping[str, Answer]) -> Iterator[FileServer]:
    """Serve answers by path until the end of the block."""
    over = threading.Event()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            server.asked.append(self.path)
            answer = answers.get(self.path, Answer(status=404))
            self.send_response(answer.status)
            if answer.says_length:
                self.send_header("Content-Length", str(len(answer.body)))
            if answer.location:
                self.send_header("Location", answer.location)
            self.end_headers()
            self.wfile.write(answer.body[: len(answer.body) - answer.missing])
            if answer.stalls:
                self.wfile.flush()
                over.wait()

        def log_message(self, *arguments: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as http:
        server = FileServer(f"http://127.0.0.1:{http.server_port}")
        thread = threading.Thread(target=http.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield server
        finally:
            over.set()
            http.shutdown()
            thread.join()


def zipped(members: Mapping[str, bytes]) -> bytes:
    """Return a zip file with these members."""
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, body in members.items():
            archive.writestr(name, body)
    return content.getvalue()


def lines(separator: str = ",", end: str = "\n") -> bytes:
    """Return the rows as text."""
    return "".join(separator.join(row) + end for row in ROWS).encode()


def sha256(content: bytes) -> str:
    """Return a checksum as a data set states it."""
    return f"sha256:{hashlib.sha256(content).hexdigest()}"


def described(address: str, content: bytes, **changed: object) -> PublicSet:
    """Describe a small data set, a zip file with ratings separated by :: unless changed."""
    facts = {
        "name": "tiny",
        "address": address,
        "checksum": sha256(content),
        "rows": len(ROWS),
        "separator": "::",
        "licence": "for tests",
        "terms": "https://example.org/terms",
        "member": "tiny/ratings.dat",
    }
    return PublicSet(**{**facts, **changed})
