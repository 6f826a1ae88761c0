"""The models by name."""

from collections.abc import Callable

from erasable.models.als import Als
from erasable.models.dmf import Dmf
from erasable.models.ease import Ease
from erasable.models.model import Model
from erasable.models.nmf import Nmf
from erasable.models.settings import ModelName, ModelSettings

_KINDS: dict[ModelName, Callable[[ModelSettings], Model]] = {"nmf": Nmf, "dmf": Dmf, "ease": Ease, "als": Als}


def make_model(settings: ModelSettings) -> Model:
    """Return the model that the settings name."""
    return _KINDS[settings.model](settings)
