"""Homes: memory and disk behave alike."""

from dataclasses import replace
from pathlib import Path

import pytest

from erasable.chain import environment_for
from erasable.errors import WorkspaceBusy, WorkspaceError, WrongUse
from erasable.operations import DiskStorage, MemoryStorage, Work, forget
from erasable.operations.learn import learn_into
from erasable.operations.prepare import NO_INPUTS
from erasable.requests import Request


def bytes_of(storage):
    """Return the names, arrays and data that a storage holds, byte by byte."""
    with storage.reading() as session:
        state = session.state()
        arrays = {link.fingerprint: session.checkpoints.get(link.fingerprint).arrays() for link in state.chain}
        return (
            {name: {of: array.tobytes() for of, array in stage.items()} for name, stage in arrays.items()},
            [group.digest() for group in state.dataset.groups],
            state.dataset.held_out.digest(),
        )


def certificates_of(storage):
    with storage.reading() as session:
        return dict(session.issued())


def test_both_homes_hold_the_same_bytes(learned, storage):
    assert bytes_of(storage) == bytes_of(DiskStorage(learned))


def test_a_storage_that_has_learned_is_at_its_first_version(storage):
    with storage.reading() as session:
        assert (session.stamp.version, len(session.stamp.salt)) == (1, 64)
        assert (session.erasures, session.issued(), session.leftovers, session.damaged()) == (0, {}, (), [])
        assert session.pending_files == ()
        assert session.state().environment == environment_for(session.state().dataset.config)


def test_a_commit_adds_certificates_and_drops_what_it_replaces(storage):
    with storage.reading() as session:
        before, stamp = session.state(), session.stamp
        user = before.dataset.groups[0].users[0]
    forget(storage, [Request(user)])
    with storage.writing() as session:
        assert (session.stamp.version, session.erasures) == (2, 1)
        assert not any(link.fingerprint in session.checkpoints for link in before.chain)
        assert all(link.fingerprint in session.checkpoints for link in session.state().chain)
        assert session.stamp.salt != stamp.salt
        assert len(session.stamp.salt) == 64


def test_each_certificate_has_a_page_for_people(storage):
    done = forget(storage, [Request("ann"), Request("bob")])
    found = certificates_of(storage)
    names = {Path(place).stem for place in done.certificates}
    assert {*found} == {f"{name}.{kind}" for name in names for kind in ("json", "html")}


def test_certificates_of_earlier_erasures_stay_as_they_are(storage):
    forget(storage, [Request("ann")])
    first = certificates_of(storage)
    forget(storage, [Request("bob"), Request("cat")])
    found = certificates_of(storage)
    with storage.reading() as session:
        assert session.erasures == 3
    assert (len(first), len(found)) == (2, 6)
    assert first.items() <= found.items()


def test_places_of_certificates(tmp_path):
    assert DiskStorage(tmp_path).certificate_place("x.json") == str(tmp_path / "certificates" / "x.json")
    assert MemoryStorage().certificate_place("x.json") == "x.json"


def test_other_documents_beside_the_same_state(storage):
    before = bytes_of(storage)
    with storage.writing() as session:
        stamp, documents = session.stamp, session.documents()
        session.amend(replace(documents, pending=b"someone", certificates={"x.json": b"{}"}))
        assert session.state() is not None
        assert session.stamp == stamp
    with storage.reading() as session:
        assert session.stamp == stamp
        assert session.documents() == replace(documents, pending=b"someone")
        assert session.issued() == {"x.json": b"{}"}
    assert bytes_of(storage) == before


def test_documents_that_are_empty_are_not_kept(storage):
    with storage.writing() as session:
        documents = session.documents()
        session.amend(replace(documents, pending=b"someone"))
        session.amend(documents)
    with storage.reading() as session:
        assert (session.documents().pending, session.pending_files) == (b"", ())
    if isinstance(storage, DiskStorage):
        assert not list(storage.path.glob("pending*"))


def test_a_commit_may_keep_the_stamp_and_else_takes_the_next_one(storage):
    with storage.writing() as session:
        stamp, documents = session.stamp, session.documents()
        session.commit(session.state(), documents, stamp)
        assert session.stamp == stamp
        session.commit(session.state(), documents)
        assert session.stamp.version == 2
        assert session.stamp.salt != stamp.salt
    with storage.reading() as session:
        assert session.documents() == documents


def test_the_mark_is_another_after_each_change_and_only_then(storage):
    before = storage.mark()
    with storage.reading():
        pass
    assert storage.mark() == before
    with storage.writing() as session:
        session.amend(replace(session.documents(), pending=b"someone"))
    amended = storage.mark()
    with storage.writing() as session:
        session.commit(session.state(), session.documents())
    assert len({before, amended, storage.mark()}) == 3


def test_a_memory_that_has_learned_nothing_says_so():
    with MemoryStorage().reading() as session, pytest.raises(WrongUse, match="nothing was learned yet"):
        session.state()


def test_a_second_writer_in_memory_is_refused_and_a_reader_keeps_what_it_began_with(table, config):
    storage = MemoryStorage()
    with storage.writing() as session:
        learn_into(session, table, config, NO_INPUTS, Work(1))
    with storage.reading() as reading:
        before = reading.state()
        with storage.writing(), pytest.raises(WorkspaceBusy), storage.writing():
            pass
        forget(storage, [Request(before.dataset.groups[0].users[0])])
        assert reading.state() is before
        assert all(link.fingerprint in reading.checkpoints for link in before.chain)
    with storage.reading() as session:
        assert session.state().dataset.users == before.dataset.users - 1


def test_what_fails_in_memory_changes_nothing(table, config):
    storage = MemoryStorage()

    def learn_and_be_stopped():
        with storage.writing() as session:
            learn_into(session, table, config, NO_INPUTS, Work(1))
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        learn_and_be_stopped()
    with storage.reading() as session, pytest.raises(WrongUse):
        session.state()


def test_a_disk_that_has_learned_nothing_says_so(tmp_path):
    for opened in (DiskStorage(tmp_path / "shop").reading, DiskStorage(tmp_path / "shop").writing):
        with pytest.raises(WorkspaceError, match=r"Recommender\(\)\.fit"), opened():
            pass
