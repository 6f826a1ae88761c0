"""`erasable forget`: what it does and says, what it refuses, and what is left of the person."""

import errno
import io
import json
import os
import re
import shutil
import signal
import sys
import threading
import time
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from erasable.operations import DiskStorage, forget
from erasable.proof import records_of
from erasable.requests import Request
from erasable.requests.lease import Lease, holder_of
from erasable.requests.lease import Process as LeaseHolder
from erasable.service._worker import WorkerOptions, run_worker
from erasable.service.settings import ServiceSettings
from erasable.workspace import Workspace, files
from kit.killing import ended, forked, frozen

REMINDER = "The input file, exports and backups still hold the person: erase them there too."


def users_at(folder, position):
    with Workspace.reading(folder) as workspace:
        return workspace.state().dataset.groups[position].users.texts()


def ids_in(folder: Path) -> set[str]:
    """Every text in every Parquet file below a folder."""
    tables = [pq.read_table(path) for path in folder.rglob("*.parquet")]
    columns = [column for table in tables for column in table.columns]
    return {value for column in columns for value in column.to_pylist() if isinstance(value, str)}


def all_bytes(folder: Path) -> bytes:
    return b"\n".join(str(path).encode() + path.read_bytes() for path in folder.rglob("*") if path.is_file())


@pytest.fixture
def kept_out(run, ratings_file, tmp_path) -> Path:
    """A workspace with a holdout, a filter and several groups, which may be changed."""
    options = ("--model", "nmf", "--groups", 3, "--epochs", 3, "--holdout", 0.4, "--min-interactions", 2)
    assert run("learn", ratings_file, "--into", tmp_path / "shop", *options).code == 0
    return tmp_path / "shop"


class TestWhatIsSaid:
    @pytest.mark.parametrize("position", [0, 1, 2])
    def test_json_names_the_certificate_and_the_cost(self, run, shop, position):
        found = run("forget", shop, "--user", users_at(shop, position)[0], "--json").json
        assert [Path(path).parent for path in found["certificates"]] == [shop / "certificates"]
        assert Path(found["certificates"][0]).exists()
        assert (found["stages_rerun"], found["stages_total"]) == (3 - position, 3)
        assert 0 < found["cost_ratio"] < 1
        assert found["seconds"] > 0
        assert found["reminder"] == REMINDER

    def test_words_say_the_same(self, run, shop):
        user = users_at(shop, 1)[0]
        first, searched, second, third, fourth = run("forget", shop, "--user", user).out.splitlines()
        assert searched == "the files of the workspace were searched: nothing of what was erased was found"
        assert first.startswith("erased data of 1 person: trained 2 of 3 stages again, ")
        assert "% of the work of the whole chain (" in first
        certificate = Path(second.removeprefix("certificate: "))
        assert certificate.exists()
        said, receipt = third.split(": ", 1)
        assert said == "  receipt, kept nowhere (--receipts DIR writes it to a file)"
        said = {**json.loads(receipt), "salt": ""}
        assert said == {"format": 2, "request_id": certificate.stem, "user_id": user, "salt": ""}
        assert fourth == REMINDER

    def test_several_people_get_a_certificate_each(self, run, shop):
        found = run("forget", shop, "--user", "ann", "--user", "bob", "--user", "ann", "--json").json
        assert len(set(found["certificates"])) == 2
        both = [Path(path).with_suffix(suffix) for path in found["certificates"] for suffix in (".json", ".html")]
        assert sorted(both) == sorted((shop / "certificates").iterdir())
        assert run("status", shop, "--json").json["erasures"] == 2

    def test_a_file_names_people_and_some_of_their_items(self, run, shop, tmp_path):
        (tmp_path / "requests.csv").write_text("user_id,item_id\nann,a\nbob,b\nann,b\n")
        assert len(run("forget", shop, "--users-file", tmp_path / "requests.csv", "--json").json["certificates"]) == 2
        left = run("show", shop, "--user", "ann", "--json").json["interactions"]
        assert [one["item_id"] for one in left] == ["c"]

    def test_a_person_whose_last_item_goes_is_gone(self, run, shop):
        assert run("forget", shop, "--user", "ann", "--item", "a", "--item", "b", "--item", "c").code == 0
        assert run("recommend", shop, "--user", "ann").code == 1
        assert run("status", shop, "--json").json["users"] == 7

    def test_everyone_may_go(self, run, shop, facts):
        options = [word for user in facts.ratings for word in ("--user", user)]
        assert len(run("forget", shop, *options, "--json").json["certificates"]) == 8
        assert run("status", shop, "--json").json["users"] == 0
        assert run("recommend", shop, "--all", "--json").json == {"recommendations": []}
        assert run("verify", shop, "--json").json["identical"] is True


