"""The paper's Group module: who is trained together, and in which order."""

from erasable.grouping.anchors import anchors_among
from erasable.grouping.cohesion import Cohesion
from erasable.grouping.given import read_positions
from erasable.grouping.groups import Grouping, assign_groups, cohesion_between_rows, independent_labels
from erasable.grouping.parallel import ALONE, GroupingEffort
from erasable.grouping.registry import check_grouping, find_grouping, grouping_names, libraries_of
from erasable.grouping.settings import BY_VECTORS, MOST_GROUPS, GroupingSettings

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
]
