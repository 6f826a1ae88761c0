"""What a hostile client sends to a real server is answered with 4xx or cut off, and takes it no memory to speak of."""

import json
import socket
import time

import pytest

from erasable.service.settings import ServiceSettings
from kit import erasure_service, service_process
from kit.service_process import ServiceProcess

MEGABYTE = 1_000_000
SLOWEST = 1.0
DIGITS = "9" * 10_000


@pytest.fixture(scope="module")
def service(tmp_path_factory):
    folder = erasure_service.learn(tmp_path_factory.mktemp("hostile") / "shop")
    with service_process.running(folder, ServiceSettings(slowest_body=SLOWEST)) as running:
        yield running


@pytest.fixture(scope="module")
def token(service) -> str:
    return erasure_service.new_token(service.folder, "operator")


@pytest.fixture
def connection(service):
    with connected(service) as opened:
        yield opened


@pytest.fixture(autouse=True)
def modest(service):
    """Whatever was sent, the server still answers, and has not grown."""
    before = service.memory
    yield
    assert status_of(service, b"GET /healthz HTTP/1.1\r\nHost: h\r\n\r\n") == 200
    assert service.memory - before < 50 * MEGABYTE
    assert '"status": 500' not in service.log


def connected(service: ServiceProcess) -> socket.socket:
    return socket.create_connection(("127.0.0.1", service.port), timeout=20)


def status_of(service: ServiceProcess, sent: bytes) -> int | None:
    """Send bytes as they are, and return the status of the answer, None if the connection is closed without one."""
    with connected(service) as opened:
        opened.sendall(sent)
        return status_on(opened)


def status_on(connection: socket.socket) -> int | None:
    try:
        line = connection.makefile("rb").readline()
    except ConnectionResetError:
        return None
    return int(line.split()[1]) if line else None


def post(path: str, token: str, body: bytes, *more: str, kind: str = "application/json") -> bytes:
    """Return the bytes of a POST."""
    lines = [f"POST {path} HTTP/1.1", "Host: h", f"Authorization: Bearer {token}", f"Content-Length: {len(body)}"]
    head = "\r\n".join([*lines, f"Content-Type: {kind}", *more, "", ""])
    return head.encode() + body


def get(path: str, token: str, *more: str) -> bytes:
    """Return the bytes of a GET."""
    return "\r\n".join([f"GET {path} HTTP/1.1", "Host: h", f"Authorization: Bearer {token}", *more, "", ""]).encode()


BODIES = {
    "no JSON": b"{",
    "nothing": b"",
    "no text": b"\xff\xfe\xfd",
    "100,000 nested lists": b"[" * 100_000 + b"]" * 100_000,
    "50,000 nested objects": b'{"user_id":' * 50_000 + b"1" + b"}" * 50_000,
    "a list in place of an object": b"[]",
    "half a surrogate pair as an id": b'{"user_id": "\\ud800"}',
    "half a surrogate pair as a name": b'{"user_id": "u0001", "\\ud800": 1}',
    "half a surrogate pair in a list": b'{"user_id": "u0001", "item_ids": ["\\udfff"]}',
    "an integer of 10,000 digits": b'{"user_id": %s}' % DIGITS.encode(),
    "an integer of 2,000 digits": b'{"user_id": %s}' % DIGITS[:2000].encode(),
    "not a number": b'{"user_id": NaN}',
    "infinity": b'{"user_id": Infinity}',
    "a number beyond all": b'{"user_id": 1e999}',
    "true": b'{"user_id": true}',
    "an empty id": b'{"user_id": ""}',
    "an id of 100,000 letters": b'{"user_id": "%s"}' % (b"x" * 100_000),
    "a name twice": b'{"user_id": "u0001", "user_id": "u0002"}',
    "no items": b'{"user_id": "u0001", "item_ids": []}',
    "400,000 items": b'{"user_id": "u0001", "item_ids": [%s 1]}' % (b"1," * 400_000),
    "a name that nobody knows": b'{"user_id": "u0001", "admin": true}',
}


@pytest.mark.parametrize("body", BODIES.values(), ids=BODIES)
def test_a_body_that_makes_no_sense_is_refused(service, token, body):
    assert status_of(service, post("/v1/erasure-requests", token, body)) in (400, 422)


@pytest.mark.parametrize("value", ["NaN", "Infinity", "-Infinity", "1e999", DIGITS, "{}", '"5"', "true"])
def test_a_rating_that_is_no_number_is_refused(service, token, value):
    body = f'{{"interactions": [{{"user_id": "u0001", "item_id": "i", "rating": {value}}}]}}'.encode()
    assert status_of(service, post("/v1/interactions", token, body)) in (400, 422)


