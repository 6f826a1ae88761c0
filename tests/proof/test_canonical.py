"""Canonical JSON: the examples of RFC 8785, and what this library adds to it."""

import json
import struct

import pytest
import rfc8785
from hypothesis import given
from hypothesis import strategies as st

from erasable.proof.certificate import canonical

SAFE = 2**53 - 1
# From 2^53 to 1e21 a fraction is written like a whole number, and is read as one.
FRACTIONS = st.floats(allow_nan=False, allow_infinity=False).filter(lambda number: not SAFE < abs(number) < 1e21)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-SAFE, SAFE) | FRACTIONS | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)


def double(bits: str) -> float:
    return struct.unpack(">d", bytes.fromhex(bits))[0]


def test_the_example_of_section_3_2_2():
    given_as = r"""{
        "numbers": [333333333.33333329, 1E30, 4.50, 2e-3, 0.000000000000000000000000001],
        "string": "\u20ac$\u000F\u000aA'\u0042\u0022\u005c\\\"\/",
        "literals": [null, true, false]
    }"""
    expected = (
        r'{"literals":[null,true,false],"numbers":[333333333.3333333,1e+30,4.5,0.002,1e-27],'
        r'"string":"€$\u000f\nA'
        r"'B\"\\\\\"/"
        '"}'
    )
    assert canonical(json.loads(given_as)) == expected.encode()


def test_the_example_of_section_3_2_3_sorts_names_by_utf_16_units():
    values = {
        "\u20ac": "Euro Sign",
        "\r": "Carriage Return",
        "\ufb33": "Hebrew Letter Dalet With Dagesh",
        "1": "One",
        "\U0001f600": "Emoji: Grinning Face",
        "\u0080": "Control",
        "\u00f6": "Latin Small Letter O With Diaeresis",
    }
    written = canonical(values).decode()
    # The emoji is a surrogate pair, D83D DE00, and so comes before FB33, though its code point is larger.
    order = ["\r", "1", "\u0080", "\u00f6", "\u20ac", "\U0001f600", "\ufb33"]
    assert list(json.loads(written)) == order
    assert sorted(values) != order


@pytest.mark.parametrize(
    ("bits", "written"),
    [
        ("0000000000000000", "0"),
        ("8000000000000000", "0"),
        ("0000000000000001", "5e-324"),
        ("8000000000000001", "-5e-324"),
        ("7fefffffffffffff", "1.7976931348623157e+308"),
        ("ffefffffffffffff", "-1.7976931348623157e+308"),
        ("4340000000000000", "9007199254740992"),
        ("c340000000000000", "-9007199254740992"),
        ("4430000000000000", "295147905179352830000"),
        ("44b52d02c7e14af5", "9.999999999999997e+22"),
        ("44b52d02c7e14af6", "1e+23"),
        ("44b52d02c7e14af7", "1.0000000000000001e+23"),
        ("444b1ae4d6e2ef4e", "999999999999999700000"),
        ("444b1ae4d6e2ef4f", "999999999999999900000"),
        ("444b1ae4d6e2ef50", "1e+21"),
        ("3eb0c6f7a0b5ed8c", "9.999999999999997e-7"),
        ("3eb0c6f7a0b5ed8d", "0.000001"),
        ("41b3de4355555553", "333333333.3333332"),
        ("41b3de4355555554", "333333333.33333325"),
        ("41b3de4355555555", "333333333.3333333"),
        ("41b3de4355555556", "333333333.3333334"),
        ("41b3de4355555557", "333333333.33333343"),
        ("becbf647612f3696", "-0.0000033333333333333333"),
        ("43143ff3c1cb0959", "1424953923781206.2"),
    ],
)
def test_the_numbers_of_appendix_b(bits, written):
    assert canonical(double(bits)) == written.encode()


@pytest.mark.parametrize(("number", "written"), [(1e21, b"1e+21"), (1e-7, b"1e-7"), (-0.0, b"0"), (4.50, b"4.5")])
def test_numbers_as_ecmascript_writes_them(number, written):
    assert canonical(number) == written


def test_only_what_must_be_escaped_is():
    written = r'"\b\t\n\f\r\"\\\u0000\u001f' + '\x7f/é\u2028"'
    assert canonical('\b\t\n\f\r"\\\x00\x1f\x7f/é\u2028') == written.encode()


@pytest.mark.parametrize("number", [float("nan"), float("inf"), -float("inf")])
def test_what_json_can_not_say_is_refused(number):
    with pytest.raises(ValueError, match="not representable"):
        canonical({"a": [number]})


def test_half_a_surrogate_pair_is_refused():
    with pytest.raises(ValueError, match="non-UTF-8"):
        canonical("\ud83d")


def test_whole_numbers_are_numbers_up_to_2_to_the_53_and_text_beyond():
    assert canonical([SAFE, -SAFE]) == b"[9007199254740991,-9007199254740991]"
    assert canonical([SAFE + 1, -SAFE - 1]) == b'["9007199254740992","-9007199254740992"]'
    assert canonical({"a": ({"b": 2**64},)}) == b'{"a":[{"b":"18446744073709551616"}]}'
    assert canonical([True, False, 1, 0]) == b"[true,false,1,0]"


@given(JSON)
def test_anyone_with_the_rfc_at_hand_writes_the_same_and_reads_the_same(value):
    assert canonical(value) == rfc8785.dumps(value)
    assert canonical(json.loads(canonical(value))) == canonical(value)


@given(st.dictionaries(st.text(), st.integers(0, 9), min_size=2), st.randoms())
def test_the_order_in_which_names_were_given_does_not_matter(values, chance):
    names = list(values)
    chance.shuffle(names)
    assert canonical({name: values[name] for name in names}) == canonical(values)
