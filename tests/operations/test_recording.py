"""Recording: each learn, forget, verify and save adds one record, which says nothing about a person."""

import errno
import sys
from dataclasses import replace
from importlib.metadata import version

import pytest

from erasable import Recommender
from erasable.chain import ORIGIN, Checkpoint
from erasable.errors import UnknownUser
from erasable.operations import DiskStorage, Work, forget, plan, recommend, show, status, verify
from erasable.operations.inspect import evaluate, groups
from erasable.operations.recording import first_documents, record_verification, version_facts
from erasable.operations.work import QUIET_WORK
from erasable.proof import data_digest, first_fault, public_key_of, records_of, says_more_than_known, state_digest
from erasable.requests import Request
from erasable.workspace import files
from kit.asking import search
from kit.plain_digests import plain_digests

ALWAYS = {"format", "number", "previous", "at", "what", "hash", "version", "state", "data", "erasable"}


def audit_of(storage) -> bytes:
    with storage.reading() as session:
        return session.documents().log


def records(storage) -> list[dict]:
    return records_of(audit_of(storage))


def kinds(storage) -> list[str]:
    return [record["what"] for record in records(storage)]


class TestOneRecordForEach:
    def test_learn(self, storage):
        (record,) = records(storage)
        assert {*record} == ALWAYS | {"public_key"}
        assert (record["what"], record["version"]) == ("learn", 1)
        with storage.reading() as session:
            assert record["public_key"] == public_key_of(session.documents().key)

    def test_forget_of_any_number_of_people(self, storage):
        forget(storage, [Request("ann"), Request("bob", ("a",)), Request("cat")])
        record = records(storage)[-1]
        assert kinds(storage) == ["learn", "forget"]
        assert {*record} == ALWAYS | {"certificates", "pages", "stages", "steps", "cost", "duration", "files"}
        assert record["version"] == 2
        with storage.reading() as session:
            names = {name.removesuffix(".json") for name in session.issued() if name.endswith(".json")}
        assert {*record["certificates"]} == {*record["pages"]} == names
        assert len(names) == 3

    def test_verify(self, storage):
        assert verify(storage).recorded is True
        record = records(storage)[-1]
        assert kinds(storage) == ["learn", "verify"]
        assert {*record} == ALWAYS | {"identical", "compared", "stages"}
        assert (record["identical"], record["compared"], record["stages"], record["version"]) == (True, 30, 3, 1)

    def test_verify_that_finds_a_difference(self, storage):
        with storage.writing() as session:
            state = session.state()
            old = session.checkpoints.get(state.chain[0].fingerprint)
            arrays = {name: array + 1 for name, array in old.arrays().items()}
            session.checkpoints.put(Checkpoint.from_arrays(old.fingerprint, old.parent, arrays))
            session.commit(state, session.documents(), session.stamp)
        assert verify(storage).recorded is True
        assert (kinds(storage), records(storage)[-1]["identical"]) == (["learn", "verify"], False)

    def test_save(self, table, tmp_path):
        recommender = Recommender(model="nmf", groups=2, epochs=1).fit(table)
        recommender.forget(["ann"])
        recommender.save(tmp_path / "shop")
        storage = DiskStorage(tmp_path / "shop")
        assert kinds(storage) == ["learn", "forget", "save"]
        assert {*records(storage)[-1]} == ALWAYS
        assert records(storage)[-1]["version"] == 2
        assert verify(storage).identical is True

    def test_saving_a_copy_of_a_workspace_leaves_the_first_as_it_is(self, learned, tmp_path):
        before = audit_of(DiskStorage(learned))
        Recommender.load(learned).save(tmp_path / "copy")
        assert audit_of(DiskStorage(learned)) == before
        assert audit_of(DiskStorage(tmp_path / "copy")).startswith(before)
        assert kinds(DiskStorage(tmp_path / "copy")) == [*kinds(DiskStorage(learned)), "save"]

    def test_all_of_them_in_one_chain(self, storage):
        forget(storage, [Request("ann")])
        verify(storage)
        forget(storage, [Request("bob")])
        verify(storage)
        assert kinds(storage) == ["learn", "forget", "verify", "forget", "verify"]
        assert [record["version"] for record in records(storage)] == [1, 2, 2, 3, 3]
        assert first_fault(audit_of(storage)) is None
        assert status(storage)["records"] == 5

    def test_looking_and_what_is_refused_add_none(self, storage):
        for look in (status, groups, evaluate):
            look(storage)
        recommend(storage, ["ann"])
        show(storage, "ann")
        plan(storage, [Request("ann")])
        forget(storage, [])
        with pytest.raises(UnknownUser):
            forget(storage, [Request("zoe")])
        assert kinds(storage) == ["learn"]


