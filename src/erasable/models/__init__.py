"""The models: score items for a user, train a stage; no chain, no files."""

from erasable.models.dmf import Dmf
from erasable.models.model import Effort, Model, Scorer, Stage
from erasable.models.nmf import Nmf
from erasable.models.parameters import Arrays, Parameters
from erasable.models.settings import ModelSettings
from erasable.models.zoo import make_model

__all__ = [
    "Arrays",
    "Dmf",
    "Effort",
    "Model",
    "ModelSettings",
    "Nmf",
    "Parameters",
    "Scorer",
    "Stage",
    "make_model",
]
