"""`tune`: test rows never decide, finished trials stay, the study names nobody; certificates say what it rested on."""

import json
import tomllib
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from erasable import ALS, DataRefused, Laser, Recommender, WrongUse
from erasable.chain import Config
from erasable.data.catalogue import split_holdout
from erasable.data.columns import ColumnNames
from erasable.operations import Inputs, Work
from erasable.operations._validation import Validation
from erasable.operations.prepare import read_rows
from erasable.operations.tune import SettingsSearch, Tuned, tune
from kit import small_shop

HELD = {"model": "als", "holdout": 0.2, "seed": 3}
_WORK = Work(1)
SENTENCE = "The settings were chosen by trying them on data, of which the erased data may have been a part"


@pytest.fixture(scope="module")
def table() -> pa.Table:
    return small_shop.table(users=60, items=30)


def tuned(table, place: Path, trials=4, **settings):
    return tune(table, {**HELD, **settings}, SettingsSearch(place, trials), Inputs(), _WORK)


def rated(table: pa.Table, seed: int) -> tuple[pa.Table, int]:
    """Return the table with other items in the rows that are test rows, and how many there are."""
    rows = read_rows(table, Config(**HELD), Inputs(), _WORK)
    _, test = split_holdout(rows.interactions, 0.2, 3)
    pairs = {(test.users[u], test.items[i]) for u, i in zip(test.user_index, test.item_index, strict=True)}
    draw = np.random.default_rng(seed)
    cells = zip(table["user_id"].to_pylist(), table["item_id"].to_pylist(), table["rating"].to_pylist(), strict=True)
    changed = [(u, i, float(draw.integers(1, 6)) if (u, i) in pairs else r) for u, i, r in cells]
    columns = list(zip(*changed, strict=True))
    return pa.table(dict(zip(("user_id", "item_id", "rating"), columns, strict=True))), len(pairs)


def test_test_rows_are_not_among_the_rows_that_are_tried(table):
    config = Config(**HELD)
    rows = read_rows(table, config, Inputs(), _WORK)
    training, test = split_holdout(rows.interactions, 0.2, 3)
    validation = Validation.inside(rows, config, _WORK)
    assert len(test) > 50
    assert validation.rows.interactions.has_rows_of(training)
    inner = validation.rows.arranged(config.changed(**validation.own), _WORK)
    assert 0 < inner.counts.held_out < len(training)


def test_what_test_rows_say_changes_nothing(table, tmp_path):
    as_it_is = tuned(table, tmp_path / "a.study")
    other, count = rated(table, seed=1)
    assert count > 50
    assert tuned(other, tmp_path / "b.study") == as_it_is


def test_what_training_rows_say_changes_the_outcome(table, tmp_path):
    # Planted: the same change in rows that are not test rows is seen.
    draw = np.random.default_rng(1)
    other = table.set_column(2, "rating", pa.array(draw.integers(1, 6, table.num_rows), pa.float32()))
    assert tuned(other, tmp_path / "b.study").score != tuned(table, tmp_path / "a.study").score


def test_a_search_that_was_stopped_goes_on_as_if_it_had_not_been(table, tmp_path):
    whole = tuned(table, tmp_path / "whole.study", trials=5)
    tuned(table, tmp_path / "parts.study", trials=2)
    lines = (tmp_path / "parts.study").read_text().count("\n")
    assert tuned(table, tmp_path / "parts.study", trials=5) == whole
    assert (tmp_path / "parts.study").read_text().count("\n") > lines


def test_a_trial_that_was_interrupted_counts_for_nothing(table, tmp_path, monkeypatch):
    real, asked = Validation.score, []

    def stopped(self, config, objective="ndcg@10"):
        asked.append(config)
        if len(asked) == 3:
            raise KeyboardInterrupt
        return real(self, config, objective)

    monkeypatch.setattr(Validation, "score", stopped)
    with pytest.raises(KeyboardInterrupt):
        tuned(table, tmp_path / "a.study", trials=4)
    monkeypatch.undo()
    assert tuned(table, tmp_path / "a.study", trials=2).trials == 2
    assert tuned(table, tmp_path / "a.study", trials=4).trials == 4


