"""The suites that a model inherits: what is asked of every model, ours and others', as plain pytest classes.

They need pytest (`pip install 'erasable[testing]'`) and are imported by tests only.
"""

try:
    import pytest
except ImportError as error:
    raise ImportError("erasable.testing needs pytest: pip install 'erasable[testing]'") from error

# Before they are imported, so that an assertion that fails shows its values.
pytest.register_assert_rewrite(
    *(f"erasable.testing.{name}" for name in ("suite", "abilities", "behaviour", "exactness", "any_path", "chains"))
)

from erasable.testing.any_path import AnyPath  # noqa: E402
from erasable.testing.behaviour import Behaviour  # noqa: E402
from erasable.testing.exactness import Exactness  # noqa: E402

__all__ = ["AnyPath", "Behaviour", "Exactness", "ModelSuite"]


class ModelSuite(Behaviour, Exactness, AnyPath):
    """All that is asked of a model: a test class inherits it and names a model in small settings.

    Attributes
    ----------
    model : Model
        The model, with settings in which it is quick and yet learns: its own epochs are used where it has to have
        learned something.
    rounded_anew : frozenset of str
        Shared arrays of which further items may change the last bits of what is known; none for most models.
    left_in_between : float
        The share of what someone taught that `provisional` may leave in the scores of others: 0.1 if nothing is said.
    other_values : dict
        Another value for a setting of which the suite finds none by itself.

    Examples
    --------
    >>> from erasable import ALS
    >>> class TestMine(ModelSuite):
    ...     model = ALS(factors=4, epochs=3)
    """
