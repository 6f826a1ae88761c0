"""Which users are trained together, and in which order; the paper's user vectors are in `paper`, found by name."""

from erasable.grouping.groups import Cohesion, Grouping, assign_groups, cohesion_between_rows, independent_labels
from erasable.grouping.points import ALONE, GroupingEffort
from erasable.grouping.registry import (
    BY_VECTORS,
    MOST_GROUPS,
    GroupingSettings,
    anchors_among,
    check_grouping,
    find_grouping,
    grouping_names,
    libraries_of,
    read_positions,
    vectors_are_there,
)

__all__ = [
    "ALONE",
    "BY_VECTORS",
    "MOST_GROUPS",
    "Cohesion",
    "Grouping",
    "GroupingEffort",
    "GroupingSettings",
    "anchors_among",
    "assign_groups",
    "check_grouping",
    "cohesion_between_rows",
    "find_grouping",
    "grouping_names",
    "independent_labels",
    "libraries_of",
    "read_positions",
    "vectors_are_there",
]
