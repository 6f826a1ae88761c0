"""A disk that is really full: whoever asks is told so, nothing is lost, and all goes on once there is room."""

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx2
import pytest

from erasable.requests import Request
from kit import erasure_service, service_process, small_shop

FULL = "disk is full"
SETTINGS = erasure_service.AT_ONCE.model_copy(update={"attempts": 2})
BALLAST = "ballast"


@contextmanager
def small_disk(folder: Path) -> Iterator[Path]:
    """Mount a disk of a few megabytes for a block."""
    folder.mkdir()
    if os.geteuid() != 0:
        pytest.skip("only root can mount a disk")
    made = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=12m", "tmpfs", folder], capture_output=True, check=False)
    if made.returncode:
        pytest.skip(f"no disk can be mounted here: {made.stderr.decode().strip()}")
    try:
        yield folder
    finally:
        subprocess.run(["umount", "--lazy", folder], check=True)


@pytest.fixture
def disk(tmp_path) -> Iterator[Path]:
    with small_disk(tmp_path / "disk") as folder:
        yield folder


def fill(disk: Path, free: int = 0) -> None:
    """Fill a disk, but for so many bytes."""
    with (disk / BALLAST).open("ab", buffering=0) as ballast:
        try:
            while True:
                ballast.write(bytes(4096))
        except OSError:
            pass
        os.truncate(disk / BALLAST, max(0, ballast.tell() - free))


@pytest.mark.full
def test_a_full_disk_is_told_wherever_one_looks_and_all_goes_on_once_there_is_room(disk, tmp_path):
    path = erasure_service.learn(disk / "shop")
    person, other = small_shop.member_of(path, 1), small_shop.member_of(path, 0)
    token = erasure_service.new_token(path, "operator")
    with (
        service_process.running(path, SETTINGS, tmp_path / "service.log") as service,
        httpx2.Client(base_url=service.url, headers={"Authorization": f"Bearer {token}"}, timeout=60) as client,
    ):
        service.wait_until(lambda: client.get("/readyz").status_code == 200)
        sign_in(client, token)
        fill(disk)

        assert FULL in client.get("/").text.lower()
        readiness = client.get("/readyz")
        assert (readiness.status_code, FULL in readiness.text) == (503, True)
        submitted = client.post("/v1/erasure-requests", json={"user_id": person})
        assert (submitted.status_code, FULL in submitted.json()["detail"]) == (507, True)
        assert FULL in client.get("/v1/status").json()["problem"]
        signing_in = httpx2.post(f"{service.url}/login", data={"token": token}, headers={"Origin": service.url})
        assert (signing_in.status_code, FULL in signing_in.text) == (507, True)
        command = forget(path, person)
        assert (command.returncode, FULL in command.stderr) == (1, True)
        assert client.get(f"/v1/recommendations/{other}").status_code == 200

        (disk / BALLAST).unlink()
        service.wait_until(lambda: client.get("/readyz").status_code == 200)
        assert client.get("/v1/status").json()["problem"] is None
        answer = client.post("/v1/erasure-requests", json={"user_id": person}).json()
        service.wait_until(lambda: client.get(f"/v1/erasure-requests/{answer['id']}").json()["state"] == "erased")
    erasure_service.require_erased_once(path, [answer["id"]], [person])


@pytest.mark.full
def test_who_has_asked_before_the_disk_is_full_is_erased_once_there_is_room(disk, tmp_path):
    path, log = erasure_service.learn(disk / "shop"), tmp_path / "service.log"
    person, token = small_shop.member_of(path, 1), erasure_service.new_token(path, "operator")
    (request_id,) = erasure_service.file_requests(path, Request(person))
    fill(disk, free=200_000)  # enough for the queue, not for an erasure
    with (
        service_process.running(path, SETTINGS, log) as service,
        httpx2.Client(base_url=service.url, headers={"Authorization": f"Bearer {token}"}, timeout=60) as client,
    ):
        service.wait_until(lambda: log.read_text().count(FULL) > 3)
        assert client.get("/readyz").status_code == 503
        assert client.get(f"/v1/erasure-requests/{request_id}").json()["state"] != "erased"
        assert client.get(f"/v1/recommendations/{person}").status_code == 404
        (disk / BALLAST).unlink()
        service.wait_until(lambda: client.get(f"/v1/erasure-requests/{request_id}").json()["state"] == "erased")
    erasure_service.require_erased_once(path, [request_id], [person])


@pytest.mark.full
def test_a_server_that_starts_on_a_full_disk_says_so_and_ends(disk, tmp_path):
    path, log = erasure_service.learn(disk / "shop"), tmp_path / "service.log"
    erasure_service.file_requests(path, Request(small_shop.member_of(path, 1)))
    fill(disk)
    service = service_process.ServiceProcess(path, SETTINGS, log=log)
    try:
        end = time.monotonic() + 60
        while not service.is_gone:
            assert time.monotonic() < end, "it goes on"
            time.sleep(0.05)
        assert f"erasable: the {FULL} at" in log.read_text()
    finally:
        service.kill_both()


def sign_in(client: httpx2.Client, token: str) -> None:
    """Begin a visit, so that the client sees pages."""
    origin = str(client.base_url).rstrip("/")
    assert client.post("/login", data={"token": token}, headers={"Origin": origin}).status_code == 303


def forget(path: Path, person: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "erasable", "forget", str(path), "--user", person, "--yes"]
    return subprocess.run(command, capture_output=True, text=True, check=False)