class TestWhatIsLeft:
    def test_nothing_below_the_workspace_holds_the_person(self, run, kept_out, facts):
        assert facts.long in ids_in(kept_out)
        assert run("forget", kept_out, "--user", facts.long).code == 0
        assert facts.long not in ids_in(kept_out)
        assert facts.long.encode() not in all_bytes(kept_out)
        assert ids_in(kept_out) & set(facts.ratings) == set(facts.ratings) - {facts.long}

    def test_no_earlier_file_survives_that_had_the_person(self, run, shop, content_of):
        before = content_of(shop)
        user = users_at(shop, 1)[0]
        assert run("forget", shop, "--user", user).code == 0
        kept = {name for name in before if name in content_of(shop)}
        with Workspace.reading(shop) as workspace:
            named = set(workspace.manifest.files) | {"manifest.json"}
        assert set(content_of(shop)) == named
        # Only the checkpoint of the first of three groups is as it was: one bucket holds everyone.
        assert sum(name.startswith("checkpoints/") for name in kept) == 1
        assert sum(name.startswith("data/") for name in kept) == 0

    def test_of_many_buckets_those_survive_that_did_not_have_the_person(self, run, ratings_file, tmp_path, monkeypatch):
        monkeypatch.setattr("erasable.chain.buckets.PEOPLE_IN_A_BUCKET", 2)
        run("learn", ratings_file, "--into", tmp_path / "shop", "--model", "nmf", "--groups", 3, "--epochs", 2)
        before = {path.name: path.read_bytes() for path in (tmp_path / "shop" / "data").iterdir()}
        user = users_at(tmp_path / "shop", 1)[0]
        assert run("forget", tmp_path / "shop", "--user", user).code == 0
        after = {path.name: path.read_bytes() for path in (tmp_path / "shop" / "data").iterdir()}
        gone = [name for name in before if name not in after]
        assert sum(name.startswith("bucket-") for name in before) == 4
        assert sorted(name.split("-")[0] for name in gone) == ["bucket", "histories", "items", "slots"]
        assert all(after[name] == before[name] for name in before if name in after)

    def test_the_salt_of_the_earlier_version_is_destroyed(self, run, shop):
        with Workspace.reading(shop) as workspace:
            salt = workspace.manifest.salt
        assert salt.encode() in all_bytes(shop)
        run("forget", shop, "--user", "ann")
        assert salt.encode() not in all_bytes(shop)

    def test_certificates_outlive_later_erasures_unchanged(self, run, shop):
        (first,) = run("forget", shop, "--user", "ann", "--json").json["certificates"]
        both = [Path(first), Path(first).with_suffix(".html")]
        content = [path.read_bytes() for path in both]
        run("forget", shop, "--user", "bob")
        assert [path.read_bytes() for path in both] == content
        assert len(list((shop / "certificates").iterdir())) == 4

    def test_the_certificate_and_its_page_hold_no_personal_data(self, run, shop, facts):
        run("forget", shop, "--user", facts.long, "--user", "cat")
        paths = sorted((shop / "certificates").iterdir())
        assert [path.suffix for path in paths] == [".html", ".json"] * 2
        for path in paths:
            text = path.read_text()
            assert facts.long not in text
            assert not re.search(r"\bcat\b", text)
            assert path.stem in text
        assert all(json.loads(path.read_text())["request_id"] == path.stem for path in paths[1::2])

    def test_who_asked_is_not_kept_once_it_is_done(self, run, shop, facts):
        receipt = run("forget", shop, "--user", facts.long, "--json").json["receipts"][0]
        assert list(shop.glob("pending*")) == []
        for secret in (facts.long, receipt["salt"]):
            assert secret.encode() not in all_bytes(shop)

    def test_the_erasure_is_recorded_with_its_certificates_and_nobody_is_named(self, run, shop, facts):
        found = run("forget", shop, "--user", facts.long, "--user", "cat", "--json").json
        (audit,) = shop.glob("audit-*")
        learned, forgotten = records_of(audit.read_bytes())
        assert (learned["what"], forgotten["what"], forgotten["version"]) == ("learn", "forget", 2)
        assert sorted(forgotten["certificates"]) == sorted(Path(path).stem for path in found["certificates"])
        assert facts.long not in audit.read_text()
        assert not re.search(r"\bcat\b", audit.read_text())


