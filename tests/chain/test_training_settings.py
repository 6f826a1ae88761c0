"""`Config`: a model, a strategy and a recommender, each with its own settings, under flat names."""

import re

import pytest
from pydantic import Field

from erasable.chain import Config, Laser, Retrain, Sisa
from erasable.chain.settings import PRESETS
from erasable.chain.strategies import LaserSettings
from erasable.errors import WrongSetting, WrongUse
from erasable.models import ALS, EASE, NMF
from erasable.models._nmf import NMFSettings

TEN_EPOCHS = {"model": "nmf", "groups": 8, "epochs": 10}

DEFAULT = "ease (the default model)"


def test_by_default_it_is_ease_from_200_neighbours():
    config = Config()
    assert (config.model, config.strategy, config.groups, config.policy) == ("ease", "retrain", 1, "fixed")
    assert (config.setting("neighbours"), config.setting("regularisation")) == (200, None)
    assert (config.anchors, config.rows) == (1, "stage")
    assert (config.holdout, config.min_interactions, config.seed) == (0, 0, 0)


def test_als_is_what_it_was_when_it_was_the_default():
    config = Config(model="als")
    assert (config.strategy, config.groups, config.policy) == ("retrain", 1, "fixed")
    assert (config.setting("factors"), config.setting("regularisation"), config.epochs) == (64, 20, 20)
    assert (config.anchors, config.rows) == (1, "solved")


def test_a_model_that_is_trained_by_steps_is_learned_in_a_chain():
    config = Config(model="nmf")
    assert (config.strategy, config.groups, config.policy, config.grouping) == ("laser", 8, "fixed", "random")
    assert (config.rows, config.anchors, config.aggregate) == ("stage", 1, None)


def test_no_setting_switches_the_model():
    config = Config(neighbours=5)
    assert (config.model, config.setting("neighbours"), config.groups) == ("ease", 5, 1)
    for setting in ({"groups": 8}, {"grouping": "random"}, {"batch": 64}, {"strategy": "laser"}, {"row_epochs": 2}):
        with pytest.raises(WrongSetting, match="nmf"):
            Config(**setting)
    for setting in ({"factors": 8}, {"epochs": 5}):
        with pytest.raises(WrongSetting, match="als"):
            Config(**setting)


@pytest.mark.parametrize(
    "setting",
    [
        *({"factors": 8}, {"epochs": 5}, {"groups": 8}, {"grouping": "bkm"}, {"order": "count"}, {"reach": 6}),
        *({"epoch_budget": "full"}, {"batch": 9}, {"negatives": 1}, {"learning_rate": 0.1}, {"row_epochs": 2}),
        *({"strategy": "laser"}, {"strategy": "sisa"}, {"aggregate": "own"}),
    ],
    ids=str,
)
def test_what_the_default_model_does_not_have_is_refused_with_a_model_that_has_it(setting):
    with pytest.raises(WrongSetting) as refused:
        Config(**setting)
    named = re.findall(r'`(model|strategy)="(\w+)"`', str(refused.value).removesuffix(", or leave it out"))
    remedy = {name: value for name, value in named if name not in setting}
    assert Config(**remedy, **setting).model == remedy["model"] != "ease"
    assert all(f"--{name} {value}" in refused.value.of_command for name, value in remedy.items())


def test_a_model_that_was_chosen_is_not_called_the_default():
    for config in ({"model": "ease", "groups": 8}, {"model": "ease", "strategy": "laser"}):
        with pytest.raises(WrongSetting) as refused:
            Config(**config)
        assert "default" not in refused.value.of_command
    with pytest.raises(WrongSetting, match=r"^ease \(the default model\) can be learned with retrain only: "):
        Config(strategy="laser")


def test_a_setting_of_another_strategy_is_refused_in_the_words_of_where_it_was_given():
    with pytest.raises(WrongSetting) as refused:
        Config(groups=8)
    whose = "it belongs to the strategies laser and sisa of nmf, dmf, sasrec and two-tower; give"
    assert str(refused.value) == f'there is no setting `groups` in {DEFAULT}: {whose} `model="nmf"`, or leave it out'
    assert refused.value.of_command == f"{DEFAULT} has no option --groups: {whose} --model nmf, or leave it out"
    with pytest.raises(WrongSetting) as refused:
        Config(model="nmf", strategy="retrain", groups=8)
    whose = "it belongs to the strategies laser and sisa; give"
    assert refused.value.of_command == f"retrain has no option --groups: {whose} --strategy laser, or leave it out"
    with pytest.raises(WrongSetting, match='in laser: it belongs to the strategy sisa; give `strategy="sisa"`'):
        Config(model="nmf", aggregate="own")


