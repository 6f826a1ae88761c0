"""Learning anew in place: the bytes of learning what is held, and everything else of the workspace stays."""

import pytest

from erasable.chain import Config
from erasable.errors import Refused, WrongUse
from erasable.operations import (
    Inputs,
    MemoryStorage,
    Work,
    certificates_of,
    forget,
    learn_more,
    recommend,
    verify,
)
from erasable.operations.again import learn_again
from erasable.operations.learn import learn_into
from erasable.operations.sync import SyncRules, sync
from erasable.proof import records_of
from erasable.requests import Request
from kit.asking import submit
from kit.fitting import fitting

ZOE = {"zoe": {"a": 5, "new": 4}}


def learned(table, config):
    storage = MemoryStorage()
    with storage.writing() as session:
        learn_into(session, table, config, Inputs(), Work(1))
    return storage


@pytest.mark.parametrize(
    "settings", [{"model": "nmf", "groups": 3, "holdout": 0.3}, {"model": "als"}, {"model": "ease"}]
)
def test_the_bytes_are_those_of_learning_what_is_held(ratings, as_table, snapshot, settings):
    config = Config(**fitting(settings))
    storage = learned(as_table(ratings), config)
    forget(storage, [Request("bob")])
    learn_more(storage, as_table(ZOE))
    later = snapshot(storage)
    learn_again(storage)
    held = {user: own for user, own in ratings.items() if user != "bob"} | ZOE
    again, anew = snapshot(storage), snapshot(learned(as_table(held), config))
    assert (again.names, again.arrays, again.groups) == (anew.names, anew.arrays, anew.groups)
    assert again.held_out == anew.held_out
    assert settings["model"] == "ease" or again.arrays != later.arrays  # zoe had a group of her own, or only a row
    assert verify(storage).identical


def test_new_data_is_learned_with_it_and_who_was_erased_stays_out(storage, ratings, as_table):
    forget(storage, [Request("bob")])
    done = learn_again(storage, as_table(ratings | ZOE))
    assert (done.users, done.users_added, done.left_out.users) == (6, 1, 1)
    assert verify(storage).identical


def test_log_key_and_certificates_stay(storage, as_table):
    forget(storage, [Request("bob")])
    with storage.reading() as session:
        key, issued = session.documents().key, dict(session.issued())
    learn_again(storage, as_table(ZOE))
    with storage.reading() as session:
        assert session.documents().key == key
        assert dict(session.issued()) == issued
        told = [record["what"] for record in records_of(session.documents().log)]
        assert (told, session.stamp.version) == (["learn", "forget", "learn again"], 3)


def test_settings_that_are_given_change_and_the_others_stay(storage):
    learn_again(storage, settings={"groups": 2})
    with storage.reading() as session:
        config = session.state().dataset.config
        assert (config.model, config.groups, config.epochs, config.holdout) == ("nmf", 2, 3, 0.3)
    assert learn_again(storage, settings={"model": "als"}).model == "als"
    assert verify(storage).identical
    assert recommend(storage, ["ann"])


def test_what_would_be_the_same_is_not_trained(storage):
    assert learn_again(storage).stages_rerun == 0


def test_an_unfinished_erasure_comes_first(storage):
    submit(storage, Request("bob"))
    with pytest.raises(Refused, match="not finished"):
        learn_again(storage)


def test_whoever_comes_back_is_off_the_do_not_learn_list(storage, ratings, as_table):
    forget(storage, [Request("bob")])
    done = learn_again(storage, as_table(ratings), inputs=Inputs(readmit=("bob",)))
    assert (done.readmitted, done.left_out.total) == (1, 0)
    assert learn_more(storage, as_table(ratings)).left_out.total == 0
    assert not sync(storage, as_table(ratings), rules=SyncRules(forget_missing=True)).users_missing
    assert recommend(storage, ["bob"])
    with storage.reading() as session:
        told = [record for record in records_of(session.documents().log) if record["what"] == "learn again"]
        assert [record["readmitted"] for record in told] == [1]


def test_nobody_comes_back_without_data(storage):
    forget(storage, [Request("bob")])
    with pytest.raises(WrongUse, match="without data"):
        learn_again(storage, inputs=Inputs(readmit=("bob",)))


