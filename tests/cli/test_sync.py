"""`erasable sync` and `learn --again` as cron runs them: what they print, how they end, and remedies that work."""

import csv

import pytest

from erasable.operations import DiskStorage
from erasable.proof import records_of


@pytest.fixture
def write(tmp_path):
    """Write ratings as a file, and return its path."""

    def call(ratings, name="export.csv"):
        path = tmp_path / name
        with path.open("w", newline="") as file:
            out = csv.writer(file)
            out.writerow(["user_id", "item_id", "rating"])
            out.writerows((user, item, rating) for user, own in ratings.items() for item, rating in own.items())
        return path

    return call


@pytest.fixture
def tonight(facts):
    """Bob is gone, ann lacks an item and has another rating, zoe is new."""
    ratings = facts.ratings
    del ratings["bob"], ratings["ann"]["a"]
    return {**ratings, "ann": {**ratings["ann"], "b": 1}, "zoe": {"a": 5, "e": 4}}


def users_of(shop):
    with DiskStorage(shop).reading() as session:
        return {user for bucket in session.state().dataset.buckets for user in bucket.users}


def test_it_says_what_it_learned_and_forgot(run, shop, write, tonight):
    done = run("sync", write(tonight), "--into", shop, "--forget-missing")
    assert done.code == 0
    assert "learned 1 new user, 2 new interactions and 1 changed interaction: trained " in done.out
    assert "forgot 1 person and 1 interaction of others: 2 certificates" in done.out
    assert f"{shop} now knows 8 users" in done.out
    assert users_of(shop) == {*tonight}
    assert run("verify", shop, "--quiet").code == 0
    again = run("sync", write(tonight), "--into", shop, "--forget-missing")
    assert (again.code, again.out.splitlines()[0]) == (0, "nothing is new or changed in the export")


@pytest.mark.parametrize(
    ("model", "dry_run", "said"),
    [
        ("ease", (), "nothing is new or changed in the export; trained the model again ("),
        ("ease", ("--dry-run",), "nothing is new or changed in the export; would have trained the model again\n"),
        ("als", (), "nothing is new or changed in the export\n"),
    ],
    ids=["trained", "dry run", "only a row went"],
)
def test_what_only_forgets_learns_nothing_and_says_so(run, tmp_path, write, facts, model, dry_run, said):
    ratings = facts.ratings
    anchors = ("--anchors", 0.01) if model == "als" else ()
    assert run("learn", write(ratings), "--into", tmp_path / "shop", "--model", model, *anchors).code == 0
    del ratings["bob"]
    done = run("sync", write(ratings), "--into", tmp_path / "shop", "--forget-missing", *dry_run)
    assert done.code == 0
    assert done.out.startswith(said)
    assert "learned 0" not in done.out
    assert ("would forget 1 person" if dry_run else "forgot 1 person: 1 certificate") in done.out


def test_a_new_item_is_refused_where_items_were_declared_and_the_remedy_works(run, tmp_path, write, facts):
    items, shop = tmp_path / "items.txt", tmp_path / "declared"
    items.write_text("\n".join(sorted({item for own in facts.ratings.values() for item in own})))
    assert run("learn", write(facts.ratings), "--into", shop, "--catalogue", items).code == 0
    export = write({**facts.ratings, "zoe": {"a": 5, "new": 4}})
    refused = run("sync", export, "--into", shop)
    assert refused.code == 1
    assert "item 'new' is not in the catalogue: add it there and give --catalogue" in refused.err
    items.write_text(items.read_text() + "\nnew\n")
    assert run("sync", export, "--into", shop, "--catalogue", items).code == 0
    assert "zoe" in users_of(shop)


def test_what_is_missing_stays_unless_it_is_to_be_forgotten(run, shop, write, tonight):
    done = run("sync", write(tonight), "--into", shop)
    assert (
        "lacks 1 person and 1 interaction of others: nothing of that is forgotten without --forget-missing" in done.out
    )
    assert "bob" in users_of(shop)


def test_a_dry_run_says_what_would_happen(run, shop, write, tonight):
    done = run("sync", write(tonight), "--into", shop, "--forget-missing", "--dry-run")
    assert done.code == 0
    learned = "would have learned 1 new user, 2 new interactions and 1 changed interaction: would have trained"
    (line,) = [line for line in done.out.splitlines() if line.startswith(learned)]
    assert line.endswith(" again")  # without the time of the dry run itself
    assert "would forget 1 person and 1 interaction of others\n" in done.out
    assert "bob" in users_of(shop)


def test_json_is_one_object_and_quiet_says_nothing(run, shop, write, tonight):
    found = run("sync", write(tonight), "--into", shop, "--forget-missing", "--json")
    assert (found.json["users_added"], found.json["users_missing"], len(found.json["certificates"])) == (1, 1, 2)
    assert found.err == ""
    quiet = run("sync", write({**tonight, "zoe": {"a": 1}}), "--into", shop, "--forget-missing", "--quiet")
    assert (quiet.code, quiet.out, quiet.err) == (0, "", "")


