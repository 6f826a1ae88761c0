"""Tasks that are written down, carried out by what a worker runs, and read again: in this process, without Ray."""

import json
import re

import pytest
from pyarrow import csv

from erasable import Recommender
from erasable.chain import buckets
from erasable.errors import Refused, WrongUse
from erasable.evaluation.protocols import PROTOCOLS
from erasable.extensions import install_command
from erasable.models import Effort
from erasable.operations import DiskStorage, Work, _ray, attack, forget, learn, verify
from erasable.operations._ray import carry_out_order
from erasable.operations.attack import attack_erased
from erasable.operations.inspect import evaluate
from erasable.operations.recommend import recommend_to_all
from erasable.operations.scan import scan
from erasable.operations.selection import Selection
from erasable.operations.storage import MemorySession
from erasable.operations.work import on_cluster
from erasable.requests import Request
from erasable.workspace import Workspace
from erasable.workspace.scratch import Scratch, ScratchGone, scratch_below, scratch_folders
from kit import small_shop
from kit.choosing import cases
from kit.ray_cluster import Telling
from kit.ray_here import ClusterHere, RayHere
from kit.small_shop import CONFIG, lasting_files, member_of, unnamed_files
from kit.ways import WAYS, config_of


@pytest.fixture
def ray():
    return RayHere()


@pytest.fixture
def far(ray):
    return Work(1, cluster=ClusterHere(ray))


@pytest.fixture
def shop(tmp_path, monkeypatch):
    monkeypatch.setattr(buckets, "PEOPLE_IN_A_BUCKET", 10)
    return small_shop.learn_shop(tmp_path / "shop", small_shop.table())


@pytest.mark.parametrize("way", cases({way: way for way in WAYS}, ["chain", "models apart", "anchored als", "ease"]))
def test_a_stage_that_is_written_down_gives_the_same_bytes(tmp_path, far, way):
    table, config = small_shop.table(), config_of(way, holdout=0.2)
    for name, work in (("near", Work(1)), ("far", far)):
        learn(table, tmp_path / name, config, work=work)
        who = member_of(tmp_path / name, 0)
        forget(DiskStorage(tmp_path / name), [Request(who)], work=work, yes=True)
    assert lasting_files(tmp_path / "far") == lasting_files(tmp_path / "near")
    assert verify(DiskStorage(tmp_path / "far"), work=far).identical
    assert unnamed_files(tmp_path / "far") == []
    assert scratch_folders(tmp_path / "far") == []


def test_ray_is_given_paths_names_and_numbers_only(tmp_path, far, ray):
    table = small_shop.table()
    learn(table, tmp_path / "far", CONFIG, work=far)
    who = member_of(tmp_path / "far", 1)
    forget(DiskStorage(tmp_path / "far"), [Request(who)], work=far, yes=True)
    with Workspace.reading(tmp_path / "far") as workspace:
        names = [link.fingerprint for link in workspace.state().chain]
    words = [word for given, answer in ray.passed for word in (*given[1][:2], given[1][3], *given[3].values(), *answer)]
    assert len(ray.passed) > 5
    assert all(len(given[1][2]) == 32 for given, _ in ray.passed)  # the key
    assert all(isinstance(word, str) for word in words)
    assert not {*table["user_id"].to_pylist(), *table["item_id"].to_pylist(), *names}.intersection(words)


def test_recommending_to_everyone_gives_the_same(shop, far):
    near = [*recommend_to_all(DiskStorage(shop), 5, Work(1))]
    assert len(near) == 4
    assert [*recommend_to_all(DiskStorage(shop), 5, far)] == near


def test_a_selection_holds_there_too(shop, far):
    (first, *_), *_ = recommend_to_all(DiskStorage(shop), 5, Work(1))
    wanted, unwanted = [{one.item_id for one in first[:3]}], [{first.user_id: {first[0].item_id}}]
    selection = Selection(tuple(wanted), exclude=tuple(unwanted), seen=True)
    near = [*recommend_to_all(DiskStorage(shop), 5, Work(1), selection=selection)]
    assert {one.item_id for part in near for of_user in part for one in of_user} == wanted[0]
    assert [*recommend_to_all(DiskStorage(shop), 5, far, selection=selection)] == near