def test_what_is_said_of_the_data_stays_with_another_model(ratings, as_table):
    given = {"min_interactions": 2, "rating_scale": (1, 5), "holdout": 0.3, "seed": 7}
    storage = learned(as_table(ratings), Config(**fitting({"model": "ease", **given})))
    learn_again(storage, settings={"model": "item-knn"})
    with storage.reading() as session:
        config = session.state().dataset.config
        assert {name: getattr(config, name) for name in given} == given
    receipt = forget(storage, [Request("bob")]).receipts[0]
    certificate = certificates_of(storage, [receipt.request_id])[receipt.request_id].content.decode()
    assert '"filter":"frozen"' in certificate
    assert "scale was not declared" not in certificate


@pytest.mark.parametrize("given", [{"min_interactions": 0}, {"model": "als", "min_interactions": 1}])
def test_a_weaker_filter_is_refused(ratings, as_table, given):
    storage = learned(as_table(ratings), Config(**fitting({"model": "ease", "min_interactions": 2})))
    with pytest.raises(Refused, match="filter of 2"):
        learn_again(storage, settings=given)
    assert learn_again(storage, settings={"min_interactions": 2}).stages_rerun == 0


@pytest.mark.parametrize(
    ("before", "given", "after"),
    [
        ({"model": "als", "anchors": 0.5}, {"model": "nmf", "groups": 2}, {"anchors": 0.5, "rows": "solved"}),
        ({"model": "nmf", "groups": 3, "epochs": 5}, {"model": "dmf"}, {"groups": 3, "rows": "stage", "epochs": 20}),
        ({"model": "nmf", "groups": 3}, {"model": "ease"}, {"strategy": "retrain", "groups": 1}),
        ({"model": "nmf", "strategy": "sisa", "groups": 3}, {"model": "dmf"}, {"strategy": "sisa", "groups": 3}),
        ({"model": "nmf", "strategy": "retrain"}, {"model": "dmf"}, {"strategy": "retrain"}),
        ({"model": "ease", "chosen_on": "data"}, {"model": "als"}, {"chosen_on": None}),
        ({"model": "ease", "chosen_on": "data"}, {"regularisation": 5.0}, {"chosen_on": "data"}),
        ({"model": "ease"}, {"preset": "paper", "groups": 2}, {"model": "nmf", "grouping": "cbkm", "rows": "stage"}),
    ],
)
def test_another_model_has_its_own_settings_and_the_others_stay(ratings, as_table, before, given, after):
    storage = learned(as_table(ratings), Config(**before))
    learn_again(storage, settings=given)
    with storage.reading() as session:
        config = session.state().dataset.config
        assert {name: getattr(config, name) for name in after} == after
    assert verify(storage).identical
    forget(storage, [Request("bob")])
    assert verify(storage).identical


def test_a_preset_changes_its_own_settings_alone(ratings, as_table):
    given = {"regularisation": 5.0, "holdout": 0.3, "seed": 7}
    storage = learned(as_table(ratings), Config(**fitting({"model": "ease", **given})))
    learn_again(storage, settings={"preset": "sparse"})
    with storage.reading() as session:
        config = session.state().dataset.config
        assert (config.setting("neighbours"), config.setting("regularisation")) == (300, 5.0)
        assert (config.holdout, config.seed) == (0.3, 7)


def test_a_preset_that_sets_nothing_for_the_model_is_refused(storage):
    with pytest.raises(WrongUse, match="changes nothing for nmf"):
        learn_again(storage, settings={"preset": "sparse"})


def test_where_nobody_is_held_it_asks_for_data(storage, ratings, as_table):
    forget(storage, [Request(user) for user in ratings])
    for source in (None, as_table(ratings)):  # whoever was erased stays out
        with pytest.raises(Refused, match=r"nobody is held.*give data of people who are not erased"):
            learn_again(storage, source)
    learn_again(storage, as_table(ZOE | {"kim": {"a": 1}, "lea": {"a": 2, "new": 3}}))
    assert verify(storage).identical


def test_what_followed_from_a_setting_follows_when_it_is_changed(ratings, as_table):
    storage = learned(as_table(ratings), Config(model="ease"))
    for given, rows in (({"anchors": 0.5}, "solved"), ({"anchors": 1}, "stage")):
        learn_again(storage, settings=given)
        with storage.reading() as session:
            assert session.state().dataset.config.rows == rows
        assert verify(storage).identical
