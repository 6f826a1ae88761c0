"""Options made from settings: every setting has one, under its own name, and its value arrives."""

import inspect
import re
from typing import Literal

import pytest
from pydantic import BaseModel, ConfigDict, Field

from erasable.chain import Config
from erasable.chain.settings import settings_classes
from erasable.checked_settings import sentences_of
from erasable.cli.options import (
    COLUMN_OPTIONS,
    CONFIG_OPTIONS,
    columns_from,
    parameters_of,
    settings_options,
    work_with,
)
from erasable.data import ColumnNames
from erasable.errors import WrongSetting
from erasable.workspace import Workspace

# A value other than the default for each setting; all go together.
VALUES = {
    "strategy": ("sisa", "sisa"),
    "aggregate": ("own", "own"),
    "epochs": ("3", 3),
    "epoch_budget": ("full", "full"),
    "policy": ("fixed", "independent"),
    "seed": ("7", 7),
    "model": ("dmf", "dmf"),
    "batch": ("32", 32),
    "negatives": ("2", 2),
    "learning_rate": ("0.01", 0.01),
    "grouping": ("independent", "independent"),
    "groups": ("2", 2),
    "order": ("number", "number"),
    "reach": ("6", 6),
    "holdout": ("0.3", 0.3),
    "min_interactions": ("2", 2),
    "rating_scale": ("0 6", (0.0, 6.0)),
    "chosen_on": ("declared", "declared"),
}
# These do not go with the others.
OTHER_VALUES = {
    "rows": ("solved", "solved"),
    "anchors": ("0.5", 0.5),
    "risk_threshold": ("0.7", 0.7),
    "row_epochs": ("2", 2),
}
# These are for weights.
VALUES_OF_WEIGHTS = {"max_weight": ("7", 7), "event_weights": ("view=1,buy=5", {"view": 1, "buy": 5})}
# These are of another model.
VALUES_OF_ALS = {"factors": ("5", 5), "regularisation": ("3", 3.0)}
VALUES_OF_SASREC = {
    "factors": ("8", 8),
    "blocks": ("1", 1),
    "heads": ("2", 2),
    "dropout": ("0.1", 0.1),
    "sampled": ("2", 2),
    "length": ("7", 7),
    "torch_threads": ("2", 2),
}
VALUES_OF_SPLITS = {"split": ("time", "time"), "split_time": ("1002", "1002")}
VALUES_OF_FEATURES = {"features": ("author", {"author": 3})}
VALUES_OF_TWO_TOWER = {"hidden": ("8", 8), "masked": ("0.4", 0.4)}
NAMES = {"model", "strategy", *(name for kind in settings_classes().values() for name in kind.model_fields)}


class Toy(BaseModel):
    model_config = ConfigDict(use_attribute_docstrings=True)

    size: int = Field(3, ge=1)
    """How large."""
    colour: Literal["red", "blue"] | None = None
    """Which colour."""


def test_every_setting_and_every_column_is_an_option_of_learn(run):
    text = run("learn", "--help").out
    options = set(re.findall(r"--[a-z-]+", text))
    names = [*NAMES, *(f"{name}_column" for name in ColumnNames.model_fields)]
    assert {"--" + name.replace("_", "-") for name in names} <= options
    given = {*VALUES, *OTHER_VALUES, *VALUES_OF_WEIGHTS, *VALUES_OF_ALS, *VALUES_OF_SASREC, *VALUES_OF_TWO_TOWER}
    assert given | {*VALUES_OF_SPLITS, *VALUES_OF_FEATURES} | {"neighbours", "shrinkage", "vectors"} == NAMES


def test_the_value_of_every_option_arrives(run, ratings_file, tmp_path):
    words = [word for name, (given, _) in VALUES.items() for word in ("--" + name.replace("_", "-"), *given.split())]
    assert run("learn", ratings_file, "--into", tmp_path / "shop", *words).code == 0
    assert settings_in(tmp_path / "shop", VALUES) == {name: value for name, (_, value) in VALUES.items()}


@pytest.mark.parametrize(("given", "value"), [("7", 7), ("all", "all")])
def test_neighbours_are_a_number_or_all(run, ratings_file, tmp_path, given, value):
    words = ("--model", "ease", "--neighbours", given)
    assert run("learn", ratings_file, "--into", tmp_path / "shop", *words).code == 0
    assert settings_in(tmp_path / "shop", {"neighbours": None}) == {"neighbours": value}


@pytest.mark.parametrize(
    ("grouping", "given", "value"),
    [("cbkm", (), "erasable"), ("cbkm", ("--vectors", "gensim"), "gensim"), ("bkm", ("--vectors", "gensim"), None)],
)
def test_vectors_are_those_of_a_grouping_by_vectors(run, ratings_file, tmp_path, grouping, given, value):
    words = ("--model", "nmf", "--groups", 2, "--epochs", 1, "--grouping", grouping, *given)
    assert run("learn", ratings_file, "--into", tmp_path / "shop", *words).code == 0
    assert settings_in(tmp_path / "shop", {"vectors": None}) == {"vectors": value}


