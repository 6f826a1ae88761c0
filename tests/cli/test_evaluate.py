"""`erasable evaluate`: on the holdout, on a file, and what it refuses."""

import math
import re

import pytest

METRICS = ["hr@10", "ndcg@10", "recall@10", "hr@20", "ndcg@20", "recall@20"]
FURTHER = [f"{name}@{k}" for k in (10, 20) for name in ("precision", "map", "mrr")]
OF_LISTS = [f"{name}@{k}" for k in (10, 20) for name in ("novelty", "diversity", "coverage")]


def test_the_holdout_is_measured(run, measured):
    found = run("evaluate", measured, "--json").json
    assert list(found)[:7] == ["users", *METRICS]
    assert {*found} == {"users", *METRICS, *FURTHER, *OF_LISTS, "protocol", "intervals"}
    assert {*found["intervals"]} == {*METRICS, *FURTHER, *OF_LISTS} - {"coverage@10", "coverage@20"}
    for name, (low, high) in found["intervals"].items():
        assert low <= found[name] <= high
    assert 0 < found["users"] <= 8
    # Six items at most: whatever is held out is among the first ten.
    assert [found[name] for name in ("hr@10", "recall@10", "hr@20", "recall@20")] == [1.0] * 4
    assert 0 < found["ndcg@10"] == found["ndcg@20"] <= 1
    assert found["protocol"] == "whole-catalogue"


@pytest.mark.parametrize("protocol", ["whole-catalogue", "one-of-100", "held-out-only"])
def test_each_protocol_can_be_asked_for(run, measured, protocol):
    found = run("evaluate", measured, "--protocol", protocol, "--json").json
    assert list(found)[:7] == ["users", *METRICS]
    assert {*FURTHER} < {*found}
    assert (found.keys() >= {*OF_LISTS}) == (protocol == "whole-catalogue")
    assert found["protocol"] == protocol
    assert 0 < found["users"] <= 8
    assert all(0 <= found[name] <= 1 for name in METRICS)


def test_one_held_out_item_for_each_user_is_leave_one_out(run, learned, tmp_path):
    # Fewer than 99 other items: the candidates are all that recommend ranks.
    (tmp_path / "test.csv").write_text("user_id,item_id\nann,e\nbob,f\n")
    one, whole = (
        run("evaluate", learned, "--test", tmp_path / "test.csv", "--protocol", protocol, "--json").json
        for protocol in ("one-of-100", "whole-catalogue")
    )
    both = [*METRICS, *FURTHER, "users"]
    assert {name: one[name] for name in both} == {name: whole[name] for name in both}
    assert {name: one["intervals"][name] for name in METRICS} == {name: whole["intervals"][name] for name in METRICS}


def test_a_protocol_that_is_not_there_is_wrong_use(run, measured):
    result = run("evaluate", measured, "--protocol", "two-of-100")
    assert (result.code, result.out) == (2, "")
    assert "one-of-100" in result.err


def test_a_file_without_ratings_can_not_be_measured_by_them(run, learned, tmp_path):
    (tmp_path / "test.csv").write_text("user_id,item_id\nann,e\nbob,f\n")
    result = run("evaluate", learned, "--test", tmp_path / "test.csv", "--protocol", "held-out-only")
    assert (result.code, result.out) == (1, "")
    assert "--rating-column" in result.err


def test_a_file_is_measured_by_the_ranks_that_recommend_gives(run, learned, tmp_path):
    ranks = {
        one["user_id"]: {item["item_id"]: item["rank"] for item in one["items"]}
        for one in run("recommend", learned, "--all", "--json").json["recommendations"]
    }
    (tmp_path / "test.csv").write_text("user_id,item_id\nann,e\nbob,f\nzoe,a\n")
    found = run("evaluate", learned, "--test", tmp_path / "test.csv", "--json").json
    gains = [1 / math.log2(ranks["ann"]["e"] + 1), 1 / math.log2(ranks["bob"]["f"] + 1)]
    assert found["users"] == 2
    assert found["ndcg@10"] == pytest.approx(sum(gains) / 2)
    assert found["hr@10"] == found["recall@20"] == 1


