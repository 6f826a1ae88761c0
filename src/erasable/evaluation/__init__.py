"""Metrics, protocols, losses, and the replay that compares bytes; nothing here changes a state."""

from erasable.evaluation.cases import measured_people
from erasable.evaluation.groupings import adjusted_rand_index, within_group_cosine
from erasable.evaluation.losses import group_losses
from erasable.evaluation.metrics import hit_rate, ndcg, recall
from erasable.evaluation.protocols import (
    CUTOFFS,
    PROTOCOLS,
    Protocol,
    Utility,
    measure,
    measure_all,
    sampled_candidates,
)
from erasable.evaluation.replay import Comparison, compare, replay

__all__ = [
    "CUTOFFS",
    "PROTOCOLS",
    "Comparison",
    "Protocol",
    "Utility",
    "adjusted_rand_index",
    "compare",
    "group_losses",
    "hit_rate",
    "measure",
    "measure_all",
    "measured_people",
    "ndcg",
    "recall",
    "replay",
    "sampled_candidates",
    "within_group_cosine",
]
