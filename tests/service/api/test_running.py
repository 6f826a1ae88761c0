"""Status, health, readiness and metrics."""

import re

import pytest

from erasable.errors import QueueLost, QueueUnreachable


def test_health_needs_no_token(client):
    assert client().get("/healthz").json() == {"status": "ok"}


def test_it_is_ready_once_a_worker_is_at_work(client, worker):
    before = client().get("/readyz")
    assert (before.status_code, before.json()["worker"]) == (503, False)
    worker.lease.take()
    after = client().get("/readyz")
    assert (after.status_code, after.json()["status"]) == (200, "ready")


def test_it_stays_ready_between_two_workers_but_not_for_long(client, worker, monkeypatch):
    worker.lease.take()
    worker.lease.release()
    assert client().get("/readyz").status_code == 200
    database = worker.lease._database
    late = database.time
    monkeypatch.setattr(type(database), "time", lambda self, connection: late(connection) + worker.lease.seconds)
    assert (client().get("/readyz").status_code, client().get("/readyz").json()["worker"]) == (503, False)


def test_it_is_not_ready_while_nobody_is_served(client, worker, shop):
    worker.lease.take()
    shop.live.serve_nobody()
    found = client().get("/readyz")
    assert (found.status_code, found.json()["serving"]) == (503, False)
    shop.reception.suppress()
    assert client().get("/readyz").json()["serving"]


@pytest.mark.parametrize(
    ("fault", "remedy"),
    [
        (QueueUnreachable("postgresql://h:1/d"), "see that it runs"),
        (QueueLost("/srv/shop/ledger.sqlite"), "run erasable status"),
        (OSError("/srv/shop"), "run erasable status"),
    ],
    ids=["unreachable", "lost", "another"],
)
def test_it_says_why_nobody_is_served_and_what_to_do_without_a_place(client, shop, fault, remedy):
    shop.live.serve_nobody(fault)
    problem = client().get("/readyz").json()["problem"]
    assert remedy in problem
    assert "srv" not in problem
    assert client("application").get("/v1/recommendations/ann").json()["detail"] == problem


def test_status_has_one_count_of_the_suppressed_also_of_who_can_not_be_certified(client, worker, folder, clock, shop):
    officer = client("officer")
    officer.post("/v1/erasure-requests", json={"user_id": "fay-the-unmistakable"})
    (folder / "notes.txt").write_text("called fay-the-unmistakable")
    clock.pass_days(8)
    while worker.step():
        pass
    shop.reception.follow()
    officer.post("/v1/erasure-requests", json={"user_id": "ann"})
    found = officer.get("/v1/status").json()
    assert found["failed"] == 1
    assert (found["suppressed_people"], found["workspace"]["suppressed"]) == (2, 2)
    assert "erasable_people_suppressed 2.0" in officer.get("/metrics").text


def test_status_counts_requests_and_names_nobody(client):
    officer = client("officer")
    officer.post("/v1/erasure-requests", json={"user_id": "fay-the-unmistakable"})
    answer = officer.get("/v1/status")
    assert answer.json()["requests"] == {"suppressed": 1}
    assert answer.json()["workspace"]["users"] == 6
    assert "fay" not in answer.text


def test_metrics_have_figures_and_no_ids(client):
    operator = client("operator")
    operator.get("/v1/recommendations/fay-the-unmistakable")
    operator.get("/v1/recommendations/nobody-at-all")
    operator.get("/somewhere-with-a-name/fay-the-unmistakable")
    operator.post("/v1/erasure-requests", json={"user_id": "fay-the-unmistakable"})
    text = operator.get("/metrics").text
    assert 'erasable_requests{state="suppressed"} 1.0' in text
    assert re.search(
        r'erasable_answers_total\{method="GET",route="/v1/recommendations/\{user_id:path\}",status="200"\} 1', text
    )
    assert "fay" not in text
    assert "nobody-at-all" not in text


def test_the_api_is_described(client):
    schema = client().get("/openapi.json").json()
    assert "/v1/erasure-requests/{request_id}/certificate" in schema["paths"]
    assert schema["paths"]["/v1/recommendations/{user_id}"]["get"]["parameters"]
