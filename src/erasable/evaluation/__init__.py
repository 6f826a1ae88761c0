"""Metrics, evaluation protocols, the membership attack, and the replay that compares bytes; no state is changed."""

from erasable.evaluation.metrics import adjusted_rand_index, hit_rate, ndcg, recall, within_group_cosine
from erasable.evaluation.protocols import PROTOCOLS, Protocol, Utility, measure, measure_all, sampled_candidates
from erasable.evaluation.replay import Comparison, compare, replay

__all__ = [
    "PROTOCOLS",
    "Comparison",
    "Protocol",
    "Utility",
    "adjusted_rand_index",
    "compare",
    "hit_rate",
    "measure",
    "measure_all",
    "ndcg",
    "recall",
    "replay",
    "sampled_candidates",
    "within_group_cosine",
]
