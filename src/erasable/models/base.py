"""The interface of a model: `Model`, its optional abilities, and its parameters."""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from erasable.data.ids import Ids
from erasable.data.interactions import Interactions, RatingScale, differing_rows
from erasable.models._declared import check_declared
from erasable.models.settings import Configured, Settings
from erasable.progress import Advance, ignore

Arrays = Mapping[str, NDArray[Any]]
"""Arrays by name: shared parameters, or user rows."""


@dataclass(frozen=True, eq=False)
class Parameters:
    """What training a stage returns; its arrays become read-only.

    Parameters
    ----------
    shared : Arrays
        The shared parameters, with the names and types that `Model.start` gave them.
    rows : Arrays
        User rows: row n of each array belongs to user n of the stage's interactions. Empty if `Model.represent` solves
        them.

    Examples
    --------
    >>> Parameters({"item": np.zeros((3, 2), np.float32)}, {}).all_finite()
    True
    """

    shared: Arrays
    rows: Arrays

    def __post_init__(self) -> None:
        for part in (self.shared, self.rows):
            for array in part.values() if isinstance(part, Mapping) else ():
                if isinstance(array, np.ndarray):  # `calls` refuses anything else, naming it
                    array.setflags(write=False)

    def all_finite(self) -> bool:
        """Whether every number is finite."""
        return all(np.isfinite(array).all() for array in (*self.shared.values(), *self.rows.values()))


def frozen(arrays: Arrays) -> Arrays:
    """Make arrays read-only, and return them."""
    for array in arrays.values():
        array.setflags(write=False)
    return arrays


def read_only(array: NDArray[Any]) -> NDArray[Any]:
    """Return a read-only view: numba would compile again for a writable array."""
    view = np.ascontiguousarray(array).view()
    view.setflags(write=False)
    return view


Scores = NDArray[np.float32]
"""One score of 32 bits for each item; higher is better."""


@dataclass(frozen=True)
class Stage:
    """The data of one stage, and everything else that decides the result of training on it.

    Parameters
    ----------
    interactions : Interactions
        The rows of the stage's users, sorted by user and item, without times. For a model that `uses_time`, the time of
        a row is its place in its user's own order: earlier ones first, then by item id.
    scale : RatingScale
        The lowest and the highest possible rating.
    epochs : int
        How often to go through the interactions.
    seed : int
        What all draws start from.
    position : int
        The place of the stage in the chain, from 0.
    weights : bool, default False
        Whether ratings are weights, whole numbers from 1 up: how often or how much. Only a model that `uses_weights` is
        given them.
    features : Interactions, optional
        Features of the items, declared and about nobody: a row for each value that several items have, as if it were a
        person who has them; ratings are its weight. Only a model that `uses_features` is given them.

    Examples
    --------
    >>> import pyarrow as pa
    >>> from erasable.data import Interactions, RatingScale
    >>> rows, _ = Interactions.from_columns(pa.array(["ann", "ann", "bob"]), pa.array(["tea", "milk", "tea"]))
    >>> stage = Stage(rows, RatingScale(1, 1), epochs=2, seed=0, position=0)
    >>> list(stage.interactions.items), stage.interactions.item_index.tolist()
    (['milk', 'tea'], [0, 1, 1])
    """

    interactions: Interactions
    scale: RatingScale
    epochs: int
    seed: int
    position: int
    weights: bool = False
    features: Interactions | None = None