ITEMS = {
    "33,000 columns of 33,000 items": b'{"attributes": {%s}}'
    % b",".join(b'"%d":{"x%d":1}' % (n, n) for n in range(33_000)),
    "half a surrogate pair as a column": b'{"attributes": {"a": {"\\udc00": 1}}}',
    "a number of 2,000 digits": b'{"attributes": {"a": {"x": %s}}}' % DIGITS[:2000].encode(),
    "10,000 nested lists as a value": b'{"attributes": {"a": {"x": %s%s}}}' % (b"[" * 10_000, b"]" * 10_000),
    "an item that nobody has": b'{"hide": ["\\u0000../x"]}',
    "400,000 items": b'{"hide": [%s 1]}' % (b"1," * 400_000),
    "a person": b'{"hide": ["a"], "user_id": "u0001"}',
}


@pytest.mark.parametrize("body", ITEMS.values(), ids=ITEMS)
def test_declaring_items_that_make_no_sense_is_refused(service, token, body):
    assert status_of(service, post("/v1/items", token, body)) in (400, 404, 422)


@pytest.mark.parametrize("kind", ["text/plain", "application/xml", "multipart/form-data", "x", "application/jsonx"])
def test_a_body_of_another_kind_is_refused(service, token, kind):
    sent = post("/v1/erasure-requests", token, b'{"user_id": "u0001"}', kind=kind)
    assert status_of(service, sent) == 422


IDS = ["..%2f..%2fetc%2fpasswd", "..%5c..%5c", "%00", "u0001%00", "%ff%fe", "x" * 20_000, "%F0%9F%92%A9", "a%0d%0ab"]
IDS += ["..", ".", "%2e%2e", "a/../../b", "'%20OR%201=1--", "%25s%25n", "%ud800", "%"]


@pytest.mark.parametrize("tricky", IDS)
@pytest.mark.parametrize(
    "path", ["/v1/erasure-requests/{}", "/v1/erasure-requests/{}/certificate", "/v1/recommendations/{}", "/{}"]
)
def test_a_path_that_plays_tricks_finds_nothing(service, token, path, tricky):
    assert status_of(service, get(path.format(tricky), token)) in (400, 404, 422)


def test_bytes_that_no_path_has_are_refused(service, token):
    head = b"GET /v1/recommendations/\xff\xfe\x80 HTTP/1.1\r\nHost: h\r\nAuthorization: Bearer %s\r\n\r\n"
    assert status_of(service, head % token.encode()) in (400, 404)


@pytest.mark.parametrize(
    "k", ["-1", "0", "1001", "x", DIGITS, "1e3", "%00", "1.5", "", "%D9%A3%D9%A3%D9%A3%D9%A3%D9%A3"]
)
def test_a_number_of_items_that_makes_no_sense_is_refused(service, token, k):
    assert status_of(service, get(f"/v1/recommendations/u0001?k={k}", token)) == 422


@pytest.mark.parametrize(
    "line", ["X: a\r\n\tfolded", "X: a\x00b", "X : a", ": a", "X: a\rInjected: b", "Host: other: x"]
)
def test_headers_that_play_tricks_change_nothing(service, token, line):
    status = status_of(service, get("/v1/erasure-requests", token, line))
    assert status is None or status < 500


@pytest.mark.parametrize("key", ["x" * 300, "\x80\xff", "%00", " "])
def test_an_idempotency_key_that_is_odd_breaks_nothing(service, token, key):
    head = post("/v1/erasure-requests", token, b"", f"Idempotency-Key: {key}").replace(b"Length: 0", b"Length: 19")
    assert status_of(service, head + b'{"user_id": "nobo"}') in (201, 400, 422)


def test_what_comes_in_does_not_come_out_as_a_header(service, token):
    sent = post("/v1/erasure-requests", token, b'{"user_id": "a\\r\\nSet-Cookie: b"}')
    with connected(service) as opened:
        opened.sendall(sent)
        head = opened.recv(65_536).partition(b"\r\n\r\n")[0]
    assert b"Set-Cookie" not in head


@pytest.mark.parametrize("token", ["", "x", "x" * 60_000, "\xff\xfe", "a b", "' OR 1=1"])
def test_a_token_that_nobody_made_is_refused(service, token):
    sent = f"GET /v1/status HTTP/1.1\r\nHost: h\r\nAuthorization: Bearer {token}\r\n\r\n".encode("latin-1")
    assert status_of(service, sent) == 401


@pytest.mark.parametrize("method", ["DELETE", "PUT", "PATCH", "TRACE", "CONNECT", "BREW"])
def test_another_method_is_refused(service, method):
    sent = f"{method} /v1/status HTTP/1.1\r\nHost: h\r\nContent-Length: 0\r\n\r\n".encode()
    assert status_of(service, sent) in (400, 404, 405)


