"""Requests from options and from files: never more is asked to be forgotten than was written."""

import pytest

from erasable.cli.options import read_requests, requests_from
from erasable.errors import DataRefused, WrongUse
from erasable.requests import Request


@pytest.fixture
def read(tmp_path):
    def call(text: str | bytes):
        (tmp_path / "file").write_bytes(text if isinstance(text, bytes) else text.encode())
        return read_requests(tmp_path / "file")

    return call


class TestOptions:
    def test_users_are_whole_people(self):
        assert requests_from(["ann", "bob"], None, None) == [Request("ann"), Request("bob")]

    def test_items_belong_to_the_one_user(self):
        assert requests_from(["ann"], None, ["a", "b"]) == [Request("ann", ("a", "b"))]

    def test_users_and_a_file_add_up(self, tmp_path):
        (tmp_path / "file").write_text("bob\n")
        assert requests_from(["ann"], tmp_path / "file", None) == [Request("ann"), Request("bob")]

    @pytest.mark.parametrize("users", [None, [], ["ann", "bob"]])
    def test_items_need_exactly_one_user(self, users):
        with pytest.raises(WrongUse, match="exactly one --user"):
            requests_from(users, None, ["a"])

    def test_items_do_not_go_with_a_file(self, tmp_path):
        with pytest.raises(WrongUse, match="exactly one --user"):
            requests_from(["ann"], tmp_path / "file", ["a"])

    def test_somebody_must_be_named(self):
        with pytest.raises(WrongUse, match="give --user U"):
            requests_from(None, None, None)


class TestFile:
    @pytest.mark.parametrize(
        "text", ["ann\nbob\n", "ann\nbob", "ann\r\nbob\r\n", "\n\nann\n\nbob\n", "\ufeffann\nbob\n"]
    )
    def test_one_user_a_line(self, read, text):
        assert read(text) == [Request("ann"), Request("bob")]

    def test_a_line_is_an_id_exactly_as_written(self, read):
        ids = [" ann", "007", 'b,"o"b', "[red]", "c\u2028d", "e\x0bf", "Ä", "user"]
        assert read("\n".join(ids)) == [Request(user) for user in ids]

    def test_a_header_makes_it_csv(self, read):
        assert read('user_id\n"a,b"\nbob\n') == [Request("a,b"), Request("bob")]

    def test_items_of_a_user_are_collected(self, read):
        assert read("user_id,item_id\nann,a\nbob,b\nann,c\n") == [Request("ann", ("a", "c")), Request("bob", ("b",))]

    @pytest.mark.parametrize("text", ["ann,\n", "ann\n", "ann,a\nann,\n", "ann,\nann,a\n"])
    def test_a_blank_item_is_refused_since_it_could_forget_more_than_was_asked(self, read, text):
        with pytest.raises(DataRefused, match=r"file, line \d: is no user_id,item_id"):
            read("user_id,item_id\n" + text)

    def test_spaces_in_the_header_do_not_turn_items_into_whole_people(self, read):
        assert read("user_id, item_id\nann,a\n") == [Request("ann", ("a",))]

    @pytest.mark.parametrize("header", ["user_id,item", "user_id,rating,item_id", "user_id,item_id,rating"])
    def test_other_columns_are_refused(self, read, header):
        with pytest.raises(DataRefused, match=r"file, line 1: the columns are .*: give user_id or user_id,item_id"):
            read(f"{header}\nann,a,1\n")

    @pytest.mark.parametrize("row", ["ann,a,b", ",a", '"",a'])
    def test_a_row_that_does_not_fit_is_refused_by_its_number_and_not_repeated(self, read, row):
        with pytest.raises(DataRefused, match="file, line 4: is no user_id,item_id: correct it") as refused:
            read(f"user_id,item_id\n\nbob,b\n{row}\n")
        assert row not in str(refused.value)

    @pytest.mark.parametrize("text", ["", "\n", "user_id\n", "user_id,item_id\n\n"])
    def test_a_file_without_a_user_is_refused(self, read, text):
        with pytest.raises(DataRefused, match="file: names no user: write one user id a line"):
            read(text)

    def test_what_is_not_utf8_is_refused(self, read):
        with pytest.raises(DataRefused, match="not UTF-8 text: save it as UTF-8"):
            read(b"\xff\xfeann")

    def test_what_can_not_be_read_is_refused(self, tmp_path):
        for path in (tmp_path / "nowhere", tmp_path):
            with pytest.raises(DataRefused, match="can't be read: give a file with one user id a line"):
                read_requests(path)
