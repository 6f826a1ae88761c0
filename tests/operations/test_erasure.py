"""The steps of an erasure: what is accepted is durable before the next step begins, and is finished after a kill."""

import json
import shutil
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from types import SimpleNamespace

import pytest

from erasable.chain import Config, MemoryStore
from erasable.errors import (
    NotReproducible,
    Refused,
    ResidueFound,
    UnknownInteraction,
    UnknownUser,
    WorkspaceError,
    WrongUse,
)
from erasable.evaluation import measure
from erasable.operations import (
    Claim,
    DiskStorage,
    Outside,
    Work,
    forget,
    learn,
    learn_more,
    status,
    verify,
    withdraw_submitted,
)
from erasable.operations.do_not_learn import default_places
from erasable.operations.inspect import evaluate
from erasable.operations.storage import suppressed_people
from erasable.proof import coarse, read_certificate, read_search, records_of
from erasable.proof.do_not_learn import DoNotLearnFiles, DoNotLearnList
from erasable.requests import Request
from erasable.requests.tokens import salt_of_code
from erasable.scan import Residue
from erasable.scan._folder import SEALED
from erasable.workspace import _versions as saving
from erasable.workspace.files import QUEUE_FILES
from kit import elsewhere
from kit.asking import submit
from kit.choosing import cases
from kit.copies import copy_of
from kit.listed import is_listed
from kit.small_shop import lasting_files

SCANNING = import_module("erasable.operations.scan")  # its function has the name of the module

erase = sys.modules["erasable.operations.erase"]
BEFORE_TRAINING, AFTER_TRAINING, BEFORE_SCAN = ("forgetting", "begins"), ("forgetting", "ends"), ("scanning", "begins")
Moment = tuple[str, str]


class Acting:
    """A reporter that does something at one moment of an erasure, once."""

    def __init__(self, moment: Moment, action: Callable[[], object]) -> None:
        self._moment = moment
        self._action: Callable[[], object] | None = action

    def note(self, text: str) -> None:
        pass

    def doubt(self, text: str) -> None:
        pass

    @contextmanager
    def track(self, label: str, total: int | None = None) -> Iterator[Callable[[int], None]]:
        self._at((label, "begins"))
        yield lambda done: self._at((label, "goes on"))
        self._at((label, "ends"))

    def _at(self, moment: Moment) -> None:
        if moment == self._moment and self._action is not None:
            action, self._action = self._action, None
            action()


def stop(error: BaseException) -> Callable[..., None]:
    def action(*_: object) -> None:
        raise error

    return action


def forget_acting(storage, requests, moment: Moment, action, **options):
    return forget(storage, requests, work=Work(1, Acting(moment, action)), **options)


def killed(storage: DiskStorage, moment: Moment, *requests: Request) -> DiskStorage:
    """Return the folder as a process that is killed at some moment of forgetting leaves it."""
    copy = storage.path.with_name(f"{storage.path.name}-killed")
    forget_acting(storage, requests, moment, lambda: copy_of(storage.path, copy))
    return DiskStorage(copy)


def search_of(storage):
    with storage.reading() as session:
        return read_search(session.documents().pending)


def asked_of(storage) -> list[tuple[str, tuple[str, ...] | None]]:
    """Return who waits in the queue, and for what."""
    return [(one.user, one.items) for one in storage.asked()]


def certificates_of(storage) -> list[dict]:
    with storage.reading() as session:
        return [json.loads(content) for name, content in session.issued().items() if name.endswith(".json")]


def everything_in(storage) -> object:
    """Return all bytes of a storage: those of its files, or what is in memory."""
    if isinstance(storage, DiskStorage):
        files = (path for path in storage.path.rglob("*") if path.is_file() and path.suffix != ".lock")
        files = (path for path in files if path.name not in QUEUE_FILES)
        return {path.relative_to(storage.path).as_posix(): path.read_bytes() for path in files}
    with storage.reading() as session:
        names = [link.fingerprint for link in session.state().chain]
        arrays = [session.checkpoints.get(name).arrays() for name in names]
        contents = [{of: array.tobytes() for of, array in stage.items()} for stage in arrays]
        return names, contents, session.stamp, session.documents(), dict(session.issued())


def user_at(storage, position: int, row: int = 0) -> str:
    with storage.reading() as session:
        return session.state().dataset.groups[position].users[row]


def holds(storage, user: str) -> bool:
    with storage.reading() as session:
        return any(user in group.users for group in session.state().dataset.groups)


def refuse_to_train(monkeypatch) -> None:
    monkeypatch.setattr("erasable.operations.erase.carry_out", lambda *_: pytest.fail("it was trained again"))


@pytest.fixture
def disk(learned, copied, swift_path) -> DiskStorage:
    """A workspace that has learned, and that may be changed."""
    return DiskStorage(copied(learned, swift_path / "shop"))


