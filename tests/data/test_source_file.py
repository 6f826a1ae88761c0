import gzip

import pytest

from erasable.data._lines import numbered_lines
from erasable.data.sources import local_source
from erasable.errors import DataRefused


def test_lines_are_numbered_and_lose_only_their_ends(tmp_path):
    path = tmp_path / "f"
    path.write_bytes("\ufeffa \r\n\n\u2028b\x85\nc".encode())
    assert list(numbered_lines(local_source(path))) == [(1, "a "), (2, ""), (3, "\u2028b\x85"), (4, "c")]


def test_compressed_files_are_known_by_their_bytes(tmp_path):
    path = tmp_path / "f.csv"
    path.write_bytes(gzip.compress(b"a\nb\n"))
    assert [text for _, text in numbered_lines(local_source(path))] == ["a", "b"]


def test_a_damaged_gzip_file_is_refused(tmp_path):
    path = tmp_path / "f.gz"
    path.write_bytes(gzip.compress(b"a\nb\n" * 1000)[:-12])
    with pytest.raises(DataRefused, match=r"f\.gz.*damaged"):
        list(numbered_lines(local_source(path)))


def test_utf16_is_told_from_other_rubbish(tmp_path):
    path = tmp_path / "f"
    path.write_bytes("user,item".encode("utf-16"))
    with pytest.raises(DataRefused, match="UTF-16: save it as UTF-8"):
        list(numbered_lines(local_source(path)))


def test_missing_empty_and_folders_are_refused(tmp_path):
    (tmp_path / "empty").touch()
    for name, reason in [
        ("none", "none does not exist"),
        ("empty", "empty is empty"),
        (".", "is a directory"),
    ]:
        with pytest.raises(DataRefused, match=reason):
            local_source(tmp_path / name).refuse_unreadable()


def test_a_file_used_as_a_folder_is_refused(tmp_path):
    (tmp_path / "file").write_text("x")
    with pytest.raises(DataRefused, match="can't be opened"):
        local_source(tmp_path / "file" / "x").refuse_unreadable()
