import re
import subprocess
import sys

import numpy as np
import pytest

from erasable.data import RatingScale
from erasable.errors import WrongSetting
from erasable.extensions import install_command
from erasable.grouping import GroupingSettings
from erasable.grouping.groups import user_space
from erasable.grouping.points import ALONE, bipartite_graph, rating_rows
from erasable.grouping.registry import BUILT_IN, BY_VECTORS, check_grouping


@pytest.fixture
def without_the_extra(monkeypatch):
    """As if gensim were not installed."""
    monkeypatch.setattr("erasable.grouping.registry.find_spec", lambda name: None)


@pytest.fixture(scope="module")
def rows(tables):
    return tables.table({"ann": {"a": 1, "b": 2}, "bob": {"a": 5}})


def space_of(rows, grouping, vectors=None):
    graph = bipartite_graph(rows, RatingScale(1, 5))
    return user_space(graph, rows.users, GroupingSettings(grouping=grouping, vectors=vectors), 5, ALONE)


@pytest.mark.parametrize("grouping", ["bkm", "random"])
def test_rating_rows_are_compared_where_no_vectors_are_learned(rows, grouping, without_the_extra):
    expected = rating_rows(bipartite_graph(rows, RatingScale(1, 5)))
    found = space_of(rows, grouping)
    assert found.width == expected.width
    assert all(np.array_equal(left, right) for left, right in zip(found[:4], expected[:4], strict=True))


@pytest.mark.parametrize("grouping", BUILT_IN)
def test_vectors_are_ours_where_users_are_grouped_by_them_and_none_elsewhere(grouping):
    assert GroupingSettings(grouping=grouping).vectors == ("erasable" if grouping in BY_VECTORS else None)
    by_gensim = GroupingSettings(grouping=grouping, vectors="gensim")
    assert by_gensim.vectors == ("gensim" if grouping in BY_VECTORS else None)


@pytest.mark.parametrize("grouping", BY_VECTORS)
def test_our_vectors_need_no_extra(rows, grouping, without_the_extra):
    check_grouping(GroupingSettings(grouping=grouping))
    assert space_of(rows, grouping).size == 2


@pytest.mark.parametrize("grouping", BY_VECTORS)
def test_those_of_gensim_need_the_extra_and_the_message_names_it(rows, grouping, without_the_extra):
    by_gensim = GroupingSettings(grouping=grouping, vectors="gensim")
    for refused in (lambda: check_grouping(by_gensim), lambda: space_of(rows, grouping, "gensim")):
        with pytest.raises(WrongSetting, match=re.escape("needs gensim: " + install_command("paper"))) as error:
            refused()
    assert error.value.of_command.startswith("--vectors gensim needs gensim")


def test_with_the_extra_they_differ_from_ours(rows):
    assert space_of(rows, "cbkm", "gensim").values.tobytes() != space_of(rows, "cbkm").values.tobytes()


def test_the_paper_is_imported_only_when_its_vectors_are_needed():
    program = """
import sys
from erasable.cli.main import make_app
from erasable.grouping.registry import GroupingSettings, check_grouping
make_app(["learn", "groups", "attack", "demo", "serve"])
check_grouping(GroupingSettings(grouping="cbkm"))
print([name for name in ("gensim", "erasable.paper") if name in sys.modules])
"""
    answer = subprocess.run([sys.executable, "-c", program], capture_output=True, check=True, text=True)
    assert answer.stdout.strip() == "[]"


def test_grouping_by_our_vectors_imports_no_extra():
    program = """
import sys
sys.modules |= {"gensim": None, "matplotlib": None}
from erasable.data import RatingScale, SyntheticSettings, synthesise
from erasable.grouping import GroupingSettings, assign_groups
rows = synthesise(SyntheticSettings(users=40, items=20, groups=2, per_user=5)).interactions
print(len(assign_groups(rows, RatingScale(1, 1), GroupingSettings(grouping="cbkm", groups=2), seed=0).positions))
"""
    answer = subprocess.run([sys.executable, "-c", program], capture_output=True, check=True, text=True)
    assert answer.stdout.strip() == "40"