@pytest.fixture
def undisturbed(learned, copied, swift_path):
    """Forget in a copy of the same workspace, and return the files that it leaves."""

    def run(*requests: Request) -> dict[str, bytes]:
        storage = DiskStorage(copied(learned, swift_path / "undisturbed"))
        forget(storage, requests)
        return lasting_files(storage.path)

    return run


@pytest.fixture
def list_files(swift_path) -> DoNotLearnFiles:
    """Where a do-not-learn list and its key may be made."""
    for name in ("lists", "keys"):
        (swift_path / name).mkdir()
    return DoNotLearnFiles(swift_path / "lists" / "list", swift_path / "keys" / "key")


class TestTheOrderOfTheSteps:
    def test_each_step_is_durable_before_the_next_begins(self, disk):
        seen: list[tuple[str, tuple]] = []

        class Watching(Acting):
            def _at(self, moment):
                if moment[1] == "begins":
                    with DiskStorage(disk.path).reading() as reader:
                        sought = len([*read_search(reader.documents().pending).people])
                        records = [record["what"] for record in records_of(reader.documents().log)]
                        facts = (reader.stamp.version, len(disk.asked()), sought)
                        seen.append((moment[0], (*facts, records, reader.erasures)))

        forget(disk, [Request("ann"), Request("bob")], work=Work(1, Watching(("", ""), print)))
        accepted, erased = (1, 2, 0, ["learn"], 0), (2, 0, 2, ["learn"], 0)
        assert seen == [
            ("evaluating", accepted),
            ("forgetting", accepted),
            ("scanning", erased),
            ("evaluating", erased),
            ("certifying", erased),
        ]
        found = status(disk)
        assert [found[name] for name in ("version", "pending", "records", "erasures")] == [2, 0, 2, 2]

    def test_requests_lie_on_disk_for_the_owner_alone_before_training_begins(self, disk):
        def look() -> None:
            assert asked_of(disk) == [("ann", ("a",))]
            assert {path.stat().st_mode & 0o777 for path in disk.path.glob("ledger*")} == {0o600}
            assert len(list((disk.path / "checkpoints").iterdir())) == 3

        forget_acting(disk, [Request("ann", ("a",))], BEFORE_TRAINING, look)
        assert asked_of(disk) == []

    def test_what_is_sought_lies_on_disk_for_the_owner_alone_until_it_is_certified(self, disk):
        def look() -> None:
            manifest = json.loads((disk.path / "manifest.json").read_bytes())
            path = disk.path / manifest["pending"]
            (erased,) = json.loads(path.read_bytes())["erasures"]
            assert [(one["user"], one["items"]) for one in erased["people"]] == [("ann", ["a"])]
            assert path.stat().st_mode & 0o777 == 0o600

        forget_acting(disk, [Request("ann", ("a",))], BEFORE_SCAN, look)
        assert not list(disk.path.glob("pending*"))

    def test_the_request_that_was_submitted_is_the_one_that_is_certified(self, disk):
        seen = []
        done = forget_acting(disk, [Request("ann")], BEFORE_TRAINING, lambda: seen.extend(disk.asked()))
        (facts,), (asked,) = certificates_of(disk), seen
        assert (asked.request_id, f"{asked.received:%Y-%m-%d}") == (facts["request_id"], facts["days"]["asked"])
        assert salt_of_code(asked.receipt_code) == done.receipts[0].salt

    def test_each_change_of_a_request_is_an_event(self, storage):
        forget(storage, [Request("ann")])
        with storage.queue() as queue:
            (done,) = queue.history.in_states(["erased"])
        states = ["received", "suppressed", "erasing", *(["certifying"] if storage.path else []), "erased"]
        assert [event.state for event in done.events] == states
        assert (done.user, done.outcome["stages_total"]) == ("", 3)

    @pytest.mark.parametrize("storage", ["memory"], indirect=True)
    def test_nobody_sees_an_erasure_in_memory_before_it_is_certified(self, storage):
        before = everything_in(storage)
        for position, moment in enumerate([BEFORE_TRAINING, AFTER_TRAINING, BEFORE_SCAN]):
            user = user_at(storage, position)
            seen = []
            forget_acting(storage, [Request(user)], moment, lambda seen=seen: seen.append(everything_in(storage)))
            assert seen == [before]
            before = everything_in(storage)
            assert not holds(storage, user)


