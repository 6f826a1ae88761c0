"""Homes: memory and disk behave alike."""

import pytest

from erasable.errors import WorkspaceError
from erasable.operations import DiskHome, MemoryHome, forget
from erasable.training import numeric_environment
from erasable.unlearning import Request


def test_both_homes_hold_the_same_bytes(learned, table, config, snapshot, home):
    on_disk, here = snapshot(DiskHome(learned)), snapshot(home)
    assert (here.names, here.arrays) == (on_disk.names, on_disk.arrays)
    assert (here.groups, here.held_out) == (on_disk.groups, on_disk.held_out)


def test_a_home_that_has_learned_is_at_its_first_version(home, snapshot):
    found = snapshot(home)
    assert (found.version, found.erasures, found.certificates) == (1, 0, {})
    with home.reading() as session:
        assert session.environment == numeric_environment()


def test_a_commit_adds_certificates_and_drops_what_it_replaces(home, snapshot):
    with home.reading() as session:
        before, salt = session.state(), session.next_salt
        user = before.knowledge.groups[0].users[0]
    forget(home, [Request(user)])
    found = snapshot(home)
    assert (found.version, found.erasures) == (2, 1)
    with home.writing() as session:
        assert not any(link.fingerprint in session.checkpoints for link in before.chain)
        assert all(link.fingerprint in session.checkpoints for link in session.state().chain)
        assert session.next_salt != salt
        assert len(session.next_salt) == 64


def test_places_of_certificates(tmp_path):
    assert DiskHome(tmp_path).certificate_place("x") == str(tmp_path / "certificates" / "x.json")
    assert MemoryHome().certificate_place("x") == "x"


def test_a_memory_that_has_learned_nothing_says_so():
    with pytest.raises(RuntimeError, match="nothing was learned yet"):
        MemoryHome().state()


def test_a_disk_that_has_learned_nothing_says_so(tmp_path):
    for opened in (DiskHome(tmp_path / "shop").reading, DiskHome(tmp_path / "shop").writing):
        with pytest.raises(WorkspaceError, match="erasable learn"), opened():
            pass
