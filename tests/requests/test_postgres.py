"""The queue's database in Postgres: no change is lost or made twice, whatever is cut when; whoever waits is told."""

import threading
import time
from contextlib import closing
from datetime import UTC, datetime

import pytest

pytest.importorskip("psycopg")

import psycopg

from erasable.errors import QueueLost, QueueUnreachable, Refused, SuppressionUnknown, WrongUse
from erasable.requests import Request
from erasable.requests import postgres as module
from erasable.requests.database import given_id
from erasable.requests.postgres import PostgresDatabase, PostgresTransaction
from erasable.requests.queue import Queue
from erasable.requests.tokens import Tokens
from kit.cutting_proxy import CuttingProxy
from kit.postgres_queues import cut, queue_in


@pytest.fixture
def opened(postgres, tmp_path):
    with queue_in(postgres.address, tmp_path / "keys") as found:
        yield found


def note(name: str):
    """Return a change that adds an event."""

    def work(connection):
        number = connection.execute("SELECT coalesce(max(event_number), 0) AS number FROM events")[0]["number"] + 1
        connection.execute(
            "INSERT INTO events VALUES (?, NULL, ?, ?, NULL, 'test', ?)", (number, "2026-01-01T00:00:00", name, "{}")
        )
        return number

    return work


def notes(database: PostgresDatabase) -> list[str]:
    rows = database.read(lambda connection: connection.execute("SELECT event_name FROM events ORDER BY event_number"))
    return [row["event_name"] for row in rows]


