"""Hidden items and attributes by HTTP: what the command declares, and no more."""

import asyncio
import json

import pytest

from erasable.errors import WorkspaceBusy
from erasable.operations import DiskStorage, verify
from erasable.operations.declared_items import DeclaredItems, declare_items, items_of, read_declared
from erasable.proof.log import records_of
from erasable.requests import Request
from erasable.service._service import Service
from erasable.service.api import _items as items
from erasable.service.settings import ServiceSettings
from erasable.workspace.files import writer_lock
from kit.copies import copy_of

PATH = "/v1/items"
ATTRIBUTES = {
    "a": {"kind": "book", "price": 5, "fresh": True},
    "b": {"kind": "book", "price": 30.5, "fresh": None},
    "c": {"kind": "cd", "price": 12, "fresh": False},
    "d": {"kind": "cd"},
    "new": {"kind": "book", "price": 1},
}
NOTHING = {"items": 6, "declared": 0, "attributes": [], "hidden": [], "unknown": 0}


@pytest.fixture
def settings():
    return ServiceSettings(batch_window=0)


@pytest.fixture
def operator(client):
    return client("operator")


def offered(caller, **body):
    """Which items are recommended to ann and bob."""
    answer = caller.post("/v1/recommendations", json={"user_ids": ["ann", "bob"], "seen": True, "k": 100, **body})
    assert answer.status_code == 200, answer.text
    return [{item["item_id"] for item in one["items"]} for one in answer.json()["recommendations"]]


def records(shop):
    with shop.storage.reading() as session:
        return [one["what"] for one in records_of(session.documents().records())]


def declared(folder):
    with DiskStorage(folder).reading() as session:
        return DeclaredItems(session.declared_items()).encoded()


class TestWhatIsDeclared:
    def test_a_hidden_item_is_recommended_to_nobody_once_it_is_answered_and_comes_back(self, operator, shop):
        before = operator.post("/v1/recommendations", json={"user_ids": ["ann", "bob"], "seen": True}).json()
        answer = operator.post(PATH, json={"hide": ["b", "f"]})
        assert (answer.status_code, answer.json()) == (200, {**NOTHING, "hidden": ["b", "f"]})
        assert operator.get(PATH).json() == answer.json()
        assert offered(operator) == [{*"acde"}] * 2
        assert items_of(shop.storage).hidden == ("b", "f")
        answer = operator.post(PATH, json={"hide": ["a"], "show": ["b", "f"]})
        assert answer.json()["hidden"] == ["a"]
        operator.post(PATH, json={"show": ["a"]})
        assert operator.post("/v1/recommendations", json={"user_ids": ["ann", "bob"], "seen": True}).json() == before

    def test_attributes_filter_and_are_the_bytes_that_the_command_writes(self, operator, shop, served, tmp_path):
        answer = operator.post(PATH, json={"attributes": ATTRIBUTES}).json()
        assert answer == {**NOTHING, "declared": 5, "attributes": ["kind", "price", "fresh"], "unknown": 1}
        assert offered(operator, where="kind == 'cd' or price < 6") == [{*"acd"}] * 2
        assert offered(operator, where="fresh == true") == [{"a"}] * 2
        rows = ["item_id,kind,price,fresh", "a,book,5,true", "b,book,30.5,", "c,cd,12,false", "d,cd,,", "new,book,1,"]
        (tmp_path / "items.csv").write_text("\n".join(rows) + "\n")
        other = copy_of(served, tmp_path / "other")
        declare_items(DiskStorage(other), table=read_declared(str(tmp_path / "items.csv")))
        assert declared(shop.folder) == declared(other)

    def test_everything_in_one_change_is_recorded_once_as_by_the_command_and_a_repeat_is_not(self, operator, shop):
        body, mark = {"hide": ["new", "b"], "attributes": ATTRIBUTES}, shop.storage.mark()
        first = operator.post(PATH, json=body).json()
        assert (first["hidden"], first["declared"]) == (["b", "new"], 5)
        assert shop.storage.mark() != mark
        mark = shop.storage.mark()
        assert operator.post(PATH, json=body).json() == first
        assert operator.post(PATH, json={"hide": ["b"]}).json() == first
        assert shop.storage.mark() == mark
        assert records(shop) == ["learn", "items"]
        assert shop.live.version == 1

    def test_new_attributes_replace_those_before_and_hidden_items_stay(self, operator):
        operator.post(PATH, json={"hide": ["a"], "attributes": ATTRIBUTES})
        found = operator.post(PATH, json={"attributes": {"b": {"colour": "red"}, "7": {"colour": None}}}).json()
        assert (found["attributes"], found["declared"], found["hidden"]) == (["colour"], 1, ["a"])

    def test_other_servers_of_the_workspace_follow(self, operator, shop, clock):
        other = Service.open(shop.folder, shop.settings, clock)
        operator.post(PATH, json={"hide": ["b"]})
        other.live.follow()
        assert other.live.served.declared.hidden == {"b"}
        other.database.close()

    def test_it_outlives_an_erasure_which_is_certified_beside_it(self, operator, shop, worker):
        operator.post(PATH, json={"hide": ["b"], "attributes": ATTRIBUTES})
        shop.reception.submit(Request("eve"), "officer 1")
        worker.step()
        shop.reception.follow()
        assert operator.get(PATH).json()["hidden"] == ["b"]
        assert shop.live.erasures == 1
        assert verify(shop.storage).identical

    def test_the_line_of_output_says_who_and_how_many(self, operator, capsys):
        operator.post(PATH, json={"hide": ["b"], "attributes": ATTRIBUTES})
        line = json.loads(capsys.readouterr().err.splitlines()[-1])
        assert line.pop("actor").startswith("operator")
        del line["at"]
        assert line == {"event": "items declared", "hide": 1, "show": 0, "attributes": 5}


