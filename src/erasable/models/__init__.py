"""The models: score items for a user, train a stage; no chain, no files."""

from erasable.models.dmf import Dmf
from erasable.models.model import Change, Effort, Model, Scorer, Stage
from erasable.models.nmf import Nmf
from erasable.models.parameters import Arrays, Parameters
from erasable.models.settings import CLOSED_FORMS, ModelSettings
from erasable.models.zoo import make_model

__all__ = [
    "CLOSED_FORMS",
    "Arrays",
    "Change",
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
