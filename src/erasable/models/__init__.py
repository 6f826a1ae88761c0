"""The models: they train a stage, solve user rows and score items; they know no chain and no files.

A model's class is imported on first use, so that nobody waits for the libraries of the other models.
"""

from importlib import import_module
from typing import TYPE_CHECKING

from erasable.models._batches import HELPERS_REVISION, missing_item, shuffled
from erasable.models.base import (
    Amends,
    Arrays,
    Change,
    Effort,
    Explains,
    Model,
    Parameters,
    Prepares,
    Probabilities,
    Scores,
    Size,
    Stage,
    Subtracts,
    TellsSimilarItems,
)
from erasable.models.machine import one_blas_thread
from erasable.models.registry import BUILT_IN, find_model, model_names
from erasable.models.settings import Settings

if TYPE_CHECKING:
    from erasable.models._als import ALS
    from erasable.models._dmf import DMF
    from erasable.models._ease import EASE
    from erasable.models._item_knn import ItemKNN
    from erasable.models._nmf import NMF
    from erasable.models._popular import Popular
    from erasable.models._sasrec import SASRec
    from erasable.models._torch_model import TorchBatch, TorchModel, TorchSettings
    from erasable.models._two_tower import TwoTower

__all__ = [
    "ALS",
    "DMF",
    "EASE",
    "HELPERS_REVISION",
    "NMF",
    "Amends",
    "Arrays",
    "Change",
    "Effort",
    "Explains",
    "ItemKNN",
    "Model",
    "Parameters",
    "Popular",
    "Prepares",
    "Probabilities",
    "SASRec",
    "Scores",
    "Settings",
    "Size",
    "Stage",
    "Subtracts",
    "TellsSimilarItems",
    "TorchBatch",
    "TorchModel",
    "TorchSettings",
    "TwoTower",
    "find_model",
    "missing_item",
    "model_names",
    "one_blas_thread",
    "shuffled",
]


def __getattr__(name: str) -> object:
    if name in ("TorchBatch", "TorchModel", "TorchSettings"):
        return getattr(import_module("erasable.models._torch_model"), name)
    if name not in BUILT_IN.by_class:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    found = globals()[name] = BUILT_IN[BUILT_IN.by_class[name]]
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