@dataclass(frozen=True, eq=False)
class Size:
    """How much data there is: all that the cost of training depends on, known without reading any row.

    Parameters
    ----------
    items : int
        How many items are known.
    items_had : int
        How many of them somebody has.
    lengths, people : array of int64
        How many people have a history of which length.

    Examples
    --------
    >>> import pyarrow as pa
    >>> from erasable.data import Interactions
    >>> rows, _ = Interactions.from_columns(pa.array(["ann", "ann", "bob"]), pa.array(["tea", "milk", "tea"]))
    >>> size = Size.of(rows)
    >>> len(size), size.users, size.items_had, size.pairs
    (3, 2, 2, 5)
    """

    items: int
    items_had: int
    lengths: NDArray[np.int64]
    people: NDArray[np.int64]

    @staticmethod
    def of(data: "Interactions | Size") -> "Size":
        """Return the size of interactions."""
        if isinstance(data, Size):
            return data
        lengths, people = np.unique(np.diff(data.user_starts), return_counts=True)
        had = int(np.count_nonzero(np.bincount(data.item_index)))
        return Size(len(data.items), had, lengths.astype(np.int64), people.astype(np.int64))

    @property
    def users(self) -> int:
        """How many people there are."""
        return int(self.people.sum())

    @property
    def pairs(self) -> int:
        """How many pairs of items people have, the pairs of an item with itself included."""
        return int((self.lengths**2 * self.people).sum())

    def with_features(self, features: Interactions | None, had: NDArray[np.bool_]) -> "Size":
        """Return the size with one more row for each feature; `had` says which of a stage's items somebody has."""
        if features is None:
            return self
        further = (np.bincount(features.item_index, minlength=len(had)) > 0) & ~had
        lengths = np.concatenate([self.lengths, np.diff(features.user_starts)])
        people = np.concatenate([self.people, np.ones(len(features.users), np.int64)])
        return Size(self.items, self.items_had + int(np.count_nonzero(further)), lengths, people)

    def __len__(self) -> int:
        """How many interactions there are."""
        return int((self.lengths * self.people).sum())


@dataclass(frozen=True)
class Effort:
    """What changes no byte of a result: threads and progress.

    Parameters
    ----------
    threads : int, default 1
        How many threads to use at most.
    advance : callable, optional
        Called with the number of samples in each part that is done.

    Examples
    --------
    >>> done = []
    >>> Effort(threads=2, advance=done.append).advance(100)
    >>> done
    [100]
    """

    threads: int = 1
    advance: Advance = ignore


@dataclass(frozen=True)
class Change:
    """All rows of the users whose data change, before and after; either may be empty.

    Parameters
    ----------
    taken : Interactions
        Their rows before, numbered by the items known before.
    given : Interactions
        Their rows after, numbered by the items known after: items may come and go.
    after : Interactions, optional
        Everyone's rows after the change, numbered like `given`; erasable always gives them.
    weights : bool, default False
        Whether ratings are weights, as in `Stage`.
    features : Interactions, optional
        Features of the items as in `Stage`, numbered like `given`. They are the same before and after.

    Examples
    --------
    >>> import pyarrow as pa
    >>> from erasable.data import Interactions
    >>> before, _ = Interactions.from_columns(pa.array(["ann", "bob"]), pa.array(["tea", "milk"]))
    >>> change = Change.between(before, before.without(users=["ann"]))
    >>> list(change.taken.users), list(change.given.users)
    (['ann'], [])
    """

    taken: Interactions
    given: Interactions
    after: Interactions | None = None
    weights: bool = False
    features: Interactions | None = None

    @classmethod
    def between(cls, before: Interactions, after: Interactions) -> "Change":
        """Return the change from one table to another."""
        return cls(*differing_rows(before, after), after)