def test_receipts_are_written_where_they_are_wanted(run, shop, write, tonight, tmp_path):
    done = run("sync", write(tonight), "--into", shop, "--forget-missing", "--receipts", tmp_path / "receipts")
    assert f"receipts: {tmp_path / 'receipts'}" in done.out
    for receipt in (tmp_path / "receipts").iterdir():
        checked = run("verify", shop, "--certificate", shop / "certificates" / receipt.name, "--receipt", receipt)
        assert checked.code == 0, checked.err
    assert len([*(tmp_path / "receipts").iterdir()]) == 2


def test_something_left_is_said_and_the_remedy_works(run, shop, write, facts):
    ratings = facts.ratings
    del ratings[facts.long]
    (shop / "notes.txt").write_text(f"ask {facts.long} again\n")
    done = run("sync", write(ratings), "--into", shop, "--forget-missing")
    assert done.code == 1
    assert "forgot 1 person: 0 certificates" in done.out
    assert "not certified" in done.err
    assert f"erasable forget {shop} --resume" in done.err
    (shop / "notes.txt").unlink()
    assert run("forget", shop, "--resume").code == 0
    again = run("sync", write(facts.ratings), "--into", shop, "--forget-missing")
    assert "learned 1 new user" in again.out  # who vanished is on no list


def test_half_an_export_is_refused_whatever_is_said_and_the_remedy_works(run, shop, write, facts):
    half = write({"ann": facts.ratings["ann"], "cat": facts.ratings["cat"]})
    refused = run("sync", half, "--into", shop, "--forget-missing", "--yes")
    assert refused.code == 1
    assert "6 interactions in 6 rows, and 27 are held: if it is whole, give --expect-rows 6" in refused.err
    assert users_of(shop) == {*facts.ratings}
    other = run("sync", half, "--into", shop, "--forget-missing", "--expect-rows", 7)
    assert (other.code, "6 rows instead of 7" in other.err) == (1, True)
    assert run("sync", half, "--into", shop, "--forget-missing", "--expect-rows", 6).code == 0
    assert users_of(shop) == {"ann", "cat"}


def test_many_people_need_a_yes(run, tmp_path, write):
    many = {f"person-{number:02d}": {"a": 1 + number % 5, f"b{number % 7}": 3} for number in range(40)}
    assert run("learn", write(many, "all.csv"), "--into", tmp_path / "many").code == 0
    fewer = write(dict([*many.items()][:28]))
    words = ("sync", fewer, "--into", tmp_path / "many", "--forget-missing")
    assert "would forget 12 people, data of 12 of 40 people: so many need --yes" in run(*words, "--dry-run").out
    refused = run(*words)
    assert refused.code == 1
    assert "lacks data of 12 of 40 people: if they are to be forgotten, give --yes; nothing was done" in refused.err
    done = run(*words, "--yes", "--json")
    assert (done.code, len(done.json["certificates"])) == (0, 12)


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("", "is empty"),
        ("user_id,item_id,rating\n", "holds no interaction"),
        ("kunde,artikel,note\nann,a,5\n", "--user-column"),
        ("user_id,item_id\nann,a\n", "--rating-column"),
    ],
)
def test_what_is_no_export_is_refused_even_with_yes(run, shop, tmp_path, facts, content, said):
    (tmp_path / "wrong.csv").write_text(content)
    refused = run("sync", tmp_path / "wrong.csv", "--into", shop, "--forget-missing", "--yes", "--expect-rows", 1)
    assert refused.code == 1
    assert said in refused.err
    assert users_of(shop) == {*facts.ratings}


def test_who_asked_stays_out_of_every_later_export(run, shop, write, facts):
    assert run("forget", shop, "--user", "bob").code == 0
    done = run("sync", write(facts.ratings), "--into", shop, "--forget-missing")
    assert "left out what is on the do-not-learn list (people: 1, single interactions: 0)" in done.out
    assert "bob" not in users_of(shop)


def test_learning_again_takes_newcomers_into_the_groups(run, shop, write, tonight):
    assert run("sync", write(tonight), "--into", shop, "--forget-missing").code == 0
    done = run("learn", "--again", "--into", shop)
    assert done.code == 0
    assert done.out.startswith("learned anew 8 users, 6 items")
    assert f"certificates, log and requests of {shop} stay as they were" in done.out
    with DiskStorage(shop).reading() as session:
        assert session.state().dataset.group_count == 3  # zoe had one of her own
        assert session.erasures == 2
        told = [record["what"] for record in records_of(session.documents().records())]
    assert told == ["learn", "sync", "forget", "learn again"]
    assert run("verify", shop, "--quiet").code == 0


def test_learning_again_from_more_data_and_with_other_settings(run, shop, write):
    done = run("learn", write({"zoe": {"a": 5, "e": 4}}), "--again", "--into", shop, "--groups", 2, "--json")
    assert (done.code, done.json["users_added"], done.json["groups"]) == (0, 1, 2)
    quiet = run("learn", "--again", "--into", shop, "--model", "ease", "--quiet")
    assert (quiet.code, quiet.out, quiet.err) == (0, "", "")
    assert run("recommend", shop, "--user", "zoe").code == 0


@pytest.mark.parametrize("more", ["--more", "--readable-by-group"])
def test_what_makes_no_sense_with_again_is_refused(run, shop, more):
    refused = run("learn", "--again", "--into", shop, more)
    assert refused.code == 2
    assert "--again" in refused.err
