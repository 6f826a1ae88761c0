"""What scikit-learn and notebooks want of a recommender: its parameters, and how it shows itself."""

import inspect
from typing import Any, Self

from erasable.errors import ErasableError
from erasable.models.settings import in_our_words
from erasable.operations.answering import Answering
from erasable.operations.notebook import facts_as_html

_SHOWN = ("model", "strategy", "users", "items", "interactions", "groups", "erasures", "version")


class Estimator(Answering):
    """A recommender as scikit-learn's `clone` and a notebook see it; the class that it is has all that it was given."""

    _given: dict[str, Any]

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
        >>> from erasable import Recommender
        >>> Recommender(model="als", factors=8).get_params()
        {'threads': None, 'preset': None, 'progress': True, 'model': 'als', 'factors': 8}
        """
        return dict(self._given)

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
        >>> from erasable import Recommender
        >>> Recommender(model="als").set_params(factors=8)
        Recommender(model='als', factors=8)
        """
        given = {name: value for name, value in self._given.items() if name != "threads" or "n_jobs" not in params}
        other = type(self)(**{**given, **in_our_words(params)})
        vars(self).update({name: vars(other)[name] for name in ("_given", "_config", "_work")})
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