class TestWhatARecordSays:
    def test_of_the_version_that_it_is_about(self, storage):
        with storage.reading() as session:
            facts = version_facts(session.state(), session.stamp)
            expected = state_digest(session.stamp.salt, session.state())
            data = data_digest(session.stamp.salt, session.state().dataset)
        assert facts == {"version": 1, "state": expected, "data": data, "erasable": version("erasable")}
        forget(storage, [Request("ann")])
        with storage.reading() as session:
            assert records(storage)[-1]["state"] == state_digest(session.stamp.salt, session.state()) != expected

    def test_nothing_in_it_counts_as_of_a_newer_version(self, storage):
        forget(storage, [Request("ann")])
        verify(storage)
        assert not says_more_than_known(audit_of(storage))

    def test_nobody_is_named_and_no_plain_digest_is_in_it(self, storage, ratings):
        plain = []
        for user in ("eve", "ann"):
            with storage.reading() as session:
                state = session.state()
                plain += [link.fingerprint for link in state.chain]
                plain += plain_digests(state.dataset)
                plain.append(session.stamp.salt)
            done = forget(storage, [Request(user)])
            plain.append(done.receipts[0].salt)
            verify(storage)
        text = audit_of(storage).decode()
        assert not [secret for secret in plain if secret in text]
        assert not [user for user in ratings if f'"{user}"' in text]

    @pytest.mark.parametrize("asked", [("eve", None), ("ann", None), ("eve", ("a",)), ("eve", ("a", "b", "c"))])
    def test_nothing_tells_how_many_rows_someone_had(self, storage, asked):
        forget(storage, [Request(*asked)])
        verify(storage)
        for record in records(storage)[1:]:
            counted = {name: value for name, value in record.items() if isinstance(value, int | float)}
            expected = {"format": 2, "number": record["number"], "version": 2, "stages": 3}
            if record["what"] == "verify":
                expected |= {"identical": True, "compared": 30}
            counted.pop("files", None)  # so many were searched, whoever it was
            assert counted == expected
        told = records(storage)[1]
        assert told["cost"] in ("none", "< 1 %", "< 5 %", "< 20 %", "< 50 %", "more")
        assert told["duration"] == "< 10 minutes"
        for step in told["steps"]:
            assert {*step} == {"kept", "parent", "digest", "result"}
            assert all(len(step[name]) == 64 or step[name] == ORIGIN for name in ("parent", "digest", "result"))

    def test_the_first_documents_are_a_new_key_and_the_first_record(self, storage):
        with storage.reading() as session:
            state, stamp = session.state(), session.stamp
        one, other = first_documents(state, stamp), first_documents(state, stamp)
        assert one.key != other.key
        assert (one.pending, one.certificates) == (b"", {})
        assert [record["what"] for record in records_of(one.log)] == ["learn"]
        assert one.key.decode() not in one.log.decode()


class TestWhereNothingCanBeWritten:
    def unrecorded(self, storage, reporter) -> None:
        before = kinds(storage)
        found = verify(storage, work=Work(1, reporter))
        assert (found.identical, found.compared, found.stages_replayed, found.recorded) == (True, 30, 3, False)
        assert kinds(storage) == before
        (note,) = reporter.notes
        assert note.startswith("the verification could not be recorded: ")

    def test_a_busy_storage_does_not_change_the_verdict(self, storage, reporter):
        with storage.writing():
            self.unrecorded(storage, reporter)

    def test_a_folder_that_can_not_be_written_to_does_not_change_the_verdict(self, learned, reporter, monkeypatch):
        def refuse(kind, path):
            raise OSError(errno.EROFS, "Read-only file system")

        monkeypatch.setattr(files, "before_change", refuse)
        self.unrecorded(DiskStorage(learned), reporter)

    def test_a_full_disk_does_not_change_the_verdict(self, learned, copied, swift_path, reporter, monkeypatch):
        def refuse(kind, path):
            if kind == "write":
                raise OSError(errno.ENOSPC, "No space left on device")

        storage = DiskStorage(copied(learned, swift_path / "shop"))
        monkeypatch.setattr(files, "before_change", refuse)
        self.unrecorded(storage, reporter)
        monkeypatch.undo()
        assert verify(storage).recorded is True

    def test_what_is_recorded_afterwards_follows_on(self, storage, reporter):
        with storage.writing():
            self.unrecorded(storage, reporter)
        verify(storage)
        assert kinds(storage) == ["learn", "verify"]
        assert first_fault(audit_of(storage)) is None


def test_recording_keeps_the_other_documents(storage):
    pending = search(Request("ann")).encoded()
    with storage.writing() as session:
        session.amend(replace(session.documents(), pending=pending))
        before = session.documents()
    assert record_verification(storage, {"version": 1}, QUIET_WORK) is True
    with storage.reading() as session:
        after = session.documents()
    assert after == replace(before, log=after.log)
    assert after.log.startswith(before.log)


def test_a_verification_that_ends_after_the_next_erasure_puts_nothing_in_doubt(storage, monkeypatch):
    operation = sys.modules[verify.__module__]
    replay = operation.replay

    def replay_while_someone_is_forgotten(*arguments):
        monkeypatch.setattr(operation, "replay", replay)
        forget(storage, [Request("ann")])
        return replay(*arguments)

    monkeypatch.setattr(operation, "replay", replay_while_someone_is_forgotten)
    assert verify(storage).identical is True
    assert [record["version"] for record in records(storage)] == [1, 2, 1]
    again = verify(storage)
    assert (again.identical, again.recorded) == (True, True)