class TestWhatGoesWrongBeforeTheErasureIsCurrent:
    @pytest.mark.parametrize("moment", [BEFORE_TRAINING, ("forgetting", "goes on"), AFTER_TRAINING])
    @pytest.mark.parametrize("error", [KeyboardInterrupt(), ValueError("wrong"), Refused("training diverged")])
    def test_takes_the_requests_back_and_leaves_everything_as_before(self, storage, moment, error):
        with storage.queue():  # it is named from its first use on
            before = everything_in(storage)
        with pytest.raises(type(error)):
            forget_acting(storage, [Request("ann"), Request("bob", ("a",))], moment, stop(error))
        assert everything_in(storage) == before
        assert verify(storage).identical is True

    def test_can_be_asked_for_again(self, disk, undisturbed):
        with pytest.raises(KeyboardInterrupt):
            forget_acting(disk, [Request("ann")], AFTER_TRAINING, stop(KeyboardInterrupt()))
        done = forget(disk, [Request("ann")])
        assert (len(done.certificates), done.finished) == (1, 0)
        assert lasting_files(disk.path) == undisturbed(Request("ann"))

    @pytest.mark.parametrize("moment", [BEFORE_TRAINING, AFTER_TRAINING])
    def test_puts_nobody_on_the_do_not_learn_list_and_writes_no_receipt(self, disk, list_files, swift_path, moment):
        outside = Outside(swift_path / "receipts", list_files)
        with pytest.raises(KeyboardInterrupt):
            forget_acting(disk, [Request("ann")], moment, stop(KeyboardInterrupt()), outside=outside)
        assert list((swift_path / "receipts").iterdir()) == []
        assert not DoNotLearnList.open_or_create(list_files).users

    def test_does_not_take_back_what_an_earlier_process_had_accepted(self, disk):
        storage = killed(disk, BEFORE_TRAINING, Request("ann"))
        with pytest.raises(KeyboardInterrupt):
            forget_acting(storage, [Request("bob")], BEFORE_TRAINING, stop(KeyboardInterrupt()))
        assert asked_of(storage) == [("ann", None)]
        assert forget(storage, []).finished == 1
        assert not holds(storage, "ann")
        assert holds(storage, "bob")


class TestKilledAfterAcceptance:
    @pytest.fixture(params=[BEFORE_TRAINING, AFTER_TRAINING], ids=["before training", "after training"])
    def storage(self, request, disk) -> DiskStorage:
        return killed(disk, request.param, Request("ann"), Request("bob", ("a",)))

    def test_the_requests_are_still_there(self, storage):
        assert asked_of(storage) == [("ann", None), ("bob", ("a",))]
        assert search_of(storage).erasures == ()
        assert status(storage)["pending"] == 2
        assert holds(storage, "ann")

    def test_the_next_call_finishes_them_exactly(self, storage, undisturbed):
        asked = storage.asked()
        done = forget(storage, [])
        assert (len(done.certificates), done.finished, done.stages_total) == (2, 2, 3)
        assert lasting_files(storage.path) == undisturbed(Request("ann"), Request("bob", ("a",)))
        assert [one["request_id"] for one in certificates_of(storage)] == [one.request_id for one in asked]
        assert [one.salt for one in done.receipts] == [salt_of_code(one.receipt_code) for one in asked]
        assert verify(storage, Claim(Path(done.certificates[0]))).identical is True
        assert asked_of(storage) == []

    def test_the_next_forget_of_someone_else_finishes_them_too(self, storage, undisturbed):
        done = forget(storage, [Request("cat")])
        assert (len(done.certificates), done.finished) == (3, 2)
        assert status(storage)["version"] == 2
        assert lasting_files(storage.path) == undisturbed(Request("ann"), Request("bob", ("a",)), Request("cat"))
        assert [one.user_id for one in done.receipts] == ["ann", "bob", "cat"]

    def test_whoever_asks_again_is_not_unknown_and_gets_one_certificate(self, storage):
        done = forget(storage, [Request("ann"), Request("bob", ("a",))])
        assert (len(done.certificates), done.finished, done.left_out) == (2, 2, 0)

    def test_whoever_asks_for_more_gets_more(self, storage, undisturbed):
        done = forget(storage, [Request("bob")])
        assert len(done.certificates) == 2
        assert lasting_files(storage.path) == undisturbed(Request("ann"), Request("bob"))
        assert done.receipts[1].items is None

    def test_a_refused_request_leaves_them_waiting(self, storage):
        before = asked_of(storage)
        for request in (Request("zoe"), Request("cat", ("a",))):
            with pytest.raises((UnknownUser, UnknownInteraction)):
                forget(storage, [request])
        assert asked_of(storage) == before

    def test_another_numeric_environment_leaves_them_waiting(self, storage):
        before = asked_of(storage)
        elsewhere.moved(storage.path, machine="abacus")
        with pytest.raises(NotReproducible):
            forget(storage, [])
        assert asked_of(storage) == before
        assert forget(storage, [], rerun=True).finished == 2

    def test_verify_says_that_something_is_unfinished(self, storage):
        found = verify(storage)
        assert found.identical is True
        assert "an erasure was interrupted: finish it with forget([])" in found.reason
        assert asked_of(storage) == [("ann", None), ("bob", ("a",))]


