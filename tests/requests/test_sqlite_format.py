"""A ledger of an earlier version is brought forward by numbered steps, once, and nothing of what went is left."""

import json
import os
import shutil
import sqlite3
import subprocess
import sys
import threading
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from erasable.errors import SuppressionUnknown, WorkspaceBusy, WorkspaceDamaged, WorkspaceError
from erasable.requests import database as database_module
from erasable.requests._sqlite_file import create_file, explained, people_in_file
from erasable.requests.queue import Queue
from erasable.requests.request import KeptTerms
from erasable.requests.schema import FORMAT
from erasable.requests.sqlite import SqliteDatabase
from erasable.workspace.files import QUEUE_FILE

FIRST = (Path(__file__).parent / "ledger_of_0_1.sql").read_text()
OPEN, ENDED, VERIFYING = "a" * 32, "b" * 32, "c" * 32
FAY = "fay-the-unmistakable"


@pytest.fixture
def old(swift_path):
    """A ledger as 0.1 wrote it: a held request, one that was taken back, and one whose data is gone."""
    connection = sqlite3.connect(swift_path / QUEUE_FILE)
    connection.execute("PRAGMA journal_mode = WAL")
    connection.executescript(FIRST)
    connection.execute("PRAGMA user_version = 1")
    for request_id, name, status, actor, facts in (
        (OPEN, "received", "received", "application 1", {"scope": "all data of one person"}),
        (OPEN, "accepted", "accepted", "application 1", {}),
        (OPEN, "suppressed", "suppressed", "service", {}),
        (OPEN, "extended", None, "officer 2", {"reason": "many systems hold newcomer-4711"}),
        (OPEN, "on hold", "on hold", "officer 2", {"reason": "waits for newcomer-4712"}),
        (ENDED, "received", "received", "officer 2", {"scope": "all data of one person"}),
        (ENDED, "accepted", "accepted", "officer 2", {}),
        (ENDED, "withdrawn", "withdrawn", "officer 2", {"reason": "a mistake of newcomer-4713"}),
        (VERIFYING, "received", "received", "officer 2", {"scope": "all data of one person"}),
        (VERIFYING, "on hold", "on hold", "officer 2", {"reason": "because of newcomer-4714"}),
        (VERIFYING, "failed", "failed", "worker", {"reason": "the disk is full", "retry_at": None}),
        ("d" * 32, "received", "received", "officer 2", {"scope": "all data of one person"}),
        ("d" * 32, "rejected", "rejected", "officer 2", {"reason": "nothing is held of what was asked for"}),
        (None, "token created", None, "command", {"token": "1", "role": "officer"}),
    ):
        connection.execute(
            "INSERT INTO events (request_id, event_time, event_name, status, actor_name, facts) VALUES (?,?,?,?,?,?)",
            (request_id, "2026-03-09T12:00:00+00:00", name, status, actor, json.dumps(facts)),
        )
    connection.execute("INSERT INTO open_requests VALUES (?, ?, NULL, 'code')", (OPEN, FAY))
    connection.execute("INSERT INTO open_requests VALUES (?, NULL, NULL, NULL)", (VERIFYING,))
    connection.commit()
    connection.close()
    return swift_path


def rows(folder, query):
    with sqlite3.connect(folder / QUEUE_FILE) as connection:
        return connection.execute(query).fetchall()


def content(folder):
    return b"".join(path.read_bytes() for path in folder.glob(f"{QUEUE_FILE}*"))


def test_reasons_go_beside_who_asked_or_are_destroyed_with_them(old):
    before = rows(old, "SELECT event_number, request_id, event_time, event_name, status, actor_name FROM events")
    states = rows(old, "SELECT * FROM current_states ORDER BY request_id")
    SqliteDatabase.open(old).close()
    query = "SELECT event_number, request_id, event_time, event_name, status, actor_name FROM events"
    assert rows(old, query) == before
    assert rows(old, "SELECT * FROM current_states ORDER BY request_id") == states
    remarks = {row[0]: json.loads(row[2]) for row in rows(old, "SELECT * FROM remarks")}
    assert remarks == {
        4: {"reason": "many systems hold newcomer-4711"},
        5: {"reason": "waits for newcomer-4712"},
    }
    assert not [facts for (facts,) in rows(old, "SELECT facts FROM events") if "newcomer" in facts]
    ours = [json.loads(facts).get("reason") for (facts,) in rows(old, "SELECT facts FROM events")]
    assert [reason for reason in ours if reason] == ["the disk is full", "nothing is held of what was asked for"]


def test_nothing_of_what_is_destroyed_is_left_in_any_file(old):
    assert b"newcomer-4713" in content(old)
    SqliteDatabase.open(old).close()
    left = content(old)
    assert b"newcomer-4711" in left
    assert b"newcomer-4713" not in left
    assert b"newcomer-4714" not in left
    assert left.count(b"newcomer-4712") == 1


def test_events_can_not_be_changed_afterwards(old):
    opened = SqliteDatabase.open(old)
    for statement in ("UPDATE events SET event_name = 'x'", "DELETE FROM events"):
        with pytest.raises(sqlite3.IntegrityError, match="never"):
            opened.change(lambda connection, said=statement: connection.execute(said))
    opened.close()


