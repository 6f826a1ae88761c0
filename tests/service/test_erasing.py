"""Carrying out requests: due ones in a batch, exactly, certified, and failures tried again."""

import json
import sys
from datetime import timedelta

import pytest

from erasable.errors import DiskFull, UnknownUser, WorkspaceError
from erasable.operations import DiskStorage, certificates_of, erasure_records, forget, show, verify
from erasable.operations._vocabulary import own_vocabulary
from erasable.operations.claims import RequestClaims
from erasable.operations.scan import scan
from erasable.proof import Receipt
from erasable.requests import Request
from erasable.requests.database import WaitingInteraction
from erasable.requests.decisions import Decisions
from erasable.requests.queue import NOTHING_LEFT
from erasable.requests.schema import SCHEMA_WORDS
from erasable.requests.tokens import salt_of_code
from erasable.scan import Target, scan_folder
from erasable.service import _worker as erasing
from erasable.service.settings import ServiceSettings
from erasable.workspace.files import QUEUE_FILES
from kit.asking import accept
from kit.copies import copy_of

erase = sys.modules["erasable.operations.erase"]
FAY = "fay-the-unmistakable"


@pytest.fixture
def file(shop):
    def ask(user, items=None):
        return shop.reception.submit(Request(user, items), "application 1")

    return ask


def test_nothing_happens_before_it_is_due(shop, worker, file, clock):
    filing = file("ann")
    clock.pass_days(5.9)
    assert not worker.step()
    assert shop.history.get(filing.request_id).state == "suppressed"


def test_what_is_due_is_erased_and_certified(shop, worker, file, clock, folder):
    filing = file(FAY)
    clock.pass_days(6)
    assert worker.step()
    done = shop.history.get(filing.request_id)
    assert [event.name for event in done.events if event.actor == "worker"] == ["erasing", "certifying", "erased"]
    certificate = certificates_of(shop.storage, [filing.request_id])[filing.request_id]
    assert json.loads(certificate.content)["scan"]["residues"] == 0
    assert done.outcome["stages_total"] == 3
    record = erasure_records(shop.storage, [filing.request_id])[filing.request_id]
    assert done.outcome["kept"] == [step["kept"] for step in record["steps"]]
    assert done.outcome["stages_rerun"] == done.outcome["kept"].count(False)
    assert (done.outcome["cost"], done.outcome["duration"]) == (record["cost"], "< 10 minutes")
    assert verify(shop.storage).identical
    with pytest.raises(UnknownUser):
        show(shop.storage, FAY)


def test_the_certificate_opens_with_what_the_person_knows(shop, worker, file, clock):
    filing = file(FAY, ("a",))
    clock.pass_days(7)
    worker.step()
    certificate = certificates_of(shop.storage, [filing.request_id])[filing.request_id]
    salt = salt_of_code(filing.receipt_code)
    assert Receipt(request_id=filing.request_id, user_id=FAY, items=("a",), salt=salt).opens(certificate)
    assert not Receipt(request_id=filing.request_id, user_id="ann", items=("a",), salt=salt).opens(certificate)


def test_nothing_in_the_workspace_holds_the_person_not_even_the_ledger(worker, file, clock, folder):
    file(FAY)
    clock.pass_days(7)
    worker.step()
    scan = scan_folder(folder, [Target(FAY)], own_vocabulary())
    assert scan.clean
    assert scan.kinds["sqlite"] >= 1


@pytest.mark.full
@pytest.mark.parametrize(
    "user",
    [
        "suppressed",
        "application",
        "officer",
        "worker",
        "verifying",
        "certifying",
        "received",
        "7",
        "1",
        "21",
        "28",
        "terms",
    ],
)
def test_words_of_the_ledger_are_nobodys_name(worker, file, clock, folder, user):
    file("ann")
    clock.pass_days(7)
    worker.step()
    assert scan_folder(folder, [Target(user)], own_vocabulary()).clean


def test_the_bytes_are_those_of_forgetting_by_command(shop, worker, file, clock, served, tmp_path):
    by_command = DiskStorage(copy_of(served, tmp_path / "other"))
    forget(by_command, [Request("ann"), Request(FAY)])
    file("ann")
    file(FAY)
    clock.pass_days(7)
    worker.step()
    names = [
        sorted(path.name for path in storage.path.rglob("*.safetensors")) for storage in (shop.storage, by_command)
    ]
    assert names[0] == names[1]
    for name in names[0]:
        assert (shop.folder / "checkpoints" / name).read_bytes() == (
            by_command.path / "checkpoints" / name
        ).read_bytes()


