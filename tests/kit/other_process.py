"""Stages made in another process, from a task and the path of a workspace alone."""

import os
from pathlib import Path

from erasable.chain import Checkpoint, RowsName, Task
from erasable.data import Interactions
from erasable.models import Effort, Model, find_model
from erasable.workspace import Workspace
from erasable.workspace.checkpoints import encode_checkpoint


class OnDisk:
    """Finds the inputs of tasks in a workspace; all that it knows is where that lies."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def rows(self, name: RowsName) -> Interactions:
        """Return the rows of a name."""
        with Workspace.reading(self.path) as workspace:
            dataset = workspace.state().dataset
            places = [place for place in range(dataset.stages) if dataset.learners_name(place) == name]
            return dataset.learners(places[0])

    def features(self, name: RowsName) -> Interactions | None:
        """Return the features that are learned with these rows."""
        with Workspace.reading(self.path) as workspace:
            return workspace.state().dataset.features_at(0)

    def checkpoint(self, name: str) -> Checkpoint:
        """Return the checkpoint of a name."""
        with Workspace.reading(self.path) as workspace:
            return workspace.checkpoints.get(name)

    def model(self, task: Task) -> Model:
        """Return the model that the task names, if it is registered."""
        return find_model(task.settings["model"])(**task.settings["settings"])


class MadeElsewhere:
    """Makes the stage of a task from what lies in a workspace, and says in which process."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __call__(self, task: Task, effort: Effort) -> tuple[int, bytes]:
        checkpoint, _ = task.run(OnDisk(self.path), effort)
        return os.getpid(), encode_checkpoint(checkpoint)
