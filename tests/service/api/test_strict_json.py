"""Bodies that could be read in two ways are refused."""

import pytest

PATH = "/v1/erasure-requests"
JSON = {"content-type": "application/json"}


@pytest.mark.parametrize(
    "body",
    [
        b'{"user_id": "ann", "user_id": "bob"}',
        b'{"user_id": "ann", "item_ids": [{"a": 1, "a": 2}]}',
        b'{"user_id": NaN}',
        b'{"user_id": Infinity}',
        b"[" * 50_000,
        b"\xff\xfe",
        b"",
    ],
    ids=["a name twice", "a name twice inside", "no number", "no end", "no bottom", "no text", "nothing"],
)
def test_it_is_refused_and_nothing_is_taken_in(client, shop, body):
    answer = client("officer").post(PATH, content=body, headers=JSON)
    assert answer.status_code in (400, 422)
    assert shop.history.open_requests() == []


def test_what_can_be_read_in_one_way_is_taken(client):
    assert client("officer").post(PATH, content=b'{"user_id": "ann"}', headers=JSON).status_code == 201
