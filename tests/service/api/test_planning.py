"""Plans by HTTP."""

from erasable.operations import plan
from erasable.requests import Request


def test_a_plan_is_that_of_the_command_and_changes_nothing(client, shop):
    found = client("officer").post("/v1/plan", json={"user_ids": ["ann", "bob"]}).json()
    expected = plan(shop.storage, [Request("ann"), Request("bob")])
    assert (found["people"], found["stages_rerun"]) == (2, expected.stages_rerun)
    assert found["cost_ratio"] == expected.cost_ratio
    assert found["one_by_one"]["requests"] == 2
    assert shop.history.open_requests() == []


def test_those_who_wait_are_planned_for(client, shop):
    officer = client("officer")
    officer.post("/v1/erasure-requests", json={"user_id": "ann"})
    assert officer.post("/v1/plan", json={"waiting": True}).json()["people"] == 1
    assert officer.post("/v1/plan", json={"waiting": True, "user_ids": ["bob"]}).json()["people"] == 2


def test_nobody_to_plan_for_and_unknown_people_are_refused(client):
    officer = client("officer")
    assert officer.post("/v1/plan", json={}).status_code == 422
    assert officer.post("/v1/plan", json={"user_ids": ["nobody"]}).status_code == 404


def test_near_ids_are_told_to_no_application(client):
    asked = client("officer").post("/v1/plan", json={"user_ids": ["ANN"]})
    assert (asked.status_code, "differ" in asked.text) == (404, False)
    for path, body in (("/v1/erasure-requests", {"user_id": "ANN"}), ("/v1/erasure-requests", {"user_id": "nobody"})):
        answer = client("application").post(path, json=body)
        assert "differ" not in answer.text
        assert "near" not in answer.text
