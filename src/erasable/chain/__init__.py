"""The chain of stages: the dataset it starts from, its tasks and checkpoints, scoring with it, planning an erasure."""

from erasable.chain.arrangement import arrange, grown, regrouped
from erasable.chain.chain import (
    NOTHING_EARLIER,
    Earlier,
    Elsewhere,
    InMemory,
    Schedule,
    carry_out_schedule,
    link_names,
    links_to_run,
    made_elsewhere,
    scheduled,
    stages_of,
    train_chain,
)
from erasable.chain.checkpoint import Checkpoint, CheckpointStore, MemoryStore
from erasable.chain.dataset import Dataset, KnownItems, Link, RowsName, State
from erasable.chain.environment import environment_for, environment_of, numeric_environment
from erasable.chain.plan import Apart, Erasure, Plan, carry_out, forget, known_requests, largest_cost, plan_change
from erasable.chain.scoring import ROWS_SERVED, Place, Scoring
from erasable.chain.settings import Config
from erasable.chain.strategies import Laser, Retrain, Sisa
from erasable.chain.tasks import LOCAL, ORIGIN, Executor, Local, Task, TaskInputs, label_of

__all__ = [
    "LOCAL",
    "NOTHING_EARLIER",
    "ORIGIN",
    "ROWS_SERVED",
    "Apart",
    "Checkpoint",
    "CheckpointStore",
    "Config",
    "Dataset",
    "Earlier",
    "Elsewhere",
    "Erasure",
    "Executor",
    "InMemory",
    "KnownItems",
    "Laser",
    "Link",
    "Local",
    "MemoryStore",
    "Place",
    "Plan",
    "Retrain",
    "RowsName",
    "Schedule",
    "Scoring",
    "Sisa",
    "State",
    "Task",
    "TaskInputs",
    "arrange",
    "carry_out",
    "carry_out_schedule",
    "environment_for",
    "environment_of",
    "forget",
    "grown",
    "known_requests",
    "label_of",
    "largest_cost",
    "link_names",
    "links_to_run",
    "made_elsewhere",
    "numeric_environment",
    "plan_change",
    "regrouped",
    "scheduled",
    "stages_of",
    "train_chain",
]
