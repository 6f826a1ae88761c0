"""Metrics, protocols, and the replay that compares bytes; nothing here changes a state."""

from erasable.evaluation.groupings import adjusted_rand_index, within_group_cosine
from erasable.evaluation.metrics import hit_rate, ndcg, recall
from erasable.evaluation.protocols import CUTOFFS, Utility, sampled_candidates, whole_catalogue
from erasable.evaluation.replay import Comparison, compare, replay

__all__ = [
    "CUTOFFS",
    "Comparison",
    "Utility",
    "adjusted_rand_index",
    "compare",
    "hit_rate",
    "ndcg",
    "recall",
    "replay",
    "sampled_candidates",
    "whole_catalogue",
    "within_group_cosine",
]
