"""`erasable recommend`: for whom, how many, in which order, and into which file."""

import json
import os
import subprocess
import sys

import pyarrow.csv as pacsv
import pyarrow.parquet as pq
import pytest
from pyarrow import feather

from erasable import Recommender

COLUMNS = ["user_id", "item_id", "score", "rank", "popular"]
# Run a command as its own process does, then tell what was loaded on the way.
LOADED = """
import sys
from erasable.__main__ import _command
try:
    _command()
except SystemExit as end:
    assert not end.code
print(*sorted(sys.modules), file=sys.stderr)
"""
# Each takes a tenth of the time that recommending to one user takes, or more, or comes with work that is not done here.
NOT_NEEDED = {
    *("numba", "llvmlite", "scipy", "pandas", "gensim", "jinja2", "ray", "fastapi", "matplotlib"),
    *("pyarrow.dataset", "erasable.evaluation", "erasable.operations.learn", "erasable.operations.forget"),
    *("erasable.recommender", "erasable.scan", "erasable.service"),
}


def as_rows(recommendations):
    return [
        {"user_id": one["user_id"], **item}
        for one in recommendations
        for item in sorted(one["items"], key=lambda i: i["rank"])
    ]


@pytest.fixture
def recommended(run, learned):
    """Return what --json lists for some options."""

    def call(*options: object):
        result = run("recommend", learned, *options, "--json")
        assert (result.code, result.err) == (0, "")
        return result.json["recommendations"]

    return call


class TestTheList:
    def test_ranks_ascend_from_1_and_scores_descend(self, recommended):
        (one,) = recommended("--user", "ann")
        scores = [item["score"] for item in one["items"]]
        assert [item["rank"] for item in one["items"]] == [1, 2, 3]
        assert scores == sorted(scores, reverse=True)
        assert len(set(scores)) == 3

    def test_holds_everything_in_the_catalogue_but_what_the_user_has(self, recommended, facts):
        for one in recommended("--all", "-k", 100):
            has = facts.ratings[one["user_id"]]
            assert sorted(item["item_id"] for item in one["items"]) == sorted(set(facts.items) - set(has))

    def test_a_shorter_list_is_the_beginning_of_a_longer_one(self, recommended):
        (long,), (short,) = recommended("--user", "bob", "-k", 3), recommended("--user", "bob", "-k", 2)
        assert short["items"] == long["items"][:2]

    def test_a_user_who_has_every_item_is_listed_with_an_empty_list(self, recommended, run, learned, facts):
        found = recommended("--user", facts.every_item, "--user", "ann")
        assert [one["user_id"] for one in found] == [facts.every_item, "ann"]
        assert found[0]["items"] == []
        words = run("recommend", learned, "--user", facts.every_item).out
        assert words.splitlines() == [
            "user  rank  item  score",
            "user eve has every item that anyone has: there is nothing to recommend",
        ]

    def test_one_thread_and_two_give_the_same_bytes(self, run, learned):
        results = [run("recommend", learned, "--all", "--json", "--threads", threads) for threads in (1, 2)]
        assert results[0].out == results[1].out

    def test_words_show_a_table_of_the_same(self, run, learned, recommended):
        (one,) = recommended("--user", "ann", "-k", 2)
        lines = run("recommend", learned, "--user", "ann", "-k", 2).out.splitlines()
        assert [line.split() for line in lines] == [
            ["user", "rank", "item", "score"],
            *(["ann", str(item["rank"]), item["item_id"], f"{item['score']:.4f}"] for item in one["items"]),
        ]


