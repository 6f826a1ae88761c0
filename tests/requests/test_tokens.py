"""Tokens: shown once, kept as digests, worthless once revoked."""

import threading

import pytest

from erasable.errors import Refused
from erasable.requests.sqlite import SqliteDatabase
from erasable.requests.tokens import ROLES, Tokens
from erasable.workspace.files import QUEUE_FILE


@pytest.fixture
def tokens(database):
    return Tokens(database)


@pytest.mark.parametrize("role", ROLES)
def test_a_token_says_who_calls(tokens, clock, role):
    number, secret = tokens.create(role, "till", clock())
    caller = tokens.caller(secret)
    assert (caller.token, caller.role, caller.actor) == (number, role, f"{role} {number}")


def test_the_secret_is_kept_nowhere(in_file, clock, folder):
    tokens = Tokens(in_file)
    _, secret = tokens.create("operator", "till", clock())
    visit = tokens.begin_visit(tokens.caller(secret))
    in_file.wipe()
    left = b"".join(path.read_bytes() for path in folder.glob(f"{QUEUE_FILE}*"))
    assert secret.encode() not in left
    assert visit.encode() not in left


@pytest.mark.parametrize("wrong", ["", "x", "é\ud800", "a" * 10_000])
def test_what_is_no_token_is_nobody(tokens, clock, wrong):
    tokens.create("operator", "", clock())
    assert tokens.caller(wrong) is None


def test_a_revoked_token_is_worthless_at_once_and_in_other_processes(in_file, clock, folder):
    tokens = Tokens(in_file)
    number, secret = tokens.create("officer", "", clock())
    visit = tokens.begin_visit(tokens.caller(secret))
    elsewhere = Tokens(SqliteDatabase.open(folder))
    assert elsewhere.caller(secret)
    tokens.revoke(number, clock())
    assert tokens.caller(secret) is None
    assert elsewhere.caller(secret) is None
    assert tokens.visitor(visit) is None
    with pytest.raises(Refused, match="token list"):
        tokens.revoke(number, clock())


def test_a_token_made_in_another_process_is_known(in_file, clock, folder):
    tokens = Tokens(in_file)
    assert tokens.caller("x") is None
    _, secret = Tokens(SqliteDatabase.open(folder)).create("officer", "", clock())
    assert tokens.caller(secret).role == "officer"


def test_a_visit_ends(tokens, clock):
    _, secret = tokens.create("officer", "", clock())
    visit = tokens.begin_visit(tokens.caller(secret))
    assert tokens.visitor(visit).role == "officer"
    assert tokens.visitor("another") is None
    tokens.end_visit(visit)
    assert tokens.visitor(visit) is None


def test_nobody_waits_for_whoever_writes(in_file, clock):
    tokens = Tokens(in_file)
    _, secret = tokens.create("officer", "", clock())
    visit = tokens.begin_visit(tokens.caller(secret))
    found = []

    def ask_meanwhile(connection):
        asking = threading.Thread(target=lambda: found.extend([tokens.caller(secret), tokens.visitor(visit)]))
        asking.start()
        asking.join(5)

    in_file.change(ask_meanwhile)
    assert [caller.role for caller in found] == ["officer", "officer"]
