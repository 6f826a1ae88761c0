"""Upgrade: what was learned elsewhere is made again here, and adopted where its bytes agree."""

import json
import sys

import pytest

from erasable.chain import Config, environment_for
from erasable.errors import NotReproducible, Refused, UnknownUser, WorkspaceDamaged
from erasable.models import NMF
from erasable.operations import (
    DiskStorage,
    Work,
    forget,
    learn,
    learn_more,
    plan,
    plan_upgrade,
    recommend,
    upgrade,
    verify,
)
from erasable.proof import records_of
from erasable.requests import Request
from erasable.workspace import Workspace
from kit import elsewhere
from kit.asking import erase_only, submit
from kit.copies import copy_of
from kit.small_shop import lasting_files, unnamed_files

WORK = Work(1)


@pytest.fixture
def disk(learned, tmp_path) -> DiskStorage:
    return DiskStorage(copy_of(learned, tmp_path / "shop"))


def records(storage) -> list[dict]:
    with storage.reading() as session:
        return records_of(session.documents().records())


class TestTheSameBytes:
    def test_are_adopted_and_nothing_else_changes(self, disk, learned):
        elsewhere.moved(disk.path, numpy="0.0")
        done = upgrade(disk, WORK)
        assert (done.changed, done.adopted, done.trained, done.kept, done.version) == (True, 3, 0, 0, 2)
        assert lasting_files(disk.path) == lasting_files(learned)
        assert unnamed_files(disk.path) == []
        assert verify(disk).identical is True
        forget(disk, [Request("ann")], work=WORK)

    def test_in_memory_too(self, storage, snapshot):
        before = snapshot(storage)
        if storage.path is None:
            elsewhere.moved_in_memory(storage, numpy="0.0")
        else:
            elsewhere.moved(storage.path, numpy="0.0")
        assert upgrade(storage, WORK).adopted == 3
        assert snapshot(storage).arrays == before.arrays
        assert verify(storage).identical is True

    def test_under_sisa_only_what_was_made_elsewhere_is_made_again(self, table, tmp_path):
        learn(table, tmp_path / "shop", Config(model="nmf", strategy="sisa", groups=3, epochs=3, batch=16), work=WORK)
        elsewhere.moved(tmp_path / "shop", places=[0], numpy="0.0")
        done = upgrade(DiskStorage(tmp_path / "shop"), WORK)
        assert (done.adopted, done.trained, done.kept) == (1, 0, 2)


class TestOtherBytes:
    def test_take_the_place_of_those_before(self, disk, learned, snapshot):
        elsewhere.spoiled(disk.path, 1)
        elsewhere.moved(disk.path, numpy="0.0")
        assert snapshot(disk).arrays != snapshot(DiskStorage(learned)).arrays
        done = upgrade(disk, WORK)
        assert (done.adopted, done.trained, done.kept) == (2, 1, 0)
        assert snapshot(disk).arrays == snapshot(DiskStorage(learned)).arrays
        assert unnamed_files(disk.path) == []
        assert verify(disk).identical is True

    def test_whatever_follows_from_them_is_made_again(self, disk):
        """The last stage is of here, and was trained from what is not."""
        elsewhere.moved(disk.path, places=[1], numpy="0.0")
        done = upgrade(disk, WORK)
        assert (done.adopted, done.kept) == (2, 1)


class TestDamage:
    def test_is_refused_and_left_as_it_is(self, disk):
        manifest = elsewhere.moved(disk.path, numpy="0.0")
        file = disk.path / manifest.chain[1].file
        content = file.read_bytes()
        file.write_bytes(content[:-1] + bytes([content[-1] ^ 1]))
        with pytest.raises(WorkspaceDamaged, match="damaged or missing: checkpoints"):
            upgrade(disk, WORK)
        assert plan_upgrade(disk).needed

    def test_other_data_than_were_recorded_are_not_recorded_as_learned(self, disk, table, config, tmp_path):
        learn(table.slice(3), tmp_path / "other", config, work=WORK)
        with DiskStorage(tmp_path / "other").reading() as other, Workspace.writing(disk.path) as workspace:
            state = other.state()
            for link in state.chain:
                workspace.checkpoints.put(other.checkpoints.get(link.fingerprint))
            workspace.commit(state, workspace.documents(), workspace.stamp)
        elsewhere.moved(disk.path, numpy="0.0")
        with pytest.raises(WorkspaceDamaged, match="are not those that were recorded"):
            upgrade(disk, WORK)


class TestNothingToDo:
    def test_changes_nothing(self, disk):
        before = (disk.path / "manifest.json").read_bytes()
        done = upgrade(disk, WORK)
        assert (done.changed, done.adopted, done.trained, done.kept, done.version) == (False, 0, 0, 3, 1)
        assert (disk.path / "manifest.json").read_bytes() == before
        assert not plan_upgrade(disk).needed


class TestTheRecord:
    def test_says_what_was_found_from_where_to_where(self, disk):
        elsewhere.spoiled(disk.path, 2)
        elsewhere.moved(disk.path, numpy="0.0")
        upgrade(disk, WORK)
        record = records(disk)[-1]
        here = environment_for(Config(model="nmf", groups=3))
        assert (record["what"], record["version"]) == ("upgrade", 2)
        assert (record["adopted"], record["trained"], record["kept"]) == (2, 1, 0)
        assert record["before"] == {"format": 5, "environment": {**here, "numpy": "0.0"}}
        assert record["after"] == {"format": 5, "environment": here}

    def test_names_nobody(self, disk):
        elsewhere.moved(disk.path, numpy="0.0")
        upgrade(disk, WORK)
        assert not {"ann", "bob", "cat", "dan", "eve", "fay"} & set(json.dumps(records(disk)[-1]).split('"'))