class TestForWhom:
    def test_users_come_in_the_order_given_and_once_each(self, recommended):
        found = recommended("--user", "dan", "--user", "ann", "--user", "dan")
        assert [one["user_id"] for one in found] == ["dan", "ann"]

    def test_all_lists_every_user_once_with_the_list_that_each_gets_alone(self, recommended, facts):
        found = recommended("--all")
        assert sorted(one["user_id"] for one in found) == sorted(facts.ratings)
        assert [one for one in found if one["user_id"] == "cat"] == recommended("--user", "cat")

    @pytest.mark.parametrize(
        "text", ["dan\nann\n", "dan\r\n\r\nann", "user_id\ndan\nann\n", "user_id,item_id\ndan,c\ndan,d\nann,a\n"]
    )
    def test_a_file_names_users(self, recommended, tmp_path, text):
        (tmp_path / "users").write_bytes(text.encode())
        assert recommended("--users-file", tmp_path / "users") == recommended("--user", "dan", "--user", "ann")

    def test_nobody_is_wrong_use(self, run, learned):
        result = run("recommend", learned)
        assert (result.code, result.out) == (2, "")
        assert "give --user U (may be repeated), --users-file F, --all or --history I,I" in result.err

    @pytest.mark.parametrize(
        ("options", "said"),
        [
            (("--all", "--user", "ann"), "--user and --all"),
            (("--history", "a", "--user", "ann"), "--user and --history"),
            (("--history", "a", "--users-file", "F"), "--users-file and --history"),
            (("--history", "a", "--users-file", "F", "--all"), "--users-file, --all and --history"),
        ],
    )
    def test_several_ways_are_wrong_use_and_named(self, run, learned, options, said):
        result = run("recommend", learned, *options)
        assert (result.code, result.out) == (2, "")
        assert f"{said} each say for whom: give only one of them" in result.err

    @pytest.mark.parametrize(
        ("text", "said"),
        [(None, "users: can't be read"), ("", "users: names no user"), ("user_id\n", "users: names no user")],
    )
    def test_a_file_without_users_is_refused(self, run, learned, tmp_path, text, said):
        if text is not None:
            (tmp_path / "users").write_text(text)
        result = run("recommend", learned, "--users-file", tmp_path / "users")
        assert (result.code, result.out) == (1, "")
        assert said in result.err
        assert "one user id a line" in result.err

    def test_an_unknown_user_is_refused_and_nobody_gets_anything(self, run, learned, tmp_path):
        result = run("recommend", learned, "--user", "ann", "--user", "zoe", "--out", tmp_path / "out.csv")
        assert (result.code, result.out) == (1, "")
        assert (
            "nothing is held about the user 'zoe': check the id, or give --fallback popular or --ignore-unknown"
            in result.err
        )
        assert not (tmp_path / "out.csv").exists()

    def test_unknown_users_are_left_out_where_that_is_wanted_and_named(self, run, learned, recommended, tmp_path):
        (tmp_path / "users").write_text("zoe\ndan\nyan\nann\n")
        options = ("--users-file", tmp_path / "users", "--ignore-unknown")
        assert recommended(*options) == recommended("--user", "dan", "--user", "ann")
        assert run("recommend", learned, *options, "--json").json["unknown"] == ["zoe", "yan"]
        for more in ((), ("--out", tmp_path / "out.csv"), ("--items", "a", "--scores")):
            said = run("recommend", learned, *options, *more)
            assert said.code == 0
            assert said.out.splitlines()[-1] == (
                "left out, since nothing is held about them or they have asked to be erased: zoe, yan"
            )
        assert "unknown" not in run("recommend", learned, "--user", "ann", "--ignore-unknown", "--json").json

    def test_unknown_users_are_left_out_or_get_popular_items(self, run, learned):
        said = run("recommend", learned, "--user", "zoe", "--ignore-unknown", "--fallback", "popular")
        assert (said.code, "leave out one of them" in said.err) == (2, True)

    @pytest.mark.parametrize("k", [0, -1, 100_001])
    def test_a_number_of_items_that_makes_no_sense_is_wrong_use(self, run, learned, k):
        assert run("recommend", learned, "--user", "ann", "-k", k).code == 2


class TestPopularFallback:
    def test_an_unknown_user_gets_the_items_that_most_have_and_known_ones_their_own(self, recommended, facts):
        counts = {item: sum(item in has for has in facts.ratings.values()) for item in facts.items}
        assert counts == {"a": 5, "b": 5, "c": 6, "d": 5, "e": 5, "f": 1}
        known, unknown = recommended("--user", "ann", "--user", "zoe", "--fallback", "popular", "-k", 3)
        assert [known] == recommended("--user", "ann", "-k", 3)
        assert unknown == {
            "user_id": "zoe",
            "items": [
                {"item_id": "c", "score": 6.0, "rank": 1, "popular": True},
                {"item_id": "a", "score": 5.0, "rank": 2, "popular": True},
                {"item_id": "b", "score": 5.0, "rank": 3, "popular": True},
            ],
        }

    def test_words_mark_what_is_popular_and_say_what_its_score_is(self, run, learned):
        words = run("recommend", learned, "--user", "ann", "--user", "zoe", "--fallback", "popular", "-k", 1).out
        heading, known, unknown, below = words.splitlines()
        assert heading.split() == ["user", "rank", "item", "score", "popular"]
        assert (known.split()[0], len(known.split())) == ("ann", 4)
        assert unknown.split() == ["zoe", "1", "c", "6.0000", "yes"]
        assert below == "popular: the model gives no score for this item; the score shown is how many people have it"

    def test_the_counts_go_down_when_someone_is_forgotten(self, run, shop, facts):
        def counts():
            found = run("recommend", shop, "--user", "zoe", "--fallback", "popular", "--json").json["recommendations"]
            return {item["item_id"]: item["score"] for item in found[0]["items"]}

        before = counts()
        assert run("forget", shop, "--user", facts.long).code == 0
        assert counts() == {item: count - (item in facts.ratings[facts.long]) for item, count in before.items()}