def test_columns_may_be_named(run, learned, tmp_path):
    (tmp_path / "test.csv").write_text("who,what\nann,e\nbob,f\n")
    options = ("--test", tmp_path / "test.csv", "--user-column", "who", "--item-column", "what")
    assert run("evaluate", learned, *options, "--json").json["users"] == 2


def test_one_thread_and_two_give_the_same(run, measured):
    one, two = (run("evaluate", measured, "--json", "--threads", threads).out for threads in (1, 2))
    assert one == two


def test_words_are_a_table(run, measured):
    about, heading, *rows = run("evaluate", measured).out.splitlines()
    assert about.startswith("whole-catalogue: ")
    assert heading.split() == ["metric", "@10", "@20"]
    assert [row.split()[0] for row in rows] == [
        *("hr", "ndcg", "recall", "precision", "map", "mrr", "novelty", "diversity", "coverage"),
    ]
    assert re.fullmatch(r"hr +1\.0000 \[1\.0000, 1\.0000\]  1\.0000 \[1\.0000, 1\.0000\]", rows[0])
    assert len(rows[-1].split()) == 3


def test_metrics_may_be_chosen(run, measured):
    found = run("evaluate", measured, "--metrics", "mrr@3,coverage@2,mrr@10", "--json").json
    assert list(found) == ["users", "mrr@3", "mrr@10", "coverage@2", "protocol", "intervals"]
    lines = run("evaluate", measured, "--metrics", "mrr@3,coverage@2").out.splitlines()
    assert [line.split()[0] for line in lines[1:]] == ["metric", "mrr", "coverage"]


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--metrics", "ndgc@10"), "there is no metric 'ndgc@10'"),
        (("--metrics", "coverage@10", "--protocol", "one-of-100"), "leave it out, or --protocol"),
        (("--by", "genre"), "declare attributes of items with erasable items DIR --set FILE"),
        (("--by", "popularity", "--protocol", "held-out-only"), "give --by activity, or another --protocol"),
    ],
)
def test_what_can_not_be_measured_is_wrong_use(run, measured, options, said):
    result = run("evaluate", measured, *options)
    assert (result.code, result.out) == (2, "")
    assert said in result.err


def test_slices_of_few_people_are_not_shown(run, measured):
    found = run("evaluate", measured, "--by", "activity", "--json").json
    assert found["by"] == "activity"
    assert {one["users"] for one in found["slices"]} == {None}
    lines = run("evaluate", measured, "--by", "activity").out.splitlines()
    assert lines[-1].startswith("not shown, because fewer than 10 people")
    assert not any(line.startswith("activity") for line in lines)  # no heading over nothing


def test_slices_by_an_attribute_of_the_items(run, tmp_path):
    rows = [(f"u{user}", f"i{item}", user + item) for user in range(40) for item in range(user % 5, user % 5 + 6)]
    text = "\n".join(f"{user},{item},{time}" for user, item, time in rows)
    (tmp_path / "r.csv").write_text("user_id,item_id,time\n" + text + "\n")
    names = ["old", "old", "old", "old", "old", "old", "new", "new", "new", ""]
    kinds = "\n".join(f"i{item},{kind}" for item, kind in enumerate(names))
    (tmp_path / "items.csv").write_text("item_id,kind\n" + kinds + "\n")
    shop = tmp_path / "shop"
    assert run("learn", tmp_path / "r.csv", "--into", shop, "--split", "leave-last-out").code == 0
    assert run("items", shop, "--set", tmp_path / "items.csv").code == 0
    found = run("evaluate", shop, "--by", "kind", "--json").json
    # The last item of each fifth of the people is i5, i6, i7, i8 or i9; the eight of i5 and of i9 are too few.
    assert {one["name"]: one["users"] for one in found["slices"]} == {"new": 24, "old": None, "unknown": None}
    shown = run("evaluate", shop, "--by", "kind").out.splitlines()
    assert shown[-3].split()[:3] == ["kind", "users", "hr@10"]
    assert shown[-2].split()[:2] == ["new", "24"]
    assert shown[-1].endswith(": old and unknown")
    refused = run("evaluate", shop, "--by", "price")
    assert (refused.code, "the declared attributes are kind" in refused.err) == (2, True)