class TestKilledBeforeTheCertificates:
    @pytest.fixture(
        params=cases({"before the scan": BEFORE_SCAN, "after the scan": ("scanning", "ends")}, ["before the scan"])
    )
    def storage(self, request, disk) -> DiskStorage:
        return killed(disk, request.param, Request("ann"), Request("bob", ("a",)))

    def test_the_erasure_itself_is_current(self, storage, undisturbed):
        assert search_of(storage).users == {"ann", "bob"}
        assert lasting_files(storage.path) == undisturbed(Request("ann"), Request("bob", ("a",)))
        assert certificates_of(storage) == []
        assert "an erasure was interrupted" in verify(storage).reason

    def test_the_certificate_names_the_list_that_they_are_on_even_if_none_is_kept_from_now_on(self, storage):
        (erased,) = search_of(storage).erasures
        assert erased.suppression == (("../shop.do-not-learn/list.json", "../shop.do-not-learn.key/key"),)
        listed = DoNotLearnList.open(default_places(storage.path.with_name("shop")))
        assert is_listed("ann", listed)
        forget(storage, [], outside=Outside(without_do_not_learn=True))
        assert ["A keyed digest" in facts["do_not_learn"] for facts in certificates_of(storage)] == [True, True]
        forget(storage, [Request("cat")], outside=Outside(without_do_not_learn=True))
        assert certificates_of(storage)[-1]["do_not_learn"] is None

    def test_it_is_finished_where_the_workspace_was_moved_to_with_its_list(self, storage, swift_path):
        there = swift_path / "elsewhere"
        there.mkdir()
        for folder in (storage.path, *storage.path.parent.glob("shop.do-not-learn*")):
            folder.rename(there / folder.name)
        moved = DiskStorage(there / storage.path.name)
        forget(moved, [])
        assert len(certificates_of(moved)) == 2
        assert is_listed("ann", DoNotLearnList.open(default_places(there / "shop")))
        assert verify(moved).identical is True

    def test_a_list_that_is_lost_meanwhile_is_done_without_where_that_is_said(self, storage):
        default_places(storage.path.with_name("shop")).list.write_text("damaged")
        forget(storage, [], outside=Outside(without_do_not_learn=True))
        assert [facts["do_not_learn"] for facts in certificates_of(storage)] == [None, None]

    def test_the_next_call_certifies_without_training_again(self, storage, monkeypatch):
        (erased,) = search_of(storage).erasures
        files = lasting_files(storage.path)
        refuse_to_train(monkeypatch)
        done = forget(storage, [])
        monkeypatch.undo()
        assert (len(done.certificates), done.finished, done.stages_rerun) == (2, 2, 0)
        assert lasting_files(storage.path) == files
        for facts, one in zip(certificates_of(storage), erased.people, strict=True):
            assert (facts["request_id"], facts["days"]["asked"]) == (one.request_id, one.received[:10])
            assert facts["days"]["erased"] == erased.at[:10]
            assert facts["data"]["before"] == erased.data_before
            assert facts["utility"]["before"] == to_grain(erased.utility_before, facts["utility"]["grain"])
        with storage.reading() as session:
            steps = records_of(session.documents().log)[-1]["steps"]
        assert tuple(place for place, step in enumerate(steps) if not step["kept"]) == erased.rerun
        for path, receipt in zip(done.certificates, done.receipts, strict=True):
            assert receipt.opens(read_certificate(Path(path).read_bytes()))
            assert verify(storage, Claim(Path(path))).identical is True

    def test_whoever_asks_again_is_not_unknown_and_gets_one_certificate(self, storage, monkeypatch):
        refuse_to_train(monkeypatch)
        done = forget(storage, [Request("bob", ("a",)), Request("ann")])
        assert (len(done.certificates), done.finished, done.left_out) == (2, 2, 0)
        assert status(storage)["version"] == 2

    def test_the_next_forget_of_someone_else_does_both(self, storage, undisturbed):
        done = forget(storage, [Request("cat")])
        assert (len(done.certificates), done.finished, status(storage)["version"]) == (3, 2, 3)
        assert lasting_files(storage.path) == undisturbed(Request("ann"), Request("bob", ("a",)), Request("cat"))
        assert [facts["version"] for facts in certificates_of(storage)] == [2, 2, 3]
        assert [one.user_id for one in done.receipts] == ["ann", "bob", "cat"]
        for path, receipt in zip(done.certificates, done.receipts, strict=True):
            assert receipt.opens(read_certificate(Path(path).read_bytes()))
        assert verify(storage).identical is True

    def test_whoever_asks_for_everything_after_some_items_gets_both(self, storage, undisturbed):
        done = forget(storage, [Request("bob")])
        assert [(one.user_id, one.items) for one in done.receipts] == [("ann", None), ("bob", ("a",)), ("bob", None)]
        assert lasting_files(storage.path) == undisturbed(Request("ann"), Request("bob"))
        assert not holds(storage, "bob")

    def test_whoever_asks_for_more_items_gets_those(self, storage, undisturbed):
        done = forget(storage, [Request("bob", ("a", "d"))])
        assert len(done.certificates) == 3
        assert lasting_files(storage.path) == undisturbed(Request("ann"), Request("bob", ("a", "d")))

    def test_a_refused_request_changes_nothing_and_loses_no_receipt(self, storage):
        before = everything_in(storage)
        with pytest.raises(UnknownUser):
            forget(storage, [Request("zoe")])
        assert everything_in(storage) == before

    def test_receipts_go_where_the_next_call_says(self, storage, swift_path):
        done = forget(storage, [], outside=Outside(swift_path / "receipts"))
        assert {path.stem for path in (swift_path / "receipts").iterdir()} == {
            receipt.request_id for receipt in done.receipts
        }


