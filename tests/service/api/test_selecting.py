"""Which items may be recommended, scores, histories and similar items: library, command and service say the same."""

import json
import sys

import pyarrow as pa
import pytest

from erasable import Recommender
from erasable.chain import Config
from erasable.cli.main import main
from erasable.errors import WrongUse
from erasable.operations import learn

LIKES = {"ann": "abc", "bob": "abd", "cat": "bce", "dan": "cd", "eve": "abcdef", "fay": "ade"}
ONE_EACH = [
    {"model": "ease", "regularisation": 1},
    {"model": "als", "factors": 4, "regularisation": 0.01},
    {"model": "nmf", "epochs": 2, "groups": 2},
    {"model": "dmf", "epochs": 2, "groups": 2},
]
PLANTED = ["planted-history-item-7c1f", "another-planted-item-0d9a"]


@pytest.fixture
def how():
    return ONE_EACH[0]


@pytest.fixture
def folder(swift_path, how):
    users, items = zip(*((user, item) for user, has in LIKES.items() for item in has), strict=True)
    config = Config(**how, holdout=0.2) if how["model"] == "ease" else Config(**how)
    learn(pa.table({"user_id": users, "item_id": items}), swift_path / "shop", config)
    return swift_path / "shop"


@pytest.fixture
def application(client):
    return client("application")


@pytest.fixture
def command(capsys, monkeypatch, folder):
    """What the command answers in JSON, or says where it refuses."""

    def call(name, *options):
        monkeypatch.setattr(sys, "argv", ["erasable", name, str(folder), *options, "--json"])
        capsys.readouterr()
        with pytest.raises(SystemExit) as end:
            main()
        said = capsys.readouterr()
        return json.loads(said.out) if not end.value.code else said.err

    return call


def pairs(items):
    return [(item["item_id"], item["score"]) for item in items]


def in_service(application, **body):
    answer = application.post("/v1/recommendations", json=body)
    assert answer.status_code == 200, answer.text
    return {one["user_id"]: pairs(one["items"]) for one in answer.json()["recommendations"]}


def in_library(folder, *given, **named):
    found = Recommender.load(folder, progress=False).recommend(*given, **named).to_pylist()
    return {user: pairs(row for row in found if row["user_id"] == user) for user in {row["user_id"] for row in found}}


def of_command(answer):
    return {one["user_id"]: pairs(one["items"]) for one in answer["recommendations"]}


class TestASelection:
    @pytest.mark.parametrize(
        ("body", "options"),
        [
            ({"items": ["c", "e", "f"]}, ["--items", "c,e", "--items", "f"]),
            ({"exclude": ["e", "new"]}, ["--exclude", "e,new"]),
            ({"seen": True}, ["--seen"]),
            ({"items": ["a", "c"], "exclude": ["c"], "seen": True}, ["--items", "a,c", "--exclude", "c", "--seen"]),
        ],
    )
    def test_is_the_same_everywhere(self, application, command, folder, body, options):
        served = in_service(application, user_ids=["ann", "bob"], **body)
        assert served == of_command(command("recommend", "--user", "ann", "--user", "bob", *options))
        assert served == in_library(folder, ["ann", "bob"], **body)
        assert served != in_service(application, user_ids=["ann", "bob"])

    def test_for_each_user_is_the_same_everywhere(self, application, command, folder, tmp_path):
        (tmp_path / "stock.csv").write_text("user_id,item_id\nann,e\nann,new\nbob,c\n")
        body = {"available": {"ann": ["e", "new"], "bob": ["c"]}}
        served = in_service(application, user_ids=["ann", "bob", "cat"], **body)
        assert [[item for item, _ in served[user]] for user in ("ann", "bob")] == [["e"], ["c"]]
        assert served["cat"] == in_service(application, user_ids=["cat"])["cat"]
        users = ("--user", "ann", "--user", "bob", "--user", "cat")
        assert served == of_command(command("recommend", *users, "--available", str(tmp_path / "stock.csv")))
        assert served == in_library(folder, ["ann", "bob", "cat"], **body)

    def test_an_unknown_item_is_refused_with_what_to_do(self, application, command):
        answer = application.post("/v1/recommendations", json={"user_ids": ["ann"], "items": ["a", "zz"]})
        assert answer.status_code == 404
        assert "the catalogue has no item 'zz': check the id" in answer.json()["detail"]
        assert "(in HTTP: available)" in answer.json()["detail"]
        assert "or give --available FILE, which passes over" in command("recommend", "--user", "ann", "--items", "zz")

    @pytest.mark.parametrize(
        ("body", "place"),
        [
            ({"history": []}, "body.history"),
            ({"user_ids": ["ann"], "items": {"ann": [""]}}, "body.items.ann.0"),
            ({"user_ids": ["ann"], "history": ["a"]}, "body"),
        ],
    )
    def test_a_fault_is_at_a_place_that_the_caller_wrote(self, application, body, place):
        answer = application.post("/v1/recommendations", json=body)
        assert answer.status_code == 422
        faults = answer.json()["faults"]
        assert place in {one["place"] for one in faults}
        assert not any("[" in one["place"] or "Value error" in one["message"] for one in faults)

    def test_who_has_asked_is_unknown_whatever_is_selected(self, application):
        application.post("/v1/erasure-requests", json={"user_id": "eve"})
        found = application.post("/v1/recommendations", json={"user_ids": ["ann", "eve"], "seen": True}).json()
        assert [one["user_id"] for one in found["recommendations"]] == ["ann"]
        assert found["unknown"] == [1]
        assert application.post("/v1/recommendations", json={"user_ids": ["ann"], "items": ["f"]}).status_code == 404

    def test_reasons_come_with_it(self, application, command):
        body = {"user_ids": ["dan"], "items": ["a", "b"], "why": True}
        (found,) = application.post("/v1/recommendations", json=body).json()["recommendations"]
        (expected,) = command("recommend", "--user", "dan", "--items", "a,b", "--why")["recommendations"]
        assert [item["because"] for item in found["items"]] == [item["because"] for item in expected["items"]]
        assert any(item["because"] for item in found["items"])


