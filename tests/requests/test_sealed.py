"""People in Postgres: sealed there, opened in memory, the same for all who follow, and noise once their key is gone."""

import json
import threading
from pathlib import Path
from random import Random

import pytest

pytest.importorskip("psycopg")

import psycopg

from erasable.errors import Refused, SuppressionUnknown
from erasable.operations._vocabulary import own_vocabulary
from erasable.requests import _key_files as key_files
from erasable.requests import _sealed as sealed
from erasable.requests import postgres as postgres_module
from erasable.requests.database import WaitingInteraction
from erasable.requests.request import Request
from erasable.scan import Target, scan_folder
from kit.postgres_queues import cut, queue_in
from kit.postgres_server import private_postgres

ANN, BEN = "ann-4711-äöü", "ben-4712"


@pytest.fixture
def opened(postgres, tmp_path):
    with queue_in(postgres.address, tmp_path / "keys") as found:
        yield found


@pytest.fixture
def keys(tmp_path):
    """What all keys are about; the rest of their names is random."""
    return lambda: sorted(path.name.rpartition("-")[0] for path in (tmp_path / "keys").iterdir())


@pytest.fixture
def key_of(tmp_path):
    """The file of the one key that is about a request."""

    def found(request_id: str) -> Path:
        (path,) = (tmp_path / "keys").glob(f"{request_id}-*")
        return path

    return found


def asked(user: str, request_id: str, items: tuple[str, ...] | None = None) -> Request:
    return Request(user, items, request_id, f"code-{request_id}")


def keep(database, *requests: Request) -> None:
    def work(connection):
        for one in requests:
            database.subjects.keep(connection, one)

    database.change(work)


def forget(database, *request_ids: str) -> None:
    database.change(lambda connection: database.subjects.forget(connection, request_ids))


def everyone(database) -> dict[str, Request]:
    return {one.request_id: one for one in database.read(database.subjects.all)}


def of_user(database, user: str) -> list[Request]:
    return database.read(lambda connection: database.subjects.of_user(connection, user))


@pytest.fixture
def openings(monkeypatch):
    """What was opened, as often as it was."""
    found = []
    real = sealed.unseal

    def counted(key, about, content):
        found.append(about)
        return real(key, about, content)

    monkeypatch.setattr(sealed, "unseal", counted)
    return found


