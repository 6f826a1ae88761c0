"""A recommender is made equal to an export: what is new is learned, what is missing is forgotten."""

from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pytest

from erasable.chain import Config
from erasable.chain.matching import difference
from erasable.data import read_interactions
from erasable.errors import DataRefused, Refused, Unfinished, WrongUse
from erasable.operations import DiskStorage, Inputs, MemoryStorage, Work, forget, learn, learn_more, recommend, verify
from erasable.operations.declared_items import read_declared
from erasable.operations.do_not_learn import Outside
from erasable.operations.learn import learn_into
from erasable.operations.scan import scan
from erasable.operations.sync import ExportDoubted, SyncRules, sync
from erasable.proof import read_certificate, read_receipt, records_of
from erasable.requests import Request
from kit.asking import submit
from kit.fitting import fitting

FORGET = SyncRules(forget_missing=True)


@pytest.fixture
def export(ratings):
    """What the shop has tonight: bob is gone, ann lacks an item, has a new one and another rating; zoe is new."""
    tonight = {user: dict(items) for user, items in ratings.items() if user != "bob"}
    first, second, *_ = tonight["ann"]
    del tonight["ann"][first]
    tonight["ann"][second] = 1 if tonight["ann"][second] != 1 else 2
    tonight["ann"]["new"] = 5
    tonight["zoe"] = {"a": 5, "new": 4}
    return tonight


def rows_of(storage):
    with storage.reading() as session:
        dataset = session.state().dataset
        return {user: _own(dataset.data_of([user])) for bucket in dataset.buckets for user in bucket.users}


def _own(rows):
    return dict(zip(rows.items.take(rows.item_index), rows.rating.tolist(), strict=True))


def test_afterwards_exactly_the_export_is_held(storage, export, as_table):
    done = sync(storage, as_table(export), rules=FORGET)
    assert rows_of(storage) == export
    assert (done.users_added, done.interactions_added, done.interactions_changed) == (1, 3, 1)
    assert (done.users_missing, done.interactions_missing, len(done.certificates)) == (1, 1, 2)
    assert verify(storage).identical


def test_it_is_one_version_with_one_record_and_those_of_the_certificates(storage, export, as_table):
    sync(storage, as_table(export), rules=FORGET)
    with storage.reading() as session:
        assert session.stamp.version == 2
        told = [(record["what"], record.get("version")) for record in records_of(session.documents().log)]
    assert told == [("learn", 1), ("sync", 2), ("forget", 2)]


@pytest.mark.parametrize(
    ("newcomers_follow", "settings"),
    [
        (True, {"model": "als"}),  # they get rows only, so that nothing is trained again for them
        (False, {"model": "ease"}),
        (False, {"model": "nmf", "grouping": "independent"}),
    ],
)
def test_the_bytes_are_those_of_learning_the_export(ratings, export, as_table, snapshot, newcomers_follow, settings):
    def learned(table):
        storage = MemoryStorage()
        with storage.writing() as session:
            learn_into(session, as_table(table), Config(**fitting(settings)), Inputs(), Work(1))
        return storage

    synced = learned(ratings)
    before = snapshot(synced)
    sync(synced, as_table(export), rules=FORGET)
    old = {user: own for user, own in export.items() if user in ratings or not newcomers_follow}
    another = learned(old)
    if newcomers_follow:
        learn_more(another, as_table({"zoe": export["zoe"]}))
    after, anew = snapshot(synced), snapshot(another)
    assert (after.names, after.arrays, after.groups) == (anew.names, anew.arrays, anew.groups)
    assert after.held_out == anew.held_out
    assert after.arrays != before.arrays


def test_without_leave_to_forget_what_is_missing_stays(storage, ratings, export, as_table):
    done = sync(storage, as_table(export))
    assert rows_of(storage) == {
        user: {**ratings.get(user, {}), **export.get(user, {})} for user in {**ratings, **export}
    }
    assert (done.users_missing, done.interactions_missing, done.certificates) == (1, 1, ())
    assert verify(storage).identical


def test_who_was_missing_may_come_back(storage, ratings, export, as_table):
    sync(storage, as_table(export), rules=FORGET)
    done = sync(storage, as_table(ratings), rules=FORGET)
    assert rows_of(storage) == ratings
    assert (done.users_added, done.suppressed) == (1, 0)


def test_who_has_asked_stays_out(storage, ratings, as_table):
    forget(storage, [Request("bob")])
    done = sync(storage, as_table(ratings), rules=FORGET)
    assert "bob" not in rows_of(storage)
    assert (done.left_out.users, done.users_added, done.users_missing) == (1, 0, 0)