class TestDeclaredItems:
    """Attributes and hidden items are declared by the command, and hold in the service and the library."""

    @pytest.fixture
    def declared(self, command, tmp_path, application):
        """Declare, after the server has started."""
        rows = ["item_id,kind,price", "a,book,5", "b,book,30", "c,cd,12", "d,cd,", "new,book,1"]
        (tmp_path / "items.csv").write_text("\n".join(rows) + "\n")
        return command("items", "--set", str(tmp_path / "items.csv"), "--hide", "b,f")

    def test_the_command_says_what_is_declared(self, declared, command):
        assert declared == command("items")
        about = {"items": 6, "declared": 5, "unknown": 1}
        assert declared == {**about, "attributes": ["kind", "price"], "hidden": ["b", "f"]}

    def test_hidden_items_are_gone_from_the_service_and_come_back(self, application, command, shop, declared, folder):
        before = in_service(application, user_ids=["ann", "dan"], seen=True)
        assert {item for had in before.values() for item, _ in had} == set("abcdef")
        shop.reception.follow()
        hidden = in_service(application, user_ids=["ann", "dan"], seen=True)
        assert hidden == {user: [one for one in had if one[0] not in "bf"] for user, had in before.items()}
        assert hidden == of_command(command("recommend", "--user", "ann", "--user", "dan", "--seen"))
        assert hidden == in_library(folder, ["ann", "dan"], seen=True)
        found = application.get("/v1/recommendations/dan").json()["items"]
        assert {item["item_id"] for item in found} == {"a", "e"}
        command("items", "--show", "b,f")
        shop.reception.follow()
        assert in_service(application, user_ids=["ann", "dan"], seen=True) == before

    def test_a_filter_is_the_same_everywhere(self, application, command, shop, declared, folder):
        shop.reception.follow()
        where = "kind in ('cd') or not price > 20"
        served = in_service(application, user_ids=["ann", "bob"], seen=True, where=where)
        assert {item for had in served.values() for item, _ in had} == {"a", "c", "d"}
        users = ("--user", "ann", "--user", "bob")
        assert served == of_command(command("recommend", *users, "--seen", "--where", where))
        assert served == in_library(folder, ["ann", "bob"], seen=True, where=where)

    def test_a_filter_that_makes_no_sense_is_refused(self, application, command, shop, declared):
        shop.reception.follow()
        answer = application.post("/v1/recommendations", json={"user_ids": ["ann"], "where": "colour == 'red'"})
        assert answer.status_code == 422
        assert "no column 'colour'" in answer.json()["detail"]
        assert "no column 'colour'" in command("recommend", "--user", "ann", "--where", "colour == 'red'")

    def test_similar_items_are_filtered_the_same_everywhere(self, application, command, shop, declared, folder):
        def everywhere(options, **given):
            answer = application.get("/v1/similar-items/a", params=given).json()
            (printed,) = command("similar", "--item", "a", *options)["similar"]
            found = Recommender.load(folder, progress=False).similar_items("a", **given).to_pylist()
            assert pairs(printed["items"]) == pairs(answer["items"])
            assert [(row["similar_id"], row["score"]) for row in found] == pairs(answer["items"])
            return pairs(answer["items"])

        shop.reception.follow()
        whole = everywhere(())
        assert everywhere(("--exclude", f"{whole[0][0]},zz"), exclude=[whole[0][0], "zz"]) == whole[1:]
        some = [pair for pair in whole if pair[0] == "c"]  # b is hidden
        stock = folder.parent / "stock.csv"
        stock.write_text("sku;qty\nb;1\nc;2\nzz;3\n")
        assert everywhere(("--available", str(stock)), available=["b", "c", "zz"]) == some != whole
        where = "kind == 'cd' and price > 6"
        assert everywhere(("--where", where), where=where) == some

    def test_similar_items_are_the_same_for_everyone(self, folder):
        with pytest.raises(WrongUse, match="names no users"):
            Recommender.load(folder, progress=False).similar_items("a", exclude={"ann": ["b"]})

    def test_what_the_command_refuses(self, command, tmp_path):
        assert "no item 'zz'" in command("items", "--hide", "zz")
        assert "does not exist" in command("items", "--set", str(tmp_path / "none.csv"))
        assert "give it too, or leave both out" in command("items", "--item-column", "a")
        assert command("items") == {"items": 6, "declared": 0, "attributes": [], "hidden": [], "unknown": 0}

    def test_learning_may_declare_them(self, folder, tmp_path, monkeypatch):
        (tmp_path / "items.csv").write_text("item_id,kind\na,book\n")
        (tmp_path / "rows.csv").write_text("user_id,item_id\ngil,a\ngil,g\n")
        words = ["learn", tmp_path / "rows.csv", "--into", folder, "--more", "--items", tmp_path / "items.csv"]
        monkeypatch.setattr(sys, "argv", ["erasable", *map(str, words)])
        with pytest.raises(SystemExit) as end:
            main()
        assert not end.value.code
        assert [item for item, _ in in_library(folder, "dan", where="kind == 'book'")["dan"]] == ["a"]


