"""All experiments, in the order of the report, and how each kind of cell is measured."""

from collections.abc import Mapping

from erasable.experiments.experiment import Experiment, Measure
from erasable.experiments.paper import (
    balance,
    cohesion,
    embedding,
    order,
    poison,
    theory,
    unlearning_time,
    utility,
)

EXPERIMENTS: Mapping[str, Experiment] = {
    module.EXPERIMENT.name: module.EXPERIMENT
    for module in (utility, unlearning_time, order, cohesion, balance, embedding, theory, poison)
}

MEASUREMENTS: Mapping[str, Measure] = {
    kind: measure for experiment in EXPERIMENTS.values() for kind, measure in experiment.measurements.items()
}
