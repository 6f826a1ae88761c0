"""The page of a request: what it offers in which state, what it hides, and what it shows of the work."""

import json
import re

import pytest

from erasable.service.intake import Coming
from erasable.service.progress import LedgerReporter
from erasable.service.web.headers import CERTIFICATE_POLICY

REASON = {"reason": "<script>alert(1)</script>"}


def actions_on(text: str) -> list[str]:
    return re.findall(r"/actions/(\w+)\"", text)


@pytest.fixture
def request_id(office, users) -> str:
    return office.submit(users[0])[0]


@pytest.fixture
def page(request_id) -> str:
    return f"/requests/{request_id}"


@pytest.fixture
def erased(page, clock, worker, shop) -> str:
    """The page of a request that was carried out."""
    clock.advance(days=6)
    assert worker.step()
    shop.reception.follow()
    return page


def fail(shop, request_id) -> None:
    shop.requests.change(request_id, "erasing", "worker", shop.clock())
    facts = {"reason": "the disk is full: free some space", "retry_at": None}
    shop.requests.change(request_id, "failed", "worker", shop.clock(), facts)


class TestActions:
    def test_waiting_request_can_be_held_extended_and_taken_back(self, office, page):
        assert actions_on(office.get(page)) == ["hold", "extend", "withdraw"]

    def test_held_request_can_be_released(self, office, page):
        office.send(f"{page}/actions/hold", **REASON)
        assert actions_on(office.get(page)) == ["release", "extend", "withdraw"]
        office.send(f"{page}/actions/release")
        assert actions_on(office.get(page)) == ["hold", "extend", "withdraw"]

    def test_extended_request_is_not_extended_again(self, office, page):
        office.send(f"{page}/actions/extend", reason="there are many requests")
        text = office.get(page)
        assert actions_on(text) == ["hold", "withdraw"]
        assert "Extended month ends" in text
        office.send(f"{page}/actions/extend", 409, reason="again")

    def test_failed_request_can_be_tried_again(self, office, shop, page, request_id):
        fail(shop, request_id)
        assert actions_on(office.get(page)) == ["retry", "extend"]
        office.send(f"{page}/actions/retry")
        assert "Asked to be tried again" in office.get(page)

    def test_withdrawn_request_offers_nothing(self, office, shop, page, users):
        office.send(f"{page}/actions/withdraw", reason="changed their mind")
        assert actions_on(office.get(page)) == []
        assert shop.live.knows(users[0])
        assert not shop.requests.suppressed_people()

    def test_erased_request_offers_nothing(self, office, erased):
        assert actions_on(office.get(erased)) == []

    def test_reason_is_shown_as_text(self, office, page):
        office.send(f"{page}/actions/hold", **REASON)
        for address in (page, "/audit"):
            text = office.get(address)
            assert "&lt;script&gt;" in text
            assert "<script>alert" not in text

    def test_who_did_it_stands_in_the_timeline(self, office, shop, page):
        office.send(f"{page}/actions/hold", reason="identity is being checked")
        number = shop.tokens.all()[0].number
        assert f"officer {number}" in office.get(page)


class TestPerson:
    def test_is_hidden_until_asked_for_and_that_is_written_down(self, office, shop, page, users, request_id):
        assert users[0] not in office.get(page)
        assert f'<code class="person">{users[0]}</code>' in office.send(f"{page}/reveal", 200).text
        assert users[0] not in office.get(page)
        last = shop.requests.get(request_id).events[-1]
        assert (last.name, last.actor) == ("revealed", f"officer {shop.tokens.all()[0].number}")
        assert "Was shown who asked" in office.get("/audit")

    def test_hostile_id_is_escaped(self, office, shop):
        hostile = "<img src=x onerror=alert(1)>\"'&"
        shop.intake.add([Coming(hostile, "i0001", 3.0, None)])
        request_id, _ = office.submit(hostile)
        text = office.send(f"/requests/{request_id}/reveal", 200).text
        assert "&lt;img src=x onerror=alert(1)&gt;&#34;&#39;&amp;" in text
        assert "<img" not in text

    def test_is_not_kept_once_erased(self, office, erased, users):
        text = office.get(erased)
        assert "Not kept any more" in text
        assert users[0] not in text
        office.send(f"{erased}/reveal", 409)


