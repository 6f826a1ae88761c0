"""A queue that is gone, empty or another one: nobody is served or forgotten, it is said, and each remedy works."""

import json
import shutil
import sqlite3
import sys
from contextlib import closing
from pathlib import Path
from unittest.mock import patch

import pytest

from erasable import Recommender
from erasable.cli.main import main
from erasable.errors import (
    QueueLost,
    Refused,
    Suppressed,
    SuppressionUnknown,
    WorkspaceBusy,
    WorkspaceDamaged,
    WorkspaceError,
    WrongUse,
)
from erasable.operations import DiskStorage, begin_new_queue, name_issuer, name_queue, verify
from erasable.operations.storage import AskingPeople, pending_people, suppressed_people
from erasable.recommender._estimator import save_copy
from erasable.requests import Request, opening
from erasable.requests.database import READ_ID
from erasable.requests.opening import open_database, suppressed_in
from erasable.requests.queue import Queue
from erasable.requests.sqlite import SqliteDatabase
from erasable.service._service import Service
from erasable.workspace.files import KEYS, QUEUE_FILE, QUEUE_FILES, writer_lock
from erasable.workspace.folder import read_manifest
from kit import erasure_service, resealing, small_shop
from kit.asking import Killed, erase_only, submit
from kit.copies import copy_of

RELEASED = Path(__file__).parents[1] / "fixtures" / "workspaces" / "0.1"
NOBODY = "so nobody is served"


@pytest.fixture(scope="module")
def learned_once(tmp_path_factory):
    return erasure_service.learn(tmp_path_factory.mktemp("lost") / "shop", users=20)


@pytest.fixture(scope="module")
def asked_once(learned_once, tmp_path_factory):
    """A shop of which someone has asked to be erased, its queue closed."""
    folder = copy_of(learned_once, tmp_path_factory.mktemp("asked") / "shop")
    submit(DiskStorage(folder), Request(erasure_service.people_in(folder)[0]))
    return folder


@pytest.fixture
def shop(asked_once, swift_path):
    return copy_of(asked_once, swift_path / "shop")


@pytest.fixture
def never_asked(learned_once, swift_path):
    return copy_of(learned_once, swift_path / "shop")


@pytest.fixture
def command(capsys, monkeypatch):
    """Run a command, and return exit code and all that it says."""

    def call(*arguments):
        monkeypatch.setattr(sys, "argv", ["erasable", *map(str, arguments)])
        with pytest.raises(SystemExit) as ended:
            main()
        said = capsys.readouterr()
        return ended.value.code or 0, said.out + said.err

    return call


def queue_id_of(folder: Path) -> str | None:
    return read_manifest(folder).preferences.queue_id


def take_away(folder: Path) -> None:
    for name in QUEUE_FILES:
        (folder / name).unlink(missing_ok=True)


def empty(folder: Path) -> None:
    take_away(folder)
    (folder / QUEUE_FILE).touch()


def put_a_fresh_database(folder: Path) -> None:
    take_away(folder)
    with closing(sqlite3.connect(folder / QUEUE_FILE)) as connection:
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("VACUUM")


def put_a_fresh_queue(folder: Path) -> None:
    take_away(folder)
    SqliteDatabase.open(folder).close()


def put_the_queue_of_another(folder: Path) -> None:
    other = copy_of(folder, folder.with_name("other"))
    take_away(other)
    begin_new_queue(DiskStorage(other))
    take_away(folder)
    shutil.copy(other / QUEUE_FILE, folder / QUEUE_FILE)


WAYS = {
    "removed": take_away,
    "emptied": empty,
    "a fresh database": put_a_fresh_database,
    "a fresh queue": put_a_fresh_queue,
    "another workspace's": put_the_queue_of_another,
}
COMMANDS = {
    "recommend": (1, ("recommend", "{shop}", "--user", "{other}")),
    "recommend who asked": (1, ("recommend", "{shop}", "--user", "{asked}")),
    "recommend all": (1, ("recommend", "{shop}", "--all")),
    "forget": (1, ("forget", "{shop}", "--user", "{other}")),
    "forget and wait for nobody": (1, ("forget", "{shop}", "--user", "{other}", "--no-wait")),
    "forget, resumed": (1, ("forget", "{shop}", "--resume")),
    "forget, withdrawn": (1, ("forget", "{shop}", "--withdraw")),
    "learn more": (1, ("learn", "--more", "{more}", "--into", "{shop}")),
    "token create": (1, ("token", "create", "{shop}", "--role", "operator")),
    "token list": (1, ("token", "list", "{shop}")),
    "serve": (1, ("serve", "{shop}", "--port", "0")),
    "verify": (2, ("verify", "{shop}")),
    "scan": (2, ("scan", "{shop}", "--user", "nobody-at-all")),
    "status": (0, ("status", "{shop}")),
    "status, as JSON": (0, ("status", "{shop}", "--json")),
    "doctor": (0, ("doctor", "{shop}")),
}


