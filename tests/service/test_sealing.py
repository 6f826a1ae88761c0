"""Requests that have ended are sealed; whoever asks for them gets the same bytes as before."""

import shutil

import pytest

from erasable.errors import WorkspaceDamaged
from erasable.operations import DiskStorage, scan, verify
from erasable.requests import Request, queue
from erasable.requests.queue import Queue
from erasable.requests.sqlite import SqliteDatabase
from erasable.service._service import Service
from erasable.service.settings import ServiceSettings
from erasable.workspace.files import QUEUE_FILE, QUEUE_FILES

PEOPLE = ("ann", "bob", "cat", "dan", "eve")


@pytest.fixture
def settings():
    return ServiceSettings(batch_window=0, daily_share=1)


@pytest.fixture(autouse=True)
def few(monkeypatch):
    """Seal more than three."""
    monkeypatch.setattr(queue, "OPEN_REQUESTS", 3)


@pytest.fixture
def ended(shop, worker, monkeypatch):
    """Five people who are erased, one who took it back, and many for whom nothing was held; none is sealed yet."""
    monkeypatch.setattr(queue, "OPEN_REQUESTS", 10_000)
    filings = [shop.reception.submit(Request(user), "someone") for user in PEOPLE]
    taken_back = shop.reception.submit(Request("fay-the-unmistakable"), "someone")
    shop.reception.withdraw(taken_back.request_id, "someone", None)
    while worker.step():
        pass
    filings += [shop.reception.submit(Request(f"nobody-{number}"), "someone") for number in range(200)]
    shop.queue.note(None, "learned more", "worker", shop.clock(), {"users": 1, "interactions": 1})
    monkeypatch.setattr(queue, "OPEN_REQUESTS", 3)
    return [*filings, taken_back]


def seal(worker):
    worker._look_again = 0
    while worker.step():
        pass


def sealed_files(folder):
    return [*folder.glob("sealed/requests-*.sqlite")]


def answers(client, filings):
    """Return what is told of requests, in all ways there are."""
    officer = client("officer")
    ids = [filing.request_id for filing in filings]
    pages = ["/v1/erasure-requests?limit=7", "/v1/erasure-requests?state=erased", "/requests", "/requests?page=3"]
    pages += ["/requests.csv", "/requests.csv?state=withdrawn", "/requests?only=late", f"/requests?text={ids[1]}"]
    pages += [f"/v1/erasure-requests/{request_id}" for request_id in ids[:12]]
    pages += [f"/requests/{request_id}" for request_id in (*ids[:6], ids[-1])]
    pages += [f"/receipt?code={filings[0].receipt_code}"]
    told = {page: officer.get(page) for page in pages}
    assert {answer.status_code for answer in told.values()} <= {200}, {p: a.status_code for p, a in told.items()}
    return {page: answer.content for page, answer in told.items()}


def kept(shop, filings):
    """Return what the queue adds up to."""
    codes = [shop.history.submission(filing.receipt_code).request for filing in filings]
    since = shop.clock().replace(year=2000)
    counted = shop.history.submitted_since("someone", since)
    return (shop.history.counts(), shop.history.events(10_000), shop.history.last_erased(), codes, counted)


def in_tables(shop):
    statement = "SELECT count(*) AS total FROM current_states"
    return shop.database.read(lambda connection: connection.execute(statement))[0]["total"]


def test_what_is_told_of_requests_is_the_same_once_they_are_sealed(shop, worker, folder, client, ended):
    told, known = answers(client, ended), kept(shop, ended)
    assert in_tables(shop) == 206
    seal(worker)
    assert in_tables(shop) == 0
    assert len(sealed_files(folder)) == 1
    assert kept(shop, ended) == known
    assert answers(client, ended) == told


def test_one_who_has_ended_stays_ended(client, worker, ended):
    seal(worker)
    officer, request_id = client("officer"), ended[0].request_id
    refused = officer.post(f"/v1/erasure-requests/{request_id}/withdraw", json={})
    assert refused.status_code == 409
    assert "erased can't become withdrawn" in refused.text
    assert officer.get(f"/v1/erasure-requests/{0:032x}").status_code == 404


def test_a_person_can_ask_again_later(shop, worker, ended):
    seal(worker)
    numbers = [event.number for event in shop.history.events(10_000)]
    again = shop.reception.submit(Request("fay-the-unmistakable"), "someone")
    assert not again.joined
    while worker.step():
        pass
    assert shop.history.get(again.request_id).state == "erased"
    later = [event.number for event in shop.history.events(10_000)]
    assert later[-len(numbers) :] == numbers
    assert len({*later}) == len(later)


