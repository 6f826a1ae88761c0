"""The paper's grouping (hypergraph, walks, vectors) and its experiments; both need the extra `paper`.

`grouping` loads `vector_space` by name when a grouping needs it; otherwise only `erasable reproduce` imports this unit.
"""

from erasable.paper._cells import Cell, ExperimentSettings
from erasable.paper._reproduce import EXPERIMENTS, Reproduced, RunProgress, Watcher, Workforce, reproduce
from erasable.paper._theory_claims import drawn_plans, likely_plans
from erasable.paper._utility import measure as measure_utility
from erasable.paper._walks import vector_space
from erasable.paper._workbench import (
    Chain,
    DataSource,
    Latest,
    Workbench,
    arrange_into_groups,
    data_digest,
    learn_chain,
)

__all__ = [
    "EXPERIMENTS",
    "Cell",
    "Chain",
    "DataSource",
    "ExperimentSettings",
    "Latest",
    "Reproduced",
    "RunProgress",
    "Watcher",
    "Workbench",
    "Workforce",
    "arrange_into_groups",
    "data_digest",
    "drawn_plans",
    "learn_chain",
    "likely_plans",
    "measure_utility",
    "reproduce",
    "vector_space",
]
