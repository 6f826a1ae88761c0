"""The models: train a stage, represent people, score items; no chain, no files."""

from erasable.models.absent import AbsentModel, absent_model
from erasable.models.als import ALS
from erasable.models.blas import one_blas_thread
from erasable.models.dmf import DMF
from erasable.models.ease import EASE
from erasable.models.model import (
    Amends,
    Change,
    Effort,
    Explains,
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
from erasable.models.registry import (
    BUILT_IN,
    every_model,
    find_model,
    function_digest,
    is_ours,
    make_model,
    model_names,
    models_with,
    revisions_beneath,
    source_digest,
)
from erasable.models.sampling import HELPERS_REVISION, missing_item, shuffled
from erasable.models.settings import Configured, Settings

__all__ = [
    "ALS",
    "BUILT_IN",
    "DMF",
    "EASE",
    "HELPERS_REVISION",
    "NMF",
    "AbsentModel",
    "Amends",
    "Arrays",
    "Change",
    "Configured",
    "Effort",
    "Explains",
    "Model",
    "Parameters",
    "Prepares",
    "Probabilities",
    "Scores",
    "Settings",
    "Stage",
    "Subtracts",
    "TellsSimilarItems",
    "absent_model",
    "every_model",
    "find_model",
    "function_digest",
    "is_ours",
    "make_model",
    "missing_item",
    "model_names",
    "models_with",
    "one_blas_thread",
    "prepared_by",
    "probability_by",
    "revisions_beneath",
    "shuffled",
    "source_digest",
]
