"""Learning goes on: more data into a recommender that is there."""

from dataclasses import replace

import pyarrow as pa
import pytest

from erasable import Recommender
from erasable.chain import Config, train_chain
from erasable.data import Catalogue, ColumnNames
from erasable.errors import DataRefused, Refused, WrongUse
from erasable.models import Effort
from erasable.operations import Inputs, MemoryStorage, Work, forget, learn, learn_more, recommend, upgrade, verify
from erasable.operations.learn import learn_into
from erasable.operations.prepare import NO_INPUTS
from erasable.proof import records_of
from erasable.proof.do_not_learn import DoNotLearnFiles, add_requests
from erasable.requests import Request
from erasable.workspace import Stamp
from kit.asking import submit
from kit.fitting import fitting

MORE = {"ann": {"d": 2, "new": 5}, "zoe": {"a": 5, "new": 4}, "yan": {"b": 1, "c": 2}}


@pytest.fixture
def more(as_table):
    return as_table(MORE)


def learned(table, inputs=NO_INPUTS, **settings):
    storage = MemoryStorage()
    with storage.writing() as session:
        learn_into(session, table, Config(**fitting(settings)), inputs, Work(1))
    return storage


def test_it_says_what_is_known_now_and_what_is_new(storage, more):
    found = learn_more(storage, more)
    assert (found.users_added, found.items_added, found.interactions_added) == (2, 1, 6)
    assert (found.users, found.items, found.groups) == (8, 7, 4)
    assert found.stages_total == 4
    assert found.cost_ratio > 0
    assert recommend(storage, ["zoe"], k=3)


def test_what_is_there_afterwards_can_be_verified_and_forgotten(storage, more):
    learn_more(storage, more)
    assert verify(storage).identical
    forget(storage, [Request("zoe")])
    assert verify(storage).identical


def test_forgetting_all_who_came_leads_back(storage, as_table, snapshot):
    before = snapshot(storage)
    learn_more(storage, as_table({"zoe": {"a": 5}, "yan": {"b": 1}}))
    assert snapshot(storage).names[:3] == before.names
    forget(storage, [Request("zoe"), Request("yan")])
    after = snapshot(storage)
    assert (after.names, after.arrays, after.groups) == (before.names, before.arrays, before.groups)


def test_one_known_person_with_one_more_interaction_will_do(storage, as_table):
    found = learn_more(storage, as_table({"ann": {"d": 2}}))
    assert (found.users_added, found.interactions_added) == (0, 1)
    assert verify(storage).identical


def test_it_is_recorded(storage, more):
    learn_more(storage, more)
    with storage.reading() as session:
        assert [record["what"] for record in records_of(session.documents().log)] == ["learn", "learn more"]
        assert session.stamp.version == 2


def test_with_solved_rows_nothing_is_trained_for_newcomers(table, as_table):
    storage = learned(table, groups=2, epochs=1, rows="solved")
    found = learn_more(storage, as_table({"zoe": {"a": 5}, "yan": {"b": 1}}))
    assert found.stages_rerun == 0
    assert verify(storage).identical


def test_an_item_that_no_stage_knows_only_fills_up_as_a_popular_one(table, as_table):
    storage = learned(table, groups=2, epochs=1, rows="solved")
    learn_more(storage, as_table({"zoe": {"a": 5, "new": 3}, "yan": {"new": 1}}))
    found = recommend(storage, None, k=10)
    assert {one.item_id for user in found for one in user if not one.popular} <= set("abcdef")
    assert all(
        user[-1].item_id == "new" and user[-1].score == 2 for user in found if user.user_id not in ("zoe", "yan")
    )
    assert all(len(user) for user in found if user.user_id != "eve")


def test_ratings_must_lie_on_the_scale_that_is_there(storage, as_table):
    with pytest.raises(DataRefused, match="scale"):
        learn_more(storage, as_table({"zoe": {"a": 9}, "yan": {"b": 1}}))


