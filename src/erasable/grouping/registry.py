"""Groupings by name, built in or from other packages; their settings; groups read from a file; anchors."""

from collections.abc import Callable, Iterable
from importlib.metadata import EntryPoint, PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Literal, Self, get_args

import numpy as np
import pyarrow as pa
import pyarrow.csv as pacsv
from numpy.typing import NDArray
from pydantic import Field, model_validator

from erasable.checked_settings import CheckedSettings
from erasable.data.ids import Ids
from erasable.data.interactions import Interactions
from erasable.errors import DataRefused, ErasableError, Refused, WrongSetting, option
from erasable.extensions import install_command, loaded, no_such_name, registered
from erasable.grouping.points import BipartiteGraph, GroupingEffort, Labels, Points
from erasable.seeding import id_keys

GroupingName = Literal["cbkm", "cbkm-near", "bkm", "clpa", "cgmm", "random", "independent", "given"]
"""The built-in groupings; other packages register more."""
OrderName = Literal["number", "easy", "hard", "count"]
VectorsBy = Literal["erasable", "gensim"]
MOST_GROUPS = 10_000
BY_VECTORS: tuple[GroupingName, ...] = ("cbkm", "cbkm-near", "clpa", "cgmm")
BY_LIKENESS: tuple[GroupingName, ...] = (*BY_VECTORS, "bkm")


class GroupingSettings(CheckedSettings):
    """How users are divided into groups, and in which order the groups are trained.

    Examples
    --------
    >>> GroupingSettings(grouping="bkm", groups=4).order
    'easy'
    """

    grouping: str = "random"
    """How users are grouped: by vectors (cbkm, cbkm-near, clpa, cgmm), ratings (bkm), random, independent, or other."""

    groups: int = Field(8, ge=1, le=MOST_GROUPS)
    """How many groups, and so how many stages, the chain has."""

    order: OrderName | None = None
    """Which groups come first: easy (cohesive), hard, count (interactions), number; easy if grouping compares users."""

    reach: int = Field(4, ge=4, le=64, multiple_of=2)
    """The paper's l: a hyperedge joins users connected by a path of fewer than l vertices (4: by a shared item)."""

    vectors: VectorsBy | None = None
    """Whose skip-gram learns users' vectors: erasable's own, or gensim's, as up to 0.2; none if not grouped by them."""

    @model_validator(mode="after")
    def _usual_order_and_vectors(self) -> Self:
        if self.order is None:
            object.__setattr__(self, "order", "easy" if self.grouping in BY_LIKENESS else "number")
        usual = (self.vectors or "erasable") if self.grouping in BY_VECTORS else None
        object.__setattr__(self, "vectors", usual)
        return self


def anchors_among(users: Ids, share: float, seed: int) -> NDArray[np.bool_]:
    """Return which users are anchors: those whose hash of seed and own id is below the share."""
    if share >= 1:
        return np.ones(len(users), dtype=bool)
    return id_keys(seed, "anchor", users) < np.uint64(int(share * 2**64))


_COLUMNS = {"user_id": pa.string(), "position": pa.int64()}


def read_positions(path: Path) -> dict[str, int]:
    """Read each user's position in the chain from a CSV."""
    try:
        table = pacsv.read_csv(
            path, convert_options=pacsv.ConvertOptions(column_types=_COLUMNS, include_columns=list(_COLUMNS))
        )
    except FileNotFoundError:
        missing = f"{path}: there is no such file: give "
        raise DataRefused(missing, option("groups_from"), " a CSV or a workspace") from None
    except (pa.ArrowInvalid, pa.ArrowKeyError, OSError):
        raise DataRefused(f"{path}: not a CSV with the columns user_id, group, position: write it so") from None
    users: list[Any] = table["user_id"].to_pylist()
    positions: list[Any] = table["position"].to_pylist()
    if not users or any(position is None or position < 0 for position in positions):
        raise DataRefused(f"{path}: every user needs a position: give each a whole number from 0")
    if len(set(users)) != len(users):
        raise DataRefused(f"{path}: a user is listed twice: give each user one position")
    return dict(zip(users, positions, strict=True))


GROUP = "erasable.groupings"
BUILT_IN: tuple[str, ...] = get_args(GroupingName)
Labelling = Callable[[Interactions, int, int], Any]
"""(interactions, number of groups, seed) to a label for each user."""
Space = Callable[[BipartiteGraph, Iterable[str], GroupingSettings, int, GroupingEffort], Points]
"""(user-item graph, user ids, settings, seed, effort) to users as points."""
_VECTORS = EntryPoint("vectors", "erasable.paper:vector_space", "erasable.spaces")


def grouping_names() -> tuple[str, ...]:
    """Return the names of all groupings, the built-in ones first; none is imported.

    Returns
    -------
    tuple of str
        The names of the built-in groupings and of those that installed packages register.

    Examples
    --------
    >>> "random" in grouping_names()
    True
    """
    return (*BUILT_IN, *sorted(set(registered(GROUP)) - set(BUILT_IN)))


def check_grouping(settings: GroupingSettings) -> None:
    """Refuse an unknown grouping, and one whose package or extra is not installed; no extra is imported."""
    if settings.grouping not in BUILT_IN:
        find_grouping(settings.grouping)
    elif settings.vectors == "gensim" and find_spec("gensim") is None:
        raise WrongSetting(f'`vectors="gensim"` needs gensim: {install_command("paper")}')


def find_vectors(settings: GroupingSettings) -> Space:
    """Import and return the function that computes user vectors, for a grouping that compares them."""
    check_grouping(settings)
    found: Space = _VECTORS.load()
    return found


def find_grouping(name: str) -> Labelling:
    """Return the function of a grouping that is not built in; import the package that registers it.

    Parameters
    ----------
    name : str
        The name of its entry point.

    Returns
    -------
    callable
        The function (interactions, groups, seed) to a label for each user.

    Raises
    ------
    erasable.errors.WrongSetting
        If no installed package registers the name, or what it registers can't be called.

    Examples
    --------
    >>> find_grouping("by-taste")  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    ...
    erasable.errors.WrongSetting: there is no grouping 'by-taste': choose one of ...
    """
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
    """Return the libraries that a grouping declares its labels depend on."""
    uses = getattr(labelling, "uses", ())
    return uses if isinstance(uses, tuple) else (str(uses),)


def labels_by(name: str, interactions: Interactions, groups: int, seed: int) -> Labels:
    """Return the labels that another package's grouping gives, checked."""
    labelling = find_grouping(name)
    try:
        found = np.asarray(labelling(interactions, groups, seed))
    except ErasableError:
        raise
    except Exception as error:  # whatever another package does
        raise Refused(
            f"the grouping {name!r} failed ({type(error).__name__}: {error}): correct it, or give another ",
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
    """Describe what is wrong with an array of labels; empty if nothing is."""
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