def test_nobody_is_readmitted_and_the_remedy_works(storage, ratings, as_table):
    forget(storage, [Request("bob")])
    with pytest.raises(WrongUse, match=r"leave out readmit, or learn those who come back first, with learn_more"):
        sync(storage, as_table(ratings), Inputs(readmit=("bob",)), FORGET)
    assert "bob" not in rows_of(storage)
    assert learn_more(storage, as_table({"bob": ratings["bob"]}), Inputs(readmit=("bob",))).readmitted == 1
    assert sync(storage, as_table(ratings), rules=FORGET).left_out.users == 0
    assert rows_of(storage) == ratings


def test_groups_are_not_given_again(storage, ratings, as_table, tmp_path):
    with pytest.raises(WrongUse, match="keep their group"):
        sync(storage, as_table(ratings), Inputs(groups_from=tmp_path))


def test_who_has_asked_and_waits_is_left_to_the_own_request(storage, export, as_table):
    with storage.queue() as queue:  # through the service: the next batch carries it out
        queue.submit(Request("bob"), True, "application shop", datetime.now(UTC))
    done = sync(storage, as_table(export), rules=FORGET)
    assert "bob" in rows_of(storage)
    assert (done.asked, done.users_missing) == (1, 0)


def test_the_same_export_again_changes_nothing(storage, ratings, as_table):
    done = sync(storage, as_table(ratings), rules=FORGET)
    assert (done.users_added, done.interactions_added, done.interactions_changed, done.users_missing) == (0, 0, 0, 0)
    with storage.reading() as session:
        assert session.stamp.version == 1


def test_a_dry_run_says_what_would_happen_and_changes_nothing(storage, ratings, export, as_table):
    done = sync(storage, as_table(export), rules=SyncRules(forget_missing=True, dry_run=True))
    assert (done.users_missing, done.interactions_added, done.dry_run) == (1, 3, True)
    assert rows_of(storage) == ratings


def test_an_export_that_looks_cut_off_is_refused_whatever_is_said(storage, ratings, as_table):
    part = as_table({"ann": ratings["ann"]})
    with pytest.raises(Refused, match="rows"):
        sync(storage, part, rules=SyncRules(forget_missing=True, yes=True))
    with pytest.raises(Refused, match="instead of 99"):
        sync(storage, part, rules=SyncRules(forget_missing=True, expect_rows=99))
    assert rows_of(storage) == ratings
    sync(storage, part, rules=SyncRules(forget_missing=True, expect_rows=len(ratings["ann"])))
    assert rows_of(storage) == {"ann": ratings["ann"]}


def test_an_empty_export_is_refused(storage, table):
    with pytest.raises(DataRefused):
        sync(storage, table.slice(0, 0), rules=SyncRules(forget_missing=True, yes=True, expect_rows=0))


def test_many_people_need_a_yes(as_table):
    many = {f"user-{number}": {"a": 1, f"item-{number % 7}": 2, "b": 3} for number in range(40)}
    storage = MemoryStorage()
    with storage.writing() as session:
        learn_into(session, as_table(many), Config(**fitting({"model": "als"})), Inputs(), Work(1))
    fewer = as_table(dict(list(many.items())[:28]))
    with pytest.raises(Refused, match="12 of 40 people"):
        sync(storage, fewer, rules=FORGET)
    assert len(sync(storage, fewer, rules=SyncRules(forget_missing=True, yes=True)).certificates) == 12
    assert len(rows_of(storage)) == 28


def test_an_interrupt_before_the_certificates_leaves_them_to_the_next_and_nobody_on_the_list(
    tmp_path, table, ratings, export, as_table, config, monkeypatch
):
    learn(table, tmp_path / "shop", config)
    storage = DiskStorage(tmp_path / "shop")

    def interrupted(*args, **options):
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr("erasable.operations.sync.erase", interrupted)
        with pytest.raises(Unfinished, match="finish with"):
            sync(storage, as_table(export), rules=FORGET)
    with pytest.raises(Refused, match="not finished"):
        learn_more(storage, as_table(ratings))
    assert sync(storage, as_table(export), rules=SyncRules(dry_run=True)).users_added == 0
    assert sync(storage, as_table(ratings), rules=FORGET).users_added == 1  # bob is on no list
    with storage.reading() as session:
        assert session.erasures == 4  # two of the first, and now zoe and an item of ann
    assert rows_of(storage) == ratings
    assert recommend(storage, ["bob"])


