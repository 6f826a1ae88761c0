"""One behaviour in every database: events are added, people are kept no longer than needed, requests join."""

from collections import Counter
from contextlib import suppress
from datetime import timedelta

import numpy as np
import pytest

from erasable.errors import DiskFull, LeaseLost, Refused, UnknownRequest, WrongUse
from erasable.requests import Request
from erasable.requests import database as database_module
from erasable.requests.database import WaitingInteraction
from erasable.requests.decisions import Decisions, Intake
from erasable.requests.lease import Lease
from erasable.requests.queue import Queue
from erasable.requests.request import Asked, Deadlines, KeptTerms
from erasable.workspace.files import QUEUE_FILE

FAY = "fay-the-unmistakable"


@pytest.fixture
def decisions(queue):
    return Decisions(queue)


@pytest.fixture
def submit(queue, clock):
    """Submit a request about someone who is held."""

    def submit(user=FAY, items=None, actor="officer 1", **given):
        return queue.submit(Request(user, items), held=True, actor=actor, now=clock(), **given)

    return submit


def names(queue, request_id):
    return [event.name for event in queue.history.get(request_id).events]


def test_of_whom_something_is_held_is_suppressed_at_once(queue, submit):
    taken = submit()
    assert names(queue, taken.request_id) == ["received", "suppressed"]
    assert queue.suppressed() == {FAY}
    assert (taken.request.user, taken.request.state) == (FAY, "suppressed")
    assert queue.history.get(taken.request_id).state == "suppressed"
    assert FAY not in repr(taken)


def test_what_is_not_held_is_rejected_and_nobody_is_kept(queue, clock):
    taken = queue.submit(Request("nobody"), held=False, actor="officer 1", now=clock())
    assert taken.rejected
    assert queue.history.get(taken.request_id).state == "rejected"
    assert queue.suppressed() == frozenset()


@pytest.mark.parametrize(("held", "reference"), [(True, None), (True, "case 7"), (False, "case 7")])
def test_what_is_answered_is_what_is_told_later(queue, clock, held, reference):
    taken = queue.submit(Request(FAY, ("x",)), held=held, actor="officer 1", now=clock(), reference=reference)
    assert taken.request.events == queue.history.get(taken.request_id).events


def test_no_event_names_the_person(database, submit):
    submit()
    rows = database.read(lambda connection: connection.execute("SELECT * FROM events"))
    assert not [row for row in rows if FAY in str([row[name] for name in row.keys()])]  # noqa: SIM118 - no mapping


def test_a_second_request_of_a_person_joins_the_first_and_tells_the_code_to_nobody_else(queue, submit, clock):
    first, second = submit(), submit()
    assert second.joined
    assert (second.request_id, second.receipt_code) == (first.request_id, first.receipt_code)
    third = queue.submit(Request(FAY), held=True, actor="application 2", now=clock())
    assert (third.request_id, third.receipt_code) == (first.request_id, None)
    assert [request.request_id for request in queue.history.open_requests()] == [first.request_id]


def test_items_of_both_requests_are_erased(queue, submit):
    first = submit(items=("a", "b"))
    submit(items=("b", "c"))
    assert queue.subjects([first.request_id])[0].items == ("a", "b", "c")
    assert queue.history.get(first.request_id).scope == "some interactions of one person"


def test_who_asks_for_everything_after_some_gets_everything(queue, submit):
    first = submit(items=("a",))
    submit()
    assert queue.subjects([first.request_id])[0].items is None
    assert queue.history.get(first.request_id).scope == "all data of one person"
    submit(items=("a",))
    assert queue.subjects([first.request_id])[0].items is None
    assert queue.history.get(first.request_id).scope == "all data of one person"


def test_who_asks_for_more_once_erasing_has_begun_gets_a_request_of_its_own(queue, submit, clock):
    first = submit(items=("a",))
    queue.advance(first.request_id, "erasing", "worker", clock())
    assert submit(items=("a",)).joined
    assert submit().request_id != first.request_id


def test_the_code_and_who_asked_are_kept_while_the_request_is_open(queue, submit):
    taken = submit()
    (kept,) = queue.subjects([taken.request_id])
    assert (kept.user, kept.items, kept.receipt_code) == (FAY, None, taken.receipt_code)


