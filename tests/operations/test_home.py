"""Homes: memory and disk behave alike."""

import pytest

from erasable.errors import WorkspaceBusy, WorkspaceError, WrongUse
from erasable.operations import DiskHome, MemoryHome, Work, forget
from erasable.operations.learn import learn_into
from erasable.operations.prepare import NO_INPUTS
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


def test_certificates_of_earlier_erasures_stay_as_they_are(home, snapshot):
    forget(home, [Request("ann")])
    first = snapshot(home).certificates
    forget(home, [Request("bob"), Request("cat")])
    found = snapshot(home)
    assert (len(first), len(found.certificates), found.erasures) == (1, 3, 3)
    assert first.items() <= found.certificates.items()


def test_places_of_certificates(tmp_path):
    assert DiskHome(tmp_path).certificate_place("x") == str(tmp_path / "certificates" / "x.json")
    assert MemoryHome().certificate_place("x") == "x"


def test_a_memory_that_has_learned_nothing_says_so():
    with MemoryHome().reading() as session, pytest.raises(WrongUse, match="nothing was learned yet"):
        session.state()


def test_a_second_writer_in_memory_is_refused_and_a_reader_keeps_what_it_began_with(table, config):
    home = MemoryHome()
    with home.writing() as session:
        learn_into(session, table, config, NO_INPUTS, Work(1))
    with home.reading() as reading:
        before = reading.state()
        with home.writing(), pytest.raises(WorkspaceBusy), home.writing():
            pass
        forget(home, [Request(before.knowledge.groups[0].users[0])])
        assert reading.state() is before
        assert all(link.fingerprint in reading.checkpoints for link in before.chain)
    with home.reading() as session:
        assert session.state().knowledge.users == before.knowledge.users - 1


def test_what_fails_in_memory_changes_nothing(table, config):
    home = MemoryHome()

    def learn_and_be_stopped():
        with home.writing() as session:
            learn_into(session, table, config, NO_INPUTS, Work(1))
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        learn_and_be_stopped()
    with home.reading() as session, pytest.raises(WrongUse):
        session.state()


def test_a_disk_that_has_learned_nothing_says_so(tmp_path):
    for opened in (DiskHome(tmp_path / "shop").reading, DiskHome(tmp_path / "shop").writing):
        with pytest.raises(WorkspaceError, match="erasable learn"), opened():
            pass
