"""Getting a public data set: in place whole and checked, or nothing is left behind."""

import errno
import io
import os
import tempfile
from contextlib import contextmanager
from pathlib import Path

import pytest

from erasable.data import read_interactions
from erasable.data.public_sets import get_public_set
from erasable.errors import DataRefused, ErasableError, Refused
from kit.file_server import ROWS, Answer, described, lines, serving, sha256, zipped

ARCHIVE = zipped({"tiny/README": b"hello", "tiny/ratings.dat": lines("::")})


@pytest.fixture(autouse=True)
def _no_proxy(monkeypatch):
    monkeypatch.setenv("no_proxy", "127.0.0.1")


@pytest.fixture
def server():
    with serving({"/tiny.zip": Answer(ARCHIVE)}) as running:
        yield running


@pytest.fixture
def tiny(server):
    return described(f"{server.address}/tiny.zip", ARCHIVE)


def everything_in(folder: Path) -> list[str]:
    return sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*"))


class Interrupting:
    """A reporter through which Ctrl-C comes, in the work of one label."""

    def __init__(self, label: str) -> None:
        self._label = label

    def note(self, text: str) -> None:
        pass

    def doubt(self, text: str) -> None:
        pass

    @contextmanager
    def track(self, label: str, total: int | None = None):
        def advance(done: int) -> None:
            if label.startswith(self._label):
                raise KeyboardInterrupt

        yield advance


def test_the_table_is_all_that_is_there_afterwards_and_can_be_learned_from(tiny, tmp_path):
    fetched = get_public_set(tiny, tmp_path / "deep" / "data")
    assert everything_in(tmp_path) == ["deep", "deep/data", "deep/data/tiny", "deep/data/tiny/ratings.csv"]
    assert fetched.path == str(tmp_path / "deep" / "data" / "tiny" / "ratings.csv")
    assert len(read_interactions(fetched.path).interactions) == fetched.rows == len(ROWS)
    assert (fetched.kept, fetched.checksum) == (False, sha256(ARCHIVE))
    assert (fetched.licence, fetched.terms) == ("for tests", "https://example.org/terms")


def test_others_may_read_it_as_any_other_file(tiny, tmp_path):
    path = Path(get_public_set(tiny, tmp_path).path)
    (tmp_path / "plain").touch()
    assert path.stat().st_mode == (tmp_path / "plain").stat().st_mode


def test_the_terms_are_said_before_anything_is_asked_for(reporter, server, tmp_path):
    with pytest.raises(Refused):
        get_public_set(described(f"{server.address}/no.zip", b""), tmp_path, reporter)
    assert reporter.notes == ["the terms of tiny: for tests; in full: https://example.org/terms"]


def test_progress_is_said_for_both_parts(reporter, tiny, tmp_path):
    get_public_set(tiny, tmp_path, reporter)
    assert reporter.work == [("downloading tiny.zip", len(ARCHIVE)), ("unpacking tiny", len(ROWS))]
    assert reporter.done == len(ARCHIVE) + len(ROWS)


def test_what_is_there_is_kept_and_nothing_is_asked_for(tiny, server, tmp_path):
    path = Path(get_public_set(tiny, tmp_path).path)
    before = path.stat()
    again = get_public_set(tiny, tmp_path)
    assert (again.kept, again.checksum, again.rows) == (True, None, len(ROWS))
    assert path.stat() == before
    assert server.asked == ["/tiny.zip"]


@pytest.mark.parametrize("content", [b"", b"user_id,item_id\n1,2\n", b"mine"])
def test_something_else_in_its_place_is_neither_kept_nor_overwritten(tiny, server, tmp_path, content):
    path = tmp_path / "tiny" / "ratings.csv"
    path.parent.mkdir()
    path.write_bytes(content)
    with pytest.raises(Refused, match=r"is there with \d rows, but tiny has 4: move it away"):
        get_public_set(tiny, tmp_path)
    assert path.read_bytes() == content
    assert server.asked == []


def test_what_a_killed_command_left_is_not_taken_for_the_table(tiny, tmp_path):
    (tmp_path / "tiny").mkdir()
    (tmp_path / "tiny" / "ratings.csv.0123.partial").write_bytes(b"user_id,item_id\n")
    assert not get_public_set(tiny, tmp_path).kept


