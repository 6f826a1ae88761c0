"""The library's front door: one object that learns, recommends, forgets and verifies, in memory or in a workspace."""

import inspect
import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Self, get_args

import pyarrow as pa

from erasable.data import ColumnNames, OnBadRow
from erasable.errors import ErasableError, WrongUse
from erasable.evaluation import Protocol, Utility
from erasable.models import Model
from erasable.operations.answers import recommendation_table, shown_holding, similar_table
from erasable.operations.erasure import Outside
from erasable.operations.forget import NOTHING_OUTSIDE, Forgotten, forget
from erasable.operations.given_ids import Id, NumberedIds, text_of, texts_of
from erasable.operations.home import DiskHome, Home, MemoryHome
from erasable.operations.inspect import GroupFacts, Holding, evaluate, groups, show, status
from erasable.operations.learn import Learned, learn_into
from erasable.operations.more import LearnedMore, learn_more
from erasable.operations.notebook import facts_as_html
from erasable.operations.planning import plan
from erasable.operations.prepare import NO_INPUTS, Inputs
from erasable.operations.python_words import in_python, speaking_python
from erasable.operations.recommend import Unknown
from erasable.operations.reporting import LibraryReporter
from erasable.operations.saving import save_copy
from erasable.operations.serving import Serving
from erasable.operations.upgrade import Upgraded, upgrade
from erasable.operations.verify import NO_CLAIM, Claim, Verification, verify
from erasable.operations.work import Work, available_cores
from erasable.store import Workspace
from erasable.store.layout import MANIFEST
from erasable.training import Config
from erasable.training.strategies import Strategy
from erasable.unlearning import Plan, Request

Column = str | int | None
"""A column by its name, or by its number from 1 where there are no names; None if it is to be recognised."""
_SHOWN = ("model", "strategy", "users", "items", "interactions", "groups", "erasures", "version")


