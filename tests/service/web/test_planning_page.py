"""The page of plans: who waits, when the batch begins, and what it costs."""

import re


def test_nobody_waits_at_first(office):
    assert "No request waits." in office.get("/plan")
    assert "there is nobody to plan for" in office.send("/plan", 422).text


def test_batch_begins_when_the_first_is_due(office, users, clock):
    office.submit(users[0])
    clock.advance(days=2)
    office.submit(users[-1])
    text = office.get("/plan")
    assert "2 requests wait." in text
    assert "Sunday, 8 November 2026" in text
    assert "<table" not in text


def test_those_who_wait_cost_less_together(office, users, shop):
    for user in users[:3]:
        office.submit(user)
    text = office.send("/plan", 200).text
    apart, now, later = (float(cost) for cost in re.findall(r"<td>([\d.]+) %</td>", text))
    assert now == later < apart
    assert "In one batch on Sunday, 8 November 2026" in text
    assert shop.live.version == 1


def test_people_can_be_named(office, users):
    text = office.send("/plan", 200, user_ids=f"{users[0]}\r\n{users[1]}\r\n{users[0]}").text
    assert "What erasing 2 people costs" in text
    assert "For those you named" in text


def test_unknown_person_is_told_to_be_unknown(office):
    office.send("/plan", 404, user_ids="nobody")


def test_near_ids_are_told(office, users):
    text = office.send("/plan", 422, user_ids=users[0].upper()).text
    assert "ids that differ only in upper and lower case are held: 1." in text