def test_whoever_has_asked_gets_none_there_either(shop, far):
    who = member_of(shop, 0)
    forget(DiskStorage(shop), [Request(who)], work=Work(1), wait=False)
    found = [one for part in recommend_to_all(DiskStorage(shop), 5, far) for one in part]
    assert who not in {one.user_id for one in found}
    assert len(found) == 29


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize("everyone", [True, False])
def test_evaluating_gives_the_same(shop, far, protocol, everyone):
    ways = {"protocol": protocol, "everyone": everyone, "by": "activity"}
    assert evaluate(DiskStorage(shop), work=far, **ways) == evaluate(DiskStorage(shop), work=Work(1), **ways)


def test_a_test_set_of_strangers_is_refused(shop, far):
    table = small_shop.table().slice(0, 3).to_pandas().assign(user_id="stranger", item_id=["a", "b", "c"])
    with pytest.raises(Refused, match="no user of the test set is known"):
        evaluate(DiskStorage(shop), table, work=far)


def test_a_scan_finds_the_same(shop, far):
    who = member_of(shop, 0)
    (shop / "data" / "note.txt").write_text(f"about {who}")
    for user in (who, "nobody-whom-we-know"):
        near, there = scan(shop, user), scan(shop, user, work=far)
        assert vars(there) == vars(near)
    assert scan(shop, who, work=far).residues


def attacked(shop, who, work):
    attack_erased(DiskStorage(shop), shop.with_name("rows.csv"), [who], 3, work=work)


@pytest.mark.parametrize("looking", [lambda shop, who, work: scan(shop, who, work=work), attacked])
def test_a_search_does_not_find_whom_another_command_looks_for(shop, tmp_path, looking):
    who, found = member_of(shop, 0), list[bool]()
    csv.write_csv(small_shop.table(), tmp_path / "rows.csv")
    small_shop.forget_in(shop, who)

    class Searching(RayHere):
        def wait(self, running, **options):
            folders = scratch_folders(shop)
            assert folders
            found.append(scan(shop, who).clean)
            (shop / folders[0] / "planted.json").write_text(json.dumps({"user": who}))
            found.append(scan(shop, who).clean)
            return super().wait(running, **options)

    looking(shop, who, Work(1, cluster=ClusterHere(Searching())))
    assert found[:2] == [True, False]


def test_what_is_found_remotely_clean_is_not_read_again(shop, far, ray):
    assert scan(shop, "nobody-whom-we-know", work=far).clean
    assert len(ray.passed) == len([*(shop / "data").iterdir(), *(shop / "checkpoints").iterdir()])


def test_an_attack_gives_the_same(shop, far):
    near, there = (attack(DiskStorage(shop), 5, 3, work) for work in (Work(1), far))
    assert (there.verdict, there.findings, there.people) == (near.verdict, near.findings, near.people)


def test_an_attack_with_erased_people_gives_the_same(shop, far, tmp_path):
    csv.write_csv(small_shop.table(), tmp_path / "rows.csv")
    who = member_of(shop, 0)
    small_shop.forget_in(shop, who)
    near, there = (
        attack_erased(DiskStorage(shop), tmp_path / "rows.csv", [who], 3, work=work) for work in (Work(1), far)
    )
    assert there.findings == near.findings