class Model(Configured[Settings], ABC):
    """A recommender whose state is shared parameters, shaped by many users, and user rows, each of one user.

    Your own model implements the four abstract methods; the others have defaults. Optional abilities are protocols
    below: a model that has their methods has the ability.

    Every method is a pure function of its arguments: no clock, no global state, no file, nothing changed in place. All
    interactions that a method is given are numbered by the items that the shared parameters know; `catalogue` is the
    list of these items. `prepared` is what `prepare` computed from the shared parameters, or the shared parameters
    themselves if the model has no `prepare`. A model is made from its settings alone; every setting that reaches a
    stage is part of its checkpoint's name.

    Parameters
    ----------
    **settings
        Those of the model's `settings_class`.

    Examples
    --------
    >>> class MostOwned(Model):
    ...     "Scores an item by how many people have it."
    ...     name, revision, uses, settings_class = "most-owned", 1, (), Settings
    ...     trains_rows, has_rows = True, False
    ...     def start(self, catalogue, seed):
    ...         return {"count": np.zeros(len(catalogue), np.float32)}
    ...     def train(self, shared, stage, effort):
    ...         more = np.bincount(stage.interactions.item_index, minlength=len(shared["count"]))
    ...         effort.advance(self.samples(stage.interactions, stage.epochs))
    ...         return Parameters({"count": shared["count"] + more.astype(np.float32)}, {})
    ...     def represent(self, prepared, people, effort):
    ...         return {}
    ...     def score(self, prepared, row, owned):
    ...         return prepared["count"].copy()
    >>> import pyarrow as pa
    >>> from erasable import Recommender
    >>> table = pa.table({"user": [1, 2, 3, 3], "item": ["tea", "tea", "tea", "milk"]})
    >>> recommender = Recommender(MostOwned(), "retrain").fit(table)
    >>> recommender.recommend(1, k=1)["item_id"].to_pylist()
    ['milk']
    """

    name: ClassVar[str]
    """Its name in commands and workspaces."""
    settings_class: ClassVar[type[Settings]]
    """The class of its settings."""
    revision: ClassVar[int]
    """The revision of its arithmetic; it goes up when the same training gives different bytes."""
    uses: ClassVar[tuple[str, ...]]
    """The libraries that its bytes depend on."""
    strategies: ClassVar[tuple[str, ...]] = ("laser", "retrain")
    """The strategies that it can be learned with, the default first. `sisa` needs trained rows."""
    trains_rows: ClassVar[bool] = False
    """Whether training returns the rows of its users; if not, `represent` always solves them."""
    by_slot: ClassVar[bool] = False
    """Whether a stage lists people by slot, and by id within one, instead of by id: then none need be sorted."""
    has_rows: ClassVar[bool] = True
    """Whether users have rows; if not, scores follow from the shared parameters and the user's own items."""
    uses_weights: ClassVar[bool] = False
    """Whether it learns from weights; if not, it is given rows that count 1 each, and learning says so."""
    uses_features: ClassVar[bool] = False
    """Whether it learns from features of items; if not, it is given none, and learning says so."""
    uses_time: ClassVar[bool] = False
    """Whether it learns from the order in which people had their items; if not, no digest and no name covers that."""

    def __init__(self, **settings: Any) -> None:  # noqa: ANN401 - as the settings class says
        check_declared(type(self))
        super().__init__(**settings)

    @abstractmethod
    def start(self, catalogue: Ids, seed: int) -> Arrays:
        """Return the shared parameters before any stage.

        Parameters
        ----------
        catalogue : Ids
            The items, in the order of their numbers.
        seed : int
            What all draws start from. The row of an item depends on it and on the item's id alone.

        Returns
        -------
        Arrays
            Named arrays; training keeps their names and types.
        """

    @abstractmethod
    def train(self, shared: Arrays, stage: Stage, effort: Effort) -> Parameters:
        """Train on one stage; without interactions, return a copy of the shared parameters.

        Parameters
        ----------
        shared : Arrays
            The shared parameters to start from.
        stage : Stage
            The interactions, and everything else that decides the result.
        effort : Effort
            Threads and progress.

        Returns
        -------
        Parameters
            New shared parameters; and the rows of the stage's users, if the model trains them.
        """

    @abstractmethod
    def represent(self, prepared: Any, people: Stage, effort: Effort) -> Arrays:  # noqa: ANN401 - the model's own
        """Return a row for each person, from the shared parameters and that person's own history, id and seed alone.

        Parameters
        ----------
        prepared : object
            The shared parameters, as prepared.
        people : Stage
            The people's own interactions. Its epochs are the setting `row_epochs`; its position does not matter.
        effort : Effort
            Threads and progress.

        Returns
        -------
        Arrays
            Row n of each array belongs to person n; without people, arrays with 0 rows.
        """

    @abstractmethod
    def score(self, prepared: Any, row: Arrays, owned: NDArray[np.int32]) -> Scores:  # noqa: ANN401 - the model's own
        """Score all items for one user.

        Parameters
        ----------
        prepared : object
            The shared parameters, as prepared.
        row : Arrays
            The user's row.
        owned : array of int32
            The numbers of the user's own items, ascending.

        Returns
        -------
        Scores
            One for each item, from the user's row and own items alone.
        """

    def newcomers(self, prepared: Any, users: Ids, catalogue: Ids, seed: int) -> Arrays:  # noqa: ANN401 - the model's own
        """Return rows for users without any history: zeros, unless a model that starts from other rows returns those.

        Parameters
        ----------
        prepared : object
            The shared parameters, as prepared.
        users : Ids
            The users.
        catalogue : Ids
            The items that the shared parameters know.
        seed : int
            What all draws start from. A row depends on it and on the user's id alone.

        Returns
        -------
        Arrays
            Rows of the shape that `represent` gives.
        """
        nobody = np.empty(0, np.int32)
        none = Interactions(Ids.of([]), catalogue, nobody, nobody, nobody.astype(np.float32))
        like = self.represent(prepared, Stage(none, RatingScale(1, 1), 1, seed, 0), Effort())
        return {name: np.zeros((len(users), *array.shape[1:]), array.dtype) for name, array in like.items()}

    def extended(self, shared: Arrays, catalogue: Ids, seed: int) -> Arrays:
        """Append the catalogue's new items to the shared parameters; they begin as in `start`.

        Parameters
        ----------
        shared : Arrays
            The shared parameters, which know the first items of the catalogue.
        catalogue : Ids
            All items.
        seed : int
            What all draws start from.

        Returns
        -------
        Arrays
            The shared parameters of all items; what was known is unchanged.
        """
        fresh = self.start(catalogue, seed)
        return {name: _with_known(array, shared[name]) for name, array in fresh.items()}

    def by_item(self) -> tuple[str, ...]:
        """Return the names of shared arrays, with a row for each item, to store in blocks of items: none by default.

        It pays where a change leaves most rows as they are: blocks with the same bytes are not written again.

        Returns
        -------
        tuple of str
            Names of shared arrays.
        """
        return ()

    def samples(self, interactions: Interactions | Size, epochs: int) -> int:
        """Return how many samples training visits; a closed form counts its work in units of one sample.

        Parameters
        ----------
        interactions : Interactions or Size
            The rows of a stage, or only their size: `Size.of` takes both.
        epochs : int
            How often training goes through them.

        Returns
        -------
        int
            What `train` reports to `effort.advance` in all.
        """
        return len(interactions) * epochs


