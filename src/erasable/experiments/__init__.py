"""The paper's experiments as grids of cells, and what it shows of groups, measured on a recommender of one's own."""

from erasable.experiments.every import EXPERIMENTS
from erasable.experiments.group_figure import draw_groups, figure_file
from erasable.experiments.group_study import GroupStudy, study_groups
from erasable.experiments.reproduce import Reproduced, Workforce, reproduce
from erasable.experiments.settings import ExperimentSettings
from erasable.experiments.workers import Progress, Watcher

__all__ = [
    "EXPERIMENTS",
    "ExperimentSettings",
    "GroupStudy",
    "Progress",
    "Reproduced",
    "Watcher",
    "Workforce",
    "draw_groups",
    "figure_file",
    "reproduce",
    "study_groups",
]
