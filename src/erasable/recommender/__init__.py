"""The library's main class: it learns, recommends, forgets and verifies, in memory or in a workspace."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal, Self

from erasable.chain.settings import Config
from erasable.chain.strategies import Strategy
from erasable.data.values import OnBadRow
from erasable.errors import WrongUse
from erasable.models.base import Model
from erasable.models.registry import BUILT_IN, checked_model, find_model, make_model
from erasable.models.settings import given_twice, in_our_words
from erasable.operations.again import LearnedAgain, learn_again
from erasable.operations.declared_items import read_declared
from erasable.operations.do_not_learn import NOTHING_OUTSIDE, Outside
from erasable.operations.forget import Forgotten, forget
from erasable.operations.learn import Learned, LearnedMore, learn_into, learn_more
from erasable.operations.people import Id, texts_of
from erasable.operations.prepare import NO_INPUTS, Column, Inputs, named_inputs
from erasable.operations.recording import begin_new_queue
from erasable.operations.storage import DiskStorage, MemoryStorage, Storage
from erasable.operations.sync import Synced, SyncRules, sync
from erasable.operations.upgrade import Upgraded, upgrade
from erasable.operations.work import RayCluster, Work, available_cores
from erasable.progress import LibraryReporter
from erasable.recommender._answering import requests_of
from erasable.recommender._estimator import Estimator, save_copy
from erasable.recommender._serving import Serving
from erasable.requests.request import Request
from erasable.workspace.files import MANIFEST
from erasable.workspace.workspace import Workspace


class Recommender(Estimator):
    """A recommender that can forget.

    It is in memory after `fit`, and in its folder after `load`; `save` writes a copy.

    Parameters
    ----------
    model : str or Model, optional
        A model's name, or an object such as `NMF(epochs=20)`; ease unless a preset says otherwise.
    strategy : str or Strategy, optional
        A strategy's name, or an object such as `Laser(groups=8)`; by default the model's first strategy.
    threads : int, optional
        How many threads to use, all cores if not given; the number does not change a byte.
    n_jobs : int, optional
        The same as in scikit-learn: -1 stands for all cores, -2 for all but one.
    preset : str, optional
        The name of settings that belong together, such as "paper".
    progress : bool, default True
        Whether long work shows a progress bar in a terminal or a notebook; elsewhere none is shown.
    **settings
        Settings of the model, the strategy and the recommender, as for `erasable learn`
        (docs/reference/commands.md).

    Attributes
    ----------
    learned : Learned or None
        What the last `fit` read and learned, and how long it took.

    Notes
    -----
    Notes are logged under the name "erasable"; probable mistakes give an `ErasableWarning`.

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

    def __init__(
        self,
        model: str | Model | type[Model] | None = None,
        strategy: str | Strategy | None = None,
        *,
        threads: int | None = None,
        n_jobs: int | None = None,
        preset: str | None = None,
        progress: bool = True,
        **settings: Any,  # noqa: ANN401 - settings of many types
    ) -> None:
        chosen = {"model": model, "strategy": strategy}
        settings = {**{name: value for name, value in chosen.items() if value is not None}, **in_our_words(settings)}
        threads = _threads(threads, n_jobs)
        self._given: dict[str, Any] = {"threads": threads, "preset": preset, "progress": progress, **settings}
        self._config = Config.of(settings, preset)
        self._work = Work(available_cores() if threads is None else threads, LibraryReporter(progress))
        self._storage: Storage | None = None
        self._serving: Serving | None = None
        self._copies: list[Path] = []
        self.learned: Learned | None = None

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
        weight: Column = None,
        event: Column = None,
        catalogue: str | Path | None = None,
        items: Any = None,  # noqa: ANN401 - any table or path
        features: str | Sequence[str] | Mapping[str, int] | None = None,
        groups_from: str | Path | None = None,
        on_bad_row: OnBadRow | None = None,
    ) -> Self:
        """Learn from a table; what was learned before is dropped.

        Parameters
        ----------
        table : table, path or URL
            Interactions, one a row: a pandas, polars or Arrow table, a SciPy sparse matrix (users by items), the path
            of a CSV or Parquet file, of a folder of such files or a pattern such as `exports/*.csv.gz`, or the URL of
            one of these in an object store (`s3://`, `gs://`, `az://`).
        inputs : Inputs, optional
            What has no keyword here, such as another do-not-learn list.
        user, item, rating, time, risk : str or int, optional
            The columns, by name, or by number from 1 if the table has no names. Usual names are recognised; a
            risk is read only if it is named. Without ratings each interaction counts 1.
        weight, event : str or int, optional
            Columns of quantities (whole numbers from 1 up) and of types of events, which the setting `event_weights`
            weighs; they take the place of ratings. Rows of one pair add up to at most the setting `max_weight`.
        catalogue : path, optional
            A file with the items that can be recommended, one a line, or a workspace with a declared catalogue.
        items : table or path, optional
            Attributes of items, one row an item, as for `set_items`.
        features : names, optional
            Attributes to learn from, such as `["author"]`, or with weights `{"author": 5}`; in place of the setting
            `features`. All items of the table can then be recommended, also those that nobody has.
        groups_from : path, optional
            A CSV file or a workspace that says who is trained together.
        on_bad_row : {"refuse", "skip"}, optional
            Whether unusable rows are refused, which is the default, or left out and counted.

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
        columns = {"user": user, "item": item, "rating": rating, "time": time, "risk": risk}
        columns |= {"weight": weight, "event": event}
        named = named_inputs(inputs, columns, on_bad_row)
        named = replace(
            named,
            catalogue=inputs.catalogue if catalogue is None else Path(catalogue),
            groups_from=inputs.groups_from if groups_from is None else Path(groups_from),
        )
        named = replace(named, items=inputs.items if items is None else read_declared(items))
        config = self._config if features is None else self._config.changed(features=features)
        storage = MemoryStorage()
        with storage.writing() as session:
            self.learned = learn_into(session, table, config, named, self._work)
        self._note(self.learned.notes)
        self._settle_in(storage)
        return self

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
        weight: Column = None,
        event: Column = None,
        catalogue: str | Path | None = None,
        items: Any = None,  # noqa: ANN401 - any table or path
        on_bad_row: OnBadRow | None = None,
    ) -> LearnedMore:
        """Learn more: new users, and new interactions of existing users; settings and groups stay.

        Parameters
        ----------
        table : table or path
            Interactions, as for `fit`. The columns that were read before are read again, unless others are named. None
            if only `items` are new.
        inputs : Inputs, optional
            What has no keyword here.
        readmit : id or ids, optional
            Forgotten users who want to come back; all other forgotten users are left out and counted.
        user, item, rating, time, risk, weight, event : str or int, optional
            The columns, as for `fit`. Weights add up with those learned before, so give new rows only.
        catalogue : path, optional
            The new catalogue, where one was declared.
        items : table or path, optional
            New attributes of items; where features are learned from, these too.
        on_bad_row : {"refuse", "skip"}, optional
            Whether unusable rows are refused or left out.

        Returns
        -------
        LearnedMore
            Sizes after learning, what of them is new, and what it cost.

        Examples
        --------
        >>> import pyarrow as pa
        >>> recommender = Recommender(model="ease").fit(pa.table({"user": [1, 1, 2], "item": ["a", "b", "a"]}))
        >>> recommender.learn_more(pa.table({"user": [3, 3], "item": ["b", "c"]})).users_added
        1
        """
        columns = {"user": user, "item": item, "rating": rating, "time": time, "risk": risk}
        columns |= {"weight": weight, "event": event}
        named = named_inputs(inputs, columns, on_bad_row)
        named = replace(
            named,
            catalogue=inputs.catalogue if catalogue is None else Path(catalogue),
            readmit=(*inputs.readmit, *texts_of(readmit)),
            items=inputs.items if items is None else read_declared(items),
        )
        found = learn_more(self._learned_storage(), table, named, self._work)
        self._note(found.notes)
        return found

    def sync(
        self,
        table: Any,  # noqa: ANN401 - any table or path
        inputs: Inputs = NO_INPUTS,
        *,
        forget_missing: bool = False,
        yes: bool = False,
        expect_rows: int | None = None,
        dry_run: bool = False,
        user: Column = None,
        item: Column = None,
        rating: Column = None,
        time: Column = None,
        risk: Column = None,
        weight: Column = None,
        event: Column = None,
        catalogue: str | Path | None = None,
        items: Any = None,  # noqa: ANN401 - any table or path
        on_bad_row: OnBadRow | None = None,
        outside: Outside = NOTHING_OUTSIDE,
    ) -> Synced:
        """Make the recommender equal to an export of all interactions, less who was erased, in one version.

        Parameters
        ----------
        table : table or path
            All interactions as of now, as for `fit`. The columns that were read before are read again.
        inputs : Inputs, optional
            What has no keyword here.
        forget_missing : bool, default False
            Whether people and interactions that the export lacks are forgotten, with certificates; else they stay.
            Nobody is put on the do-not-learn list for that: whoever is in a later export is learned again.
        yes : bool, default False
            Needed to forget more than 1 % of the people, if that is more than 10.
        expect_rows : int, optional
            How many rows the export must have. Without it, one with less than half of the rows held is refused.
        dry_run : bool, default False
            Whether nothing is changed.
        user, item, rating, time, risk, weight, event : str or int, optional
            The columns, as for `fit`.
        catalogue : path, optional
            The new catalogue, where one was declared.
        items : table or path, optional
            New attributes of items; where features are learned from, these too.
        on_bad_row : {"refuse", "skip"}, optional
            Whether unusable rows are refused or left out.
        outside : Outside, optional
            A folder for receipts.

        Returns
        -------
        Synced
            What differed, and what it cost.

        Examples
        --------
        >>> import pyarrow as pa
        >>> recommender = Recommender(model="ease").fit(pa.table({"user": [1, 1, 2, 3], "item": ["a", "b", "a", "b"]}))
        >>> tonight = pa.table({"user": [1, 1, 3, 4], "item": ["a", "b", "b", "a"]})
        >>> done = recommender.sync(tonight, forget_missing=True)
        >>> done.users_added, done.users_missing, len(done.certificates)
        (1, 1, 1)
        """
        rules = SyncRules(forget_missing, yes, expect_rows, dry_run)
        columns = {"user": user, "item": item, "rating": rating, "time": time, "risk": risk}
        columns |= {"weight": weight, "event": event}
        named = named_inputs(inputs, columns, on_bad_row)
        named = replace(
            named,
            catalogue=inputs.catalogue if catalogue is None else Path(catalogue),
            items=inputs.items if items is None else read_declared(items),
        )
        done = sync(self._learned_storage(), table, named, rules, self._work, outside)
        if done.certificates:
            self._doubt_copies()
        self._note((*done.notes, *done.set_aside))
        return done

    def learn_again(
        self,
        table: Any = None,  # noqa: ANN401 - any table or path
        inputs: Inputs = NO_INPUTS,
        items: Any = None,  # noqa: ANN401 - any table or path
        **settings: Any,  # noqa: ANN401 - settings of many types
    ) -> LearnedAgain:
        """Learn anew in place, from what is held and from a table if one is given; groups are chosen again.

        Key, log, certificates and queue stay, and nobody who was forgotten comes back.

        Parameters
        ----------
        table : table or path, optional
            New interactions, as for `learn_more`.
        inputs : Inputs, optional
            Columns, a catalogue, groups.
        items : table or path, optional
            New attributes of items; the setting `features` names those to learn from.
        **settings
            The settings to change, or a `preset`; the others stay. Another model has its own settings, and its usual
            strategy unless another one was chosen that it has too.

        Returns
        -------
        LearnedAgain
            Sizes after learning, what of them is new, and how much was trained.

        Examples
        --------
        >>> import pyarrow as pa
        >>> recommender = Recommender(model="ease").fit(pa.table({"user": [1, 1, 2], "item": ["a", "b", "a"]}))
        >>> recommender.learn_again(model="als", epochs=2).model
        'als'
        """
        inputs = inputs if items is None else replace(inputs, items=read_declared(items))
        done = learn_again(self._learned_storage(), table, settings or None, inputs, self._work)
        self._note(done.notes)
        with self._learned_storage().reading() as session:
            self._take_over(session.state().dataset.config)
        return done

    def forget(
        self,
        users: Id | Iterable[Id],
        items: Id | Iterable[Id] | None = None,
        ignore_unknown: bool = False,
        rerun: bool = False,
        yes: bool = False,
        outside: Outside = NOTHING_OUTSIDE,
        new_queue: bool = False,
    ) -> Forgotten:
        """Forget users, or some items of one user, exactly; from now on no thread serves them.

        Parameters
        ----------
        users : id or ids
            Whom to forget; an empty list finishes what was interrupted.
        items : id or ids, optional
            Which items of one user to forget; everything if not given.
        ignore_unknown : bool, default False
            Whether unknown users are left out and counted, instead of refused.
        rerun : bool, default False
            Whether everything is trained again; needed in another numeric environment than the one that learned.
        yes : bool, default False
            Needed for more than 1 % of the people, if that is more than 10.
        outside : Outside, optional
            A folder for receipts, a case number, another do-not-learn list.
        new_queue : bool, default False
            Whether a new queue is begun first, in place of one that is lost with its requests.

        Returns
        -------
        Forgotten
            The cost, the `certificates`, and the `receipts`, which are for the people alone.

        Examples
        --------
        >>> import pyarrow as pa
        >>> recommender = Recommender(model="ease").fit(pa.table({"user": [1, 1, 2], "item": ["a", "b", "a"]}))
        >>> done = recommender.forget(2)
        >>> len(done.certificates), len(done.receipts)
        (1, 1)
        """
        requests = requests_of(users, items)
        if new_queue:
            begin_new_queue(self._learned_storage())
        if self._copies and self._forgets_someone(requests, ignore_unknown):
            self._doubt_copies()
        with self._learned_serving().withdrawing(requests):
            done = forget(self._learned_storage(), requests, ignore_unknown, rerun, self._work, outside, yes)
        self._note(done.notes)
        return done

    def upgrade(self) -> Upgraded:
        """Train again here what was learned in another numeric environment, as one new version.

        Call it after numpy, scipy, numba or the machine has changed: from then on `forget` and `verify` work here.
        Checkpoints that get the same bytes here are adopted. Files of an earlier format are rewritten in the newest.

        Returns
        -------
        Upgraded
            How many checkpoints were adopted, trained again and kept; `changed` is false if there was nothing to do.

        Examples
        --------
        >>> import pyarrow as pa
        >>> recommender = Recommender(model="ease").fit(pa.table({"user": [1, 1, 2], "item": ["a", "b", "a"]}))
        >>> recommender.upgrade().changed
        False
        """
        return upgrade(self._learned_storage(), self._work)

    def save(self, folder: str | Path) -> None:
        """Write a copy into a new workspace, with a do-not-learn list beside it; this one stays where it is.

        What is forgotten or learned here later does not change the copy: to work in the folder, `load` it. The copy has
        the log, the certificates and the signing key of the original: whoever has it can issue certificates with the
        same key.

        Parameters
        ----------
        folder : path
            A folder that does not exist yet, or is empty.

        Examples
        --------
        >>> import pyarrow as pa, tempfile
        >>> recommender = Recommender(model="ease").fit(pa.table({"user": [1, 1, 2], "item": ["a", "b", "a"]}))
        >>> with tempfile.TemporaryDirectory() as place:
        ...     recommender.save(f"{place}/shop")
        ...     Recommender.load(f"{place}/shop").status()["users"]
        2
        """
        save_copy(self._learned_storage(), Path(folder))
        self._copies.append(Path(folder).absolute())

    @classmethod
    def load(
        cls,
        folder: str | Path,
        threads: int | None = None,
        model: str | Model | type[Model] | None = None,
        progress: bool = True,
        n_jobs: int | None = None,
        executor: Literal["local", "ray"] = "local",
        address: str | None = None,
        wait: bool = False,
    ) -> Self:
        """Open the recommender in a workspace; forgetting changes that workspace.

        Parameters
        ----------
        folder : path
            A workspace made by `save` or `erasable learn`.
        threads, progress, n_jobs
            As for the class itself.
        model : str, Model or its class, optional
            A model that no installed package registers; its settings are those of the workspace. A name is
            checked: the workspace must have that model.
        executor : {"local", "ray"}, default "local"
            Where stages are trained and replayed: in this process, or on Ray, which needs the extra `ray`. It does not
            change a byte.
        address : str, optional
            The address of a Ray cluster whose nodes all see the folder; if not given, Ray is started on this machine
            for each piece of work.
        wait : bool, default False
            Whether what changes the workspace waits for another process that is changing it; else it is refused then.

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
        kind = None if model is None else _kind_of(model)
        with Workspace.reading(folder, model=kind) as workspace:
            config = workspace.state().dataset.config
        if kind is not None and kind.name != config.model:
            raise WrongUse(f"{folder} has the model {config.model!r}, not {kind.name!r}: pass that one")
        recommender = cls(type(make_model(config)), threads=threads, progress=progress, n_jobs=n_jobs)
        recommender._take_over(config)
        if executor not in ("local", "ray"):
            raise WrongUse(f"executor={executor!r} makes no sense: give 'local' or 'ray'")
        if executor == "ray":
            recommender._work = replace(recommender._work, cluster=RayCluster.at(address, _threads(threads, n_jobs)))
        elif address is not None:
            raise WrongUse("`address` is that of a Ray cluster: give executor='ray' too")
        waiting = recommender._work.reporter if wait else None
        recommender._settle_in(DiskStorage(Path(folder), model=kind, waiting=waiting))
        return recommender

    def _take_over(self, config: Config) -> None:
        """Make the settings of what was learned those of the next `fit`, and of `get_params`."""
        kind = type(config.learner)
        usual = Config(model=kind, strategy=config.strategy).flat() | {"strategy": kind.strategies[0]}
        changed = {name: value for name, value in config.flat().items() if value != usual.get(name)}
        model = config.model if BUILT_IN.get(config.model) is kind else kind
        kept = {name: self._given[name] for name in ("threads", "progress")}
        self._config, self._given = config, {**kept, "preset": None, "model": model, **changed}

    def _forgets_someone(self, requests: Sequence[Request], ignore_unknown: bool) -> bool:
        """Whether requests are not refused, or all left out, for what they name."""
        with self._learned_storage().reading() as session:
            dataset = session.state().dataset
            held = [
                dataset.buckets.find(one.user) is not None and dataset.items_of(one.user).issuperset(one.items or ())
                for one in requests
            ]
        return any(held) if ignore_unknown else bool(held) and all(held)

    def _doubt_copies(self) -> None:
        for copy in self._copies:
            if (copy / MANIFEST).exists():
                self._work.reporter.doubt(
                    f"the copy in {copy} keeps whom you forget here: load it and forget there too"
                )

    def _note(self, notes: Sequence[str]) -> None:
        for note in notes:
            self._work.reporter.note(note)

    def _settle_in(self, storage: Storage) -> None:
        self._storage, self._serving, self._copies = storage, Serving(storage, self._work), []


def _threads(threads: int | None, n_jobs: int | None) -> int | None:
    """Return the number of threads from either argument; None for all cores."""
    if threads is not None and n_jobs is not None:
        raise given_twice("threads", "as `threads` and as `n_jobs`")
    if n_jobs is not None and n_jobs < 0:
        return max(1, available_cores() + 1 + n_jobs)
    return threads if n_jobs is None else n_jobs


def _kind_of(model: str | Model | type[Model]) -> type[Model]:
    """Return the class of a model, given by name, class or object; anything else is refused."""
    if isinstance(model, str):
        return find_model(model)
    return checked_model(model if isinstance(model, type) else type(model))
