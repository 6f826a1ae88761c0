"""Tasks on a Ray cluster of several nodes on the loopback of this machine: the same bytes, and nothing leaks."""

import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
import warnings
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path

import pyarrow as pa
import pytest
from pyarrow import csv

from erasable.chain import MemoryStore, buckets, train_chain
from erasable.data import ColumnNames
from erasable.errors import NotReproducible, Refused, WorkspaceDamaged
from erasable.models import Effort
from erasable.operations import DiskStorage, Work, _ray, attack, forget, learn, learn_more, verify
from erasable.operations._ray import RayCluster, own_place
from erasable.operations.inspect import evaluate
from erasable.operations.recommend import recommend_to_all
from erasable.operations.scan import scan
from erasable.operations.work import on_cluster
from erasable.paper._cells import Cell, CellStore, in_batches
from erasable.paper._reproduce import Bench, measure_into, run_batches
from erasable.paper._workbench import DataSource, Workbench, data_digest
from erasable.requests import Request
from erasable.workspace import Workspace, scratch
from erasable.workspace.scratch import scratch_folders
from kit import small_shop
from kit.ray_cluster import NoRay, RayNodes, Telling
from kit.small_shop import CONFIG, lasting_files, member_of, unnamed_files
from kit.ways import config_of

# Not by importing it here: whether Ray stays on the loopback is decided when it is first imported.
without_ray = pytest.mark.skipif(find_spec("ray") is None, reason="the extra ray is not installed")
pytestmark = [pytest.mark.full, without_ray]
PEOPLE = [f"person.{number:03d}@example.org" for number in range(36)]


def table(people=PEOPLE, items=20):
    rows = small_shop.table(len(people), items)
    users = rows["user_id"].to_pylist()
    named = dict(zip(sorted(set(users)), people, strict=False))
    return rows.set_column(0, "user_id", pa.array([named[user] for user in users]))


@pytest.fixture(scope="module")
def nodes():
    """Two nodes of one core each."""
    started = RayNodes()
    try:
        started.add()
        started.add()
        yield started
    except NoRay as reason:
        pytest.skip(str(reason))
    finally:
        started.stop()


@pytest.fixture(scope="module")
def connected(nodes):
    """A connection that all tests use, so that the workers' processes are started once."""
    ray = _ray._imported(loopback=True)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        ray.init(nodes.address, log_to_driver=False, configure_logging=False, logging_level="ERROR")
        yield ray
        ray.shutdown()


@pytest.fixture
def far(nodes, connected):
    return Work(1, cluster=RayCluster(nodes.address))


def learned(path, work, config=CONFIG, rows=None):
    learn(table() if rows is None else rows, path, config, work=work)
    return path


def forgotten(path, work, *users):
    return forget(DiskStorage(path), [Request(user) for user in users], work=work, yes=True)


WAYS = ("chain", "models apart", "anchored als", "ease")


class TestTheSameBytes:
    @pytest.mark.parametrize("way", WAYS)
    def test_as_in_this_process(self, tmp_path, far, way):
        config = config_of(way, holdout=0.2)
        near, there = learned(tmp_path / "near", Work(1), config), learned(tmp_path / "far", far, config)
        assert lasting_files(there) == lasting_files(near)
        for work, path in ((Work(1), near), (far, there)):
            forgotten(path, work, PEOPLE[3], PEOPLE[20])
        assert lasting_files(there) == lasting_files(near)
        assert verify(DiskStorage(there), work=far).identical is True
        assert unnamed_files(there) == []
        assert scratch_folders(there) == []

    def test_whatever_the_path(self, tmp_path, far):
        first, later = table(PEOPLE[:24]), table(PEOPLE[24:])
        there = learned(tmp_path / "far", far, rows=first)
        forgotten(there, far, PEOPLE[5])
        learn_more(DiskStorage(there), later, work=far)
        forgotten(there, far, PEOPLE[30])
        near = learned(tmp_path / "near", Work(1), rows=first)
        learn_more(DiskStorage(near), later, work=Work(1))
        forgotten(near, Work(1), PEOPLE[30], PEOPLE[5])
        assert lasting_files(there) == lasting_files(near)

    def test_with_two_workers_and_with_three(self, tmp_path, far, nodes, connected):
        config = config_of("models apart")
        near, two = learned(tmp_path / "near", Work(1), config), learned(tmp_path / "two", far, config)
        third = nodes.add()
        try:
            three = learned(tmp_path / "three", far, config)
        finally:
            removed(nodes, connected, third)
        assert lasting_files(two) == lasting_files(three) == lasting_files(near)


