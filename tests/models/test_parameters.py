import numpy as np
import pytest

from erasable.models import Parameters


def test_the_arrays_can_t_be_changed():
    parameters = Parameters({"item": np.zeros((2, 3))}, {"user": np.zeros((1, 3))})
    with pytest.raises(ValueError, match="read-only"):
        parameters.shared["item"][0, 0] = 1
    with pytest.raises(ValueError, match="read-only"):
        parameters.rows["user"][0, 0] = 1


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_one_number_that_is_not_finite_is_noticed_in_shared_parameters_and_in_rows(bad):
    good, ill = np.ones((2, 2)), np.array([[1.0, bad]])
    assert Parameters({"a": good}, {"b": good}).all_finite()
    assert not Parameters({"a": good, "c": ill}, {"b": good}).all_finite()
    assert not Parameters({"a": good}, {"b": ill}).all_finite()


def test_no_rows_are_finite():
    assert Parameters({"a": np.ones(1)}, {"b": np.empty((0, 4))}).all_finite()
