import subprocess
import sys

import numpy as np
import pytest

from erasable.data import RatingScale
from erasable.errors import WrongSetting
from erasable.grouping import GroupingSettings
from erasable.grouping.groups import user_space
from erasable.grouping.points import ALONE, bipartite_graph, rating_rows
from erasable.grouping.registry import BY_VECTORS, check_grouping, vectors_are_there

REMEDY = r"`grouping=\"{}\"` needs gensim, for users' vectors: pip install 'erasable\[paper\]'"


@pytest.fixture
def without_the_extra(monkeypatch):
    """As if gensim were not installed."""
    monkeypatch.setattr("erasable.grouping.registry.find_spec", lambda name: None)


@pytest.fixture(scope="module")
def rows(tables):
    return tables.table({"ann": {"a": 1, "b": 2}, "bob": {"a": 5}})


def space_of(rows, grouping):
    graph = bipartite_graph(rows, RatingScale(1, 5))
    return user_space(graph, rows.users, GroupingSettings(grouping=grouping), 5, ALONE)


@pytest.mark.parametrize("grouping", ["bkm", "random"])
def test_rating_rows_are_compared_where_no_vectors_are_learned(rows, grouping, without_the_extra):
    expected = rating_rows(bipartite_graph(rows, RatingScale(1, 5)))
    found = space_of(rows, grouping)
    assert found.width == expected.width
    assert all(np.array_equal(left, right) for left, right in zip(found[:4], expected[:4], strict=True))


@pytest.mark.parametrize("grouping", BY_VECTORS)
def test_vectors_need_the_extra_and_the_message_names_it(rows, grouping, without_the_extra):
    assert not vectors_are_there()
    for refused in (lambda: check_grouping(grouping), lambda: space_of(rows, grouping)):
        with pytest.raises(WrongSetting, match=REMEDY.format(grouping)) as error:
            refused()
    assert error.value.of_command.startswith(f"--grouping {grouping} needs gensim")


@pytest.mark.parametrize("grouping", BY_VECTORS)
def test_with_the_extra_they_are_found_by_name(rows, grouping):
    assert vectors_are_there()
    check_grouping(grouping)
    assert space_of(rows, grouping).size == 2


def test_the_paper_is_imported_only_when_its_vectors_are_needed():
    program = """
import sys
from erasable.cli.main import make_app
from erasable.grouping.registry import check_grouping
make_app(["learn", "groups", "attack", "demo", "serve"])
check_grouping("cbkm")
print([name for name in ("gensim", "erasable.paper") if name in sys.modules])
"""
    answer = subprocess.run([sys.executable, "-c", program], capture_output=True, check=True, text=True)
    assert answer.stdout.strip() == "[]"
