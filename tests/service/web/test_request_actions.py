"""What can be done about a request: what its state allows is offered, done, and written down."""

import re

REASON = {"reason": "<script>alert(1)</script>"}


def actions_on(text: str) -> list[str]:
    return re.findall(r"/actions/(\w+)\"", text)


def test_waiting_request_can_be_held_extended_and_taken_back(office, page):
    assert actions_on(office.get(page)) == ["hold", "extend", "withdraw"]


def test_held_request_can_be_released(office, page):
    office.send(f"{page}/actions/hold", **REASON)
    assert actions_on(office.get(page)) == ["release", "extend", "withdraw"]
    office.send(f"{page}/actions/release")
    assert actions_on(office.get(page)) == ["hold", "extend", "withdraw"]


def test_extended_request_is_not_extended_again(office, page):
    office.send(f"{page}/actions/extend", reason="there are many requests")
    text = office.get(page)
    assert actions_on(text) == ["hold", "withdraw"]
    assert "Extended month ends" in text
    office.send(f"{page}/actions/extend", 409, reason="again")


def test_failed_request_can_be_tried_again(office, page, request_id, fail):
    fail(request_id)
    assert actions_on(office.get(page)) == ["retry", "extend"]
    office.send(f"{page}/actions/retry")
    assert "Asked for another attempt" in office.get(page)


def test_withdrawn_request_offers_nothing(office, shop, page, users):
    office.send(f"{page}/actions/withdraw", reason="changed their mind")
    assert actions_on(office.get(page)) == []
    assert shop.live.knows(users[0])
    assert not shop.queue.suppressed()


def test_erased_request_offers_nothing(office, erased):
    assert actions_on(office.get(erased)) == []


def test_reason_is_shown_as_text(office, page):
    office.send(f"{page}/actions/hold", **REASON)
    for address in (page, "/log"):
        text = office.get(address)
        assert "&lt;script&gt;" in text
        assert "<script>alert" not in text


def test_who_did_it_stands_in_the_timeline(office, shop, page):
    office.send(f"{page}/actions/hold", reason="identity is being checked")
    number = shop.tokens.all()[0].number
    assert f"officer {number}" in office.get(page)
