"""The paper's Group module: who is trained together, and in which order."""

from erasable.grouping.given import read_positions
from erasable.grouping.groups import assign_positions, independent_labels, random_labels
from erasable.grouping.settings import GroupingSettings

__all__ = ["GroupingSettings", "assign_positions", "independent_labels", "random_labels", "read_positions"]
