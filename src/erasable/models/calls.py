"""Calls of a model's methods, with a check of what they return; the rest of erasable calls models through here only.

Shapes and types are checked; arrays are not copied or read through. What a model must do beyond that, such as changing
nothing in place, is tested by the suites in `erasable.testing`.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import NDArray

from erasable.data.ids import Ids
from erasable.data.interactions import RatingScale
from erasable.errors import WrongModel
from erasable.models.base import (
    Amends,
    Arrays,
    Change,
    Effort,
    Explains,
    Model,
    Parameters,
    Scores,
    Size,
    Stage,
    Subtracts,
    TellsSimilarItems,
    prepared_by,
)
from erasable.models.registry import is_ours

_OF_A_MODEL = (ArithmeticError, AssertionError, AttributeError, LookupError, NotImplementedError, TypeError, ValueError)
_NUMBERS = "biuf"
_EACH_COUNTS_1 = RatingScale(1, 1)


def started(model: Model, catalogue: Ids, seed: int) -> Arrays:
    """Return a model's shared parameters before any stage, read-only like those of later stages."""
    with _calling(model, "start"):
        found = model.start(catalogue, seed)
    for array in _arrays(model, "start", found).values():
        array.setflags(write=False)
    return found


def extended(model: Model, shared: Arrays, catalogue: Ids, seed: int) -> Arrays:
    """Append a catalogue's new items to shared parameters, read-only."""
    with _calling(model, "extended", remedy=_EXTENDED):
        found = model.extended(shared, catalogue, seed)
    for array in _like(model, "extended", found, shared).values():
        array.setflags(write=False)
    return found


def trained(model: Model, shared: Arrays, stage: Stage, effort: Effort) -> Parameters:
    """Train a stage from shared parameters."""
    with _calling(model, "train"):
        found = model.train(shared, _stage_for(model, stage), effort)
    if not isinstance(found, Parameters):
        raise _wrong(model, "train", _described(found), "Parameters(shared, rows)")
    _like(model, "train", found.shared, shared)
    _rows(model, "train", found.rows, len(stage.interactions.users))
    return found


def amended(model: Amends, made: Arrays, change: Change, effort: Effort) -> Arrays:
    """Amend parameters that were trained on other data."""
    with _calling(model, "amended"):
        found = model.amended(made, _change_for(model, change), effort)
    return _like(model, "amended", found, made)


def prepared(model: Model, shared: Arrays) -> Any:  # noqa: ANN401 - the model's own
    """Return what a model's methods receive in place of shared parameters."""
    with _calling(model, "prepare"):
        return prepared_by(model, shared)


def represented(model: Model, prepared: Any, people: Stage, effort: Effort) -> Arrays:  # noqa: ANN401 - the model's own
    """Return a row for each of these people."""
    with _calling(model, "represent"):
        found = model.represent(prepared, _stage_for(model, people), effort)
    return _rows(model, "represent", found, len(people.interactions.users))


def newcomers(model: Model, prepared: Any, users: Ids, catalogue: Ids, seed: int) -> Arrays:  # noqa: ANN401 - the model's own
    """Return rows for users without any history."""
    with _calling(model, "newcomers"):
        found = model.newcomers(prepared, users, catalogue, seed)
    return _rows(model, "newcomers", found, len(users))


def joined(model: Model, starting: Arrays, places: NDArray[np.int64], solved: Arrays) -> Arrays:
    """Return the newcomers' rows, with solved rows put at some places."""
    rows = {name: array.copy() for name, array in starting.items()}
    wanted, given = _shapes(starting), _shapes(solved)
    if wanted != given:
        raise _wrong(model, "represent", f"rows of {given}", f"rows like those of newcomers, {wanted}")
    for name, array in solved.items():
        rows[name][places] = array
    return rows


def scored(model: Model, prepared: Any, row: Arrays, owned: NDArray[np.int32], items: int) -> Scores:  # noqa: ANN401 - the model's own
    """Return a score for each item."""
    with _calling(model, "score", row):
        found = model.score(prepared, row, owned)
    return _scores(model, "score", found, items)


def similar(model: TellsSimilarItems, shared: Arrays, number: int, items: int) -> Scores:
    """Return the similarity of each item to one."""
    with _calling(model, "similar"):
        found = model.similar(shared, number)
    return _scores(model, "similar", found, items)


def reasons(model: Explains, prepared: Any, owned: NDArray[np.int32], item: int) -> Scores:  # noqa: ANN401 - the model's own
    """Return what each owned item adds to the score of one item."""
    with _calling(model, "reasons"):
        found = model.reasons(prepared, owned, item)
    return _scores(model, "reasons", found, len(owned))


def provisional(model: Subtracts, shared: Arrays, change: Change) -> Arrays:
    """Return shared parameters to serve until a change is trained."""
    with _calling(model, "provisional"):
        found = model.provisional(shared, _change_for(model, change))
    return _arrays(model, "provisional", found)


