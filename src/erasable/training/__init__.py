"""The paper's SeqTrain module: the chain of stages and its checkpoints."""

from erasable.training.arrangement import arrange, regrouped
from erasable.training.chain import (
    NOTHING_EARLIER,
    ORIGIN,
    Earlier,
    link_names,
    links_to_run,
    steps_of,
    tasks_of,
    train_chain,
)
from erasable.training.checkpoint import Checkpoint, CheckpointStore, MemoryStore
from erasable.training.environment import differences, numeric_environment
from erasable.training.growth import grown
from erasable.training.scoring import Scoring
from erasable.training.settings import Config
from erasable.training.state import Knowledge, Link, State

__all__ = [
    "NOTHING_EARLIER",
    "ORIGIN",
    "Checkpoint",
    "CheckpointStore",
    "Config",
    "Earlier",
    "Knowledge",
    "Link",
    "MemoryStore",
    "Scoring",
    "State",
    "arrange",
    "differences",
    "grown",
    "link_names",
    "links_to_run",
    "numeric_environment",
    "regrouped",
    "steps_of",
    "tasks_of",
    "train_chain",
]
