import pytest
from pydantic import ValidationError

from erasable.errors import WrongUse
from erasable.training import Config

TEN_EPOCHS = {"groups": 8, "epochs": 10}


def test_by_default_it_is_als():
    config = Config()
    assert (config.model, config.strategy, config.groups, config.policy) == ("als", "retrain", 1, "fixed")
    assert (config.anchors, config.rows, config.factors, config.regularisation) == (1, "solved", 64, 20)
    assert (config.holdout, config.min_interactions, config.seed) == (0, 0, 0)


@pytest.mark.parametrize(
    "named", [{"groups": 8}, {"strategy": "laser"}, {"order": "number"}, {"epochs": 20}, {"batch": 2048}], ids=str
)
def test_who_sets_what_only_a_chain_has_gets_one(named):
    config = Config(**named)
    assert (config.strategy, config.model, config.groups, config.policy) == ("laser", "nmf", 8, "fixed")
    assert (config.epoch_budget, config.batch, config.negatives) == ("shared", 2048, 4)
    assert (config.rows, config.anchors, config.regularisation) == ("stage", 1, 1)


@pytest.mark.parametrize("named", [{"factors": 8}, {"regularisation": 3.0}, {"factors": 8, "epochs": 5}], ids=str)
def test_who_sets_what_only_closed_forms_have_gets_one(named):
    assert Config(**named).model == "als"


@pytest.mark.parametrize("settings", [{}, {"groups": 3}, {"model": "ease"}, {"model": "als", "anchors": 1.0}], ids=str)
def test_settings_written_out_are_the_same_settings(settings):
    config = Config(**settings)
    assert Config(**config.model_dump()) == config
    assert Config.model_validate_json(config.model_dump_json()) == config


def test_who_is_no_anchor_has_a_solved_row():
    assert Config(model="nmf", anchors=0.3).rows == "solved"
    assert Config(model="ease", anchors=0.3).rows == "solved"
    assert Config(model="ease").rows == "stage"


def test_closed_forms_have_one_group():
    assert Config(model="ease", groups=4).groups == 1
    assert Config(model="als", strategy="retrain").groups == 1


def test_the_papers_setting_has_a_name():
    config = Config.of({"seed": 3}, "paper")
    assert (config.model, config.strategy, config.grouping, config.order) == ("nmf", "laser", "cbkm", "easy")
    assert (config.groups, config.rows, config.anchors, config.seed) == (8, "stage", 1, 3)
    assert Config.of({"groups": 4}, "paper").groups == 4
    with pytest.raises(WrongUse, match="choose one of paper"):
        Config.of({}, "book")


@pytest.mark.parametrize(("epochs", "groups", "each"), [(10, 8, 2), (16, 8, 2), (17, 8, 3), (1, 8, 1), (10, 1, 10)])
def test_groups_share_the_epochs_rounded_up_or_get_all_of_them(epochs, groups, each):
    assert Config(epochs=epochs, groups=groups, epoch_budget="shared").stage_epochs == each
    assert Config(epochs=epochs, groups=groups, epoch_budget="full").stage_epochs == epochs


def test_retrain_is_one_group_with_all_epochs():
    config = Config(strategy="retrain", epochs=7)
    assert (config.groups, config.stage_epochs) == (1, 7)


def test_independent_groups_imply_the_policy():
    assert Config(grouping="independent").policy == "independent"
    assert Config(grouping="random").policy == "fixed"


@pytest.mark.parametrize(
    "wrong",
    [
        {"policy": "independent", "grouping": "random"},
        {"policy": "independent", "grouping": "independent", "order": "count"},
        {"grouping": "independent", "order": "count"},
        {"epochs": 0},
        {"groups": 0},
        {"seed": -1},
        {"seed": 2**63},
        {"holdout": 1},
        {"rating_scale": (5, 1)},
        {"strategy": "guess"},
        {"epoch": 3},
        {"model": "ease", "strategy": "laser"},
        {"model": "als", "strategy": "sisa"},
        {"model": "als", "rows": "stage"},
        {"anchors": 0},
        {"anchors": 1.5},
        {"model": "nmf", "anchors": 0.5, "rows": "stage"},
        {"strategy": "sisa", "rows": "solved"},
        {"strategy": "retrain", "risk_threshold": 0.5},
        {"groups": 2, "policy": "regroup", "risk_threshold": 0.5},
    ],
    ids=str,
)
def test_settings_without_sense_are_refused(wrong):
    with pytest.raises((ValidationError, WrongUse)):
        Config(**wrong)
    with pytest.raises(WrongUse):
        Config.of(wrong)


def test_several_models_are_aggregated_by_their_mean_unless_told_otherwise():
    assert Config(strategy="sisa").aggregate == "mean"
    assert Config(strategy="sisa", aggregate="own").aggregate == "own"


@pytest.mark.parametrize("strategy", ["laser", "retrain"])
def test_one_model_has_nothing_to_aggregate(strategy):
    assert Config(strategy=strategy).aggregate is None
    with pytest.raises(ValidationError, match="only the strategy sisa has several models"):
        Config(strategy=strategy, aggregate="mean")


@pytest.mark.parametrize("grouping", ["cbkm", "cbkm-near", "bkm", "clpa", "cgmm"])
def test_groups_by_likeness_go_from_easy_to_hard_unless_told_otherwise(grouping):
    assert Config(grouping=grouping).order == "easy"
    assert Config(grouping=grouping, order="number").order == "number"


@pytest.mark.parametrize("grouping", ["random", "independent", "given"])
def test_other_groups_go_by_number_unless_told_otherwise(grouping):
    assert Config(grouping=grouping).order == "number"


def test_groups_that_are_given_can_t_be_decided_anew():
    with pytest.raises(ValidationError, match="groups that are given can't be decided anew"):
        Config(grouping="given", policy="regroup")


@pytest.mark.parametrize("reach", [2, 5, 66])
def test_reach_is_an_even_number_from_4_on(reach):
    with pytest.raises(ValidationError):
        Config(reach=reach)


def test_a_config_can_t_be_changed_and_survives_being_written_and_read():
    config = Config(model="dmf", grouping="independent", epochs=3, rating_scale=(1, 5))
    with pytest.raises(ValidationError):
        config.epochs = 4
    assert Config.model_validate_json(config.model_dump_json()) == config


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
    ],
    ids=str,
)
def test_what_a_stage_does_not_depend_on_is_not(other):
    """Data and groups reach a stage as its rows; 10 and 16 epochs are 2 for each of 8 groups."""
    assert Config(**{**TEN_EPOCHS, **other}).stage_facts() == Config(**TEN_EPOCHS).stage_facts()
