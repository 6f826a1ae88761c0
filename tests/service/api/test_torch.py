"""A torch model encodes histories in another process, one at a time: the event loop does not wait for it."""

import asyncio

import pyarrow as pa
import pytest

from erasable.chain import Config
from erasable.operations import learn


@pytest.fixture
def folder(swift_path):
    """A workspace of a torch model, in place of the usual one."""
    rows = [(user, item) for user, items in {"ann": "ab", "bob": "bc", "cy": "acb"}.items() for item in items]
    users, items = zip(*rows, strict=True)
    table = pa.table({"user": users, "item": items, "time": range(len(rows))})
    learn(table, swift_path / "shop", Config(model="two-tower", factors=4, epochs=1))
    return swift_path / "shop"


@pytest.mark.full
def test_a_row_that_has_to_be_encoded_is_not_waited_for_in_the_event_loop(client, shop, monkeypatch):
    recommend, in_the_loop, caller = shop.live.recommend, [], client("operator")

    def watched(*given, **named):
        in_the_loop.append(asyncio._get_running_loop() is not None)
        return recommend(*given, **named)

    def answered_in_the_loop(user):
        assert caller.get(f"/v1/recommendations/{user}").status_code == (404 if user == "nobody" else 200)
        return in_the_loop.pop()

    monkeypatch.setattr(shop.live, "recommend", watched)
    encoded = {user: not shop.live.may_wait_for(user) for user in ("ann", "bob", "cy")}
    assert sum(encoded.values()) == 1  # when it was loaded, the server warmed up with one
    assert {user: answered_in_the_loop(user) for user in encoded} == encoded
    assert all(map(answered_in_the_loop, encoded))
    assert not answered_in_the_loop("nobody")
    caller.post("/v1/erasure-requests", json={"user_id": "cy", "item_ids": ["c"]})
    assert [answered_in_the_loop("cy") for _ in range(2)] == [False, False]  # their own row is not kept