@pytest.mark.parametrize(
    ("given", "said"),
    [("few", "a whole number"), ("1.5", "a whole number"), ("0", "at least 1"), ("10001", "at most 10,000")],
)
def test_other_neighbours_are_refused_with_what_can_be_given(run, ratings_file, tmp_path, given, said):
    result = run("learn", ratings_file, "--into", tmp_path / "shop", "--model", "ease", "--neighbours", given)
    assert (result.code, result.out) == (2, "")
    assert result.err == f"erasable: wrong setting --neighbours: give {said} or 'all'\n"


def test_the_value_of_every_other_option_arrives(run, tmp_path):
    (tmp_path / "t.csv").write_text("user,item,rating,risk\nann,a,2,0.9\nann,b,1,0.9\nbob,b,3,0.1\ncy,a,3,0.6\n")
    words = [word for name, (given, _) in OTHER_VALUES.items() for word in ("--" + name.replace("_", "-"), given)]
    options = ("--risk-column", "risk", "--model", "nmf", "--groups", 2, *words)
    assert run("learn", tmp_path / "t.csv", "--into", tmp_path / "shop", *options).code == 0
    assert settings_in(tmp_path / "shop", OTHER_VALUES) == {name: value for name, (_, value) in OTHER_VALUES.items()}


def settings_in(folder, names):
    with Workspace.reading(folder) as workspace:
        found = workspace.state().dataset.config.flat()
    return {name: tuple(value) if isinstance(value, list) else value for name, value in found.items() if name in names}


def test_the_value_of_every_option_of_weights_arrives(run, tmp_path):
    (tmp_path / "t.csv").write_text("user,item,type\nann,a,view\nann,b,buy\nbob,b,view\ncy,a,buy\n")
    words = [word for name, (given, _) in VALUES_OF_WEIGHTS.items() for word in ("--" + name.replace("_", "-"), given)]
    assert run("learn", tmp_path / "t.csv", "--into", tmp_path / "shop", "--event-column", "type", *words).code == 0
    values = {name: value for name, (_, value) in VALUES_OF_WEIGHTS.items()}
    assert settings_in(tmp_path / "shop", VALUES_OF_WEIGHTS) == values


def test_the_value_of_every_option_of_splits_and_features_arrives(run, ratings_file, tmp_path):
    (tmp_path / "items.csv").write_text("item_id,author\na,Ann\nb,Ann\n")
    chosen = VALUES_OF_SPLITS | VALUES_OF_FEATURES
    words = [word for name, (given, _) in chosen.items() for word in ("--" + name.replace("_", "-"), given)]
    words += ["--items", str(tmp_path / "items.csv")]
    assert run("learn", ratings_file, "--into", tmp_path / "shop", *words).code == 0
    assert settings_in(tmp_path / "shop", chosen) == {name: value for name, (_, value) in chosen.items()}


def test_the_shrinkage_of_item_knn_arrives(run, ratings_file, tmp_path):
    words = ("--model", "item-knn", "--shrinkage", 3)
    assert run("learn", ratings_file, "--into", tmp_path / "shop", *words).code == 0
    assert settings_in(tmp_path / "shop", {"shrinkage": None}) == {"shrinkage": 3.0}


def test_the_value_of_every_option_of_als_arrives(run, ratings_file, tmp_path):
    words = [word for name, (given, _) in VALUES_OF_ALS.items() for word in ("--" + name, given)]
    assert run("learn", ratings_file, "--into", tmp_path / "shop", "--model", "als", *words).code == 0
    assert settings_in(tmp_path / "shop", VALUES_OF_ALS) == {name: value for name, (_, value) in VALUES_OF_ALS.items()}


@pytest.mark.parametrize(
    ("model", "values"), [("sasrec", VALUES_OF_SASREC), ("two-tower", VALUES_OF_TWO_TOWER)], ids=["sasrec", "two-tower"]
)
def test_the_value_of_every_option_of_a_torch_model_arrives(run, tmp_path, model, values):
    (tmp_path / "t.csv").write_text("user,item,time\nann,a,1\nann,b,2\nbob,b,3\nbob,c,4\n")
    words = [word for name, (given, _) in values.items() for word in ("--" + name.replace("_", "-"), given)]
    options = "--into", tmp_path / "shop", "--model", model, "--epochs", 1, *words
    assert run("learn", tmp_path / "t.csv", *options).code == 0
    assert settings_in(tmp_path / "shop", values) == {name: value for name, (_, value) in values.items()}


