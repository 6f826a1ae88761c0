"""What somebody typed in lies beside who asked, and goes with it."""

import shlex

import pytest

from erasable.errors import ResidueFound
from erasable.operations import forget
from erasable.operations._vocabulary import own_vocabulary
from erasable.requests import Request
from erasable.requests.database import WaitingInteraction
from erasable.requests.request import NOT_KEPT
from erasable.scan import Target, scan_folder
from erasable.service.settings import ServiceSettings
from erasable.workspace.files import QUEUE_FILE

NEWCOMER = "newcomer-4711"


@pytest.fixture
def settings():
    return ServiceSettings(batch_window=0, learn_seconds=0)


@pytest.fixture
def file(shop):
    def ask(user, reference=None):
        return shop.reception.submit(Request(user), "officer 1", reference).request_id

    return ask


def content(folder):
    return b"".join(path.read_bytes() for path in folder.glob(f"{QUEUE_FILE}*"))


def test_a_reason_names_someone_who_comes_later_and_nothing_of_it_is_left_when_they_are_erased(
    shop, worker, file, folder
):
    """The false certificate: the queue's events held the id for good, and the scan did not find it."""
    held = file("ann")
    shop.reception.hold(held, "officer 1", f"wait for {NEWCOMER}")
    shop.reception.extend(held, "officer 1", f"because of {NEWCOMER}!")
    shop.intake.add([WaitingInteraction(NEWCOMER, "a", 5.0, None), WaitingInteraction(NEWCOMER, "b", 4.0, None)])
    assert worker.step()
    shop.reception.follow()
    assert shop.live.recommend(NEWCOMER, 1).ranked
    filing = file(NEWCOMER)
    while worker.step():
        pass
    assert shop.history.get(filing).state == "erased"
    assert NEWCOMER.encode() not in content(folder)
    assert scan_folder(folder, [Target(NEWCOMER)], own_vocabulary()).clean
    other = shop.history.get(held)
    assert (other.state, other.reason, other.extended) == ("on hold", None, NOT_KEPT)


@pytest.mark.parametrize("end", ["erased", "withdrawn"])
def test_what_was_typed_in_goes_with_who_asked(shop, worker, file, folder, end):
    request_id = file("ann", "case Unmistakable-1")
    shop.reception.extend(request_id, "officer 1", "Unmistakable-2 takes long")
    shop.reception.hold(request_id, "officer 1", "Unmistakable-3 asks")
    kept = shop.history.get(request_id)
    assert (kept.reference, kept.extended) == ("case Unmistakable-1", "Unmistakable-2 takes long")
    assert kept.reason == "Unmistakable-3 asks"
    if end == "erased":
        shop.decisions.release(request_id, "officer 1", shop.clock())
    else:
        shop.reception.withdraw(request_id, "officer 1", "Unmistakable-4 changed their mind")
    while worker.step():
        pass
    assert shop.history.get(request_id).state == end
    assert b"Unmistakable" not in content(folder)
    gone = shop.history.get(request_id)
    assert (gone.reference, gone.extended) == (None, NOT_KEPT)
    assert gone.deadlines(shop.settings).legal > kept.received


def test_the_reference_travels_with_what_is_accepted(shop, file):
    request_id = file("ann", "case 17")
    assert shop.queue.subjects([request_id])[0].reference == "case 17"
    assert file("ann", "case 18") == request_id
    assert shop.history.get(request_id).reference == "case 17"


def test_nothing_typed_in_is_kept_where_nothing_is_held(shop, folder):
    shop.reception.submit(Request("nobody"), "officer 1", "case Unmistakable")
    assert b"Unmistakable" not in content(folder)


def test_an_extension_once_the_data_is_gone_keeps_no_words(shop, file, clock):
    request_id = file("ann")
    for state in ("erasing", "certifying"):
        shop.queue.advance(request_id, state, "worker", clock())
    shop.reception.extend(request_id, "officer 1", "many systems")
    assert shop.history.get(request_id).extended == NOT_KEPT


def test_a_label_that_names_someone_is_found_and_the_remedy_works(shop, worker, file, clock, folder):
    number, _ = shop.tokens.create("officer", "fay-the-unmistakable", clock())
    request_id = file("fay-the-unmistakable")
    worker.step()
    failed = shop.history.get(request_id)
    assert failed.state == "failed"
    assert "erasable token rename" in failed.reason
    shop.tokens.rename(number, "desk 3", clock())
    shop.decisions.retry(request_id, "officer 1", clock())
    while worker.step():
        pass
    assert shop.history.get(request_id).state == "erased"
    assert b"fay-the-unmistakable" not in content(folder)


def test_a_command_that_finds_a_label_names_the_remedy(shop, clock):
    number, _ = shop.tokens.create("officer", "fay-the-unmistakable", clock())
    with pytest.raises(ResidueFound) as found:
        forget(shop.storage, [Request("fay-the-unmistakable")])
    place = shlex.quote(str(shop.storage.path))
    assert f"changed by erasable token rename {place} NUMBER LABEL" in str(found.value)
    assert f"erasable token list {place} shows" in str(found.value)
    shop.tokens.rename(number, "desk 3", clock())
    forget(shop.storage, [])
    with shop.storage.reading() as session:
        assert session.erasures == 1


def test_a_command_too_has_remarks_forgotten_that_name_the_person(shop, worker, file, folder):
    held = file("ann")
    shop.reception.hold(held, "officer 1", NEWCOMER)
    shop.intake.add([WaitingInteraction(NEWCOMER, "a", 5.0, None)])
    assert worker.step()
    worker.lease.release()
    forget(shop.storage, [Request(NEWCOMER)])
    assert NEWCOMER.encode() not in content(folder)
    with shop.storage.reading() as session:
        assert session.erasures == 1
