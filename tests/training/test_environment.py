import platform
from importlib.metadata import version

from erasable.training import differences, numeric_environment


def test_the_environment_names_processor_blas_and_versions():
    environment = numeric_environment()
    assert environment["machine"] == platform.machine()
    assert environment["numba"] == version("numba")
    assert environment["blas"]
    assert environment["processor"]
    assert all(isinstance(value, str) for value in environment.values())


def test_the_same_environment_has_no_differences():
    assert differences(dict(numeric_environment())) == []


def test_each_difference_is_said_in_words():
    there = {**numeric_environment(), "processor": "znver9", "abacus": "1"}
    here = numeric_environment()["processor"]
    del there["numba"]
    assert differences(there) == [
        "abacus is absent here and was 1",
        f"numba is {version('numba')} here and was absent",
        f"processor is {here} here and was znver9",
    ]


def test_another_release_is_no_other_environment():
    assert differences({**numeric_environment(), "erasable": "0.0.1", "kernels": "another stamp"}) == []
    assert differences({name: value for name, value in numeric_environment().items() if name != "kernels"}) == []