def first_and_last(shop):
    """Return someone of the group that is trained first, and someone of the one that is trained last."""
    everyone = ("ann", "bob", "cat", "dan", "eve", FAY)
    return sorted(everyone, key=lambda user: shop.live.dataset.find(user)[0])[::5]


def test_who_has_asked_just_now_joins_no_batch_and_can_take_it_back(shop, worker, file, clock):
    first, late = first_and_last(shop)
    due = file(first)
    clock.pass_days(6.5)
    fresh = file(late)
    worker.step()
    assert shop.history.get(due.request_id).state == "erased"
    assert shop.history.get(fresh.request_id).state == "suppressed"
    shop.reception.withdraw(fresh.request_id, "officer 1", None)
    assert shop.history.get(fresh.request_id).state == "withdrawn"


def test_who_costs_hardly_anything_besides_joins_the_batch(shop, worker, file, clock):
    early, late = first_and_last(shop)
    first = file(early)
    clock.pass_days(3)
    second = file(late)
    clock.pass_days(4)
    worker.step()
    assert {shop.history.get(one.request_id).state for one in (first, second)} == {"erased"}


class TestAShortWindow:
    @pytest.fixture
    def settings(self):
        return ServiceSettings(batch_window=1)

    def test_who_has_waited_half_of_the_time_joins_and_a_later_one_does_not(self, shop, worker, file, clock):
        early, late = first_and_last(shop)
        first = file(early)
        clock.pass_days(8 / 24)
        second = file(late)
        clock.pass_days(2 / 24)
        third = file("cat" if "cat" not in (early, late) else "dan")
        clock.pass_days(8 / 24)  # the first is due after 18 hours; the second has waited 10, the third 8
        worker.step()
        states = [shop.history.get(one.request_id).state for one in (first, second, third)]
        assert states == ["erased", "erased", "suppressed"]


def test_who_would_cost_a_training_of_its_own_waits(shop, worker, file, clock):
    early, late = first_and_last(shop)
    first = file(late)
    clock.pass_days(3)
    second = file(early)
    clock.pass_days(4)
    worker.step()
    assert shop.history.get(first.request_id).state == "erased"
    assert shop.history.get(second.request_id).state == "suppressed"


def test_what_is_on_hold_waits_and_stays_suppressed(shop, worker, file, clock):
    filing = file("ann")
    shop.queue.advance(filing.request_id, "on hold", "officer 1", clock(), {"reason": "a court asks"})
    clock.pass_days(20)
    assert not worker.step()
    with pytest.raises(UnknownUser):
        shop.live.recommend("ann", 1)
    shop.queue.advance(filing.request_id, "suppressed", "officer 1", clock())
    assert worker.step()


def test_what_was_erased_by_another_way_is_rejected_with_the_reason(shop, worker, file, clock, folder):
    filing = file("ann")
    other = DiskStorage(copy_of(folder, folder.with_name("other")))
    with other.queue() as queue:
        Decisions(queue).withdraw(filing.request_id, None, "officer 1", clock())
    forget(other, [Request("ann")])
    copy_back(other.path, folder)
    clock.pass_days(7)
    assert worker.step()
    assert shop.history.get(filing.request_id).state == "rejected"
    assert shop.history.get(filing.request_id).reason == NOTHING_LEFT


def copy_back(source, folder):
    """Put a workspace in the place of another, whose queue stays."""
    for path in sorted(folder.rglob("*"), reverse=True):
        if path.is_file() and path.name not in QUEUE_FILES:
            path.unlink()
    for path in source.rglob("*"):
        if path.is_file() and path.name not in QUEUE_FILES:
            (folder / path.relative_to(source)).parent.mkdir(exist_ok=True)
            (folder / path.relative_to(source)).write_bytes(path.read_bytes())


@pytest.fixture
def full_disk(monkeypatch):
    """Let erasures fail for want of room until it is undone."""
    return failing(monkeypatch, DiskFull("the disk is full, says ann"))


@pytest.fixture
def faulty(monkeypatch):
    """Let erasures fail for another reason until it is undone."""
    return failing(monkeypatch, WorkspaceError("something is wrong, says ann"))


def failing(monkeypatch, error):
    def fail(*arguments, **settings):
        raise error

    monkeypatch.setattr(erasing, "erase", fail)
    return monkeypatch


