"""Methods of a recommender that declare something about items."""

from collections.abc import Iterable
from typing import Any, Self

from erasable.operations.declared_items import declare_items, read_declared
from erasable.operations.people import Id, texts_of
from erasable.recommender._answering import Answering


class Declaring(Answering):
    """The part of `Recommender` about items: attributes, and what is hidden."""

    def set_items(self, table: Any, *, item: str | None = None) -> Self:  # noqa: ANN401 - any table or path
        """Declare attributes of items, for `recommend(where=…)`; they replace those declared before.

        They are declared, and not personal: they stay when someone is forgotten, and no model learns from them. Give
        no ids of people, such as a seller's: a scan finds them there, but not numbers of fewer than 8 digits, which
        can't be told from a price, nor ids that items have too.

        Parameters
        ----------
        table : table or path
            One row an item: a pandas, polars or Arrow table, or a CSV or Parquet file.
        item : str, optional
            The column with the item's id; recognised if not given.

        Returns
        -------
        Recommender
            Itself.

        Examples
        --------
        >>> import pyarrow as pa
        >>> from erasable import Recommender
        >>> table = pa.table({"user": [1, 1, 2, 2, 3], "item": ["a", "b", "a", "c", "b"]})
        >>> recommender = Recommender(model="ease", regularisation=1).fit(table)
        >>> recommender.set_items(pa.table({"item": ["a", "b", "c"], "price": [30, 5, 8]}))  # doctest: +ELLIPSIS
        Recommender(...)
        >>> recommender.recommend(3, where="price < 20")["item_id"].to_pylist()
        ['c']
        """
        declare_items(self._learned_storage(), table=read_declared(table, item))
        return self

    def hide_items(self, items: Id | Iterable[Id]) -> Self:
        """Recommend some items to nobody from now on, such as those withdrawn from sale; nothing is trained.

        Parameters
        ----------
        items : id or ids
            What to hide.

        Returns
        -------
        Recommender
            Itself.

        Examples
        --------
        >>> import pyarrow as pa
        >>> from erasable import Recommender
        >>> table = pa.table({"user": [1, 1, 2, 2, 3], "item": ["a", "b", "a", "c", "b"]})
        >>> recommender = Recommender(model="ease", regularisation=1).fit(table)
        >>> recommender.hide_items("a").recommend(3)["item_id"].to_pylist()
        ['c']
        """
        declare_items(self._learned_storage(), hide=texts_of(items))
        return self

    def unhide_items(self, items: Id | Iterable[Id]) -> Self:
        """Recommend hidden items again.

        Parameters
        ----------
        items : id or ids
            What is no longer hidden.

        Returns
        -------
        Recommender
            Itself.

        Examples
        --------
        >>> import pyarrow as pa
        >>> from erasable import Recommender
        >>> table = pa.table({"user": [1, 1, 2, 2, 3], "item": ["a", "b", "a", "c", "b"]})
        >>> recommender = Recommender(model="ease", regularisation=1).fit(table)
        >>> recommender.hide_items("a").unhide_items("a").recommend(3)["item_id"].to_pylist()
        ['a', 'c']
        """
        declare_items(self._learned_storage(), show=texts_of(items))
        return self