@runtime_checkable
class Prepares(Protocol):
    """Computes something from the shared parameters once, for many people.

    Methods
    -------
    prepare(shared)
        Called once for each shared parameters, before people are represented or scored.

    Examples
    --------
    >>> from erasable import ALS
    >>> isinstance(ALS(), Prepares)
    True
    """

    def prepare(self, shared: Arrays) -> Any:  # noqa: ANN401 - the model's own
        """Return what `represent` and `score` receive in place of the shared parameters.

        Parameters
        ----------
        shared : Arrays
            The shared parameters.

        Returns
        -------
        object
            Anything; it is never changed.
        """


@runtime_checkable
class Amends(Protocol):
    """Has a shortcut: gets from trained parameters to those of the changed data without training from the start.

    Methods
    -------
    amended(trained, change, effort)
        Called when a first stage is forgotten from or added to.
    samples_amended(interactions, change)
        Called to plan that.

    Examples
    --------
    >>> from erasable import EASE, NMF
    >>> isinstance(EASE(), Amends), isinstance(NMF(), Amends)
    (True, False)
    """

    def amended(self, trained: Arrays, change: Change, effort: Effort) -> Arrays:
        """Return what training from the start on the changed data would return, to the byte.

        Parameters
        ----------
        trained : Arrays
            The shared parameters before the change.
        change : Change
            Which rows go, and which come.
        effort : Effort
            Threads and progress.

        Returns
        -------
        Arrays
            The shared parameters after the change.
        """

    def samples_amended(self, interactions: Interactions, change: Change) -> int:
        """Return how many samples amending visits.

        Parameters
        ----------
        interactions : Interactions
            Everyone's rows after the change.
        change : Change
            Which rows go, and which come.

        Returns
        -------
        int
            Counted like `Model.samples`.
        """


