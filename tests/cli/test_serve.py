"""`erasable serve`, as its user runs it."""

import json
import signal
import socket
import time
import urllib.error
import urllib.request
from pathlib import Path

import pytest

from erasable.cli import serve as serve_module
from erasable.extensions import install_command


@pytest.fixture
def free_port():
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return taken.getsockname()[1]


def ask(port, path, token=None, body=None):
    headers = {"Content-Type": "application/json"} | ({"Authorization": f"Bearer {token}"} if token else {})
    data = None if body is None else json.dumps(body).encode()
    with urllib.request.urlopen(urllib.request.Request(f"http://127.0.0.1:{port}{path}", data, headers)) as answer:
        return json.load(answer)


def wait_for(condition, seconds=60):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        try:
            if condition():
                return
        except (urllib.error.URLError, ConnectionError):
            pass
        time.sleep(0.1)
    pytest.fail("it did not happen in time")


def children_of(process):
    found = [child for path in Path(f"/proc/{process}/task").glob("*/children") for child in path.read_text().split()]
    assert found
    return found


def test_from_a_request_to_its_certificate_and_a_clean_end(run, start_apart, shop, free_port, facts):
    token = run("token", "create", shop, "--role", "operator").out.strip()
    service = start_apart("serve", shop, "--port", free_port, "--batch-window", "0")
    wait_for(lambda: ask(free_port, "/readyz")["status"] == "ready")
    for process in (service.pid, *map(int, children_of(service.pid))):  # it takes half a second, and nobody needs it
        assert "pandas" not in Path(f"/proc/{process}/maps").read_text()
    found = ask(free_port, "/v1/erasure-requests", token, {"user_id": facts.long})
    path = f"/v1/erasure-requests/{found['id']}"
    wait_for(lambda: ask(free_port, path, token)["state"] == "erased")
    assert ask(free_port, f"{path}/certificate", token)["request_id"] == found["id"]
    wait_for(lambda: ask(free_port, "/v1/status", token)["served_version"] == 2)
    service.send_signal(signal.SIGTERM)
    out, err = service.communicate(timeout=30)
    assert service.returncode == 0
    assert f"http://127.0.0.1:{free_port}" in out
    events = [json.loads(line)["event"] for line in err.splitlines()]
    wanted = {
        "service started",
        "worker started",
        "request received",
        "worker ends after an erasure",
        "service stopped",
    }
    assert wanted <= set(events)
    assert facts.long not in out + err
    assert run("verify", shop).code == 0


def test_without_a_token_it_says_how_to_make_one_and_that_others_can_reach_it(run, shop, monkeypatch):
    started = []
    monkeypatch.setattr(serve_module.os, "execv", lambda *arguments: started.append(arguments))
    out = run("serve", shop, "--host", "0.0.0.0").out
    assert "erasable token create" in out
    assert "TLS" in out
    assert "erasable.service" in started[0][1]


def test_without_the_extra_it_says_what_to_install(run, shop, monkeypatch):
    monkeypatch.setattr(serve_module, "find_spec", lambda name: None)
    result = run("serve", shop)
    assert (result.code, install_command("service") in result.err) == (2, True)


@pytest.mark.parametrize(
    "wrong", [("--batch-window", "-1"), ("--alarm-day", "28", "--limit-day", "3"), ("--port", "70000")]
)
def test_wrong_use_is_refused_before_anything_starts(run, shop, wrong):
    assert run("serve", shop, *wrong).code == 2


def test_what_is_no_workspace_is_refused(run, tmp_path):
    assert run("serve", tmp_path).code == 1


def test_a_port_in_use_is_refused_with_what_to_do(run, shop, free_port):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", free_port))
        taken.listen()
        result = run("serve", shop, "--port", free_port)
    assert (result.code, "give another --port" in result.err) == (1, True)
    assert result.out == ""


@pytest.mark.full
def test_what_is_refused_later_is_one_sentence_too(start_apart, shop, free_port, tmp_path):
    lists = ("--suppression", tmp_path / "list", "--suppression-key", tmp_path / "key")
    service = start_apart("serve", shop, "--port", free_port, *lists)
    _, err = service.communicate(timeout=60)
    assert service.returncode == 1
    assert err.startswith("erasable: the do-not-learn list and its key lie in the same folder")
    assert err.count("\n") == 1


@pytest.mark.full
def test_neither_service_nor_worker_imports_from_where_they_stand(start_apart, shop, free_port, tmp_path, monkeypatch):
    marker = tmp_path / "was-run"
    for name in ("enum", "signal", "uvicorn", "erasable"):
        (tmp_path / f"{name}.py").write_text(f"open({str(marker)!r}, 'w').close()\nraise ImportError('a trap')\n")
    monkeypatch.chdir(tmp_path)
    service = start_apart("serve", shop, "--port", free_port)
    wait_for(lambda: ask(free_port, "/readyz")["status"] == "ready")
    service.send_signal(signal.SIGTERM)
    _, err = service.communicate(timeout=30)
    assert {"worker stopped", "service stopped"} <= {json.loads(line)["event"] for line in err.splitlines()}
    assert not marker.exists()


class TestQueueElsewhere:
    @pytest.fixture
    def moved(self, run, shop, postgres, monkeypatch):
        """The shop, whose queue is in Postgres."""
        pytest.importorskip("psycopg")
        monkeypatch.setattr(serve_module.os, "execv", lambda *arguments: None)
        assert run("serve", shop, "--queue", postgres.address).code == 0
        return shop

    def test_it_is_named_once_and_used_by_every_command(self, run, moved, postgres):
        token = run("token", "create", moved, "--role", "operator", "--label", "the office").out.strip()
        assert token
        assert not (moved / "ledger.sqlite").exists()
        assert run("serve", moved).code == 0
        assert "the office" in run("token", "list", moved).out
        assert run("recommend", moved, "--user", "ann").code == 0
        assert run("forget", moved, "--user", "ann", "--yes").code == 0
        assert run("verify", moved).code == 0

    def test_where_it_can_t_be_reached_nobody_is_served_or_forgotten(self, run, moved, postgres):
        postgres.stop()
        try:
            for command in (
                ("recommend", moved, "--user", "bob"),
                ("forget", moved, "--user", "bob", "--yes"),
                ("serve", moved),
            ):
                refused = run(*command)
                assert refused.code == 1
                assert "start the database" in refused.err
        finally:
            postgres.start()
        assert run("recommend", moved, "--user", "bob").code == 0

    def test_a_password_is_refused_and_not_repeated(self, run, shop):
        pytest.importorskip("psycopg")
        refused = run("serve", shop, "--queue", "postgresql://u:geheim@db/d")
        assert (refused.code, "PGPASSWORD" in refused.err, "geheim" in refused.err) == (2, True, False)
