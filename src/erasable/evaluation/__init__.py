"""Metrics, evaluation protocols, the membership attack, and the replay that compares bytes; no state is changed."""

from erasable.evaluation.metrics import (
    adjusted_rand_index,
    average_precision,
    hit_rate,
    ndcg,
    precision,
    recall,
    reciprocal_rank,
    within_group_cosine,
)
from erasable.evaluation.protocols import PROTOCOLS, Protocol, measure, measure_all, sampled_candidates
from erasable.evaluation.replay import Comparison, compare, replay
from erasable.evaluation.utility import Slice, Utility

__all__ = [
    "PROTOCOLS",
    "Comparison",
    "Protocol",
    "Slice",
    "Utility",
    "adjusted_rand_index",
    "average_precision",
    "compare",
    "hit_rate",
    "measure",
    "measure_all",
    "ndcg",
    "precision",
    "recall",
    "reciprocal_rank",
    "replay",
    "sampled_candidates",
    "within_group_cosine",
]
