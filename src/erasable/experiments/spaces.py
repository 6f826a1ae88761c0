"""The spaces in which experiments compare users, made of the training part of the data; no groups are made here."""

from collections.abc import Mapping
from typing import Any

from erasable.data import Interactions
from erasable.experiments.settings import ExperimentSettings
from erasable.grouping import GroupingEffort, GroupingSettings
from erasable.grouping.bipartite import bipartite_graph
from erasable.grouping.points import Points
from erasable.grouping.settings import GroupingName
from erasable.grouping.user_space import user_space
from erasable.training import Knowledge

SPACES: Mapping[GroupingName, str] = {
    "bkm": "rating rows",
    "cbkm": "vectors of cbkm",
    "cbkm-near": "vectors of cbkm-near",
}
"""What a space is called, by the grouping that compares users in it."""


def ungrouped_settings(settings: ExperimentSettings, seed: int) -> dict[str, Any]:
    """Return the settings that give the training part of the data as one group."""
    return {"strategy": "retrain", "seed": seed, **settings.model_dump(include={"holdout", "min_interactions"})}


def training_part(knowledge: Knowledge) -> Interactions:
    """Return all training interactions of data that were not divided."""
    (everyone,) = knowledge.groups
    return everyone


def training_space(knowledge: Knowledge, grouping: GroupingName, threads: int) -> Points:
    """Return the users as points of the space that a grouping would compare them in."""
    training = training_part(knowledge)
    graph, effort = bipartite_graph(training, knowledge.scale), GroupingEffort(threads)
    return user_space(graph, training.users, GroupingSettings(grouping=grouping), knowledge.config.seed, effort)