def test_a_declared_catalogue_must_be_declared_anew_for_new_items(table, more, tmp_path):
    (tmp_path / "items").write_text("\n".join("abcdef"))
    storage = learned(table, Inputs(catalogue=tmp_path / "items"), groups=2, epochs=1)
    with pytest.raises(DataRefused, match="catalogue"):
        learn_more(storage, more)
    (tmp_path / "items").write_text("\n".join([*"abcdef", "new", "newer"]))
    assert learn_more(storage, more, Inputs(catalogue=tmp_path / "items")).items == 8


def test_an_unfinished_erasure_comes_first(storage, more, snapshot):
    submit(storage, Request("bob"))
    before = snapshot(storage)
    with pytest.raises(Refused, match="not finished"):
        learn_more(storage, more)
    assert vars(snapshot(storage)) == vars(before)


def test_groups_can_not_be_given(storage, more, tmp_path):
    with pytest.raises(WrongUse, match="leave out groups_from"):
        learn_more(storage, more, Inputs(groups_from=tmp_path))


def with_risk(ratings, risky):
    rows = [(user, item, rating, float(user in risky)) for user, has in ratings.items() for item, rating in has.items()]
    return pa.table(dict(zip(("user_id", "item_id", "rating", "risk"), zip(*rows, strict=True), strict=True)))


def test_who_comes_with_a_risk_goes_where_learning_from_scratch_would_put_them(ratings, snapshot):
    settings = {"groups": 2, "epochs": 1, "grouping": "independent", "risk_threshold": 0.5, "rating_scale": (1, 5)}
    coming = {"zoe": {"a": 5}, "yan": {"b": 1}, "xie": {"c": 2}}
    inputs, risky = Inputs(ColumnNames(risk="risk")), {"bob", "zoe", "xie"}
    storage = learned(with_risk(ratings, risky), inputs, **settings)
    learn_more(storage, with_risk(coming, risky), inputs)
    scratch = snapshot(learned(with_risk({**ratings, **coming}, risky), inputs, **settings))
    assert (snapshot(storage).names, snapshot(storage).arrays) == (scratch.names, scratch.arrays)
    with storage.reading() as session:
        assert set(session.state().dataset.groups[-1].users) == risky


def test_of_those_who_come_all_but_one_may_be_suppressed(table, as_table, tmp_path):
    storage = learned(table, groups=2, epochs=1)
    (tmp_path / "key").mkdir()
    list_files = DoNotLearnFiles(tmp_path / "erased.json", tmp_path / "key" / "erased.key")
    add_requests(list_files, [Request("zoe")])
    found = learn_more(storage, as_table({"zoe": {"a": 5}, "yan": {"b": 1}}), Inputs(do_not_learn=list_files))
    assert (found.users_added, found.suppressed) == (1, 1)


def test_the_library_has_it_too(table, more):
    recommender = Recommender(model="nmf", groups=2, epochs=1).fit(table)
    assert recommender.learn_more(more).users_added == 2
    assert recommender.recommend(["zoe"], k=2).num_rows == 2


def test_a_table_without_ratings_is_refused_where_there_are_some(storage):
    with pytest.raises(DataRefused, match="name one with rating='NAME'"):
        learn_more(storage, pa.table({"user_id": ["ann"], "item_id": ["d"]}))


def test_what_another_workspace_declared_will_do_as_a_list_and_what_people_have_will_not(table, as_table, tmp_path):
    likes, config = {"x": {"new": 1, "a": 5}, "y": {"b": 1}}, Config(model="ease")
    (tmp_path / "items").write_text("\n".join("abcdef"))
    (tmp_path / "more items").write_text("a\nb\nnew\n")
    learn(as_table(likes), tmp_path / "declared", config, Inputs(catalogue=tmp_path / "more items"))
    learn(as_table(likes), tmp_path / "following", config)
    storage = learned(table, Inputs(catalogue=tmp_path / "items"), groups=2, epochs=1)
    with pytest.raises(WrongUse, match="following has no declared catalogue"):
        learn_more(storage, as_table({"zoe": {"a": 5}}), Inputs(catalogue=tmp_path / "following"))
    assert learn_more(storage, as_table({"zoe": {"a": 5}}), Inputs(catalogue=tmp_path / "declared")).items_added == 1


