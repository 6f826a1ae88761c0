"""The do-not-learn list, on by default: whoever was forgotten stays out, wherever the recommender lives."""

import json
import os
import shutil
import stat
from dataclasses import replace
from pathlib import Path
from unittest.mock import patch

import pyarrow as pa
import pytest

from erasable import Recommender
from erasable.chain import Config
from erasable.errors import DataRefused, ListUnusable, Refused, WorkspaceError, WrongUse
from erasable.operations import DiskStorage, Inputs, Outside, Work, forget, learn, learn_more, status, verify
from erasable.operations.do_not_learn import default_places, prepare_list
from erasable.proof import read_search
from erasable.proof.do_not_learn import DoNotLearnFiles, DoNotLearnList, ListedCount
from erasable.requests import Request
from erasable.workspace import NO_PREFERENCES, Workspace, files
from kit.asking import Killed, submit
from kit.killing import at_changes
from kit.listed import is_listed

ANN = [Request("ann")]


@pytest.fixture
def shop(table, config, tmp_path) -> DiskStorage:
    learn(table, tmp_path / "shop", config)
    return DiskStorage(tmp_path / "shop")


@pytest.fixture
def named(tmp_path) -> DoNotLearnFiles:
    """Where another list may be made."""
    for folder in ("lists", "keys"):
        (tmp_path / folder).mkdir()
    return DoNotLearnFiles(tmp_path / "lists" / "erased.json", tmp_path / "keys" / "erased.key")


def new_folder(path: Path) -> Path:
    path.mkdir()
    return path


def users(storage) -> set[str]:
    with storage.reading() as session:
        return {user for group in session.state().dataset.groups for user in group.users}


def preferences(storage):
    with storage.reading() as session:
        return session.documents().preferences


def as_of_before(storage: DiskStorage) -> None:
    """Make a workspace as it was when there was no such list."""
    with storage.writing() as session:
        session.amend(replace(session.documents(), preferences=NO_PREFERENCES))
    for place in lists_of(storage.path):
        shutil.rmtree(place)


def lists_of(path: Path) -> list[Path]:
    return [place for ending in ("", ".key") if (place := path.with_name(f"{path.name}.do-not-learn{ending}")).exists()]


class TestWhoeverWasForgotten:
    def test_is_left_out_and_counted_when_an_old_table_is_learned(self, storage, table):
        forget(storage, ANN)
        found = learn_more(storage, table)
        assert (found.users_added, found.suppressed, found.left_out) == (0, 1, ListedCount(1, 0))
        assert "ann" not in users(storage)
        assert verify(storage).identical is True

    def test_stays_out_with_single_interactions_too(self, storage, table):
        forget(storage, [Request("bob", ("a",))])
        found = learn_more(storage, table)
        assert (found.interactions_added, found.left_out) == (0, ListedCount(0, 1))

    def test_is_left_out_though_nobody_else_comes(self, storage, as_table):
        forget(storage, ANN)
        with storage.reading() as session:
            before = session.stamp.version
        found = learn_more(storage, as_table({"ann": {"a": 5}}))
        assert (found.users_added, found.suppressed, found.stages_rerun) == (0, 1, 0)
        with storage.reading() as session:
            assert session.stamp.version == before

    def test_stays_out_of_a_new_workspace_of_the_same_name(self, shop, table, config):
        forget(shop, ANN)
        shutil.rmtree(shop.path)
        found = learn(table, shop.path, config)
        assert found.suppressed == 1
        assert found.notes[0].startswith("there is a do-not-learn list of an earlier workspace, ")
        assert "ann" not in users(shop)

    def test_comes_back_when_readmitted_and_the_record_says_how_many_not_who(self, storage, table):
        forget(storage, [Request("ann"), Request("bob", ("a",))])
        found = learn_more(storage, table, Inputs(readmit=("ann", "bob")))
        assert (found.readmitted, found.suppressed, found.users_added) == (2, 0, 1)
        with storage.reading() as session:
            record = session.documents().log.splitlines()[-1]
        assert json.loads(record)["readmitted"] == 2
        assert b"ann" not in record
        assert verify(storage).identical is True
        assert learn_more(storage, table).suppressed == 0

    def test_stays_on_the_list_if_learning_fails(self, shop, table, monkeypatch):
        forget(shop, ANN)

        def fail(*_):
            raise WorkspaceError("the disk is gone")

        with monkeypatch.context() as patch:
            patch.setattr(Workspace, "commit", fail)
            with pytest.raises(WorkspaceError):
                learn_more(shop, table, Inputs(readmit=("ann",)))
        assert is_listed("ann", DoNotLearnList.open(default_places(shop.path)))
        assert learn_more(shop, table).suppressed == 1

    def test_is_readmitted_only_with_data_that_come_along(self, storage, table):
        who = "dan"
        forget(storage, [Request(who)])
        others = pa.table({"user": ["newcomer"], "item": ["a"], "rating": [1.0]})
        with pytest.raises(Refused, match="has no row here"):
            learn_more(storage, others, Inputs(readmit=(who,)))

    def test_is_named_exactly_to_be_readmitted(self, storage, table):
        forget(storage, ANN)
        with pytest.raises(Refused, match="nobody has the id 'Ann' on the do-not-learn list: check it, or leave out"):
            learn_more(storage, table, Inputs(readmit=("Ann",)))
        assert learn_more(storage, table).suppressed == 1

    def test_is_on_the_list_of_the_library_too(self, table, as_table, config, tmp_path):
        learn(table, tmp_path / "shop", config)
        recommender = Recommender.load(tmp_path / "shop")
        recommender.forget(["ann"])
        assert recommender.learn_more(table).suppressed == 1
        assert recommender.learn_more(table, readmit=["ann"]).users_added == 1


