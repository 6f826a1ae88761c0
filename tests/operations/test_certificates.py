"""Certificates by the id of their request."""

import pytest

from erasable.errors import UnknownRequest
from erasable.operations import certificate_file, certificates_of, forget
from erasable.unlearning import Request


def test_a_certificate_is_found_by_its_request(home):
    receipt = forget(home, [Request("ann")]).receipts[0]
    found = certificates_of(home, [receipt.request_id, "0" * 32])
    assert list(found) == [receipt.request_id]
    assert receipt.opens(found[receipt.request_id])
    assert certificate_file(home, f"{receipt.request_id}.json") == found[receipt.request_id].encoded()
    assert certificate_file(home, f"{receipt.request_id}.html").startswith(b"<!doctype html>")


@pytest.mark.parametrize("name", ["0" * 32 + ".json", "../manifest.json", ""])
def test_there_is_no_other(home, name):
    with pytest.raises(UnknownRequest):
        certificate_file(home, name)
