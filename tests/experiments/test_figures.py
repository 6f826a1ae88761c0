import sys

import pytest

from erasable.errors import WrongUse
from erasable.experiments.figures import STYLES, figure_class, one_legend, panels, save_figure
from erasable.experiments.methods import METHODS


def drawn():
    figure, axes = panels(1, 2)
    for axis in axes.flat:
        axis.plot([1, 2], [1, 2], label="L-Rand")
    one_legend(figure, axes)
    return figure, axes


def test_panels_are_always_a_table():
    assert [panels(rows, columns)[1].shape for rows, columns in ((1, 1), (2, 3))] == [(1, 1), (2, 3)]


def test_a_legend_names_each_line_once():
    figure, _ = drawn()
    assert [text.get_text() for text in figure.legends[0].get_texts()] == ["L-Rand"]


def test_a_figure_is_written_twice_and_the_same_each_time(tmp_path):
    files = save_figure(drawn()[0], tmp_path / "utility.ndcg")
    assert [file.name for file in files] == ["utility.ndcg.png", "utility.ndcg.svg"]
    before = [file.read_bytes() for file in files]
    save_figure(drawn()[0], tmp_path / "utility.ndcg")
    assert [file.read_bytes() for file in files] == before


def test_every_method_has_a_look_of_its_own():
    assert set(STYLES) == set(METHODS)
    assert len({tuple(style.values()) for style in STYLES.values()}) == len(METHODS)


def test_without_matplotlib_the_remedy_is_said(monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(WrongUse, match=r"pip install 'erasable\[plots\]'"):
        figure_class()
