"""The models: train a stage, represent people, score items; no chain, no files."""

from erasable.models.als import ALS
from erasable.models.blas import one_blas_thread
from erasable.models.dmf import DMF
from erasable.models.ease import EASE
from erasable.models.model import (
    Amends,
    Change,
    Effort,
    Model,
    Prepares,
    Probabilities,
    Scores,
    Stage,
    Subtracts,
    TellsSimilarItems,
    prepared_by,
    probability_by,
)
from erasable.models.nmf import NMF
from erasable.models.parameters import Arrays, Parameters
from erasable.models.registry import find_model, is_ours, make_model, model_names, models, models_with, source_digest
from erasable.models.sampling import missing_item, shuffled
from erasable.models.settings import Configured, Settings

__all__ = [
    "ALS",
    "DMF",
    "EASE",
    "NMF",
    "Amends",
    "Arrays",
    "Change",
    "Configured",
    "Effort",
    "Model",
    "Parameters",
    "Prepares",
    "Probabilities",
    "Scores",
    "Settings",
    "Stage",
    "Subtracts",
    "TellsSimilarItems",
    "find_model",
    "is_ours",
    "make_model",
    "missing_item",
    "model_names",
    "models",
    "models_with",
    "one_blas_thread",
    "prepared_by",
    "probability_by",
    "shuffled",
    "source_digest",
]