@pytest.mark.parametrize("when", ["before it is begun", "while it is learned"])
def test_if_the_very_first_trial_is_interrupted_the_search_is_still_the_same(table, tmp_path, monkeypatch, when):
    whole = tuned(table, tmp_path / "whole.study", trials=4)

    def interrupted(*_):
        raise KeyboardInterrupt

    with monkeypatch.context() as broken:
        if when == "before it is begun":
            broken.setattr("optuna.study.Study.ask", interrupted)
        else:
            broken.setattr(Validation, "score", interrupted)
        for _ in range(2):
            with pytest.raises(KeyboardInterrupt):
                tuned(table, tmp_path / "parts.study", trials=4)
    assert tuned(table, tmp_path / "parts.study", trials=4) == whole
    assert whole.usual is not None


def test_the_first_trial_is_the_defaults_and_the_best_is_no_worse(table, tmp_path):
    found = tuned(table, tmp_path / "a.study")
    assert found.usual is not None
    assert found.score >= found.usual
    assert {*found.settings} <= {"factors", "regularisation", "epochs", "seed"}


def test_the_study_names_nobody(table, tmp_path):
    tuned(table, tmp_path / "a.study")
    text = (tmp_path / "a.study").read_text()
    assert '"factors"' in text
    assert not any(user in text for user in set(table["user_id"].to_pylist()))
    assert not any(item in text for item in set(table["item_id"].to_pylist()))
    assert f": {table.num_rows}" not in text


def test_a_study_of_another_search_is_refused(table, tmp_path):
    tuned(table, tmp_path / "a.study", trials=1)
    with pytest.raises(WrongUse, match="holds a search with other data or settings: name another file"):
        tuned(table, tmp_path / "a.study", trials=2, seed=4)
    (tmp_path / "b.study").write_text("user,item\n")
    with pytest.raises(WrongUse, match="is no study: name another file"):
        tuned(table, tmp_path / "b.study", trials=1)


def test_a_study_of_other_data_of_the_same_size_is_refused(table, tmp_path):
    tuned(table, tmp_path / "a.study", trials=1)
    others = table.set_column(0, "user_id", pa.array([f"x{one}" for one in table["user_id"].to_pylist()]))
    with pytest.raises(WrongUse, match="holds a search with other data"):
        tuned(others, tmp_path / "a.study", trials=1)
    shuffled = table.take(np.random.default_rng(1).permutation(table.num_rows))
    assert tuned(shuffled, tmp_path / "a.study", trials=1).trials == 1  # the same rows in another order are no others


def test_a_study_in_a_workspace_is_refused(table, tmp_path):
    Recommender("popular", threads=1, progress=False).fit(table).save(tmp_path / "shop")
    with pytest.raises(WrongUse, match="name a file elsewhere"):
        tuned(table, tmp_path / "shop" / "a.study")


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"model": "popular"}, "the model popular says of none of its settings what to search"),
        ({"factors": 8, "epochs": 2, "regularisation": 5}, "all settings that als searches are given"),
    ],
)
def test_nothing_to_search_is_refused(table, tmp_path, settings, said):
    with pytest.raises(WrongUse, match=said):
        tuned(table, tmp_path / "a.study", **settings)


def test_a_split_by_time_without_times_is_refused(table, tmp_path):
    settings = {"model": "als", "split": "leave-last-out"}
    with pytest.raises(DataRefused, match="needs times, and there are none"):
        tune(table, settings, SettingsSearch(tmp_path / "study", 2), Inputs(), _WORK)