def test_a_setting_of_another_model_is_refused():
    with pytest.raises(WrongSetting) as refused:
        Config(learning_rate=0.1)
    whose = "it belongs to nmf, dmf, sasrec and two-tower; give --model nmf, or leave it out"
    assert refused.value.of_command == f"{DEFAULT} has no option --learning-rate: {whose}"
    with pytest.raises(WrongSetting, match="there is no setting `factors` in nmf: it belongs to als"):
        Config(model="nmf", factors=8)


def test_a_setting_that_nobody_has_is_refused_with_the_nearest():
    with pytest.raises(WrongSetting, match="there is no setting `n_factors` in als: did you mean `factors`"):
        Config(model="als", n_factors=8)
    with pytest.raises(WrongSetting, match="in nmf: did you mean `groups`"):
        Config(model="nmf", group=8)
    with pytest.raises(WrongSetting, match=r"in ease \(the default model\): did you mean `seed`"):
        Config(sed=8)
    with pytest.raises(
        WrongSetting, match=r"there is no setting `zzz` in ease \(the default model\): there are `anchors`, "
    ):
        Config(zzz=8)


def test_a_setting_that_is_nearest_to_one_of_another_model_is_refused_with_that_model():
    with pytest.raises(WrongSetting) as refused:
        Config(n_factors=8)
    whose = "did you mean {}? It belongs to als, sasrec and two-tower; give {}, or leave it out"
    named = whose.format("`factors`", '`model="als"`')
    assert str(refused.value) == f"there is no setting `n_factors` in {DEFAULT}: {named}"
    named = whose.format("--factors", "--model als")
    assert refused.value.of_command == f"{DEFAULT} has no option --n-factors: {named}"


def test_american_keywords_of_the_field_are_accepted():
    assert Config(regularization=3.0, random_state=4) == Config(regularisation=3.0, seed=4)


def test_models_and_strategies_may_be_objects():
    assert Config(model=ALS(factors=8)) == Config(model="als", factors=8)
    assert Config(model=NMF(epochs=5), strategy=Sisa(groups=2)) == Config(
        model="nmf", strategy="sisa", epochs=5, groups=2
    )
    assert Config(model=NMF, strategy=Laser(groups=3), seed=4) == Config(model="nmf", groups=3, seed=4)


@pytest.mark.parametrize(
    "twice",
    [
        {"seed": 1, "random_state": 2},
        {"seed": 1, "random_state": 1},
        {"regularisation": 1, "regularization": 1},
        {"model": ALS(factors=8), "factors": 16},
        {"model": ALS(regularization=8), "regularisation": 16},
        {"model": NMF, "strategy": Laser(groups=3), "groups": 4},
    ],
)
def test_a_setting_that_is_given_twice_is_refused(twice):
    with pytest.raises(WrongSetting, match=r"is given twice, .*: leave one out"):
        Config(**twice)


def test_a_model_that_is_given_both_names_of_a_setting_is_refused():
    with pytest.raises(WrongSetting, match="as `regularisation` and as `regularization`: leave one out"):
        ALS(regularisation=1, regularization=1)


def test_what_is_given_wins_over_a_preset_however_it_is_given():
    assert Config.of({"strategy": Laser(groups=3)}, "paper").groups == 3
    assert Config.of({"groups": 3}, "paper").groups == 3


def test_the_preset_for_sparse_data_sets_what_its_model_gains_from():
    assert Config.of({}, "sparse") == Config(model="ease", neighbours=300)
    assert Config.of({"model": EASE(neighbours=7)}, "sparse").setting("neighbours") == 7
    assert Config.of({"neighbours": 7}, "sparse").setting("neighbours") == 7
    with pytest.raises(WrongUse, match="the preset 'sparse' changes nothing for als, only for ease: leave it out"):
        Config.of({"model": "als"}, "sparse")


def test_changing_a_setting_keeps_the_others():
    config = Config(model=NMF(epochs=5, batch=7), strategy=Sisa(groups=2), seed=4)
    assert config.changed(epochs=6) == Config(model="nmf", strategy="sisa", epochs=6, batch=7, groups=2, seed=4)