@pytest.mark.parametrize("end", ["certifying", "withdrawn"])
def test_who_asked_is_kept_no_longer_than_needed(decisions, queue, database, submit, clock, end):
    taken = submit(reference="case 7")
    for state in ["erasing", "certifying"] if end == "certifying" else ["withdrawn"]:
        queue.advance(taken.request_id, state, "worker", clock())
    database.wipe()
    assert queue.suppressed() == frozenset()
    assert queue.subjects([taken.request_id]) == []
    assert queue.history.get(taken.request_id).reference is None
    with pytest.raises(Refused, match="no longer kept"):
        decisions.reveal(taken.request_id, "officer 1", clock())


@pytest.mark.parametrize("end", ["certifying", "withdrawn"])
def test_who_asked_is_gone_from_the_file_once_it_need_not_be_known(in_file, clock, folder, end):
    queue = Queue(in_file)
    taken = queue.submit(Request(FAY), held=True, actor="officer 1", now=clock())
    for state in ["erasing", "certifying"] if end == "certifying" else ["withdrawn"]:
        queue.advance(taken.request_id, state, "worker", clock())
    in_file.wipe()
    left = b"".join(path.read_bytes() for path in folder.glob(f"{QUEUE_FILE}*"))
    assert FAY.encode() not in left
    assert taken.receipt_code.encode() not in left


def test_events_can_be_neither_changed_nor_removed(database, submit):
    submit()
    for statement in ("UPDATE events SET event_name = 'x'", "DELETE FROM events"):
        with pytest.raises(Exception, match="never"):
            database.change(lambda connection, said=statement: connection.execute(said))


def test_a_change_that_states_do_not_allow_is_refused_and_adds_nothing(queue, submit, clock):
    taken = submit()
    with pytest.raises(Refused, match="can't become erased"):
        queue.advance(taken.request_id, "erased", "worker", clock())
    assert names(queue, taken.request_id) == ["received", "suppressed"]


def test_revealing_says_who_and_is_written_down(decisions, queue, submit, clock):
    taken = submit()
    assert decisions.reveal(taken.request_id, "officer 7", clock()) == FAY
    assert queue.history.get(taken.request_id).events[-1].name == "revealed"
    assert queue.history.get(taken.request_id).events[-1].actor == "officer 7"


def test_a_request_is_extended_once_and_within_the_month(decisions, queue, submit, clock):
    taken = submit()
    decisions.extend(taken.request_id, "many systems", "officer 1", clock())
    assert queue.history.get(taken.request_id).extended == "many systems"
    with pytest.raises(Refused, match="once"):
        decisions.extend(taken.request_id, "still", "officer 1", clock())


def test_an_extension_after_the_month_is_refused(decisions, queue, submit, clock):
    taken = submit()
    clock.pass_days(40)
    with pytest.raises(Refused, match="month is over"):
        decisions.extend(taken.request_id, "late", "officer 1", clock())


def test_only_what_failed_is_tried_again(decisions, queue, submit, clock):
    taken = submit()
    with pytest.raises(Refused, match="not failed"):
        decisions.retry(taken.request_id, "officer 1", clock())
    queue.advance(taken.request_id, "erasing", "worker", clock())
    facts = {"reason": "the disk is full", "retry_at": None}
    queue.advance(taken.request_id, "failed", "worker", clock(), facts)
    failed = queue.history.get(taken.request_id)
    assert (failed.attempts, failed.retry_at, failed.reason) == (1, None, "the disk is full")
    decisions.retry(taken.request_id, "officer 1", clock())
    again = queue.history.get(taken.request_id)
    assert (again.attempts, again.retry_at, again.state) == (0, clock(), "failed")


def test_a_request_is_found_by_its_code_however_it_is_typed(queue, submit):
    taken = submit()
    code = taken.receipt_code
    for typed in (code, code.lower(), code.replace("-", ""), f"  {code} "):
        assert queue.history.submission(typed).request.request_id == taken.request_id
    assert queue.history.submission("AAAA-BBBB") is None


