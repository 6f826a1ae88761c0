"""Who is suppressed: one answer for library, command and service, and nobody is served where it can't be had."""

import json
import os
import sqlite3
import subprocess
import sys
import threading
import time
from contextlib import closing

import pytest

from erasable import Recommender
from erasable.cli.main import main
from erasable.errors import Refused, Suppressed, UnknownUser, WorkspaceDamaged, WorkspaceError
from erasable.operations import DiskStorage, MemoryStorage, evaluate, recommend, show, status, withdraw_submitted
from erasable.operations.storage import AskingPeople, suppressed_people
from erasable.requests import Request
from erasable.requests.request import NOBODY_ASKED
from erasable.service._service import Service
from erasable.workspace.files import QUEUE_FILE, QUEUE_FILES
from kit import erasure_service
from kit.asking import accept, submit
from kit.choosing import some
from kit.copies import copy_of

SUPPRESSED = "has asked to be erased and is suppressed"
# Run as somebody to whom nothing belongs: what is private can't be read then.
AS_NOBODY = """
import os, sys
from erasable.cli.main import main, make_app
import numba, pandas
make_app()  # imports every command: nobody may not read where Python lies
os.setgid(65534)
os.setuid(65534)
main()
"""


@pytest.fixture(scope="module")
def learned_once(tmp_path_factory):
    return erasure_service.learn(tmp_path_factory.mktemp("suppressed") / "shop", users=20)


@pytest.fixture
def shop(learned_once, swift_path):
    return copy_of(learned_once, swift_path / "shop")


@pytest.fixture
def command(capsys, monkeypatch):
    """Run a command, and return exit code, output and what it says."""

    def call(*arguments):
        monkeypatch.setattr(sys, "argv", ["erasable", *map(str, arguments)])
        with pytest.raises(SystemExit) as ended:
            main()
        said = capsys.readouterr()
        return ended.value.code or 0, said.out, said.err

    return call


def withdraw(folder, request_id):
    opened = Service.open(folder, erasure_service.AT_ONCE)
    with closing(opened.database):
        opened.reception.withdraw(request_id, "someone", None)


class TestAskedOfTheService:
    def test_neither_command_nor_library_serves_them_and_others_are_served(self, shop, command):
        asked, other, *_ = everyone = erasure_service.people_in(shop)
        earlier = Recommender.load(shop)
        assert earlier.recommend([asked]).num_rows
        (request_id,) = erasure_service.file_requests(shop, Request(asked))
        for library in (earlier, Recommender.load(shop)):
            with pytest.raises(Suppressed, match=f"{asked!r} {SUPPRESSED}"):
                library.recommend([asked])
            assert library.recommend([other]).num_rows
        code, out, err = command("recommend", shop, "--user", asked)
        assert (code, out) == (1, "")
        assert SUPPRESSED in err
        found = json.loads(command("recommend", shop, "--all", "--json")[1])["recommendations"]
        assert sorted(one["user_id"] for one in found) == sorted(set(everyone) - {asked})
        withdraw(shop, request_id)
        for library in (earlier, Recommender.load(shop)):
            assert library.recommend([asked]).num_rows

    def test_a_library_that_is_asked_all_the_time_notices_each_request_at_once(self, shop):
        people = erasure_service.people_in(shop)
        library = Recommender.load(shop)
        opened = Service.open(shop, erasure_service.AT_ONCE)
        with closing(opened.database):
            for asked in people[:10]:
                assert library.recommend([asked]).num_rows
                opened.reception.submit(Request(asked), "someone")
                with pytest.raises(Suppressed):
                    library.recommend([asked])
        assert library.recommend([people[10]]).num_rows

    def test_it_notices_them_from_several_threads(self, shop):
        people = erasure_service.people_in(shop)
        library, filed, wrong, stop = Recommender.load(shop), set(), [], threading.Event()

        def read():
            while not stop.is_set():
                before = set(filed)
                rows = library.recommend(people, k=1, unknown="popular").to_pylist()
                wrong.extend(row for row in rows if row["user_id"] in before and not row["popular"])

        threads = [threading.Thread(target=read) for _ in range(3)]
        for thread in threads:
            thread.start()
        opened = Service.open(shop, erasure_service.AT_ONCE)
        with closing(opened.database):
            for asked in people[:8]:
                opened.reception.submit(Request(asked), "someone")
                filed.add(asked)
        stop.set()
        for thread in threads:
            thread.join()
        assert wrong == []

    def test_once_they_are_erased_nothing_is_held(self, shop, command):
        asked = erasure_service.people_in(shop)[0]
        library = Recommender.load(shop)
        library.recommend([asked])
        erasure_service.file_requests(shop, Request(asked))
        erasure_service.work_off(shop)
        with pytest.raises(UnknownUser, match="nothing is held") as refused:
            library.recommend([asked])
        assert not isinstance(refused.value, Suppressed)
        assert "nothing is held" in command("recommend", shop, "--user", asked)[2]

    def test_with_the_fallback_they_get_what_strangers_get(self, shop):
        asked = erasure_service.people_in(shop)[0]
        erasure_service.file_requests(shop, Request(asked))
        suppressed, stranger = (
            [(row["item_id"], row["score"], row["popular"]) for row in rows.to_pylist()]
            for rows in (Recommender.load(shop).recommend([user], 3, unknown="popular") for user in (asked, "stranger"))
        )
        assert suppressed == stranger

    def test_they_may_be_left_out_and_keep_nobody_else_from_being_served(self, shop):
        asked, other = erasure_service.people_in(shop)[:2]
        erasure_service.file_requests(shop, Request(asked))
        found = Recommender.load(shop).recommend([asked, other, "stranger"], k=1, unknown="skip")
        assert found["user_id"].to_pylist() == [other]

    def test_the_api_tells_them_from_nobody_else(self, shop):
        asked = erasure_service.people_in(shop)[0]
        erasure_service.file_requests(shop, Request(asked))
        opened = Service.open(shop, erasure_service.AT_ONCE)
        with closing(opened.database):
            for user in (asked, "stranger"):
                with pytest.raises(UnknownUser, match=f"^nothing is held about the user '{user}'") as refused:
                    opened.live.recommend(user, 3)
                assert type(refused.value) is UnknownUser

    def test_evaluation_serves_nobody_and_stays_as_it_was(self, shop):
        before = evaluate(DiskStorage(shop))
        erasure_service.file_requests(shop, Request(erasure_service.people_in(shop)[0]))
        assert evaluate(DiskStorage(shop)) == before


