"""Test suites for every model, built in or your own, as pytest classes to inherit.

They need pytest (`pip install 'erasable[testing]'`) and are imported by tests only.
"""

from erasable.extensions import install_command

try:
    import pytest
except ImportError as error:
    raise ImportError(f"erasable.testing needs pytest: {install_command('testing')}") from error

# Before they are imported, so that an assertion that fails shows its values.
pytest.register_assert_rewrite(
    *(f"erasable.testing.{name}" for name in ("_suite", "_behaviour", "_exactness", "_features"))
)

from erasable.testing._behaviour import Behaviour  # noqa: E402
from erasable.testing._exactness import AnyPath, Exactness  # noqa: E402

__all__ = ["AnyPath", "Behaviour", "Exactness", "ModelSuite"]


class ModelSuite(Behaviour, Exactness, AnyPath):
    """All tests of a model: inherit it, and set `model` with small settings.

    Attributes
    ----------
    model : Model
        The model, with settings that are fast and yet learn: its own epochs are used where it must have learned
        something.
    rounded_anew : frozenset of str
        Shared arrays in which new items may change the last bits of known values; none for most models.
    left_in_between : float
        The share of someone's influence that `provisional` may leave in the scores of others; 0.1 by default.
    other_values : dict
        Another value for a setting, where the suite finds none by itself.

    Examples
    --------
    >>> from erasable import ALS
    >>> class TestMine(ModelSuite):
    ...     model = ALS(factors=4, epochs=3)
    """