class TestSubjects:
    def test_are_kept_for_everyone_who_has_the_keys(self, opened):
        first, second = opened(), opened()
        keep(first, asked(ANN, "1"), asked(BEN, "2", ("x", "y")))
        assert everyone(second) == {"1": asked(ANN, "1"), "2": asked(BEN, "2", ("x", "y"))}
        assert of_user(second, BEN) == [asked(BEN, "2", ("x", "y"))]
        assert of_user(second, "nobody") == []
        assert second.read(lambda connection: second.subjects.some(connection, ["2", "3"])) == [
            asked(BEN, "2", ("x", "y"))
        ]
        assert second.read(second.subjects.count) == 2

    def test_are_seen_with_what_a_change_has_done_so_far_and_without_what_was_taken_back(self, opened):
        database = opened()
        keep(database, asked(ANN, "1"), asked(BEN, "2"))

        def work(connection):
            database.subjects.forget(connection, ["1"])
            database.subjects.keep(connection, asked(BEN, "2", ("z",)))
            database.subjects.keep(connection, asked("new", "3"))
            assert database.subjects.of_user(connection, ANN) == []
            assert database.subjects.of_user(connection, BEN) == [asked(BEN, "2", ("z",))]
            assert database.subjects.count(connection) == len(database.read(database.subjects.all)) == 2
            raise Refused("no")

        with pytest.raises(Refused):
            database.change(work)
        assert everyone(database) == {"1": asked(ANN, "1"), "2": asked(BEN, "2")}

    def test_only_what_changed_is_opened_again(self, opened, openings):
        first, second = opened(), opened()
        keep(first, *(asked(f"user-{n}", str(n)) for n in range(20)))
        for server in (first, second):
            everyone(server)
        openings.clear()
        keep(first, asked("user-3", "3", ("a",)), asked("another", "20"))
        forget(first, "7")
        assert len(everyone(second)) == 20
        assert sorted(openings) == ["subject of 20", "subject of 3"]
        openings.clear()
        assert everyone(second) == everyone(first)
        assert openings == []

    @pytest.mark.parametrize("seed", range(4))
    def test_whoever_follows_at_any_time_finds_the_same(self, opened, seed):
        draw, servers, expected = Random(seed), [opened() for _ in range(3)], {}
        for number in range(60):
            server = draw.choice(servers)
            if expected and draw.random() < 0.4:
                gone = draw.sample(sorted(expected), min(len(expected), draw.randint(1, 3)))
                forget(server, *gone)
                expected = {request_id: one for request_id, one in expected.items() if request_id not in gone}
            else:
                one = asked(f"user-{draw.randint(0, 5)}", str(draw.randint(0, number)), (str(number),))
                keep(server, one)
                expected[one.request_id] = one
            if draw.random() < 0.3:
                servers[0].wipe()
            asking = draw.choice(servers)
            user = f"user-{draw.randint(0, 5)}"
            assert {one.request_id for one in of_user(asking, user)} == {
                request_id for request_id, one in expected.items() if one.user == user
            }
        assert all(everyone(server) == expected for server in servers)

    def test_an_older_snapshot_is_left_for_a_newer_one(self, opened):
        """Another thread follows further between the snapshot and the question."""
        database, other = opened(), opened()
        keep(database, asked(ANN, "1"))
        tries = []

        def work(connection):
            tries.append(len(connection.execute("SELECT * FROM open_requests")))
            if len(tries) == 1:
                keep(other, asked(BEN, "2"))
                thread = threading.Thread(target=everyone, args=(database,))
                thread.start()
                thread.join()
            return len(database.subjects.all(connection)), tries[-1]

        assert database.read(work) == (2, 2)
        assert tries == [1, 2]

    def test_all_are_read_again_where_the_changes_are_not_known(self, opened, postgres):
        first, second = opened(), opened()
        keep(first, asked(ANN, "1"))
        everyone(second)
        keep(first, asked(BEN, "2"))
        first.change(lambda connection: connection.execute("DELETE FROM changes WHERE change_number < 3"))
        assert sorted(everyone(second)) == ["1", "2"]

    def test_all_are_read_again_where_the_database_was_put_back(self, opened):
        first, second = opened(), opened()
        keep(first, asked(ANN, "1"))
        keep(first, asked(BEN, "2"))
        everyone(second)
        with first._connected() as raw:
            raw.execute(f"DELETE FROM {first._schema}.open_requests WHERE request_id = '2'")
            raw.execute(f"DELETE FROM {first._schema}.changes WHERE change_number > 1")
        assert sorted(everyone(second)) == ["1"]
        keep(first, asked("cleo", "3"))
        assert sorted(everyone(second)) == ["1", "3"]

    def test_old_changes_are_dropped_but_for_the_newest(self, opened, monkeypatch):
        database = opened()
        keep(database, asked(ANN, "1"))
        keep(database, asked(BEN, "2"))
        monkeypatch.setattr("erasable.requests.postgres._KEPT_SECONDS", -5)
        database.tidy()
        assert len(database.read(lambda connection: connection.execute("SELECT * FROM changes"))) == 1
        assert sorted(everyone(opened())) == ["1", "2"]
        before = database.mark_now()
        database.tidy()
        assert database.mark_now() == before  # an idle worker calls it all the time


class TestRemarks:
    def test_are_kept_with_the_key_of_their_request_and_go_with_it(self, opened, keys):
        first, second = opened(), opened()

        def work(connection):
            first.remarks.keep(connection, 1, "1", {"reference": f"case of {ANN}"})  # before its subject is
            first.subjects.keep(connection, asked(ANN, "1"))
            first.subjects.keep(connection, asked(BEN, "2"))
            first.remarks.keep(connection, 2, "2", {"reason": "b"})
            first.remarks.keep(connection, 3, "2", {"reason": "c"})

        first.change(work)
        assert keys() == ["1", "2"]
        assert second.read(lambda connection: second.remarks.of(connection, ["1"])) == {
            1: {"reference": f"case of {ANN}"}
        }
        assert sorted(second.read(lambda connection: second.remarks.of(connection, None))) == [1, 2, 3]
        second.change(lambda connection: second.remarks.drop(connection, [3]))
        forget(second, "1")
        assert first.read(lambda connection: first.remarks.of(connection, None)) == {2: {"reason": "b"}}


def coming(*pairs: tuple[str, str]) -> list[WaitingInteraction]:
    return [WaitingInteraction(user, item, 1.0, None) for user, item in pairs]


def add(database, *pairs: tuple[str, str]) -> None:
    database.change(lambda connection: database.waiting.add(connection, coming(*pairs)))


def waiting(database, user: str | None = None) -> list[tuple[str, str]]:
    ask = database.waiting.all if user is None else lambda connection: database.waiting.of_user(connection, user)
    return [(one.user, one.item) for one in database.read(ask)]


def drop(database, user: str) -> None:
    def work(connection):
        database.waiting.drop(connection, [one.number for one in database.waiting.of_user(connection, user)])

    database.change(work)


