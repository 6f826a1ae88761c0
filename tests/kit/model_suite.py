"""What the behaviour suite needs to know of every model, and what its tests share; a new model needs one line."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from erasable.data import Interactions
from erasable.models import Arrays, Effort, Model, ModelSettings, Parameters, make_model
from kit.tables import stage


@dataclass(frozen=True)
class Kind:
    """A model in small settings, and its traits: in what it differs from others by nature."""

    settings: ModelSettings
    rows: frozenset[str] = frozenset({"user"})
    """The personal rows that it keeps."""
    seeded: bool = True
    """Whether the seed reaches every number, or none."""
    short_way: bool = False
    """Whether a change can be amended without training."""
    whole_numbers: frozenset[str] = frozenset()
    """Arrays of int32; all others are of float32."""
    rounded_anew: frozenset[str] = frozenset()
    """Arrays of which further items may change the last bits of what is known."""

    @property
    def model(self) -> Model:
        """The model, made anew."""
        return make_model(self.settings)


def _ease() -> Kind:
    settings = ModelSettings(model="ease", regularisation=5.0)
    traits = {"whole_numbers": frozenset({"gram"}), "rounded_anew": frozenset({"inverse"})}
    return Kind(settings, rows=frozenset(), seeded=False, short_way=True, **traits)


MODELS = {
    "nmf": Kind(ModelSettings(model="nmf", batch=128)),
    "dmf": Kind(ModelSettings(model="dmf", batch=128)),
    "als": Kind(ModelSettings(model="als", factors=8, regularisation=1.0)),
    "ease": _ease(),
}


def train(
    model: Model, rows: Interactions, threads: int = 1, start: Arrays | None = None, **facts: object
) -> Parameters:
    """Train one stage, from the start if nothing else is given, and solve the rows that training leaves out."""
    start = model.start(rows.items, facts.get("seed", 0)) if start is None else start
    at = stage(rows, **facts)
    trained = model.train(start, at, Effort(threads))
    return trained if trained.rows else Parameters(trained.shared, model.solve(trained.shared, at, Effort(threads)))


def contents(arrays: Arrays) -> dict[str, tuple[str, tuple[int, ...], bytes]]:
    """Return type, shape and bytes of every array."""
    return {name: (array.dtype.str, array.shape, array.tobytes()) for name, array in arrays.items()}


def contents_of(parameters: Parameters) -> dict[str, tuple[str, tuple[int, ...], bytes]]:
    """Return the same of shared parameters and rows."""
    return contents({**parameters.shared, **parameters.rows})


def row_at(rows: Arrays, user: int) -> dict[str, np.ndarray]:
    """Return what is one user's own."""
    return {name: array[user] for name, array in rows.items()}


def bytes_by_user(rows: Arrays, users: Sequence[str]) -> dict[str, dict[str, bytes]]:
    """Return the bytes of everyone's rows, by id."""
    return {user: {name: array[place].tobytes() for name, array in rows.items()} for place, user in enumerate(users)}


def scores(model: Model, parameters: Parameters, rows: Interactions) -> list[np.ndarray]:
    """Return everyone's scores, in the order of the users."""
    score = model.scorer(parameters.shared)
    return [score(row_at(parameters.rows, user), rows.items_at(user)) for user in range(len(rows.users))]