LENGTHS = ["Content-Length: 2000000", "Content-Length: 99999999999999999999999", f"Content-Length: {DIGITS}"]
LENGTHS += ["Content-Length: -1", "Content-Length: x", "Content-Length: 1\r\nContent-Length: 2"]
LENGTHS += ["Content-Length: 1\r\nTransfer-Encoding: chunked", "Transfer-Encoding: x"]


@pytest.mark.parametrize("line", LENGTHS)
@pytest.mark.parametrize("method", ["GET", "POST"])
def test_a_body_whose_length_makes_no_sense_is_refused(service, token, method, line):
    sent = f"{method} /v1/erasure-requests HTTP/1.1\r\nHost: h\r\nAuthorization: Bearer {token}\r\n{line}\r\n\r\n"
    assert status_of(service, sent.encode() + b"x") in (400, 408, 413)


def test_a_body_that_never_ends_is_refused_while_it_comes(service, token, connection):
    head = f"POST /v1/erasure-requests HTTP/1.1\r\nHost: h\r\nAuthorization: Bearer {token}\r\n"
    connection.sendall(head.encode() + b"Transfer-Encoding: chunked\r\n\r\n")
    chunk = b"10000\r\n" + b"x" * 0x10000 + b"\r\n"
    assert sent_until_refused(connection, chunk) < 10 * MEGABYTE
    assert status_on(connection) in (413, None)


@pytest.mark.parametrize("endless", [b"X: y\r\n", b"x"], ids=["headers", "a header"])
def test_a_head_that_never_ends_is_cut_off(service, connection, endless):
    connection.sendall(b"GET /healthz HTTP/1.1\r\nX: ")
    assert sent_until_refused(connection, endless * 10_000) < 10 * MEGABYTE


def sent_until_refused(connection: socket.socket, part: bytes) -> int:
    """Send the same again and again until the other side wants no more, and return how many bytes that took."""
    connection.settimeout(2)
    sent = 0
    try:
        while sent < 100 * MEGABYTE:
            connection.sendall(part)
            sent += len(part)
    except OSError:
        pass
    return sent


@pytest.mark.parametrize("first", [b"", b"GET /healthz HTT", b"GET /healthz HTTP/1.1\r\nHost: h\r\n"])
def test_whoever_opens_200_connections_and_says_no_more_is_cut_off(service, first):
    opened = [connected(service) for _ in range(200)]
    for connection in opened:
        connection.sendall(first)
    assert status_of(service, b"GET /healthz HTTP/1.1\r\nHost: h\r\n\r\n") == 200
    began = time.monotonic()
    assert [connection.recv(1000) for connection in opened] == [b""] * 200
    assert time.monotonic() - began < SLOWEST + 2
    for connection in opened:
        connection.close()


def test_whoever_sends_a_head_a_byte_at_a_time_is_cut_off(connection):
    assert seconds_of_dripping(connection, b"GET /healthz HTTP/1.1\r\n" + b"X: y\r\n" * 100) < SLOWEST + 2


def test_whoever_sends_a_second_head_a_byte_at_a_time_is_cut_off(connection):
    connection.sendall(b"GET /healthz HTTP/1.1\r\nHost: h\r\n\r\n")
    assert status_on(connection) == 200
    assert seconds_of_dripping(connection, b"GET /healthz HTTP/1.1\r\n" + b"X: y\r\n" * 100) < SLOWEST + 2


@pytest.mark.parametrize("method", ["GET", "POST"])
def test_whoever_sends_a_body_a_byte_at_a_time_is_told_that_it_takes_too_long(connection, method):
    connection.sendall(f"{method} /v1/erasure-requests HTTP/1.1\r\nHost: h\r\nContent-Length: 1000\r\n\r\n".encode())
    assert seconds_of_dripping(connection, b"x" * 1000) < SLOWEST + 2


def seconds_of_dripping(connection: socket.socket, sent: bytes) -> float:
    """Send a byte at a time until the other side closes, and return how long that took."""
    began = time.monotonic()
    connection.settimeout(0.02)
    for byte in sent:
        try:
            connection.sendall(bytes([byte]))
            while connection.recv(1000):
                pass
            break
        except TimeoutError:
            continue
        except OSError:
            break
    return time.monotonic() - began


def test_requests_in_one_go_are_answered_one_after_the_other(service, connection):
    connection.sendall(b"GET /healthz HTTP/1.1\r\nHost: h\r\n\r\n" * 500)
    answered, received = 0, b""
    while answered < 500:
        received += connection.recv(65_536)
        answered = received.count(b"HTTP/1.1 200")


def test_nothing_of_all_this_was_taken_in(service, token):
    with connected(service) as opened:
        opened.sendall(get("/v1/status", token, "Connection: close"))
        answer = json.loads(opened.makefile("rb").read().rpartition(b"\r\n\r\n")[2])
    assert answer["open"] == 0
    assert answer["interactions_waiting"] == 0