def test_an_unknown_measure_is_refused_with_those_there_are(table, tmp_path):
    with pytest.raises(WrongUse, match=r"there is no metric 'ndgc@10': did you mean ndcg@10\? Else write hr, ndcg"):
        tune(table, HELD, SettingsSearch(tmp_path / "a.study", 2, "ndgc@10"), Inputs(), _WORK)


def test_a_measure_may_be_written_in_capitals(table, tmp_path):
    found = tune(table, HELD, SettingsSearch(tmp_path / "a.study", 1, "NDCG@10"), Inputs(), _WORK)
    assert found.objective == "ndcg@10"


@pytest.mark.parametrize(
    ("settings", "trials", "said"),
    [
        ({}, 0, "0 trials find nothing"),
        ({"model": ALS(factors=8)}, 1, "a model is tuned by its name"),
        ({"features": ["author"]}, 1, "`features` is not for tuning"),
        ({"chosen_on": "declared"}, 1, "`chosen_on` is not for tuning"),
    ],
)
def test_what_a_file_of_settings_could_not_say_is_refused(tmp_path, settings, trials, said):
    with pytest.raises(WrongUse, match=said):
        tuned("no such file.csv", tmp_path / "a.study", trials, **settings)
    assert not (tmp_path / "a.study").exists()


def test_a_setting_that_is_given_stays(table, tmp_path):
    found = tuned(table, tmp_path / "a.study", epochs=3)
    assert found.settings["epochs"] == 3
    assert '"epochs", "param_value' not in (tmp_path / "a.study").read_text()


def test_settings_of_the_data_stay_too_but_not_what_is_held_out(table, tmp_path):
    weighed = table.rename_columns(["user_id", "item_id", "quantity"])
    inputs = Inputs(ColumnNames(weight="quantity"))
    given = {**HELD, "max_weight": 4, "min_interactions": 2, "rating_scale": None}
    found = tune(weighed, given, SettingsSearch(tmp_path / "a.study", 1), inputs, _WORK)
    assert found.settings == {"max_weight": 4, "min_interactions": 2, "seed": 3}


def test_settings_in_the_object_of_a_strategy_stay(table, tmp_path):
    given = {"model": "nmf", "strategy": Laser(groups=2, order="hard"), "epochs": 2}
    found = tuned(table, tmp_path / "a.study", 1, **given)
    assert found.settings == {"strategy": "laser", "groups": 2, "order": "hard", "epochs": 2, "seed": 3}
    assert tomllib.loads(found.as_toml()).items() >= found.settings.items()


def test_names_of_events_are_written_as_toml_reads_them(table):
    weights = {'a "b", c': 1, "d=\U0001f600": 2}
    found = Tuned("als", {"event_weights": weights}, 0.1, 0.1, "ndcg@10", 1, "", "", "")
    assert tomllib.loads(found.as_toml())["event_weights"] == weights


@pytest.mark.parametrize("model", ["ease", "item-knn", "nmf", "dmf"])
def test_every_other_model_that_says_what_to_search(table, tmp_path, model):
    found = tuned(table, tmp_path / "a.study", trials=2, model=model)
    assert found.trials == 2
    settings = tomllib.loads(found.as_toml())
    assert settings.pop("model") == model
    assert Config(model=model, **settings).own.chosen_on == "data"


@pytest.mark.parametrize(("chosen_on", "says"), [("data", True), ("declared", False), (None, False)])
def test_certificates_say_that_settings_were_chosen_on_data_unless_they_are_declared(table, chosen_on, says):
    settings = {} if chosen_on is None else {"chosen_on": chosen_on}
    own = Recommender("ease", threads=1, progress=False, **settings).fit(table)
    (name,) = own.forget(own.users[0]).certificates
    with own._learned_storage().reading() as session:
        said = json.loads(session.issued()[name])
    assert (SENTENCE in said["does_not_prove"]) is says
    assert said["settings"].get("chosen_on") == chosen_on