def test_where_items_follow_the_people_no_list_is_taken(storage, more, tmp_path):
    (tmp_path / "items").write_text("\n".join("abcdef"))
    with pytest.raises(WrongUse, match="leave it out"):
        learn_more(storage, more, Inputs(catalogue=tmp_path / "items"))


class TestWhatWasFrozenBy01:
    """Its catalogue counts as declared until an upgrade, and takes in what comes."""

    @pytest.fixture
    def frozen(self, table):
        storage = learned(table, groups=2, epochs=1)
        with storage.writing() as session:
            state = session.state()
            catalogue = Catalogue(state.dataset.items, (len(state.dataset.items),), declared=False)
            new = train_chain(replace(state.dataset, catalogue=catalogue), session.checkpoints, Effort())
            session.commit(new, session.documents(), Stamp.after(session.stamp.version))
        return storage

    def catalogue_of(self, storage):
        with storage.reading() as session:
            return session.state().dataset.catalogue

    def test_nothing_changes_while_no_item_is_new(self, frozen, as_table):
        learn_more(frozen, as_table({"zoe": {"a": 5}}))
        assert not self.catalogue_of(frozen).declared

    def test_a_new_item_is_taken_in_and_the_rule_stays(self, frozen, as_table):
        before = self.catalogue_of(frozen)
        assert learn_more(frozen, as_table({"zoe": {"a": 5, "new": 3}})).items_added == 1
        after = self.catalogue_of(frozen)
        assert not after.declared
        assert [*after.items] == [*before.items, "new"]
        assert after.versions == (*before.versions, len(before.items) + 1)
        assert verify(frozen).identical

    def test_what_came_can_be_forgotten_again(self, frozen, as_table):
        learn_more(frozen, as_table({"zoe": {"a": 5, "new": 3}}))
        forget(frozen, [Request("zoe")])
        assert "new" in self.catalogue_of(frozen).items
        assert verify(frozen).identical

    def test_an_upgrade_ends_it_and_the_outcome_is_that_of_learning_now(self, frozen, table, as_table, snapshot):
        coming = as_table({"zoe": {"a": 5, "new": 3}})
        learn_more(frozen, coming)
        upgrade(frozen)
        now = learned(table, groups=2, epochs=1)
        learn_more(now, coming)
        assert self.catalogue_of(frozen) is None
        assert snapshot(frozen).arrays == snapshot(now).arrays


def test_items_that_no_stage_knows_are_counted(table, as_table):
    storage = learned(table, groups=2, epochs=1, rows="solved")
    assert learn_more(storage, as_table({"zoe": {"a": 5, "new": 3}})).items_unknown == 1
    storage = learned(table, groups=2, epochs=1)
    assert learn_more(storage, as_table({"zoe": {"a": 5, "new": 3}})).items_unknown == 0


def test_items_that_are_only_held_out_are_not_among_them(table, as_table):
    storage = learned(table, model="als", holdout=0.9)
    with storage.reading() as session:
        dataset = session.state().dataset
        assert not dataset.known_to_some.all()  # else there is nothing to leave out
    assert learn_more(storage, as_table({"zoe": {"a": 5, "b": 3, "c": 1}})).items_unknown == 0


def test_risk_means_nothing_where_it_was_not_declared(table, tmp_path):
    with pytest.raises(WrongUse, match="leave out risk="):
        learn_more(
            learned(table, groups=2, epochs=1),
            pa.table({"user_id": ["zoe"], "item_id": ["d"], "rating": [1], "churn": [0.5]}),
            Inputs(ColumnNames(risk="churn")),
        )