def test_a_failure_is_tried_again_with_longer_and_longer_pauses_and_then_shown(shop, worker, file, clock, faulty):
    filing = file("ann")
    clock.pass_days(6)
    pauses = []
    worker.step()
    while (retry_at := shop.history.get(filing.request_id).retry_at) is not None:
        pauses.append((retry_at - clock()).total_seconds())
        clock.now = retry_at
        worker.step()
    assert pauses == [60, 240, 960, 3840, 15360]
    failed = shop.history.get(filing.request_id)
    assert (failed.state, failed.attempts) == ("failed", 6)
    assert "ann" not in failed.reason
    assert not worker.step()


def test_a_full_disk_is_looked_at_again_and_again_and_is_no_fault_of_the_request(shop, worker, file, clock, full_disk):
    filing = file("ann")
    clock.pass_days(6)
    for _ in range(10):
        worker.step()
        failed = shop.history.get(filing.request_id)
        assert (failed.state, failed.attempts, failed.reason) == ("failed", 0, "the disk is full: free some space")
        assert (failed.retry_at - clock()).total_seconds() == 60
        clock.now = failed.retry_at
    full_disk.undo()
    assert worker.step()
    assert shop.history.get(filing.request_id).state == "erased"


def test_what_failed_is_done_once_it_can_be(shop, worker, file, clock, full_disk):
    filing = file("ann")
    clock.pass_days(6)
    worker.step()
    full_disk.undo()
    assert not worker.step()
    shop.decisions.retry(filing.request_id, "officer 1", clock())
    assert worker.step()
    assert shop.history.get(filing.request_id).state == "erased"


def test_a_residue_keeps_it_from_being_certified_until_it_is_removed(shop, worker, file, clock, folder):
    filing = file(FAY)
    (folder / "notes.txt").write_text(f"called {FAY}")
    clock.pass_days(7)
    worker.step()
    failed = shop.history.get(filing.request_id)
    assert failed.state == "failed"
    assert "still holds the person" in failed.reason
    assert FAY not in failed.reason
    (folder / "notes.txt").unlink()
    shop.decisions.retry(filing.request_id, "officer 1", clock())
    worker.step()
    assert shop.history.get(filing.request_id).state == "erased"
    assert list(certificates_of(shop.storage, [filing.request_id])) == [filing.request_id]


def test_another_command_at_work_is_waited_for(shop, worker, file, clock):
    filing = file("ann")
    clock.pass_days(7)
    with shop.storage.writing():
        assert not worker.step()
    assert shop.history.get(filing.request_id).attempts == 0
    assert worker.step()
    assert shop.history.get(filing.request_id).state == "erased"


def test_what_ends_workers_again_and_again_is_set_aside(shop, worker, file, clock, monkeypatch, settings):
    filing = file("ann")
    clock.pass_days(7)

    def kill(*arguments, **given):
        raise KeyboardInterrupt

    monkeypatch.setattr(erasing, "erase", kill)
    for _ in range(settings.attempts + 1):
        with pytest.raises(KeyboardInterrupt):
            worker.step()
        worker.lease.release()  # the next one is another worker
    worker.step()
    assert shop.history.get(filing.request_id).state == "failed"
    assert shop.history.get(filing.request_id).retry_at is None


def test_what_was_learned_elsewhere_is_trained_again_here(shop, worker, file, clock, monkeypatch):
    filing = file("ann")
    monkeypatch.setattr(erasing, "made_elsewhere", lambda state: True)
    clock.pass_days(7)
    worker.step()
    assert shop.history.get(filing.request_id).outcome["stages_rerun"] == 3


def test_interactions_that_come_while_it_is_searched_do_not_keep_it_from_being_certified(
    shop, worker, file, clock, folder
):
    filing = file(FAY)
    (folder / "notes.txt").write_text(f"called {FAY}")
    clock.pass_days(7)
    worker.step()
    shop.reception.follow()
    assert shop.intake.add([WaitingInteraction(FAY, "a", 5.0, None)], leaving=shop.live.served.suppressed) == 0
    (folder / "notes.txt").unlink()
    shop.decisions.retry(filing.request_id, "officer 1", clock())
    worker.step()
    assert shop.history.get(filing.request_id).state == "erased"


def test_a_damaged_workspace_fails_the_request_and_ends_no_worker(shop, worker, file, clock, folder):
    filing = file("ann")
    for damaged in (folder / "data").glob("*.parquet"):
        damaged.write_bytes(damaged.read_bytes()[:-9])
    clock.pass_days(7)
    worker.step()
    assert shop.history.get(filing.request_id).state == "failed"
    assert "damaged" in shop.history.get(filing.request_id).reason