def counted(model: Model, size: Size, epochs: int) -> int:
    """Return how many samples training on so much data visits."""
    with _calling(model, "samples"):
        found = model.samples(size, epochs)
    if not isinstance(found, Integral) or found < 0:
        raise _wrong(model, "samples", repr(found), "a whole number that is not negative")
    return int(found)


def by_item(model: Model, shared: Arrays, items: int) -> tuple[str, ...]:
    """Return the names of shared arrays that have a row for each item and are stored in blocks of items."""
    with _calling(model, "by_item"):
        found = tuple(model.by_item())
    for name in found:
        if name not in shared or shared[name].shape[:1] != (items,):
            known = sorted(one for one, array in shared.items() if array.shape[:1] == (items,))
            raise _wrong(model, "by_item", repr(name), f"names of arrays with a row for each item, {known}")
    return found


def _stage_for(model: Model, stage: Stage) -> Stage:
    """Return the stage without its weights for a model that uses none: each row counts 1."""
    if not stage.weights or model.uses_weights:
        return stage
    return replace(stage, interactions=stage.interactions.unweighted, scale=_EACH_COUNTS_1, weights=False)


def _change_for(model: object, change: Change) -> Change:
    """Return the same for a change."""
    if not change.weights or getattr(model, "uses_weights", False):
        return change
    after = None if change.after is None else change.after.unweighted
    return Change(change.taken.unweighted, change.given.unweighted, after, features=change.features)


@contextmanager
def _calling(model: object, method: str, row: Arrays | None = None, remedy: str = "") -> Iterator[None]:
    """Name the model and the method in an error; errors of built-in models are our bugs, and stay as they are."""
    try:
        yield
    except _OF_A_MODEL as error:
        if is_ours(model):  # type: ignore[arg-type]
            raise
        shapes = {name: np.asarray(part)[None] for name, part in (row or {}).items()}
        given = "" if row is None else f" with a row of {_shapes(shapes)}"
        remedy = _COPY if "read-only" in str(error) else remedy or _REMEDY
        what = f"{type(error).__name__}: {error}"
        raise WrongModel(f"{method} of the model {_name(model)!r} failed{given} ({what}): {remedy}") from error


_REMEDY = "correct the model; the suites of erasable.testing show what is wrong"
_EXTENDED = "a model with an item × item array writes its own extended, or leaves laser out of its strategies"
_COPY = "it must not change in place what it is given: let it work on a copy"


def _wrong(model: object, method: str, found: str, expected: str) -> WrongModel:
    return WrongModel(f"{method} of the model {_name(model)!r} returned {found}, expected {expected}: {_REMEDY}")


def _name(model: object) -> str:
    return str(getattr(model, "name", type(model).__name__))


def _arrays(model: object, method: str, found: object) -> Arrays:
    """Check that a model returned named arrays of numbers."""
    if not isinstance(found, Mapping):
        raise _wrong(model, method, _described(found), "a dictionary of named arrays")
    for name, array in found.items():
        if not isinstance(array, np.ndarray) or array.dtype.kind not in _NUMBERS:
            raise _wrong(model, method, f"{name!r} as {_described(array)}", "an array of numbers")
    return found


def _like(model: object, method: str, found: object, given: Arrays) -> Arrays:
    """Check that a model returned arrays with the names and types of those given."""
    arrays = _arrays(model, method, found)
    if arrays.keys() != given.keys():
        raise _wrong(model, method, f"arrays named {sorted(arrays)}", f"{sorted(given)}, as they were given")
    for name, array in arrays.items():
        if (array.dtype, array.ndim) != (given[name].dtype, given[name].ndim):
            expected = f"{given[name].ndim}-dimensional {given[name].dtype}, as it was given"
            raise _wrong(model, method, f"{name!r} as {_described(array)}", expected)
    return arrays


def _rows(model: object, method: str, found: object, users: int) -> Arrays:
    """Check that a model returned arrays with a row for each user."""
    arrays = _arrays(model, method, found)
    for name, array in arrays.items():
        if array.shape[:1] != (users,):
            raise _wrong(model, method, f"{name!r} as {_described(array)}", f"one row for each of {users} users")
    return arrays


def _scores(model: object, method: str, found: object, items: int) -> Scores:
    if not isinstance(found, np.ndarray) or found.shape != (items,) or found.dtype != np.float32:
        raise _wrong(model, method, _described(found), f"float32 of shape ({items},), a score for each item")
    if not is_ours(model) and not np.isfinite(found).all():  # type: ignore[arg-type]
        raise _wrong(model, method, "scores that are not finite", "a number for each item")
    return found


def _shapes(rows: Arrays) -> dict[str, str]:
    return {name: f"{array.dtype} × {array.shape[1:]}" for name, array in sorted(rows.items())}


def _described(found: object) -> str:
    if isinstance(found, np.ndarray):
        return f"{found.dtype} of shape {found.shape}"
    return "nothing (None)" if found is None else f"a {type(found).__name__}"
