"""The part of a recommender for scikit-learn and notebooks, and copies of it in new workspaces."""

import inspect
from collections.abc import Mapping
from dataclasses import replace
from html import escape
from pathlib import Path
from typing import Any, Self

from erasable.errors import ErasableError, Refused
from erasable.models.settings import in_our_words
from erasable.operations.claims import is_left
from erasable.operations.declared_items import DeclaredItems
from erasable.operations.do_not_learn import copying
from erasable.operations.recording import version_facts
from erasable.operations.storage import Storage, asked_people
from erasable.proof.log import add_record
from erasable.recommender._declaring import Declaring
from erasable.workspace.workspace import Workspace

_SHOWN = ("model", "strategy", "users", "items", "interactions", "groups", "erasures", "version")


def facts_as_html(title: str, facts: Mapping[str, object]) -> str:
    """Return names and values as an HTML table with a title; all text is escaped.

    >>> facts_as_html("a < b", {"users": 1200, "lives_in": "<b>"})
    '<table><caption>a &lt; b</caption><tr><th>users</th><td>1,200</td></tr><tr><th>lives in</th><td>&lt;b&gt;</td></tr></table>'
    """  # noqa: E501
    rows = (
        f"<tr><th>{_shown(name.replace('_', ' '))}</th><td>{_shown(value)}</td></tr>" for name, value in facts.items()
    )
    return f"<table><caption>{escape(title)}</caption>{''.join(rows)}</table>"


def _shown(value: object) -> str:
    return escape(f"{value:,}" if isinstance(value, int) else str(value))


def _made(kind: type["Estimator"], given: Mapping[str, Any]) -> "Estimator":
    return kind(**given)


class Estimator(Declaring):
    """The part of `Recommender` for scikit-learn's `clone` and for notebooks."""

    _given: dict[str, Any]
    _storage: Storage | None

    def __reduce__(self) -> tuple[Any, ...]:
        """Give pickle the settings; refuse what was learned, since nobody could be erased from the pickle."""
        if self._storage is not None:
            raise TypeError("what was learned is not pickled: write it with save(DIR), and read it with load(DIR)")
        return _made, (type(self), self._given)

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the arguments that the recommender was made with, as scikit-learn's `clone` needs them.

        Parameters
        ----------
        deep : bool, default True
            Makes no difference.

        Returns
        -------
        dict
            Arguments for a new recommender with the same settings.

        Examples
        --------
        >>> from erasable import Recommender
        >>> Recommender(model="als", factors=8).get_params()
        {'threads': None, 'preset': None, 'progress': True, 'model': 'als', 'factors': 8}
        """
        return dict(self._given)

    def set_params(self, **params: Any) -> Self:  # noqa: ANN401 - settings of many types
        """Change settings for the next `fit`; what was learned does not change.

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
        >>> from erasable import Recommender
        >>> Recommender(model="als").set_params(factors=8)
        Recommender(model='als', factors=8)
        """
        given = {name: value for name, value in self._given.items() if name != "threads" or "n_jobs" not in params}
        other = type(self)(**{**given, **in_our_words(params)})
        vars(self).update({name: vars(other)[name] for name in ("_given", "_config", "_work")})
        return self

    def __sklearn_is_fitted__(self) -> bool:
        return self._storage is not None

    def __repr__(self) -> str:
        if self._storage is not None and self._storage.path is not None:
            return f"{type(self).__name__}.load({str(self._storage.path)!r})"
        usual = inspect.signature(type(self)).parameters
        told = {name: value for name, value in self._given.items() if name not in usual or value != usual[name].default}
        return f"{type(self).__name__}({', '.join(f'{name}={value!r}' for name, value in told.items())})"

    def _repr_html_(self) -> str:
        try:
            found = self.status() if self._storage is not None else {}
        except ErasableError as error:
            found = {"model": str(error)}
        return facts_as_html(repr(self), {name: found[name] for name in _SHOWN if name in found})


def save_copy(storage: Storage, folder: Path) -> None:
    """Write the current version into a new workspace, with a do-not-learn list beside it.

    The copy continues like a copied folder: log, version, salt and signing key are the same, so that its certificates
    still verify. From the next change on each has its own version and salt
    (docs/decisions/0032-what-a-copy-shares.md).
    """
    with (
        storage.reading() as session,
        Workspace.creating(folder, session.documents().preferences.readable_by_group) as workspace,
        copying(session, workspace.path) as preferences,
    ):
        if session.documents().pending or any(map(is_left, storage.asked())):
            raise Refused("an erasure is not finished: finish it with forget([]) before saving a copy")
        if asked_people(storage, session).people:  # a copy would have no queue, and serve them
            raise Refused("someone has an open request with the service: save a copy once that is carried out")
        state = session.state()
        if state.recorded:
            raise Refused("this workspace is of an earlier release: copy its folder instead")
        for link in state.chain:
            workspace.checkpoints.put(session.checkpoints.get(link.fingerprint))
        documents = session.documents()
        record = add_record(documents.records(), "save", version_facts(state, session.stamp))
        own = preferences.model_copy(update={"queue": None, "queue_id": None})  # the queue is the original's
        declared = DeclaredItems(session.declared_items()).encoded()
        documents = replace(
            documents, log=record, certificates=session.issued(), preferences=own, declared_items=declared
        )
        workspace.commit(state, documents, session.stamp)
