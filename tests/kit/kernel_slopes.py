"""The slopes that the compiled kernels compute, read from Adam's first moment after one step on a stage.

This is the only place in the tests that knows how a table lies in memory.
"""

import numpy as np

from erasable.models import Effort, Model, Stage
from erasable.models._batches import FIRST_DECAY, make_table
from erasable.models.machine import one_blas_thread


def slopes_of(model: Model, values: dict[str, np.ndarray], stage: Stage) -> dict[str, np.ndarray]:
    """Return the mean slopes over a stage that fits into one batch, by array."""
    network = np.concatenate([values[name].ravel() for name in model.shapes])[None, :]
    tables = tuple(make_table(rows.astype(np.float32)) for rows in (values["user"], values["item"], network))
    with one_blas_thread():
        model._run_epochs(tables, stage, Effort())
    user, item, flat = (table.moments[:, 0] / (1 - FIRST_DECAY) for table in tables)
    ends = np.cumsum([np.prod(shape, dtype=int) for shape in model.shapes.values()])
    pieces = zip(model.shapes.items(), np.split(flat[0], ends[:-1]), strict=True)
    return {"user": user, "item": item} | {name: piece.reshape(shape) for (name, shape), piece in pieces}
