"""Groupings by name: built in, or registered by another package; what one of those gives is checked."""

import sys

import numpy as np
import pyarrow as pa
import pytest

from erasable.chain import Config
from erasable.data import Interactions, RatingScale
from erasable.errors import Refused, WrongSetting
from erasable.grouping import GroupingSettings, assign_groups, find_grouping, grouping_names
from erasable.grouping.registry import BUILT_IN, check_grouping
from kit.packages import installed

ROWS = [("ann", "a"), ("ann", "b"), ("ann", "c"), ("bob", "a"), ("cy", "b"), ("cy", "c")]
FOREIGN = """
import numpy as np

def halves(interactions, groups, seed):
    return np.arange(len(interactions.users)) % groups

NUMBER = 3
"""


@pytest.fixture
def plant(tmp_path, monkeypatch):
    """Install a package that registers a grouping."""
    monkeypatch.syspath_prepend(tmp_path)

    def put(source: str = FOREIGN, point: str = "halves=halves"):
        sys.modules.pop("foreign_grouping", None)
        return installed(tmp_path, "foreign_grouping", source, groupings=point)

    yield put
    sys.modules.pop("foreign_grouping", None)


def grouped(**settings):
    users, items = (pa.array(column) for column in zip(*ROWS, strict=True))
    table, _ = Interactions.from_columns(users, items)
    return assign_groups(table, RatingScale(1, 1), GroupingSettings(**settings), seed=0)


def test_a_registered_grouping_decides_groups(plant):
    plant()
    assert grouping_names() == (*BUILT_IN, "halves")
    assert "foreign_grouping" not in sys.modules
    assert grouped(grouping="halves", groups=2).positions.tolist() == [0, 1, 0]


@pytest.mark.parametrize(("order", "cohesive"), [("number", False), ("count", False), ("easy", True), ("hard", True)])
def test_its_groups_are_ordered_as_any(plant, order, cohesive):
    plant()
    found = grouped(grouping="halves", groups=2, order=order)
    assert sorted(set(found.positions.tolist())) == [0, 1]
    assert all(one is not None for one in found.cohesion) == cohesive


def test_what_is_built_in_is_not_replaced(plant):
    plant(point="random=halves")
    usual = grouped(grouping="random", groups=3).positions.tolist()
    assert grouping_names() == BUILT_IN
    check_grouping(GroupingSettings(grouping="random"))
    assert "foreign_grouping" not in sys.modules
    assert sorted(usual) == [0, 1, 2]


def test_a_name_that_nobody_has_is_refused_with_the_nearest_and_what_to_do():
    said = r"no grouping 'randon': did you mean 'random'\? Else choose one of cbkm, .*entry points 'erasable.groupings'"
    with pytest.raises(WrongSetting, match=said):
        Config.of({"model": "nmf", "grouping": "randon"})
    with pytest.raises(WrongSetting, match="no grouping 'os': choose one of"):
        check_grouping(GroupingSettings(grouping="os"))


@pytest.mark.parametrize(
    ("source", "point", "said"),
    [
        (FOREIGN, "halves=NUMBER", "the grouping 'halves' is 3, which can't be called: register a function"),
        (
            FOREIGN,
            "halves=absent",
            r"'halves' can't be loaded \(AttributeError.*remove foreign_grouping, which registers",
        ),
        ("raise SystemExit(3)", "halves=halves", r"'halves' can't be loaded \(SystemExit: 3\)"),
        ("raise ValueError('two\\nlines')", "halves=halves", r"\(ValueError: two lines\)"),
        (
            FOREIGN + "halves.uses = ('no-such-package',)",
            "halves=halves",
            "uses 'no-such-package', which is not installed",
        ),
        (FOREIGN + "halves.uses = 'numba'\nhalves.uses = 3", "halves=halves", "uses '3', which is not installed"),
    ],
)
def test_what_is_no_grouping_or_can_not_be_loaded_is_refused(plant, source, point, said):
    plant(source, point)
    with pytest.raises(WrongSetting, match=said):
        find_grouping("halves")


def test_a_name_that_two_packages_register_is_refused(plant, tmp_path):
    plant()
    installed(tmp_path, "other_grouping", FOREIGN, groupings="halves=halves")
    with pytest.raises(WrongSetting, match="'halves' is registered by foreign_grouping and other_grouping: remove all"):
        find_grouping("halves")
    assert "other_grouping" not in sys.modules


@pytest.mark.parametrize(
    ("result", "said"),
    [
        ("[0, 1]", r"gave an array of the shape \(2,\): it must return a whole number from 0 to 1 for each of the 3"),
        ("[[0], [1], [0]]", r"an array of the shape \(3, 1\)"),
        ("None", r"an array of the shape \(\)"),
        ("[0.0, 1.0, 0.0]", "labels of the type float64"),
        ("['0', '1', '0']", "labels of the type <U1"),
        ("[True, False, True]", "labels of the type bool"),
        ("[0, 1, 2]", "the label 2"),
        ("[0, -1, 1]", "the label -1"),
        ("[[0], [1, 2]]", r"failed \(ValueError: .*correct it, or give another grouping"),
        ("1 / 0", r"failed \(ZeroDivisionError: division by zero\)"),
        ("interactions.rating.fill(3)", r"failed \(ValueError: .*read-only"),
    ],
)
def test_what_are_no_labels_is_refused(plant, result, said):
    plant(f"def halves(interactions, groups, seed):\n    return {result}\n")
    with pytest.raises(Refused, match=said):
        grouped(grouping="halves", groups=2)


def test_labels_may_come_as_any_whole_numbers_and_are_copied(plant):
    plant("import numpy as np\nOWN = np.array([1, 0, 1], np.uint8)\ndef halves(*_):\n    return OWN\n")
    found = grouped(grouping="halves", groups=2).positions
    assert (found.tolist(), found.dtype) == ([1, 0, 1], np.int64)