def test_what_a_killed_forget_was_asked_for_is_done_first(tmp_path, table, ratings, as_table, config):
    learn(table, tmp_path / "shop", config)
    storage = DiskStorage(tmp_path / "shop")
    submit(storage, Request("bob"))
    done = sync(storage, as_table(ratings), rules=FORGET)
    assert "bob" not in rows_of(storage)
    assert done.left_out.users == 1


def test_a_dry_run_leaves_every_file_as_it_is(tmp_path, table, export, as_table, config):
    learn(table, tmp_path / "shop", config)
    before = contents(tmp_path)
    rules = SyncRules(forget_missing=True, dry_run=True)
    assert sync(DiskStorage(tmp_path / "shop"), as_table(export), rules=rules).users_missing == 1
    assert contents(tmp_path) == before


def contents(folder):
    return {str(file): file.read_bytes() for file in folder.rglob("*") if file.is_file()}


def test_an_export_of_which_the_list_leaves_nothing_is_refused(storage, ratings, as_table):
    forget(storage, [Request("bob")])
    alone = as_table({"bob": ratings["bob"]})
    with pytest.raises(Refused, match="nothing is left of the export"):
        sync(storage, alone, rules=SyncRules(forget_missing=True, yes=True, expect_rows=len(ratings["bob"])))
    assert len(rows_of(storage)) == len(ratings) - 1


def test_rows_that_say_one_thing_twice_do_not_make_half_an_export_whole(storage, ratings, as_table):
    half = as_table({"ann": ratings["ann"]})
    with pytest.raises(ExportDoubted, match="are held") as refused:
        sync(storage, pa.concat_tables([half] * 20), rules=SyncRules(forget_missing=True, yes=True))
    assert (refused.value.rows, refused.value.needs_yes) == (20 * len(ratings["ann"]), False)


def test_everyone_who_is_forgotten_gets_a_receipt_and_leaves_nothing(tmp_path, table, export, as_table, config):
    learn(table, tmp_path / "shop", config)
    (tmp_path / "receipts").mkdir()
    source = tmp_path / "before.csv"
    pa.csv.write_csv(table, source)
    done = sync(
        DiskStorage(tmp_path / "shop"), as_table(export), rules=FORGET, outside=Outside(receipts=tmp_path / "receipts")
    )
    receipts = [read_receipt(file.read_bytes()) for file in (tmp_path / "receipts").iterdir()]
    certificates = {Path(place).stem: read_certificate(Path(place).read_bytes()) for place in done.certificates}
    assert {(one.user_id, one.items) for one in receipts} == {("bob", None), ("ann", ("a",))}
    assert all(one.opens(certificates[one.request_id]) for one in receipts)
    assert not scan(tmp_path / "shop", "bob", str(source)).residues
    assert scan(tmp_path / "shop", "ann", str(source)).residues


def test_the_difference_is_that_of_plain_sets(storage, ratings, as_table):
    """Compared with sets of rows, on drawn tables."""
    random = np.random.default_rng(3)
    with storage.reading() as session:
        held = session.state().dataset
        for _ in range(30):
            drawn = {
                user: {item: int(random.integers(1, 6)) for item in "abcdefgh" if random.random() < 0.4}
                for user in [*ratings, "yan", "zoe"]
            }
            drawn = {user: items for user, items in drawn.items() if items and random.random() < 0.8}
            if len(drawn) < 2:
                continue
            found = difference(held, read_interactions(as_table(drawn)).interactions)
            pairs = {(user, item): value for user, own in drawn.items() for item, value in own.items()}
            old = {(user, item): value for user, own in ratings.items() for item, value in own.items()}
            assert found.missing == ratings.keys() - drawn.keys()
            gone = {pair for pair in old.keys() - pairs.keys() if pair[0] in drawn}
            assert {(user, item) for user, items in found.vanished.items() for item in items} == gone
            assert found.interactions_added == len(pairs.keys() - old.keys())
            changed = {pair for pair in pairs.keys() & old.keys() if pairs[pair] != old[pair]}
            assert found.interactions_changed == len(changed)
            assert found.learned == {user for user, _ in (pairs.keys() - old.keys()) | changed}
            assert found.users_added == len(drawn.keys() - ratings.keys())


def test_times_stay_as_they_are_if_an_export_has_none(ratings, export, as_table):
    storage, table = MemoryStorage(), as_table(ratings)
    with storage.writing() as session:
        learn_into(
            session,
            table.append_column("timestamp", pa.array(range(100, 100 + len(table)))),
            Config(**fitting({"model": "ease"})),
            Inputs(),
            Work(1),
        )
    before = times_of(storage, "ann")
    sync(storage, as_table(export), rules=FORGET)  # ann lacks a, has another rating of b, and a new item
    after = times_of(storage, "ann")
    assert after.keys() == export["ann"].keys()
    assert {item: after[item] for item in before if item in after} == {
        item: time for item, time in before.items() if item != "a"
    }
    assert np.isnan(after["new"])


