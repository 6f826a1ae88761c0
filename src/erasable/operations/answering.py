"""What can be asked of a recommender that has learned; nothing of it changes anything."""

import warnings
from collections.abc import Iterable, Mapping
from typing import Any, get_args

import pyarrow as pa

from erasable.errors import WrongUse
from erasable.evaluation import Protocol, Utility
from erasable.operations.answers import recommendation_table, shown_explanation, shown_holding, similar_table
from erasable.operations.given_ids import Id, NumberedIds, text_of, texts_of
from erasable.operations.home import Home
from erasable.operations.inspect import GroupFacts, Holding, evaluate, groups, show, status
from erasable.operations.offers import Explanation
from erasable.operations.planning import plan
from erasable.operations.prepare import Column, named_columns
from erasable.operations.recommend import Unknown
from erasable.operations.serving import Serving
from erasable.operations.verify import NO_CLAIM, Claim, Verification, verify
from erasable.operations.work import Work
from erasable.requests import Request
from erasable.unlearning import Plan


class Answering:
    """A recommender that has learned, wherever it lives, as whoever asks sees it."""

    _work: Work
    _home: Home | None = None
    _serving: Serving | None = None

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
        >>> from erasable import Recommender
        >>> table = pa.table({"user": [1, 1, 2, 2, 3], "item": ["a", "b", "a", "c", "b"]})
        >>> recommender = Recommender(model="ease", regularisation=1).fit(table)
        >>> found = recommender.recommend([3, 99], k=1, unknown="skip")
        >>> found.select(["user_id", "item_id", "rank"]).to_pylist()
        [{'user_id': 3, 'item_id': 'a', 'rank': 1}]
        """
        if popular_fallback is not None:
            replacement = "popular" if popular_fallback else "raise"
            warnings.warn(f"popular_fallback is now unknown={replacement!r}", DeprecationWarning, stacklevel=2)
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

    def similar_items(self, items: Id | Iterable[Id], k: int = 10) -> pa.Table:
        """Return the k items that are most like an item, for the models that can tell: als and ease.

        For als it is the cosine of the items' factors, for ease the weight with which one item speaks for another: of
        both directions the mean, unless all items are neighbours.

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
        >>> from erasable import Recommender
        >>> table = pa.table({"user": [1, 1, 2, 2, 3, 3], "item": ["a", "b", "a", "b", "c", "d"]})
        >>> recommender = Recommender(model="ease", regularisation=1).fit(table)
        >>> recommender.similar_items("a", k=1)["similar_id"].to_pylist()
        ['b']
        """
        wanted = texts_of(items)
        serving = self._learned_serving()
        return similar_table(wanted, serving.similar(wanted, k), serving.numbered)

    def explain(self, user: Id, item: Id, k: int = 5) -> Explanation:
        """Say which items of a user speak most for an item, for the models that can tell: ease.

        Whoever has asked to be erased is refused, as by `recommend`; who has asked for some items is explained from
        the others alone.

        Parameters
        ----------
        user : id
            The person.
        item : id
            Any item of the catalogue. Where the person has it, what their other items say of it is told.
        k : int, default 5
            How many of the person's items to name; fewer where no more speak for it.

        Returns
        -------
        Explanation
            `because` has an `item_id` and a `weight` for each of them, the largest weight first; `others` is what the
            other items of the person add together, and `score` the sum. `owned` says whether the person has the item.

        Examples
        --------
        >>> import pyarrow as pa
        >>> from erasable import Recommender
        >>> table = pa.table({"user": [1, 1, 2, 2, 3, 3], "item": ["a", "b", "a", "b", "a", "c"]})
        >>> recommender = Recommender(model="ease", regularisation=1).fit(table)
        >>> found = recommender.explain(3, "b")
        >>> [(own.item_id, round(own.weight, 2)) for own in found.because], round(found.score, 2)
        ([('a', 0.5)], 0.5)
        """
        serving = self._learned_serving()
        return shown_explanation(serving.explain(text_of(user), text_of(item), k), serving.numbered)

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
        >>> from erasable import Recommender
        >>> recommender = Recommender(model="ease").fit(pa.table({"user": [1, 1, 2], "item": ["a", "b", "a"]}))
        >>> recommender.plan(2).stages_rerun
        1
        """
        return plan(self._learned_home(), requests_of(users, items), self._work)

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
        >>> from erasable import Recommender
        >>> recommender = Recommender(model="ease").fit(pa.table({"user": [1, 1, 2], "item": ["a", "b", "a"]}))
        >>> recommender.verify().identical
        True
        """
        return verify(self._learned_home(), claim, self._work)

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
        >>> from erasable import Recommender
        >>> table = pa.table({"who": [1, 1, 2, 2, 3], "what": ["a", "b", "a", "c", "b"]})
        >>> recommender = Recommender(model="ease", regularisation=1).fit(table, user="who", item="what")
        >>> recommender.evaluate(pa.table({"who": [3], "what": ["a"]})).values["hr@10"]
        1.0
        """
        given = {"user": user, "item": item, "rating": rating, "time": time}
        return evaluate(self._learned_home(), table, named_columns(given), self._work, protocol)

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
        >>> from erasable import Recommender
        >>> recommender = Recommender(model="ease").fit(pa.table({"user": [1, 1, 2], "item": ["a", "b", "a"]}))
        >>> [one.item_id for one in recommender.show(1).interactions]
        ['a', 'b']
        """
        home = self._learned_home()
        held = show(home, text_of(user))
        with home.reading() as session:
            return shown_holding(held, NumberedIds.of(session))

    def groups(self) -> list[GroupFacts]:
        """Return the groups in the order in which they are trained: users, interactions and cohesion of each.

        Returns
        -------
        list of GroupFacts
            One for each group.

        Examples
        --------
        >>> import pyarrow as pa
        >>> from erasable import Recommender
        >>> table = pa.table({"user": [1, 1, 2, 2, 3], "item": ["a", "b", "a", "c", "b"]})
        >>> sum(group.users for group in Recommender("nmf", groups=2, epochs=1).fit(table).groups())
        3
        """
        return groups(self._learned_home(), self._work)

    def status(self) -> dict[str, Any]:
        """Return what is current: sizes, settings, erasures and version.

        Returns
        -------
        dict
            What `erasable status --json` prints.

        Examples
        --------
        >>> import pyarrow as pa
        >>> from erasable import Recommender
        >>> recommender = Recommender(model="ease").fit(pa.table({"user": [1, 1, 2], "item": ["a", "b", "a"]}))
        >>> recommender.status()["users"]
        2
        """
        return status(self._learned_home())

    def _learned_serving(self) -> Serving:
        if self._serving is None:
            raise WrongUse("nothing was learned yet: call fit first")
        return self._serving

    def _learned_home(self) -> Home:
        if self._home is None:
            raise WrongUse("nothing was learned yet: call fit first")
        return self._home


def _history(history: Iterable[Id] | Mapping[Id, float | None]) -> dict[str, float | None]:
    if isinstance(history, Mapping):
        return {text_of(item): rating for item, rating in history.items()}
    return dict.fromkeys(texts_of(history))


def requests_of(users: Id | Iterable[Id], items: Id | Iterable[Id] | None) -> list[Request]:
    """Return what is asked to be forgotten: everything of some users, or some items of one."""
    named = texts_of(users)
    if items is not None and len(named) != 1:
        raise WrongUse("items need exactly one user")
    return [Request(user, None if items is None else tuple(texts_of(items))) for user in named]