class TestRefused:
    @pytest.mark.parametrize(
        ("options", "code", "said"),
        [
            ((), 2, "say who: give --user U (may be repeated) or --users-file F"),
            (("--user", "zoe"), 1, "nothing is held about the user 'zoe': check the id, exactly as in the data"),
            (("--user", "ann", "--user", "zoe"), 1, "nothing is held about the user 'zoe'"),
            (("--user", "ANN"), 1, "nothing under this id; ids that differ only in upper and lower case are held: 1"),
            (("--user", "ann", "--item", "f"), 1, "user 'ann' has no interaction with item 'f'"),
            (("--user", "ann", "--item", "a", "--item", "zz"), 1, "user 'ann' has no interaction with item 'zz'"),
            (("--user", "ann", "--user", "bob", "--item", "a"), 2, "--item needs exactly one --user"),
            (("--item", "a"), 2, "--item needs exactly one --user"),
            (("--users-file", "nowhere"), 1, "nowhere: can't be read: give a file with one user id a line"),
        ],
    )
    def test_what_is_refused_changes_not_a_byte(self, run, shop, content_of, options, code, said):
        before = content_of(shop)
        result = run("forget", shop, *options, "--json")
        assert (result.code, result.out) == (code, "")
        assert said in result.err
        assert result.err.count("\n") == 1
        assert content_of(shop) == before

    @pytest.mark.parametrize("text", ["", "\n\n", "user_id\n", "user_id,item_id\n"])
    def test_a_file_that_names_nobody_is_refused(self, run, shop, content_of, tmp_path, text):
        (tmp_path / "users").write_text(text)
        before = content_of(shop)
        result = run("forget", shop, "--users-file", tmp_path / "users", "--ignore-unknown")
        assert (result.code, result.out) == (1, "")
        assert f"{tmp_path / 'users'}: names no user: write one user id a line" in result.err
        assert content_of(shop) == before