def times_of(storage, user):
    with storage.reading() as session:
        rows = session.state().dataset.data_of([user])
        return dict(zip(rows.items.take(rows.item_index), rows.time.tolist(), strict=True))


def test_new_items_of_a_declared_catalogue_come_with_the_new_catalogue(tmp_path, ratings, as_table, config):
    declared = tmp_path / "items.txt"
    declared.write_text("".join(f"{item}\n" for item in sorted({item for own in ratings.values() for item in own})))
    learn(as_table(ratings), tmp_path / "shop", config, Inputs(catalogue=declared))
    storage = DiskStorage(tmp_path / "shop")
    tonight = {**ratings, "zoe": {"a": 5, "new": 4}}
    with pytest.raises(DataRefused, match="'new' is not in the catalogue"):
        sync(storage, as_table(tonight), rules=FORGET)
    declared.write_text(declared.read_text() + "new\nnewest\n")
    sync(storage, as_table(tonight), Inputs(catalogue=declared), FORGET)
    assert rows_of(storage) == tonight
    declared.write_text(declared.read_text() + "last\n")
    assert sync(storage, as_table(tonight), Inputs(catalogue=declared), FORGET).users_added == 0  # that alone is new
    with storage.reading() as session:
        assert {"new", "newest", "last"} < {*session.state().dataset.items}
    same = Inputs(catalogue=tmp_path / "shop", groups_from=tmp_path / "shop")
    learn(as_table(tonight), tmp_path / "anew", config, same)
    assert {file.name for file in (tmp_path / "shop").rglob("*.safetensors")} == {
        file.name for file in (tmp_path / "anew").rglob("*.safetensors")
    }


@pytest.mark.parametrize("learning", [sync, learn_more])
def test_who_vanished_comes_back_only_after_the_certificate(tmp_path, ratings, as_table, config, learning):
    """While they are held again, every search would find them, and the certificate could never be issued."""
    people = {("fay-the-unmistakable" if user == "bob" else user): own for user, own in ratings.items()}
    learn(as_table(people), tmp_path / "shop", config)
    storage, note = DiskStorage(tmp_path / "shop"), tmp_path / "shop" / "notes.txt"
    note.write_text("ask fay-the-unmistakable again\n")
    gone = {user: dict(own) for user, own in people.items() if user != "fay-the-unmistakable"}
    assert sync(storage, as_table(gone), rules=FORGET).set_aside
    back = {**people, "zoe": {"a": 5, "b": 4}}
    done = learning(storage, as_table(back))
    assert done.users_added == 1
    assert "people who are forgotten and not certified yet: finish with" in done.notes[0]
    assert rows_of(storage) == {**gone, "zoe": back["zoe"]}
    note.unlink()
    assert len(forget(storage, []).certificates) == 1
    assert sync(storage, as_table(back), rules=FORGET).users_added == 1
    assert rows_of(storage) == back
    assert recommend(storage, ["fay-the-unmistakable"])


def test_an_item_that_is_declared_in_the_night_that_its_last_owner_goes_is_no_trace_of_them(
    tmp_path, ratings, as_table, config
):
    people = {**ratings, "fay-the-unmistakable": {"a": 5, "the-rarest-item": 4}}
    learn(as_table(people), tmp_path / "shop", config)
    storage, table = DiskStorage(tmp_path / "shop"), pa.table({"item_id": ["a", "the-rarest-item"], "price": [1, 2]})
    done = sync(storage, as_table(ratings), Inputs(items=read_declared(table)), FORGET)
    assert (len(done.certificates), done.set_aside) == (1, ())
    assert verify(storage).identical


def test_what_one_night_can_not_certify_the_next_says_again(tmp_path, ratings, as_table, config):
    people = {**ratings, "fay-the-unmistakable": {"a": 5, "b": 4}}
    learn(as_table(people), tmp_path / "shop", config)
    storage, note = DiskStorage(tmp_path / "shop"), tmp_path / "shop" / "notes.txt"
    note.write_text("ask fay-the-unmistakable again\n")
    first = sync(storage, as_table(ratings), rules=FORGET).set_aside
    assert sync(storage, as_table(ratings), rules=FORGET).set_aside == first != ()
    note.unlink()
    assert sync(storage, as_table(ratings), rules=FORGET).set_aside == ()
