"""How each kind of cell is measured: a function of a workbench and the cell, which returns what JSON can say."""

from collections.abc import Callable, Mapping
from typing import Any

from erasable.experiments.cells import Cell
from erasable.experiments.paper import balance, cohesion, embedding, poison, theory, unlearning_time, utility
from erasable.experiments.workbench import Workbench

MEASUREMENTS: Mapping[str, Callable[[Workbench, Cell], dict[str, Any]]] = {
    "utility": utility.measure,
    "time": unlearning_time.measure,
    "balance": balance.measure,
    "embedding": embedding.measure,
    "cohesion": cohesion.measure,
    "poison": poison.measure_poison,
    **theory.MEASURED,
}