class TestWaiting:
    def test_are_found_by_who_they_are_of_in_the_order_in_which_they_came(self, opened):
        first, second = opened(), opened()
        add(first, (ANN, "x"), (BEN, "y"))
        assert waiting(second, ANN) == [(ANN, "x")]
        add(second, (ANN, "a"))
        assert waiting(first, ANN) == [(ANN, "x"), (ANN, "a")]
        assert waiting(first) == [(ANN, "x"), (BEN, "y"), (ANN, "a")]
        assert waiting(first, "nobody") == []
        counted = first.read(lambda connection: connection.execute("SELECT count(*) AS total FROM intake"))
        assert counted[0]["total"] == 3

    def test_what_a_change_has_added_is_there_for_itself_and_for_nobody_once_it_is_taken_back(self, opened):
        database = opened()

        def work(connection):
            database.waiting.add(connection, coming((ANN, "x")))
            assert [one.item for one in database.waiting.of_user(connection, ANN)] == ["x"]
            raise Refused("no")

        for _ in range(2):
            with pytest.raises(Refused):
                database.change(work)
        add(database, (BEN, "y"))
        assert waiting(database, ANN) == []
        assert waiting(database, BEN) == [(BEN, "y")]

    @pytest.mark.parametrize("seed", range(3))
    def test_whoever_follows_at_any_time_finds_the_same(self, opened, seed):
        draw, servers, expected = Random(seed), [opened() for _ in range(2)], []
        for number in range(40):
            server, user = draw.choice(servers), f"user-{draw.randint(0, 4)}"
            if draw.random() < 0.4:
                drop(server, user)
                expected = [one for one in expected if one[0] != user]
            else:
                pairs = [(f"user-{draw.randint(0, 4)}", str(number)) for _ in range(3)]
                add(server, *pairs)
                expected += pairs
            if draw.random() < 0.2:
                server.wipe()
            assert waiting(draw.choice(servers), user) == [one for one in expected if one[0] == user]
        assert waiting(servers[0]) == expected

    def test_the_key_is_another_once_someone_s_were_dropped(self, opened, keys, key_of):
        database = opened()
        add(database, (ANN, "x"), (BEN, "y"))
        before = key_of("waiting")
        drop(database, ANN)
        database.wipe()
        after = key_of("waiting")
        assert before != after
        assert waiting(opened()) == [(BEN, "y")]
        database.wipe()
        assert key_of("waiting") == after
        drop(database, BEN)
        database.wipe()
        assert keys() == []


class TestKeys:
    def test_are_destroyed_once_nothing_needs_them_and_no_sooner(self, opened, keys):
        database = opened()
        keep(database, asked(ANN, "1"), asked(BEN, "2"))
        forget(database, "1")
        assert keys() == ["1", "2"]
        database.wipe()
        assert keys() == ["2"]
        assert sorted(everyone(opened())) == ["2"]

    def test_of_changes_that_were_taken_back_are_swept(self, opened, keys):
        database = opened()

        def work(connection):
            database.subjects.keep(connection, asked(ANN, "1"))
            raise Refused("no")

        with pytest.raises(Refused):
            database.change(work)
        assert keys() == ["1"]
        database.wipe()
        assert keys() == []

    def test_are_overwritten_before_they_are_removed(self, opened, key_of, monkeypatch):
        database = opened()
        keep(database, asked(ANN, "1"))
        forget(database, "1")
        left = []
        monkeypatch.setattr(key_files, "remove_file", lambda path: left.append(path.read_bytes()))
        before = key_of("1").stat().st_ino
        database.wipe()
        assert left == [b"-" * 64]
        assert key_of("1").stat().st_ino == before

    def test_are_for_their_owner_alone(self, opened, tmp_path, key_of):
        keep(opened(), asked(ANN, "1"))
        assert (tmp_path / "keys").stat().st_mode & 0o777 == 0o700
        assert key_of("1").stat().st_mode & 0o777 == 0o600

    def test_a_missing_one_serves_nobody(self, opened, key_of):
        keep(opened(), asked(ANN, "1"), asked(BEN, "2"))
        key = key_of("1")
        content = key.read_bytes()
        key.unlink()
        with pytest.raises(SuppressionUnknown, match=r"nobody is served: restore .* from its newest copy"):
            everyone(opened())
        with pytest.raises(SuppressionUnknown):
            keep(opened(), asked("cleo", "3"))
        key.write_bytes(content[:-2])
        with pytest.raises(SuppressionUnknown, match="damaged"):
            everyone(opened())
        key.write_bytes(content[::-1])
        with pytest.raises(SuppressionUnknown, match="copies of the same time"):
            everyone(opened())
        key.write_bytes(content)
        assert sorted(everyone(opened())) == ["1", "2"]

    def test_one_that_is_destroyed_while_someone_reads_is_not_missed(self, opened, monkeypatch):
        reading, other = opened(), opened()
        keep(other, asked(ANN, "1"), asked(BEN, "2"))
        real = key_files.KeyFiles.read

        def late(files, name):
            if name.startswith("1-") and threading.current_thread() is threading.main_thread():
                monkeypatch.undo()
                thread = threading.Thread(target=lambda: (forget(other, "1"), other.wipe()))
                thread.start()
                thread.join()
            return real(files, name)

        monkeypatch.setattr(key_files.KeyFiles, "read", late)
        assert sorted(everyone(reading)) == ["2"]

    @pytest.mark.parametrize("of_before", [False, True])
    def test_one_that_another_server_makes_while_they_are_destroyed_stays(
        self, opened, postgres, monkeypatch, of_before
    ):
        """The line is cut just when it is known which keys are in use, so that nothing is locked any more."""
        first, second = opened(), opened()
        keep(first, asked(ANN, "1"))
        if of_before:
            keep(first, asked("cleo", "2"))
            forget(first, "2")
        real, times = sealed.keys_in_use, []

        def cut_off(connection):
            found = real(connection)
            times.append(found)
            if len(times) == 1:
                cut(postgres)
                second.change(lambda one: second.remarks.keep(one, 1, "2", {"reason": "b"}))
                keep(second, asked(BEN, "3"))
            return found

        monkeypatch.setattr(postgres_module, "keys_in_use", cut_off)
        first.wipe()
        assert sorted(everyone(opened())) == ["1", "3"]
        assert opened().read(lambda connection: opened().remarks.of(connection, None)) == {1: {"reason": "b"}}

    def test_of_someone_else_s_request_goes_with_a_remark_on_it_that_is_struck(self, opened, key_of, postgres):
        """A row that was deleted lies in the server's files for long: no key that is left opens it."""
        database, other = opened(), opened()

        def work(connection):
            database.subjects.keep(connection, asked(BEN, "2"))
            database.remarks.keep(connection, 1, "2", {"reference": f"same household as {ANN}"})
            database.remarks.keep(connection, 2, "2", {"reason": "b"})

        database.change(work)
        everyone(other)
        row = other.read(lambda connection: connection.execute("SELECT * FROM remarks WHERE event_number = 1"))[0]
        before = key_of("2").read_text()
        other.change(lambda connection: other.remarks.drop(connection, [1]))
        other.wipe()
        assert key_of("2").read_text() != before
        with pytest.raises(SuppressionUnknown):
            key_files.unseal(bytes.fromhex(key_of("2").read_text()), "remark 1", row["sealed_facts"])
        for server in (database, other, opened()):
            assert everyone(server) == {"2": asked(BEN, "2")}
            assert server.read(lambda one, server=server: server.remarks.of(one, ["2"])) == {2: {"reason": "b"}}


