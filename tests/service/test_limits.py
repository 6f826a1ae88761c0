"""Bodies that are too large or do not come."""

import asyncio

import pytest

from erasable.service._http import BodyLimits


class Inner:
    """An application that remembers the body that reached it."""

    body: bytes | None = None

    async def __call__(self, scope, receive, send):
        self.body = (await receive())["body"]


def sent(messages, method="POST", headers=((b"transfer-encoding", b"chunked"),), largest=10, slowest=0.05):
    """Send a request in pieces, and return what reached the application and the status that was answered."""
    inner, answers, left = Inner(), [], list(messages)

    async def receive():
        if not left:
            await asyncio.sleep(60)
        return left.pop(0)

    async def send(message):
        answers.append(message)

    scope = {"type": "http", "method": method, "headers": list(headers)}
    asyncio.run(BodyLimits(inner, largest, slowest)(scope, receive, send))
    return inner.body, answers[0]["status"] if answers else None


def piece(content, more=True):
    return {"type": "http.request", "body": content, "more_body": more}


def test_a_body_in_pieces_arrives_whole():
    assert sent([piece(b"12"), piece(b"34", more=False)]) == (b"1234", None)


@pytest.mark.parametrize("declared", [b"11", b"999999999999999999999999", b"-1", b"x", b"1e3"])
def test_a_body_that_is_said_to_be_too_large_is_not_read(declared):
    assert sent([], headers=[(b"content-length", declared)]) == (None, 413)


def test_a_body_that_turns_out_too_large_is_cut_off():
    assert sent([piece(b"x" * 6), piece(b"x" * 6)]) == (None, 413)


def test_a_body_that_does_not_come_is_not_waited_for():
    assert sent([piece(b"1")]) == (None, 408)


def test_a_client_that_leaves_gets_nowhere():
    assert sent([piece(b"1"), {"type": "http.disconnect"}]) == (None, 400)


def test_what_only_reads_has_no_body_to_wait_for():
    assert sent([piece(b"", more=False)], method="GET", headers=()) == (b"", None)