class TestResidues:
    @pytest.fixture
    def found(self, monkeypatch):
        """Let the scan find something."""
        residues = tuple(Residue(f"note-{number}.txt", "line 1", "id") for number in range(7))
        dirty = SimpleNamespace(files=1, bytes=1, kinds={}, searched=(), residues=residues, clean=False)
        monkeypatch.setattr(SCANNING, "scan_folder", lambda *_, **__: dirty)

    def test_nothing_is_certified_and_the_places_and_the_remedy_are_said(self, disk, found):
        with pytest.raises(ResidueFound) as caught:
            forget(disk, [Request("ann")])
        said = str(caught.value)
        assert "not certified: 7 places still hold the person: note-0.txt (line 1); note-1.txt" in said
        assert "Remove them, then run: forget([])" in said
        assert certificates_of(disk) == []
        assert not list(disk.path.glob("certificates/*"))

    def test_the_erasure_is_current_and_the_request_stays(self, disk, found, undisturbed, monkeypatch):
        with suppress(ResidueFound):
            forget(disk, [Request("ann")])
        assert not holds(disk, "ann")
        assert search_of(disk).users == {"ann"}
        assert [status(disk)[name] for name in ("version", "records", "erasures", "pending")] == [2, 1, 0, 1]
        monkeypatch.undo()
        assert lasting_files(disk.path) == undisturbed(Request("ann"))

    def test_as_long_as_it_is_found_nobody_is_certified(self, disk, found):
        for requests in ([Request("ann")], [], [Request("bob")]):
            with pytest.raises(ResidueFound):
                forget(disk, requests)
        assert certificates_of(disk) == []
        assert search_of(disk).users == {"ann", "bob"}
        assert not holds(disk, "bob")

    def test_once_it_is_removed_the_next_call_certifies_without_training(self, disk, found, monkeypatch):
        with suppress(ResidueFound):
            forget(disk, [Request("ann")])
        monkeypatch.undo()
        refuse_to_train(monkeypatch)
        done = forget(disk, [])
        assert (len(done.certificates), done.finished) == (1, 1)
        assert search_of(disk).erasures == ()

    def test_no_receipt_is_written_before(self, disk, found, swift_path):
        with suppress(ResidueFound):
            forget(disk, [Request("ann")], outside=Outside(swift_path / "receipts"))
        assert list((swift_path / "receipts").iterdir()) == []

    def test_a_file_of_ones_own_that_names_the_person_is_found(self, table, config, swift_path):
        person = "someone-with-a-long-unmistakable-id"
        renamed = table.set_column(0, "user_id", [[person if u == "ann" else u for u in table["user_id"].to_pylist()]])
        learn(renamed, swift_path / "shop", config)
        storage, note = DiskStorage(swift_path / "shop"), swift_path / "shop" / "notes.txt"
        note.write_text(f"call {person} back\n")
        with pytest.raises(ResidueFound, match=r"notes\.txt"):
            forget(storage, [Request(person)])
        with pytest.raises(ResidueFound, match=r"notes\.txt"):
            forget(storage, [])
        note.unlink()
        assert len(forget(storage, []).certificates) == 1
        (facts,) = certificates_of(storage)
        assert facts["scan"]["residues"] == 0
        assert facts["scan"]["files"] == "< 100"


