"""`erasable evaluate`: on the holdout, on a file, and what it refuses."""

import math

import pytest

METRICS = ["hr@10", "ndcg@10", "recall@10", "hr@20", "ndcg@20", "recall@20"]


def test_the_holdout_is_measured(run, measured):
    found = run("evaluate", measured, "--json").json
    assert list(found) == ["users", *METRICS, "protocol"]
    assert 0 < found["users"] <= 8
    # Six items at most: whatever is held out is among the first ten.
    assert [found[name] for name in ("hr@10", "recall@10", "hr@20", "recall@20")] == [1.0] * 4
    assert 0 < found["ndcg@10"] == found["ndcg@20"] <= 1
    assert found["protocol"] == "whole-catalogue"


@pytest.mark.parametrize("protocol", ["whole-catalogue", "one-of-100", "held-out-only"])
def test_each_protocol_can_be_asked_for(run, measured, protocol):
    found = run("evaluate", measured, "--protocol", protocol, "--json").json
    assert list(found) == ["users", *METRICS, "protocol"]
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
    assert {**one, "protocol": None} == {**whole, "protocol": None}


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
    heading, values = run("evaluate", measured).out.splitlines()
    assert heading.split() == ["protocol", "users", *METRICS]
    assert values.split()[0] == "whole-catalogue"
    assert len(values.split()) == 8


def test_an_erased_user_is_no_longer_measured(run, shop, tmp_path):
    (tmp_path / "test.csv").write_text("user_id,item_id\nann,e\nbob,f\n")
    run("forget", shop, "--user", "ann")
    assert run("evaluate", shop, "--test", tmp_path / "test.csv", "--json").json["users"] == 1


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
