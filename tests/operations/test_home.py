"""Homes: memory and disk behave alike."""

from dataclasses import replace
from pathlib import Path

import pytest

from erasable.errors import WorkspaceBusy, WorkspaceError, WrongUse
from erasable.operations import DiskHome, MemoryHome, Work, forget
from erasable.operations.learn import learn_into
from erasable.operations.prepare import NO_INPUTS
from erasable.requests import Request
from erasable.training import environment_for


def bytes_of(home):
    """Return the names, arrays and data that a home holds, byte by byte."""
    with home.reading() as session:
        state = session.state()
        arrays = {link.fingerprint: session.checkpoints.get(link.fingerprint).arrays() for link in state.chain}
        return (
            {name: {of: array.tobytes() for of, array in stage.items()} for name, stage in arrays.items()},
            [group.digest() for group in state.knowledge.groups],
            state.knowledge.held_out.digest(),
        )


def certificates_of(home):
    with home.reading() as session:
        return dict(session.issued())


def test_both_homes_hold_the_same_bytes(learned, home):
    assert bytes_of(home) == bytes_of(DiskHome(learned))


def test_a_home_that_has_learned_is_at_its_first_version(home):
    with home.reading() as session:
        assert (session.stamp.version, len(session.stamp.salt)) == (1, 64)
        assert (session.erasures, session.issued(), session.leftovers, session.damaged()) == (0, {}, (), [])
        assert session.pending_files == ()
        assert session.state().environment == environment_for(session.state().knowledge.config)


def test_a_commit_adds_certificates_and_drops_what_it_replaces(home):
    with home.reading() as session:
        before, stamp = session.state(), session.stamp
        user = before.knowledge.groups[0].users[0]
    forget(home, [Request(user)])
    with home.writing() as session:
        assert (session.stamp.version, session.erasures) == (2, 1)
        assert not any(link.fingerprint in session.checkpoints for link in before.chain)
        assert all(link.fingerprint in session.checkpoints for link in session.state().chain)
        assert session.stamp.salt != stamp.salt
        assert len(session.stamp.salt) == 64


def test_each_certificate_has_a_page_for_people(home):
    done = forget(home, [Request("ann"), Request("bob")])
    found = certificates_of(home)
    names = {Path(place).stem for place in done.certificates}
    assert {*found} == {f"{name}.{kind}" for name in names for kind in ("json", "html")}


def test_certificates_of_earlier_erasures_stay_as_they_are(home):
    forget(home, [Request("ann")])
    first = certificates_of(home)
    forget(home, [Request("bob"), Request("cat")])
    found = certificates_of(home)
    with home.reading() as session:
        assert session.erasures == 3
    assert (len(first), len(found)) == (2, 6)
    assert first.items() <= found.items()


def test_places_of_certificates(tmp_path):
    assert DiskHome(tmp_path).certificate_place("x.json") == str(tmp_path / "certificates" / "x.json")
    assert MemoryHome().certificate_place("x.json") == "x.json"


def test_other_papers_beside_the_same_state(home):
    before = bytes_of(home)
    with home.writing() as session:
        stamp, papers = session.stamp, session.papers()
        session.amend(replace(papers, pending=b"someone", certificates={"x.json": b"{}"}))
        assert session.state() is not None
        assert session.stamp == stamp
    with home.reading() as session:
        assert session.stamp == stamp
        assert session.papers() == replace(papers, pending=b"someone")
        assert session.issued() == {"x.json": b"{}"}
    assert bytes_of(home) == before


def test_papers_that_are_empty_are_not_kept(home):
    with home.writing() as session:
        papers = session.papers()
        session.amend(replace(papers, pending=b"someone"))
        session.amend(papers)
    with home.reading() as session:
        assert (session.papers().pending, session.pending_files) == (b"", ())
    if isinstance(home, DiskHome):
        assert not list(home.path.glob("pending*"))


def test_a_commit_may_keep_the_stamp_and_else_takes_the_next_one(home):
    with home.writing() as session:
        stamp, papers = session.stamp, session.papers()
        session.commit(session.state(), papers, stamp)
        assert session.stamp == stamp
        session.commit(session.state(), papers)
        assert session.stamp.version == 2
        assert session.stamp.salt != stamp.salt
    with home.reading() as session:
        assert session.papers() == papers


def test_the_mark_is_another_after_each_change_and_only_then(home):
    before = home.mark()
    with home.reading():
        pass
    assert home.mark() == before
    with home.writing() as session:
        session.amend(replace(session.papers(), pending=b"someone"))
    amended = home.mark()
    with home.writing() as session:
        session.commit(session.state(), session.papers())
    assert len({before, amended, home.mark()}) == 3


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
        with pytest.raises(WorkspaceError, match=r"Recommender\(\)\.fit"), opened():
            pass