class TestOneWhoCanNotBeCertified:
    """Somebody's file in the workspace names one person of two."""

    ANN, BOB = "ann-the-unmistakable", "bob"

    @pytest.fixture
    def storage(self, as_table, ratings, config, swift_path) -> DiskStorage:
        named = {self.ANN if user == "ann" else user: has for user, has in ratings.items()}
        learn(as_table(named), swift_path / "shop", config)
        return DiskStorage(swift_path / "shop")

    @pytest.fixture
    def note(self, storage) -> Path:
        path = storage.path / "notes.txt"
        path.write_text(f"call {self.ANN} back\n")
        return path

    def states(self, storage) -> dict[str, str]:
        with storage.queue() as queue:
            return {one.request_id: one.state for one in queue.history.in_states(["erased", "failed"])}

    def test_is_set_aside_with_the_place_and_the_other_is_certified(self, storage, note):
        done = forget(storage, [Request(self.ANN), Request(self.BOB)])
        assert [receipt.user_id for receipt in done.receipts] == [self.BOB]
        (facts,) = certificates_of(storage)
        assert facts["scan"]["residues"] == 0
        assert "notes.txt" in done.set_aside[0]
        assert done.set_aside[0].endswith("then run: forget([])")
        (ann,) = search_of(storage).people
        assert (ann.user, "notes.txt" in ann.found) == (self.ANN, True)
        assert self.states(storage) == {facts["request_id"]: "erased", ann.request_id: "failed"}
        assert not holds(storage, self.ANN)
        assert verify(storage).identical is True

    def test_stays_suppressed(self, storage, note):
        forget(storage, [Request(self.ANN), Request(self.BOB)])
        with storage.reading() as session:
            assert suppressed_people(storage, session) == {self.ANN}

    def test_is_certified_once_the_file_is_removed_without_training_anything(self, storage, note, monkeypatch):
        forget(storage, [Request(self.ANN), Request(self.BOB)])
        note.unlink()
        monkeypatch.setattr(erase, "carry_out", lambda *_: pytest.fail("it was trained again"))
        done = forget(storage, [])
        assert (done.stages_rerun, done.finished) == (0, 1)
        assert [receipt.user_id for receipt in done.receipts] == [self.ANN]
        assert [facts["version"] for facts in certificates_of(storage)] == [2, 2]
        assert {*self.states(storage).values()} == {"erased"}
        assert search_of(storage).erasures == ()

    @pytest.fixture
    def again(self, storage, note, as_table) -> DiskStorage:
        """She is erased and not certified, on no list, and learned again meanwhile."""
        with pytest.raises(ResidueFound):
            forget(storage, [Request(self.ANN)], outside=Outside(without_do_not_learn=True))
        note.unlink()
        learn_more(storage, as_table({self.ANN: {"a": 3, "d": 2}}), work=Work(1))
        return storage

    def test_who_is_learned_again_can_be_erased_again_and_both_erasures_are_certified(self, again):
        done = forget(again, [Request(self.ANN)], work=Work(1))
        assert [receipt.user_id for receipt in done.receipts] == [self.ANN, self.ANN]
        assert (holds(again, self.ANN), search_of(again).erasures) == (False, ())

    def test_so_can_single_interactions_that_were_learned_again(self, again):
        with pytest.raises(ResidueFound):  # she was to be erased whole, and is held
            forget(again, [Request(self.ANN, ("a",))], work=Work(1))
        with again.reading() as session:
            assert [*session.state().dataset.items_of(self.ANN)] == ["d"]

    def test_keeps_nobody_else_from_being_erased_and_is_certified_with_them(self, storage, note):
        with pytest.raises(ResidueFound, match=r"notes\.txt"):
            forget(storage, [Request(self.ANN)])
        done = forget(storage, [Request(self.BOB)])
        assert ([one.user_id for one in done.receipts], done.set_aside) == ([self.BOB], ())
        assert "notes.txt" in done.notes[0]
        note.unlink()
        done = forget(storage, [Request("cat")])
        assert [receipt.user_id for receipt in done.receipts] == [self.ANN, "cat"]
        for path, receipt in zip(done.certificates, done.receipts, strict=True):
            assert receipt.opens(read_certificate(Path(path).read_bytes()))
            assert verify(storage, Claim(Path(path))).identical is True

    def test_what_names_nobody_is_told_apart_too(self, storage):
        """Values say no id: people are searched for apart."""
        with storage.reading() as session:
            held = session.state().dataset.data_of([self.ANN])
        rows = [f"{held.items[item]},{rating:g}" for item, rating in zip(held.item_index, held.rating, strict=True)]
        note = storage.path / "values.csv"
        note.write_text("item_id,rating\n" + "\n".join(rows) + "\n")
        assert len(rows) >= 3  # fewer can't be told from others
        done = forget(storage, [Request(user) for user in (self.ANN, "cat", "dan")])
        assert [receipt.user_id for receipt in done.receipts] == ["cat", "dan"]
        assert "values.csv" in done.set_aside[0]

    def test_a_checkpoint_of_before_keeps_all_of_its_erasure_waiting(self, storage):
        old = storage.path / "backup"
        shutil.copytree(storage.path / "checkpoints", old)
        with pytest.raises(ResidueFound, match="backup/"):
            forget(storage, [Request(self.ANN), Request(self.BOB)])
        assert search_of(storage).users == {self.ANN, self.BOB}
        shutil.rmtree(old)
        assert len(forget(storage, []).certificates) == 2

    def test_the_place_stands_in_the_search_file_alone(self, storage, note):
        forget(storage, [Request(self.ANN), Request(self.BOB)])
        with storage.queue() as queue:
            told = [event.facts for one in queue.history.in_states(["failed"]) for event in one.events]
        assert "notes.txt" not in json.dumps(told)

    def test_more_can_be_learned_meanwhile_and_the_certificate_is_of_the_version_after(self, storage, note, as_table):
        forget(storage, [Request(self.ANN), Request(self.BOB)])
        learn_more(storage, as_table({"gus": {"a": 1, "b": 2}, "hal": {"b": 3, "c": 1}}))
        note.unlink()
        done = forget(storage, [])
        assert certificates_of(storage)[-1]["version"] == 3
        assert verify(storage, Claim(Path(done.certificates[0]))).identical is True
        assert verify(storage).identical is True


