"""Certificates by the id of their request."""

import pytest

from erasable.errors import UnknownRequest
from erasable.operations import certificate_file, certificates_of, erasure_records, forget
from erasable.requests import Request


def test_a_certificate_is_found_by_its_request(storage):
    receipt = forget(storage, [Request("ann")]).receipts[0]
    found = certificates_of(storage, [receipt.request_id, "0" * 32])
    assert list(found) == [receipt.request_id]
    assert receipt.opens(found[receipt.request_id])
    assert certificate_file(storage, f"{receipt.request_id}.json") == found[receipt.request_id].content
    assert certificate_file(storage, f"{receipt.request_id}.html").startswith(b"<!doctype html>")


def test_what_was_kept_stands_in_the_log_alone(storage):
    receipt = forget(storage, [Request("ann")]).receipts[0]
    records = erasure_records(storage, [receipt.request_id, "0" * 32])
    assert list(records) == [receipt.request_id]
    assert {step["kept"] for step in records[receipt.request_id]["steps"]} <= {True, False}
    assert b'"kept":' not in certificate_file(storage, f"{receipt.request_id}.json")


@pytest.mark.parametrize("name", ["0" * 32 + ".json", "../manifest.json", ""])
def test_there_is_no_other(storage, name):
    with pytest.raises(UnknownRequest):
        certificate_file(storage, name)