@pytest.fixture(params=WAYS)
def lost(request, shop):
    """A shop whose queue is lost, in each way; a copy of the queue is kept beside."""
    shutil.copy(shop / QUEUE_FILE, shop.with_name("copy.sqlite"))
    WAYS[request.param](shop)
    return shop


def restore(folder: Path) -> None:
    take_away(folder)
    shutil.copy(folder.with_name("copy.sqlite"), folder / QUEUE_FILE)


class TestCommands:
    def test_each_says_it_and_none_serves_or_forgets(self, lost, command, tmp_path, monkeypatch):
        monkeypatch.setattr("os.execv", lambda *_: pytest.fail("it serves"))
        asked, other, *_ = people = erasure_service.people_in(lost)
        more = tmp_path / "more.csv"
        more.write_text("user_id,item_id,rating\nzoe,a,3\nzoe,b,4\n")
        words = {"{shop}": lost, "{asked}": asked, "{other}": other, "{more}": more}
        remedy = f"erasable forget {lost} --new-queue"
        for name, (expected, arguments) in COMMANDS.items():
            code, said = command(*(words.get(one, one) for one in arguments))
            assert (code, NOBODY in said, remedy in said) == (expected, True, True), (name, said)
            assert "identical" not in said, name
        assert erasure_service.people_in(lost) == people
        assert queue_id_of(lost) != ""

    def test_what_has_no_verdict_on_serving_ends_as_ever_once_it_is_back(self, lost, command):
        restore(lost)
        assert command("verify", lost)[0] == 0
        assert command("scan", lost, "--user", "nobody-at-all")[0] == 0


class TestHealthy:
    """What the others are measured by: a queue that is there holds back who asked, and nobody else."""

    def test_it_serves_others_and_holds_back_who_asked(self, shop, command):
        asked, other, *_ = erasure_service.people_in(shop)
        assert command("recommend", shop, "--user", other)[0] == 0
        assert command("recommend", shop, "--user", asked)[0] == 1
        assert NOBODY not in command("status", shop)[1]
        assert json.loads(command("status", shop, "--json")[1])["queue_fault"] is None
        assert command("token", "create", shop, "--role", "operator")[0] == 0
        assert command("verify", shop)[0] == 0

    def test_a_copy_of_the_whole_folder_goes_on(self, shop, swift_path):
        asked, other, *_ = erasure_service.people_in(shop)
        copied = copy_of(shop, swift_path / "copied")
        assert suppressed_in(copied).people == {asked}
        assert Recommender.load(copied).recommend([other]).num_rows

    def test_a_backup_of_one_moment_goes_on(self, shop, swift_path):
        backup = copy_of(shop, swift_path / "backup")
        asked, other, *_ = erasure_service.people_in(shop)
        Recommender.load(shop, threads=1).forget([other])
        shutil.rmtree(shop)
        copy_of(backup, shop)
        assert suppressed_in(shop).people == {asked}
        assert Recommender.load(shop, threads=1).forget([other]).certificates

    def test_it_keeps_its_id_through_every_change(self, shop):
        before = queue_id_of(shop)
        asked, other, *_ = erasure_service.people_in(shop)
        Recommender.load(shop, threads=1).forget([asked, other])
        name_issuer(DiskStorage(shop), "Somebody")
        with closing(open_database(shop)) as database:
            assert [row["queue_id"] for row in database.read(lambda one: one.execute(READ_ID))] == [before]
        assert queue_id_of(shop) == before

    def test_a_workspace_without_a_queue_serves_everyone_and_begins_one(self, never_asked):
        people = erasure_service.people_in(never_asked)
        assert Recommender.load(never_asked).recommend(people[:1]).num_rows
        assert not (never_asked / QUEUE_FILE).exists()
        assert queue_id_of(never_asked) is None
        submit(DiskStorage(never_asked), Request(people[0]))
        with pytest.raises(Suppressed):
            Recommender.load(never_asked).recommend(people[:1])

    def test_a_saved_copy_has_none(self, shop, swift_path):
        asked = erasure_service.people_in(shop)[0]
        Recommender.load(shop, threads=1).forget([asked])
        save_copy(DiskStorage(shop), swift_path / "saved")
        assert queue_id_of(swift_path / "saved") is None
        assert Recommender.load(swift_path / "saved").recommend(None, 1).num_rows