def test_the_value_of_every_column_arrives(run, tmp_path):
    (tmp_path / "t.csv").write_text("when,how,what,who\n50,2,a,ann\n60,3,b,bob\n")
    words = ("--user-column", "who", "--item-column", "what", "--rating-column", "how", "--time-column", "when")
    options = ("--model", "nmf", "--groups", 2, "--epochs", 1, *words)
    assert run("learn", tmp_path / "t.csv", "--into", tmp_path / "shop", *options).code == 0
    found = run("show", tmp_path / "shop", "--user", "bob", "--json").json["interactions"]
    assert found == [{"item_id": "b", "rating": 3.0, "time": 60.0, "held_out": False}]


def test_an_option_left_out_keeps_the_default(run, ratings_file, tmp_path):
    run("learn", ratings_file, "--into", tmp_path / "shop", "--model", "nmf", "--groups", 2)
    with Workspace.reading(tmp_path / "shop") as workspace:
        assert workspace.state().dataset.config == Config(model="nmf", groups=2)


def test_help_shows_the_sentence_and_the_default_of_a_setting(run):
    text = "".join(run("learn", "--help").out.split())  # lines may break after a hyphen
    for kind in settings_classes().values():
        for sentence in sentences_of(kind).values():
            assert "".join(sentence.split()) in text
    assert "--rating-scaleLOWHIGH" in text


@pytest.mark.parametrize(("command", "share"), [("learn", "0.0"), ("compare", "0.1"), ("tune", "0.1")])
def test_help_shows_what_each_command_holds_out_by_default(run, command, share):
    text = " ".join(run(command, "--help").out.split())
    assert f"[default: ({share})]" in text[text.index("The share of interactions kept out of training") :][:120]


def test_help_shows_whose_settings_are_whose_with_their_true_defaults(run):
    text = " ".join(run("learn", "--help").out.split())
    assert "Settings of als, sasrec and two-tower: --factors" in text
    assert "Settings of als and ease: --regularisation" in text
    assert "[default: (20.0 for als)]" in text
    assert "Settings of nmf and dmf: --negatives" in text
    assert "[default: (0.001 for nmf and sasrec, 0.005 for dmf, 0.003 for two-tower)]" in text
    assert "Settings of strategies laser and sisa: --grouping" in text


def test_parameters_have_the_sentence_of_the_setting_and_are_optional():
    found = parameters_of(Toy, suffix="_of_toy")
    assert list(found) == ["size_of_toy", "colour_of_toy"]
    assert {parameter.default for parameter in found.values()} == {None}
    assert found["size_of_toy"].annotation.__metadata__[0].help == "How large."


def test_a_command_receives_its_own_options_and_those_that_were_given():
    heard = []

    @settings_options(parameters_of(Toy), parameters_of(ColumnNames))
    def command(name: str, loud: bool = False, toy: dict | None = None, columns: dict | None = None) -> None:
        heard.append((name, loud, toy, columns))

    assert list(inspect.signature(command).parameters) == ["name", "loud", *Toy.model_fields, *ColumnNames.model_fields]
    nothing = dict.fromkeys(ColumnNames.model_fields)
    command(loud=True, name="x", size=4, colour=None, **{**nothing, "user": "u"})
    assert heard == [("x", True, {"size": 4}, {"user": "u"})]


def test_a_wrong_value_is_said_in_terms_of_its_option():
    with pytest.raises(WrongSetting) as refused:
        Config.of({"model": "nmf", "epoch_budget": "some"})
    assert refused.value.of_command == "wrong setting --epoch-budget: give 'shared' or 'full'"
    with pytest.raises(WrongSetting, match=r"^wrong setting: the policy independent needs"):
        Config.of({"model": "nmf", "policy": "independent"})
    with pytest.raises(WrongSetting) as refused:
        columns_from({"time_column": 3})
    assert refused.value.of_command == "wrong setting --time-column: give text"


def test_columns_lose_their_ending():
    assert columns_from({"user_column": "who"}) == ColumnNames(user="who")
    assert set(COLUMN_OPTIONS) == {
        *("user_column", "item_column", "rating_column", "time_column", "risk_column"),
        *("weight_column", "event_column"),
    }
    assert set(CONFIG_OPTIONS) == NAMES


def test_threads_are_those_asked_for_or_all_cores():
    assert work_with(3).threads == 3
    assert work_with(None).threads >= 1


def test_a_command_s_own_option_wins_over_a_setting_of_the_same_name():
    found = []

    @settings_options(parameters_of(Toy))
    def command(size: int, settings: dict) -> None:
        found.append((size, settings))

    command(size=5, colour="red")
    assert found == [(5, {"colour": "red"})]
    assert list(inspect.signature(command).parameters) == ["size", "colour"]