class TestNothingIsLeft:
    """After the subject is forgotten nothing of the person is in the server's folder, nor in the workspace's."""

    def found(self, postgres, tmp_path) -> set[str]:
        with psycopg.connect(postgres.address, autocommit=True) as connection:
            connection.execute("CHECKPOINT")
        targets = [Target(ANN), Target("item-of-ann-99"), Target("code-a1b2c3d4")]
        places = [
            *scan_folder(postgres.data, targets, own_vocabulary()).residues,
            *scan_folder(tmp_path, targets, own_vocabulary()).residues,
        ]
        return {residue.file for residue in places}

    def live(self, opened) -> None:
        """Ask, be joined, wait to be learned, be typed in about, and be forgotten."""
        database = opened()
        first = Request(ANN, ("item-of-ann-99",), "a1", "code-a1b2c3d4")

        def work(connection):
            database.subjects.keep(connection, first)
            database.remarks.keep(connection, 1, "a1", {"reference": f"about {ANN}"})
            database.subjects.keep(connection, Request(ANN, None, "a1", "code-a1b2c3d4"))
            database.subjects.keep(connection, asked(BEN, "b2"))

        add(database, (ANN, "item-of-ann-99"), (BEN, "other"))
        database.change(work)
        assert of_user(opened(), ANN)
        drop(database, ANN)
        forget(database, "a1")
        database.wipe()

    def test_of_who_was_sealed(self, opened, postgres, tmp_path):
        self.live(opened)
        assert self.found(postgres, tmp_path) == set()
        assert sorted(everyone(opened())) == ["b2"]
        assert waiting(opened()) == [(BEN, "other")]

    def test_and_the_same_search_finds_who_was_not(self, postgres, tmp_path, monkeypatch):
        """Planted, in a server of its own: it is in the log of changes, and in deleted rows."""
        monkeypatch.setattr(sealed, "seal", lambda key, about, content: json.dumps(content).encode())
        monkeypatch.setattr(sealed, "unseal", lambda key, about, content: json.loads(content))
        with private_postgres() as server, queue_in(server.address, tmp_path / "keys") as opened:
            self.live(opened)
            found = self.found(server, tmp_path)
        assert any(name.startswith("pg_wal/") for name in found)
        assert any(name.startswith("base/") for name in found)