class TestInMemory:
    @pytest.fixture
    def recommender(self, table, config):
        found = Recommender(**config.flat()).fit(table)
        found.forget(["ann"])
        return found

    def test_saving_writes_list_and_key_beside_the_folder(self, recommender, table, tmp_path):
        recommender.save(tmp_path / "saved")
        assert [path.name for path in lists_of(tmp_path / "saved")] == ["saved.do-not-learn", "saved.do-not-learn.key"]
        assert is_listed("ann", DoNotLearnList.open(default_places(tmp_path / "saved")))
        assert Recommender.load(tmp_path / "saved").learn_more(table).suppressed == 1

    def test_a_copy_has_a_list_of_its_own_with_the_same_entries(self, recommender, table, tmp_path):
        recommender.save(tmp_path / "one")
        recommender.save(tmp_path / "two")
        one, two = (DoNotLearnList.open(default_places(tmp_path / name)) for name in ("one", "two"))
        assert one == two
        Recommender.load(tmp_path / "two").forget(["bob"])
        assert is_listed("bob", DoNotLearnList.open(default_places(tmp_path / "two")))
        assert not is_listed("bob", DoNotLearnList.open(default_places(tmp_path / "one")))

    def test_fitting_again_begins_a_new_one(self, recommender, table):
        recommender.fit(table)
        assert recommender.learn_more(table).suppressed == 0

    def test_saving_where_another_list_lies_is_refused(self, recommender, table, config, tmp_path):
        learn(table, tmp_path / "shop", config)
        forget(DiskStorage(tmp_path / "shop"), [Request("bob")])
        shutil.rmtree(tmp_path / "shop")
        with pytest.raises(Refused, match="a do-not-learn list of an earlier workspace lies there: move it"):
            recommender.save(tmp_path / "shop")
        assert not (tmp_path / "shop").exists()
        assert is_listed("bob", DoNotLearnList.open(default_places(tmp_path / "shop")))
        for place in lists_of(tmp_path / "shop"):
            place.rename(place.with_name(f"moved-{place.name}"))
        recommender.save(tmp_path / "shop")

    def test_saving_that_fails_leaves_no_list(self, recommender, tmp_path, monkeypatch):
        def fail(*_):
            raise WorkspaceError("the disk is gone")

        monkeypatch.setattr(Workspace, "commit", fail)
        with pytest.raises(WorkspaceError):
            recommender.save(tmp_path / "saved")
        assert list(tmp_path.iterdir()) == []

    def test_a_list_that_was_named_serves_the_copy_too(self, table, config, named, tmp_path):
        recommender = Recommender(**config.flat()).fit(table, Inputs(do_not_learn=named))
        recommender.forget(["ann"])
        recommender.save(tmp_path / "saved")
        assert lists_of(tmp_path / "saved") == []
        assert is_listed("ann", DoNotLearnList.open(named))
        assert recommender.learn_more(table).suppressed == 1


