"""The paper's Group module: who is trained together, and in which order."""

from erasable.grouping.cohesion import Cohesion
from erasable.grouping.given import read_positions
from erasable.grouping.groups import Grouping, assign_groups
from erasable.grouping.parallel import ALONE, GroupingEffort
from erasable.grouping.settings import GroupingSettings

__all__ = ["ALONE", "Cohesion", "Grouping", "GroupingEffort", "GroupingSettings", "assign_groups", "read_positions"]
