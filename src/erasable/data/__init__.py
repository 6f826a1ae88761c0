"""Interactions and what makes them: ids, readers, scale, catalogue, holdout, filter, synthetic data."""

from erasable.data.bad_rows import OnBadRow, RowRules
from erasable.data.catalogue import Catalogue, over_own_items, read_catalogue
from erasable.data.column_values import TimeForm, text_of_time
from erasable.data.columns import ColumnNames, RememberedColumns, column_option
from erasable.data.comparing import differing_rows, unchanged_users
from erasable.data.core_filter import CoreFilter, apply_frozen, k_core
from erasable.data.holdout import split_holdout
from erasable.data.ids import LONGEST_ID, Ids
from erasable.data.interactions import Interactions
from erasable.data.near_ids import NONE_NEAR, NearIds, near_ids
from erasable.data.public_sets import PUBLIC_SETS, PublicSet, public_set
from erasable.data.rating_scale import RatingScale, recognise_scale
from erasable.data.readers import ReadResult, read_interactions
from erasable.data.synthetic import SyntheticData, SyntheticSettings, synthesise
from erasable.data.unpacking import count_rows, write_table

__all__ = [
    "LONGEST_ID",
    "NONE_NEAR",
    "PUBLIC_SETS",
    "Catalogue",
    "ColumnNames",
    "CoreFilter",
    "Ids",
    "Interactions",
    "NearIds",
    "OnBadRow",
    "PublicSet",
    "RatingScale",
    "ReadResult",
    "RememberedColumns",
    "RowRules",
    "SyntheticData",
    "SyntheticSettings",
    "TimeForm",
    "apply_frozen",
    "column_option",
    "count_rows",
    "differing_rows",
    "k_core",
    "near_ids",
    "over_own_items",
    "public_set",
    "read_catalogue",
    "read_interactions",
    "recognise_scale",
    "split_holdout",
    "synthesise",
    "text_of_time",
    "unchanged_users",
    "write_table",
]