def test_requests_are_counted_and_listed_by_state_newest_first(queue, submit, clock):
    ids = []
    for number in range(5):
        clock.now += timedelta(minutes=1)
        ids.append(submit(f"user {number}").request_id)
    queue.advance(ids[1], "withdrawn", "officer 1", clock())
    assert queue.history.counts() == {"suppressed": 4, "withdrawn": 1}
    newest = queue.history.ids(["suppressed"], limit=2)
    assert [request_id for _, request_id in newest] == [ids[4], ids[3]]
    older = queue.history.ids(["suppressed"], limit=9, before=newest[-1][0])
    assert [request_id for _, request_id in older] == [ids[2], ids[0]]
    assert [filed.request_id for filed in queue.history.in_states(["withdrawn"])] == [ids[1]]


def test_there_is_no_such_request(queue, clock):
    for ask in (queue.history.get, lambda one: queue.advance(one, "withdrawn", "officer 1", clock())):
        with pytest.raises(UnknownRequest):
            ask("0" * 32)


def test_the_journal_tells_what_happened_last_first(queue, submit, clock):
    submit()
    queue.note(None, "verification asked", "officer 1", clock())
    assert [event.name for event in queue.history.events(2)] == ["verification asked", "suppressed"]
    assert queue.history.last_event("verification asked").actor == "officer 1"
    assert queue.history.last_event("verification ended") is None


def test_naming_the_person_in_a_reason_is_refused_and_written_down_like_a_look(decisions, queue, submit, clock):
    taken = submit()
    for act in (decisions.hold, decisions.withdraw, decisions.extend):
        with pytest.raises(WrongUse, match="names the person") as refusal:
            act(taken.request_id, f"because of {FAY}!", "officer 7", clock())
        assert FAY not in str(refusal.value)
    assert [(event.name, event.actor) for event in queue.history.get(taken.request_id).events[-3:]] == [
        ("named", "officer 7")
    ] * 3


def test_since_when_someone_is_suppressed_is_not_changed_by_a_hold(decisions, queue, submit, clock):
    taken = submit()
    since = clock()
    clock.pass_days(3)
    decisions.hold(taken.request_id, None, "officer 1", clock())
    decisions.release(taken.request_id, "officer 1", clock())
    assert queue.history.get(taken.request_id).when("suppressed") == since


class TestDeadlines:
    """Those in force when a request came in hold, whatever is set later."""

    QUICK, SLOW = KeptTerms(batch_window=0, alarm_day=1, limit_day=2), KeptTerms(batch_window=20)

    def test_are_kept_with_the_request(self, database, clock):
        taken = Queue(database, self.QUICK).submit(Request(FAY), held=True, actor="officer 1", now=clock())
        later = Queue(database, self.SLOW)
        found = later.history.get(taken.request_id).deadlines(self.SLOW)
        assert found == Deadlines.of(clock(), self.QUICK)
        assert [one.request_id for one in later.due(clock())] == [taken.request_id]
        clock.pass_days(1.5)
        assert later.history.totals(clock()).urgent["alarming"] == 1

    def test_of_before_are_those_of_today_and_stay(self, database, clock):
        taken = Queue(database, self.QUICK).submit(Request(FAY), held=True, actor="officer 1", now=clock())
        as_before = (
            "UPDATE open_deadlines SET begin_time = NULL, window_time = NULL, alarm_time = NULL, limit_time = NULL"
        )
        database.change(lambda connection: connection.execute(as_before))
        assert Queue(database).due(clock()) == []
        for terms in (self.SLOW, self.QUICK):
            Queue(database, terms).migrate(clock())
        assert [one.request_id for one in Queue(database).due(clock())] == [taken.request_id]
        assert names(Queue(database), taken.request_id).count("deadlines set") == 0  # its own are known

    def test_whoever_joins_unaware_is_told_those_of_the_own_submission(self, database, clock):
        Queue(database, self.QUICK).submit(Request(FAY), held=True, actor="officer 1", now=clock())
        clock.pass_days(3)
        later = Queue(database, self.SLOW)
        joined = later.submit(Request(FAY), held=True, actor="application 2", now=clock(), unaware=True)
        told = later.history.submission(joined.receipt_code)
        assert told.joined
        assert told.deadlines(KeptTerms()) == Deadlines.of(clock(), self.SLOW)

    def test_move_with_an_extension(self, queue, decisions, submit, clock):
        taken = submit()
        decisions.extend(taken.request_id, "many systems", "officer 1", clock())
        clock.pass_days(30)
        found = queue.history.totals(clock())
        assert (found.urgent["alarming"], found.urgent["overdue"], found.urgent["late"]) == (0, 0, 0)
        assert found.next_legal == queue.history.get(taken.request_id).deadlines(queue.terms).legal


