"""The scan of a folder: every file, its name and its content, links, what can't be read, databases in use."""

import json
import os
import sqlite3
import stat
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path

import numpy as np
import pytest

from erasable.errors import WorkspaceError
from erasable.operations._vocabulary import own_vocabulary
from erasable.scan import Residue, Scan, Target, _folder, scan_folder
from erasable.scan._folder import read_file


def test_a_file_is_read_whole_or_from_its_beginning(tmp_path):
    (tmp_path / "notes.txt").write_bytes(b"0123456789")
    assert read_file(tmp_path / "notes.txt") == b"0123456789"
    assert read_file(tmp_path / "notes.txt", 4) == b"0123"


def test_reading_a_database_leaves_its_user_the_locks(tmp_path):
    """Who closes a file loses the locks of the own process on it, and another process would think nobody writes."""
    path = tmp_path / "x.sqlite"
    writer = sqlite3.connect(path, isolation_level=None)
    writer.execute("PRAGMA journal_mode = WAL")
    writer.execute("CREATE TABLE t (a)")
    writer.execute("BEGIN IMMEDIATE")
    for name in ("x.sqlite", "x.sqlite-wal", "x.sqlite-shm"):
        assert read_file(tmp_path / name) == read_file(tmp_path / name)
    assert read_file(path, 6) == b"SQLite"
    other = sqlite3.connect(path, isolation_level=None, timeout=0)
    with pytest.raises(sqlite3.OperationalError, match="locked"):
        other.execute("BEGIN IMMEDIATE")
    writer.execute("ROLLBACK")
    other.close()
    writer.close()


def test_what_is_not_there_can_not_be_read(tmp_path):
    for name in ("nothing", "nothing-wal"):
        with pytest.raises(OSError, match="No such file"):
            read_file(tmp_path / name)


def test_every_file_is_counted_by_what_it_is(write, scan, tmp_path):
    write("a.parquet", "user_id,item\nann,b\n")
    write("deep/down/b", '{"x": 1}')
    write(".hidden", b"\x00\x01")
    write("writer.lock", b"")
    found = scan("eve")
    assert (found.files, found.bytes) == (4, 19 + 8 + 2)
    assert found.kinds == {"parquet": 0, "arrow": 0, "safetensors": 0, "json": 1, "sqlite": 0, "text": 1, "other": 2}
    assert found.clean


def test_a_residue_is_named_by_its_file_its_place_and_what_it_is(write, scan):
    write("deep/down/.b", "user_id,item\neve,b\n")
    found = scan("eve")
    assert found.residues == (Residue("deep/down/.b", "column user_id", "id"),)
    assert not found.clean


def test_files_may_be_left_out_by_their_names_below_the_folder(write, scan):
    for name in ("x/pending", "pending"):
        write(name, "user_id\neve\n")
    assert [residue.file for residue in scan("eve", skip=("x/pending",)).residues] == ["pending"]
    assert scan("eve", skip=("x/pending",)).searched[-1].endswith("destroyed when the certificate is written: 1 file.")


def test_links_are_not_followed_but_read(tmp_path, scan):
    outside = tmp_path.parent / f"{tmp_path.name}-outside"
    outside.mkdir()
    (outside / "f").write_text("user_id\neve\n")
    (tmp_path / "folder").symlink_to(outside)
    (tmp_path / "file").symlink_to(outside / "f")
    (tmp_path / "nowhere").symlink_to("gone")
    found = scan("eve", "gone")
    assert found.residues == (Residue("nowhere", "the link", "id"),)
    assert found.files == 3


def test_a_link_to_itself_ends(tmp_path, scan):
    (tmp_path / "again").symlink_to(tmp_path)
    assert scan("eve").clean


@pytest.mark.parametrize("name", ["eve", "eve.json", "eve.tar.gz", "user=eve", "user-eve.csv", "customer_id=eve"])
def test_names_are_searched(write, scan, name):
    write(f"{name}/x", b"")
    assert scan("eve").residues == (Residue(name, "the name", "id"),)


@pytest.mark.parametrize(
    "name", ["steve", "eve-2", "data", "config.json", "group-000-0123456789ab.parquet", "item=eve"]
)
def test_names_of_something_else_are_nobody(write, scan, name):
    write(f"x/{name}", b"")
    assert scan("eve", "data", "config", "json", "group-000", "0123456789ab", "2").clean


def test_what_can_not_be_read_is_refused(write, scan, monkeypatch):
    write("x/f", "user_id\neve\n")

    real = Path.open

    def refuse(path, *arguments, **options):
        if path.name == "f":
            raise PermissionError(13, "Permission denied", str(path))
        return real(path, *arguments, **options)

    monkeypatch.setattr(Path, "open", refuse)
    with pytest.raises(WorkspaceError, match=r"f can't be read .Permission denied.* check that you may read it"):
        scan("eve")