def test_what_is_no_model_and_no_strategy_is_refused():
    with pytest.raises(
        WrongSetting, match="there is no model 'bert': choose one of als, ease, nmf, dmf, item-knn, popular"
    ):
        Config(model="bert")
    with pytest.raises(WrongSetting, match="is not a model: give a class that derives from"):
        Config(model=3)
    with pytest.raises(WrongSetting, match="there is no strategy 'guess': choose one of laser, sisa, retrain"):
        Config(strategy="guess")
    with pytest.raises(WrongSetting, match="there is no strategy"):
        Config(strategy=ALS())


@pytest.mark.parametrize("settings", [{}, {"model": "als"}, {"model": "nmf", "groups": 3}, {"anchors": 0.5}], ids=str)
def test_settings_written_flat_are_the_same_settings(settings):
    config = Config(**settings)
    assert Config.of(config.flat()) == config


def test_flat_settings_are_those_that_the_model_and_the_strategy_have():
    own = {"rows", "anchors", "risk_threshold", "seed", "holdout", "min_interactions", "rating_scale"}
    assert set(Config(model="als").flat()) == {
        "model",
        "strategy",
        "factors",
        "regularisation",
        "epochs",
        "policy",
        *own,
    }
    assert set(Config().flat()) == {"model", "strategy", "neighbours", "regularisation", "policy", *own}


def test_some_settings_can_be_changed():
    config = Config(model=NMF(epochs=5), groups=3, anchors=0.5)
    assert config.changed(seed=4, groups=2) == Config(model="nmf", epochs=5, groups=2, anchors=0.5, seed=4)
    assert config.seed == 0


@pytest.mark.parametrize(
    ("before", "change", "after"),
    [
        ({}, {"anchors": 0.5}, {"rows": "solved"}),
        ({"anchors": 0.5}, {"anchors": 1}, {"rows": "stage"}),
        ({"model": "nmf"}, {"strategy": "sisa"}, {"rows": "stage"}),
        ({"model": "nmf", "groups": 3}, {"strategy": "sisa"}, {"groups": 3, "aggregate": "mean"}),
        ({"model": "nmf"}, {"grouping": "cbkm"}, {"order": "easy", "vectors": "erasable"}),
        ({"model": "nmf", "grouping": "cbkm"}, {"grouping": "random"}, {"order": "number", "vectors": None}),
        ({"model": "nmf"}, {"grouping": "independent"}, {"policy": "independent"}),
        ({"model": "nmf", "grouping": "independent"}, {"grouping": "random"}, {"policy": "fixed"}),
        ({"model": "nmf", "grouping": "cbkm", "order": "hard"}, {"grouping": "bkm"}, {"order": "hard"}),
        ({"model": "nmf", "rows": "solved"}, {"seed": 1}, {"rows": "solved"}),
        ({"model": "nmf", "strategy": "retrain", "risk_threshold": 0.5, "rows": "solved"}, {"seed": 1}, {}),
        ({"model": "nmf", "epochs": 5}, {"model": "nmf", "groups": 3}, {"epochs": 5}),
        ({"model": "nmf", "groups": 3}, {"strategy": "laser", "seed": 1}, {"groups": 3}),
    ],
)
def test_what_followed_from_a_setting_follows_when_it_is_changed_and_the_others_stay(before, change, after):
    held = Config(**before)
    from_file = Config(**held.flat())  # a workspace holds every setting, also those that nobody gave
    for config in (held, from_file):
        changed = config.changed(**change).flat()
        assert changed == Config(**{**before, **change}).flat()
        assert {name: changed[name] for name in after} == after


def test_the_documents_setting_replaces_every_setting_of_its_strategy():
    other = Config(model="nmf", policy="regroup", epoch_budget="full", grouping="cbkm", reach=8, vectors="gensim")
    assert other.changed(**PRESETS["paper"]).flat() == Config(**PRESETS["paper"]).flat()
    assert {*LaserSettings.model_fields} <= {*PRESETS["paper"]}


def test_of_a_strategy_what_the_new_one_lacks_goes():
    config = Config(model="nmf", groups=3, policy="regroup").changed(strategy="retrain")
    assert (config.strategy, config.groups, config.policy) == ("retrain", 1, "regroup")
    assert Config(model="nmf", groups=3).changed(strategy=Sisa(aggregate="own")).groups == 8


