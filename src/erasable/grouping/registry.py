"""The groupings by name: those built in, and those that other packages register as entry points `erasable.groupings`.

One of another package is a function `(interactions, groups, seed)` that returns a label for each user, from 0 to groups
less 1, in the order of `interactions.users`. It may have an attribute `uses`: the libraries, as pip names them, that
its labels depend on. Nothing is imported because a file names it.
"""

from collections.abc import Callable
from importlib.metadata import PackageNotFoundError, version
from typing import Any, get_args

import numpy as np

from erasable.data import Interactions
from erasable.errors import ErasableError, Refused, WrongSetting, option
from erasable.extensions import loaded, no_such_name, registered
from erasable.grouping.points import Labels
from erasable.grouping.settings import GroupingName

GROUP = "erasable.groupings"
BUILT_IN: tuple[str, ...] = get_args(GroupingName)
Labelling = Callable[[Interactions, int, int], Any]
"""From interactions, how many groups there are, and a seed, to a label for each user."""


def grouping_names() -> tuple[str, ...]:
    """Return the names of all groupings that are there, those built in first; none is imported."""
    return (*BUILT_IN, *sorted(set(registered(GROUP)) - set(BUILT_IN)))


def check_grouping(name: str) -> None:
    """Refuse a name that no grouping has, and one of another package that can't be used."""
    if name not in BUILT_IN:
        find_grouping(name)


def find_grouping(name: str) -> Labelling:
    """Return the function of a grouping that is not built in; the package that registers it is imported."""
    points = registered(GROUP)
    if name in BUILT_IN or name not in points:
        raise WrongSetting(no_such_name("grouping", name, grouping_names(), GROUP))
    found = loaded(points[name], "grouping")
    if not callable(found):
        raise WrongSetting(
            f"the grouping {name!r} is {found!r}, which can't be called: register a function (interactions, groups, "
            "seed) (docs/how-to/add-a-grouping.md)"
        )
    for library in libraries_of(found):
        _check_installed(library, name)
    return found


def libraries_of(labelling: Labelling) -> tuple[str, ...]:
    """Return the libraries that the labels of a grouping depend on, as it says itself."""
    uses = getattr(labelling, "uses", ())
    return uses if isinstance(uses, tuple) else (str(uses),)


def labels_by(name: str, interactions: Interactions, groups: int, seed: int) -> Labels:
    """Return the labels that a grouping of another package gives, found to be labels."""
    labelling = find_grouping(name)
    try:
        found = np.asarray(labelling(interactions, groups, seed))
    except ErasableError:
        raise
    except Exception as error:  # whatever another package does
        raise Refused(
            f"the grouping {name!r} failed ({type(error).__name__}: {error}): mend it, or give another ",
            option("grouping"),
        ) from error
    fault = _fault(found, len(interactions.users), groups)
    if fault:
        raise Refused(
            f"the grouping {name!r} gave {fault}: it must return a whole number from 0 to {groups - 1} for each of the "
            f"{len(interactions.users)} users, in the order of interactions.users"
        )
    return found.astype(np.int64)


def _fault(found: np.ndarray[Any, Any], users: int, groups: int) -> str:
    """Say what keeps an array from being the labels of so many users; empty if nothing does."""
    if found.ndim != 1 or len(found) != users:
        return f"an array of the shape {found.shape}"
    if found.dtype.kind not in "iu":
        return f"labels of the type {found.dtype}"
    outside = found[(found < 0) | (found >= groups)]
    return f"the label {outside[0]}" if len(outside) else ""


def _check_installed(library: str, name: str) -> None:
    try:
        known = library == "blas" or bool(version(library))
    except PackageNotFoundError:
        known = False
    if not known:
        raise WrongSetting(
            f"the grouping {name!r} uses {library!r}, which is not installed under that name: give a tuple of packages "
            "as pip names them"
        )
