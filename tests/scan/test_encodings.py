"""Each way to write a text is one that its reader reads, and what stands around a hit is read as well."""

import base64
import html
import json
import urllib.parse
import uuid

import pytest
from hypothesis import given
from hypothesis import strategies as st

from erasable.operations._vocabulary import own_vocabulary
from erasable.scan import Target, scan_folder
from erasable.scan._target import spellings

LONG = st.text(st.characters(exclude_categories=["Cs", "Cc"]), min_size=8, max_size=20)
WRITERS = {
    "utf-8": str.encode,
    "utf-16-le": lambda text: text.encode("utf-16-le"),
    "utf-16-be": lambda text: text.encode("utf-16-be"),
    "utf-32-le": lambda text: text.encode("utf-32-le"),
    "utf-32-be": lambda text: text.encode("utf-32-be"),
    "JSON": lambda text: json.dumps(text).encode(),
    "percent": lambda text: urllib.parse.quote(text, safe="").encode(),
    "query": lambda text: urllib.parse.quote_plus(text).encode(),
    "XML": lambda text: html.escape(text).encode(),
    "character references": lambda text: html.escape(text).encode("ascii", "xmlcharrefreplace"),
    "hexadecimal": lambda text: text.encode().hex().encode(),
    "HEXADECIMAL": lambda text: text.encode().hex().upper().encode(),
}


@pytest.mark.parametrize("write", WRITERS.values(), ids=WRITERS)
@given(text=LONG)
def test_what_others_write_is_among_the_spellings(write, text):
    assert any(content in write(text) for content in spellings(text))


@pytest.mark.parametrize("alphabet", [b"+/", b"-_"])
@given(text=LONG, before=st.binary(max_size=5), after=st.binary(max_size=5))
def test_base64_is_found_at_any_alignment(alphabet, text, before, after):
    content = base64.b64encode(before + text.encode() + after, alphabet)
    found = [
        encoding.around(content, content.index(written), content.index(written) + len(written))
        for written, encoding in spellings(text).items()
        if encoding.name == "base64" and written in content
    ]
    assert (before.decode("utf-8", "replace"), after.decode("utf-8", "replace")) in found


def test_base64_of_almost_the_same_is_no_hit():
    # The characters at both ends share bits with their neighbours, which are not compared at first.
    content = base64.b64encode(b"?sustomer-1")
    for written, encoding in spellings("customer-1").items():
        if encoding.name == "base64" and (start := content.find(written)) >= 0:
            assert encoding.around(content, start, start + len(written)) is None


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("utf-8", "(zoë) customer-12!"),
        ("utf-16-le", "(zoë) customer-12!"),
        ("utf-32-be", "(zoë) customer-12!"),
        ("hexadecimal", "(zoë) customer-12!"),
        ("JSON escapes", "(zoë) customer-12!"),
    ],
)
def test_what_stands_around_is_read_in_the_same_encoding(name, content):
    write = {"hexadecimal": lambda text: text.encode().hex().encode()}.get(name, lambda text: text.encode(name))
    if name == "JSON escapes":
        write = lambda text: "".join(f"\\u{ord(letter):04x}" for letter in text).encode()  # noqa: E731
    written = write(content)
    spelling, encoding = next((s, e) for s, e in spellings("customer-1").items() if e.name == name and s in written)
    start = written.index(spelling)
    before, after = encoding.around(written, start, start + len(spelling))
    assert (before[-2:], after) == (") ", "2!")


def test_a_short_text_has_no_spellings():
    assert spellings("1234567") == {}
    assert spellings("zoëzoë12") != {}


def test_latin_letters_are_known_in_one_byte():
    assert {encoding.name for content, encoding in spellings("zoëzoëzo").items() if content == b"zo\xebzo\xebzo"} == {
        "latin-1"
    }
    assert b"\x80uro-Krise" in spellings("€uro-Krise")


def test_a_uuid_is_also_its_bytes():
    someone = uuid.uuid5(uuid.NAMESPACE_DNS, "someone")
    assert {someone.bytes, someone.bytes_le, someone.hex.encode()} - set(spellings(str(someone))) == {
        someone.hex.encode()
    }


def test_digits_are_also_what_they_stand_for():
    assert bytes(range(16)) in spellings(bytes(range(16)).hex())
    assert bytes(16) not in spellings("00" * 16)


@pytest.mark.parametrize(("number", "known"), [(10_000_001, False), (2**32 - 1, False), (10**13 + 7, True)])
def test_a_number_is_also_an_integer_if_it_is_large(number, known):
    found = spellings(str(number))
    assert (number.to_bytes(8, "little") in found) is known
    assert (number.to_bytes(8, "big") in found) is known


# Mails break base64 after 57 bytes, here in the middle of the id.
BROKEN = base64.encodebytes(b"x" * 50 + b"person-007@x.org" + b"y" * 40).decode()


@pytest.mark.parametrize(
    "written",
    [
        "<p>person-007&#64;x.org</p>",
        "<p>&#112;erson&#x2d;007@x.org</p>",
        "From: person-007=40x.org",
        "a letter about person-0=\n07@x.org and others",
        "a letter about person-0=\r\n07@x.org and others",
        BROKEN,
    ],
)
@pytest.mark.parametrize("name", ["letter.txt", "page.html", "letter.eml"])
def test_whichever_letters_are_escaped_and_wherever_lines_break_an_id_is_found(tmp_path, name, written):
    (tmp_path / name).write_bytes(written.encode())
    assert not scan_folder(tmp_path, [Target("person-007@x.org")], own_vocabulary()).clean
    assert scan_folder(tmp_path, [Target("person-008@x.org")], own_vocabulary()).clean


def test_lines_of_words_are_not_joined(tmp_path):
    (tmp_path / "words.txt").write_text("person-\n007@x.org\n")
    assert scan_folder(tmp_path, [Target("person-007@x.org")], own_vocabulary()).clean