class TestNobodyGetsAnything:
    """Where a list is empty, the reason is said."""

    @pytest.fixture
    def shop(self, run, ratings_file, tmp_path, swift_path):
        (tmp_path / "items.txt").write_text("a\nb\nc\nd\ne\nf\nNEW-1\n")
        settings = ("--model", "ease", "--catalogue", tmp_path / "items.txt", "--quiet")
        assert run("learn", ratings_file, "--into", swift_path / "shop", *settings).code == 0
        return swift_path / "shop"

    def test_the_item_that_is_left_has_no_score_and_nobody_has_it(self, run, shop):
        assert "0.0000" in run("recommend", shop, "--user", "ann", "--items", "NEW-1", "--scores").out
        for whom in (("--user", "ann"), ("--history", "a")):
            said = run("recommend", shop, *whom, "--items", "NEW-1").out.splitlines()[-1]
            assert said == (
                f"{'user ann' if 'ann' in whom else 'someone with this history'} gets nothing: the model has no score "
                "for the items that are left, and nobody it learned from has them"
            )

    def test_no_item_is_left(self, run, shop):
        for whom in (("--user", "ann"), ("--history", "a")):
            said = run("recommend", shop, *whom, "--items", "a").out.splitlines()[-1]
            assert said.endswith("gets nothing: none of the items that may be recommended is left")

    def test_who_has_everything_and_what_was_left_out_of_a_history_are_both_said(self, run, shop):
        said = run("recommend", shop, "--history", "a,b,c,d,e,f,zz").out.splitlines()[-2:]
        assert said == [
            "not in the catalogue, and left out of the history: zz",
            "someone with this history has every item that anyone has: there is nothing to recommend",
        ]
        told = run("recommend", shop, "--user", "eve").out.splitlines()[-1]
        assert told == "user eve has every item that anyone has: there is nothing to recommend"


class TestStockFiles:
    def test_a_table_of_a_shop_is_understood(self, run, learned, recommended, tmp_path):
        (tmp_path / "sold-out.csv").write_text("product_id;qty\n d ;0\ne;0\n")
        found = recommended("--user", "ann", "--exclude-file", tmp_path / "sold-out.csv")
        assert [item["item_id"] for item in found[0]["items"]] == ["f"]

    @pytest.mark.parametrize("whom", [("--user", "ann"), ("--history", "a"), ("--all",)])
    def test_a_list_of_which_nothing_is_known_is_doubted(self, run, learned, tmp_path, whom):
        (tmp_path / "stock").write_text("D\nE\n")
        for options in (("--json",), (), ("--out", tmp_path / "new.csv")):
            said = run("recommend", learned, *whom, "--exclude-file", tmp_path / "stock", *options)
            assert said.code == 0
            assert said.err == ("0 of 2 ids to leave out are in the catalogue: check the ids, exactly as in the data\n")
        assert run("recommend", learned, *whom, "--exclude", "D,E", "--quiet").err == ""
        available = run("recommend", learned, *whom, "--available", tmp_path / "stock")
        assert "0 of 2 ids that may be recommended are in the catalogue" in available.err
        assert run("recommend", learned, *whom, "--exclude", "D,e").err == ""


