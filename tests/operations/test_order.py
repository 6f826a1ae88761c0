"""The order of people's own items, for a model that uses time: by command, library, sync; refused without times."""

import pyarrow as pa
import pytest

from erasable import Recommender
from erasable.errors import DataRefused

ROWS = {
    "user": ["ann", "ann", "ann", "bob", "bob", "cat", "cat", "dan", "dan"],
    "item": ["a", "b", "c", "a", "b", "b", "c", "c", "a"],
    "time": [3.0, 1.0, 2.0, 1.0, 2.0, 1.0, 2.0, 5.0, 4.0],
}
SMALL = {"factors": 4, "blocks": 1, "length": 4, "epochs": 1}


def learned(times, model="sasrec", **settings):
    small = SMALL if model == "sasrec" else {}
    return Recommender(model, **{**small, **settings}).fit(pa.table({**ROWS, "time": times}))


def names(recommender):
    with recommender._learned_storage().reading() as session:
        return [link.fingerprint for link in session.state().chain]


def test_only_the_order_counts_and_equal_times_go_by_item_id():
    times = ROWS["time"]
    before = learned(times)
    assert names(learned([time * 60 + 7 for time in times])) == names(before)
    assert names(learned([-time for time in times])) != names(before)
    same = [1.0] * len(times)
    assert names(learned(same)) == names(learned([float("abc".index(item)) for item in ROWS["item"]]))


def test_an_unknown_time_is_the_oldest():
    times = [None if time == 1.0 else time for time in ROWS["time"]]
    assert names(learned(times)) == names(learned(ROWS["time"]))


@pytest.mark.parametrize("model", ["ease", "two-tower", "nmf"])
def test_no_order_counts_for_other_models(model):
    settings = {"ease": {}, "two-tower": {"epochs": 1}, "nmf": {"epochs": 1, "groups": 2}}[model]
    assert names(learned(ROWS["time"], model, **settings)) == names(learned(ROWS["time"][::-1], model, **settings))


def test_without_times_it_is_refused_with_what_to_do():
    table = pa.table({"user": ROWS["user"], "item": ROWS["item"]})
    with pytest.raises(DataRefused, match="sasrec learns from the order in time, and there is no time: name"):
        Recommender("sasrec", **SMALL).fit(table)
    with pytest.raises(DataRefused, match="there is no time"):
        learned(ROWS["time"]).learn_more(pa.table({"user": ["eve"], "item": ["a"]}))
    assert names(Recommender("two-tower", epochs=1).fit(table))


def test_an_export_in_which_only_the_order_changed_is_learned():
    recommender = learned(ROWS["time"], grouping="independent", strategy="laser", groups=1)
    other = [3.0, 2.0, 1.0, *ROWS["time"][3:]]
    done = recommender.sync(pa.table({**ROWS, "time": other}))
    assert done.stages_rerun == 1
    assert names(recommender) == names(learned(other, grouping="independent", strategy="laser", groups=1))
    later = recommender.sync(pa.table({**ROWS, "time": [time + 100 for time in other]}))
    assert later.stages_rerun == 0


def test_a_history_without_an_id_is_in_the_order_in_which_it_is_given():
    recommender = learned(ROWS["time"], epochs=5)
    forwards, backwards = (recommender.score(None, ["c"], history=list(given)) for given in ("ab", "ba"))
    assert forwards["score"][0].as_py() != backwards["score"][0].as_py()
    ann = recommender.score("ann", ["a", "b", "c"])["score"].to_pylist()
    assert recommender.score(None, ["a", "b", "c"], history=["b", "c", "a"])["score"].to_pylist() == ann


def test_forgetting_and_learning_more_give_what_learning_the_outcome_gives():
    recommender = learned(ROWS["time"])
    recommender.forget("bob")
    recommender.forget("ann", items=["c"])
    kept = [place for place, user in enumerate(ROWS["user"]) if user != "bob" and place != 2]
    outcome = pa.table(ROWS).take(kept)
    assert names(recommender) == names(Recommender("sasrec", **SMALL).fit(outcome))
    assert recommender.verify().identical