def removed(nodes, ray, number):
    """End a node, and wait until the cluster knows."""
    before = sum(one["Alive"] for one in ray.nodes())
    nodes.remove(number)
    while sum(one["Alive"] for one in ray.nodes()) == before:
        time.sleep(0.1)


class TestAWorkerIsKilled:
    def test_in_the_middle_and_another_one_gives_the_same_bytes(self, tmp_path, far, nodes):
        config = CONFIG.changed(epochs=3_000)
        near = learned(tmp_path / "near", Work(1), config)
        with killing(nodes) as killed:
            there = learned(tmp_path / "far", far, config)
        assert len(killed) == 2
        assert lasting_files(there) == lasting_files(near)
        assert scratch_folders(there) == []


@contextmanager
def killing(nodes, most=2):
    """Kill the first workers that are at work, each once, a moment after they are seen."""
    killed, over = [], threading.Event()

    def kill():
        while not over.wait(0.02) and len(killed) < most:
            for pid in nodes.workers():
                if pid not in killed and len(killed) < most:
                    time.sleep(0.1)
                    os.kill(pid, signal.SIGKILL)
                    killed.append(pid)

    thread = threading.Thread(target=kill)
    thread.start()
    try:
        yield killed
    finally:
        over.set()
        thread.join()


class TestNothingOfAPersonGoesThroughRay:
    def test_its_logs_and_objects_hold_nobody(self, tmp_path, far, nodes):
        there = learned(tmp_path / "far", far)
        forgotten(there, far, PEOPLE[7])
        assert verify(DiskStorage(there), work=far).identical
        with Workspace.reading(there) as workspace:
            names = [link.fingerprint for link in workspace.state().chain]
        assert nodes.held([*PEOPLE, *names]) == {}

    def test_whatever_a_worker_prints_or_fails_with(self, tmp_path, far, nodes):
        there, text = learned(tmp_path / "far", Work(1)), "somebody.in.a.traceback@example.org"
        reading = Workspace.reading(there)
        with reading as session, on_cluster(far.cluster, session) as executor, pytest.raises(Refused, match=text):
            list(executor.run(Telling(), [text], Effort()))
        assert nodes.held([text]) == {}

    def test_whoever_did_leak_would_be_found(self, nodes, connected):
        said, kept = "somebody.who.was.printed@example.org", "somebody.who.was.passed@example.org"

        @connected.remote
        def leaking(passed):
            print(said, flush=True)
            return passed

        stored = connected.put(kept * 10_000)
        connected.get(leaking.remote(stored))
        time.sleep(0.5)
        assert nodes.held([said, kept]).keys() == {said, kept}


class TestAnotherNumericEnvironment:
    def test_of_one_node_is_refused_with_what_differs(self, tmp_path, far, nodes, connected):
        other = nodes.add(OPENBLAS_CORETYPE="Prescott")
        try:
            with pytest.raises(NotReproducible, match=r"\(blas is openblas .* there and openblas .* here\)"):
                learned(tmp_path / "far", far)
        finally:
            removed(nodes, connected, other)
        assert not (tmp_path / "far").exists()


class TestReading:
    @pytest.fixture
    def shop(self, tmp_path, monkeypatch):
        monkeypatch.setattr(buckets, "PEOPLE_IN_A_BUCKET", 10)
        return learned(tmp_path / "shop", Work(1), CONFIG)

    def test_gives_the_same_and_leaks_nothing(self, shop, far, nodes):
        storage, near = DiskStorage(shop), Work(1)
        assert [*recommend_to_all(storage, 5, far)] == [*recommend_to_all(storage, 5, near)]
        assert evaluate(storage, work=far) == evaluate(storage, work=near)
        assert vars(scan(shop, PEOPLE[0], work=far)) == vars(scan(shop, PEOPLE[0]))
        assert attack(storage, 5, 3, far).findings == attack(storage, 5, 3, near).findings
        assert nodes.held(PEOPLE) == {}