class TestPapersBeforeTheyAreWritten:
    @pytest.fixture
    def named(self, table, config, swift_path) -> DiskStorage:
        """A storage whose issuer, by whatever way it came there, is the id of someone."""
        person = "someone-with-a-long-unmistakable-id"
        renamed = table.set_column(0, "user_id", [[person if u == "ann" else u for u in table["user_id"].to_pylist()]])
        learn(renamed, swift_path / "shop", config)
        storage = DiskStorage(swift_path / "shop")
        self.name(storage, f"shop of {person} and sons")
        return storage

    def name(self, storage: DiskStorage, issuer: str | None) -> None:
        with storage.writing() as session:
            documents = session.documents()
            named = documents.preferences.model_copy(update={"issuer": issuer})
            session.amend(replace(documents, preferences=named))

    def test_are_searched_and_not_written_if_they_hold_the_person(self, named, swift_path):
        outside = Outside(swift_path / "receipts")
        with pytest.raises(ResidueFound, match="not certified"):
            forget(named, [Request("someone-with-a-long-unmistakable-id")], outside=outside)
        assert certificates_of(named) == []
        assert list((swift_path / "receipts").iterdir()) == []
        self.name(named, None)
        assert len(forget(named, []).certificates) == 1

    def test_are_searched_themselves_and_not_only_the_folder(self, named, monkeypatch):
        clean = SimpleNamespace(files=1, bytes=1, kinds={}, searched=(), residues=(), clean=True)
        monkeypatch.setattr(SCANNING, "scan_folder", lambda *_, **__: clean)
        with pytest.raises(ResidueFound, match=r"certificates/\w+\.json"):
            forget(named, [Request("someone-with-a-long-unmistakable-id")])


class TestWhatWasLeftOut:
    def test_is_said_once_documents_are_sealed_and_only_then(self, disk, monkeypatch):
        monkeypatch.setattr(saving, "OPEN_CERTIFICATES", 2)
        for user in ("ann", "bob", "cat", "dan"):
            forget(disk, [Request(user)])
        said = [SEALED in facts["scan"]["searched"] for facts in certificates_of(disk)]
        assert said == [False, False, True, True]


class TestUtility:
    def utility(self, storage) -> dict | None:
        return certificates_of(storage)[-1]["utility"]

    def test_it_is_measured_on_those_who_are_left_by_the_model_before_and_after(self, storage):
        user = user_with_holdout(storage)
        with storage.reading() as session:
            old, checkpoints = session.state(), MemoryStore()
            for link in old.chain:
                checkpoints.put(session.checkpoints.get(link.fingerprint))
            old = replace(old, dataset=old.dataset.recounted())
        forget(storage, [Request(user)])
        with storage.reading() as session:
            left = session.state().dataset.held_out
            before, after = measure(old, checkpoints, left, 1), measure(session.state(), session.checkpoints, left, 1)
        found = self.utility(storage)
        assert len(left.users) < len(old.dataset.held_out.users) < 10
        assert (found["users"], found["grain"], found["protocol"]) == ("< 10", 1, "whole-catalogue")
        assert found["before"] == to_grain(before.values, 1)
        measured = evaluate(storage, metrics=[*after.values]).values
        assert found["after"] == to_grain(after.values, 1) == to_grain(measured, 1)

    def test_the_person_does_not_count_before_either(self, storage):
        user = user_with_holdout(storage)
        with_them = {name: round(value, 4) for name, value in evaluate(storage).values.items()}
        forget(storage, [Request(user)])
        assert self.utility(storage)["before"] != with_them

    def test_without_a_holdout_there_is_none(self, table, swift_path):
        learn(table, swift_path / "shop", Config(model="nmf", groups=2, epochs=1))
        forget(DiskStorage(swift_path / "shop"), [Request("ann")])
        assert self.utility(DiskStorage(swift_path / "shop")) is None

    def test_where_nothing_held_out_is_left_there_is_none(self, disk):
        with disk.reading() as session:
            users = session.state().dataset.held_out.users.texts()
        forget(disk, [Request(user) for user in users])
        assert [facts["utility"] for facts in certificates_of(disk)] == [None] * len(users)


