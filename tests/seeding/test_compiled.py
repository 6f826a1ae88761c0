import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import erasable.seeding
import erasable.threads
from erasable.seeding import mix
from erasable.seeding.compiled import below, draw
from kit.choosing import cases

words = st.integers(0, 2**64 - 1)


@given(words, words)
@settings(deadline=None)
def test_a_compiled_draw_equals_the_numbered_draw(key, counter):
    expected = mix(np.array([key], dtype=np.uint64), np.array([counter], dtype=np.uint64))[0]
    assert int(draw(np.uint64(key), np.uint64(counter))) == int(expected)


@given(words, st.integers(1, 2**32 - 1))
@settings(deadline=None)
def test_below_scales_the_upper_half_of_a_draw_to_the_bound(bits, bound):
    number = below(np.uint64(bits), bound)
    assert number == (bits >> 32) * bound >> 32
    assert 0 <= number < bound


def test_below_is_uniform():
    keys = np.arange(60_000, dtype=np.uint64)
    drawn = [below(bits, 6) for bits in mix(np.array([5], dtype=np.uint64), keys)]
    counts = np.bincount(drawn, minlength=6)
    # Chi-square with 5 degrees of freedom: above 20.5 once in a thousand; the draws are fixed.
    assert ((counts - 10_000) ** 2 / 10_000).sum() < 20.5


# One compiled function that calls another, each in its own file, beside a copy of `seeding`.
INNER = """
from erasable.seeding.compiled import compiled

@compiled
def inner(x):
    return x + {number}
"""
OUTER = """
from erasable.inner import inner
from erasable.seeding.compiled import compiled

@compiled
def outer(x):
    return 100 * inner(x)

if __name__ == "__main__":
    from erasable.outer import outer as kept
    value = kept(1)
    print(value, sum(kept.stats.cache_hits.values()))
"""
TAKING = """
from typing import NamedTuple
from erasable.seeding.compiled import compiled

class Pair(NamedTuple):
    one: int
    other: int

@compiled
def total(pair):
    return pair.one + pair.other

if __name__ == "__main__":
    from erasable.taking import Pair, total as kept
    print(kept(Pair(3, 4)), sum(kept.stats.cache_hits.values()))
"""
# Sums and quotients that a compiler with fast-math would change.
ARITHMETIC = """
import numpy as np
from erasable.seeding.compiled import compiled

@compiled
def total(values):
    result = np.float32(0)
    for place in range(len(values)):
        result += values[place]
    return result

@compiled
def quotient(a, b):
    return a / b

if __name__ == "__main__":
    values = (1 / np.arange(1, 10_001)).astype(np.float32)
    in_order = np.float32(0)
    for value in values:
        in_order += value
    print(total(values) == in_order, quotient(1.0, 0.0), quotient(0.0, 0.0))
"""


@pytest.fixture
def package(tmp_path):
    shutil.copytree(
        Path(erasable.seeding.__file__).parent,
        tmp_path / "erasable" / "seeding",
        ignore=shutil.ignore_patterns("__pycache__"),
    )
    shutil.copy(erasable.threads.__file__, tmp_path / "erasable")
    (tmp_path / "erasable" / "__init__.py").touch()
    (tmp_path / "erasable" / "outer.py").write_text(OUTER)
    return tmp_path


def run(package, module):
    """Run a module of the package in a process of its own and return the words it prints."""
    environment = {name: value for name, value in os.environ.items() if name != "NUMBA_CACHE_DIR"}
    environment["PYTHONPATH"] = str(package)
    # Python keeps bytecode by size and second: a file that is changed twice within one would be run as it was.
    environment["PYTHONDONTWRITEBYTECODE"] = "1"
    command = [sys.executable, "-m", module]
    answer = subprocess.run(command, cwd=package, env=environment, capture_output=True, check=True, text=True)
    return answer.stdout.split()


@pytest.mark.full
@pytest.mark.parametrize("prefix", cases({"package": "others.", "modules beside each other": ""}, ["package"]))
def test_a_change_outside_of_erasable_makes_the_code_that_calls_it_compile_again(package, prefix):
    folder = package / prefix.rstrip(".")
    folder.mkdir(exist_ok=True)
    outer = OUTER.replace("from erasable.inner", f"from {prefix}inner").replace("erasable.outer", f"{prefix}outer")
    (folder / "outer.py").write_text(outer)
    if prefix:
        (folder / "__init__.py").touch()
    found = []
    for number in (1, 1, 2):
        (folder / "inner.py").write_text(INNER.format(number=number))
        found.append(run(package, f"{prefix}outer"))
    assert found == [["200", "0"], ["200", "1"], ["300", "0"]]


def run_outer(package, number):
    """Return the value and whether the code came out of the cache."""
    (package / "erasable" / "inner.py").write_text(INNER.format(number=number))
    value, kept = map(int, run(package, "erasable.outer"))
    return value, bool(kept)


def test_a_change_in_one_compiled_file_makes_the_code_that_calls_it_compile_again(package):
    assert run_outer(package, number=1) == (200, False)
    assert run_outer(package, number=1) == (200, True)
    assert run_outer(package, number=2) == (300, False)


@pytest.mark.full
def test_a_change_in_what_is_used_inside_numba_makes_everything_compile_again(package):
    assert run_outer(package, number=1) == (200, False)
    with (package / "erasable" / "seeding" / "inside_numba.py").open("a") as file:
        file.write("# changed\n")
    assert run_outer(package, number=1) == (200, False)
    assert run_outer(package, number=1) == (200, True)


@pytest.mark.full
def test_kept_code_that_names_a_class_that_is_gone_is_compiled_again(package):
    """As after an update in place: what numba keeps of a function names the classes of what was given to it."""
    module = package / "erasable" / "taking.py"
    module.write_text(TAKING)
    assert run(package, "erasable.taking") == ["7", "0"]
    assert run(package, "erasable.taking") == ["7", "1"]
    module.write_text(TAKING.replace("Pair", "Couple"))
    assert run(package, "erasable.taking") == ["7", "0"]


def test_compiled_code_adds_in_the_order_written_and_divides_by_zero_as_numpy_does(package):
    (package / "erasable" / "arithmetic.py").write_text(ARITHMETIC)
    assert run(package, "erasable.arithmetic") == ["True", "inf", "nan"]


def test_where_no_code_can_be_kept_it_works_all_the_same(tmp_path):
    program = """
import numba.core.caching as caching
caching.CacheImpl._locator_classes = []
from erasable.seeding.compiled import draw
import numpy as np
print(int(draw(np.uint64(1), np.uint64(2))))
"""
    found = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert int(found.stdout) == int(mix(np.array([1], np.uint64), np.array([2], np.uint64))[0])