class TestLibrary:
    def test_nobody_is_served_or_forgotten(self, lost, swift_path):
        asked, other, *_ = people = erasure_service.people_in(lost)
        recommender, storage = Recommender.load(lost, threads=1), DiskStorage(lost)
        for ask in (
            lambda: recommender.recommend([other]),
            lambda: recommender.recommend([asked]),
            lambda: recommender.forget([other]),
            lambda: recommender.forget([]),
            lambda: recommender.save(swift_path / "saved"),
            lambda: AskingPeople(storage).now(),
            lambda: open_database(lost),
            lambda: Service.open(lost),
            lambda: name_queue(storage, "postgresql://nobody@localhost:1/none"),
        ):
            with pytest.raises(QueueLost, match=NOBODY) as refused:
                ask()
            assert "forget([], new_queue=True)" in str(refused.value)
        assert recommender.verify().identical is None
        assert erasure_service.people_in(lost) == people

    def test_who_had_loaded_it_before_notices(self, shop):
        _, other, *_ = erasure_service.people_in(shop)
        recommender = Recommender.load(shop)
        assert recommender.recommend([other]).num_rows
        take_away(shop)
        with pytest.raises(QueueLost, match="is gone"):
            recommender.recommend([other])

    def test_what_is_written_over_an_open_file_is_noticed(self, shop):
        with closing(open_database(shop)) as database:
            Queue(database).suppressed()
            with closing(sqlite3.connect(shop / QUEUE_FILE)) as other:
                other.execute("UPDATE identity SET queue_id = 'another'")
                other.commit()
            for use in (database.read, database.change):
                with pytest.raises(QueueLost, match="another one"):
                    use(lambda connection: None)


class TestRemedies:
    def test_a_copy_that_is_put_back(self, lost):
        asked, other, *_ = erasure_service.people_in(lost)
        restore(lost)
        recommender = Recommender.load(lost, threads=1)
        assert recommender.recommend([other]).num_rows
        with pytest.raises(Suppressed):
            recommender.recommend([asked])
        assert len(recommender.forget([asked]).certificates) == 1

    def test_a_new_queue(self, lost, command):
        asked, other, *_ = erasure_service.people_in(lost)
        before = queue_id_of(lost)
        code, said = command("forget", lost, "--new-queue")
        if code:  # what lies there may be somebody's
            assert f"move {lost / QUEUE_FILE}" in said
            take_away(lost)
            code, said = command("forget", lost, "--new-queue")
        assert (code, "submit them again" in said) == (0, True)
        assert queue_id_of(lost) not in (None, before)
        assert command("recommend", lost, "--user", asked)[0] == 0
        assert '"what":"new queue"' in next(lost.glob("audit-*")).read_text()
        assert command("forget", lost, "--user", other)[0] == 0
        assert command("verify", lost)[0] == 0
        take_away(lost)
        assert command("recommend", lost, "--user", asked)[0] == 1

    def test_nothing_that_may_be_somebodys_is_destroyed(self, shop):
        put_the_queue_of_another(shop)
        before = (shop / QUEUE_FILE).read_bytes()
        with pytest.raises(Refused, match="elsewhere"):
            begin_new_queue(DiskStorage(shop))
        assert (shop / QUEUE_FILE).read_bytes() == before

    def test_a_queue_that_is_there_is_not_replaced(self, shop, command):
        assert command("forget", shop, "--new-queue")[0] == 1
        assert suppressed_in(shop).people

    def test_in_memory_there_is_nothing_to_lose(self):
        with pytest.raises(WrongUse, match="new_queue"):
            Recommender(model="ease").fit(small_shop.table(20, 10)).forget([], new_queue=True)

    def test_in_python(self, shop):
        asked, other, *_ = erasure_service.people_in(shop)
        take_away(shop)
        recommender = Recommender.load(shop, threads=1)
        assert len(recommender.forget([asked], new_queue=True).certificates) == 1
        assert recommender.recommend([other]).num_rows

    def test_with_a_user_it_forgets_too_and_as_json_it_says_so(self, shop, command):
        asked = erasure_service.people_in(shop)[0]
        take_away(shop)
        assert json.loads(command("forget", shop, "--new-queue", "--json")[1]) == {"new_queue": True}
        take_away(shop)
        assert command("forget", shop, "--new-queue", "--user", asked)[0] == 0
        assert asked not in erasure_service.people_in(shop)

    def test_an_erasure_that_is_done_is_certified_with_the_new_queue(self, shop):
        _, other, *_ = erasure_service.people_in(shop)
        erase_only(DiskStorage(shop), Request(other))
        take_away(shop)
        recommender = Recommender.load(shop, threads=1)
        with pytest.raises(QueueLost):
            recommender.forget([])
        assert len(recommender.forget([], new_queue=True).certificates) == 2  # with what a command had left
        assert verify(DiskStorage(shop)).identical