@pytest.mark.parametrize("seed", range(4))
def test_what_is_counted_is_what_the_events_add_up_to(queue, decisions, submit, clock, seed):
    """Random submissions, decisions and changes over weeks: the totals are those of all requests, one by one."""
    generator = np.random.default_rng(seed)
    states = [None, "on hold", "withdrawn", "erasing", "failed", "certifying", "erased", "rejected", "suppressed"]
    ids = []
    for turn in range(60):
        clock.pass_days(float(generator.uniform(0, 2)))
        if turn % 3 == 0:
            ids.append(submit(f"user {turn}").request_id)
        request_id, state = ids[generator.integers(len(ids))], states[generator.integers(len(states))]
        with suppress(Refused):
            if state is None:
                decisions.extend(request_id, "many systems", "officer 1", clock())
            else:
                at = (clock() + timedelta(days=1)).isoformat() if generator.integers(2) else None
                facts = {"failed": {"reason": "x", "retry_at": at}, "on hold": {"limit": 3} if at else {}}
                queue.advance(request_id, state, "worker", clock(), facts.get(state, {}))
    now, found, everyone = clock(), queue.history.totals(clock()), queue.history.some(ids)
    limits = [(one, one.deadlines(queue.terms)) for one in everyone if one.open]
    stuck = [one for one, _ in limits if one.state == "failed" and one.retry_at is None]
    alarmed = [one for one, when in limits if when.alarm < now]
    assert found.states == Counter(one.state for one in everyone)
    assert found.urgent == {
        "open": len(limits),
        "soon": sum(when.erase_by <= now + timedelta(days=7) for _, when in limits),
        "alarming": sum(when.alarm < now <= when.limit for _, when in limits),
        "overdue": sum(now > when.limit for _, when in limits),
        "late": sum(one.late(queue.terms, now) for one, _ in limits),
        "over limit": sum(one.over_limit for one, _ in limits),
        "failed": sum(one.state == "failed" for one, _ in limits),
        "stuck": len(stuck),
        "action": len({one.request_id for one in (*stuck, *alarmed, *(one for one, _ in limits if one.over_limit))}),
    }
    waiting = [when.begin for one, when in limits if one.state == "suppressed"]
    assert found.next_begin == min(waiting, default=None)
    assert {one.request_id for one in queue.due(now)} == {
        one.request_id for one, when in limits if one.state == "suppressed" and when.begin <= now
    }
    assert queue.suppressed() == {one.user for one in queue.subjects(ids)}


class TestWhoIsSuppressed:
    def test_is_followed_without_reading_everyone_again(self, queue, database, submit, clock, monkeypatch):
        submit("ann")
        assert queue.suppressed() == {"ann"}
        monkeypatch.setattr(type(database.subjects), "all", lambda *given: pytest.fail("read again"))
        first = submit("bob")
        submit("cat")
        assert queue.suppressed() == {"ann", "bob", "cat"}
        queue.advance(first.request_id, "withdrawn", "officer 1", clock())
        assert queue.suppressed() == {"ann", "cat"}

    def test_is_right_after_a_change_that_came_to_nothing(self, queue, database, submit, clock):
        taken = submit("ann")

        def fail(connection):
            queue.advance(taken.request_id, "withdrawn", "officer 1", clock())
            queue.suppressed()
            raise KeyError

        with pytest.raises(KeyError):
            database.change(fail)
        assert queue.suppressed() == {"ann"}

    def test_and_for_what_is_followed_when_a_request_joins(self, queue, database, submit, clock):
        other = Queue(database)
        submit("ann", ("a",))
        assert other.asked() == queue.asked() == Asked.of([Request("ann", ("a",))])
        submit("ann", ("b",))
        assert other.asked() == queue.asked() == Asked.of([Request("ann", ("a", "b"))])
        submit("ann")
        assert other.asked() == queue.asked() == Asked(frozenset({"ann"}))

    def test_is_known_to_another_queue_on_the_same_database(self, queue, database, submit):
        other = Queue(database)
        assert other.suppressed() == frozenset()
        submit("ann")
        assert other.suppressed() == {"ann"}


