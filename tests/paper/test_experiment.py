from erasable.paper._cells import Cell, ExperimentSettings, config_of
from erasable.paper._workbench import ChainLabels, Entry, Experiment, chain_settings, rounded

SETTINGS = ExperimentSettings(epochs=12, epoch_budget="full", batch=64, negatives=2, holdout=0.2, min_interactions=3)


def test_a_chain_gets_every_setting_that_the_experiment_decides():
    config = config_of(chain_settings(SETTINGS, ChainLabels("nmf", "L-BKM", 4, 7)))
    assert (config.model, config.strategy, config.grouping, config.groups, config.seed) == ("nmf", "laser", "bkm", 4, 7)
    assert tuple(map(config.flat().get, ("epochs", "epoch_budget", "batch", "negatives"))) == (12, "full", 64, 2)
    assert (config.holdout, config.min_interactions) == (0.2, 3)


def test_the_usual_rate_of_a_model_is_written_down_so_that_a_cell_says_it():
    rates = [chain_settings(SETTINGS, ChainLabels(model, "L-Rand", 2, 0))["learning_rate"] for model in ("nmf", "dmf")]
    assert rates == [0.001, 0.005]
    given = SETTINGS.model_copy(update={"learning_rate": 0.01})
    assert chain_settings(given, ChainLabels("dmf", "L-Rand", 2, 0))["learning_rate"] == 0.01


def test_training_at_once_is_the_same_chain_under_both_epoch_budgets():
    labels = ChainLabels("nmf", "Retrain", 1, 0)
    shared = SETTINGS.model_copy(update={"epoch_budget": "shared"})
    assert chain_settings(SETTINGS, labels) == chain_settings(shared, labels)
    one_of_two = labels._replace(method="L-Rand", groups=2)
    assert chain_settings(SETTINGS, one_of_two) != chain_settings(shared, one_of_two)


def test_what_an_experiment_adds_wins():
    chain = chain_settings(SETTINGS, ChainLabels("nmf", "L-Rand", 2, 0), order="count")
    assert config_of(chain).order == "count"


def test_a_table_has_the_labels_of_the_place_and_those_of_the_value():
    nothing = {"entries": None, "claims": None, "tables": None, "figures": None}
    experiment = Experiment("e", "t", "a", values=lambda result: [{"metric": "m", "value": result["v"]}], **nothing)
    cell = Cell("utility", "digest", {})
    entries = [Entry({"groups": 1, "method": method}, cell) for method in ("a", "b")]
    assert experiment.table(entries, lambda cell: {"v": 0.5}) == [
        {"groups": 1, "method": "a", "metric": "m", "value": 0.5},
        {"groups": 1, "method": "b", "metric": "m", "value": 0.5},
    ]


def test_values_are_kept_with_six_digits():
    assert rounded({"a": 0.12345678}) == {"a": 0.123457}