def test_an_erased_user_is_no_longer_measured(run, shop, tmp_path):
    (tmp_path / "test.csv").write_text("user_id,item_id\nann,e\nbob,f\n")
    run("forget", shop, "--user", "ann")
    assert run("evaluate", shop, "--test", tmp_path / "test.csv", "--json").json["users"] == 1


def test_rows_that_were_learned_from_are_counted(run, learned, tmp_path):
    (tmp_path / "test.csv").write_text("user_id,item_id\nann,a\nann,e\nbob,f\n")
    said = "1 of 3 test rows is also learned from: "
    for protocol, why in (("whole-catalogue", "can't be recommended"), ("one-of-100", "easier to find")):
        ways = ("--test", tmp_path / "test.csv", "--protocol", protocol)
        assert said in (last := run("evaluate", learned, *ways).out.splitlines()[-1])
        assert why in last
        assert run("evaluate", learned, *ways, "--json").json["notes"] == [last]


def test_a_test_set_of_nothing_but_what_was_learned_is_refused(run, learned, tmp_path):
    (tmp_path / "test.csv").write_text("user_id,item_id\nann,a\nann,b\nbob,d\nzoe,a\n")
    result = run("evaluate", learned, "--test", tmp_path / "test.csv")
    assert (result.code, result.out) == (1, "")
    assert "all test rows of known users (3) are also learned from" in result.err
    assert "learn with --holdout 0.1" in result.err
    assert run("evaluate", learned, "--test", tmp_path / "test.csv", "--protocol", "one-of-100").code == 0


def test_unknown_users_and_items_of_a_file_are_counted(run, learned, tmp_path):
    (tmp_path / "test.csv").write_text("user_id,item_id\nann,e\nann,new\nzoe,a\n")
    notes = run("evaluate", learned, "--test", tmp_path / "test.csv", "--json").json["notes"]
    assert notes == [
        "1 of 2 test users is unknown to the model, and left out",
        "1 of 3 test rows is of items outside the catalogue: they can't be found",
    ]


@pytest.mark.parametrize(("newcomers", "noted"), [(20, False), (21, True)])
def test_a_split_by_time_says_so_if_newcomers_are_most_of_the_people(run, tmp_path, newcomers, noted):
    old = [f"old{user},i{item},{item}" for user in range(20) for item in range(9)]
    new = [f"new{user},i{item},{item + 6}" for user in range(newcomers) for item in range(3)]
    (tmp_path / "r.csv").write_text("\n".join(["user,item,time", *old, *new]) + "\n")
    assert run("learn", tmp_path / "r.csv", "--into", tmp_path / "shop", "--split-time", 6).code == 0
    said = "more than half of the people measured have 1–4 interactions in training, since newcomers keep one"
    assert (said in run("evaluate", tmp_path / "shop").out) is noted
    found = run("evaluate", tmp_path / "shop", "--json").json
    assert [note.endswith("with --by activity") for note in found.get("notes", [])] == [True] * noted


def test_without_a_holdout_it_is_refused_with_the_remedy(run, learned):
    result = run("evaluate", learned, "--json")
    assert (result.code, result.out) == (1, "")
    assert result.err == "erasable: nothing was held out: learn with --holdout 0.1, or give --test FILE\n"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (None, "test.csv does not exist"),
        ("", "test.csv is empty"),
        ("user_id,item_id\nyan,a\nzoe,a\n", "no user of the test set is known"),
        ("user_id,item_id\nann,a,1\nzoe,a\n", "test.csv, line 2: holds 3 fields instead of 2"),
    ],
)
def test_a_file_that_can_not_be_used_is_refused(run, learned, tmp_path, text, said):
    if text is not None:
        (tmp_path / "test.csv").write_text(text)
    result = run("evaluate", learned, "--test", tmp_path / "test.csv")
    assert (result.code, result.out) == (1, "")
    assert said in result.err