class TestNoRoom:
    @pytest.fixture(autouse=True)
    def queue(self, shop):
        """Let the workspace have a queue, and name it."""
        with DiskStorage(shop).queue():
            pass

    def test_it_is_refused_before_anything_is_trained(self, run, shop, content_of, monkeypatch):
        before = content_of(shop)
        monkeypatch.setattr(shutil, "disk_usage", lambda path: shutil._ntuple_diskusage(10**9, 10**9 - 20_000, 20_000))
        result = run("forget", shop, "--user", "ann", "--json")
        assert (result.code, result.out) == (1, "")
        assert f"the disk is full at {shop} (about 0.1 MB are needed and 0.1 MB are free)" in result.err
        assert content_of(shop) == before

    def test_a_disk_that_fills_up_on_the_way_leaves_the_workspace_as_it_was(self, run, shop, content_of, monkeypatch):
        def full(kind, path):
            if kind == "write" and path.suffix == ".safetensors":
                raise OSError(errno.ENOSPC, "No space left on device")

        before = content_of(shop)
        with monkeypatch.context() as patch:
            patch.setattr(files, "before_change", full)
            result = run("forget", shop, "--user", "ann")
        assert (result.code, result.out) == (1, "")
        assert re.search(
            r"disk is full at .* \([\d.]+ MB are needed and [\d,.]+ MB are free\): what was there", result.err
        )
        assert content_of(shop) == before
        assert run("forget", shop, "--user", "ann").code == 0


class TestStopped:
    def test_ctrl_c_again_and_again_while_the_new_version_takes_its_place_damages_nothing(self, run, shop, monkeypatch):
        """The manifest is in its place, the command is stopped before it knows, and then again while it tidies up."""
        seen = []

        def interrupt(kind, path):
            seen.append((kind, path.name))
            in_place = seen.count(("replace", "manifest.json")) == 2
            if in_place and kind in ("flush folder", "write") and (kind, "stop") not in seen:
                seen.append((kind, "stop"))
                raise KeyboardInterrupt

        with monkeypatch.context() as patch:
            patch.setattr(files, "before_change", interrupt)
            assert run("forget", shop, "--user", "ann").code == 130
        assert ("flush folder", "stop") in seen
        assert run("verify", shop).code == 0
        assert run("forget", shop, "--resume").code == 0
        found = run("status", shop, "--json").json
        assert (found["users"], found["version"], found["pending"], found["erasures"]) == (7, 2, 0, 1)


class TestIgnoreUnknown:
    def test_known_people_are_forgotten_and_the_rest_left_out(self, run, shop):
        result = run("forget", shop, "--user", "zoe", "--user", "ann", "--ignore-unknown")
        assert result.code == 0
        assert "erased data of 1 person" in result.out
        assert "left out 1 request: nothing of what was named is held" in result.out
        assert run("show", shop, "--user", "ann").code == 1

    def test_if_nobody_is_known_not_a_byte_changes(self, run, shop, content_of):
        before = content_of(shop)
        result = run("forget", shop, "--user", "zoe", "--ignore-unknown")
        assert (result.code, result.out) == (0, "left out 1 request: nothing of what was named is held\n")
        found = run("forget", shop, "--user", "zoe", "--ignore-unknown", "--json").json
        assert (found["certificates"], found["stages_rerun"], found["stages_total"]) == ([], 0, 3)
        assert (found["cost_ratio"], found["left_out"]) == (0, 1)
        assert content_of(shop) == before


class TestWhileAnotherForgets:
    """Another process has accepted the request and stands still where it would write the first new checkpoint."""

    @pytest.fixture
    def user(self, shop) -> str:
        return users_at(shop, 0)[0]

    @pytest.fixture
    def other(self, shop, user, monkeypatch):
        # Whoever comes second waits that long for one that does not renew its lease.
        monkeypatch.setattr(sys.modules[forget.__module__], "LEASE_SECONDS", 2.0)

        def forgetting() -> None:
            files.before_change = standing_still_once("checkpoints")
            forget(DiskStorage(shop), [Request(user)])

        with frozen(forgetting) as child:
            yield child

    def test_a_second_writer_is_refused_and_the_first_goes_on_and_ends_well(self, run, shop, other):
        result = run("forget", shop, "--user", "eve")
        assert (result.code, result.out) == (1, "")
        assert f"another command is writing {shop}: wait for it to end" in result.err
        os.kill(other, signal.SIGCONT)
        assert ended(other) == 0
        found = run("status", shop, "--json").json
        assert (found["users"], found["version"], found["erasures"]) == (7, 2, 1)

    def test_readers_go_on_and_see_the_version_before(self, run, shop, user, other):
        found = run("status", shop, "--json").json
        assert (found["users"], found["version"], found["erasures"]) == (8, 1, 0)
        assert len(run("recommend", shop, "--user", "eve", "--json").json["recommendations"]) == 1
        assert run("plan", shop, "--user", user).code == 0

    def test_who_is_being_forgotten_is_not_served_any_more(self, run, shop, user, other):
        result = run("recommend", shop, "--user", user)
        assert (result.code, result.out) == (1, "")