def test_what_was_certified_and_not_written_down_catches_up(shop, worker, file, clock, monkeypatch):
    """As after a kill, or with a queue that was put back: the certificate is there, and the queue does not know it."""
    filing = file("ann")
    clock.pass_days(7)
    with monkeypatch.context() as patch:
        patch.setattr(RequestClaims, "end", lambda *_: None)
        worker.step()
    assert shop.history.get(filing.request_id).state == "certifying"
    assert certificates_in(shop.folder)
    worker.step()
    done = shop.history.get(filing.request_id)
    assert (done.state, done.outcome["stages_total"]) == ("erased", 3)


def test_what_can_not_be_certified_keeps_nobody_else_waiting(shop, worker, file, clock, folder):
    first = file(FAY)
    (folder / "notes.txt").write_text(f"called {FAY}")
    clock.pass_days(7)
    worker.step()
    second = file("ann")
    clock.pass_days(7)
    while worker.step():
        pass
    assert shop.history.get(second.request_id).state == "erased"
    assert shop.history.get(first.request_id).state == "failed"
    (folder / "notes.txt").unlink()
    shop.decisions.retry(first.request_id, "officer 1", clock())
    while worker.step():
        pass
    assert shop.history.counts() == {"erased": 2}


def test_no_name_of_the_ledgers_own_is_taken_for_a_person(worker, file, clock, folder):
    file("ann")
    clock.pass_days(7)
    worker.step()
    assert scan_folder(folder, [Target(word) for word in sorted(SCHEMA_WORDS)], own_vocabulary()).residues == ()


def test_reasons_of_ours_are_written_down_whoever_is_called_like_a_word_of_them(shop, worker, clock, full_disk):
    shop.intake.add([WaitingInteraction("disk", "a", 5.0, None)])
    filing = shop.reception.submit(Request("disk"), "application 1")
    clock.pass_days(7)
    worker.step()
    assert shop.history.get(filing.request_id).state == "failed"


def test_what_waits_to_be_learned_goes_when_a_command_forgets_the_person(shop, worker, folder):
    shop.intake.add([WaitingInteraction(FAY, "b", 5.0, None)])
    worker.lease.release()
    forget(shop.storage, [Request(FAY)])
    assert shop.intake.count() == 0
    with shop.storage.reading() as session:
        assert session.erasures == 1
    assert scan_folder(folder, [Target(FAY)], own_vocabulary()).clean


def test_who_takes_a_request_back_while_the_batch_is_chosen_is_left_out(shop, worker, file, clock, monkeypatch):
    early, late = first_and_last(shop)
    first = file(early)
    clock.pass_days(3)
    second = file(late)
    clock.pass_days(4)
    chosen = erase.joined_cheaply

    def withdraw_meanwhile(*arguments):
        found = chosen(*arguments)
        shop.reception.withdraw(second.request_id, "officer 1", "just in time")
        return found

    monkeypatch.setattr(erase, "joined_cheaply", withdraw_meanwhile)
    worker.step()
    assert [shop.history.get(one.request_id).state for one in (first, second)] == ["erased", "withdrawn"]
    assert show(shop.storage, late).interactions


def test_what_came_to_nothing_together_is_tried_apart(shop, worker, file, clock, monkeypatch):
    """One of two ends every worker that carries it out; the other is erased all the same."""
    bad, good = file("ann"), file("bob")
    clock.pass_days(7)
    whole = erase.held_of

    def end_the_worker(people, *given):
        if any(one.user == "ann" for one in people):
            raise KeyboardInterrupt
        return whole(people, *given)

    monkeypatch.setattr(erase, "held_of", end_the_worker)
    for _ in range(12):
        try:
            worker.step()
        except KeyboardInterrupt:
            worker.lease.release()
    assert shop.history.get(good.request_id).state == "erased"
    assert shop.history.get(bad.request_id).state == "failed"


@pytest.mark.parametrize(
    "called",
    [
        lambda shop, filing: filing.request_id,
        lambda shop, filing: shop.tokens.create("officer", "", shop.clock())[0],
        lambda shop, filing: shop.clock().isoformat(),
        lambda shop, filing: "events are never changed",
        lambda shop, filing: "CREATE TABLE",
        lambda shop, filing: "sqlite_autoindex_receipts_1",
    ],
    ids=["a request", "a token", "a time", "a message", "a statement", "an index"],
)
def test_who_is_called_like_something_in_the_ledger_is_erased_and_certified(shop, worker, file, clock, called):
    name = called(shop, file("ann"))
    shop.intake.add([WaitingInteraction(name, "a", 5.0, None), WaitingInteraction(name, "b", 4.0, None)])
    worker.lease.take()
    worker._learn()
    filing = file(name)
    clock.pass_days(7)
    while worker.step():
        pass
    assert shop.history.get(filing.request_id).state == "erased"


