"""What the library answers: Arrow tables, and what is held of someone, with ids as they came in."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pyarrow as pa

from erasable.operations.given_ids import NumberedIds, shown_ids
from erasable.operations.inspect import Holding
from erasable.operations.offers import Explanation, Offer
from erasable.operations.recommend import UserRecommendations

_FIELDS: list[Any] = [
    pa.field("user_id", pa.string()),
    pa.field("item_id", pa.string()),
    pa.field("score", pa.float64()),
    pa.field("rank", pa.int64()),
    pa.field("popular", pa.bool_()),
]
RECOMMENDATIONS = pa.schema(_FIELDS)


def recommendation_table(found: Sequence[UserRecommendations], numbered: NumberedIds) -> pa.Table:
    """Return recommendations, one a row."""
    rows = [one for of_user in found for one in of_user]
    columns = {
        "user_id": shown_ids([one.user_id for one in rows], numbered.users),
        "item_id": shown_ids([one.item_id for one in rows], numbered.items),
        "score": pa.array([one.score for one in rows], pa.float64()),
        "rank": pa.array([one.rank for one in rows], pa.int64()),
        "popular": pa.array([one.popular for one in rows], pa.bool_()),
    }
    return pa.table(columns)


def similar_table(items: Sequence[str], found: Sequence[Sequence[Offer]], numbered: NumberedIds) -> pa.Table:
    """Return the items that are like each of some items, one a row."""
    pairs = [(item, offer) for item, alike in zip(items, found, strict=True) for offer in alike]
    columns = {
        "item_id": shown_ids([item for item, _ in pairs], numbered.items),
        "similar_id": shown_ids([offer.item_id for _, offer in pairs], numbered.items),
        "score": pa.array([offer.score for _, offer in pairs], pa.float64()),
        "rank": pa.array([rank for alike in found for rank in range(1, len(alike) + 1)], pa.int64()),
    }
    return pa.table(columns)


def shown_explanation(found: Explanation, numbered: NumberedIds) -> Explanation:
    """Return an explanation with ids as they came in."""
    items = [str(found.item_id), *(str(reason.item_id) for reason in found.because)]
    item, *speaking = shown_ids(items, numbered.items).to_pylist()
    return replace(
        found,
        user_id=shown_ids([str(found.user_id)], numbered.users).to_pylist()[0],
        item_id=item,
        because=tuple(reason._replace(item_id=one) for one, reason in zip(speaking, found.because, strict=True)),
    )


def shown_holding(held: Holding, numbered: NumberedIds) -> Holding:
    """Return what is held of someone with ids as they came in."""
    items = shown_ids([str(one.item_id) for one in held.interactions], numbered.items).to_pylist()
    return replace(
        held,
        user_id=shown_ids([str(held.user_id)], numbered.users).to_pylist()[0],
        interactions=tuple(replace(one, item_id=item) for one, item in zip(held.interactions, items, strict=True)),
    )