def standing_still_once(folder: str):
    """Return a hook that stops this process at its first change in a folder, until somebody has it go on."""
    left = [True]

    def stop(kind: str, path: Path) -> None:
        if left and path.parent.name == folder:
            left.clear()
            os.kill(os.getpid(), signal.SIGSTOP)

    return stop


@pytest.mark.full
class TestTwoCommandsAtOnce:
    """The same with the command in a process of its own, which trains for seconds."""

    @pytest.fixture
    def while_forgetting(self, start_apart, big_shop):
        """Start to forget someone, and wait until the first stage is trained again."""
        process = start_apart("forget", big_shop, "--user", "first", "--json")
        while len(list(big_shop.glob("checkpoints/*.safetensors"))) <= 10:
            assert process.poll() is None, process.communicate()
            time.sleep(0.005)
        # It stands still from here on, so that whoever waits for it would wait for ever.
        process.send_signal(signal.SIGSTOP)
        yield process
        process.kill()
        process.wait()

    def test_a_second_writer_is_refused(self, run, big_shop, while_forgetting):
        result = run("forget", big_shop, "--user", "u0001")
        assert (result.code, result.out) == (1, "")
        assert f"another command is writing {big_shop}: wait for it to end" in result.err

    def test_readers_go_on_and_see_the_version_before(self, run, big_shop, while_forgetting):
        found = run("status", big_shop, "--json").json
        assert (found["users"], found["version"], found["erasures"]) == (3000, 1, 0)
        assert len(run("recommend", big_shop, "--user", "u0001", "--json").json["recommendations"]) == 1
        assert run("plan", big_shop, "--user", "first").code == 0

    def test_who_is_being_forgotten_is_not_served_any_more(self, run, big_shop, while_forgetting):
        result = run("recommend", big_shop, "--user", "first")
        assert (result.code, result.out) == (1, "")

    def test_the_first_goes_on_and_ends_well(self, run, big_shop, while_forgetting):
        assert run("forget", big_shop, "--user", "u0001").code == 1
        while_forgetting.send_signal(signal.SIGCONT)
        out, err = while_forgetting.communicate()
        assert (while_forgetting.returncode, err) == (0, "")
        assert json.loads(out)["stages_rerun"] == 10
        found = run("status", big_shop, "--json").json
        assert (found["users"], found["version"], found["erasures"]) == (2999, 2, 1)


