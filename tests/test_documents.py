"""What all documents share: JSON that can be read in one way only."""

import json

import pytest
from pydantic import BaseModel, ConfigDict

from erasable.documents import read_json, says_more, with_seal


class Part(BaseModel):
    model_config = ConfigDict(extra="allow")


class Whole(Part):
    part: Part = Part()
    parts: tuple[Part, ...] = ()


def is_read(content: bytes) -> bool:
    try:
        read_json(content)
    except ValueError:
        return False
    return True


@pytest.mark.parametrize("value", [{}, [], None, 1, -0.5, "é\u2028\0", {"a": [{"b": 2**70}]}], ids=repr)
def test_what_can_be_read_in_one_way_is_read(value):
    assert read_json(json.dumps(value).encode()) == value
    assert read_json(json.dumps(value, ensure_ascii=False, indent=2).encode()) == value


@pytest.mark.parametrize(
    "content",
    [
        *(b"", b"{", b"{}{}", b"\xff", b"\xef\xbb\xbf{}", "{}".encode("utf-16"), b"\xed\xa0\x80"),
        *(b'{"a":1,"a":1}', b'[{"b":{"a":1,"a":2}}]', b'{"a":1,"\\u0061":2}'),
        *(b"NaN", b"[Infinity]", b"-Infinity", b"1e999", b'{"a":-1e999}', b"9" * 5000),
        *(b'"\\ud800"', b'{"\\udfff":1}', b"[" * 100_000),
    ],
)
def test_what_two_readers_may_understand_differently_is_refused(content):
    assert not is_read(content)


def test_a_field_that_is_not_known_is_found_wherever_it_stands():
    assert not says_more(Whole(part=Part(), parts=(Part(),)))
    for more in (Whole(more=None), Whole(part=Part(more=1)), Whole(parts=(Part(), Part(more=[])))):
        assert says_more(more)


def test_a_document_with_two_places_for_its_seal_is_not_sealed():
    with pytest.raises(ValueError, match="one empty field seal"):
        with_seal(b'{"a":{"seal":""},"seal":""}', "seal", "ab")
