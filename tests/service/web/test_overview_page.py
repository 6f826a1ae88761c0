"""The first page: figures, what needs action and in which order, the clocks, the proof and the worker."""

import re

import pytest

from erasable.requests.lease import QueueReporter
from erasable.service.settings import ServiceSettings


def figures(text: str) -> list[int]:
    return [int(figure) for figure in re.findall(r"<b>(\d+)</b>", text)]


def test_quiet_service_needs_nothing(office):
    text = office.get("/")
    assert figures(text) == [0, 0, 0, 0]
    assert "Nothing now." in text
    assert "Nobody has been erased yet" in text
    assert re.search(r"Intact</a>, 1 record\b", text)


@pytest.fixture
def late(office, users, clock) -> list[str]:
    """A request past its limit, and one past its alarm, that came later."""
    found = [office.submit(users[0])[0]]
    clock.advance(days=6)
    found.append(office.submit(users[1])[0])
    office.send(f"/requests/{found[1]}/actions/hold", reason="identity is being checked")
    clock.advance(days=23)
    return found


def test_most_urgent_stands_first_with_what_to_do(office, late):
    text = office.get("/")
    assert figures(text) == [2, 2, 1, 0]
    assert text.index(late[0]) < text.index(late[1])
    assert "past its limit" in text
    assert "Release it if nothing speaks against the erasure" in text


def test_request_that_failed_for_good_says_what_to_do(office, shop, users):
    request_id, _ = office.submit(users[0])
    shop.queue.advance(request_id, "erasing", "worker", shop.clock())
    facts = {"reason": "the disk is full: free some space", "retry_at": None}
    shop.queue.advance(request_id, "failed", "worker", shop.clock(), facts)
    text = office.get("/")
    assert figures(text) == [1, 1, 0, 1]
    assert "The disk is full: free some space. Then try it again." in text


def test_figures_lead_to_what_they_count(office, late):
    for address, count in zip(
        re.findall(r'<a href="(/requests\?[^"]+)"><b>', office.get("/")), (2, 2, 1, 0), strict=True
    ):
        assert office.get(address).count('<th scope="row">') == count


class TestTheSync:
    @pytest.fixture
    def settings(self, tmp_path):
        return ServiceSettings(sync=str(tmp_path / "export.csv"))

    def note(self, shop, name, **facts):
        shop.queue.note(None, name, "worker", shop.clock(), facts)

    def test_when_it_is_next_and_what_it_did_is_told(self, office, shop):
        assert "none yet" in office.get("/")
        done = dict.fromkeys(["users_added", "interactions_added", "interactions_changed"], 1)
        self.note(shop, "synced", **done, users_forgotten=2, interactions_forgotten=3, left_out=0)
        text = office.get("/")
        assert "learned 1 new user, 1 new interaction and 1 changed interaction" in text
        assert "forgot 2 people and 3 interactions of others" in text
        assert "alarm" not in text

    def test_a_refused_one_is_an_alarm_until_someone_decides(self, office, shop):
        self.note(shop, "sync refused", reason="the export lacks data of 12 of 40 people", rows=99, needs_yes=True)
        text = office.get("/")
        assert "the export lacks data of 12 of 40 people. Nobody was forgotten." in text
        assert "Forget them" in text
        assert "Nothing now" not in text
        office.send("/sync", yes="true", expect_rows="99")
        asked = shop.history.last_event("sync asked")
        assert asked.facts == {"yes": True, "expect_rows": 99}
        assert "Forget them" not in office.get("/")

    def test_another_site_can_not_ask_for_it(self, office, shop):
        assert office.client.post("/sync", data={"yes": "true"}).status_code == 403
        assert shop.history.last_event("sync asked") is None


def test_without_an_export_nothing_is_said_of_it(office):
    assert "Sync with the export" not in office.get("/")


def test_last_scan_and_version_are_told(office, users, clock, worker, shop):
    office.submit(users[0])
    clock.advance(days=6)
    worker.step()
    shop.reception.follow()
    text = office.get("/")
    assert re.search(r"8 November 2026, 09:30 UTC</time> .*; \d+ files searched, nothing found", text)
    assert "<dt>Version served</dt><dd>2</dd>" in text
    assert "At work, with nothing to do" in text


def test_worker_that_is_not_there_stands_out(office):
    assert "Not at work" in office.get("/")


def test_what_the_worker_does_is_told(office, worker):
    worker.lease.take()
    with QueueReporter(worker.lease, "learning").track("learning", 4) as advance:
        advance(1)
        advance.write()
    assert "Learning what came in, 25 % done" in office.get("/")


def test_broken_audit_chain_stands_out(office, shop):
    chain = next(shop.folder.glob("audit*"))
    chain.write_bytes(chain.read_bytes().replace(b"learn", b"learm", 1))
    text = office.get("/")
    assert '<strong class="bad">Broken</strong>' in text


def test_audit_chain_is_read_once_for_each_version(office, shop, monkeypatch):
    office.get("/")
    monkeypatch.setattr("erasable.service.web._overview.documents_fault", lambda documents, issued: 1 / 0)
    office.get("/")
    office.get("/log")