def test_a_file_that_vanishes_is_looked_for_again(write, scan, monkeypatch):
    path = write("f", "user_id\neve\n")
    walk = os.walk

    def walk_and_move(*arguments, **settings):
        yield from list(walk(*arguments, **settings))
        if path.exists():
            path.rename(path.with_name("g"))

    monkeypatch.setattr(os, "walk", walk_and_move)
    assert [residue.file for residue in scan("eve").residues] == ["g"]


def test_files_that_keep_vanishing_are_refused(write, scan, monkeypatch):
    write("f", "user_id\neve\n")
    monkeypatch.setattr(_folder, "read_file", lambda path, most=-1: path.with_name("gone").read_bytes())
    with pytest.raises(WorkspaceError, match=r"f can't be read .No such file"):
        scan("eve")


def test_a_folder_that_is_not_there_is_refused(tmp_path):
    with pytest.raises(WorkspaceError, match="can't be read"):
        scan_folder(tmp_path / "gone", [Target("eve")], own_vocabulary())


def test_a_pipe_is_not_waited_for(tmp_path, scan):
    os.mkfifo(tmp_path / "pipe")
    assert stat.S_ISFIFO((tmp_path / "pipe").stat().st_mode)
    assert (scan("eve").files, scan("eve").bytes) == (1, 0)


def test_a_name_that_is_no_text_can_be_told(tmp_path, scan):
    (tmp_path / os.fsdecode(b"\xff-eve")).write_text("user_id\neve\n")
    (residue,) = scan("eve").residues
    assert residue.file == "\\xff-eve"
    json.dumps(asdict(residue)).encode()


def test_nobody_is_never_found(write, scan):
    write("f", "user_id\neve\n")
    assert scan().clean


class TestWhatIsSaid:
    @pytest.fixture
    def found(self, write, scan, short, long) -> Scan:
        write("x.bin", b"\x00\xff")
        erased, _ = short
        return scan(erased.target, long[0].user, "eve", Target("bob", items=("apple",)), "fingerprint")

    def test_the_rules_are_said(self, found):
        said = " ".join(found.searched)
        assert "Ids of 8 bytes or more, exactly as they are written, were also searched" in said
        assert "Shorter ids, and ids that are also the id of an item" in said
        assert "The interactions that were held were searched as values" in said
        assert "The person's row of the model was searched" in said
        assert "Texts that must be gone" in said
        assert "Where only some interactions were erased" in said
        assert "What was held of the person is not known here any more" in said
        assert "1 file of other kinds" in said

    def test_nothing_is_counted_that_belongs_to_a_person(self, write, scan, short, long):
        write("x.bin", b"\x00\xff")
        few = scan(Target("eve", rows=short[0].target.rows))
        assert scan(Target(long[0].user, rows=short[0].target.rows)).searched == few.searched
        assert not any(character.isdigit() for sentence in few.searched[4:-1] for character in sentence)

    def test_nobody_is_named(self, found, short, long):
        words = {word.strip(".,:;") for sentence in found.searched for word in sentence.split()}
        assert words.isdisjoint({long[0].user, "eve", "bob", "apple", "berry", short[0].text, "fingerprint"})


def test_many_people_are_searched_at_once(write, scan):
    people = [f"person-number-{number:03d}" for number in range(300)]
    write("x.bin", b"\x00\xff" + people[123].encode("utf-16-be") + b"\xff" + people[7].encode().hex().encode())
    write("y.bin", np.arange(1000).tobytes())
    assert {(residue.file, residue.place) for residue in scan(*people).residues} == {
        ("x.bin", "raw bytes at 2 (utf-16-be)"),
        ("x.bin", "raw bytes at 37 (hexadecimal)"),
    }


class Recorder:
    """Remembers how many bytes each scan has before it, and how many are done after each file."""

    def __init__(self):
        self.scans = []

    @contextmanager
    def __call__(self, total):
        done = []
        self.scans.append((total, done))
        yield lambda part: done.append((done[-1] if done else 0) + part)


def test_it_is_told_how_far_it_is_after_each_file(tmp_path):
    (tmp_path / "below").mkdir()
    for number, name in enumerate(("a.txt", "below/b.json", "c.bin", "below/empty", "skipped")):
        (tmp_path / name).write_bytes(b"7 " * 1000 * (4 - number))
    (tmp_path / "link").symlink_to("a.txt")
    recorder = Recorder()
    scan_folder(tmp_path, [Target("anyone")], own_vocabulary(), skip=["skipped"], follow=recorder)
    ((total, done),) = recorder.scans
    assert total == 2000 * (4 + 3 + 2 + 1) + len("a.txt") + 5
    assert len(done) == 5
    assert done == sorted(set(done))
    assert done[-1] == total
