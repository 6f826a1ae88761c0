"""Settings for tests that run with any model: those that it has, out of many."""

from collections.abc import Mapping
from typing import Any

from erasable.chain import Config
from erasable.chain.settings import OwnSettings
from erasable.chain.strategies import STRATEGIES
from erasable.models import find_model


def fitting(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return those of some settings that the model and the strategy among them have; the model is nmf if none is."""
    named = {"model": "nmf", **settings}
    model = find_model(named["model"])
    strategy = STRATEGIES[named.get("strategy", model.strategies[0])]
    kinds = (model.settings_class, strategy.settings_class, OwnSettings)
    known = {"model", "strategy", *(name for kind in kinds for name in kind.model_fields)}
    return {name: value for name, value in named.items() if name in known}


def fitting_config(**settings: Any) -> Config:
    """Return the configuration of the settings that fit."""
    return Config(**fitting(settings))