class TestTheQueue:
    """Whoever submits, there is one queue; a command carries out what it can, or waits for who does."""

    @pytest.fixture
    def asked(self, shop) -> str:
        """A request that waits in the service."""
        with DiskStorage(shop).queue() as queue:
            return queue.submit(Request("ann"), held=True, actor="officer 1", now=datetime.now(UTC)).request_id

    @pytest.fixture
    def working(self, shop):
        """Run a worker in a process of its own, until it has erased someone."""
        settings = ServiceSettings(lease_seconds=5)
        child = forked(lambda: run_worker(WorkerOptions(shop, settings, threads=1)))
        with DiskStorage(shop).queue() as queue:
            while holder_of(queue.database) is None:
                time.sleep(0.05)
        yield child
        with suppress(ProcessLookupError, ChildProcessError):
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)

    def events_of(self, shop, request_id) -> list[tuple[str, str]]:
        with DiskStorage(shop).queue() as queue:
            return [(event.name, event.actor) for event in queue.history.get(request_id).events]

    def test_an_open_request_with_the_service_is_joined_and_carried_out(self, run, shop, asked):
        found = run("forget", shop, "--user", "ann", "--json").json
        assert ([Path(one).stem for one in found["certificates"]], found["receipts"]) == ([asked], [])
        names = ["received", "suppressed", "joined", "erasing", "certifying", "erased"]
        assert [name for name, _ in self.events_of(shop, asked)] == names

    def test_what_is_refused_makes_no_queue(self, run, shop):
        assert run("forget", shop, "--user", "nobody").code == 1
        assert run("forget", shop, "--resume").code == 0
        assert not list(shop.glob("ledger*"))

    def test_one_on_hold_is_refused(self, run, shop, asked):
        with DiskStorage(shop).queue() as queue:
            queue.advance(asked, "on hold", "officer 1", datetime.now(UTC))
        result = run("forget", shop, "--user", "ann")
        assert (result.code, "put on hold" in result.err) == (1, True)
        assert run("show", shop, "--user", "ann").code == 0

    def test_without_waiting_the_number_is_printed_and_the_person_is_not_served(self, run, shop):
        result = run("forget", shop, "--user", "ann", "--no-wait")
        (number,) = re.findall("submitted: ([0-9a-f]{32})", result.out)
        assert run("recommend", shop, "--user", "ann").code == 1
        assert run("status", shop, "--json").json["pending"] == 1
        (certificate,) = run("forget", shop, "--resume", "--json").json["certificates"]
        assert Path(certificate).stem == number

    def test_without_waiting_the_receipt_is_there_from_the_beginning(self, run, shop):
        folder = shop.parent / "receipts"
        assert f"receipts: {folder}" in run("forget", shop, "--user", "ann", "--no-wait", "--receipts", folder).out
        assert "receipt, kept until the erasure is done" in run("forget", shop, "--user", "bob", "--no-wait").out
        (receipt,) = folder.iterdir()
        certificates = run("forget", shop, "--resume", "--json").json["certificates"]
        (certificate,) = [
            one for one in certificates if Path(one).stem == json.loads(receipt.read_text())["request_id"]
        ]
        assert run("verify", shop, "--certificate", certificate, "--receipt", receipt).code == 0

    @pytest.mark.parametrize("state", ["suppressed", "erasing"])
    def test_ctrl_c_while_a_worker_is_waited_for_takes_back_what_is_not_begun(
        self, run, shop, other_worker, monkeypatch, state
    ):
        def pressed(queue, request_ids, reporter):
            if state == "erasing":
                queue.advance(request_ids[0], state, "worker", datetime.now(UTC))
            raise KeyboardInterrupt

        monkeypatch.setattr(sys.modules["erasable.operations.forget"], "wait_for", pressed)
        folder = shop.parent / "receipts"
        result = run("forget", shop, "--user", "ann", "--receipts", folder)
        with DiskStorage(shop).queue() as queue:
            states = {one.state for one in queue.history.in_states(["withdrawn", "erasing"])}
        if state == "suppressed":
            assert (states, list(folder.iterdir())) == ({"withdrawn"}, [])
        else:
            assert (states, len(list(folder.iterdir()))) == ({"erasing"}, 1)
            assert "the worker carries out what it has begun" in result.err

    @pytest.fixture
    def other_worker(self, shop):
        """Have another process hold the lease."""
        child = forked(lambda: time.sleep(60))
        facts = Path(f"/proc/{child}/stat").read_text()
        with DiskStorage(shop).queue() as queue:
            assert Lease(queue.database, 60, LeaseHolder(child, facts.rpartition(")")[2].split()[19])).take()
        yield
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)

    def test_a_worker_at_work_carries_it_out_and_is_waited_for(self, run, shop, working):
        found = run("forget", shop, "--user", "ann", "--json").json
        (certificate,), (receipt,) = found["certificates"], found["receipts"]
        assert (found["stages_rerun"], found["stages_total"], receipt["user_id"]) == (2, 3, "ann")
        assert 0 < found["chain_ratio"] <= 1
        assert ("erased", "worker") in self.events_of(shop, Path(certificate).stem)
        place = shop.parent / "receipt.json"
        place.write_text(json.dumps(receipt))
        assert run("verify", shop, "--certificate", certificate, "--receipt", place).code == 0

    def test_a_worker_ends_after_an_erasure_so_that_no_id_stays_in_its_memory(self, run, shop, working):
        run("forget", shop, "--user", "ann")
        assert ended(working) == 0

    def test_what_a_worker_leaves_undone_is_carried_out_here(self, run, shop, working):
        os.kill(working, signal.SIGSTOP)
        threading.Timer(1, lambda: (os.kill(working, signal.SIGKILL), os.waitpid(working, 0))).start()
        found = run("forget", shop, "--user", "ann", "--json").json
        assert ("erased", "command") in self.events_of(shop, Path(found["certificates"][0]).stem)

    def test_one_of_two_that_can_not_be_certified_is_told_after_the_other(self, run, shop):
        (shop / "notes.csv").write_text("user_id,remark\nann,call back\n")
        result = run("forget", shop, "--user", "ann", "--user", "bob", "--json")
        assert (result.code, len(result.json["receipts"]), "notes.csv" in result.err) == (1, 1, True)
        (shop / "notes.csv").unlink()
        assert len(run("forget", shop, "--resume", "--json").json["certificates"]) == 1


