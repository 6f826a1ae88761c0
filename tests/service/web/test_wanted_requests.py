"""Which requests a list shows: filters, and pages."""

import csv
import io

import pytest


def shown(text: str, ids: list[str]) -> list[str]:
    return [request_id for request_id in ids if f'href="/requests/{request_id}"' in text]


@pytest.fixture
def ids(office, users, clock) -> list[str]:
    """Four requests: one overdue, one on hold and past its alarm, two that came today."""
    found = [office.submit(users[0])[0]]
    clock.advance(days=7)
    found.append(office.submit(users[1])[0])
    office.send(f"/requests/{found[1]}/actions/hold", reason="=cmd|' /C calc'!A0")
    clock.advance(days=22)
    return [*found, office.submit(users[2])[0], office.submit(users[3], "i0001\r\ni0002")[0]]


@pytest.mark.parametrize(
    ("query", "places"),
    [
        ("", [0, 1, 2, 3]),
        ("only=open", [0, 1, 2, 3]),
        ("only=overdue", [0]),
        ("only=soon", [0, 1, 2, 3]),
        ("state=on+hold", [1]),
        ("state=on+hold&state=suppressed", [0, 1, 2, 3]),
        ("only=overdue&state=on+hold", []),
        ("state=failed", []),
        ("text=%20nothing", []),
    ],
)
def test_filters_leave_what_fits(office, ids, query, places):
    expected = [ids[place] for place in places]
    assert shown(office.get(f"/requests?{query}"), ids) == expected
    rows = list(csv.DictReader(io.StringIO(office.get(f"/requests.csv?{query}"))))
    assert {row["id"] for row in rows} == {*expected}


def test_part_of_an_id_finds_it(office, ids):
    assert shown(office.get(f"/requests?text={ids[2][5:20].upper()}"), ids) == [ids[2]]


def test_filters_stay_in_the_form_and_in_links(office, ids):
    text = office.get("/requests?state=on+hold&only=open&text=")
    assert 'value="on hold" checked' in text
    assert '<option value="open" selected>' in text
    assert 'href="/requests.csv?state=on+hold&amp;only=open"' in text


def test_list_goes_on_over_pages(office, ids, monkeypatch):
    monkeypatch.setattr("erasable.service.web._request_list.PAGE_SIZE", 3)
    first, second = office.get("/requests"), office.get("/requests?page=2")
    assert "1–3 of 4 requests" in first
    assert 'href="/requests?page=2"' in first
    assert "4–4 of 4 requests" in second
    assert sorted(shown(first, ids) + shown(second, ids)) == sorted(ids)
    assert office.get("/requests?page=3") == second
