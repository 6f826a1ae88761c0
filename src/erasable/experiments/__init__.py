"""What the paper shows in figures, measured on a recommender of one's own; nothing here changes it."""

from erasable.experiments.group_figure import draw_groups, figure_file
from erasable.experiments.group_study import GroupStudy, study_groups

__all__ = ["GroupStudy", "draw_groups", "figure_file", "study_groups"]
