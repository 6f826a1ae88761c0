"""Interactions and what makes them: ids, readers, scale, catalogue, holdout, filter, synthetic data."""

from erasable.data.catalogue import Catalogue, read_catalogue
from erasable.data.columns import ColumnNames
from erasable.data.core_filter import CoreFilter, apply_frozen, k_core
from erasable.data.holdout import split_holdout
from erasable.data.ids import Ids
from erasable.data.interactions import Interactions
from erasable.data.rating_scale import RatingScale, recognise_scale
from erasable.data.readers import ReadResult, read_interactions
from erasable.data.synthetic import SyntheticData, SyntheticSettings, synthesise

__all__ = [
    "Catalogue",
    "ColumnNames",
    "CoreFilter",
    "Ids",
    "Interactions",
    "RatingScale",
    "ReadResult",
    "SyntheticData",
    "SyntheticSettings",
    "apply_frozen",
    "k_core",
    "read_catalogue",
    "read_interactions",
    "recognise_scale",
    "split_holdout",
    "synthesise",
]