class TestKilled:
    def test_between_queue_and_manifest_leaves_what_the_next_one_names(self, never_asked):
        storage, people = DiskStorage(never_asked), erasure_service.people_in(never_asked)
        with patch.object(opening, "_name", side_effect=Killed), pytest.raises(Killed):
            submit(storage, Request(people[0]))
        assert (never_asked / QUEUE_FILE).exists()
        assert queue_id_of(never_asked) is None
        assert Recommender.load(never_asked).recommend(people[:1]).num_rows  # nobody has asked yet
        submit(storage, Request(people[0]))
        assert queue_id_of(never_asked)
        take_away(never_asked)
        with pytest.raises(QueueLost):
            suppressed_in(never_asked)

    def test_what_is_written_next_names_it_too(self, never_asked):
        with patch.object(opening, "_name", side_effect=Killed), pytest.raises(Killed):
            open_database(never_asked)
        name_issuer(DiskStorage(never_asked), "Somebody")
        assert queue_id_of(never_asked)
        assert suppressed_in(never_asked).people == frozenset()

    def test_before_a_new_queue_is_declared_it_stays_lost(self, shop):
        take_away(shop)
        with (
            patch("erasable.operations.recording._amend", side_effect=Killed),
            pytest.raises(Killed),
        ):
            begin_new_queue(DiskStorage(shop))
        with pytest.raises(QueueLost):
            suppressed_in(shop)
        begin_new_queue(DiskStorage(shop))
        assert suppressed_in(shop).people == frozenset()

    def test_after_that_it_is_one_that_has_no_queue_yet(self, shop):
        asked = erasure_service.people_in(shop)[0]
        take_away(shop)
        with (
            patch("erasable.operations.recording.open_database", side_effect=Killed),
            pytest.raises(Killed),
        ):
            begin_new_queue(DiskStorage(shop))
        assert suppressed_in(shop).people == frozenset()
        submit(DiskStorage(shop), Request(asked))
        assert suppressed_in(shop).people == {asked}


class TestFirstUse:
    def test_it_waits_for_a_command_that_writes_and_then_says_so(self, never_asked, monkeypatch):
        monkeypatch.setattr(opening, "_WRITER_SECONDS", 0.1)
        with writer_lock(never_asked), pytest.raises(WorkspaceBusy, match="another command is writing"):
            open_database(never_asked)
        open_database(never_asked).close()
        with writer_lock(never_asked):  # it has a name by now
            open_database(never_asked).close()

    def test_whoever_finds_another_queue_named_meanwhile_asks_nothing_of_its_own(self, never_asked, monkeypatch):
        monkeypatch.setattr(opening.time, "sleep", lambda _: pytest.fail("it waits for what can't change"))
        with closing(SqliteDatabase.open(never_asked)) as own:
            own_id = own.change(opening.given_id)
        resealing.with_fields(never_asked, lambda fields: fields["preferences"].update(queue_id="0" * 32))
        with pytest.raises(WorkspaceBusy, match="another queue"):
            opening._name_as_writer(never_asked, own_id)

    @pytest.mark.parametrize(
        "name", sorted(path.parents[1].name for path in RELEASED.glob("*/workspace/ledger.sqlite"))
    )
    def test_a_queue_of_0_1_is_adopted_at_the_next_write(self, name, swift_path):
        folder = copy_of(RELEASED / name / "workspace", swift_path / "shop")
        people = suppressed_in(folder)
        with closing(open_database(folder)) as database:
            database.cut_log()
        assert (read_manifest(folder).written_in, queue_id_of(folder)) == (3, None)
        name_issuer(DiskStorage(folder), "Somebody")
        assert queue_id_of(folder)
        assert suppressed_in(folder) == people
        take_away(folder)
        with pytest.raises(QueueLost):
            suppressed_in(folder)