@pytest.mark.parametrize(
    ("before", "change", "remedy"),
    [
        ({"order": "count"}, {"grouping": "independent"}, {"order": "number"}),
        ({"policy": "regroup"}, {"grouping": "given"}, {"policy": "fixed"}),
        ({"rows": "solved"}, {"strategy": "sisa"}, {"rows": "stage", "anchors": 1}),
        ({"anchors": 0.5}, {"strategy": "sisa"}, {"rows": "stage", "anchors": 1}),
        ({"anchors": 0.5}, {"rows": "stage"}, {"rows": "solved"}),
        ({"anchors": 0.5}, {"rows": "stage", "strategy": "sisa"}, {"rows": "stage", "anchors": 1}),
    ],
)
def test_what_contradicts_a_setting_that_was_chosen_is_refused_with_what_to_give(before, change, remedy):
    config = Config(model="nmf", **before)
    with pytest.raises(WrongSetting) as refused:
        config.changed(**change)
    for name, value in remedy.items():
        assert f'`{name}="{value}"`' in str(refused.value) or f"`{name}={value}`" in str(refused.value)
    config.changed(**{**change, **remedy})


def test_a_config_can_t_be_changed_in_place():
    with pytest.raises(AttributeError):
        Config().seed = 4
    with pytest.raises(AttributeError):
        Config().learner = NMF()


def test_who_is_no_anchor_has_a_solved_row():
    assert Config(model="nmf", anchors=0.3).rows == "solved"
    assert Config(model="ease", anchors=0.3).rows == "solved"
    assert Config(model="ease").rows == "stage"


def test_of_a_model_without_rows_who_is_at_risk_shapes_nothing():
    assert Config(risk_threshold=0.5).rows == "solved"
    with pytest.raises(WrongSetting, match='give `rows="solved"`'):
        Config(risk_threshold=0.5, rows="stage")
    with pytest.raises(WrongSetting, match='give `anchors` below 1, or `strategy="laser"`'):
        Config(model="nmf", strategy="retrain", risk_threshold=0.5)


def test_the_documents_setting_has_a_name():
    config = Config.of({"seed": 3}, "paper")
    assert (config.model, config.strategy, config.grouping, config.order) == ("nmf", "laser", "cbkm", "easy")
    assert (config.groups, config.rows, config.anchors, config.seed) == (8, "stage", 1, 3)
    assert Config.of({"groups": 4}, "paper").groups == 4
    with pytest.raises(WrongUse, match="choose one of paper"):
        Config.of({}, "book")


@pytest.mark.parametrize(("epochs", "groups", "each"), [(10, 8, 2), (16, 8, 2), (17, 8, 3), (1, 8, 1), (10, 1, 10)])
def test_groups_share_the_epochs_rounded_up_or_get_all_of_them(epochs, groups, each):
    settings = {"model": "nmf", "epochs": epochs, "groups": groups}
    assert Config(**settings, epoch_budget="shared").stage_epochs == each
    assert Config(**settings, epoch_budget="full").stage_epochs == epochs


def test_retrain_is_one_group_with_all_epochs():
    config = Config(model="nmf", strategy="retrain", epochs=7)
    assert (config.groups, config.stage_epochs) == (1, 7)


def test_independent_groups_imply_the_policy():
    assert Config(model="nmf", grouping="independent").policy == "independent"
    assert Config(model="nmf", grouping="random").policy == "fixed"
    assert Config(strategy=Retrain(policy="independent")).grouping == "independent"


@pytest.mark.parametrize(
    "wrong",
    [
        {"model": "nmf", "policy": "independent", "grouping": "random"},
        {"model": "nmf", "policy": "independent", "grouping": "independent", "order": "count"},
        {"model": "nmf", "grouping": "independent", "order": "count"},
        {"model": "als", "epochs": 0},
        {"neighbours": 0},
        {"model": "nmf", "groups": 0},
        {"seed": -1},
        {"seed": 2**63},
        {"holdout": 1},
        {"rating_scale": (5, 1)},
        {"strategy": "guess"},
        {"model": "als", "epoch": 3},
        {"model": "ease", "strategy": "laser"},
        {"model": "ease", "epochs": 5},
        {"model": "als", "strategy": "sisa"},
        {"model": "als", "rows": "stage"},
        {"anchors": 0},
        {"anchors": 1.5},
        {"model": "nmf", "anchors": 0.5, "rows": "stage"},
        {"model": "nmf", "strategy": "sisa", "rows": "solved"},
        {"model": "nmf", "strategy": "retrain", "risk_threshold": 0.5},
        {"model": "nmf", "groups": 2, "policy": "regroup", "risk_threshold": 0.5},
    ],
    ids=str,
)
def test_settings_without_sense_are_refused(wrong):
    with pytest.raises(WrongUse):
        Config.of(wrong)


