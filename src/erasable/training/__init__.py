"""The paper's SeqTrain module: the chain of stages and its checkpoints."""

from erasable.training.arrangement import arrange, regrouped
from erasable.training.chain import ORIGIN, stage_names, stages_to_run, train_chain
from erasable.training.checkpoint import Checkpoint, CheckpointStore, MemoryStore
from erasable.training.environment import differences, numeric_environment
from erasable.training.scoring import Scoring
from erasable.training.settings import Config
from erasable.training.state import Knowledge, Link, State

__all__ = [
    "ORIGIN",
    "Checkpoint",
    "CheckpointStore",
    "Config",
    "Knowledge",
    "Link",
    "MemoryStore",
    "Scoring",
    "State",
    "arrange",
    "differences",
    "numeric_environment",
    "regrouped",
    "stage_names",
    "stages_to_run",
    "train_chain",
]