class TestAFailure:
    def test_comes_back_with_its_kind_and_words(self, shop, far, ray):
        reading, cluster = Workspace.reading(shop), far.cluster
        with reading as session, on_cluster(cluster, session) as executor, pytest.raises(Refused) as failed:
            list(executor.run(Telling(), ["somebody@example.org"], Effort()))
        assert "somebody@example.org" in str(failed.value)
        assert not any("somebody@example.org" in word for _, answer in ray.passed for word in answer)

    def test_of_a_worker_that_does_not_see_the_folder_says_so(self, tmp_path):
        answer = carry_out_order(
            Telling().carry_out, (str(tmp_path / "absent"), "data/work", bytes(32), "order"), 1, _here()
        )
        assert answer[0] == "absent"

    def test_of_a_folder_that_is_gone_is_told(self, tmp_path):
        answer = carry_out_order(Telling().carry_out, (str(tmp_path), "data/work-1", bytes(32), "order"), 1, _here())
        assert answer == ("gone",)

    def test_another_environment_is_not_given_work(self, tmp_path):
        other = {**_here(), "numpy": "0.1"}
        state, _, said = carry_out_order(
            Telling().carry_out, (str(tmp_path), "data/work-1", bytes(32), "order"), 1, other
        )
        assert state == "differs"
        assert said.startswith("numpy is ")
        assert said.endswith(" there and 0.1 here")


def _here():
    return _ray._environment()


def test_a_recommender_in_memory_is_refused(far):
    with pytest.raises(WrongUse, match="needs a workspace on disk"), far.tasks_of(MemorySession()):
        pass


class TestAScratchFolder:
    def test_leaves_nothing(self, tmp_path):
        with scratch_below(tmp_path) as scratch:
            file = scratch.put("a.json", b"1")
            assert Scratch(tmp_path, scratch.below, scratch.key).get(file) == b"1"
        assert list(tmp_path.rglob("*")) == [tmp_path / "data"]

    def test_is_kept_by_whoever_opens_the_workspace_and_removed_by_who_replaces_its_version(self, shop):
        with Workspace.reading(shop) as session, session.scratch() as scratch:
            scratch.put("a.json", b"1")
        with Workspace.reading(shop) as session:
            pass
        held = session.scratch()
        scratch = held.__enter__()
        file = scratch.put("a.json", b"1")
        with Workspace.writing(shop):
            assert scratch.get(file) == b"1"
        small_shop.forget_in(shop, member_of(shop, 0))
        with pytest.raises(ScratchGone):
            scratch.get(file)
        with pytest.raises(ScratchGone):
            scratch.put("b.json", b"1")
        held.__exit__(None, None, None)
        assert scratch_folders(shop) == []

    def test_of_a_killed_command_is_removed_by_the_next(self, shop):
        (shop / "data" / "work-dead").mkdir()
        (shop / "data" / "work-dead" / "order.json").write_text("{}")
        (shop / "data" / "work-dead" / "lock").touch()
        with Workspace.reading(shop):
            pass
        assert scratch_folders(shop) == []


class TestAnAddress:
    @pytest.fixture(autouse=True)
    def _with_ray(self, monkeypatch):
        monkeypatch.setattr(_ray, "find_spec", lambda name: name)

    def test_where_nobody_answers_is_refused_at_once(self, shop):
        with pytest.raises(Refused, match=r"no Ray cluster answers at 127\.0\.0\.1:1 \(Connection refused\)"):
            Recommender.load(shop, executor="ray", address="127.0.0.1:1")

    def test_without_a_port_is_wrong(self, shop):
        with pytest.raises(WrongUse, match="give HOST:PORT"):
            Recommender.load(shop, executor="ray", address="somewhere")

    def test_is_of_no_other_executor(self, shop):
        with pytest.raises(WrongUse, match="give 'local' or 'ray'"):
            Recommender.load(shop, executor="dask")

    def test_needs_the_executor(self, shop):
        with pytest.raises(WrongUse, match="give executor='ray' too"):
            Recommender.load(shop, address="127.0.0.1:1")

    def test_is_not_asked_for_where_ray_is_missing(self, shop, monkeypatch):
        monkeypatch.setattr(_ray, "find_spec", lambda name: None)
        with pytest.raises(WrongUse, match=re.escape(install_command("ray"))):
            Recommender.load(shop, executor="ray")