class TestWhereItLies:
    def test_in_two_folders_beside_the_workspace_for_their_owner_alone(self, shop):
        folders = lists_of(shop.path)
        assert [folder.name for folder in folders] == ["shop.do-not-learn", "shop.do-not-learn.key"]
        assert {stat.S_IMODE(folder.stat().st_mode) for folder in folders} == {0o700}
        written = folders[0] / "list.json", folders[1] / "key"
        assert {stat.S_IMODE(file.stat().st_mode) for file in written} == {0o600}
        found = status(shop)
        assert found["do_not_learn"] == {"kept": "in files", "list": str(written[0]), "key": str(written[1])}

    def test_beside_the_workspace_also_where_something_else_has_a_manifest(self, table, config, tmp_path):
        (tmp_path / "manifest.json").write_text("{}")
        learn(table, tmp_path / "shop", config)
        assert len(lists_of(tmp_path / "shop")) == 2

    def test_not_inside_another_workspace(self, shop, table, config):
        with pytest.raises(Refused, match="lies inside a workspace: keep the do-not-learn list and its key outside"):
            learn(table, shop.path / "inner", config)
        assert not (shop.path / "inner").exists()

    def test_a_list_that_is_named_again_must_be_there(self, shop, named):
        forget(shop, ANN, outside=Outside(do_not_learn=named))
        for file in (named.list, named.key):
            file.unlink()
        with pytest.raises(ListUnusable, match=r"erased\.json: there is no do-not-learn list"):
            forget(shop, [Request("bob")], outside=Outside(do_not_learn=named))
        with pytest.raises(ListUnusable, match=r"erased\.json: there is no do-not-learn list"):
            prepare_list(shop, named)
        assert "bob" in users(shop)

    def test_all_three_folders_can_be_moved_together(self, shop, table, tmp_path):
        (tmp_path / "elsewhere").mkdir()
        for folder in (shop.path, *lists_of(shop.path)):
            folder.rename(tmp_path / "elsewhere" / folder.name)
        moved = DiskStorage(tmp_path / "elsewhere" / "shop")
        forget(moved, ANN)
        assert learn_more(moved, table).suppressed == 1

    def test_elsewhere_if_it_is_named_and_there_from_then_on(self, shop, table, named):
        forget(shop, ANN, outside=Outside(do_not_learn=named))
        forget(shop, [Request("bob")])
        assert len(DoNotLearnList.open(named).users) == 2
        assert preferences(shop).do_not_learn == ("../lists/erased.json", "../keys/erased.key")
        assert learn_more(shop, table).suppressed == 2

    def test_a_place_that_is_far_is_remembered_as_it_is(self, table, config, named, tmp_path):
        learn(table, tmp_path / "deep" / "shop", config, Inputs(do_not_learn=named))
        assert preferences(DiskStorage(tmp_path / "deep" / "shop")).do_not_learn == (str(named.list), str(named.key))

    def test_one_list_serves_several_workspaces(self, table, config, named, tmp_path):
        one, two = DiskStorage(tmp_path / "one"), DiskStorage(tmp_path / "two")
        learn(table, one.path, config, Inputs(do_not_learn=named))
        forget(one, ANN)
        found = learn(table, two.path, config, Inputs(do_not_learn=named))
        assert (found.suppressed, lists_of(one.path), lists_of(two.path)) == (1, [], [])
        forget(two, [Request("bob")])
        assert learn_more(one, table).suppressed == 2
        # Bob is still held in the first: someone has to forget him there as well.
        assert verify(one).reason.startswith("what was erased is held again (people: 1,")
        forget(one, [Request("bob")])
        assert verify(one).identical is True

    def test_nowhere_if_that_is_said(self, table, config, tmp_path):
        storage = DiskStorage(tmp_path / "shop")
        learn(table, storage.path, config, Inputs(without_do_not_learn=True))
        forget(storage, ANN)
        assert lists_of(storage.path) == []
        assert learn_more(storage, table).users_added == 1
        assert status(storage)["do_not_learn"] == {"kept": "no", "list": None, "key": None}

    def test_to_readmit_needs_a_list(self, table, config, tmp_path):
        storage = DiskStorage(tmp_path / "shop")
        learn(table, storage.path, config, Inputs(without_do_not_learn=True))
        with pytest.raises(WrongUse, match="leave out readmit"):
            learn_more(storage, table, Inputs(readmit=("ann",)))


