"""The smallest model of one's own: four methods, and no settings."""

import numpy as np

from erasable.models import Model, Parameters, Settings


class Counts(Model):
    """Recommends what most people have, a little more of what is rated like the own items."""

    name = "counts"
    settings_class = Settings
    revision = 1
    uses = ()

    def start(self, catalogue, seed):
        return {"counts": np.zeros(len(catalogue), np.float32), "total": np.zeros(1, np.float32)}

    def train(self, shared, stage, effort):
        had = np.bincount(stage.interactions.item_index, minlength=len(stage.interactions.items))
        counts = {"counts": shared["counts"] + had.astype(np.float32), "total": shared["total"] + len(had)}
        return Parameters(counts, {})

    def represent(self, prepared, people, effort):
        rows = np.diff(people.interactions.user_starts).astype(np.float32)
        return {"own": np.stack([rows, rows], axis=1)}

    def score(self, prepared, row, owned):
        return prepared["counts"] * row["own"][0]
