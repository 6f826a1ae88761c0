"""The paper's SeqTrain module: the chain of stages and its checkpoints."""

from erasable.training.arrangement import arrange, regrouped
from erasable.training.chain import (
    NOTHING_EARLIER,
    Earlier,
    InMemory,
    Schedule,
    carry_out,
    link_names,
    links_to_run,
    scheduled,
    stages_of,
    train_chain,
)
from erasable.training.checkpoint import Checkpoint, CheckpointStore, MemoryStore
from erasable.training.environment import (
    Elsewhere,
    environment_for,
    environment_of,
    made_elsewhere,
    numeric_environment,
)
from erasable.training.executors import LOCAL, Executor, Local
from erasable.training.growth import grown
from erasable.training.known_items import KnownItems
from erasable.training.row_cache import ROWS_SERVED
from erasable.training.scoring import Place, Scoring
from erasable.training.settings import Config
from erasable.training.state import Knowledge, Link, RowsName, State
from erasable.training.strategies import Laser, Retrain, Sisa
from erasable.training.tasks import ORIGIN, Inputs, Task, label_of

__all__ = [
    "LOCAL",
    "NOTHING_EARLIER",
    "ORIGIN",
    "ROWS_SERVED",
    "Checkpoint",
    "CheckpointStore",
    "Config",
    "Earlier",
    "Elsewhere",
    "Executor",
    "InMemory",
    "Inputs",
    "Knowledge",
    "KnownItems",
    "Laser",
    "Link",
    "Local",
    "MemoryStore",
    "Place",
    "Retrain",
    "RowsName",
    "Schedule",
    "Scoring",
    "Sisa",
    "State",
    "Task",
    "arrange",
    "carry_out",
    "environment_for",
    "environment_of",
    "grown",
    "label_of",
    "link_names",
    "links_to_run",
    "made_elsewhere",
    "numeric_environment",
    "regrouped",
    "scheduled",
    "stages_of",
    "train_chain",
]