class TestWhoMayKnow:
    def test_status_counts_them_wherever_they_asked(self, shop, command):
        first, second, third, *_ = erasure_service.people_in(shop)
        assert status(DiskStorage(shop))["suppressed"] == 0
        erasure_service.file_requests(shop, Request(first), Request(second))
        storage = DiskStorage(shop)
        submit(storage, Request(third))
        found = status(storage)
        assert (found["suppressed"], found["pending"]) == (3, 1)
        assert "suppressed    3" in command("status", shop)[1]
        with storage.reading() as session:
            assert suppressed_people(storage, session) == {first, second, third}
        withdraw_submitted(storage)
        assert status(storage)["suppressed"] == 2

    def test_show_shows_everything_and_says_so(self, shop, command):
        asked, other, *_ = erasure_service.people_in(shop)
        before = show(DiskStorage(shop), asked)
        assert before.suppressed is False
        erasure_service.file_requests(shop, Request(asked))
        after = show(DiskStorage(shop), asked)
        assert after.suppressed is True
        assert (after.interactions, after.personal_rows) == (before.interactions, before.personal_rows)
        assert show(DiskStorage(shop), other).suppressed is False
        assert SUPPRESSED in command("show", shop, "--user", asked)[1]
        assert SUPPRESSED not in command("show", shop, "--user", other)[1]

    def test_no_copy_is_made_that_would_serve_them(self, shop, tmp_path):
        asked, *_ = erasure_service.people_in(shop)
        erasure_service.file_requests(shop, Request(asked))
        with pytest.raises(Refused, match="open request with the service"):
            Recommender.load(shop, threads=1).save(tmp_path / "copy")
        assert not (tmp_path / "copy").exists()

    def test_the_library_carries_out_what_the_service_was_asked_for_and_shows_nobodys_receipt(self, shop):
        asked, other, *_ = erasure_service.people_in(shop)
        erasure_service.file_requests(shop, Request(asked))
        done = Recommender.load(shop, threads=1).forget([asked, other])
        assert (len(done.certificates), [one.user_id for one in done.receipts]) == (2, [other])
        with DiskStorage(shop).queue() as queue:
            assert queue.history.counts() == {"erased": 2}

    def test_the_library_leaves_what_is_on_hold_to_the_service(self, shop):
        asked, other, *_ = erasure_service.people_in(shop)
        erasure_service.file_requests(shop, Request(asked))
        with DiskStorage(shop).queue() as queue:
            (waiting,) = queue.history.in_states(["suppressed"])
            queue.advance(waiting.request_id, "on hold", "officer 1", waiting.received)
        with pytest.raises(Refused, match="put on hold"):
            Recommender.load(shop, threads=1).forget([asked])
        assert Recommender.load(shop, threads=1).forget([other]).certificates
        with DiskStorage(shop).queue() as queue:
            assert queue.history.counts() == {"on hold": 1, "erased": 1}

    def test_in_memory_too(self, shop):
        storage = DiskStorage(shop)
        asked = erasure_service.people_in(shop)[0]
        submit(storage, Request(asked))
        with pytest.raises(Suppressed):
            recommend(storage, [asked])