def to_grain(values: Mapping[str, float], grain: float) -> dict[str, float]:
    return {name: coarse.rounded(value, grain) for name, value in values.items()}


def user_with_holdout(storage) -> str:
    with storage.reading() as session:
        return session.state().dataset.held_out.users[0]


class TestOutside:
    def listed(self, list_files) -> list[str]:
        found = DoNotLearnList.open(list_files)
        return [user for user in ("ann", "bob", "cat") if is_listed(user, found)]

    def test_whoever_is_forgotten_is_on_the_do_not_learn_list_before_the_erasure_is_current(self, disk, list_files):
        seen, outside = [], Outside(do_not_learn=list_files)
        asked = [Request("ann"), Request("bob", ("a",))]
        forget_acting(disk, asked, BEFORE_SCAN, lambda: seen.append(self.listed(list_files)), outside=outside)
        assert seen == [["ann"]] == [self.listed(list_files)]
        assert len(DoNotLearnList.open(list_files).interactions) == 1

    def test_whoever_a_killed_process_had_accepted_goes_on_the_list_of_the_next(self, disk, list_files):
        storage = killed(disk, BEFORE_TRAINING, Request("ann"))
        forget(storage, [Request("bob")], outside=Outside(do_not_learn=list_files))
        assert self.listed(list_files) == ["ann", "bob"]

    def test_whoever_was_to_go_on_a_list_does_even_if_the_next_process_names_none(self, disk, list_files):
        storage, killed_outside = DiskStorage(disk.path.with_name("killed")), Outside(do_not_learn=list_files)
        with pytest.raises(KeyboardInterrupt):
            forget_acting(
                disk,
                [Request("ann")],
                BEFORE_TRAINING,
                lambda: stop(KeyboardInterrupt())(copy_of(disk.path, storage.path)),
                outside=killed_outside,
            )
        assert self.listed(list_files) == []
        forget(storage, [])
        assert self.listed(list_files) == ["ann"]

    def test_receipts_are_written_before_the_certificates_are_current(self, disk, swift_path, monkeypatch):
        folder, seen, write = swift_path / "receipts", [], erase.write_receipts

        def looking(receipts, place):
            write(receipts, place)
            seen.append((len(list(folder.iterdir())), len(certificates_of(disk))))

        monkeypatch.setattr(erase, "write_receipts", looking)
        forget(disk, [Request("ann"), Request("bob")], outside=Outside(receipts=folder))
        assert seen == [(2, 0)]


class TestReceipts:
    def test_are_refused_in_the_workspace_before_anything_is_done(self, disk, snapshot):
        before = snapshot(disk)
        with pytest.raises(WrongUse, match="must not keep receipts"):
            forget(disk, [Request("ann")], outside=Outside(disk.path / "receipts"))
        assert snapshot(disk) == before

    def test_are_refused_where_no_folder_can_be_made_before_anything_is_done(self, disk, snapshot, swift_path):
        before = snapshot(disk)
        with pytest.raises(WorkspaceError):
            forget(disk, [Request("ann")], outside=Outside(swift_path / "missing" / "receipts"))
        assert snapshot(disk) == before


class TestWhatIsSearchedAgain:
    def test_an_old_checkpoint_that_was_found_is_found_again_until_it_is_gone(self, disk):
        old = disk.path / "backup"
        shutil.copytree(disk.path / "checkpoints", old)
        with pytest.raises(ResidueFound, match="backup/"):
            forget(disk, [Request("ann")])
        with pytest.raises(ResidueFound, match="backup/"):
            forget(disk, [])
        assert certificates_of(disk) == []
        shutil.rmtree(old)
        assert len(forget(disk, []).certificates) == 1
        assert verify(disk).identical is True

    def test_a_file_that_can_not_be_searched_is_told_with_the_way_on(self, disk):
        (disk.path / "broken").write_bytes(b"PAR1 and nothing else")
        with pytest.raises(
            ResidueFound, match=r"the erasure is done, but not certified: not every file .*then run: forget"
        ):
            forget(disk, [Request("ann")])
        (disk.path / "broken").unlink()
        assert len(forget(disk, []).certificates) == 1


class TestWithdrawing:
    def test_what_was_submitted_is_taken_back(self, disk, snapshot):
        before = snapshot(disk)
        submit(disk, Request("ann"), Request("bob"))
        assert status(disk)["pending"] == 2
        assert withdraw_submitted(disk) == 2
        assert snapshot(disk) == before
        assert withdraw_submitted(disk) == 0

    def test_what_is_erased_stays_erased(self, disk):
        (disk.path / "broken").write_bytes(b"PAR1 and nothing else")
        with pytest.raises(ResidueFound):
            forget(disk, [Request("ann")])
        with pytest.raises(Refused, match=r"finish with forget\(\[\]\)"):
            withdraw_submitted(disk)
        assert status(disk)["pending"] == 1
