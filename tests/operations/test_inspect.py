"""Looking at a recommender: show, groups, status and evaluate, in memory and on disk."""

import pytest

from erasable.data import ColumnNames
from erasable.errors import DataRefused, ErasableWarning, Refused, UnknownUser
from erasable.evaluation import PROTOCOLS, measure
from erasable.operations import evaluate, forget, groups, show, status
from erasable.proof import public_key_of
from erasable.recommender import Recommender
from erasable.requests import Request
from kit.asking import submit


def test_everything_that_is_held_about_a_person_is_shown(storage, ratings):
    holding = show(storage, "eve")
    assert {one.item_id: one.rating for one in holding.interactions} == ratings["eve"]
    assert {one.time for one in holding.interactions} == {None}
    with storage.reading() as session:
        state = session.state()
        position = state.dataset.find("eve").group
        row = state.dataset.groups[position].users.texts().index("eve")
        rows = session.checkpoints.get(state.chain[position].fingerprint).parameters.rows
        held_out = state.dataset.held_out.of_users(["eve"])
        items = [held_out.items[number] for number in held_out.item_index.tolist()]
    assert holding.group == position + 1
    assert holding.personal_rows == {"user": rows["user"][row].tolist()}
    assert [one.item_id for one in holding.interactions if one.held_out] == items


def test_times_are_shown_where_they_are_known(as_table):
    table = as_table({"ann": {"a": 1, "b": 1}, "bob": {"a": 1}}).append_column("timestamp", [[7.5, None, 9.0]])
    recommender = Recommender(model="nmf", groups=2, epochs=1).fit(table)
    assert [one.time for one in recommender.show("ann").interactions] == [7.5, None]


def test_nothing_is_held_about_someone_unknown_or_forgotten(storage):
    forget(storage, [Request("eve")])
    for user in ("eve", "zoe"):
        with pytest.raises(UnknownUser):
            show(storage, user)


def test_groups_come_in_the_order_of_training(storage):
    with storage.reading() as session:
        expected = [(len(group.users), len(group)) for group in session.state().dataset.groups]
    found = groups(storage)
    assert [(group.users, group.interactions) for group in found] == expected
    assert [group.position for group in found] == [1, 2, 3]


def test_status_counts_what_is_there(storage):
    forget(storage, [Request("ann")])
    found = status(storage)
    assert (found["users"], found["items"], found["interactions"], found["groups"]) == (5, 6, 18, 3)
    assert (found["erasures"], found["version"], found["pending"], found["records"]) == (1, 2, 0, 2)
    assert found["leftovers"] == []
    with storage.reading() as session:
        assert found["public_key"] == public_key_of(session.documents().key)
    assert (found["model"], found["strategy"], found["grouping"], found["policy"]) == (
        "nmf",
        "laser",
        "random",
        "fixed",
    )


def test_status_counts_people_whose_requests_were_begun(storage):
    submit(storage, Request("ann"), Request("bob"), Request("ann", ("a",)))
    assert status(storage)["pending"] == 2


def test_the_holdout_is_measured(storage):
    utility = evaluate(storage)
    with storage.reading() as session:
        assert utility.users == len(session.state().dataset.held_out.users)
    # Six items at most: whatever is held out is among the first ten.
    assert (utility.values["hr@10"], utility.values["recall@20"]) == (1.0, 1.0)


def test_a_file_is_measured(storage, tmp_path):
    (tmp_path / "test.csv").write_text("who,what\nann,e\nbob,f\nzoe,f\n")
    assert evaluate(storage, tmp_path / "test.csv", ColumnNames(user="who", item="what")).users == 2


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_the_holdout_is_measured_by_the_protocol_asked_for(storage, protocol):
    utility = evaluate(storage, protocol=protocol)
    with storage.reading() as session:
        state = session.state()
        found = measure(state, session.checkpoints, state.dataset.held_out, 1, protocol)
    assert utility.users == found.users
    assert {name: utility.values[name] for name in found.values} == found.values
    assert utility.protocol == protocol


def test_the_recommender_measures_by_a_protocol_too(as_table, ratings):
    recommender = Recommender(model="nmf", groups=2, epochs=1, holdout=0.4).fit(as_table(ratings))
    assert recommender.evaluate(protocol="one-of-100").protocol == "one-of-100"
    assert recommender.evaluate().protocol == "whole-catalogue"


def test_the_library_warns_of_test_rows_that_were_learned_from(as_table, ratings):
    recommender = Recommender(model="nmf", groups=2, epochs=1).fit(as_table(ratings))
    with pytest.warns(ErasableWarning, match="1 of 2 test rows is also learned from: they can't be recommended"):
        found = recommender.evaluate(as_table({"ann": {"a": 5, "new": 5}}))
    assert found.doubts
    assert found.notes == ("1 of 2 test rows is of items outside the catalogue: they can't be found",)


def test_a_file_is_measured_by_its_ratings(storage, tmp_path):
    # Both are liked, and each fills one of ten places.
    (tmp_path / "test.csv").write_text("user,item,rating\nann,e,5\nbob,f,4\n")
    assert evaluate(storage, tmp_path / "test.csv", protocol="held-out-only").values["hr@10"] == pytest.approx(0.1)


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        ("user,item\nann,e\nbob,f\n", "no rating in .* reaches 4/5 of 5"),
        ("user,item,rating\nann,e,5\nbob,f,3.5\ncat,d,6\n", "test.csv, line 4: rating 6 lies outside the scale 1–5"),
    ],
)
def test_ratings_that_say_nothing_are_refused_where_they_matter(storage, tmp_path, rows, said):
    (tmp_path / "test.csv").write_text(rows)
    with pytest.raises((Refused, DataRefused), match=said):
        evaluate(storage, tmp_path / "test.csv", protocol="held-out-only")
    for protocol in ("whole-catalogue", "one-of-100"):
        assert evaluate(storage, tmp_path / "test.csv", protocol=protocol).users > 0


def test_without_a_holdout_it_is_refused(as_table):
    recommender = Recommender(model="nmf", groups=2, epochs=1).fit(as_table({"ann": {"a": 1}, "bob": {"b": 1}}))
    with pytest.raises(Refused, match=r"nothing was held out: learn with holdout=0.1, or give evaluate\(TABLE\)"):
        recommender.evaluate()
