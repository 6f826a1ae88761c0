"""What can be set about the service."""

import pytest

from erasable.errors import WrongUse
from erasable.service.settings import ServiceSettings, settings_from


@pytest.mark.parametrize("name", ServiceSettings.model_fields)
def test_every_setting_has_a_sentence(name):
    assert len(ServiceSettings.model_fields[name].description) > 10


@pytest.mark.parametrize(
    "given",
    [
        {"batch_window": -1},
        {"batch_window": 29},
        {"alarm_day": 20, "limit_day": 10},
        {"batch_window": 9, "limit_day": 8, "alarm_day": 3},
        {"sync_forget_missing": True},
        {"sync_items": "books.csv"},
        {"sync_catalogue": "items.txt"},
    ],
)
def test_what_makes_no_sense_is_refused(given):
    with pytest.raises(WrongUse):
        settings_from(given)


def test_without_anything_given_they_are_the_default():
    assert settings_from({}) == ServiceSettings()
