"""Requests in the ledger: events are added, people are kept no longer than needed, second requests join the first."""

import sqlite3
from datetime import timedelta

import pytest

from erasable.errors import Refused, UnknownRequest, WrongUse
from erasable.proof import salt_of_code
from erasable.service.requests import Requests
from erasable.store.layout import LEDGER
from erasable.unlearning import Request

FAY = "fay-the-unmistakable"


@pytest.fixture
def requests(ledger):
    return Requests(ledger)


@pytest.fixture
def filed(requests, clock):
    """File a request that is held."""

    def file(user=FAY, items=None):
        return requests.file(Request(user, items), held=True, actor="officer 1", now=clock())

    return file


def names(requests, request_id):
    return [event.name for event in requests.get(request_id).events]


def test_what_is_held_is_accepted_and_the_person_is_suppressed(requests, filed):
    filing = filed()
    assert names(requests, filing.request_id) == ["received", "accepted"]
    assert requests.suppressed_people() == {FAY}
    assert requests.get(filing.request_id).state == "accepted"


def test_what_is_not_held_is_rejected_and_nobody_is_kept(requests, clock):
    filing = requests.file(Request("nobody"), held=False, actor="officer 1", now=clock())
    assert filing.rejected
    assert requests.get(filing.request_id).state == "rejected"
    assert requests.suppressed_people() == frozenset()


def test_no_event_names_the_person(ledger, filed):
    filed()
    with ledger.reading() as connection:
        assert not [row for row in connection.execute("SELECT * FROM events") if FAY in str(tuple(row))]


def test_a_second_request_of_a_person_joins_the_first_and_tells_the_code_to_nobody_else(requests, filed, clock):
    first, second = filed(), filed()
    assert second.joined
    assert (second.request_id, second.receipt_code) == (first.request_id, first.receipt_code)
    third = requests.file(Request(FAY), held=True, actor="application 2", now=clock())
    assert (third.request_id, third.receipt_code) == (first.request_id, None)
    assert [request.request_id for request in requests.open_requests()] == [first.request_id]


def test_items_of_both_requests_are_erased(requests, filed):
    first = filed(items=("a", "b"))
    filed(items=("b", "c"))
    assert requests.accepted([first.request_id])[0].items == ("a", "b", "c")
    assert requests.get(first.request_id).scope == "some interactions of one person"


def test_who_asks_for_everything_after_some_gets_everything(requests, filed):
    first = filed(items=("a",))
    filed()
    assert requests.accepted([first.request_id])[0].items is None
    assert requests.get(first.request_id).scope == "all data of one person"
    filed(items=("a",))
    assert requests.accepted([first.request_id])[0].items is None
    assert requests.get(first.request_id).scope == "all data of one person"


def test_who_asks_for_more_once_erasing_has_begun_gets_a_request_of_its_own(requests, filed, clock):
    first = filed(items=("a",))
    for state in ("suppressed", "erasing"):
        requests.change(first.request_id, state, "worker", clock())
    assert filed(items=("a",)).joined
    assert filed().request_id != first.request_id


def test_the_salt_of_the_receipt_is_made_from_the_code(requests, filed):
    filing = filed()
    accepted = requests.accepted([filing.request_id])[0]
    assert accepted.salt == salt_of_code(filing.receipt_code)
    assert accepted.user == FAY


@pytest.mark.parametrize("end", ["verifying", "withdrawn"])
def test_who_asked_is_gone_from_the_file_once_it_need_not_be_known(requests, ledger, filed, clock, folder, end):
    filing = filed()
    states = ["suppressed", "erasing", "verifying"] if end == "verifying" else ["withdrawn"]
    for state in states:
        requests.change(filing.request_id, state, "worker", clock())
    ledger.wipe()
    assert requests.suppressed_people() == frozenset()
    left = b"".join(path.read_bytes() for path in folder.glob(f"{LEDGER}*"))
    assert FAY.encode() not in left
    assert filing.receipt_code.encode() not in left
    with pytest.raises(Refused, match="not kept"):
        requests.reveal(filing.request_id, "officer 1", clock())


def test_events_can_be_neither_changed_nor_removed(ledger, filed):
    filed()
    for statement in ("UPDATE events SET event_name = 'x'", "DELETE FROM events"):
        with pytest.raises(sqlite3.IntegrityError, match="never"), ledger.writing() as connection:
            connection.execute(statement)