def test_a_ledger_that_was_brought_forward_has_the_tables_of_a_new_one(old, tmp_path):
    SqliteDatabase.open(old).close()
    SqliteDatabase.open(tmp_path).close()
    query = "SELECT type, name, tbl_name, replace(sql, 'IF NOT EXISTS ', '') FROM sqlite_master ORDER BY name"
    assert rows(old, query) == rows(tmp_path, query)
    assert rows(old, "PRAGMA user_version") == [(FORMAT,)]


class Stopped(Exception):
    """Stands for a kill."""


@pytest.mark.parametrize("change", [1, 2])
def test_whoever_is_stopped_in_between_begins_again(old, monkeypatch, change):
    seen = []

    def stop():
        seen.append(1)
        if len(seen) == change:
            raise Stopped

    monkeypatch.setattr(database_module, "before_commit", stop)
    with pytest.raises(Stopped):
        SqliteDatabase.open(old)
    assert rows(old, "PRAGMA user_version") == [(1,)]
    assert people_in_file(old).people == {FAY}
    monkeypatch.setattr(database_module, "before_commit", lambda: None)
    SqliteDatabase.open(old).close()
    assert rows(old, "PRAGMA user_version") == [(FORMAT,)]
    assert len(rows(old, "SELECT * FROM remarks")) == 2
    assert b"newcomer-4713" not in content(old)


def test_what_could_not_be_wiped_is_wiped_by_the_next(old, monkeypatch):
    with monkeypatch.context() as context:
        context.setattr(SqliteDatabase, "wipe", lambda database: (_ for _ in ()).throw(WorkspaceBusy("in use")))
        with pytest.raises(WorkspaceBusy):
            SqliteDatabase.open(old)
    SqliteDatabase.open(old).close()
    assert b"newcomer-4713" not in content(old)