class TestWhatFails:
    def test_learning_that_fails_leaves_neither(self, tmp_path, config):
        with pytest.raises(DataRefused):
            learn(tmp_path / "missing.csv", tmp_path / "shop", config)
        assert list(tmp_path.iterdir()) == []

    def test_learning_that_is_interrupted_leaves_neither(self, table, tmp_path, config):
        def interrupt(*_):
            raise KeyboardInterrupt

        class Interrupting(Work):
            training = interrupt

        with pytest.raises(KeyboardInterrupt):
            learn(table, tmp_path / "shop", config, work=Interrupting(1))
        assert list(tmp_path.iterdir()) == []

    def test_learning_that_fails_leaves_a_list_that_was_there(self, shop, tmp_path, config):
        forget(shop, ANN)
        shutil.rmtree(shop.path)
        with pytest.raises(DataRefused):
            learn(tmp_path / "missing.csv", shop.path, config)
        assert is_listed("ann", DoNotLearnList.open(default_places(shop.path)))

    @pytest.mark.full
    @at_changes
    def test_a_process_that_is_killed_anywhere_can_learn_again(self, table, tmp_path, monkeypatch, moments):
        config, done = Config(model="als", epochs=1), False
        for number in moments(lambda: learn(table, new_folder(tmp_path / "undisturbed") / "shop", config)):
            folder, left = new_folder(tmp_path / str(number)) / "shop", iter(range(number - 1))

            class Killed(BaseException):
                pass

            def change(kind, path, left=left, killed=Killed):
                if next(left, None) is None:
                    raise killed  # and nothing can be removed any more

            with monkeypatch.context() as patch:
                patch.setattr(files, "before_change", change)
                try:
                    learn(table, folder, config)
                    done = True
                except Killed:
                    pass
            if not (folder / "manifest.json").exists():
                assert learn(table, folder, config).suppressed == 0
            forget(DiskStorage(folder), ANN)
            assert is_listed("ann", DoNotLearnList.open(default_places(folder)))
            if done:
                break
        assert done
        assert number > 10

    @pytest.mark.parametrize("lost", ["list", "key", "both"])
    def test_a_list_or_key_that_is_missing_stops_learning_and_forgetting(self, shop, table, lost, named):
        forget(shop, ANN)
        places = default_places(shop.path)
        for name in ("list", "key") if lost == "both" else (lost,):
            getattr(places, name).unlink()
        for attempt in (lambda: forget(shop, [Request("bob")]), lambda: learn_more(shop, table)):
            with pytest.raises(ListUnusable) as refused:
                attempt()
            assert "restore it from its newest copy" in str(refused.value)
            assert "--do-not-learn LIST --do-not-learn-key KEY" in refused.value.of_command
            assert "--no-do-not-learn" in refused.value.of_command
            assert "without_do_not_learn=True" in str(refused.value)
        assert "bob" in users(shop)
        # Both remedies work.
        forget(shop, [Request("bob")], outside=Outside(do_not_learn=named))
        assert learn_more(shop, table).suppressed == 1
        assert learn_more(shop, table, Inputs(without_do_not_learn=True)).users_added == 1

    def test_a_new_workspace_does_not_begin_with_half_a_list(self, shop, table, config):
        forget(shop, ANN)
        shutil.rmtree(shop.path)
        default_places(shop.path).list.unlink()
        with pytest.raises(ListUnusable, match="there is no do-not-learn list: restore it"):
            learn(table, shop.path, config)
        assert not shop.path.exists()

    def test_what_a_killed_process_had_submitted_goes_where_is_said_if_the_list_is_lost(self, shop, named):
        submit(shop, *ANN)
        default_places(shop.path).list.unlink()
        with pytest.raises(ListUnusable, match="there is no do-not-learn list"):
            forget(shop, [])
        assert "ann" in users(shop)
        forget(shop, [], outside=Outside(do_not_learn=named))
        assert is_listed("ann", DoNotLearnList.open(named))
        assert "ann" not in users(shop)

    def test_a_list_that_can_not_be_written_is_refused_before_any_work(self, shop, monkeypatch):
        folder = str(default_places(shop.path).list.parent)
        monkeypatch.setattr(os, "access", lambda path, *_, **__: str(path) != folder)
        with pytest.raises(ListUnusable, match="can't be written to"):
            forget(shop, ANN)
        assert "ann" in users(shop)


class TestAWorkspaceThatHasNone:
    def test_gets_its_list_at_its_next_erasure_and_says_who_is_not_on_it(self, shop, table):
        forget(shop, ANN)
        as_of_before(shop)
        found = learn_more(shop, table)
        assert found.users_added == 1
        assert "whoever was erased before can't be recognised" in found.notes[0]
        assert lists_of(shop.path) == []
        forgotten = forget(shop, [Request("bob")])
        assert forgotten.notes[0].startswith("a do-not-learn list begins with this erasure, ")
        assert "whoever was erased before can't be recognised" in forgotten.notes[0]
        assert learn_more(shop, table).suppressed == 1
        assert forget(shop, [Request("cat")]).notes == ()

    def test_says_nothing_where_nobody_was_erased_before(self, shop, table):
        as_of_before(shop)
        assert learn_more(shop, table).notes == ()
        assert forget(shop, ANN).notes == ()
        assert len(lists_of(shop.path)) == 2

    def test_that_forgets_nobody_gets_none(self, shop):
        as_of_before(shop)
        forget(shop, [])
        forget(shop, [Request("nobody")], ignore_unknown=True)
        assert lists_of(shop.path) == []


class TestTheSearchFile:
    @pytest.mark.parametrize("without", [False, True])
    def test_says_whether_there_is_a_list(self, shop, without):
        with patch("erasable.operations.erase.search_for", side_effect=Killed), pytest.raises(Killed):
            forget(shop, ANN, outside=Outside(without_do_not_learn=without))
        with shop.reading() as session:
            (erased,) = read_search(session.documents().pending).erasures
        assert bool(erased.suppression) is not without
