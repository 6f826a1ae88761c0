"""The clocks of a request, on dates worked out by hand."""

from datetime import UTC, date, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from erasable.requests.request import Deadlines, legal_deadline, months_later
from erasable.service.settings import ServiceSettings


@pytest.mark.parametrize(
    ("received", "due"),
    [
        (date(2026, 3, 9), date(2026, 4, 9)),
        (date(2026, 1, 31), date(2026, 2, 28)),
        (date(2028, 1, 31), date(2028, 2, 29)),
        (date(2026, 3, 31), date(2026, 4, 30)),
        (date(2026, 12, 31), date(2027, 1, 31)),
    ],
)
def test_the_legal_month_ends_on_the_same_date_or_the_last_day(received, due):
    assert months_later(received, 1) == due
    assert legal_deadline(datetime(*received.timetuple()[:3], 15, tzinfo=UTC)).date() == due


def test_the_last_day_counts_to_its_end():
    assert legal_deadline(datetime(2026, 3, 9, 23, 59, tzinfo=UTC)) == datetime(2026, 4, 9, 23, 59, 59, tzinfo=UTC)


def test_deadlines_by_hand():
    received = datetime(2026, 3, 9, 12, tzinfo=UTC)
    found = Deadlines.of(received, ServiceSettings())
    assert found.erase_by == datetime(2026, 3, 16, 12, tzinfo=UTC)
    assert found.join == datetime(2026, 3, 10, 12, tzinfo=UTC)
    assert found.begin == datetime(2026, 3, 15, 12, tzinfo=UTC)
    assert found.alarm == datetime(2026, 3, 30, 12, tzinfo=UTC)
    assert found.limit == datetime(2026, 4, 6, 12, tzinfo=UTC)


def test_without_a_window_a_request_is_due_at_once():
    received = datetime(2026, 3, 9, 12, tzinfo=UTC)
    found = Deadlines.of(received, ServiceSettings(batch_window=0))
    assert found.begin == found.erase_by == received


def test_an_extension_gives_two_months_more_to_alarm_limit_and_law():
    received = datetime(2026, 1, 31, 12, tzinfo=UTC)
    before, after = (Deadlines.of(received, ServiceSettings(), extended) for extended in (False, True))
    assert after.legal.date() == date(2026, 4, 30)
    more = after.legal - before.legal
    assert (after.alarm - before.alarm, after.limit - before.limit) == (more, more)
    assert after.erase_by == before.erase_by


@given(st.datetimes(datetime(2000, 1, 1), datetime(2100, 1, 1)), st.floats(0, 28))
def test_everything_comes_before_the_law_wants_it(received, window):
    received = received.replace(tzinfo=UTC)
    found = Deadlines.of(received, ServiceSettings(batch_window=window))
    assert received <= found.join <= found.begin <= found.erase_by <= found.limit <= found.legal
    assert found.alarm <= found.limit
    assert found.legal - received < timedelta(days=32)