@pytest.mark.parametrize("how", ONE_EACH, ids=lambda how: how["model"])
class TestOfEachModel:
    def test_a_history_is_answered_alike(self, application, command, folder):
        body = {"history": ["a", "b"], "k": 3, "exclude": ["c"]}
        served = in_service(application, **body)
        assert len(served[""]) == 3
        assert served == of_command(command("recommend", "--history", "a,b", "-k", "3", "--exclude", "c"))
        assert served == in_library(folder, history=["a", "b"], k=3, exclude=["c"])

    def test_scores_are_those_of_recommending(self, application, command, folder):
        recommended = dict(in_service(application, user_ids=["ann"], seen=True, k=10)["ann"])
        items = ["f", "a", "zz"]
        answer = application.post("/v1/scores", json={"user_id": "ann", "item_ids": items}).json()
        found = pairs(answer["items"])
        assert found == [("f", recommended["f"]), ("a", recommended["a"]), ("zz", None)]
        (printed,) = command("recommend", "--user", "ann", "--items", "f,a,zz", "--scores")["scores"]
        assert found == pairs(printed["items"])
        assert found == pairs(Recommender.load(folder, progress=False).score("ann", items).to_pylist())

    def test_scores_of_a_history(self, application, command, folder):
        body = {"history": {"a": 1.0, "b": None, "zz": None}, "item_ids": ["c", "a"]}
        answer = application.post("/v1/scores", json=body).json()
        recommended = dict(in_service(application, history=["a", "b"], seen=True, k=10)[""])
        assert pairs(answer["items"]) == [("c", recommended["c"]), ("a", recommended["a"])]
        assert answer["left_out"] == ["zz"]
        printed = command("recommend", "--history", "a,b,zz", "--items", "c,a", "--scores")
        assert (pairs(printed["scores"][0]["items"]), printed["left_out"]) == (pairs(answer["items"]), ["zz"])
        rec = Recommender.load(folder, progress=False)
        assert pairs(rec.score(None, ["c", "a"], history=["a", "b"]).to_pylist()) == pairs(answer["items"])

    def test_similar_items(self, application, command, folder):
        answer = application.get("/v1/similar-items/a", params={"k": 3}).json()
        assert answer["items"]
        assert "a" not in {item["item_id"] for item in answer["items"]}
        (printed,) = command("similar", "--item", "a", "-k", "3")["similar"]
        assert printed == {"item_id": "a", "items": answer["items"]}
        found = Recommender.load(folder, progress=False).similar_items("a", k=3).to_pylist()
        assert [(row["similar_id"], row["score"]) for row in found] == pairs(answer["items"])