class TestIntoAFile:
    @pytest.mark.parametrize("name", ["out.csv", "out.parquet", "out.arrow", "out.CSV"])
    def test_the_file_holds_what_json_lists(self, run, learned, recommended, tmp_path, name):
        result = run("recommend", learned, "--all", "--out", tmp_path / name)
        assert result.out.splitlines() == [
            f"wrote recommendations for 7 of 8 users to {tmp_path / name}",
            "for 1 user nothing is left to recommend",
        ]
        readers = {".parquet": pq.read_table, ".arrow": feather.read_table}
        table = readers.get((tmp_path / name).suffix, pacsv.read_csv)(tmp_path / name)
        assert table.column_names == COLUMNS
        assert table.to_pylist() == as_rows(recommended("--all"))

    @pytest.mark.parametrize("name", ["out.json", "OUT.JSON"])
    def test_json_is_written_as_json_shows_it(self, run, learned, tmp_path, recommended, name):
        result = run("recommend", learned, "--all", "--out", tmp_path / name)
        assert result.out.splitlines() == [
            f"wrote recommendations for 7 of 8 users to {tmp_path / name}",
            "for 1 user nothing is left to recommend",
        ]
        assert json.loads((tmp_path / name).read_text()) == run("recommend", learned, "--all", "--json").json

    @pytest.mark.parametrize("name", ["out.csv", "out.json"])
    def test_the_count_is_of_users_who_have_a_list(self, run, learned, recommended, tmp_path, name):
        has_c = [one for one in recommended("--all", "--items", "c") if one["items"]]
        result = run("recommend", learned, "--all", "--items", "c", "--out", tmp_path / name)
        assert 0 < len(has_c) < 7
        assert f"wrote recommendations for {len(has_c)} of 8 users to" in result.out
        one = run("recommend", learned, "--user", "ann", "--out", tmp_path / name)
        assert one.out == f"wrote recommendations for 1 user to {tmp_path / name}\n"

    @pytest.mark.parametrize("name", ["out", "out.txt", "out.jsonl", "out.csv.gz"])
    def test_another_ending_is_refused_with_those_that_work(self, run, learned, tmp_path, name):
        result = run("recommend", learned, "--all", "--out", tmp_path / name)
        assert (result.code, result.out) == (2, "")
        assert "give --out a name that ends in .csv, .parquet, .arrow, .json" in result.err
        assert not (tmp_path / name).exists()

    def test_json_also_says_where(self, run, learned, tmp_path):
        found = run("recommend", learned, "--user", "ann", "--out", tmp_path / "out.csv", "--json").json
        assert found["out"] == str(tmp_path / "out.csv")
        assert len(found["recommendations"]) == 1

    @pytest.mark.parametrize(("place", "reason"), [("nowhere/out", "No such file or directory"), ("", "directory")])
    @pytest.mark.parametrize("ending", [".csv", ".json", ".parquet", ".arrow"])
    def test_a_file_that_can_not_be_written_is_wrong_use(self, run, learned, tmp_path, place, reason, ending):
        target = tmp_path / (place + ending if place else f"folder{ending}")
        if not place:
            target.mkdir()
        result = run("recommend", learned, "--all", "--out", target)
        assert (result.code, result.out) == (2, "")
        assert f"{target}: can't be written (" in result.err
        assert reason in result.err
        assert "give --out another file" in result.err

    @pytest.mark.parametrize("place", ["out.csv", "data/out.csv", "data/../out.csv"])
    def test_no_file_is_written_into_the_workspace_where_it_would_outlive_an_erasure(
        self, run, shop, content_of, place
    ):
        before = content_of(shop)
        result = run("recommend", shop, "--all", "--out", shop / place)
        assert (result.code, result.out) == (2, "")
        assert f"{shop / place} lies in the workspace, where it would outlive an erasure" in result.err
        assert content_of(shop) == before


def loaded_by(cache, *words):
    """Return what a command prints, and the modules that its process loads."""
    ended = subprocess.run(
        [sys.executable, "-c", LOADED, *map(str, words)],
        env={**os.environ, "NUMBA_CACHE_DIR": str(cache)},
        capture_output=True,
        text=True,
        check=True,
    )
    return ended.stdout, set(ended.stderr.splitlines()[-1].split())


@pytest.mark.parametrize("model", ["ease", "item-knn", "popular", "nmf"])
def test_recommending_to_one_user_compiles_nothing_and_loads_nothing_slow(run, ratings_file, tmp_path, model):
    assert run("learn", ratings_file, "--into", tmp_path / "shop", "--model", model, "--quiet").code == 0
    shown, loaded = loaded_by(tmp_path / "cache", "recommend", tmp_path / "shop", "--user", "ann", "--json")
    assert '"user_id": "ann"' in shown
    assert NOT_NEEDED & loaded == set()
    others = {"ease": "item_knn", "item-knn": "ease", "popular": "ease", "nmf": "ease"}
    assert f"erasable.models._{others[model]}" not in loaded
    assert not (tmp_path / "cache").exists()


def test_what_is_not_needed_is_found_where_it_is_loaded(ratings_file, tmp_path):
    _, loaded = loaded_by(tmp_path / "cache", "learn", ratings_file, "--into", tmp_path / "shop", "--model", "ease")
    assert {"numba", "llvmlite", "scipy", "erasable.operations.learn"} <= loaded & NOT_NEEDED
    assert [*(tmp_path / "cache").rglob("*.nb*")]