class Recommender:
    """A recommender that can forget.

    It lives in memory after `fit`, and in its folder after `load`; `save` writes a copy.

    Parameters
    ----------
    model : str or Model, optional
        A model's name, or an object such as `NMF(epochs=20)`; als unless a preset says otherwise.
    strategy : str or Strategy, optional
        A strategy's name, or an object such as `Laser(groups=8)`; the first that the model can be learned with.
    threads : int, optional
        How many threads to work with, all cores if not given; none of it changes a byte.
    preset : str, optional
        The name of settings that belong together, such as "paper".
    progress : bool, default True
        Whether long work shows a bar, on a terminal and in a notebook; elsewhere nothing is ever shown.
    **settings
        Those of `erasable learn` (docs/reference.md): of the model, the strategy and the recommender itself.

    Attributes
    ----------
    learned : Learned or None
        What the last `fit` has read and learned, and how long it took.

    Notes
    -----
    What is worth knowing is logged under the name "erasable"; what is most likely not meant is an `ErasableWarning`.

    Examples
    --------
    >>> import pyarrow as pa
    >>> table = pa.table({"user": [1, 1, 2, 2, 3], "item": ["a", "b", "a", "c", "b"]})
    >>> recommender = Recommender("nmf", groups=2, epochs=1).fit(table)
    >>> recommender.forget(2).stages_total
    2
    >>> recommender.verify().identical
    True
    """

    @speaking_python
    def __init__(
        self,
        model: str | Model | type[Model] | None = None,
        strategy: str | Strategy | None = None,
        *,
        threads: int | None = None,
        preset: str | None = None,
        progress: bool = True,
        **settings: Any,  # noqa: ANN401 - settings of many types
    ) -> None:
        chosen = {"model": model, "strategy": strategy}
        settings = {**{name: value for name, value in chosen.items() if value is not None}, **settings}
        self._given: dict[str, Any] = {"threads": threads, "preset": preset, "progress": progress, **settings}
        self._config = Config.of(settings, preset)
        self._work = Work(available_cores() if threads is None else threads, LibraryReporter(progress))
        self._home: Home | None = None
        self._serving: Serving | None = None
        self._copies: list[Path] = []
        self.learned: Learned | None = None

    @speaking_python
    def fit(
        self,
        table: Any,  # noqa: ANN401 - any table or path
        inputs: Inputs = NO_INPUTS,
        *,
        user: Column = None,
        item: Column = None,
        rating: Column = None,
        time: Column = None,
        risk: Column = None,
        catalogue: str | Path | None = None,
        groups_from: str | Path | None = None,
        on_bad_row: OnBadRow | None = None,
    ) -> Self:
        """Learn from a table; what was learned before is dropped.

        Parameters
        ----------
        table : table or path
            Interactions, one a row: a pandas, polars or Arrow table, a SciPy sparse matrix (users by items), or the
            path of a CSV or Parquet file.
        inputs : Inputs, optional
            What is given beside the data and has no keyword here, such as another do-not-learn list.
        user, item, rating, time, risk : str or int, optional
            The columns, by name, or by number from 1 where the table has no names. Usual names are recognised; a
            risk is read only if it is named. Without ratings each counts 1.
        catalogue : path, optional
            A file with the items that can be recommended, one a line, or a workspace whose catalogue is taken.
        groups_from : path, optional
            A CSV file or a workspace that says who is trained together.
        on_bad_row : {"refuse", "skip"}, optional
            Whether rows that can't be used are refused, which is the default, or left out and counted.

        Returns
        -------
        Recommender
            Itself.

        Examples
        --------
        >>> import pyarrow as pa
        >>> sales = pa.table({"customer_email": ["a@x", "a@x", "b@x", "b@x"], "sku": [7, 8, 7, 9]})
        >>> recommender = Recommender(model="ease").fit(sales, user="customer_email", item="sku")
        >>> recommender.learned.users
        2
        """
        named = _named(inputs, {"user": user, "item": item, "rating": rating, "time": time, "risk": risk}, on_bad_row)
        named = replace(
            named,
            catalogue=inputs.catalogue if catalogue is None else Path(catalogue),
            groups_from=inputs.groups_from if groups_from is None else Path(groups_from),
        )
        home = MemoryHome()
        with home.writing() as session:
            self.learned = learn_into(session, table, self._config, named, self._work)
        self._note(self.learned.notes)
        self._settle_in(home)
        return self

    @speaking_python
    def learn_more(
        self,
        table: Any,  # noqa: ANN401 - any table or path
        inputs: Inputs = NO_INPUTS,
        readmit: Id | Iterable[Id] = (),
        *,
        user: Column = None,
        item: Column = None,
        rating: Column = None,
        time: Column = None,
        risk: Column = None,
        catalogue: str | Path | None = None,
        on_bad_row: OnBadRow | None = None,
    ) -> LearnedMore:
        """Learn more: new users, and new interactions of those who are known; settings and groups stay.

        Parameters
        ----------
        table : table or path
            Interactions, as for `fit`. The columns that were read before are read again, unless others are named.
        inputs : Inputs, optional
            What is given beside the data and has no keyword here.
        readmit : id or ids, optional
            Who was forgotten and really comes back; everyone else who was forgotten is left out and counted.
        user, item, rating, time, risk : str or int, optional
            The columns, as for `fit`.
        catalogue : path, optional
            The new catalogue, where one was declared.
        on_bad_row : {"refuse", "skip"}, optional
            Whether rows that can't be used are refused or left out.

        Returns
        -------
        LearnedMore
            What is known now, what of it is new, and what it took.

        Examples
        --------
        >>> import pyarrow as pa
        >>> recommender = Recommender(model="ease").fit(pa.table({"user": [1, 1, 2], "item": ["a", "b", "a"]}))
        >>> recommender.learn_more(pa.table({"user": [3, 3], "item": ["b", "c"]})).users_added
        1
        """
        named = _named(inputs, {"user": user, "item": item, "rating": rating, "time": time, "risk": risk}, on_bad_row)
        named = replace(
            named,
            catalogue=inputs.catalogue if catalogue is None else Path(catalogue),
            readmit=(*inputs.readmit, *texts_of(readmit)),
        )
        found = learn_more(self._learned_home(), table, named, self._work)
        self._note(found.notes)
        return found

    @speaking_python
    def recommend(
        self,
        users: Id | Iterable[Id] | None = None,
        k: int = 10,
        popular_fallback: bool | None = None,
        *,
        unknown: Unknown = "raise",
        history: Iterable[Id] | Mapping[Id, float | None] | None = None,
    ) -> pa.Table:
        """Return the k best items for each user, or for someone with a history and no id.

        Nobody is offered what they have. Where the model says nothing, popular items fill up: `popular` is true, and
        the score is how many people have the item.

        Parameters
        ----------
        users : id or ids, optional
            One user, or several, as they stand in the table that was learned; everyone if not given.
        k : int, default 10
            How many items for each.
        popular_fallback : bool, optional
            Deprecated: use `unknown="popular"`.
        unknown : {"raise", "skip", "popular"}, default "raise"
            What becomes of users of whom nothing is held, or who have asked to be erased: nobody gets anything and an
            error says who it is, they are left out, or they get the items that most people have.
        history : ids, or ratings by id, optional
            What someone without an id has, in place of users. An item without a rating counts as rated highest; one
            that nobody has is left out. Nothing is stored, and the user_id in the table is empty.

        Returns
        -------
        pyarrow.Table
            user_id, item_id, score, rank and popular; ids are of the type that they were learned in. `.to_pandas()`
            gives a pandas frame, `polars.from_arrow(…)` a polars one.

        Examples
        --------
        >>> import pyarrow as pa
        >>> table = pa.table({"user": [1, 1, 2, 2, 3], "item": ["a", "b", "a", "c", "b"]})
        >>> recommender = Recommender(model="ease", regularisation=1).fit(table)
        >>> found = recommender.recommend([3, 99], k=1, unknown="skip")
        >>> found.select(["user_id", "item_id", "rank"]).to_pylist()
        [{'user_id': 3, 'item_id': 'a', 'rank': 1}]
        """
        if popular_fallback is not None:
            replacement = "popular" if popular_fallback else "raise"
            warnings.warn(f"popular_fallback is now unknown={replacement!r}", DeprecationWarning, stacklevel=3)
            unknown = "popular" if popular_fallback else unknown
        if unknown not in get_args(Unknown):
            raise WrongUse(f"unknown={unknown!r} makes no sense: give one of {', '.join(get_args(Unknown))}")
        serving = self._learned_serving()
        if history is None:
            found = serving.recommend(None if users is None else texts_of(users), k, unknown)
        elif users is None:
            found = [serving.recommend_for_history(_history(history), k)]
        else:
            raise WrongUse("give users or a history, not both")
        return recommendation_table(found, serving.numbered)

    @speaking_python
    def similar_items(self, items: Id | Iterable[Id], k: int = 10) -> pa.Table:
        """Return the k items that are most like an item, for the models that can tell: als and ease.

        For als it is the cosine of the items' factors, for ease the weight with which one item speaks for another.

        Parameters
        ----------
        items : id or ids
            One item, or several.
        k : int, default 10
            How many others for each; fewer where the model sees no more that are alike.

        Returns
        -------
        pyarrow.Table
            item_id, similar_id, score and rank.

        Examples
        --------
        >>> import pyarrow as pa
        >>> table = pa.table({"user": [1, 1, 2, 2, 3, 3], "item": ["a", "b", "a", "b", "c", "d"]})
        >>> recommender = Recommender(model="ease", regularisation=1).fit(table)
        >>> recommender.similar_items("a", k=1)["similar_id"].to_pylist()
        ['b']
        """
        wanted = texts_of(items)
        serving = self._learned_serving()
        return similar_table(wanted, serving.similar(wanted, k), serving.numbered)

    @speaking_python
    def plan(self, users: Id | Iterable[Id], items: Id | Iterable[Id] | None = None) -> Plan:
        """Say what `forget` would touch and cost; nothing is changed.

        Parameters
        ----------
        users : id or ids
            Who would be forgotten.
        items : id or ids, optional
            Which items of one user would be forgotten; everything if not given.

        Returns
        -------
        Plan
            Stages that would run again, what that costs, and how long it takes.

        Examples
        --------
        >>> import pyarrow as pa
        >>> recommender = Recommender(model="ease").fit(pa.table({"user": [1, 1, 2], "item": ["a", "b", "a"]}))
        >>> recommender.plan(2).stages_rerun
        1
        """
        return plan(self._learned_home(), _requests(users, items), self._work)

    @speaking_python
    def forget(
        self,
        users: Id | Iterable[Id],
        items: Id | Iterable[Id] | None = None,
        ignore_unknown: bool = False,
        rerun: bool = False,
        yes: bool = False,
        outside: Outside = NOTHING_OUTSIDE,
    ) -> Forgotten:
        """Forget users, or some items of one user, exactly; other threads get nothing for them from now on.

        Parameters
        ----------
        users : id or ids
            Who is forgotten; an empty list finishes what was interrupted.
        items : id or ids, optional
            Which items of one user are forgotten; everything if not given.
        ignore_unknown : bool, default False
            Whether users of whom nothing is held are left out and counted, instead of refused.
        rerun : bool, default False
            Whether everything is trained again; needed in another numeric environment than the one that learned.
        yes : bool, default False
            Needed for more than 1 % of the people, if that is more than 10.
        outside : Outside, optional
            What is written beside: a folder for receipts, a case number, another do-not-learn list.

        Returns
        -------
        Forgotten
            What it cost, the `certificates`, and the `receipts`, which are for the people alone.

        Examples
        --------
        >>> import pyarrow as pa
        >>> recommender = Recommender(model="ease").fit(pa.table({"user": [1, 1, 2], "item": ["a", "b", "a"]}))
        >>> done = recommender.forget(2)
        >>> len(done.certificates), len(done.receipts)
        (1, 1)
        """
        requests = _requests(users, items)
        for copy in self._copies if requests else ():
            if (copy / MANIFEST).exists():
                self._work.reporter.doubt(
                    f"the copy in {copy} keeps whom you forget here: load it and forget there too"
                )
        with self._learned_serving().withdrawing(requests):
            done = forget(self._learned_home(), requests, ignore_unknown, rerun, self._work, outside, yes)
        self._note(done.notes)
        return done

    @speaking_python
    def verify(self, claim: Claim = NO_CLAIM) -> Verification:
        """Check every file, record and signature, train again from what is left, and compare every byte.

        Parameters
        ----------
        claim : Claim, optional
            A certificate and a receipt that must be right too.

        Returns
        -------
        Verification
            `identical` is true, false, or None where it can't be told on this machine; `reason` says why.

        Examples
        --------
        >>> import pyarrow as pa
        >>> recommender = Recommender(model="ease").fit(pa.table({"user": [1, 1, 2], "item": ["a", "b", "a"]}))
        >>> recommender.verify().identical
        True
        """
        found = verify(self._learned_home(), claim, self._work)
        return replace(found, reason=in_python(found.reason))

    @speaking_python
    def upgrade(self) -> Upgraded:
        """Make again here what was learned in another numeric environment, as one new version.

        Call it after numpy, scipy, numba or the machine has changed: from then on `forget` and `verify` work here.
        Checkpoints that have the same bytes here are adopted. Files of an earlier format are written in the newest.

        Returns
        -------
        Upgraded
            How many checkpoints were adopted, trained anew and kept; `changed` is false if there was nothing to do.

        Examples
        --------
        >>> import pyarrow as pa
        >>> recommender = Recommender(model="ease").fit(pa.table({"user": [1, 1, 2], "item": ["a", "b", "a"]}))
        >>> recommender.upgrade().changed
        False
        """
        return upgrade(self._learned_home(), self._work)

    @speaking_python
    def evaluate(
        self,
        table: Any = None,  # noqa: ANN401 - any table or path
        protocol: Protocol = "whole-catalogue",
        *,
        user: Column = None,
        item: Column = None,
        rating: Column = None,
        time: Column = None,
    ) -> Utility:
        """Measure how good recommendations are.

        Parameters
        ----------
        table : table or path, optional
            Interactions to find, as for `fit`; those that were held out, with `holdout=0.1`, if not given.
        protocol : {"whole-catalogue", "one-of-100", "held-out-only"}, default "whole-catalogue"
            What is ranked, and what counts as found (docs/protocols.md).
        user, item, rating, time : str or int, optional
            The columns, as for `fit`; those that were read before are read again, unless others are named.

        Returns
        -------
        Utility
            Hit rate, NDCG and recall, as means over `users`.

        Examples
        --------
        >>> import pyarrow as pa
        >>> table = pa.table({"who": [1, 1, 2, 2, 3], "what": ["a", "b", "a", "c", "b"]})
        >>> recommender = Recommender(model="ease", regularisation=1).fit(table, user="who", item="what")
        >>> recommender.evaluate(pa.table({"who": [3], "what": ["a"]})).values["hr@10"]
        1.0
        """
        given = {"user": user, "item": item, "rating": rating, "time": time}
        return evaluate(self._learned_home(), table, _columns(given), self._work, protocol)

    @speaking_python
    def show(self, user: Id) -> Holding:
        """Return everything that is held about a person.

        Parameters
        ----------
        user : id
            The person.

        Returns
        -------
        Holding
            The person's interactions, group and personal rows.

        Examples
        --------
        >>> import pyarrow as pa
        >>> recommender = Recommender(model="ease").fit(pa.table({"user": [1, 1, 2], "item": ["a", "b", "a"]}))
        >>> [one.item_id for one in recommender.show(1).interactions]
        ['a', 'b']
        """
        home = self._learned_home()
        held = show(home, text_of(user))
        with home.reading() as session:
            return shown_holding(held, NumberedIds.of(session))

    @speaking_python
    def groups(self) -> list[GroupFacts]:
        """Return the groups in the order in which they are trained: users, interactions and cohesion of each.

        Returns
        -------
        list of GroupFacts
            One for each group.

        Examples
        --------
        >>> import pyarrow as pa
        >>> table = pa.table({"user": [1, 1, 2, 2, 3], "item": ["a", "b", "a", "c", "b"]})
        >>> sum(group.users for group in Recommender("nmf", groups=2, epochs=1).fit(table).groups())
        3
        """
        return groups(self._learned_home(), self._work)

    @speaking_python
    def status(self) -> dict[str, Any]:
        """Return what is current: sizes, settings, erasures and version.

        Returns
        -------
        dict
            What `erasable status --json` prints.

        Examples
        --------
        >>> import pyarrow as pa
        >>> recommender = Recommender(model="ease").fit(pa.table({"user": [1, 1, 2], "item": ["a", "b", "a"]}))
        >>> recommender.status()["users"]
        2
        """
        return status(self._learned_home())

    @speaking_python
    def save(self, folder: str | Path) -> None:
        """Write a copy into a new workspace, with a do-not-learn list beside it; this one stays where it is.

        What is forgotten or learned here later does not reach the copy: to work in the folder, `load` it.

        Parameters
        ----------
        folder : path
            A folder that is not there yet, or is empty.

        Examples
        --------
        >>> import pyarrow as pa, tempfile
        >>> recommender = Recommender(model="ease").fit(pa.table({"user": [1, 1, 2], "item": ["a", "b", "a"]}))
        >>> with tempfile.TemporaryDirectory() as place:
        ...     recommender.save(f"{place}/shop")
        ...     Recommender.load(f"{place}/shop").status()["users"]
        2
        """
        save_copy(self._learned_home(), Path(folder))
        self._copies.append(Path(folder).absolute())

    @classmethod
    @speaking_python
    def load(
        cls,
        folder: str | Path,
        threads: int | None = None,
        model: Model | type[Model] | None = None,
        progress: bool = True,
    ) -> Self:
        """Open the recommender in a workspace; it lives there, and forgetting changes that workspace.

        Parameters
        ----------
        folder : path
            What `save` or `erasable learn` has made.
        threads, progress
            As for the class itself.
        model : Model or its class, optional
            A model that no installed package registers; its settings are those of the workspace.

        Returns
        -------
        Recommender
            The recommender of that folder.

        Examples
        --------
        >>> import pyarrow as pa, tempfile
        >>> recommender = Recommender(model="ease").fit(pa.table({"user": [1, 1, 2], "item": ["a", "b", "a"]}))
        >>> with tempfile.TemporaryDirectory() as place:
        ...     recommender.save(f"{place}/shop")
        ...     done = Recommender.load(f"{place}/shop").forget(2)
        ...     Recommender.load(f"{place}/shop").status()["users"], recommender.status()["users"]
        (1, 2)
        """
        kind = model if model is None or isinstance(model, type) else type(model)
        with Workspace.reading(folder, model=kind) as workspace:
            config = workspace.state().knowledge.config
        recommender = cls(threads=threads, progress=progress, **{**config.flat(), "model": kind or config.model})
        recommender._config = config
        recommender._settle_in(DiskHome(Path(folder), model=kind))
        return recommender

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return what the recommender was made with, as scikit-learn's `clone` wants it.

        Parameters
        ----------
        deep : bool, default True
            Makes no difference.

        Returns
        -------
        dict
            Arguments that make a recommender of the same settings, which has learned nothing yet.

        Examples
        --------
        >>> Recommender(model="als", factors=8).get_params()
        {'threads': None, 'preset': None, 'progress': True, 'model': 'als', 'factors': 8}
        """
        return dict(self._given)

    @speaking_python
    def set_params(self, **params: Any) -> Self:  # noqa: ANN401 - whatever the class takes
        """Change settings for the next `fit`; what was learned stays as it is.

        Parameters
        ----------
        **params
            Arguments of the class.

        Returns
        -------
        Recommender
            Itself.

        Examples
        --------
        >>> Recommender(model="als").set_params(factors=8)
        Recommender(model='als', factors=8)
        """
        other = type(self)(**{**self._given, **params})
        self._given, self._config, self._work = other._given, other._config, other._work
        return self

    def __sklearn_is_fitted__(self) -> bool:
        return self._home is not None

    def __repr__(self) -> str:
        if self._home is not None and self._home.path is not None:
            return f"{type(self).__name__}.load({str(self._home.path)!r})"
        usual = inspect.signature(type(self)).parameters
        told = {name: value for name, value in self._given.items() if name not in usual or value != usual[name].default}
        return f"{type(self).__name__}({', '.join(f'{name}={value!r}' for name, value in told.items())})"

    def _repr_html_(self) -> str:
        try:
            found = self.status() if self._home is not None else {}
        except ErasableError as error:
            found = {"model": str(error)}
        return facts_as_html(repr(self), {name: found[name] for name in _SHOWN if name in found})

    def _note(self, notes: Sequence[str]) -> None:
        for note in notes:
            self._work.reporter.note(note)

    def _settle_in(self, home: Home) -> None:
        self._home, self._serving, self._copies = home, Serving(home, self._work), []

    def _learned_serving(self) -> Serving:
        if self._serving is None:
            raise WrongUse("nothing was learned yet: call fit first")
        return self._serving

    def _learned_home(self) -> Home:
        if self._home is None:
            raise WrongUse("nothing was learned yet: call fit first")
        return self._home


def _columns(given: dict[str, Column]) -> ColumnNames:
    return ColumnNames(**{role: str(name) for role, name in given.items() if name is not None})


def _named(inputs: Inputs, columns: dict[str, Column], on_bad_row: OnBadRow | None) -> Inputs:
    """Return inputs with the columns that are named, and what is to become of bad rows."""
    if on_bad_row is not None and on_bad_row not in get_args(OnBadRow):
        raise WrongUse(f"on_bad_row={on_bad_row!r} makes no sense: give one of {', '.join(get_args(OnBadRow))}")
    named = ColumnNames(**{**inputs.columns.given(), **_columns(columns).given()})
    return replace(inputs, columns=named, on_bad_row=on_bad_row or inputs.on_bad_row)


def _history(history: Iterable[Id] | Mapping[Id, float | None]) -> dict[str, float | None]:
    if isinstance(history, Mapping):
        return {text_of(item): rating for item, rating in history.items()}
    return dict.fromkeys(texts_of(history))


def _requests(users: Id | Iterable[Id], items: Id | Iterable[Id] | None) -> list[Request]:
    named = texts_of(users)
    if items is not None and len(named) != 1:
        raise WrongUse("items need exactly one user")
    return [Request(user, None if items is None else tuple(texts_of(items))) for user in named]
