"""Where requests are kept: a queue moves whole, the workspace names it, and nobody falls back to another."""

import os
import re
import sys
import threading
import time
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa
import pytest

pytest.importorskip("psycopg")

import psycopg

from erasable.errors import QueueUnreachable, Refused, ResidueFound, SuppressionUnknown, WorkspaceError, WrongUse
from erasable.extensions import install_command
from erasable.operations import DiskStorage, forget, recommend, scan, status, verify
from erasable.operations import recording as queue_place_module
from erasable.operations._vocabulary import own_vocabulary
from erasable.operations.recording import name_queue
from erasable.operations.storage import AskingPeople
from erasable.recommender._estimator import save_copy
from erasable.requests import Request, opening
from erasable.requests import postgres as postgres_module
from erasable.requests.database import WaitingInteraction
from erasable.requests.decisions import Decisions
from erasable.requests.lease import Lease, Process
from erasable.requests.opening import copy_queue, open_database, queue_place, remove_queue_file, suppressed_in
from erasable.requests.postgres import PostgresDatabase
from erasable.requests.queue import Queue
from erasable.requests.request import NOBODY_ASKED
from erasable.requests.sqlite import SqliteDatabase
from erasable.requests.tokens import Tokens
from erasable.scan import Target, scan_folder
from erasable.workspace.files import KEYS, QUEUE_FILE
from kit import small_shop

NOW = datetime(2026, 3, 9, 12, tzinfo=UTC)
FAY, GUS = "fay-the-unmistakable", "gus-the-unmistakable"


@pytest.fixture(scope="module")
def learned_once(tmp_path_factory):
    table = small_shop.table(20, 10)
    named = [f"{user}-the-unmistakable" for user in table["user_id"].to_pylist()]
    return small_shop.learn_shop(
        tmp_path_factory.mktemp("place") / "shop", table.set_column(0, "user_id", pa.array(named))
    )


@pytest.fixture
def folder(learned_once, copied, tmp_path):
    return copied(learned_once, tmp_path / "shop")


@pytest.fixture
def storage(folder):
    return DiskStorage(folder)


def submitted(folder, *users: str) -> list[str]:
    with closing(open_database(folder)) as database:
        queue = Queue(database)
        return [queue.submit(Request(user), True, "officer 1", NOW, f"case {user}").request_id for user in users]


def schemas(postgres) -> set[str]:
    """Return the schemas of all queues."""
    with psycopg.connect(postgres.address) as connection:
        found = connection.execute("SELECT nspname FROM pg_namespace WHERE nspname LIKE 'erasable%'").fetchall()
    return {name for (name,) in found}


def _someone(storage):
    with storage.reading() as session:
        return session.state().dataset.groups[0].users[0]


def test_all_that_is_kept_moves_and_is_told_as_before(storage, folder, postgres):
    (first, second) = submitted(folder, FAY, GUS)
    with closing(open_database(folder)) as database:
        queue = Queue(database)
        Decisions(queue).withdraw(second, None, "officer 1", NOW)
        secret = Tokens(database).create("officer", f"office of {FAY}", NOW)[1]
        database.change(
            lambda connection: database.waiting.add(connection, [WaitingInteraction("new-one", "x", 1.0, None)])
        )
        before = {one.request_id: one for one in queue.history.some([first, second])}
        events = queue.history.events(100)
    name_queue(storage, postgres.address)
    assert not (folder / QUEUE_FILE).exists()
    assert queue_place(folder)[0] == postgres.address
    with closing(open_database(folder)) as database:
        queue = Queue(database)
        assert {one.request_id: one for one in queue.history.some([first, second])} == before
        assert queue.history.events(100) == events
        assert queue.suppressed() == {FAY} == suppressed_in(folder).people
        assert Tokens(database).caller(secret).role == "officer"
        assert [one.label for one in Tokens(database).all()] == [f"office of {FAY}"]
        assert [one.user for one in database.read(database.waiting.all)] == ["new-one"]
    assert scan_folder(folder, [Target(FAY), Target("new-one")], own_vocabulary()).clean


def test_what_can_t_be_moved_stays_where_it_is(storage, folder, postgres, monkeypatch):
    submitted(folder, FAY)

    def fails(source, target):
        raise OSError("no")

    monkeypatch.setattr("erasable.operations.recording.copy_queue", fails)
    with pytest.raises(OSError, match="no"):
        name_queue(storage, postgres.address)
    assert queue_place(folder) is None
    assert suppressed_in(folder).people == {FAY}


def test_a_file_that_a_stopped_move_left_is_destroyed_when_the_queue_is_opened(storage, folder, postgres, monkeypatch):
    submitted(folder, FAY)
    monkeypatch.setattr("erasable.operations.recording.remove_queue_file", lambda folder: None)
    name_queue(storage, postgres.address)
    assert (folder / QUEUE_FILE).exists()
    assert suppressed_in(folder).people == {FAY}
    open_database(folder).close()
    assert not (folder / QUEUE_FILE).exists()


