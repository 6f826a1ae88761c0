import pytest
from pydantic import ValidationError

from erasable.models import ModelSettings


def test_the_usual_learning_rate_goes_with_the_model_unless_one_is_given():
    assert ModelSettings(model="nmf").learning_rate == 0.001
    assert ModelSettings(model="dmf").learning_rate == 0.005
    assert ModelSettings(model="dmf", learning_rate=0.1).learning_rate == 0.1


def test_the_defaults_are_those_of_the_design():
    settings = ModelSettings()
    assert (settings.model, settings.batch, settings.negatives) == ("nmf", 2048, 4)


@pytest.mark.parametrize(
    "wrong",
    [
        {"model": "bert"},
        {"batch": 0},
        {"negatives": -1},
        {"learning_rate": 0},
        {"learning_rate": 2},
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
