"""Scan: somebody who is held is found, somebody who was forgotten is not, whatever they are called."""

import shutil
from pathlib import Path

import pyarrow as pa
import pytest

from erasable.chain import Config
from erasable.data import ColumnNames
from erasable.errors import UnknownUser, WorkspaceError
from erasable.operations import DiskStorage, Work, forget, learn
from erasable.operations.scan import scan
from erasable.requests import Request
from kit.choosing import some
from kit.copies import copy_of

AWKWARD = [
    *("7", "42", "0.1", "nmf", "origin", "user_id", "true", "null", "data", "customer-1", "customer-12", "user:1"),
    *("zoë", "🦊", "ann smith", "10000001", "978300763", "training", "someone@example.org", "mary.someone@example.org"),
]
ITEMS = ("7", "42", "nmf", "10000001", "user_id")


@pytest.fixture
def shop(learned, tmp_path) -> Path:
    return copy_of(learned, tmp_path / "shop")


@pytest.fixture(scope="module")
def awkward(tmp_path_factory) -> Path:
    """A workspace of people with awkward names, with items that are called like some of them; to be copied."""
    rows = [
        (user, item, 1 + (place + step) % 5) for place, user in enumerate(AWKWARD) for step, item in enumerate(ITEMS)
    ]
    users, items, ratings = zip(*rows, strict=True)
    times = [978_300_760.0 + number for number in range(len(rows))]
    table = pa.table({"user_id": users, "item_id": items, "rating": ratings, "timestamp": times})
    folder = tmp_path_factory.mktemp("awkward") / "shop"
    learn(table, folder, Config(model="nmf", groups=3, epochs=2, holdout=0.2))
    return folder


def kinds_of(found) -> set[tuple[str, str]]:
    return {(residue.file.split("/")[0], residue.what) for residue in found.residues}


def test_somebody_who_is_held_is_found_by_id_and_by_row(shop):
    found = scan(shop, "eve")
    assert kinds_of(found) == {("data", "id"), ("checkpoints", "personal row")}
    assert not found.clean
    assert found.files == sum(path.is_file() for path in shop.rglob("*"))


def test_somebody_who_was_forgotten_is_not_found(shop):
    forget(DiskStorage(shop), [Request("eve")])
    found = scan(shop, "eve")
    assert found.residues == ()
    assert not scan(shop, "ann").clean


@pytest.mark.full
@pytest.mark.parametrize("user", some(AWKWARD, 4))
def test_whatever_they_are_called(awkward, tmp_path, user):
    shop = copy_of(awkward, tmp_path / "shop")
    assert {what for _, what in kinds_of(scan(shop, user))} == {"id", "personal row"}
    forget(DiskStorage(shop), [Request(user)])
    assert scan(shop, user).residues == ()
    for other in set(AWKWARD) - {user}:
        assert not scan(shop, other).clean


@pytest.mark.full
def test_many_of_them_may_be_forgotten_at_once(awkward, tmp_path):
    shop = copy_of(awkward, tmp_path / "shop")
    for users in (AWKWARD[:-8], AWKWARD[-8:-4]):
        forget(DiskStorage(shop), [Request(user) for user in users], yes=True)
    for user in AWKWARD[:-4]:
        assert scan(shop, user).residues == ()


def test_rows_are_searched_as_values_while_they_are_known(shop, tmp_path):
    rows = "".join(f"{item},{rating}\n" for item, rating in zip("abcdef", (1, 2, 3, 4, 5, 1), strict=True))
    (shop / "export.csv").write_text("item,rating\n" + rows)
    assert ("export.csv", "interactions") in kinds_of(scan(shop, "eve"))
    (shop / "export.csv").unlink()
    forget(DiskStorage(shop), [Request("eve")])
    (shop / "export.csv").write_text("item,rating\n" + rows)
    # Nothing is known of them any more but their id; a table that still has them helps.
    assert scan(shop, "eve").clean
    (tmp_path / "all.csv").write_text("who,what,stars\nann,a,1\n" + "".join(f"eve,{row}\n" for row in rows.split()))
    columns = ColumnNames(user="who", item="what", rating="stars")
    assert kinds_of(scan(shop, "eve", tmp_path / "all.csv", columns)) == {("export.csv", "interactions")}


def test_a_table_without_the_person_is_refused(shop, tmp_path):
    (tmp_path / "all.csv").write_text("user_id,item_id\nann,a\nbob,a\n")
    with pytest.raises(UnknownUser, match=r"all.csv holds nothing about the user 'eve': check the id"):
        scan(shop, "eve", tmp_path / "all.csv")


def test_what_a_killed_command_left_is_searched_and_stays(shop):
    (bucket,) = (shop / "data").glob("bucket-*")
    left = shop / "data" / "bucket-000-0123456789ab.parquet"
    shutil.copy(bucket, left)
    forget_later = DiskStorage(shop)
    users = [user for user in ("ann", "bob", "cat", "dan", "eve", "fay") if _is_in(scan(shop, user), left.name)]
    assert users
    assert left.exists()
    forget(forget_later, [Request(users[0])])
    assert not left.exists()
    assert scan(shop, users[0]).clean


def _is_in(found, name: str) -> bool:
    return any(residue.file.endswith(name) for residue in found.residues)


def test_it_is_told_what_goes_on(shop, reporter):
    scan(shop, "eve", work=Work(1, reporter))
    files = [path for path in shop.rglob("*") if path.is_file()]
    (step,) = reporter.work
    assert step == ("scanning", sum(path.stat().st_size for path in files) + len(files))
    assert reporter.done == step[1]


def test_a_folder_that_is_no_workspace_is_refused(tmp_path):
    with pytest.raises(WorkspaceError, match="is not a workspace"):
        scan(tmp_path, "eve")
