"""The chain of stages: the dataset it starts from, its tasks and checkpoints, scoring with it, planning an erasure."""

from typing import TYPE_CHECKING

from erasable.front_door import load_on_first_use

if TYPE_CHECKING:
    from erasable.chain.arrangement import arrange, grown, regrouped
    from erasable.chain.buckets import Bucket, Buckets, Place
    from erasable.chain.chain import (
        NOTHING_EARLIER,
        Earlier,
        Elsewhere,
        InMemory,
        Schedule,
        carry_out_schedule,
        links_to_run,
        made_elsewhere,
        scheduled,
        train_chain,
    )
    from erasable.chain.checkpoints import (
        ORIGIN,
        Checkpoint,
        CheckpointStore,
        Link,
        MemoryStore,
    )
    from erasable.chain.dataset import (
        Dataset,
        RowsName,
        State,
    )
    from erasable.chain.known_items import KnownItems
    from erasable.chain.plan import Apart, Erasure, Plan, carry_out, forget, known_requests, largest_cost, plan_change
    from erasable.chain.scoring import ROWS_SERVED, Scoring
    from erasable.chain.settings import Config
    from erasable.chain.strategies import Laser, Retrain, Sisa
    from erasable.chain.tasks import (
        LOCAL,
        Executor,
        Local,
        Task,
        TaskInputs,
        environment_for,
        environment_of,
        label_of,
        link_names,
        numeric_environment,
        stages_of,
    )
else:
    load_on_first_use(
        __name__,
        {
            "erasable.chain.arrangement": "arrange grown regrouped",
            "erasable.chain.buckets": "Bucket Buckets Place",
            "erasable.chain.chain": (
                "NOTHING_EARLIER Earlier Elsewhere InMemory Schedule carry_out_schedule links_to_run "
                "made_elsewhere scheduled train_chain"
            ),
            "erasable.chain.checkpoints": "ORIGIN Checkpoint CheckpointStore Link MemoryStore",
            "erasable.chain.dataset": "Dataset RowsName State",
            "erasable.chain.known_items": "KnownItems",
            "erasable.chain.plan": "Apart Erasure Plan carry_out forget known_requests largest_cost plan_change",
            "erasable.chain.scoring": "ROWS_SERVED Scoring",
            "erasable.chain.settings": "Config",
            "erasable.chain.strategies": "Laser Retrain Sisa",
            "erasable.chain.tasks": (
                "LOCAL Executor Local Task TaskInputs environment_for environment_of label_of link_names "
                "numeric_environment stages_of"
            ),
        },
    )

__all__ = [
    "LOCAL",
    "NOTHING_EARLIER",
    "ORIGIN",
    "ROWS_SERVED",
    "Apart",
    "Bucket",
    "Buckets",
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
