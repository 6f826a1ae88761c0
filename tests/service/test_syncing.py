"""The daily sync: the worker makes the workspace equal to an export, or says why not, and erasures go on."""

import json
from datetime import timedelta

import pyarrow as pa
import pyarrow.csv
import pytest

from erasable.chain import Config
from erasable.errors import Refused
from erasable.operations import DiskStorage, Inputs, Work, learn, recommend, verify
from erasable.operations.scan import scan
from erasable.requests import Request
from erasable.requests.database import WaitingInteraction
from erasable.service._syncing import Syncer, ask_for_sync, sync_state
from erasable.service._worker import Worker, WorkerOptions
from erasable.service.settings import ServiceSettings, settings_from
from kit.erasure_service import work_off
from kit.killing import at_changes, killed_at
from kit.service_process import running
from kit.small_shop import lasting_files


def write(path, ratings):
    rows = [(user, item, rating) for user, own in ratings.items() for item, rating in own.items()]
    users, items, values = zip(*rows, strict=True)
    pa.csv.write_csv(pa.table({"user_id": users, "item_id": items, "rating": values}), path)
    return path


@pytest.fixture
def tonight(ratings):
    """What the shop has tonight: bob is gone, zoe is new."""
    return {user: own for user, own in ratings.items() if user != "bob"} | {"zoe": {"a": 5, "e": 4}}


@pytest.fixture
def export(tmp_path, tonight):
    return write(tmp_path / "export.csv", tonight)


@pytest.fixture
def settings(export):
    return ServiceSettings(
        batch_window=0, learn_seconds=3600, sync=str(export), sync_at="03:00", sync_forget_missing=True
    )


@pytest.fixture
def night(clock):
    """It is 02:59."""
    clock.now = clock.now.replace(hour=2, minute=59, second=0, microsecond=0)
    return clock


def work(worker):
    """Let the worker do all that there is to do; each batch with erasures is one worker's."""
    while worker.step():
        pass


def users_of(shop):
    with shop.storage.reading() as session:
        return {user for bucket in session.state().dataset.buckets for user in bucket.users}


def told(shop):
    return [event.name for event in reversed(shop.history.events(50)) if event.name.startswith("sync")]


def state_of(shop, settings):
    return sync_state(shop.history, settings, shop.clock())


def test_it_is_done_at_its_time_once_a_day(night, shop, worker, settings, tonight):
    work(worker)
    assert told(shop) == []
    night.now += timedelta(minutes=1)
    work(worker)
    assert told(shop) == ["sync begun", "synced"]
    assert users_of(shop) == {*tonight}
    state = state_of(shop, settings)
    assert (state.outcome, state.next) == ("synced", night.now.replace(minute=0) + timedelta(days=1))
    assert state.done == {
        "users_added": 1,
        "interactions_added": 2,
        "interactions_changed": 0,
        "users_forgotten": 1,
        "interactions_forgotten": 0,
        "left_out": 0,
    }
    night.now += timedelta(hours=20)
    work(worker)
    assert told(shop) == ["sync begun", "synced"]
    night.now += timedelta(hours=4)
    work(worker)
    assert told(shop) == ["sync begun", "synced"] * 2
    assert verify(shop.storage).identical


def test_who_vanished_is_certified_and_nothing_of_them_is_left(night, shop, worker, export, folder, ratings):
    night.now += timedelta(minutes=1)
    work(worker)
    with shop.storage.reading() as session:
        assert sum(name.endswith(".json") for name in session.issued()) == 1
    source = write(export.parent / "before.csv", ratings)
    assert not scan(folder, "bob", str(source)).residues
    assert scan(folder, "ann", str(source)).residues


def test_a_service_that_was_down_does_it_when_it_is_back_that_day(night, shop, worker):
    night.now += timedelta(hours=9)
    work(worker)
    assert told(shop) == ["sync begun", "synced"]


def test_what_came_in_before_is_learned_first_and_then_what_the_export_says_holds(night, shop, worker, export, tonight):
    shop.intake.add([WaitingInteraction("ann", "f", 2.0, None)])
    write(export, {**tonight, "ann": {**tonight["ann"], "f": 4}})
    night.now += timedelta(minutes=1)
    work(worker)
    with shop.storage.reading() as session:
        rows = session.state().dataset.data_of(["ann"])
        assert dict(zip(rows.items.take(rows.item_index), rows.rating.tolist(), strict=True))["f"] == 4
    assert shop.intake.count() == 0


def test_whoever_has_asked_stays_out_and_whoever_vanished_may_come_back(night, shop, worker, export, ratings, tonight):
    shop.reception.submit(Request("eve"), "application 1")
    night.now += timedelta(minutes=1)
    work(worker)
    assert users_of(shop) == tonight.keys() - {"eve"}
    write(export, ratings)
    night.now += timedelta(days=1)
    work(worker)
    assert users_of(shop) == ratings.keys() - {"eve"}


