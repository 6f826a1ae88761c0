"""Downloading: what comes is whole and checked, or refused with the remedy; from a server on this machine."""

import hashlib
import io
import socket

import pytest

from erasable.data import public_sets as module
from erasable.data.public_sets import download
from erasable.errors import Refused
from kit.file_server import Answer, serving, sha256

CONTENT = bytes(range(256)) * 1000


@pytest.fixture(autouse=True)
def _no_proxy(monkeypatch):
    monkeypatch.setenv("no_proxy", "127.0.0.1")


def fetched(answer: Answer, checksum: str = sha256(CONTENT)) -> bytes:
    file = io.BytesIO()
    with serving({"/a.zip": answer}) as server:
        download(f"{server.address}/a.zip", checksum, file)
    return file.getvalue()


@pytest.mark.parametrize("checksum", [sha256(CONTENT), f"md5:{hashlib.md5(CONTENT).hexdigest()}"])
@pytest.mark.parametrize("says_length", [True, False])
def test_what_the_server_has_is_written(checksum, says_length):
    assert fetched(Answer(CONTENT, says_length=says_length), checksum) == CONTENT


@pytest.mark.parametrize(("says_length", "total"), [(True, len(CONTENT)), (False, None)])
def test_progress_is_said_in_bytes(reporter, says_length, total):
    with serving({"/a.zip": Answer(CONTENT, says_length=says_length)}) as server:
        download(f"{server.address}/a.zip", sha256(CONTENT), io.BytesIO(), reporter)
    assert (reporter.work, reporter.done) == ([("downloading a.zip", total)], len(CONTENT))


@pytest.mark.parametrize("algorithm", ["sha256", "md5"])
def test_a_wrong_checksum_is_refused_with_both(algorithm):
    expected = getattr(hashlib, algorithm)(CONTENT).hexdigest()
    came = getattr(hashlib, algorithm)(b"else").hexdigest()
    with pytest.raises(Refused, match=rf"not what was expected \({algorithm} {came}, not {expected}\).* run this"):
        fetched(Answer(b"else"), f"{algorithm}:{expected}")


@pytest.mark.parametrize(
    ("status", "said"),
    [(404, "404 Not Found: it is no longer there"), (410, "410 Gone: it is no"), (503, "503 .*: run this again later")],
)
def test_what_the_server_refuses_is_said_with_the_remedy(status, said):
    with pytest.raises(Refused, match=rf"/a.zip: the server answered {said}"):
        fetched(Answer(status=status))


def test_without_a_connection_the_remedy_is_said():
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        address = f"http://127.0.0.1:{taken.getsockname()[1]}/a.zip"
        with pytest.raises(Refused, match=r"127.0.0.1 can't be reached \(Connection refused\): check the connection"):
            download(address, sha256(b""), io.BytesIO())


def test_an_unknown_host_is_refused(monkeypatch):
    def unknown(*_: object, **__: object) -> None:
        raise socket.gaierror(-2, "Name or service not known")

    monkeypatch.setattr(socket, "getaddrinfo", unknown)
    with pytest.raises(Refused, match=r"nowhere.invalid can't be reached \(Name or service not known\)"):
        download("http://nowhere.invalid/a.zip", sha256(b""), io.BytesIO())


@pytest.mark.parametrize("missing", [1, 100_000, len(CONTENT)])
def test_a_server_that_breaks_off_is_refused(missing):
    with pytest.raises(Refused, match=rf"127.0.0.1 broke off \({missing:,} bytes are missing\): .* run this again"):
        fetched(Answer(CONTENT, missing=missing))


def test_a_server_that_breaks_off_without_having_said_the_length_is_caught_by_the_checksum():
    with pytest.raises(Refused, match="not what was expected"):
        fetched(Answer(CONTENT, missing=9, says_length=False))


def test_a_server_that_falls_silent_is_not_waited_for_without_end(monkeypatch):
    monkeypatch.setattr(module, "TIMEOUT_SECONDS", 0.05)
    with pytest.raises(Refused, match=r"broke off \(timed out\)"):
        fetched(Answer(CONTENT, missing=9, stalls=True))


def test_a_redirection_is_followed():
    answers = {"/old": Answer(status=302, location="/new"), "/new": Answer(CONTENT)}
    file = io.BytesIO()
    with serving(answers) as server:
        download(f"{server.address}/old", sha256(CONTENT), file)
    assert file.getvalue() == CONTENT


@pytest.mark.parametrize("location", ["file:///etc/hostname", "ftp://127.0.0.1/a.zip", "data:,x", "/a.zip"])
def test_a_redirection_leads_to_no_other_kind_of_address_and_not_in_a_circle(location):
    with pytest.raises(Refused):
        fetched(Answer(status=302, location=location))


@pytest.mark.parametrize("address", ["file:///etc/hostname", "ftp://127.0.0.1/a.zip", "data:,x"])
def test_only_the_web_is_asked(address):
    with pytest.raises(Refused, match="unknown url type"):
        download(address, sha256(b""), io.BytesIO())