def test_a_change_that_states_do_not_allow_is_refused_and_adds_nothing(requests, filed, clock):
    filing = filed()
    with pytest.raises(Refused, match="can't become erased"):
        requests.change(filing.request_id, "erased", "worker", clock())
    assert names(requests, filing.request_id) == ["received", "accepted"]


def test_revealing_says_who_and_is_written_down(requests, filed, clock):
    filing = filed()
    assert requests.reveal(filing.request_id, "officer 7", clock()) == FAY
    assert requests.get(filing.request_id).events[-1].name == "revealed"
    assert requests.get(filing.request_id).events[-1].actor == "officer 7"


def test_a_request_is_extended_once_and_within_the_month(requests, filed, clock):
    filing = filed()
    requests.extend(filing.request_id, "many systems", "officer 1", clock())
    assert requests.get(filing.request_id).extended == "many systems"
    with pytest.raises(Refused, match="once"):
        requests.extend(filing.request_id, "still", "officer 1", clock())


def test_an_extension_after_the_month_is_refused(requests, filed, clock):
    filing = filed()
    clock.pass_days(40)
    with pytest.raises(Refused, match="month is over"):
        requests.extend(filing.request_id, "late", "officer 1", clock())


def test_only_what_failed_is_tried_again(requests, filed, clock):
    filing = filed()
    with pytest.raises(Refused, match="not failed"):
        requests.retry(filing.request_id, "officer 1", clock())
    for state in ("suppressed", "erasing"):
        requests.change(filing.request_id, state, "worker", clock())
    facts = {"reason": "the disk is full", "retry_at": None}
    requests.change(filing.request_id, "failed", "worker", clock(), facts)
    failed = requests.get(filing.request_id)
    assert (failed.attempts, failed.retry_at, failed.reason) == (1, None, "the disk is full")
    requests.retry(filing.request_id, "officer 1", clock())
    again = requests.get(filing.request_id)
    assert (again.attempts, again.retry_at, again.state) == (0, clock(), "failed")


def test_a_request_is_found_by_its_code_however_it_is_typed(requests, filed):
    filing = filed()
    code = filing.receipt_code
    for typed in (code, code.lower(), code.replace("-", ""), f"  {code} "):
        assert requests.submission(typed).filed.request_id == filing.request_id
    assert requests.submission("AAAA-BBBB") is None


def test_requests_are_counted_and_listed_by_state_newest_first(requests, filed, clock):
    ids = []
    for number in range(5):
        clock.now += timedelta(minutes=1)
        ids.append(filed(f"user {number}").request_id)
    requests.change(ids[1], "withdrawn", "officer 1", clock())
    assert requests.counts() == {"accepted": 4, "withdrawn": 1}
    newest = requests.ids(["accepted"], limit=2)
    assert [request_id for _, request_id in newest] == [ids[4], ids[3]]
    older = requests.ids(["accepted"], limit=9, before=newest[-1][0])
    assert [request_id for _, request_id in older] == [ids[2], ids[0]]
    assert [filed.request_id for filed in requests.in_states(["withdrawn"])] == [ids[1]]


def test_there_is_no_such_request(requests, clock):
    for ask in (requests.get, lambda one: requests.change(one, "withdrawn", "officer 1", clock())):
        with pytest.raises(UnknownRequest):
            ask("0" * 32)


def test_the_journal_tells_what_happened_last_first(requests, filed, clock):
    filed()
    requests.note(None, "verification asked", "officer 1", clock())
    assert [event.name for event in requests.journal(2)] == ["verification asked", "accepted"]
    assert requests.last_event("verification asked").actor == "officer 1"
    assert requests.last_event("verification ended") is None


def test_naming_the_person_in_a_reason_is_refused_and_written_down_like_a_look(requests, filed, clock):
    filing = filed()
    for act in (requests.hold, requests.withdraw, requests.extend):
        with pytest.raises(WrongUse, match="names the person") as refusal:
            act(filing.request_id, f"because of {FAY}!", "officer 7", clock())
        assert FAY not in str(refusal.value)
    assert [(event.name, event.actor) for event in requests.get(filing.request_id).events[-3:]] == [
        ("named", "officer 7")
    ] * 3


def test_since_when_someone_is_suppressed_is_not_changed_by_a_hold(requests, filed, clock):
    filing = filed()
    requests.change(filing.request_id, "suppressed", "service", clock())
    since = clock()
    clock.pass_days(3)
    requests.hold(filing.request_id, None, "officer 1", clock())
    requests.release(filing.request_id, "officer 1", clock())
    assert requests.get(filing.request_id).when("suppressed") == since
