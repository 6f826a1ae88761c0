"""What the suites share: a model in small settings, and how it is trained, represents people and scores."""

from collections.abc import Callable, Iterable, Mapping
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from erasable.data import Interactions
from erasable.models import Arrays, Effort, Model, Parameters, Scores, Stage, prepared_by
from erasable.testing.tables import stage

Content = dict[str, tuple[str, tuple[int, ...], bytes]]


class Suite:
    """What is known of the model that is tested."""

    model: ClassVar[Model]
    """The model, in small settings."""
    rounded_anew: ClassVar[frozenset[str]] = frozenset()
    """Shared arrays of which further items may change the last bits of what is known."""
    left_in_between: ClassVar[float] = 0.1
    """The share of what someone taught that `provisional` may leave in the scores of others (`Subtracts`)."""
    other_values: ClassVar[Mapping[str, Any]] = {}
    """Another value for a setting, where the suite finds none by itself."""

    def made_anew(self) -> Model:
        """Return the same model, made anew from its settings."""
        return type(self.model)(**self.model.settings.model_dump())

    def learned(self, rows: Interactions) -> Parameters:
        """Train as the model's own settings say."""
        epochs, passes = (getattr(self.model.settings, name, 1) for name in ("epochs", "row_epochs"))
        trained = self.model.train(self.model.start(rows.items, 0), stage(rows, epochs=epochs), Effort())
        own = trained.rows or represent(self.model, trained.shared, stage(rows, epochs=passes), Effort())
        return Parameters(trained.shared, own)


def train(model: Model, rows: Interactions, threads: int = 1, start: Arrays | None = None, **facts: Any) -> Parameters:  # noqa: ANN401 - those of a stage
    """Train one stage, from the start if nothing else is given, and solve the rows that training leaves out."""
    start = model.start(rows.items, facts.get("seed", 0)) if start is None else start
    at = stage(rows, **facts)
    trained = model.train(start, at, Effort(threads))
    return Parameters(trained.shared, trained.rows or represent(model, trained.shared, at, Effort(threads)))


def represent(model: Model, shared: Arrays, people: Stage, effort: Effort) -> Arrays:
    """Return the rows of people under shared parameters that are prepared for it."""
    return model.represent(prepared_by(model, shared), people, effort)


def scorer(model: Model, shared: Arrays) -> Callable[[Arrays, NDArray[np.int32]], Scores]:
    """Return what scores items by a row and own items under shared parameters, which are prepared once."""
    prepared = prepared_by(model, shared)
    return lambda row, owned: model.score(prepared, row, owned)


def scores(model: Model, parameters: Parameters, rows: Interactions) -> list[Scores]:
    """Return everyone's scores, in the order of the users."""
    score = scorer(model, parameters.shared)
    return [score(row_at(parameters.rows, user), rows.items_at(user)) for user in range(len(rows.users))]


def contents(arrays: Arrays) -> Content:
    """Return type, shape and bytes of every array."""
    return {name: (array.dtype.str, array.shape, array.tobytes()) for name, array in arrays.items()}


def contents_of(parameters: Parameters) -> Content:
    """Return the same of shared parameters and rows."""
    return contents({**parameters.shared, **parameters.rows})


def row_at(rows: Arrays, user: int) -> dict[str, NDArray[Any]]:
    """Return what is one user's own."""
    return {name: array[user] for name, array in rows.items()}


def bytes_by_user(rows: Arrays, users: Iterable[str]) -> dict[str, dict[str, bytes]]:
    """Return the bytes of everyone's rows, by id."""
    return {user: {name: array[place].tobytes() for name, array in rows.items()} for place, user in enumerate(users)}