class TestChanges:
    def test_are_durable_as_a_whole_or_not_at_all(self, opened):
        database = opened()
        assert database.change(note("a")) == 1

        def fails(connection):
            note("b")(connection)
            raise Refused("no")

        with pytest.raises(Refused):
            database.change(fails)
        assert database.change(note("c")) == 2
        assert notes(opened()) == ["a", "c"]

    def test_inside_another_are_a_part_of_it(self, opened):
        database = opened()

        def outer(connection):
            database.change(note("inner"))
            assert notes(database) == ["inner"]
            assert notes(opened()) == []
            raise Refused("no")

        with pytest.raises(Refused):
            database.change(outer)
        assert notes(database) == []

    def test_of_many_never_overlap(self, opened):
        each = 20

        def many(name):
            database = opened()
            for _ in range(each):
                database.change(note(name))

        threads = [threading.Thread(target=many, args=(str(n),)) for n in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert sorted(notes(opened())) == sorted([str(n) for n in range(4)] * each)

    def test_overlap_as_little_where_transactions_see_one_moment_by_default(self, opened, postgres):
        strict = f"{postgres.address}&options=-c%20default_transaction_isolation%3Dserializable"
        first, second = opened(strict), opened(strict)

        def slow(connection):
            waiting.start()
            time.sleep(0.3)  # the other one has begun, and waits
            return note("first")(connection)

        waiting = threading.Thread(target=second.change, args=(note("second"),))
        first.change(slow)
        waiting.join()
        assert notes(opened()) == ["first", "second"]

    def test_what_has_no_rows_is_sent_along_with_what_has_some(self, opened, monkeypatch):
        database, sent = opened(), []
        real = psycopg.Connection.pipeline
        monkeypatch.setattr(psycopg.Connection, "pipeline", lambda raw: sent.append(1) or real(raw))

        def work(connection):
            for name in "abc":
                connection.execute("INSERT INTO visits VALUES (?, 'token', 0)", (name,))
            connection.execute_many("UPDATE visits SET end_time = ? WHERE visit_digest = ?", [(1, "a"), (2, "b")])
            assert sent == []
            connection.execute("DELETE FROM visits WHERE visit_digest = 'c'")
            return connection.execute("SELECT visit_digest, end_time FROM visits ORDER BY visit_digest")

        assert [(*row.values(),) for row in database.change(work)] == [("a", 1), ("b", 2)]
        assert sent == [1]

    def test_what_is_wrong_with_what_was_sent_along_undoes_all(self, opened):
        database = opened()

        def twice(connection):
            note("a")(connection)
            for _ in range(2):
                connection.execute("INSERT INTO visits VALUES ('same', 'token', 0)")

        with pytest.raises(psycopg.errors.UniqueViolation):
            database.change(twice)
        assert notes(database) == []
        assert database.change(note("b")) == 1

    def test_a_submission_goes_to_the_server_a_few_times_only(self, opened, monkeypatch):
        database = opened()
        queue, now = Queue(database), datetime(2026, 3, 9, 12, tzinfo=UTC)
        queue.submit(Request("ann"), held=True, actor="application 1", now=now)
        sent = []

        def counted(real, raw, *given):
            sent.append(raw.info.pipeline_status)
            return real(raw, *given)

        for name in ("execute", "pipeline"):
            real = getattr(psycopg.Connection, name)
            monkeypatch.setattr(psycopg.Connection, name, lambda raw, *given, real=real: counted(real, raw, *given))
        queue.submit(Request("bob"), held=True, actor="application 1", now=now, reference="case 7")
        assert sent.count(psycopg.pq.PipelineStatus.OFF) <= 5

    @pytest.mark.parametrize("level", ["repeatable%5C%20read", "serializable"])
    def test_of_many_are_all_made_whatever_isolation_is_the_default(self, opened, postgres, level):
        address = f"{postgres.address}&options=-c%20default_transaction_isolation%3D{level}"

        def many(name):
            database = opened(address)
            for _ in range(5):
                database.change(note(name))

        threads = [threading.Thread(target=many, args=(str(n),)) for n in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(notes(opened())) == 20

    def test_nothing_is_read_or_changed_in_another_queue(self, opened):
        own = opened(queue_id=opened().change(given_id))
        assert own.change(note("a")) == 1
        assert notes(own) == ["a"]
        another = opened(queue_id="0" * 32)
        for attempt in (lambda: notes(another), lambda: another.change(note("b")), another.migrate):
            with pytest.raises(QueueLost):
                attempt()
        assert notes(own) == ["a"]

    def test_what_is_wrong_with_a_statement_is_said_at_once(self, opened):
        before = time.monotonic()
        with pytest.raises(psycopg.errors.UndefinedColumn):
            opened().change(lambda connection: connection.execute("SELECT nothing FROM events"))
        assert time.monotonic() - before < 2

    def test_events_stay(self, opened):
        database = opened()
        database.change(note("a"))
        for statement in ("UPDATE events SET event_name = 'b'", "DELETE FROM events", "TRUNCATE events"):
            with pytest.raises(psycopg.errors.RaiseException, match="never"):
                database.change(lambda connection, statement=statement: connection.execute(statement))
        assert notes(database) == ["a"]

    def test_a_read_sees_one_moment(self, opened):
        first, second = opened(), opened()

        def work(connection):
            before = len(connection.execute("SELECT * FROM events"))
            second.change(note("meanwhile"))
            return before, len(connection.execute("SELECT * FROM events"))

        assert first.read(work) == (0, 0)
        assert len(notes(first)) == 1


class Cutting:
    """Cuts all connections before the n-th statement of a change, or before its commit."""

    def __init__(self, monkeypatch, postgres, moment: int) -> None:
        self._left, self._postgres = moment, postgres
        execute = PostgresTransaction.execute

        def counted(transaction, *given):
            self.count()
            return execute(transaction, *given)

        monkeypatch.setattr(PostgresTransaction, "execute", counted)
        monkeypatch.setattr("erasable.requests.database.before_commit", self.count)

    def count(self) -> None:
        self._left -= 1
        if self._left == -1:
            cut(self._postgres)

    @property
    def reached(self) -> bool:
        return self._left < 0


class TestLostConnections:
    def test_a_change_is_made_once_wherever_it_is_cut(self, opened, postgres, monkeypatch):
        database, reader = opened(), opened()
        done, moment = [], 0
        while True:
            cutting = Cutting(monkeypatch, postgres, moment)
            database.change(note(f"at {moment}"))
            monkeypatch.undo()
            done.append(f"at {moment}")
            assert notes(reader) == done
            if not cutting.reached:
                break
            moment += 1
        assert moment >= 3

    @pytest.mark.parametrize("restarted", ["stop", "kill"])
    def test_a_change_outlives_the_server(self, opened, postgres, monkeypatch, restarted):
        database = opened()
        database.change(note("before"))
        back_soon = threading.Timer(0.5, postgres.start)

        def once():
            monkeypatch.undo()
            getattr(postgres, restarted)()
            back_soon.start()

        monkeypatch.setattr("erasable.requests.database.before_commit", once)
        database.change(note("through"))
        back_soon.join()  # it still waits for the server's answer, and the next test may stop the server
        assert notes(database) == ["before", "through"]

    @pytest.mark.parametrize("answered", [False, True], ids=["at once", "when it is done"])
    def test_a_commit_whose_answer_is_lost_counts_once(self, opened, postgres, answered):
        with CuttingProxy(postgres.socket, when_done=answered) as proxy:
            database = opened(postgres.address_of("postgres", proxy.folder))
            for number in range(5):
                assert database.change(note(f"{number}")) == number + 1
        assert proxy.cuts == 5
        assert notes(opened()) == [str(number) for number in range(5)]

    def test_without_the_id_of_a_change_it_would_count_twice(self, opened, postgres, monkeypatch):
        """Planted: what the id is for."""
        another = module._NUMBERED.replace("'{}'", "md5(random()::text || '{}')")
        monkeypatch.setattr(module, "_NUMBERED", another)
        with CuttingProxy(postgres.socket, when_done=True) as proxy:
            opened(postgres.address_of("postgres", proxy.folder)).change(note("twice"))
        assert proxy.cuts == 1
        assert notes(opened()) == ["twice", "twice"]

    def test_reading_goes_on_after_a_cut(self, opened, postgres):
        database = opened()
        database.change(note("a"))
        for _ in range(3):
            cut(postgres)
            assert notes(database) == ["a"]

    def test_where_it_can_t_be_reached_that_is_said_soon(self, opened, postgres, monkeypatch):
        database = opened()
        monkeypatch.setattr(module, "_MARK_SECONDS", 0.2)
        monkeypatch.setattr(module, "_WAIT_SECONDS", 0.2)
        postgres.stop()
        try:
            with pytest.raises(QueueUnreachable, match="start the database"):
                database.mark()
            with pytest.raises(QueueUnreachable):
                database.change(note("lost"))
        finally:
            postgres.start()
        assert notes(database) == []


class TestWaiting:
    def test_whoever_waits_is_told(self, opened):
        waiting, changing = opened(), opened()
        waiting.wait(0)
        assert waiting.wait(0.1) is False
        threading.Timer(0.3, changing.change, (note("a"),)).start()
        before = time.monotonic()
        assert waiting.wait(20) is True
        assert time.monotonic() - before < 1
        assert waiting.wait(0) is False

    def test_by_the_server_not_by_looking(self, opened, monkeypatch):
        monkeypatch.setattr(module, "_POLL_SECONDS", 15)
        waiting, changing = opened(), opened()
        waiting.wait(0)
        threading.Timer(0.3, changing.change, (note("a"),)).start()
        before = time.monotonic()
        assert waiting.wait(20) is True
        assert time.monotonic() - before < 5

    @pytest.mark.parametrize("silently", [False, True])
    def test_where_the_line_is_cut_it_is_found_within_a_second(self, opened, postgres, monkeypatch, silently):
        waiting, changing = opened(), opened()
        waiting.wait(0)
        assert waiting.wait(0.05) is False
        if silently:
            waiting._listener.execute("UNLISTEN *")
        else:
            monkeypatch.setattr(PostgresDatabase, "_listen", lambda database: None)
            cut(postgres)
        changed = []

        def change():
            changing.change(note("a"))
            changed.append(time.monotonic())

        threading.Timer(0.3, change).start()
        assert waiting.wait(20) is True
        assert time.monotonic() - changed[0] < 1


class TestMarks:
    def test_changes_show_in_a_moment_and_whoever_asks_for_it_now_sees_them_at_once(self, opened):
        first, second = opened(), opened()
        before = first.mark()
        for database in (first, second):
            database.change(note("a"))
            assert first.mark_now() == second.mark_now() != before
            before = first.mark()
            database.change(note("b"))
            time.sleep(2 * module._MOMENT_SECONDS)
            assert first.mark() == second.mark() != before
            before = first.mark()

    def test_many_answers_in_a_moment_ask_once_while_others_submit(self, opened, monkeypatch):
        database, asked = opened(), []
        monkeypatch.setattr(module, "_MOMENT_SECONDS", 60)
        real = database.mark_now
        monkeypatch.setattr(database, "mark_now", lambda: asked.append(1) or real())
        for _ in range(3):
            database.mark()
            database.change(note("a"))
        assert asked == [1]

    def test_a_token_that_is_made_or_revoked_here_is_so_at_once(self, opened, monkeypatch):
        monkeypatch.setattr(module, "_MOMENT_SECONDS", 60)
        tokens, now = Tokens(opened()), datetime(2026, 3, 9, 12, tzinfo=UTC)
        assert tokens.caller("nobody's") is None
        number, secret = tokens.create("officer", "", now)
        assert tokens.caller(secret).role == "officer"
        tokens.revoke(number, now)
        assert tokens.caller(secret) is None

    def test_where_nobody_answers_that_is_said_at_once_and_looked_at_again(self, opened, postgres, monkeypatch):
        database = opened()
        postgres.stop()
        try:
            with pytest.raises(QueueUnreachable):
                database.mark_now()
            monkeypatch.setattr(PostgresDatabase, "_connect", lambda database: pytest.fail("it asked again"))
            with pytest.raises(QueueUnreachable, match="a moment ago"):
                database.mark()
        finally:
            monkeypatch.undo()
            postgres.start()
        time.sleep(module._MARK_SECONDS)
        assert database.mark() == (0, "")


class TestAddresses:
    @pytest.mark.parametrize(
        "address", ["postgresql://u:geheim@host/db", "host=h password=geheim", "postgresql:///d?password=geheim"]
    )
    def test_a_password_is_refused_and_not_repeated(self, address, tmp_path):
        with pytest.raises(WrongUse, match="PGPASSWORD") as refused:
            PostgresDatabase(address, "erasable_x", tmp_path)
        assert "geheim" not in str(refused.value)

    def test_what_is_no_address_is_not_repeated_either(self, tmp_path):
        with pytest.raises(WrongUse, match="postgresql://") as refused:
            PostgresDatabase("postgresql://u:geheim@[/db", "erasable_x", tmp_path)
        assert "geheim" not in str(refused.value)

    def test_a_password_comes_from_the_environment(self, postgres, tmp_path, monkeypatch):
        with psycopg.connect(postgres.address, autocommit=True) as connection:
            connection.execute("DROP ROLE IF EXISTS guarded")
            connection.execute("CREATE ROLE guarded LOGIN PASSWORD 'geheim'")
        rules = postgres.data / "pg_hba.conf"
        before = rules.read_text()
        rules.write_text("local all guarded scram-sha-256\n" + before)
        try:
            postgres.restart()
            address = postgres.address.replace("user=erasable", "user=guarded")
            monkeypatch.setattr(module, "_MARK_SECONDS", 0)
            with closing(PostgresDatabase(address, "erasable_guarded", tmp_path)) as database:
                with pytest.raises(QueueUnreachable, match="password"):
                    database.mark_now()
                monkeypatch.setenv("PGPASSWORD", "geheim")
                with pytest.raises(SuppressionUnknown, match="does not hold its queue"):
                    database.mark_now()
        finally:
            rules.write_text(before)
            postgres.restart()

    def test_a_database_without_the_queue_serves_nobody_and_gets_none(self, postgres, tmp_path):
        database = PostgresDatabase(postgres.address, "erasable_none", tmp_path / "keys")
        for ask in (database.migrate, database.mark_now, lambda: database.read(database.subjects.all)):
            with pytest.raises(SuppressionUnknown, match="check the address"):
                ask()
        assert not database.exists()
        database.close()