class TestPendingFile:
    """The file of people who are erased and sought, which the manifest names."""

    @pytest.fixture
    def sought(self, shop):
        erase_only(DiskStorage(shop), Request(erasure_service.people_in(shop)[1]))
        return next(shop.glob("pending-*"))

    @pytest.mark.parametrize("hashed", [False, True])
    def test_one_that_was_emptied_is_damaged_and_not_somebody_elses(self, shop, sought, hashed):
        _, _, other, *_ = erasure_service.people_in(shop)
        kept = sought.read_bytes()
        if hashed:
            resealing.with_file(shop, sought.name, b"")
        else:
            sought.write_bytes(b"")
        recommender = Recommender.load(shop, threads=1)
        for ask in (lambda: recommender.recommend([other]), lambda: recommender.forget([other])):
            with pytest.raises(WorkspaceDamaged, match="is damaged: restore it from a copy") as refused:
                ask()
            assert "owner" not in str(refused.value)
        assert verify(DiskStorage(shop)).identical is False
        resealing.with_file(shop, sought.name, kept)
        assert recommender.recommend([other]).num_rows

    def test_one_that_may_not_be_read_is_the_owners(self, shop, sought, monkeypatch):
        monkeypatch.setattr("erasable.workspace.workspace.os.access", lambda path, mode: Path(path) != sought)
        with DiskStorage(shop).reading() as session, pytest.raises(WorkspaceError, match="as the owner"):
            pending_people(session)