def test_whoever_asks_while_the_sync_forgets_them_is_put_on_the_list_all_the_same(night, shop, worker, export, ratings):
    night.now += timedelta(minutes=1)
    work(worker)
    # As if taken in against the version before: the answer said that the person is not served any more.
    shop.queue.submit(Request("bob"), True, "application 1", night.now)
    work(worker)
    write(export, ratings)
    ask_for_sync(shop.queue, worker.options.settings, "officer 1", night.now, {})
    work(worker)
    assert users_of(shop) == ratings.keys() - {"bob"}


def test_a_refused_sync_changes_nothing_and_stops_no_erasure(night, shop, worker, export, settings, capsys, ratings):
    write(export, {"ann": {"a": 5, "b": 4}})
    shop.reception.submit(Request("eve"), "application 1")
    night.now += timedelta(minutes=1)
    work(worker)
    assert users_of(shop) == ratings.keys() - {"eve"}
    state = state_of(shop, settings)
    assert (state.outcome, state.rows, state.needs_yes) == ("refused", 2, False)
    assert "2 interactions in 2 rows, and 15 are held" in state.reason
    shop.reception.submit(Request("dan"), "application 1")
    night.now += timedelta(hours=3)
    work(worker)
    assert users_of(shop) == ratings.keys() - {"eve", "dan"}
    assert told(shop) == ["sync begun", "sync refused"]
    assert "sync refused" in capsys.readouterr().err


def many(count):
    return {f"person-{number:02d}": {"a": 1 + number % 5, f"b{number % 7}": 3, "c": 5} for number in range(count)}


def test_many_people_wait_for_an_officer_whose_decision_is_about_this_export(
    night, client, shop, worker, export, settings, ratings
):
    write(export, {**ratings, **many(40)})
    night.now += timedelta(minutes=1)
    work(worker)
    assert len(users_of(shop)) == 46
    write(export, {**ratings, **many(28)})
    night.now += timedelta(days=1)
    work(worker)
    found = client("officer").get("/v1/status").json()["sync"]
    assert (found["outcome"], found["needs_yes"], found["rows"]) == ("refused", True, 105)
    assert found["reason"] == "the export lacks data of 12 of 46 people"
    metrics = client("officer").get("/metrics").text
    assert "erasable_sync_undone 1.0" in metrics
    write(export, {**ratings, **many(20)})  # meanwhile it has become another one
    assert client("officer").post("/v1/sync", json={"yes": True, "expect_rows": 105}).status_code == 202
    work(worker)
    assert len(users_of(shop)) == 46
    assert client("officer").post("/v1/sync", json={"yes": True}).status_code == 202
    work(worker)
    assert len(users_of(shop)) == 26
    assert "erasable_sync_undone 0.0" in client("officer").get("/metrics").text


def test_an_export_that_can_not_be_read_is_tried_again_every_hour_and_quotes_nobody(
    night, shop, worker, export, settings, capsys, tonight
):
    export.write_text("user_id,item_id,rating\nfay-the-unmistakable,a,much\n")
    night.now += timedelta(minutes=1)
    work(worker)
    assert told(shop) == ["sync begun", "sync failed"]
    assert "--dry-run" in state_of(shop, settings).reason
    assert state_of(shop, settings).next == night.now + timedelta(hours=1)
    night.now += timedelta(minutes=59)
    work(worker)
    assert told(shop) == ["sync begun", "sync failed"]
    write(export, tonight)
    night.now += timedelta(minutes=1)
    work(worker)
    assert told(shop) == ["sync begun", "sync failed", "sync begun", "synced"]
    assert "fay" not in capsys.readouterr().err
    assert "fay" not in json.dumps([dict(event.facts) for event in shop.history.events(50)])


def test_an_export_that_came_late_in_the_evening_is_tried_again_after_midnight(night, shop, export, folder, tonight):
    settings = shop.settings.model_copy(update={"sync_at": "23:30"})
    worker = Worker(WorkerOptions(folder, settings, threads=1, clock=night))
    export.rename(export.parent / "late.csv")
    night.now = night.now.replace(hour=23, minute=30, second=5)
    work(worker)
    assert told(shop) == ["sync begun", "sync failed"]
    for _ in range(2):  # each time at the moment that the status gives
        again = state_of(shop, settings).next
        assert again == night.now + timedelta(hours=1)
        night.now = again - timedelta(seconds=1)
        work(worker)
        failed = told(shop)
        night.now = again
        work(worker)
        assert told(shop) == [*failed, "sync begun", "sync failed"]
    write(export, tonight)
    night.now += timedelta(hours=1)
    work(worker)
    assert told(shop)[-1] == "synced"
    assert state_of(shop, settings).next == night.now.replace(hour=23, minute=30, second=0)
    worker.database.close()