class TestAHistory:
    def test_items_are_separated_by_commas_or_the_option_is_repeated(self, recommended):
        (one,) = recommended("--history", "a,b")
        assert one["user_id"] == ""
        assert not {"a", "b"} & {item["item_id"] for item in one["items"]}
        assert recommended("--history", "b", "--history", "a") == [one]

    def test_blanks_around_ids_are_no_part_of_them(self, recommended, run, learned):
        assert recommended("--history", ' a , "b" ,c') == recommended("--history", "a,b,c")
        assert recommended("--user", "ann", "--items", "d, e") == recommended("--user", "ann", "--items", "d,e")
        assert "left out" not in run("recommend", learned, "--history", "a, b, ").out

    def test_each_counts_as_rated_highest_and_the_help_says_who_takes_ratings(self, run, recommended, learned):
        (one,) = recommended("--history", "a,b")
        found = Recommender.load(learned, progress=False).recommend(history={"a": 5, "b": 5})
        assert [item["score"] for item in one["items"]] == found["score"].to_pylist()
        said = " ".join(run("recommend", "--help").out.split())
        assert "Each counts as rated highest: ratings can be given to the library and the service." in said

    def test_unknown_items_are_left_out_and_said(self, run, learned):
        said = run("recommend", learned, "--history", 'a,"b, the second"')
        assert (said.code, "b, the second" in said.out) == (0, True)
        told = run("recommend", learned, "--history", "a,zz", "--json").json
        assert told["left_out"] == ["zz"]

    def test_it_stands_alone(self, run, learned):
        for more in (["--all"], ["--user", "ann"]):
            said = run("recommend", learned, "--history", "a", *more)
            assert (said.code, "--history" in said.err) == (2, True)


class TestWhy:
    @pytest.fixture
    def shop(self, run, ratings_file, swift_path):
        settings = ("--model", "ease", "--neighbours", 3, "--regularisation", 2, "--quiet")
        assert run("learn", ratings_file, "--into", swift_path / "shop", *settings).code == 0
        return swift_path / "shop"

    def test_json_names_own_items_and_their_weights(self, run, shop, facts):
        plain = run("recommend", shop, "--all", "--json").json["recommendations"]
        found = run("recommend", shop, "--all", "--why", "--json").json["recommendations"]
        reasons = [(one["user_id"], item["score"], item.pop("because")) for one in found for item in one["items"]]
        assert found == plain
        assert sum(len(because) for _, _, because in reasons) > 10
        for user, score, because in reasons:
            assert all(own.keys() == {"item_id", "weight"} for own in because)
            assert {own["item_id"] for own in because} <= facts.ratings[user].keys()
            if len(because) == 3:  # of three neighbours
                assert sum(own["weight"] for own in because) == pytest.approx(score, rel=1e-5)

    def test_words_show_the_same_after_each_item(self, run, shop):
        (one,) = run("recommend", shop, "--user", "ann", "-k", 1, "--why", "--json").json["recommendations"]
        heading, line, legend = run("recommend", shop, "--user", "ann", "-k", 1, "--why").out.splitlines()
        because = ", ".join(f"{own['item_id']} ({own['weight']:.4f})" for own in one["items"][0]["because"])
        assert because
        assert heading.endswith("score  because of")
        assert line.endswith(f"  {because}")
        assert legend.startswith("because of: the user's own items that add most to the score")

    def test_a_history_is_told_why_too(self, run, shop):
        (one,) = run("recommend", shop, "--history", "a,b", "--why", "--json").json["recommendations"]
        named = {own["item_id"] for item in one["items"] for own in item["because"]}
        assert named
        assert named <= {"a", "b"}

    def test_a_json_file_says_why_and_others_are_refused(self, run, shop, tmp_path):
        assert run("recommend", shop, "--user", "ann", "--why", "--out", tmp_path / "r.json").code == 0
        written = json.loads((tmp_path / "r.json").read_text())
        assert written == run("recommend", shop, "--user", "ann", "--why", "--json").json
        for name in ("r.csv", "r.parquet"):
            result = run("recommend", shop, "--user", "ann", "--why", "--out", tmp_path / name)
            assert (result.code, (tmp_path / name).exists()) == (2, False)
            assert "give --out a name that ends in .json" in result.err

    def test_a_model_that_does_not_explain_is_refused(self, run, learned):
        result = run("recommend", learned, "--user", "ann", "--why")
        assert (result.code, result.out) == (1, "")
        assert "nmf can't explain a score by the person's items: learn with the model ease" in result.err
