"""Learning anew in place: the bytes of learning what is held, and everything else of the workspace stays."""

import pytest

from erasable.chain import Config
from erasable.errors import Refused
from erasable.operations import Inputs, MemoryStorage, Work, forget, learn_more, recommend, verify
from erasable.operations.again import learn_again
from erasable.operations.learn import learn_into
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
    learn_again(storage, config={"groups": 2})
    with storage.reading() as session:
        config = session.state().dataset.config
        assert (config.model, config.groups, config.epochs, config.holdout) == ("nmf", 2, 3, 0.3)
    assert learn_again(storage, config={"model": "als"}).model == "als"
    assert verify(storage).identical
    assert recommend(storage, ["ann"])


def test_what_would_be_the_same_is_not_trained(storage):
    assert learn_again(storage).stages_rerun == 0


def test_an_unfinished_erasure_comes_first(storage):
    submit(storage, Request("bob"))
    with pytest.raises(Refused, match="not finished"):
        learn_again(storage)