def test_a_person_who_stands_where_people_do_is_found_whatever_the_name(shop, folder, file):
    name = file("ann").request_id
    shop.intake.add([WaitingInteraction(name, "a", 5.0, None)])
    shop.database.wipe()
    assert not scan_folder(folder, [Target(name)], own_vocabulary()).clean


def test_two_requests_of_one_person_end_with_a_certificate_for_everything(shop, worker, file, clock, full_disk):
    some = file(FAY, ("a",))
    clock.pass_days(7)
    worker.step()
    everything = file(FAY)
    full_disk.undo()
    shop.decisions.retry(some.request_id, "officer 1", clock())
    clock.pass_days(7)
    while worker.step():
        pass
    assert shop.history.get(everything.request_id).state == "erased"
    assert shop.history.get(some.request_id).state in ("erased", "rejected")


def test_nothing_else_uses_up_the_attempts_of_what_failed(shop, worker, file, clock, folder):
    filing = file(FAY)
    (folder / "notes.txt").write_text(f"called {FAY}")
    clock.pass_days(7)
    for user in ("ann", "bob"):
        worker.step()
        file(user)
        clock.now += timedelta(seconds=5)
    assert shop.history.get(filing.request_id).attempts == 1


def test_what_a_command_has_finished_is_written_down(shop, worker, file, clock, folder):
    filing = file(FAY)
    (folder / "notes.txt").write_text(f"called {FAY}")
    clock.pass_days(7)
    worker.step()
    (folder / "notes.txt").unlink()
    forget(shop.storage, [])
    worker.step()
    assert shop.history.get(filing.request_id).state == "erased"


def test_what_a_command_has_begun_is_not_taken_back_for_a_request_that_keeps_failing(shop, worker, file, clock, faulty):
    filing = file("ann")
    clock.pass_days(7)
    worker.step()
    clock.pass_days(1)
    worker.step()
    assert shop.history.get(filing.request_id).attempts == 2
    accept(shop.storage, Request("bob"))
    faulty.undo()
    clock.pass_days(1)
    while worker.step():
        pass
    assert shop.history.get(filing.request_id).state == "erased"
    with pytest.raises(UnknownUser):
        show(shop.storage, "bob")
    with shop.storage.reading() as session:
        assert session.erasures == 2


def test_an_id_in_an_old_event_keeps_a_newcomer_from_being_certified(shop, worker, file, clock, folder):
    """What someone typed in may name a person who comes only later; the whole text is nobody's longer id."""
    shop.queue.note(None, "noted", "officer 1", clock(), {"remark": "newcomer-4711"})
    shop.intake.add([WaitingInteraction("newcomer-4711", item, 4.0, None) for item in "abc"])
    clock.pass_days(1)
    while worker.step():
        pass
    assert show(shop.storage, "newcomer-4711").interactions
    filing = file("newcomer-4711")
    clock.pass_days(7)
    worker.step()
    assert shop.history.get(filing.request_id).state == "failed"
    found = scan(folder, "newcomer-4711").residues
    assert {"ledger.sqlite"} <= {residue.file for residue in found}


def test_those_who_wait_in_the_ledger_are_not_taken_for_others(shop):
    shop.intake.add([WaitingInteraction(FAY + "-2", "gift-for-" + FAY, 4.0, None)])
    forget(shop.storage, [Request(FAY)])
    assert len(certificates_in(shop.folder)) == 1


def certificates_in(folder):
    return list((folder / "certificates").glob("*.json"))


def test_how_far_the_search_is_is_shown_and_moves(shop, worker, file, clock, client, monkeypatch):
    monkeypatch.setattr("erasable.requests.lease._SECONDS_BETWEEN", 0)
    request_id = file(FAY).request_id
    operator, seen = client("operator"), []
    search = sys.modules["erasable.scan._folder"].search_file

    def watched(*given):
        found = operator.get("/v1/status").json()
        if found["doing"] == "scanning":
            seen.append(found["progress"])
        return search(*given)

    monkeypatch.setattr("erasable.scan._folder.search_file", watched)
    clock.pass_days(8)
    while worker.step():
        pass
    assert shop.history.get(request_id).state == "erased"
    moved = seen[: seen.index(max(seen)) + 1]
    assert moved == sorted(moved)
    assert len(set(moved)) > 5
    assert operator.get("/v1/status").json()["progress"] is None
