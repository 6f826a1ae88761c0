"""The models by name."""

from collections.abc import Callable

from erasable.errors import NotYet
from erasable.models.dmf import Dmf
from erasable.models.model import Model
from erasable.models.nmf import Nmf
from erasable.models.settings import ModelSettings


def make_model(settings: ModelSettings) -> Model:
    """Return the model that the settings name."""
    kinds: dict[str, Callable[[ModelSettings], Model]] = {"nmf": Nmf, "dmf": Dmf}
    if settings.model not in kinds:
        raise NotYet(f"the model {settings.model} is not there yet: choose one of {', '.join(kinds)}")
    return kinds[settings.model](settings)
