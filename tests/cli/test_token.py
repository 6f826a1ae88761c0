"""`erasable token`."""

from erasable.requests.sqlite import SqliteDatabase
from erasable.requests.tokens import Tokens


def test_a_token_is_printed_once_and_works(run, shop):
    result = run("token", "create", shop, "--role", "officer", "--label", "till 3")
    secret = result.out.strip()
    assert Tokens(SqliteDatabase.open(shop)).caller(secret).role == "officer"
    listed = run("token", "list", shop).out
    assert "till 3" in listed
    assert secret not in listed


def test_json_tells_the_number_that_revokes_it(run, shop):
    made = run("token", "create", shop, "--role", "operator", "--json").json
    assert run("token", "revoke", shop, made["number"]).code == 0
    assert run("token", "list", shop, "--json").json["tokens"][0]["revoked"]
    again = run("token", "revoke", shop, made["number"])
    assert (again.code, "token list" in again.err) == (1, True)
    assert Tokens(SqliteDatabase.open(shop)).caller(made["token"]) is None


def test_without_any_it_says_how_to_make_one(run, shop):
    assert "erasable token create" in run("token", "list", shop).out


def test_wrong_use_is_refused(run, shop, tmp_path):
    assert run("token", "create", shop, "--role", "king").code == 2
    assert run("token", "create", shop).code == 2
    assert run("token", "create", shop, "--role", "officer", "--label", "x" * 101).code == 2
    assert run("token", "create", tmp_path, "--role", "officer").code == 1
    assert not (tmp_path / "ledger.sqlite").exists()


def test_a_label_can_be_changed_and_nothing_is_left_of_the_one_before(run, shop):
    made = run("token", "create", shop, "--role", "officer", "--label", "desk-of-unmistakable", "--json").json
    assert run("token", "rename", shop, made["number"], "desk 3").code == 0
    assert [one["label"] for one in run("token", "list", shop, "--json").json["tokens"]] == ["desk 3"]
    assert Tokens(SqliteDatabase.open(shop)).caller(made["token"]).role == "officer"
    assert not [path for path in shop.glob("ledger.sqlite*") if b"unmistakable" in path.read_bytes()]
    assert run("token", "rename", shop, made["number"], "x" * 101).code == 2
    unknown = run("token", "rename", shop, "nobody", "desk 3")
    assert (unknown.code, "token list" in unknown.err) == (1, True)