class TestUnderTheLease:
    @pytest.fixture
    def lease(self, database):
        taken = Lease(database, 60)
        assert taken.take()
        return taken

    def test_one_request_of_each_person_is_begun(self, queue, submit, lease, clock):
        some = submit(items=("a",))
        queue.advance(some.request_id, "erasing", "worker", clock())
        queue.advance(some.request_id, "failed", "worker", clock(), {"reason": "x", "retry_at": None})
        everything, other = submit(), submit("ann")
        ids = [some.request_id, everything.request_id, other.request_id]
        begun = queue.claim(lease, ids, "worker", clock(), {"batch": "1"})
        assert [one.request_id for one in begun] == [everything.request_id, other.request_id]
        assert [(one.user, one.items, one.state) for one in begun] == [
            (everything.request.user, None, "erasing"),
            ("ann", None, "erasing"),
        ]
        last = queue.history.get(other.request_id).events[-1]
        assert (last.state, last.facts) == ("erasing", {"requests": 2, "lease": lease.number, "batch": "1"})

    def test_what_was_taken_back_meanwhile_is_not_begun(self, queue, submit, lease, clock):
        taken = submit()
        queue.advance(taken.request_id, "on hold", "officer 1", clock())
        assert queue.claim(lease, [taken.request_id], "worker", clock(), {}) == []

    def test_nothing_is_begun_by_whoever_has_lost_it(self, queue, database, submit, lease, clock, other_process):
        taken = submit()
        lease.release()
        assert Lease(database, 60, other_process).take()
        with pytest.raises(LeaseLost):
            queue.claim(lease, [taken.request_id], "worker", clock(), {})
        assert queue.history.get(taken.request_id).state == "suppressed"


def test_all_that_names_who_is_erased_goes_at_once(queue, database, decisions, submit, clock):
    intake = Intake(database)
    taken, other = submit(), submit("ann")
    more = queue.submit(Request("bob", ("a",)), held=True, actor="officer 1", now=clock())
    decisions.hold(other.request_id, f"waits for {FAY}", "officer 1", clock())
    coming = [WaitingInteraction(FAY, "a"), WaitingInteraction("cat", "a")]
    database.change(lambda connection: database.waiting.add(connection, coming))
    queue.advance(taken.request_id, "erasing", "worker", clock())
    erased = [Request(FAY, None, taken.request_id), Request("bob", None, "0" * 32)]
    assert queue.forget_subjects(erased, "worker", clock()) == 1
    assert queue.history.get(taken.request_id).state == "certifying"
    assert (queue.history.get(more.request_id).state, queue.suppressed()) == ("rejected", {"ann"})
    assert queue.history.get(other.request_id).reason is None
    assert intake.count() == 1


def test_whether_a_request_could_be_taken_in_is_told(queue, monkeypatch):
    assert queue.is_writable()

    def full():
        raise DiskFull("the disk is full: free some space")

    monkeypatch.setattr(database_module, "before_commit", full)
    assert not queue.is_writable()


def test_who_waits_for_a_change_is_told_of_it(database, submit):
    database.wait(0)
    assert not database.wait(0.01)
    submit()
    assert database.wait(5)


def test_a_change_is_whole_or_nothing_of_it_is_there(queue, database, clock):
    def submit_and_fail(connection):
        queue.submit(Request(FAY), held=True, actor="officer 1", now=clock())
        raise KeyError

    with pytest.raises(KeyError):
        database.change(submit_and_fail)
    assert (queue.suppressed(), queue.history.counts(), queue.history.events(9)) == (frozenset(), {}, [])