@runtime_checkable
class Subtracts(Protocol):
    """Can remove someone's influence at once, to serve until the change is trained.

    Methods
    -------
    provisional(shared, change)
        Called by the service as soon as someone asks to be erased.

    Examples
    --------
    >>> from erasable import EASE
    >>> isinstance(EASE(), Subtracts)
    True
    """

    def provisional(self, shared: Arrays, change: Change) -> Arrays:
        """Return shared parameters to serve until a change is trained.

        Parameters
        ----------
        shared : Arrays
            The shared parameters before the change.
        change : Change
            Which rows go, and which come.

        Returns
        -------
        Arrays
            Shared parameters that may approximate the change.
        """


@runtime_checkable
class Probabilities(Protocol):
    """Turns scores into probabilities, as its loss does; without it their sigmoid is taken.

    Methods
    -------
    probability(scores)
        Called when scores are shown or judged as shares of the highest rating.

    Examples
    --------
    >>> from erasable import ALS
    >>> isinstance(ALS(), Probabilities)
    True
    """

    def probability(self, scores: Scores) -> NDArray[np.float64]:
        """Return the expected rating as a share of the highest.

        Parameters
        ----------
        scores : Scores
            What `score` returned.

        Returns
        -------
        array of float64
            One for each score, between 0 and 1, in the same order.
        """


@runtime_checkable
class TellsSimilarItems(Protocol):
    """Can tell which items are similar, from its shared parameters alone.

    Without it, items are similar that the model recommends to someone who has this one item and no other.

    Methods
    -------
    similar(shared, number)
        Called by `Recommender.similar_items`.

    Examples
    --------
    >>> from erasable import EASE
    >>> isinstance(EASE(), TellsSimilarItems)
    True
    """

    def similar(self, shared: Arrays, number: int) -> Scores:
        """Return the similarity of each item to one of them.

        Parameters
        ----------
        shared : Arrays
            The shared parameters.
        number : int
            The number of that one item.

        Returns
        -------
        Scores
            One for each item; above 0 if it is similar at all.
        """


@runtime_checkable
class Explains(Protocol):
    """Can explain a score by the user's own items.

    Methods
    -------
    reasons(prepared, owned, item)
        Called by `Recommender.explain` and `erasable recommend --why`.

    Examples
    --------
    >>> from erasable import ALS, EASE
    >>> isinstance(EASE(), Explains), isinstance(ALS(), Explains)
    (True, False)
    """

    def reasons(self, prepared: Any, owned: NDArray[np.int32], item: int) -> Scores:  # noqa: ANN401 - the model's own
        """Return what each of the user's own items adds to the score of one item.

        Parameters
        ----------
        prepared : object
            The shared parameters, as prepared.
        owned : array of int32
            The numbers of the user's own items, ascending.
        item : int
            The number of the item whose score is explained.

        Returns
        -------
        Scores
            One for each of `owned`, in their order; it may be negative. Together they are the score.
        """


def prepared_by(model: Model, shared: Arrays) -> Any:  # noqa: ANN401 - the model's own
    """Return what a model's methods receive in place of shared parameters."""
    return model.prepare(shared) if isinstance(model, Prepares) else shared


def probability_by(model: Model, scores: Scores) -> NDArray[np.float64]:
    """Return scores as probabilities; their sigmoid, if the model does not define them."""
    if isinstance(model, Probabilities):
        return model.probability(scores)
    from scipy.special import expit

    return expit(scores.astype(np.float64))


def _with_known(fresh: NDArray[Any], known: NDArray[Any]) -> NDArray[Any]:
    """Return an array with a row for each item, the known ones unchanged."""
    whole = known.copy() if fresh.shape == known.shape else np.concatenate([known, fresh[len(known) :]])
    whole.setflags(write=False)
    return whole
