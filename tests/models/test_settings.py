import pytest
from pydantic import ValidationError

from erasable.models import ModelSettings


def test_the_usual_learning_rate_goes_with_the_model_unless_one_is_given():
    assert ModelSettings(model="nmf").learning_rate == 0.001
    assert ModelSettings(model="dmf").learning_rate == 0.005
    assert ModelSettings(model="dmf", learning_rate=0.1).learning_rate == 0.1


def test_the_defaults():
    settings = ModelSettings()
    assert (settings.model, settings.factors, settings.regularisation) == ("als", 64, 20)
    assert (settings.batch, settings.negatives, settings.row_epochs) == (2048, 4, 3)


@pytest.mark.parametrize(("model", "usual"), [("ease", 500), ("als", 20)])
def test_each_closed_form_has_its_usual_regularisation(model, usual):
    assert ModelSettings(model=model).regularisation == usual
    assert ModelSettings(model=model, regularisation=3).regularisation == 3


@pytest.mark.parametrize(
    "wrong",
    [
        {"model": "bert"},
        {"batch": 0},
        {"negatives": -1},
        {"learning_rate": 0},
        {"learning_rate": 2},
        {"regularisation": 0},
        {"regularisation": 1e13},
        {"batches": 5},
    ],
    ids=str,
)
def test_settings_without_sense_are_refused(wrong):
    with pytest.raises(ValidationError):
        ModelSettings(**wrong)


def test_settings_can_t_be_changed():
    with pytest.raises(ValidationError):
        ModelSettings().batch = 1


def test_settings_survive_being_written_and_read():
    settings = ModelSettings(model="dmf", negatives=0)
    assert ModelSettings.model_validate_json(settings.model_dump_json()) == settings