def test_it_does_not_move_while_a_worker_works(storage, folder, postgres):
    with closing(open_database(folder)) as database:
        lease = Lease(database, 60, Process.current())
        lease.take()
        with pytest.raises(Refused, match="stop the service"):
            name_queue(storage, postgres.address)
        lease.release()
    name_queue(storage, postgres.address)


class TestMoving:
    def test_whoever_waited_meanwhile_is_refused_and_nothing_that_was_answered_is_lost(
        self, storage, folder, postgres, monkeypatch
    ):
        """Another server wants to write while the queue is copied, and gets in before the file is gone."""
        with closing(open_database(folder)) as database:
            queue, waiting, refusals = Queue(database), threading.Event(), []
            queue.suppressed()

            def submit():
                waiting.set()
                try:
                    queue.submit(Request(FAY), True, "officer 1", NOW)
                except WorkspaceError as error:
                    refusals.append(str(error))

            server = threading.Thread(target=submit)

            def copied(source, target):
                copy_queue(source, target)
                server.start()
                waiting.wait()
                time.sleep(0.1)  # it waits for the file

            def removed(place):
                server.join()
                remove_queue_file(place)

            monkeypatch.setattr(queue_place_module, "copy_queue", copied)
            monkeypatch.setattr(queue_place_module, "remove_queue_file", removed)
            name_queue(storage, postgres.address)
            assert refusals == [f"the queue of {folder} is in a Postgres now: restart the service, or try again"]
            assert suppressed_in(folder).people == frozenset()
            with pytest.raises(WorkspaceError, match="is in a Postgres now"):
                queue.suppressed()

    def test_killed_once_it_is_named_nobody_writes_to_the_file_any_more(self, storage, folder, postgres, monkeypatch):
        def killed(session, *place):
            amend(session, *place)
            raise KeyboardInterrupt

        amend = queue_place_module._amend
        submitted(folder, FAY)
        with closing(open_database(folder)) as database:
            monkeypatch.setattr(queue_place_module, "_amend", killed)
            with pytest.raises(KeyboardInterrupt):
                name_queue(storage, postgres.address)
            with pytest.raises(WorkspaceError, match="is in a Postgres now"):
                Queue(database).submit(Request(GUS), True, "officer 1", NOW)
        assert suppressed_in(folder).people == {FAY}

    def test_the_lease_goes_on_counting(self, storage, folder, postgres):
        with closing(open_database(folder)) as database:
            for _ in range(3):
                lease = Lease(database, 60)
                lease.take()
                lease.release()
        name_queue(storage, postgres.address)
        with closing(open_database(folder)) as database:
            lease = Lease(database, 60)
            lease.take()
            assert lease.number == 4

    def test_a_worker_that_takes_the_lease_at_the_last_moment_is_seen(self, storage, folder, postgres, monkeypatch):
        create, before = PostgresDatabase.create, schemas(postgres)

        def created(there):
            create(there)
            with closing(open_database(folder)) as database:
                Lease(database, 60, Process.current()).take()

        monkeypatch.setattr(PostgresDatabase, "create", created)
        with pytest.raises(Refused, match="stop the service"):
            name_queue(storage, postgres.address)
        assert queue_place(folder) is None
        assert schemas(postgres) == before

    @pytest.mark.parametrize("failing", ["copy_queue", "_amend"])
    def test_one_that_fails_leaves_neither_keys_nor_tables(self, storage, folder, postgres, monkeypatch, failing):
        real, before = getattr(queue_place_module, failing), schemas(postgres)

        def fails(*given):
            if failing == "copy_queue":
                real(*given)
            raise KeyboardInterrupt

        submitted(folder, FAY)
        monkeypatch.setattr(queue_place_module, failing, fails)
        with pytest.raises(KeyboardInterrupt):
            name_queue(storage, postgres.address)
        assert queue_place(folder) is None
        assert suppressed_in(folder).people == {FAY}
        assert not list((folder / KEYS).iterdir())
        assert schemas(postgres) == before

    def test_one_that_was_killed_leaves_keys_until_the_queue_is_opened(self, storage, folder, postgres, monkeypatch):
        submitted(folder, FAY)
        monkeypatch.setattr(queue_place_module, "_amend", lambda *given: os._exit(9))
        child = os.fork()
        if child == 0:
            name_queue(storage, postgres.address)
        os.waitpid(child, 0)
        assert list((folder / KEYS).iterdir())
        open_database(folder).close()
        assert not list((folder / KEYS).iterdir())
        assert suppressed_in(folder).people == {FAY}


