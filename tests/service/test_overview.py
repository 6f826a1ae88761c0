"""What is open, late or stuck, at a glance."""

from erasable.requests import Request
from erasable.service._service import overview


def counts(shop):
    found = shop.history.totals(shop.clock()).urgent
    return {name: found[name] for name in ("open", "soon", "alarming", "overdue", "failed", "stuck")}


def test_nothing_is_open_at_first(shop):
    assert set(counts(shop).values()) == {0}


def test_a_request_grows_more_urgent_with_time(shop, clock):
    filing = shop.reception.submit(Request("ann"), "application 1")
    shop.queue.advance(filing.request_id, "on hold", "officer 1", clock(), {"reason": "x"})
    assert counts(shop) == {"open": 1, "soon": 1, "alarming": 0, "overdue": 0, "failed": 0, "stuck": 0}
    clock.pass_days(22)
    assert counts(shop)["alarming"] == 1
    clock.pass_days(7)
    assert (counts(shop)["alarming"], counts(shop)["overdue"]) == (0, 1)
    assert [one.request_id for one in overview(shop).needs_action] == [filing.request_id]
    shop.queue.advance(filing.request_id, "withdrawn", "officer 1", clock())
    assert counts(shop)["open"] == 0


def test_an_extension_puts_the_alarm_off(shop, clock):
    filing = shop.reception.submit(Request("ann"), "application 1")
    shop.decisions.extend(filing.request_id, "many systems", "officer 1", clock())
    clock.pass_days(30)
    assert (counts(shop)["alarming"], counts(shop)["overdue"]) == (0, 0)


def test_what_waits_for_a_hand_is_stuck(shop, clock):
    filing = shop.reception.submit(Request("ann"), "application 1")
    shop.queue.advance(filing.request_id, "erasing", "worker", clock())
    shop.queue.advance(filing.request_id, "failed", "worker", clock(), {"reason": "x", "retry_at": None})
    assert (counts(shop)["failed"], counts(shop)["stuck"]) == (1, 1)
