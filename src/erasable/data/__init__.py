"""Interactions, and everything that reads or prepares them: ids, readers, rating scale, catalogue, holdout, k-core."""

from typing import TYPE_CHECKING

from erasable.front_door import load_on_first_use

if TYPE_CHECKING:
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
    from erasable.data.interactions import Interactions, RatingScale, differing_rows, recognise_scale, unchanged_users
    from erasable.data.readers import Batches, ReadResult, SourceFacts, read_batches, read_interactions
    from erasable.data.sources import name_of
    from erasable.data.synthetic import SyntheticData, SyntheticSettings, synthesise
    from erasable.data.values import ColumnValues, OnBadRow, RowRules, TimeForm, text_of_time
else:
    load_on_first_use(
        __name__,
        {
            "erasable.data.catalogue": (
                "Catalogue CoreFilter apply_frozen k_core over_own_items read_catalogue split_holdout"
            ),
            "erasable.data.columns": "ColumnNames RememberedColumns column_option",
            "erasable.data.ids": "LONGEST_ID NONE_NEAR Ids NearIds near_ids",
            "erasable.data.interactions": "Interactions RatingScale differing_rows recognise_scale unchanged_users",
            "erasable.data.readers": "Batches ReadResult SourceFacts read_batches read_interactions",
            "erasable.data.sources": "name_of",
            "erasable.data.synthetic": "SyntheticData SyntheticSettings synthesise",
            "erasable.data.values": "ColumnValues OnBadRow RowRules TimeForm text_of_time",
        },
    )

__all__ = [
    "LONGEST_ID",
    "NONE_NEAR",
    "Batches",
    "Catalogue",
    "ColumnNames",
    "ColumnValues",
    "CoreFilter",
    "Ids",
    "Interactions",
    "NearIds",
    "OnBadRow",
    "RatingScale",
    "ReadResult",
    "RememberedColumns",
    "RowRules",
    "SourceFacts",
    "SyntheticData",
    "SyntheticSettings",
    "TimeForm",
    "apply_frozen",
    "column_option",
    "differing_rows",
    "k_core",
    "name_of",
    "near_ids",
    "over_own_items",
    "read_batches",
    "read_catalogue",
    "read_interactions",
    "recognise_scale",
    "split_holdout",
    "synthesise",
    "text_of_time",
    "unchanged_users",
]