def test_several_models_are_aggregated_by_their_mean_unless_told_otherwise():
    assert Config(model="nmf", strategy="sisa").aggregate == "mean"
    assert Config(model="nmf", strategy="sisa", aggregate="own").aggregate == "own"


@pytest.mark.parametrize("grouping", ["cbkm", "cbkm-near", "bkm", "clpa", "cgmm"])
def test_groups_by_likeness_go_from_easy_to_hard_unless_told_otherwise(grouping):
    assert Config(model="nmf", grouping=grouping).order == "easy"
    assert Config(model="nmf", grouping=grouping, order="number").order == "number"


@pytest.mark.parametrize("grouping", ["random", "independent", "given"])
def test_other_groups_go_by_number_unless_told_otherwise(grouping):
    assert Config(model="nmf", grouping=grouping).order == "number"


def test_groups_that_are_given_can_t_be_decided_anew():
    with pytest.raises(WrongSetting, match="given groups can't be computed again"):
        Config(model="nmf", grouping="given", policy="regroup")


@pytest.mark.parametrize("reach", [2, 5, 66])
def test_reach_is_an_even_number_from_4_on(reach):
    with pytest.raises(WrongSetting, match="wrong setting `reach`"):
        Config(model="nmf", reach=reach)


@pytest.mark.parametrize(
    "other",
    [
        {"model": "dmf"},
        {"batch": 64},
        {"negatives": 1},
        {"learning_rate": 0.5},
        {"epochs": 17},
        {"epoch_budget": "full"},
    ],
    ids=str,
)
def test_what_decides_a_stage_is_among_its_facts(other):
    assert Config(**{**TEN_EPOCHS, **other}).stage_facts() != Config(**TEN_EPOCHS).stage_facts()


@pytest.mark.parametrize(
    "other",
    [
        {"holdout": 0.3},
        {"min_interactions": 5},
        {"grouping": "independent"},
        {"order": "count"},
        {"epochs": 16},
        {"row_epochs": 9},
    ],
    ids=str,
)
def test_what_a_stage_does_not_depend_on_is_not(other):
    """Data and groups reach a stage as its rows; 10 and 16 epochs are 2 for each of 8 groups."""
    assert Config(**{**TEN_EPOCHS, **other}).stage_facts() == Config(**TEN_EPOCHS).stage_facts()


def test_a_revision_decides_a_stage(monkeypatch):
    before = Config(**TEN_EPOCHS)
    monkeypatch.setattr(NMF, "revision", 2)
    assert Config(**TEN_EPOCHS).stage_facts() != before.stage_facts()
    assert before.changed(seed=3).revision == 1


def test_a_new_setting_of_one_model_changes_no_name_of_another_model(monkeypatch):
    class Longer(NMFSettings):
        dropout: float = Field(0.5, ge=0)
        """How many numbers are dropped."""

    before = {name: Config(model=name).stage_facts() for name in ("als", "ease", "nmf", "dmf")}
    monkeypatch.setattr(NMF, "settings_class", Longer)
    after = {name: Config(model=name).stage_facts() for name in before}
    assert [name for name in before if before[name] != after[name]] == ["nmf"]


class TestNamesOfFeatures:
    @pytest.mark.parametrize(
        ("given", "expected"),
        [
            ("author", {"author": 3}),
            ("year=1, author", {"author": 3, "year": 1}),
            (["b", "a=7"], {"a": 7, "b": 3}),
            ({"b": 2, "a": 100}, {"a": 100, "b": 2}),
            ("a=b=2", {"a=b": 2}),
        ],
    )
    def test_columns_are_named_with_or_without_weights(self, given, expected):
        named = Config(features=given).features
        assert named == expected
        assert list(named) == sorted(expected)

    @pytest.mark.parametrize("given", ["", "a,", "a=0", "a=101", "a=x", "a=1.5", [], {"a": 0}, {}])
    def test_a_wrong_weight_or_no_name_is_refused(self, given):
        with pytest.raises(WrongSetting, match="a whole number from 1 to 100"):
            Config(features=given)
