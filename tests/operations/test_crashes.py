"""Learning, forgetting, upgrading, stopped at every disk change, or by a full disk: nothing is lost or half done."""

import errno
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest

from erasable.errors import DiskFull
from erasable.operations import DiskStorage, Work, status, upgrade, verify
from erasable.operations.sync import SyncRules, sync
from erasable.requests import database
from erasable.requests.request import STATES
from erasable.workspace import files
from kit import elsewhere, small_shop
from kit.in_buckets import SIZES, in_buckets, in_buckets_of
from kit.killing import at_changes, killed_at


@pytest.fixture(scope="module")
def source():
    return small_shop.table()


@pytest.fixture(scope="module")
def people(request):
    """How many people lie in a bucket; all of them unless a test says so."""
    with in_buckets_of(getattr(request, "param", SIZES["one bucket"])):
        yield


@pytest.fixture(scope="module")
def shop(people, source, tmp_path_factory) -> Path:
    """A workspace that has learned; to be copied."""
    return small_shop.learn_shop(tmp_path_factory.mktemp("crashes") / "shop", source)


@pytest.fixture(scope="module")
def forgotten(shop, copied, tmp_path_factory) -> Path:
    """What forgetting someone of the second group leaves, undisturbed."""
    path = copied(shop, tmp_path_factory.mktemp("crashes") / "forgotten")
    small_shop.forget_in(path, small_shop.member_of(shop, 1))
    return path


def whole(path: Path) -> dict:
    """Return the status of a workspace of which every file, record and signature is found right."""
    with DiskStorage(path).reading() as session:
        assert session.damaged() == []
    assert small_shop.unnamed_files(path) == []
    return status(DiskStorage(path))


def states_in(path: Path) -> list[str]:
    """Return the states of all requests in the queue."""
    with DiskStorage(path).queue() as queue:
        return [one.state for one in queue.history.in_states(STATES)]


def lasting_contents(path: Path) -> list[bytes]:
    """Return what lasting files hold, whatever they are called: a checkpoint that replaces another has another name."""
    return sorted(small_shop.lasting_files(path).values())


@pytest.mark.full
@at_changes
@in_buckets("one bucket")
def test_a_learn_killed_at_any_change_leaves_nothing_or_everything(shop, source, swift_path, moments):
    for change in moments(lambda: small_shop.learn_shop(swift_path / "undisturbed", source)):
        path = swift_path / f"shop-{change}"
        died = killed_at(change, lambda path=path: small_shop.learn_shop(path, source))
        if not (path / "manifest.json").exists():
            small_shop.learn_shop(path, source)
        assert whole(path)["records"] == 1
        assert small_shop.lasting_files(path) == small_shop.lasting_files(shop)
        if not died:
            break
    assert change > 40


@at_changes
@in_buckets("many buckets")
def test_a_forget_killed_at_any_change_is_finished_by_the_next_one(shop, forgotten, copied, swift_path, moments):
    user, met = small_shop.member_of(shop, 1), []
    for change in moments(lambda: small_shop.forget_in(copied(shop, swift_path / "undisturbed"), user)):
        path = copied(shop, swift_path / f"shop-{change}")
        died = killed_at(change, lambda path=path: small_shop.forget_in(path, user))
        found = whole(path)
        met.append((found["version"], found["pending"], found["erasures"]))
        # Once accepted, nobody needs to ask again.
        again = () if found["pending"] or found["erasures"] else (user,)
        done = small_shop.forget_in(path, *again)
        assert len(done.certificates) == (not found["erasures"])
        assert states_in(path) == ["erased"]
        assert list(path.glob("*.new*")) == []
        after = whole(path)
        assert (after["version"], after["pending"], after["erasures"], after["records"]) == (2, 0, 1, 2)
        assert small_shop.lasting_files(path) == small_shop.lasting_files(forgotten)
        if not died:
            break
    before, submitted, erased, certified = (1, 0, 0), (1, 1, 0), (2, 1, 0), (2, 0, 1)
    assert list(dict.fromkeys(met)) == [before, submitted, erased, certified]