class TestNamed:
    @pytest.fixture(autouse=True)
    def named(self, storage, postgres, monkeypatch):
        name_queue(storage, postgres.address)
        monkeypatch.setattr(postgres_module, "_MARK_SECONDS", 0)
        monkeypatch.setattr(postgres_module, "_READ_SECONDS", 0)

    def test_every_change_of_the_workspace_keeps_it(self, storage, folder, postgres):
        with storage.writing() as session:
            session.amend(session.documents())
        assert queue_place(folder)[0] == postgres.address
        name_queue(storage, postgres.address)

    def test_who_asks_is_suppressed_for_all(self, storage, folder):
        people = AskingPeople(DiskStorage(folder))
        assert people.now() == NOBODY_ASKED
        submitted(folder, FAY)
        assert people.now().people == {FAY}
        assert suppressed_in(folder).people == {FAY}
        assert not (folder / QUEUE_FILE).exists()

    def test_without_it_nobody_is_served_and_nobody_forgotten(self, storage, folder, postgres):
        submitted(folder, FAY)
        people = AskingPeople(DiskStorage(folder))
        people.now()
        postgres.stop()
        try:
            asking = (suppressed_in, open_database, lambda _: people.now(), lambda _: recommend(storage, "1"))
            for ask in asking:
                with pytest.raises(QueueUnreachable, match="start the database, or check its address"):
                    ask(folder)
            assert not (folder / QUEUE_FILE).exists()
        finally:
            postgres.start()
        assert people.now().people == {FAY}

    def test_forgetting_goes_through_it_and_leaves_no_key(self, storage, folder):
        done = forget(storage, [Request(_someone(storage))])
        assert len(done.certificates) == 1
        assert verify(storage).identical
        assert not (folder / QUEUE_FILE).exists()
        assert not [*(folder / KEYS).iterdir()]
        assert suppressed_in(folder).people == frozenset()

    def test_what_the_service_was_asked_for_is_finished_by_the_command(self, storage, folder):
        someone = _someone(storage)
        (request_id,) = submitted(folder, someone)
        done = forget(storage, [Request(someone)])
        assert [Path(place).stem for place in done.certificates] == [request_id]

    def test_a_missing_key_serves_nobody(self, storage, folder):
        submitted(folder, FAY)
        (key,) = (folder / KEYS).iterdir()
        key.unlink()
        opening._READERS.close()
        with pytest.raises(SuppressionUnknown, match="nobody is served"):
            recommend(storage, "1")

    def test_a_label_that_names_the_person_keeps_the_certificate_back_until_it_is_another(
        self, storage, folder, postgres
    ):
        someone = small_shop.member_of(folder, 0)
        with closing(open_database(folder)) as database:
            number, _ = Tokens(database).create("application", f"the app of {someone}", NOW)
            assert [one.label for one in Tokens(database).all()] == [f"the app of {someone}"]
            with pytest.raises(ResidueFound, match="token rename"):
                forget(storage, [Request(someone)])
            assert scan(folder, someone).residues
            Tokens(database).rename(number, "the app", NOW)
            assert len(list((folder / KEYS).iterdir())) == 1
        assert len(forget(storage, []).certificates) == 1

    @pytest.mark.full
    def test_a_label_is_sealed_there(self, storage, folder, postgres):
        with closing(open_database(folder)) as database:
            Tokens(database).create("application", f"the app of {FAY}", NOW)
        with psycopg.connect(postgres.address, autocommit=True) as connection:
            connection.execute("CHECKPOINT")
        assert not scan_folder(postgres.data, [Target(FAY)], own_vocabulary()).residues

    def test_another_address_of_the_same_queue_can_be_named(self, storage, folder, postgres):
        submitted(folder, FAY)
        name_queue(storage, postgres.address + "&application_name=other")
        assert suppressed_in(folder).people == {FAY}

    def test_another_queue_can_not(self, storage, folder, postgres):
        with psycopg.connect(postgres.address, autocommit=True) as connection:
            connection.execute("DROP DATABASE IF EXISTS elsewhere")
            connection.execute("CREATE DATABASE elsewhere")
        with pytest.raises(Refused, match="is not in that database"):
            name_queue(storage, postgres.address_of("elsewhere"))
        assert queue_place(folder)[0] == postgres.address

    def test_a_copy_has_a_queue_of_its_own(self, storage, tmp_path):
        save_copy(storage, tmp_path / "copy")
        assert queue_place(tmp_path / "copy") is None

    def test_the_rest_of_the_workspace_goes_on(self, storage, folder):
        submitted(folder, FAY)
        assert status(storage)


def test_a_password_is_not_written_anywhere(storage, folder, postgres):
    with pytest.raises(WrongUse, match="PGPASSWORD"):
        name_queue(storage, "postgresql://u:geheim@host/db")
    assert queue_place(folder) is None
    assert not any(b"geheim" in path.read_bytes() for path in folder.rglob("*") if path.is_file())


def test_without_psycopg_it_is_said_what_to_install(storage, folder, postgres, monkeypatch):
    name_queue(storage, postgres.address)
    monkeypatch.setitem(sys.modules, "erasable.requests.postgres", None)
    opening._READERS.close()
    with pytest.raises(WrongUse, match=re.escape(install_command("postgres"))):
        suppressed_in(folder)


def test_a_queue_in_a_file_is_as_before(folder):
    submitted(folder, FAY)
    with closing(open_database(folder)) as database:
        assert isinstance(database, SqliteDatabase)
    assert suppressed_in(folder).people == {FAY}