class TestManyPeople:
    @pytest.fixture
    def crowd(self, run, tmp_path):
        names = [f"u{number:03d}" for number in range(40)]
        rows = [f"{name},{item}\n" for name in names for item in ("a", "b")]
        (tmp_path / "crowd.csv").write_text("user,item\n" + "".join(rows))
        assert run("learn", tmp_path / "crowd.csv", "--into", tmp_path / "crowd", "--model", "als").code == 0
        (tmp_path / "who").write_text("\n".join(names[:39]))
        return tmp_path / "crowd", ("--users-file", tmp_path / "who")

    def test_without_a_terminal_they_are_refused_and_yes_is_named(self, run, crowd, content_of):
        shop, who = crowd
        before = content_of(shop)
        result = run("forget", shop, *who)
        assert (result.code, result.out) == (1, "")
        assert "this erases 39 of 40 people: if that is meant, give --yes; nothing was done" in result.err
        assert content_of(shop) == before

    def test_yes_erases_them(self, run, crowd):
        shop, who = crowd
        assert len(run("forget", shop, *who, "--yes", "--json").json["certificates"]) == 39

    @pytest.mark.parametrize(("answer", "code", "left"), [("y", 0, 1), ("n", 1, 40), ("", 1, 40)])
    def test_at_a_terminal_it_asks(self, run, crowd, monkeypatch, answer, code, left):
        shop, who = crowd
        monkeypatch.setattr("erasable.cli.forget.can_ask", lambda: True)
        monkeypatch.setattr("sys.stdin", io.StringIO(answer + "\n"))
        result = run("forget", shop, *who, "--json")
        assert result.code == code
        assert "This erases 39 of 40 people. Go on? [y/N]" in result.err
        assert run("status", shop, "--json").json["users"] == left

    def test_what_was_accepted_before_is_finished_without_a_question(self, run, crowd, monkeypatch):
        shop, who = crowd

        def killed(*_):
            raise KeyboardInterrupt

        with monkeypatch.context() as patch:
            patch.setattr(sys.modules["erasable.operations.erase"], "search_for", killed)
            assert run("forget", shop, *who, "--yes").code == 130
        assert run("forget", shop, "--resume").code == 0
        assert run("status", shop, "--json").json["users"] == 1
