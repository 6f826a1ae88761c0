"""A receipt code sealed under another is opened by that one, however it is typed, and by no other."""

import pytest
from cryptography.exceptions import InvalidTag

from erasable.requests.tokens import new_receipt_code, seal, unseal


def test_what_is_sealed_is_opened_by_its_code_alone():
    first, second = new_receipt_code(), new_receipt_code()
    sealed = seal(first, under=second)
    assert first.encode() not in sealed
    for typed in (second, second.lower(), second.replace("-", " ")):
        assert unseal(sealed, typed) == first
    with pytest.raises(InvalidTag):
        unseal(sealed, new_receipt_code())