def test_the_newest_event_stays_so_that_no_number_comes_twice(shop, worker, ended):
    last = shop.reception.submit(Request("nobody at all"), "someone")
    seal(worker)
    assert in_tables(shop) == 1
    assert shop.history.get(last.request_id).state == "rejected"
    newest = shop.history.events(1)[0].number
    other = shop.reception.submit(Request("nobody else"), "someone")
    assert shop.history.get(other.request_id).events[0].number == newest + 1


def test_a_few_are_not_sealed(shop, worker, folder):
    for number in range(4):
        shop.reception.submit(Request(f"nobody-{number}"), "someone")
    seal(worker)
    assert sealed_files(folder) == []


def test_those_who_were_sealed_and_not_deleted_are_deleted_by_the_next_worker(shop, worker, folder, ended, monkeypatch):
    known = kept(shop, ended)
    monkeypatch.setattr(worker.database, "delete_sealed", lambda: None)
    assert worker.step()
    assert in_tables(shop) == 206
    assert kept(shop, ended) == known
    monkeypatch.undo()
    seal(worker)
    assert in_tables(shop) == 0
    assert kept(shop, ended) == known


def test_an_older_queue_that_was_put_back_catches_up(shop, worker, folder, ended, swift_path, monkeypatch):
    monkeypatch.setattr(queue, "OPEN_REQUESTS", 0)
    waiting = shop.reception.submit(Request("fay-the-unmistakable"), "someone")
    shop.database.cut_log()
    older = shutil.copy(folder / QUEUE_FILE, swift_path / QUEUE_FILE)
    seal(worker)
    shop.queue.note(None, "learned more", "worker", shop.clock())
    seal(worker)
    assert in_tables(shop) == 0
    for database in (worker.database, shop.database):
        database.close()
    for name in QUEUE_FILES:
        (folder / name).unlink(missing_ok=True)
    shutil.copy(older, folder / QUEUE_FILE)
    back = Service.open(folder, shop.settings, shop.clock)
    assert back.history.counts()["erased"] == 6
    again = type(worker)(worker.options)
    seal(again)
    assert back.queue.suppressed() == set()
    assert back.history.get(waiting.request_id).state == "erased"
    filings = [back.reception.submit(Request(f"nobody-{number}"), "someone") for number in range(5)]
    back.queue.note(None, "learned more", "worker", shop.clock())
    seal(again)
    assert in_tables(back) == 0
    assert {back.history.get(one.request_id).state for one in filings} == {"rejected"}
    numbers = [event.number for event in back.history.events(10_000)]
    assert len({*numbers}) == len(numbers)
    again.database.close()
    back.database.close()


def test_a_whole_scan_searches_what_is_sealed_and_finds_nobody(worker, folder, ended):
    seal(worker)
    assert all(not scan(folder, user).residues for user in PEOPLE)
    assert verify(DiskStorage(folder)).identical


def test_a_whole_scan_finds_whoever_is_named_in_what_is_sealed(shop, worker, folder, ended):
    facts = {"reason": "this is about somebody-in-particular"}
    shop.queue.note(ended[0].request_id, "retry asked", "someone", shop.clock(), facts)
    shop.queue.note(None, "learned more", "worker", shop.clock())
    seal(worker)
    (file,) = sealed_files(folder)
    found = scan(folder, "somebody-in-particular").residues
    assert {residue.file for residue in found} == {f"sealed/{file.name}"}


def test_a_changed_byte_is_noticed_and_open_requests_are_still_carried_out(shop, worker, folder, ended, client):
    seal(worker)
    (file,) = sealed_files(folder)
    content = bytearray(file.read_bytes())
    content[len(content) // 2] ^= 1
    file.write_bytes(content)
    again = shop.reception.submit(Request("fay-the-unmistakable"), "someone")
    opened = SqliteDatabase.open(folder)
    assert [one.state for one in Queue(opened).history.open_requests()] == ["suppressed"]
    with pytest.raises(WorkspaceDamaged, match=f"{file.name} is damaged"):
        Queue(opened).history.counts()
    opened.close()
    assert not verify(DiskStorage(folder)).identical
    worker.database.close()
    after = type(worker)(worker.options)
    while after.step():
        pass
    assert Queue(after.database).history.some([again.request_id])[0].state == "erased"
    after.database.close()