def test_a_worker_that_was_killed_at_it_begins_again_and_gives_up_after_three(night, shop, folder, settings, clock):
    class Killed(BaseException):
        pass

    class Dying(Syncer):
        def _synced(self, asked, reporter):
            raise Killed

    night.now += timedelta(minutes=1)
    for _ in range(3):
        dying = Worker(WorkerOptions(folder, settings, threads=1, clock=clock))
        dying.syncer = Dying(**vars(dying.syncer))
        with pytest.raises(Killed):
            dying.step()
        dying.lease.release()
        dying.database.close()
    assert told(shop) == ["sync begun"] * 3
    worker = Worker(WorkerOptions(folder, settings, threads=1, clock=clock))
    work(worker)
    assert told(shop)[-1] == "sync failed"
    night.now += timedelta(hours=1)
    work(worker)
    assert told(shop)[-1] == "synced"
    worker.database.close()


@at_changes
def test_a_worker_killed_at_any_change_is_followed_by_one_that_finishes_the_sync(
    served, settings, copied, swift_path, tonight, moments
):
    settings = settings.model_copy(update={"sync_at": "00:00"})
    undisturbed = copied(served, swift_path / "undisturbed")
    work_off(undisturbed, settings)
    for change in moments(lambda: work_off(copied(served, swift_path / "looked at"), settings)):
        path = copied(served, swift_path / f"shop-{change}")
        died = killed_at(change, lambda path=path: work_off(path, settings))
        work_off(path, settings)
        assert lasting_files(path) == lasting_files(undisturbed)
        with DiskStorage(path).reading() as session:
            assert (session.stamp.version, session.erasures) == (2, 1)
        with DiskStorage(path).queue() as queue:
            assert queue.history.last_event("sync begun", "synced").name == "synced"
            assert queue.history.counts() == {"erased": 1}
        if not died:
            break
    assert change > 10


@pytest.mark.parametrize("role", ["application", None])
def test_applications_may_not_ask_for_it(client, role):
    assert client(role).post("/v1/sync").status_code in (401, 403)


class TestWithoutAnExport:
    @pytest.fixture
    def settings(self):
        return ServiceSettings()

    def test_there_is_nothing_to_ask_for(self, client, shop):
        answer = client("officer").post("/v1/sync")
        assert answer.status_code == 409
        assert "--sync" in answer.text
        assert client("officer").get("/v1/status").json()["sync"] is None
        with pytest.raises(Refused):
            ask_for_sync(shop.queue, shop.settings, "officer 1", shop.clock(), {})


@pytest.mark.parametrize("wrong", ["3:00", "24:00", "03:60", "night"])
def test_a_time_that_is_none_is_refused(wrong):
    with pytest.raises(Exception, match="sync_at"):
        settings_from({"sync_at": wrong})


def test_the_real_service_does_it_while_it_answers(folder, export, clock):
    """With its own clock, so that today's time has come; the worker is killed once."""
    settings = ServiceSettings(sync=str(export), sync_at="00:00", sync_forget_missing=True, lease_seconds=2)
    with running(folder, settings) as service:
        service.wait_until_it_answers()
        service.kill_workers()
        storage = DiskStorage(folder)

        def certified():
            with storage.reading() as session:
                return session.erasures == 1

        service.wait_until(certified)
        assert '"event": "synced"' in service.log
        assert not any(user in service.log for user in ("fay-the-unmistakable", "zoe"))
    assert recommend(storage, ["zoe"])
    assert verify(storage).identical


class TestItems:
    @pytest.fixture
    def items(self, tmp_path):
        file = tmp_path / "items.csv"
        file.write_text("item_id,kind\na,book\nb,film\n")
        return file

    @pytest.fixture
    def settings(self, settings, items):
        return settings.model_copy(update={"sync_items": str(items)})

    def test_attributes_of_items_come_each_night_too(self, night, shop, worker, items):
        night.now += timedelta(minutes=1)
        for kind in ("book", "game"):
            items.write_text(f"item_id,kind\na,{kind}\nb,film\n")
            work(worker)
            night.now += timedelta(days=1)
            with shop.storage.reading() as session:
                assert session.declared_items()["kind"].to_pylist() == [kind, "film"]
        assert told(shop) == ["sync begun", "synced"] * 2

    def test_a_file_of_items_that_is_missing_is_a_sync_that_failed(self, night, shop, worker, items, settings):
        items.unlink()
        night.now += timedelta(minutes=1)
        work(worker)
        assert state_of(shop, settings).outcome == "failed"
        assert "bob" in users_of(shop)


def test_new_items_of_a_declared_catalogue_come_each_night_too(night, swift_path, ratings, tonight, tmp_path):
    folder, catalogue = swift_path / "declared", tmp_path / "catalogue.txt"
    catalogue.write_text("\n".join("abcdef"))
    learn(write(tmp_path / "first.csv", ratings), folder, Config(), Inputs(catalogue=catalogue), Work(1))
    export = write(tmp_path / "export.csv", tonight | {"yan": {"new": 5, "a": 4}})
    catalogue.write_text("\n".join([*"abcdef", "new"]))
    settings = ServiceSettings(sync=str(export), sync_catalogue=str(catalogue), sync_at="03:00")
    worker = Worker(WorkerOptions(folder, settings, threads=1, clock=night))
    night.now += timedelta(minutes=1)
    work(worker)
    worker.database.close()
    with DiskStorage(folder).reading() as session:
        assert "new" in session.state().dataset.items
