"""Methods of a recommender that say who and what is held, search its files for a person, and attack its model."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from erasable.errors import WrongUse
from erasable.operations.attack import USUAL_SEEDS, Probe, attack, attack_erased
from erasable.operations.people import Id, shown_ids, text_of, texts_of
from erasable.operations.recommend import reading_served
from erasable.operations.scan import PersonScan, scan
from erasable.operations.storage import Storage
from erasable.operations.work import Work


class Examining:
    """The part of `Recommender` that looks at what is held."""

    _work: Work
    _storage: Storage | None = None

    @property
    def users(self) -> list[Id]:
        """The people who are known, by id; those who have asked to be erased are left out.

        Returns
        -------
        list of ids
            As they were given: whole numbers or text.

        Examples
        --------
        >>> import pyarrow as pa
        >>> from erasable import Recommender
        >>> Recommender(model="ease").fit(pa.table({"user": [2, 1, 1], "item": ["a", "b", "a"]})).users
        [1, 2]
        """
        with reading_served(self._learned_storage()) as served:
            everyone = (user for bucket in served.dataset.buckets for user in bucket.users)
            return _shown([user for user in everyone if user not in served.suppressed], served.numbered.users)

    @property
    def items(self) -> list[Id]:
        """The items of the catalogue, by id; those that only people have who have asked to be erased are left out.

        Returns
        -------
        list of ids
            As they were given: whole numbers or text.

        Examples
        --------
        >>> import pyarrow as pa
        >>> from erasable import Recommender
        >>> Recommender(model="ease").fit(pa.table({"user": [2, 1, 1], "item": ["a", "b", "a"]})).items
        ['a', 'b']
        """
        with reading_served(self._learned_storage()) as served:
            return _shown(served.items, served.numbered.items)

    def scan(self, user: Id, data: Any = None) -> PersonScan:  # noqa: ANN401 - any table or path
        """Search every file of the workspace for a person, who may be held there or not.

        Parameters
        ----------
        user : id
            The person.
        data : table or path, optional
            A table that still has the person's rows, so that their values are searched for too; it is read with the
            columns that were learned from.

        Returns
        -------
        PersonScan
            `clean` says whether nothing was found; `residues` says what was found, and where.

        Examples
        --------
        >>> import tempfile
        >>> import pyarrow as pa
        >>> from erasable import Recommender
        >>> table = pa.table({"user": ["ann", "ann", "bob"], "item": ["tea", "milk", "tea"]})
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     Recommender(model="ease").fit(table).save(f"{folder}/shop")
        ...     Recommender.load(f"{folder}/shop").scan("zoe").clean
        True
        """
        path = self._learned_storage().path
        if path is None:
            raise WrongUse("a recommender in memory has no files to search: save it, and load it from there")
        return scan(path, text_of(user), data, work=self._work)

    def attack(
        self,
        users: int | None = None,
        seeds: int = USUAL_SEEDS,
        *,
        data: str | Path | None = None,
        erased: Id | Iterable[Id] | None = None,
    ) -> Probe:
        """Attack the model to see whether it remembers; nothing is changed.

        Parameters
        ----------
        users : int, optional
            How many people to forget in memory and to attack.
        seeds : int, default 5
            How many models of each kind are trained.
        data : path, optional
            The rows of people who were erased; with `erased`, the current model is attacked with them instead.
        erased : id or ids, optional
            Who was erased.

        Returns
        -------
        Probe
            `verdict` says whether attacks do better than on models that never knew these people.

        Examples
        --------
        >>> import pyarrow as pa
        >>> from erasable import Recommender
        >>> table = pa.table({"user": [one // 3 for one in range(60)], "item": [one * one % 7 for one in range(60)]})
        >>> probe = Recommender(model="ease").fit(table).attack(users=5, seeds=3)
        >>> probe.people, probe.others
        (5, 5)
        """
        if data is None and erased is None:
            return attack(self._learned_storage(), users, seeds, self._work)
        if data is None or erased is None:
            raise WrongUse("data and erased need each other: give both, or neither")
        if users is not None:
            raise WrongUse("users is for people who are forgotten in memory: leave it out, or leave out erased")
        return attack_erased(self._learned_storage(), data, texts_of(erased), seeds, work=self._work)

    def _learned_storage(self) -> Storage:
        if self._storage is None:
            raise WrongUse("nothing was learned yet: call fit first")
        return self._storage


def _shown(held: list[str], numbers: bool) -> list[Id]:
    """Return ids as they were given, in their order."""
    shown: list[Id] = shown_ids(sorted(held, key=int if numbers else str.encode), numbers).to_pylist()
    return shown
