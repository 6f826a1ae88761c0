"""Text: delimited tables with and without a header, lists, logs, and text in other encodings."""

import codecs

import pytest

from erasable.scan import Target

FOUND = {
    "comma": "user_id,item_id\nann,1\n7,2\n",
    "semicolon": "item;Customer\n1;ann\n2;7\n",
    "tab": "1\tann\n7\t2\n",
    "double colon": "1::2::3\n7::2::5\n",
    "bar": "userId|item\n7|1\n",
    "blank": "1 2 3\n7 2 3\n",
    "quotes": 'user,note\n"7","a, b"\n"8","c"\n',
    "blanks around": "user , item\n 7 , 1\n 8 , 2\n",
    "a number with a point": "user,item\n7.0,1\n8.0,2\n",
    "ragged": "7,1\n8,2,3\n9\n",
    "one a line": "1\n7\n",
    "a header and one a line": "user_id\n1\n7\n",
    "line ends of Windows": "user,item\r\n1,2\r\n3,4\r\n7,1\r\n",
    "a log": "started\nforgot user=7 now, and more\n",
    "a log with a colon": "started here\nforgot customer: 7, done\n",
    "a log with quotes": "started, up\nforgot '7'\nsaid \"8\"; done, well\n",
    "JSON that was cut off": '{"user": "7", "ite',
}
NOT_FOUND = {
    "an item": "user,item\nann,7\nbob,8\n",
    "an item without a header": "ann,7\nbob,8\n",
    "an item first": "item,user\n7,ann\n8,bob\n",
    "a rating": "user,item,rating\nann,1,7\n",
    "a count": "group,users\n1,7\n7,2\n",
    "a part": "user,item\n77,1\n17,2\n",
    "a line of a log": "7 files were read, in 3 s\n8 files\n",
    "a number in a log": "seconds=7\nread 7 of 9, item=7\n",
}


@pytest.mark.parametrize("text", FOUND.values(), ids=FOUND)
def test_ids_are_found(write, scan, text):
    write("f.txt", text)
    assert not scan("7").clean


@pytest.mark.parametrize("text", NOT_FOUND.values(), ids=NOT_FOUND)
def test_what_is_no_id_of_a_user_is_not_taken_for_one(write, scan, text):
    write("f.txt", text)
    assert scan("7").residues == ()


def test_a_list_of_items_is_known_by_its_name(write, scan):
    write("items.txt", "1\n7\n")
    write("u.item", "7|a\n8|b\n")
    assert scan("7").clean


@pytest.mark.parametrize(
    ("codec", "bom"),
    [
        ("utf-8", codecs.BOM_UTF8),
        ("utf-16-le", codecs.BOM_UTF16_LE),
        ("utf-16-be", codecs.BOM_UTF16_BE),
        ("utf-32-le", codecs.BOM_UTF32_LE),
        ("cp1252", b""),
    ],
)
def test_text_in_other_encodings_is_read(write, scan, codec, bom):
    write("f.csv", bom + "user,item\nann,1\nzoë,2\n".encode(codec))
    assert scan("zoë").residues[0].place == "column user"
    assert scan("zoé").clean


def test_pairs_are_found_in_one_line_only(write, scan):
    write("f.csv", "user,item,rating\nann,41,5\nbob,42,5\n")
    assert scan(Target("ann", items=("42", "5"))).clean
    assert not scan(Target("bob", items=("42",))).clean


WORDS = ("x-customer-1", "customer-12", "customer-1b", "Äcustomer-1", "session:customer-1:1")


@pytest.mark.parametrize("word", WORDS)
def test_a_long_id_in_a_longer_word_counts_unless_that_is_held(write, scan, word):
    write("f.log", f"begun\n{word} said\n")
    assert not scan("customer-1").clean
    assert scan("customer-1", held=WORDS).clean
    write("f.log", f"said ({word}). said (customer-1).")
    assert not scan("customer-1", held=WORDS).clean


def test_a_number_is_no_part_of_a_longer_number(write, scan):
    write("f.log", "took 0.1234567890123 s\n112345678 and 123456789\n")
    assert scan("12345678").clean
    write("f.log", "session:12345678:1\n")
    assert not scan("12345678").clean


def test_a_longer_id_with_other_signs_explains_a_hit(write, scan):
    """john@corp.com is a part of mary.john@corp.com, though a dot is no letter."""
    held = ("mary.john@corp.com",)
    write("data.csv", "user_id,item\nmary.john@corp.com,1\n")
    write("log", "served mary.john@corp.com today")
    assert scan("john@corp.com", held=held).residues == ()
    write("log", "served john@corp.com today")
    assert {residue.file for residue in scan("john@corp.com", held=held).residues} == {"log"}


def test_where_the_other_is_not_known_such_a_hit_counts(write, scan):
    write("log", "served mary.john@corp.com today")
    assert not scan("john@corp.com").clean


SENTENCES = {
    "a note": "please erase customer-000007 by Friday, thanks\n",
    "a log": "started\nread customer-000007 from the queue\nwent on, with others\n",
    "Markdown": "# Requests\n\n- customer-000007 (phone)\n- customer-000008\n",
    "HTML": "<table><tr><td>customer-000007</td></tr></table>\n",
    "YAML": "erased:\n  - customer-000007\n  - customer-000008\n",
    "SQL": "INSERT INTO users VALUES ('customer-000007', 3);\n",
}


@pytest.mark.parametrize("text", SENTENCES.values(), ids=SENTENCES)
def test_a_long_id_is_found_inside_any_line(write, scan, text):
    write("f.txt", text)
    assert not scan("customer-000007").clean
    assert scan("customer-00000", held=("customer-000007", "customer-000008")).clean