class TestWhereItCanNotBeRead:
    """Nobody is served, by the command, a new library or one that has served before."""

    @pytest.fixture
    def refused(self, shop, command):
        asked, other, *_ = erasure_service.people_in(shop)
        erasure_service.file_requests(shop, Request(asked))
        earlier = Recommender.load(shop)
        assert earlier.recommend([other]).num_rows

        def check(kind, said):
            for library in (earlier, Recommender.load(shop)):
                for users in ([other], [asked], []):
                    with pytest.raises(kind, match=said):
                        library.recommend(users, unknown="popular")
            for users in (["--user", other], ["--all"]):
                code, out, err = command("recommend", shop, *users)
                assert (code, out) == (1, "")
                assert said in err
            assert show(DiskStorage(shop), asked).suppressed is None
            assert status(DiskStorage(shop))["suppressed"] is None

        return check

    def test_a_ledger_of_another_format(self, shop, refused):
        with closing(sqlite3.connect(shop / QUEUE_FILE)) as connection:
            connection.execute("PRAGMA user_version = 99")
        refused(WorkspaceError, "has the format 99")

    def test_a_damaged_ledger(self, shop, refused):
        for name in QUEUE_FILES[1:]:
            (shop / name).unlink(missing_ok=True)
        (shop / QUEUE_FILE).write_bytes(b"no database at all" * 1000)
        refused(WorkspaceDamaged, "is damaged")

    def test_a_ledger_that_may_not_be_read(self, shop, refused, monkeypatch):
        real = os.access
        monkeypatch.setattr(os, "access", lambda path, mode: not str(path).endswith(QUEUE_FILE) and real(path, mode))
        os.utime(shop / QUEUE_FILE)
        refused(WorkspaceError, "says who has asked to be erased")

    def test_pending_requests_that_may_not_be_read(self, shop, refused, monkeypatch):
        accept(DiskStorage(shop), Request(erasure_service.people_in(shop)[2]))
        real = os.access
        monkeypatch.setattr(os, "access", lambda path, mode: "/pending" not in str(path) and real(path, mode))
        refused(WorkspaceError, "says who has asked to be erased")

    @pytest.mark.full
    @pytest.mark.skipif(os.geteuid() != 0, reason="only root can become somebody else")
    @pytest.mark.parametrize("private", some(["ledger", "pending"], 1))
    def test_somebody_else_who_may_read_the_rest(self, shop, private):
        asked, other, *_ = erasure_service.people_in(shop)
        if private == "ledger":
            erasure_service.file_requests(shop, Request(asked))
        else:
            accept(DiskStorage(shop), Request(asked))
        for path in (shop.parent, shop, *shop.rglob("*")):
            if not path.name.startswith(("ledger", "pending", "signing-key")):
                path.chmod(0o755 if path.is_dir() else 0o644)
        call = [sys.executable, "-c", AS_NOBODY]
        found = subprocess.run([*call, "recommend", str(shop), "--user", other], capture_output=True, text=True)
        assert (found.returncode, found.stdout) == (1, "")
        assert "says who has asked to be erased" in found.stderr
        found = subprocess.run([*call, "show", str(shop), "--user", asked, "--json"], capture_output=True, text=True)
        assert (found.returncode, found.stderr) == (0, "")
        assert json.loads(found.stdout)["suppressed"] is None


class TestReadingAgain:
    def test_a_ledger_that_has_not_changed_for_a_while_is_not_read_again(self, shop, monkeypatch):
        erasure_service.file_requests(shop, Request("nobody"), Request(erasure_service.people_in(shop)[0]))
        people = AskingPeople(DiskStorage(shop))
        assert len(people.now().people) == 1
        for name in QUEUE_FILES:
            if (shop / name).exists():
                os.utime(shop / name, (1, 1))
        people.now()
        monkeypatch.setattr("erasable.operations.storage.suppressed_in", lambda path: pytest.fail("read again"))
        assert people.now() == people.last_read

    def test_one_that_has_just_changed_is_read_again_although_it_looks_the_same(self, shop, monkeypatch):
        asked, other, *_ = erasure_service.people_in(shop)
        erasure_service.file_requests(shop, Request(asked))
        monkeypatch.setattr("erasable.operations.storage.queue_mark", lambda path: ("same", time.time_ns()))
        people = AskingPeople(DiskStorage(shop))
        assert people.now().people == {asked}
        erasure_service.file_requests(shop, Request(other))
        assert people.now().people == {asked, other}

    def test_without_a_ledger_nobody_has_asked(self, shop, tmp_path):
        assert AskingPeople(DiskStorage(tmp_path)).now() == AskingPeople(MemoryStorage()).now() == NOBODY_ASKED