BAD = {
    "not found": (Answer(status=404), {}),
    "broken off": (Answer(ARCHIVE, missing=5), {}),
    "changed": (Answer(ARCHIVE + b"x"), {"checksum": sha256(ARCHIVE)}),
    "without the member": (Answer(ARCHIVE), {"member": "tiny/other.dat"}),
    "of another length": (Answer(ARCHIVE), {"rows": 5}),
}


@pytest.mark.parametrize("fault", BAD)
@pytest.mark.parametrize("there", [[], ["data"], ["data", "data/tiny"], ["data", "data/tiny", "data/tiny/notes"]])
def test_whatever_fails_nothing_is_left_behind_and_what_was_there_stays(tmp_path, fault, there):
    for name in there:
        (tmp_path / name).mkdir()
    answer, changed = BAD[fault]
    with serving({"/tiny.zip": answer}) as server, pytest.raises(ErasableError):
        get_public_set(described(f"{server.address}/tiny.zip", answer.body, **changed), tmp_path / "data")
    assert everything_in(tmp_path) == there


def test_nothing_is_unpacked_before_the_checksum_is_right(tmp_path, monkeypatch):
    monkeypatch.setattr("erasable.data.public_sets.write_table", lambda *_: pytest.fail("unpacked"))
    with serving({"/tiny.zip": Answer(ARCHIVE)}) as server, pytest.raises(Refused, match="not what was expected"):
        get_public_set(described(f"{server.address}/tiny.zip", b"something else"), tmp_path)


@pytest.mark.parametrize("member", ["../../evil.csv", "/evil.csv", "..\\evil.csv", "tiny/../../evil.csv"])
def test_the_name_of_a_member_is_never_a_path(tmp_path, member):
    archive = zipped({member: lines("::")})
    with serving({"/tiny.zip": Answer(archive)}) as server:
        get_public_set(described(f"{server.address}/tiny.zip", archive, member=member), tmp_path / "a" / "b")
    assert everything_in(tmp_path) == ["a", "a/b", "a/b/tiny", "a/b/tiny/ratings.csv"]


@pytest.mark.parametrize("during", ["downloading", "unpacking"])
def test_ctrl_c_leaves_nothing_behind(tiny, tmp_path, during):
    with pytest.raises(KeyboardInterrupt):
        get_public_set(tiny, tmp_path / "data", Interrupting(during))
    assert everything_in(tmp_path) == []


def test_a_disk_that_is_full_while_downloading_is_said_and_nothing_is_left(tiny, tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "TemporaryFile", lambda **_: io.FileIO("/dev/full", "r+"))
    with pytest.raises(Refused, match=f"the disk is full at {tmp_path}/data/tiny: free some space"):
        get_public_set(tiny, tmp_path / "data")
    assert everything_in(tmp_path) == []


def test_a_disk_that_is_full_while_unpacking_is_said_and_nothing_is_left(tiny, tmp_path, monkeypatch):
    def full(handle: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(Refused, match="the disk is full"):
        get_public_set(tiny, tmp_path / "data")
    assert everything_in(tmp_path) == []


@pytest.mark.parametrize("place", ["data", "data/tiny", "data/tiny/ratings.csv"])
def test_what_is_no_folder_or_no_file_is_refused(tiny, tmp_path, place):
    wrong = tmp_path / place
    wrong.parent.mkdir(parents=True, exist_ok=True)
    if place.endswith(".csv"):
        wrong.mkdir()
    else:
        wrong.write_text("notes")
    before = everything_in(tmp_path)
    with pytest.raises(Refused, match=r"can't be written or read .*: check into"):
        get_public_set(tiny, tmp_path / "data")
    assert everything_in(tmp_path) == before


def test_a_page_instead_of_the_file_is_refused(tmp_path):
    page = b"<html>log in to this network</html>"
    with serving({"/tiny.zip": Answer(page)}) as server, pytest.raises(DataRefused, match="not a readable zip file"):
        get_public_set(described(f"{server.address}/tiny.zip", page), tmp_path)