def test_several_that_open_it_at_once_bring_it_forward_once(old):
    opened, faults = [], []

    def open_it():
        try:
            opened.append(SqliteDatabase.open(old))
        except Exception as error:
            faults.append(error)

    threads = [threading.Thread(target=open_it) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert faults == []
    for one in opened:
        one.close()
    assert len(rows(old, "SELECT * FROM remarks")) == 2
    assert b"newcomer-4713" not in content(old)


def test_open_requests_of_before_get_the_terms_of_today_for_good(old):
    opened = SqliteDatabase.open(old)
    now = datetime(2026, 3, 20, tzinfo=UTC)
    for window in (3, 9):
        Queue(opened, KeptTerms(batch_window=window)).migrate(now)
    queue = Queue(opened)
    found = queue.history.get(OPEN)
    assert [event.name for event in found.events].count("deadlines set") == 1
    assert found.deadlines(queue.terms).erase_by == found.received + timedelta(days=3)
    assert (found.state, found.when("suppressed")) == ("on hold", found.received)
    totals = queue.history.totals(now)
    assert (totals.urgent["open"], totals.urgent["stuck"]) == (2, 1)
    assert totals.next_legal == datetime(2026, 4, 9, 23, 59, 59, tzinfo=UTC)  # the other one was extended
    opened.close()


def test_states_of_before_have_the_names_of_today(old):
    with sqlite3.connect(old / QUEUE_FILE) as connection:
        for request_id, names in (
            ("e" * 32, ("received", "accepted")),
            ("f" * 32, ("received", "erasing", "verifying")),
        ):
            connection.executemany(
                "INSERT INTO events (request_id, event_time, event_name, status, actor_name, facts) "
                "VALUES (?, '2026-03-09T12:00:00+00:00', ?, ?, 'service', '{}')",
                [(request_id, name, name) for name in names],
            )
    opened = SqliteDatabase.open(old)
    history = Queue(opened).history
    assert [history.get(one * 32).state for one in "ef"] == ["suppressed", "certifying"]
    assert {one.request_id for one in history.in_states(["suppressed", "certifying"])} == {"e" * 32, "f" * 32}
    opened.close()


class TestWhoAsked:
    def test_is_read_from_a_ledger_of_0_1_without_changing_it(self, old):
        before = rows(old, "SELECT * FROM sqlite_master")
        assert people_in_file(old).people == {FAY}
        assert rows(old, "SELECT * FROM sqlite_master") == before
        assert rows(old, "PRAGMA user_version") == [(1,)]

    def test_is_not_guessed_where_the_ledger_has_a_newer_format(self, old):
        with sqlite3.connect(old / QUEUE_FILE) as connection:
            connection.execute("PRAGMA user_version = 99")
        with pytest.raises(SuppressionUnknown, match=r"format 99.*nobody is served"):
            people_in_file(old)
        with pytest.raises(WorkspaceError, match=r"format 99.*later"):
            SqliteDatabase.open(old)

    def test_is_not_guessed_where_the_number_of_the_format_can_be_none(self, old):
        with sqlite3.connect(old / QUEUE_FILE) as connection:
            connection.execute("PRAGMA user_version = -1")
        with pytest.raises(SuppressionUnknown, match=r"no queue of ours, .*nobody is served"):
            people_in_file(old)
        with pytest.raises(WorkspaceError, match="no queue of ours: put the right one in its place"):
            SqliteDatabase.open(old)

    def test_a_ledger_whose_events_can_not_be_read_is_damaged(self, old):
        with sqlite3.connect(old / QUEUE_FILE) as connection:
            connection.execute("INSERT INTO events VALUES (99, 'a', '', '', NULL, 'officer 2', 'no JSON')")
        with pytest.raises(WorkspaceDamaged, match="restore it from a copy"):
            SqliteDatabase.open(old)

    def test_is_not_guessed_where_the_file_is_no_ledger(self, swift_path):
        (swift_path / QUEUE_FILE).write_bytes(b"not a database, and longer than a header of a hundred bytes" * 5)
        with pytest.raises(WorkspaceDamaged):
            people_in_file(swift_path)

    def test_is_not_guessed_where_the_file_is_another_database(self, swift_path):
        with sqlite3.connect(swift_path / QUEUE_FILE) as connection:
            connection.execute("CREATE TABLE something (other TEXT)")
        with pytest.raises(SuppressionUnknown, match="no queue of ours"):
            people_in_file(swift_path)

    def test_is_nobody_where_there_is_no_ledger(self, swift_path):
        assert people_in_file(swift_path).people == frozenset()

    @pytest.mark.parametrize("lost", ["emptied", "a link that leads nowhere", "gone without its log"])
    def test_is_not_guessed_where_the_ledger_was_lost(self, swift_path, lost):
        if lost == "emptied":
            (swift_path / QUEUE_FILE).touch()
        elif lost == "gone without its log":
            (swift_path / f"{QUEUE_FILE}-wal").write_bytes(b"left")
        else:
            (swift_path / QUEUE_FILE).symlink_to(swift_path / "nowhere")
        with pytest.raises(SuppressionUnknown, match="nobody is served: restore it"):
            people_in_file(swift_path)


ASK = """
import os, sys
from pathlib import Path
from erasable.errors import SuppressionUnknown
from erasable.requests._sqlite_file import people_in_file
os.setgid(65534), os.setuid(65534)
try:
    print(sorted(people_in_file(Path(sys.argv[1])).people))
except SuppressionUnknown as error:
    print("unknown", error)
"""


@pytest.mark.skipif(os.getuid() != 0, reason="only root can become another user")
class TestAnotherUser:
    """Someone else than the owner of the workspace asks who is suppressed."""

    @pytest.fixture
    def shop(self, old):
        """The folder where another user can reach it."""
        folder = Path("/tmp") / f"ledger-of-another-{os.getpid()}"
        shutil.copytree(old, folder)
        folder.chmod(0o755)
        yield folder
        shutil.rmtree(folder)

    def asked(self, folder):
        done = subprocess.run([sys.executable, "-P", "-c", ASK, str(folder)], capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        return done.stdout.strip()

    @pytest.mark.full
    def test_who_may_not_read_it_is_told_so(self, shop):
        (shop / QUEUE_FILE).chmod(0o600)
        assert self.asked(shop).startswith("unknown")
        assert "may not be read" in self.asked(shop)

    @pytest.mark.full
    def test_who_may_read_and_not_write_is_told_who_asked(self, shop):
        (shop / QUEUE_FILE).chmod(0o644)
        assert self.asked(shop) == str([FAY])

    @pytest.mark.full
    def test_so_it_is_while_the_ledger_is_in_use_and_its_log_is_not_put_in_yet(self, shop):
        (shop / QUEUE_FILE).chmod(0o644)
        opened = SqliteDatabase.open(shop)
        statement = "INSERT INTO open_requests VALUES ('1', 'ann', NULL, 'code')"
        opened.change(lambda connection: connection.execute(statement))
        assert self.asked(shop) == str(["ann", FAY])
        opened.close()

    @pytest.mark.full
    def test_a_log_that_can_not_be_read_leaves_it_unknown(self, shop):
        (shop / QUEUE_FILE).chmod(0o644)
        opened = SqliteDatabase.open(shop)
        statement = "INSERT INTO open_requests VALUES ('1', 'ann', NULL, 'code')"
        opened.change(lambda connection: connection.execute(statement))
        for end in ("-wal", "-shm"):
            (shop / f"{QUEUE_FILE}{end}").chmod(0o600)
        assert self.asked(shop).startswith("unknown")
        opened.close()


def test_an_error_of_sqlite_says_what_to_do(tmp_path):
    path = tmp_path / "ledger.sqlite"
    create_file(path)
    with closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as connection:
        remedy = "can't be written to: check the disk, and that you may write there"
        with pytest.raises(WorkspaceError, match=remedy), explained(path):
            connection.execute("CREATE TABLE other (one)")
        with pytest.raises(WorkspaceBusy, match="try again"), explained(path):  # one that Python makes has no code
            connection.execute("SELECT CAST(x'ff' AS TEXT)").fetchall()