@at_changes
@in_buckets("one bucket")
def test_an_upgrade_killed_at_any_change_leaves_the_state_before_or_after(shop, copied, swift_path, moments):
    moved = copied(shop, swift_path / "moved")
    elsewhere.spoiled(moved, 1)
    elsewhere.moved(moved, numpy="0.0")
    expected = {1: lasting_contents(moved), 2: lasting_contents(shop)}
    assert expected[1] != expected[2]
    met = []
    for change in moments(lambda: upgrade(DiskStorage(copied(moved, swift_path / "undisturbed")), Work(1))):
        path = copied(moved, swift_path / f"shop-{change}")
        died = killed_at(change, lambda path=path: upgrade(DiskStorage(path), Work(1)))
        found = whole(path)
        met.append((found["version"], found["records"]))
        assert lasting_contents(path) == expected[found["version"]]
        assert upgrade(DiskStorage(path), Work(1)).changed == (found["version"] == 1)
        assert verify(DiskStorage(path)).identical is True
        if not died:
            break
    assert list(dict.fromkeys(met)) == [(1, 1), (2, 2)]


def test_what_was_finished_after_a_kill_can_be_verified(shop, copied, swift_path):
    user = small_shop.member_of(shop, 1)
    path = copied(shop, swift_path / "shop")
    assert killed_at(30, lambda: small_shop.forget_in(path, user))
    small_shop.forget_in(path)
    assert verify(DiskStorage(path)).identical is True


@pytest.mark.full
@at_changes
@in_buckets("one bucket")
@pytest.mark.parametrize("what", ["learn", "forget"])
def test_on_a_disk_that_is_full_at_any_change_the_old_state_stays(
    what, shop, source, forgotten, copied, swift_path, monkeypatch, moments
):
    user = small_shop.member_of(shop, 1)

    def prepared(path: Path) -> Callable[[], object]:
        if what == "learn":
            return lambda: small_shop.learn_shop(path, source)
        copied(shop, path)
        return lambda: small_shop.forget_in(path, user)

    for change in moments(prepared(swift_path / "undisturbed")):
        path = swift_path / f"shop-{change}"
        action = prepared(path)
        hook = full_at(change)
        monkeypatch.setattr(files, "before_change", hook)
        monkeypatch.setattr(database, "before_commit", hook)
        full = refused(action)
        monkeypatch.undo()
        if full and what == "learn":
            assert not (path / "manifest.json").exists() or whole(path)
        if full and what == "forget":
            whole(path)
            small_shop.forget_in(path, *(() if user_is_gone(path, user) else (user,)))
            assert small_shop.lasting_files(path) == small_shop.lasting_files(forgotten)
        if not full:
            break
    assert not full
    assert change > 20


def full_at(change: int):
    """Return a hook that lets the disk be full at each change that takes room, from the n-th change on."""
    left = [change]

    def hook(kind: str = "commit", path: Path | None = None) -> None:
        left[0] -= 1
        if left[0] <= 0 and kind in ("make folder", "create", "write", "flush"):
            raise OSError(errno.ENOSPC, "No space left on device")

    return hook


def refused(action) -> bool:
    try:
        action()
    except DiskFull as error:
        said = str(error)
    else:
        return False
    assert "are needed and" in said
    assert "free some space" in said
    return True


def user_is_gone(path: Path, user: str) -> bool:
    with DiskStorage(path).reading() as session:
        return not any(user in group.users for group in session.state().dataset.groups)


@pytest.fixture(scope="module")
def export(shop, source):
    """The next export: someone of the second group is gone, another one lacks a row, someone is new."""
    gone, other = small_shop.member_of(shop, 1), small_shop.member_of(shop, 0)
    rows = [row for row in source.to_pylist() if row["user_id"] != gone]
    rows.remove(next(row for row in rows if row["user_id"] == other))
    return pa.Table.from_pylist([*rows, {"user_id": "zoe", "item_id": rows[0]["item_id"], "rating": 4.0}])


@at_changes
@in_buckets("many buckets")
def test_a_sync_killed_at_any_change_is_finished_by_the_next_one(shop, export, copied, swift_path, moments):
    def synced(path):
        return sync(DiskStorage(path), export, rules=SyncRules(forget_missing=True), work=Work(1))

    undisturbed, met = copied(shop, swift_path / "undisturbed"), []
    synced(undisturbed)
    for change in moments(lambda: synced(copied(shop, swift_path / "another"))):
        path = copied(shop, swift_path / f"shop-{change}")
        died = killed_at(change, lambda path=path: synced(path))
        found = whole(path)
        met.append((found["version"], found["erasures"]))
        synced(path)
        after = whole(path)
        assert (after["version"], after["erasures"], after["pending"]) == (2, 2, 0)
        assert lasting_contents(path) == lasting_contents(undisturbed)
        assert verify(DiskStorage(path)).identical
        if not died:
            break
    assert {*met} == {(1, 0), (2, 0), (2, 2)}