class TestWhoMay:
    @pytest.mark.parametrize("role", ["application", "officer"])
    def test_operators_alone_declare_and_everyone_with_a_token_is_told(self, client, operator, shop, role):
        assert client(role).post(PATH, json={"hide": ["b"]}).status_code == 403
        assert items_of(shop.storage).hidden == ()
        operator.post(PATH, json={"hide": ["b"]})
        assert client(role).get(PATH).json() == {**NOTHING, "hidden": ["b"]}

    def test_who_asks_to_be_erased_changes_nothing_that_is_told(self, client, operator):
        application = client("application")
        before = application.get(PATH).content
        operator.post("/v1/erasure-requests", json={"user_id": "eve"})  # who alone has f
        assert application.get(PATH).content == before


class TestWhatIsRefused:
    @pytest.mark.parametrize(
        ("body", "status", "said"),
        [
            ({}, 422, "give hide, show or attributes"),
            ({"hide": []}, 422, "give hide, show or attributes"),
            ({"hide": "b"}, 422, "body.hide"),
            ({"hide": [""]}, 422, "body.hide.0"),
            ({"hide": ["\ud800"]}, 422, "body.hide.0"),
            ({"hide": ["b"] * 10_001}, 422, "10000"),
            ({"hide": ["b"], "all": True}, 422, "body.all"),
            ({"hide": ["zz"]}, 404, "no item 'zz'"),
            ({"show": ["zz"], "attributes": ATTRIBUTES}, 404, "no item 'zz'"),
            ({"hide": ["b"], "show": ["b"]}, 422, "name it once"),
            ({"attributes": {}}, 422, "body.attributes"),
            ({"attributes": {"a": {}}}, 422, "no attribute"),
            ({"attributes": {"a": "book"}}, 422, "body.attributes.a"),
            ({"attributes": {"": {"x": 1}}}, 422, "body.attributes"),
            ({"attributes": {"a": {"": 1}}}, 422, "body.attributes.a"),
            ({"attributes": {"a": {"x" * 101: 1}}}, 422, "body.attributes.a"),
            ({"attributes": {"a": {"x": [1]}}}, 422, "body.attributes.a.x"),
            ({"attributes": {"a": {"x": "\ud800"}}}, 422, "body.attributes.a.x"),
            ({"attributes": {"a": {"\ud800": 1}}}, 422, "body.attributes.a"),
            ({"attributes": {"a": {"x": 1}, "b": {"x": "1"}}}, 422, "the column x mixes"),
            ({"attributes": {"a": {"x": 1.5}, "b": {"x": True}}}, 422, "the column x mixes"),
            ({"attributes": {"a": {"x": 2**63}}}, 422, "too large"),
            ({"attributes": {"a": {"x": 2**60 + 1}, "b": {"x": 0.5}}}, 422, "too large"),
            ({"attributes": {"a": {"item_id": "b"}}}, 422, "rename one"),
            ({"attributes": {"a": {"hidden_item": True}}}, 422, "rename it"),
            ({"attributes": {"a": {f"x{number}": 1 for number in range(101)}}}, 422, "leave some out"),
        ],
    )
    def test_it_says_what_and_nothing_is_changed(self, operator, shop, body, status, said):
        mark = shop.storage.mark()
        answer = operator.post(PATH, content=json.dumps(body), headers={"content-type": "application/json"})
        assert (answer.status_code, said in answer.text) == (status, True), answer.text
        assert answer.headers["content-type"] == "application/problem+json"
        assert shop.storage.mark() == mark

    @pytest.mark.parametrize("body", [b'{"hide": ["b"], "hide": ["c"]}', b'{"attributes": {"a": {"x": 1e999}}}'])
    def test_what_is_no_plain_json(self, operator, shop, body):
        answer = operator.post(PATH, content=body, headers={"content-type": "application/json"})
        assert answer.status_code in (400, 422)
        assert records(shop) == ["learn"]

    def test_a_body_beyond_the_limit(self, operator):
        assert operator.post(PATH, json={"hide": ["x" * 1000] * 1001}).status_code == 413


class TestWhileAnotherWrites:
    """The worker holds the workspace while it trains, as does a command."""

    def test_it_is_tried_for_a_moment_and_then_refused_with_what_to_do(self, operator, shop, monkeypatch):
        monkeypatch.setattr(items, "_PATIENCE", 0.0)
        with writer_lock(shop.folder):
            answer = operator.post(PATH, json={"hide": ["b"]})
            assert offered(operator) == [{*"abcdef"}] * 2
        assert (answer.status_code, answer.headers["retry-after"]) == (503, "10")
        assert "try again soon" in answer.json()["detail"]
        assert items_of(shop.storage).hidden == ()
        assert operator.post(PATH, json={"hide": ["b"]}).status_code == 200

    def test_it_comes_after_a_short_write_and_holds_up_nobody_meanwhile(self, operator, shop, monkeypatch):
        declare, in_the_loop = items.declare_items, []

        def busy_twice(*given):
            in_the_loop.append(asyncio._get_running_loop() is not None)
            if len(in_the_loop) < 3:
                raise WorkspaceBusy("another command is writing")
            return declare(*given)

        monkeypatch.setattr(items, "declare_items", busy_twice)
        monkeypatch.setattr(items, "_PAUSE", 0.0)
        assert operator.post(PATH, json={"hide": ["b"]}).json()["hidden"] == ["b"]
        assert in_the_loop == [False] * 3