class TestBefore:
    def test_a_plan_says_what_would_be_found_and_changes_nothing(self, disk):
        elsewhere.moved(disk.path, places=[1], numpy="0.0", processor="abacus")
        before = (disk.path / "manifest.json").read_bytes()
        planned = plan_upgrade(disk)
        assert (planned.needed, planned.refused) == (True, None)
        assert (planned.steps_elsewhere, planned.steps_replayed, planned.steps_total) == (1, 2, 3)
        assert [difference.split()[0] for difference in planned.differences] == ["numpy", "processor"]
        with disk.reading() as session:
            assert planned.seconds == sum(link.seconds for link in session.state().chain[1:])
        assert (disk.path / "manifest.json").read_bytes() == before

    def test_verify_names_the_stages_that_are_not_of_here(self, disk):
        elsewhere.moved(disk.path, places=[1], numpy="0.0")
        found = verify(disk)
        assert found.identical is None
        assert found.reason.startswith("stage 2 of it was learned in another numeric environment: numpy is ")

    def test_forgetting_is_refused_if_one_stage_is_not_of_here(self, disk):
        elsewhere.moved(disk.path, places=[2], numpy="0.0")
        with pytest.raises(NotReproducible, match=r"bring it here with upgrade\(\)"):
            forget(disk, [Request("ann")], work=WORK)


class TestPeopleWhoWait:
    def test_stay_suppressed_and_are_erased_afterwards(self, disk):
        submit(disk, Request("ann"))
        elsewhere.moved(disk.path, numpy="0.0")
        assert upgrade(disk, WORK).adopted == 3
        with pytest.raises(UnknownUser):
            recommend(disk, ["ann"])
        assert forget(disk, [], work=WORK).finished == 1
        assert verify(disk).identical is True

    def test_whose_certificates_are_missing_come_first(self, disk):
        erase_only(disk, Request("ann"))
        elsewhere.moved(disk.path, numpy="0.0")
        assert "finish it with forget([])" in plan_upgrade(disk).refused
        with pytest.raises(Refused, match=r"its certificates are missing: finish it with forget\(\[\]\), then upgrade"):
            upgrade(disk, WORK)
        assert forget(disk, [], work=WORK).finished == 1
        assert upgrade(disk, WORK).changed


def test_groups_that_are_decided_anew_are_decided_here(table, tmp_path, monkeypatch):
    """A replay decides them here too, so that what is kept must have been."""
    config = Config(model="nmf", groups=2, epochs=2, batch=16, grouping="random", order="number", policy="regroup")
    learn(table, tmp_path / "shop", config, work=WORK)
    storage, asked = DiskStorage(tmp_path / "shop"), []
    module = sys.modules["erasable.operations.upgrade"]
    decide = module.regrouped

    def regrouped(*arguments):
        asked.append(1)
        return decide(*arguments)

    monkeypatch.setattr(module, "regrouped", regrouped)
    assert not upgrade(storage, WORK).changed
    assert asked == []
    elsewhere.moved(storage.path, numpy="0.0")
    assert upgrade(storage, WORK).adopted == 2
    assert asked == [1]
    assert verify(storage).identical is True


def test_a_model_of_another_revision_is_trained_again(disk, monkeypatch):
    with disk.reading() as session:
        before = {link.fingerprint for link in session.state().chain}
    monkeypatch.setattr(NMF, "revision", 2)
    assert verify(disk).identical is None
    assert "nmf has the revision 2 here and had 1" in verify(disk).reason
    announced, done = plan_upgrade(disk), upgrade(disk, WORK)
    assert announced.steps_replayed == done.trained == 3
    assert verify(disk).identical is True
    with disk.reading() as session:
        state = session.state()
        assert state.dataset.config.revision == 2
        assert not before & {link.fingerprint for link in state.chain}
    assert upgrade(disk, WORK).changed is False
    forget(disk, [Request("ann")], work=WORK)


def test_an_erasure_trains_it_again_too_once_and_says_so_first(disk, monkeypatch, reporter):
    monkeypatch.setattr(NMF, "revision", 2)
    assert plan(disk, [Request("ann")]).stages_rerun == 3
    done = forget(disk, [Request("ann")], work=Work(1, reporter))
    assert "everything is trained again, once: nmf has the revision 2 here and had 1" in reporter.notes
    assert done.stages_rerun == 3
    assert verify(disk).identical is True
    with disk.reading() as session:
        assert session.state().dataset.config.revision == 2
    assert forget(disk, [Request("bob")], work=Work(1, reporter)).stages_rerun <= 3
    assert sum("trained again" in note for note in reporter.notes) == 1


@pytest.mark.parametrize("revision", [0, 2])
def test_a_revision_of_a_model_that_is_not_newer_or_not_ours_is_refused(disk, monkeypatch, revision):
    monkeypatch.setattr(NMF, "revision", revision)
    monkeypatch.setattr("erasable.chain.chain.is_ours", lambda model: revision == 0)
    with pytest.raises(NotReproducible, match="upgrade"):
        forget(disk, [Request("ann")], work=WORK)


@pytest.mark.parametrize("more", [False, True])
def test_what_is_trained_again_is_named_by_the_revision_that_trained_it(disk, monkeypatch, as_table, more):
    monkeypatch.setattr(NMF, "revision", 2)
    if more:
        learn_more(disk, as_table({"zoe": {"a": 5}}), work=WORK, rerun=True)
    else:
        forget(disk, [Request("ann")], rerun=True, work=WORK)
    with disk.reading() as session:
        assert session.state().dataset.config.revision == 2
    assert verify(disk).identical is True
    assert upgrade(disk, WORK).changed is False
