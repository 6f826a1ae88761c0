"""Every way to learn, in small settings: what is promised of one must hold of all."""

from typing import Any

from erasable.chain import Config
from kit.fitting import fitting

WAYS: dict[str, dict[str, Any]] = {
    "chain": {"model": "nmf", "groups": 3},
    "chain of dmf": {"model": "dmf", "groups": 2},
    "independent groups": {"model": "nmf", "groups": 3, "grouping": "independent"},
    "regrouped": {"model": "nmf", "groups": 3, "policy": "regroup"},
    "models apart": {"model": "nmf", "groups": 3, "strategy": "sisa"},
    "all at once": {"model": "nmf", "strategy": "retrain"},
    "solved rows": {"model": "nmf", "groups": 3, "rows": "solved"},
    "solved rows of dmf": {"model": "dmf", "groups": 2, "rows": "solved"},
    "anchors": {"model": "nmf", "groups": 2, "anchors": 0.5},
    "anchors in one stage": {"model": "dmf", "groups": 1, "anchors": 0.3},
    "independent anchors": {"model": "nmf", "groups": 2, "anchors": 0.5, "grouping": "independent"},
    "hardly an anchor": {"model": "nmf", "groups": 2, "anchors": 0.0001},
    "als": {"model": "als", "factors": 4, "anchors": 1.0},
    "anchored als": {"model": "als", "factors": 4, "regularisation": 0.5, "anchors": 0.5},
    "ease": {"model": "ease", "neighbours": 4},
    "anchored ease": {"model": "ease", "neighbours": 4, "regularisation": 2.0, "anchors": 0.5},
    "dense ease": {"model": "ease", "neighbours": "all", "regularisation": 2.0},
    "anchored dense ease": {"model": "ease", "neighbours": "all", "regularisation": 2.0, "anchors": 0.5},
    "item-knn": {"model": "item-knn", "neighbours": 4, "shrinkage": 2.0},
    "anchored item-knn": {"model": "item-knn", "neighbours": 4, "anchors": 0.5},
    "popular": {"model": "popular"},
}


def config_of(way: str, **settings: object) -> Config:
    """Return the configuration of a way, with further settings."""
    return Config(**fitting({"epochs": 2, "batch": 40, "seed": 1, **WAYS[way], **settings}))