class TestWork:
    def test_outcome_shows_groups_cost_and_utility(self, office, erased, shop):
        text = office.get(erased)
        stages = shop.live.knowledge.stages
        assert len(re.findall(r'<li class="(?:kept|run-again)">', text)) == stages
        assert re.search(r"Cost, against retraining all</dt><dd>\d+\.\d\xa0%", text)
        assert "Hit rate in the first 10" in text

    def test_progress_is_that_of_the_own_batch(self, office, shop, worker, page, request_id):
        facts = {"batch": "abc", "requests": 1, "stages_rerun": 2, "stages_total": 3, "rerun": [1, 2]}
        shop.requests.change(request_id, "erasing", "worker", shop.clock(), facts)
        worker.lease.take()
        for batch, running in (("abc", True), ("other", False)):
            with LedgerReporter(worker.lease, batch).track("forgetting", 10) as advance:
                advance(5)
                advance.write()
                text = office.get(f"{page}/progress")
            assert ('value="0.5"' in text) == running
        assert re.findall(r'<li class="([\w-]+)"', text) == ["kept", "rolled-back", "rolled-back"]

    def test_steps_are_run_again_as_the_work_goes_on(self, office, shop, worker, page, request_id):
        facts = {"batch": "abc", "requests": 1, "stages_rerun": 3, "stages_total": 3, "rerun": [0, 1, 2]}
        shop.requests.change(request_id, "erasing", "worker", shop.clock(), facts)
        worker.lease.take()
        with LedgerReporter(worker.lease, "abc").track("forgetting", 9) as advance:
            advance(6)
            advance.write()
        fates = re.findall(r'<li class="([\w-]+)"', office.get(f"{page}/progress"))
        assert fates == ["run-again", "run-again", "rolled-back"]
        shop.requests.change(request_id, "verifying", "worker", shop.clock())
        assert "rolled-back" not in office.get(f"{page}/progress")

    def test_progress_is_a_part_and_no_page(self, office, page):
        text = office.get(f"{page}/progress")
        assert text.lstrip().startswith('<div id="work"')
        assert "<html" not in text

    def test_ended_request_is_not_asked_for_again(self, office, erased):
        assert "data-live" not in office.get(erased)

    def test_failure_says_whether_something_was_changed(self, office, shop, page, request_id):
        fail(shop, request_id)
        assert "has changed nothing" in office.get(page)


class TestCertificate:
    def test_is_served_as_it_was_issued(self, office, erased, shop):
        name = erased.rpartition("/")[2]
        for kind in ("html", "json"):
            issued = (shop.folder / "certificates" / f"{name}.{kind}").read_bytes()
            assert office.client.get(f"{erased}/certificate.{kind}").content == issued

    def test_page_may_use_its_own_style_and_nothing_else(self, office, erased):
        policy = office.client.get(f"{erased}/certificate.html").headers["content-security-policy"]
        assert policy == CERTIFICATE_POLICY
        assert "script-src" not in policy

    def test_json_is_a_file_to_save(self, office, erased):
        answer = office.client.get(f"{erased}/certificate.json")
        assert answer.headers["content-disposition"].startswith("attachment")
        assert json.loads(answer.content)["kind"] == "certificate of erasure"

    def test_is_missing_before(self, office, page):
        assert "there is no certificate" in office.get(f"{page}/certificate.html", 404)


class TestClock:
    def test_bar_runs_until_now_and_stops_when_done(self, office, page, clock):
        def filled() -> float:
            return float(re.search(r'class="run" y="6" width="([\d.]+)%"', office.get(page)).group(1))

        assert filled() == 0
        clock.advance(days=15)
        assert 45 < filled() < 52
        office.send(f"{page}/actions/withdraw", reason="changed their mind")
        before = filled()
        clock.advance(days=100)
        assert filled() == before

    def test_alarm_that_has_passed_stands_out(self, office, page, clock):
        assert '<li class="bad"><b>Alarm' not in office.get(page)
        clock.advance(days=22)
        text = office.get(page)
        assert '<li class="bad"><b>Alarm' in text
        assert '<li class="bad"><b>Limit' not in text