class TestPostgres:
    @pytest.fixture
    def named(self, shop, postgres):
        """A shop with its queue in Postgres; a connection there, and its schema."""
        psycopg = pytest.importorskip("psycopg")
        name_queue(DiskStorage(shop), postgres.address)
        assert len(suppressed_in(shop).people) == 1
        schema = read_manifest(shop).preferences.queue[1]
        with psycopg.connect(postgres.address, autocommit=True) as connection:
            yield shop, connection, schema
        opening._READERS.close()

    @pytest.fixture(params=["dropped", "emptied of tables", "emptied of rows", "made anew", "another's", "keys lost"])
    def gone(self, request, named):
        folder, connection, schema = named
        if request.param == "keys lost":
            shutil.rmtree(folder / KEYS)
            opening._READERS.close()  # who has read them knows them
        elif request.param == "emptied of rows":
            found = connection.execute("SELECT tablename FROM pg_tables WHERE schemaname = %s", (schema,)).fetchall()
            connection.execute(f"DROP TRIGGER events_stay ON {schema}.events")
            connection.execute(f"TRUNCATE {', '.join(f'{schema}.{name}' for (name,) in found)}")
        elif request.param == "another's":
            connection.execute(f"UPDATE {schema}.identity SET queue_id = '{'0' * 32}'")
            connection.execute(f"UPDATE {schema}.changes SET change_id = change_id || 'x'")
        else:
            connection.execute(f"DROP SCHEMA {schema} CASCADE")
            if request.param == "emptied of tables":
                connection.execute(f"CREATE SCHEMA {schema}")
            elif request.param == "made anew":
                address, schema = read_manifest(folder).preferences.queue
                with closing(opening.database_at(folder, address, schema)) as there:
                    there.create()
        return folder

    def test_nobody_is_served_or_forgotten_and_each_says_it(self, gone, command):
        asked, other, *_ = erasure_service.people_in(gone)
        recommender = Recommender.load(gone, threads=1)
        for ask in (
            lambda: recommender.recommend([other]),
            lambda: recommender.forget([other]),
            lambda: Service.open(gone).close(),
        ):
            with pytest.raises(SuppressionUnknown, match="nobody is served"):
                ask()
        assert recommender.verify().identical is None
        for arguments in (["recommend", gone, "--user", other], ["forget", gone, "--user", other], ["status", gone]):
            said = command(*arguments)[1]
            assert "nobody is served" in said, arguments
            assert f"erasable forget {gone} --new-queue" in said, arguments
        assert asked in erasure_service.people_in(gone)

    def test_a_new_queue_can_be_begun(self, gone, command):
        asked, other, *_ = erasure_service.people_in(gone)
        assert command("forget", gone, "--new-queue")[0] == 0
        assert suppressed_in(gone).people == frozenset()
        submit(DiskStorage(gone), Request(asked))
        assert suppressed_in(gone).people == {asked}
        assert len(Recommender.load(gone, threads=1).forget([asked, other]).certificates) == 2

    def test_a_label_whose_key_is_lost_is_noise_that_keeps_nobody_waiting(self, named, command):
        folder, *_ = named
        asked, other, *_ = erasure_service.people_in(folder)
        assert command("token", "create", folder, "--role", "officer", "--label", "the front desk")[0] == 0
        (key,) = (folder / KEYS).glob("label-*")
        number = json.loads(command("token", "list", folder, "--json")[1])["tokens"][0]["number"]
        key.unlink()
        assert "rename the token" in command("token", "list", folder)[1]
        assert len(Recommender.load(folder, threads=1).forget([asked, other]).certificates) == 2
        assert command("token", "rename", folder, number, "the back door")[0] == 0
        assert "the back door" in command("token", "list", folder)[1]

    def test_the_id_moves_with_the_queue(self, shop, postgres):
        before = queue_id_of(shop)
        name_queue(DiskStorage(shop), postgres.address)
        assert queue_id_of(shop) == before
        with closing(open_database(shop)) as database:
            assert [row["queue_id"] for row in database.read(lambda one: one.execute(READ_ID))] == [before]

    def test_a_server_that_has_it_open_notices(self, named):
        folder, connection, schema = named
        with closing(open_database(folder)) as database:
            queue = Queue(database)
            assert len(queue.suppressed()) == 1
            connection.execute(f"DELETE FROM {schema}.identity")
            for use in (lambda: database.read(database.subjects.all), lambda: database.change(lambda _: None)):
                with pytest.raises(QueueLost, match="does not hold its queue"):
                    use()

    def test_whoever_asks_while_it_moves_is_told_by_where_it_went(self, shop, postgres, monkeypatch):
        real, moved = opening.people_in_file, []

        def moving(workspace, queue_id=None):
            if not moved:
                moved.append(name_queue(DiskStorage(shop), postgres.address))
            return real(workspace, queue_id)

        monkeypatch.setattr(opening, "people_in_file", moving)
        storage = DiskStorage(shop)
        assert len(suppressed_in(shop).people) == 1
        with storage.reading() as session:
            assert len(suppressed_people(storage, session)) == 1
        opening._READERS.close()

    def test_a_manifest_of_before_the_queue_serves_nobody_and_no_command_destroys_a_key(
        self, never_asked, postgres, command
    ):
        """Whoever puts back an older manifest, which names no queue, finds the keys of who has asked since."""
        pytest.importorskip("psycopg")
        older = (never_asked / "manifest.json").read_bytes()
        asked, other, *_ = erasure_service.people_in(never_asked)
        name_queue(DiskStorage(never_asked), postgres.address)
        submit(DiskStorage(never_asked), Request(asked))
        newest, keys = (never_asked / "manifest.json").read_bytes(), sorted((never_asked / KEYS).iterdir())
        assert keys
        (never_asked / "manifest.json").write_bytes(older)
        for arguments in (
            ["recommend", never_asked, "--user", other],
            ["forget", never_asked, "--user", other],
            ["token", "list", never_asked],
            ["forget", never_asked, "--new-queue"],
        ):
            code, said = command(*arguments)
            assert (code, "put the newest manifest back" in said or str(never_asked / KEYS) in said) == (1, True)
        assert sorted((never_asked / KEYS).iterdir()) == keys
        (never_asked / "manifest.json").write_bytes(newest)
        assert suppressed_in(never_asked).people == {asked}
        opening._READERS.close()