def test_cells_of_the_paper_are_measured_as_here(tmp_path, far, nodes):
    csv.write_csv(table(), tmp_path / "rows.csv")
    source = DataSource(tmp_path / "rows.csv", ColumnNames())
    settings = {"model": "dmf", "grouping": "random", "groups": 2, "epochs": 2, "holdout": 0.2}
    details = {"request": "learn", "protocols": ["whole-catalogue"]}
    cells = [Cell("utility", data_digest(*source.read()), {**settings, "seed": seed}, details) for seed in range(3)]
    there, here = CellStore(tmp_path / "there"), CellStore(tmp_path / "here")
    run_batches(in_batches(cells), Bench(source, there, 1, 1, far.cluster), lambda progress: None)
    for one in cells:
        measure_into(here, one, Workbench(source, 1))
        assert there.get(one) == here.get(one)
    assert not [*(tmp_path / "there").glob("work-*")]
    assert nodes.held(PEOPLE) == {}


class TestAFault:
    def test_in_a_bucket_is_noticed_by_the_worker_that_reads_it(self, tmp_path, far):
        there = learned(tmp_path / "far", Work(1), config_of("anchored als"))
        bucket = next((there / "data").glob("bucket-*"))
        content = bytearray(bucket.read_bytes())
        content[len(content) // 2] ^= 1
        with Workspace.reading(there) as workspace:
            state = workspace.state()
            bucket.write_bytes(content)
            with far.tasks_of(workspace) as executor, pytest.raises(WorkspaceDamaged, match="bucket-000"):
                train_chain(state.dataset, MemoryStore(), Effort(), executor=executor)
        assert verify(DiskStorage(there), work=far).identical is False

    def test_in_what_a_worker_wrote_is_noticed_here(self, tmp_path, far, monkeypatch):
        get = scratch.Scratch.get

        def damaging(self, name):
            if name.startswith("checkpoint"):
                path = self.folder / name
                path.write_bytes(path.read_bytes()[:-1])
            return get(self, name)

        monkeypatch.setattr(scratch.Scratch, "get", damaging)
        with pytest.raises(Exception, match="is damaged"):
            learned(tmp_path / "far", far)
        assert not (tmp_path / "far").exists()


def command(*words, **settings):
    """Start a command as a process."""
    words = [sys.executable, "-m", "erasable", *map(str, words)]
    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # tests in the background ignore it
    try:
        return subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **settings)
    finally:
        signal.signal(signal.SIGINT, before)


@pytest.fixture
def short_place():
    """A temporary folder whose name is short enough for the sockets of Ray."""
    with tempfile.TemporaryDirectory(prefix="e", dir="/tmp") as place:
        yield Path(place)


def without_rays_variables(place):
    """Return the environment of a command, without what other tests have set for Ray."""
    own = {name: value for name, value in os.environ.items() if not name.startswith("RAY_")}
    return {**own, "TMPDIR": str(place)}


