"""Methods of a recommender that change nothing: recommend, score, explain, plan, verify, inspect."""

import warnings
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, SupportsIndex, get_args

import pyarrow as pa

from erasable.chain.plan import Plan
from erasable.data.item_lists import ItemList, read_item_list
from erasable.errors import WrongUse
from erasable.evaluation.protocols import Protocol
from erasable.evaluation.utility import Utility
from erasable.operations.inspect import GroupFacts, Holding, evaluate, groups, show, status
from erasable.operations.offers import Explanation
from erasable.operations.people import Id, NumberedIds, text_of, texts_of
from erasable.operations.planning import plan
from erasable.operations.prepare import Column, named_columns
from erasable.operations.recommend import Unknown
from erasable.operations.selection import Selection
from erasable.operations.verify import NO_CLAIM, Claim, Verification, verify
from erasable.recommender._examining import Examining
from erasable.recommender._serving import (
    Serving,
    recommendation_table,
    score_table,
    shown_explanation,
    shown_holding,
    similar_table,
)
from erasable.requests.request import Request

Items = SupportsIndex | Iterable[Id] | Mapping[Id, Id | Iterable[Id]]
"""Items for everyone, or those of each user; a text alone is refused, since it may be a file."""


class Answering(Examining):
    """The reading half of `Recommender`, in memory or in a workspace."""

    _serving: Serving | None = None

    def recommend(
        self,
        users: Id | Iterable[Id] | None = None,
        k: int = 10,
        popular_fallback: bool | None = None,
        *,
        unknown: Unknown = "raise",
        history: Iterable[Id] | Mapping[Id, float | None] | None = None,
        items: Items | None = None,
        available: Items | Path | None = None,
        exclude: Items | Path | None = None,
        seen: bool = False,
        where: str | None = None,
        why: bool = False,
    ) -> pa.Table:
        """Return the k best items for each user, or for someone with a history and no id.

        Items that the user has are left out, unless `seen` says otherwise. If the model has too few scores, popular
        items follow: there `popular` is true, and the score is how many people have the item.

        Parameters
        ----------
        users : id or ids, optional
            One user, or several, as in the table that was learned; everyone if not given.
        k : int, default 10
            How many items for each.
        popular_fallback : bool, optional
            Deprecated: use `unknown="popular"`.
        unknown : {"raise", "skip", "popular"}, default "raise"
            What to do about users who are unknown or have asked to be erased: raise an error that names one, leave
            them out, or return the items that most people have.
        history : ids, or ratings by id, optional
            The items of someone without an id, in place of users. An item without a rating counts as rated highest;
            one that nobody has is left out. Nothing is stored, and the user_id in the table is empty.
        items : ids, or ids by user, optional
            Recommend only these; an unknown item is refused. With a mapping such as `{42: ["a", "b"]}`, users who are
            not in it have no limit.
        available : ids, ids by user, or pathlib.Path, optional
            Recommend only what is in this stock list; unknown items are passed over, with a warning if all are
            unknown. A file has one item id a line, or is CSV whose header names a column of items, such as item_id or
            sku, and perhaps one of users; other columns are ignored.
        exclude : ids, ids by user, or pathlib.Path, optional
            Recommend none of these.
        seen : bool, default False
            Whether items that the user has may be recommended too, held-out ones included.
        where : str, optional
            Recommend only items whose attributes (`set_items`) fit, such as `"category == 'books' and price < 20"`:
            columns, comparisons, `and`, `or`, `not` and `in`.
        why : bool, default False
            Whether to add a column `because` with the user's own items that add most to each score, and how much each
            adds; for ease and item-knn.

        Returns
        -------
        pyarrow.Table
            user_id, item_id, score, rank and popular; ids have the type of the table that was learned. `.to_pandas()`
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
        >>> recommender.recommend(3, exclude=["a"])["item_id"].to_pylist()
        ['c']
        """
        if popular_fallback is not None:
            replacement = "popular" if popular_fallback else "raise"
            warnings.warn(f"popular_fallback is now unknown={replacement!r}", DeprecationWarning, stacklevel=2)
            unknown = "popular" if popular_fallback else unknown
        if unknown not in get_args(Unknown):
            raise WrongUse(f"unknown={unknown!r} makes no sense: give one of {', '.join(get_args(Unknown))}")
        serving = self._learned_serving()
        only, stocked, without = _lists("items", items), _lists("available", available), _lists("exclude", exclude)
        selection = Selection(only, stocked, without, seen, where)
        if history is None:
            found = serving.recommend(None if users is None else texts_of(users), k, unknown, why, selection)
        elif users is None:
            found = [serving.recommend_for_history(_history(history), k, why, selection)]
        else:
            raise WrongUse("give users or a history, not both")
        return recommendation_table(found, serving.numbered, why)

    def score(
        self,
        users: Id | Iterable[Id] | None,
        items: Id | Iterable[Id],
        *,
        history: Iterable[Id] | Mapping[Id, float | None] | None = None,
    ) -> pa.Table:
        """Return the model's scores of some items, whether or not the user has them.

        Parameters
        ----------
        users : id, ids or None
            One user, or several; None if a history is given.
        items : id or ids
            What to score.
        history : ids, or ratings by id, optional
            The items of someone without an id, as for `recommend`.

        Returns
        -------
        pyarrow.Table
            user_id, item_id and score, in the order given. A score is null if the model has none: nobody has the item,
            it is hidden, or the model has learned nothing from the user's items.

        Examples
        --------
        >>> import pyarrow as pa
        >>> from erasable import Recommender
        >>> table = pa.table({"user": [1, 1, 2, 2, 3], "item": ["a", "b", "a", "b", "a"]})
        >>> recommender = Recommender(model="ease", regularisation=1).fit(table)
        >>> [score and round(score, 2) for score in recommender.score(3, ["b", "z"])["score"].to_pylist()]
        [0.5, None]
        """
        serving, wanted = self._learned_serving(), texts_of(items)
        if (users is None) == (history is None):
            raise WrongUse("say for whom: give users, or None and a history")
        if history is not None:
            return score_table([serving.score_for_history(_history(history), wanted)], serving.numbered)
        return score_table(serving.score(texts_of(users), wanted), serving.numbered)

    def similar_items(
        self,
        items: Id | Iterable[Id],
        k: int = 10,
        *,
        available: Items | Path | None = None,
        exclude: Items | Path | None = None,
        where: str | None = None,
    ) -> pa.Table:
        """Return the k items most similar to an item.

        For als, nmf and dmf this is the cosine of what was learned of the items, for ease the weight of one item in the
        score of the other: the mean of both directions, unless all items are neighbours. A model of your own without
        `similar` answers with its scores for someone who has this one item and no other. There is no `similar_users`:
        it would show one person to another.

        Parameters
        ----------
        items : id or ids
            One item, or several.
        k : int, default 10
            How many for each; fewer if the model finds no more similar items.
        available, exclude, where : optional
            Which items may be among them, as for `recommend`; a list names no users here.

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
        selection = Selection((), _lists("available", available), _lists("exclude", exclude), where=where)
        serving = self._learned_serving()
        return similar_table(wanted, serving.similar(wanted, k, selection), serving.numbered)

    def explain(self, user: Id, item: Id, k: int = 5) -> Explanation:
        """Return the items of a user that add most to the score of an item; for ease and item-knn.

        Users who have asked to be erased are refused, as by `recommend`; for users who named some items, only the
        others count.

        Parameters
        ----------
        user : id
            The person.
        item : id
            Any item of the catalogue. If the person has it, their other items explain it.
        k : int, default 5
            How many of the person's items to name; fewer if no more have a positive weight.

        Returns
        -------
        Explanation
            `because` has an `item_id` and a `weight` for each of them, the largest weight first; `others` is the sum
            over the person's other items, and `score` the total. `owned` says whether the person has the item.

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
        """Return what `forget` would touch and cost; nothing is changed.

        Parameters
        ----------
        users : id or ids
            Whom to forget.
        items : id or ids, optional
            Which items of one user to forget; everything if not given.

        Returns
        -------
        Plan
            The stages that would run again, their cost, and about how long it takes.

        Examples
        --------
        >>> import pyarrow as pa
        >>> from erasable import Recommender
        >>> recommender = Recommender(model="ease").fit(pa.table({"user": [1, 1, 2], "item": ["a", "b", "a"]}))
        >>> recommender.plan(2).stages_rerun
        1
        """
        return plan(self._learned_storage(), requests_of(users, items), self._work)

    def verify(self, claim: Claim = NO_CLAIM) -> Verification:
        """Check every file, record and signature, train again on the data that is left, and compare every byte.

        Parameters
        ----------
        claim : Claim, optional
            A certificate and a receipt to check too.

        Returns
        -------
        Verification
            `identical` is true, false, or None if it can't be told on this machine; `reason` says why.

        Examples
        --------
        >>> import pyarrow as pa
        >>> from erasable import Recommender
        >>> recommender = Recommender(model="ease").fit(pa.table({"user": [1, 1, 2], "item": ["a", "b", "a"]}))
        >>> recommender.verify().identical
        True
        """
        return verify(self._learned_storage(), claim, self._work)

    def evaluate(
        self,
        table: Any = None,  # noqa: ANN401 - any table or path
        protocol: Protocol = "whole-catalogue",
        *,
        everyone: bool = False,
        metrics: Sequence[str] | None = None,
        by: str | None = None,
        user: Column = None,
        item: Column = None,
        rating: Column = None,
        time: Column = None,
    ) -> Utility:
        """Measure the quality of recommendations.

        Parameters
        ----------
        table : table or path, optional
            The test set, as for `fit`, of rows that were not learned from; the holdout if not given, which needs
            `holdout=0.1`, `split="leave-last-out"` or the like in the recommender.
        protocol : {"whole-catalogue", "one-of-100", "held-out-only"}, default "whole-catalogue"
            Which items are ranked, and what counts as a hit (docs/reference/protocols.md).
        everyone : bool, default False
            Whether all people of the holdout are measured; else at most 10,000, those with the smallest hash.
        metrics : sequence of str, optional
            Metrics with cutoffs, such as `["ndcg@10", "map@5"]`; all of them at 10 and 20 if not given.
        by : str, optional
            Measure slices too: by "activity" of the people, by "popularity" of the test items, or by a declared
            attribute of them (`set_items`). Slices of fewer than 10 people are not shown.
        user, item, rating, time : str or int, optional
            The columns, as for `fit`; by default those that were learned from.

        Returns
        -------
        Utility
            Means over `users`, with their 95 per cent intervals, and the slices.

        Examples
        --------
        >>> import pyarrow as pa
        >>> from erasable import Recommender
        >>> table = pa.table({"who": [1, 1, 2, 2, 3], "what": ["a", "b", "a", "c", "b"]})
        >>> recommender = Recommender(model="ease", regularisation=1).fit(table, user="who", item="what")
        >>> found = recommender.evaluate(pa.table({"who": [3], "what": ["a"]}))
        >>> found.values["hr@10"], found.intervals["hr@10"]
        (1.0, (1.0, 1.0))
        """
        given = {"user": user, "item": item, "rating": rating, "time": time}
        storage, columns = self._learned_storage(), named_columns(given)
        found = evaluate(storage, table, columns, self._work, protocol, everyone, metrics, by)
        for doubt in found.doubts:
            self._work.reporter.doubt(doubt)
        for note in found.notes:
            self._work.reporter.note(note)
        return found

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
        storage = self._learned_storage()
        held = show(storage, text_of(user))
        with storage.reading() as session:
            return shown_holding(held, NumberedIds.of(session.documents().preferences))

    def groups(self) -> list[GroupFacts]:
        """Return the groups in the order of training: users, interactions and cohesion of each.

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
        return groups(self._learned_storage(), self._work)

    def status(self) -> dict[str, Any]:
        """Return sizes, settings, erasures and version.

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
        return status(self._learned_storage())

    def _learned_serving(self) -> Serving:
        if self._serving is None:
            raise WrongUse("nothing was learned yet: call fit first")
        return self._serving


def _history(history: Iterable[Id] | Mapping[Id, float | None]) -> dict[str, float | None]:
    if isinstance(history, Mapping):
        return {text_of(item): rating for item, rating in history.items()}
    return dict.fromkeys(texts_of(history))


def _lists(name: str, given: Items | Path | None) -> tuple[ItemList, ...]:
    """Return items for everyone, or by user, as text; nothing if none are given."""
    if given is None:
        return ()
    if isinstance(given, str):
        raise WrongUse(
            f"{name}={given!r} may be an id or a file: give ids as a list, [{given!r}], or a file as Path({given!r})"
        )
    if isinstance(given, Path):
        return (read_item_list(given),)
    if isinstance(given, Mapping):
        return ({text_of(user): frozenset(texts_of(items)) for user, items in given.items()},)
    return (frozenset(texts_of(given)),)


def requests_of(users: Id | Iterable[Id], items: Id | Iterable[Id] | None) -> list[Request]:
    """Return the requests to forget everything of some users, or some items of one."""
    named = texts_of(users)
    if items is not None and len(named) != 1:
        raise WrongUse("items need exactly one user")
    return [Request(user, None if items is None else tuple(texts_of(items))) for user in named]
