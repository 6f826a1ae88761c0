"""Which users are trained together, and in which order; the paper's user vectors are in `paper`, found by name."""

from erasable.grouping.groups import Cohesion, Grouping, assign_groups
from erasable.grouping.points import GroupingEffort
from erasable.grouping.registry import GroupingSettings, find_grouping, grouping_names

__all__ = [
    "Cohesion",
    "Grouping",
    "GroupingEffort",
    "GroupingSettings",
    "assign_groups",
    "find_grouping",
    "grouping_names",
]
