"""Looking at a recommender: show, groups, status and evaluate, in memory and on disk."""

import pytest

from erasable.data import ColumnNames
from erasable.errors import Refused, UnknownUser
from erasable.operations import Recommender, evaluate, forget, groups, show, status
from erasable.unlearning import Request


def test_everything_that_is_held_about_a_person_is_shown(home, ratings):
    holding = show(home, "eve")
    assert {one.item_id: one.rating for one in holding.interactions} == ratings["eve"]
    assert {one.time for one in holding.interactions} == {None}
    with home.reading() as session:
        state = session.state()
        position, row = state.knowledge.find("eve")
        rows = session.checkpoints.get(state.chain[position].fingerprint).parameters.rows
        held_out = state.knowledge.held_out.of_users(["eve"])
        items = [held_out.items[number] for number in held_out.item_index.tolist()]
    assert holding.group == position
    assert holding.personal_rows == {"user": rows["user"][row].tolist()}
    assert [one.item_id for one in holding.interactions if one.held_out] == items


def test_times_are_shown_where_they_are_known(as_table):
    table = as_table({"ann": {"a": 1, "b": 1}, "bob": {"a": 1}}).append_column("timestamp", [[7.5, None, 9.0]])
    recommender = Recommender(groups=2, epochs=1).fit(table)
    assert [one.time for one in recommender.show("ann").interactions] == [7.5, None]


def test_nothing_is_held_about_someone_unknown_or_forgotten(home):
    forget(home, [Request("eve")])
    for user in ("eve", "zoe"):
        with pytest.raises(UnknownUser):
            show(home, user)


def test_groups_come_in_the_order_of_training(home):
    with home.reading() as session:
        expected = [(len(group.users), len(group)) for group in session.state().knowledge.groups]
    found = groups(home)
    assert [(group.users, group.interactions) for group in found] == expected
    assert [group.position for group in found] == [0, 1, 2]


def test_status_counts_what_is_there(home):
    forget(home, [Request("ann")])
    found = status(home)
    assert (found["users"], found["items"], found["interactions"], found["groups"]) == (5, 6, 18, 3)
    assert (found["erasures"], found["version"]) == (1, 2)
    assert (found["model"], found["strategy"], found["grouping"], found["policy"]) == (
        "nmf",
        "laser",
        "random",
        "fixed",
    )


def test_the_holdout_is_measured(home):
    utility = evaluate(home)
    with home.reading() as session:
        assert utility.users == len(session.state().knowledge.held_out.users)
    # Six items at most: whatever is held out is among the first ten.
    assert (utility.values["hr@10"], utility.values["recall@20"]) == (1.0, 1.0)


def test_a_file_is_measured(home, tmp_path):
    (tmp_path / "test.csv").write_text("who,what\nann,e\nbob,f\nzoe,f\n")
    assert evaluate(home, tmp_path / "test.csv", ColumnNames(user="who", item="what")).users == 2


def test_without_a_holdout_it_is_refused(as_table):
    recommender = Recommender(groups=2, epochs=1).fit(as_table({"ann": {"a": 1}, "bob": {"b": 1}}))
    with pytest.raises(Refused, match="nothing was held out: learn with --holdout"):
        recommender.evaluate()