class TestAHistoryLeavesNothing:
    def test_neither_in_a_file_nor_in_the_log(self, application, folder, capfd, caplog):
        before = {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
        caplog.set_level("DEBUG")
        for body in ({"history": ["a", *PLANTED]}, {"history": dict.fromkeys(PLANTED, 1.0), "why": True}):
            assert application.post("/v1/recommendations", json=body).json()["left_out"] == PLANTED
        application.post("/v1/scores", json={"history": PLANTED, "item_ids": ["a"]})
        Recommender.load(folder, progress=False).recommend(history=["a", *PLANTED])
        after = {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
        assert {path.name for path in after.keys() - before.keys()} <= {"requests.sqlite-wal", "requests.sqlite-shm"}
        written = b"".join(after.values()).decode("latin-1") + caplog.text + "".join(capfd.readouterr())
        assert not [item for item in PLANTED if item in written]

    def test_of_nothing_known_gets_popular_items(self, application):
        body = {"history": PLANTED, "k": 2}
        answer = application.post("/v1/recommendations", json=body).json()
        assert [item["popular"] for item in answer["recommendations"][0]["items"]] == [True, True]
        assert answer["left_out"] == PLANTED


class TestWhatIsRefused:
    @pytest.mark.parametrize(
        "body",
        [
            {"history": ["a"], "user_ids": ["ann"]},
            {"history": []},
            {"history": {"a": "x"}},
            {"user_ids": ["ann"], "items": "a"},
            {"user_ids": ["ann"], "items": {"ann": "a"}},
            {"user_ids": ["ann"], "seen": "yes"},
        ],
    )
    def test_a_body_that_does_not_fit(self, application, body):
        assert application.post("/v1/recommendations", json=body).status_code == 422

    @pytest.mark.parametrize(
        "body",
        [
            {"item_ids": ["a"]},
            {"user_id": "ann"},
            {"user_id": "ann", "item_ids": []},
            {"user_id": "ann", "history": ["a"]},
        ],
    )
    def test_scores_of_nobody_or_nothing(self, application, body):
        assert application.post("/v1/scores", json=body).status_code == 422

    def test_scores_of_who_is_unknown_or_has_asked(self, application, client, shop, folder):
        application.post("/v1/erasure-requests", json={"user_id": "dan"})
        asked, never = (
            application.post("/v1/scores", json={"user_id": user, "item_ids": ["a"]}) for user in ("dan", "zzz")
        )
        assert (asked.status_code, never.status_code) == (404, 404)
        assert asked.text.replace("dan", "zzz") == never.text

    def test_an_unknown_item_has_no_similar_ones(self, application, command):
        assert application.get("/v1/similar-items/zz").status_code == 404
        assert "the catalogue has no item 'zz': check the id" in command("similar", "--item", "zz")

    def test_an_item_of_someone_suppressed_alone_is_unknown(self, application, command, folder):
        application.post("/v1/erasure-requests", json={"user_id": "eve"})
        assert application.get("/v1/similar-items/f").status_code == 404
        found = application.get("/v1/similar-items/a", params={"k": 10}).json()["items"]
        assert "f" not in {item["item_id"] for item in found}

    def test_scores_go_with_named_users_alone(self, command):
        assert "leave out --all, --why and --out" in command("recommend", "--all", "--items", "a", "--scores")
        assert "and --where" in command(
            "recommend", "--user", "ann", "--items", "a", "--scores", "--where", "price < 3"
        )
        assert "name at least one item" in command("recommend", "--user", "ann", "--scores")