class TestACommand:
    def test_starts_ray_here_and_leaves_nothing_of_it(self, tmp_path, short_place):
        csv.write_csv(table(), tmp_path / "rows.csv")
        words = ("learn", tmp_path / "rows.csv", "--model", "nmf", "--groups", 3, "--epochs", 3, "--into")
        far = (*words, tmp_path / "far", "--executor", "ray", "--threads", 1)
        there = command(*far, env=without_rays_variables(short_place))
        while not [*short_place.glob("erasable-ray-*/lock")]:
            assert there.poll() is None, there.stderr.read()
            time.sleep(0.02)
        assert there.communicate(timeout=120)[1] == ""
        assert there.returncode == 0
        assert command(*words, tmp_path / "near").communicate(timeout=60)[1] == ""
        assert lasting_files(tmp_path / "far") == lasting_files(tmp_path / "near")
        assert [*short_place.iterdir()] == []

    @pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
    def test_that_is_stopped_leaves_the_workspace_as_before(self, tmp_path, far, nodes, number):
        there = learned(tmp_path / "far", Work(1), CONFIG.changed(epochs=4_500))
        before, member = lasting_files(there), member_of(there, 0)
        ways = ("--executor", "ray", "--address", nodes.address, "--yes")
        running = command("forget", there, "--user", member, *ways)
        while not nodes.workers():
            assert running.poll() is None, running.stderr.read()
            time.sleep(0.02)
        running.send_signal(number)
        running.communicate(timeout=20)
        assert running.returncode == (130 if number == signal.SIGINT else -number)
        end = time.monotonic() + 20
        while nodes.workers():
            assert time.monotonic() < end
            time.sleep(0.1)
        with Workspace.writing(there):
            pass
        assert lasting_files(there) == before
        assert unnamed_files(there) == []
        assert scratch_folders(there) == []

    def test_that_was_killed_leaves_no_folder_of_ray_beyond_the_next(self, tmp_path, short_place):
        csv.write_csv(table(), tmp_path / "rows.csv")
        env = without_rays_variables(short_place)
        words = ("learn", tmp_path / "rows.csv", "--executor", "ray", "--threads", 1, "--into")
        running = command(*words, tmp_path / "killed", env=env)
        while not [*short_place.glob("erasable-ray-*/session_latest")]:
            assert running.poll() is None, running.stderr.read()
            time.sleep(0.02)
        running.kill()
        running.communicate()
        assert [*short_place.iterdir()]
        assert command(*words, tmp_path / "next", env=env).communicate(timeout=120)[1] == ""
        assert [*short_place.iterdir()] == []


def test_the_folder_of_another_user_is_left_alone(short_place, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(short_place))
    folders = [short_place / f"erasable-ray-{name}" for name in ("killed", "theirs")]
    for folder in folders:
        (folder / "session").mkdir(parents=True)
        (folder / "lock").touch()
    try:
        os.chown(folders[1], 65_534, -1)
    except PermissionError:
        pytest.skip("only root can give a folder to another user")
    with own_place() as place:
        assert {*short_place.iterdir()} == {Path(place), folders[1]}
        assert (folders[1] / "session").exists()
    assert [*short_place.iterdir()] == folders[1:]


class TestAnotherClusterOfTheSameProcess:
    def test_is_not_used_in_the_place_of_the_one_that_is_named(self, tmp_path, connected, monkeypatch):
        cluster = RayCluster("127.0.0.1:1")
        with pytest.raises(Refused, match=r"is connected to the Ray cluster at 127\.0\.0\.1:\d+: leave out"):
            learned(tmp_path / "far", Work(1, cluster=cluster))
        assert not (tmp_path / "far").exists()

    def test_is_the_same_one_under_another_name(self, tmp_path, connected, nodes):
        named = nodes.address.replace("127.0.0.1", "localhost")
        learned(tmp_path / "far", Work(1, cluster=RayCluster(named)), config_of("ease"))


def test_a_workspace_that_is_changed_meanwhile_is_said_to_be(tmp_path, far, nodes):
    there = learned(tmp_path / "far", Work(1), CONFIG.changed(epochs=4_500))
    said = []

    def verifying():
        try:
            verify(DiskStorage(there), work=far)
        except Refused as error:
            said.append(str(error))

    thread = threading.Thread(target=verifying)
    thread.start()
    while not (frozen := nodes.workers()):
        assert thread.is_alive()
        time.sleep(0.02)
    for pid in frozen:
        os.kill(pid, signal.SIGSTOP)
    forgotten(there, Work(1), member_of(there, 2))
    for pid in frozen:
        os.kill(pid, signal.SIGCONT)
    thread.join(60)
    assert said == ["the workspace was changed by another command meanwhile: run this again"]
    assert verify(DiskStorage(there)).identical
    assert scratch_folders(there) == []
