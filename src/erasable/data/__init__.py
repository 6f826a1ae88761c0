"""Interactions, and everything that reads or prepares them: ids, readers, rating scale, catalogue, holdout, k-core."""

from erasable.data.catalogue import (
    Catalogue,
    CoreFilter,
    apply_frozen,
    k_core,
    over_own_items,
    read_catalogue,
    split_holdout,
)
from erasable.data.columns import ColumnNames, RememberedColumns, column_option
from erasable.data.ids import LONGEST_ID, NONE_NEAR, Ids, NearIds, near_ids
from erasable.data.interactions import Interactions, differing_rows, unchanged_users
from erasable.data.public_sets import PUBLIC_SETS, PublicSet, count_rows, public_set, write_table
from erasable.data.rating_scale import RatingScale, recognise_scale
from erasable.data.readers import ReadResult, read_interactions
from erasable.data.synthetic import SyntheticData, SyntheticSettings, synthesise
from erasable.data.values import OnBadRow, RowRules, TimeForm, text_of_time

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
