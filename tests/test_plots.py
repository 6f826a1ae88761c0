import re
import sys

import numpy as np
import pyarrow as pa
import pytest

from erasable.errors import WrongUse
from erasable.evaluation.attack import LOOKS, AttackResult, Interval
from erasable.extensions import install_command
from erasable.operations import ModelComparison
from erasable.operations.attack import Probe
from erasable.operations.inspect import GroupStudy
from erasable.plots import draw_comparison, draw_groups, draw_membership, figure_class, figure_file, one_legend, panels

STUDY = GroupStudy(
    grouping="random",
    sizes={
        "plain k-means on rating rows": np.array([5, 1]),
        "plain k-means on vectors": np.array([4, 2]),
        "random": np.array([3, 3]),
    },
    cohesion={"random": np.array([1.0, 2.0]), "bkm": np.array([2.0, 3.0])},
    places=np.arange(12.0).reshape(6, 2),
    positions=np.array([0, 1, 0, 1, 0, 1]),
)
NEVER = Interval(0.5, 0.4, 0.6)
FINDINGS = tuple(
    AttackResult(
        *look, Interval(0.9, 0.8, 1.0), Interval(0.52, 0.45, 0.59), NEVER, Interval(0.02, -0.05, 0.09), "forgotten"
    )
    for look in LOOKS
)
PROBE = Probe("forgotten", FINDINGS, people=1200, others=90, seeds=5, rounds=1, pretended=True, seconds=1.0)
BEGINS = {".png": b"\x89PNG", ".svg": b"<?xml", ".pdf": b"%PDF"}


@pytest.mark.parametrize("ending", BEGINS)
def test_the_ending_of_the_file_says_what_is_drawn(tmp_path, ending):
    file = figure_file(tmp_path / f"groups{ending}")
    draw_groups(STUDY, file)
    assert file.read_bytes().startswith(BEGINS[ending])
    assert file.stat().st_size > 5_000


def test_the_figure_says_in_words_what_it_shows(tmp_path, monkeypatch):
    monkeypatch.setitem(__import__("matplotlib").rcParams, "svg.fonttype", "none")
    draw_groups(STUDY, tmp_path / "groups.svg")
    text = (tmp_path / "groups.svg").read_text()
    for words in ("How large the groups are", "ceiling 3", "How cohesive groups are, in one space", "(this one)"):
        assert words in text


@pytest.mark.parametrize("name", ["groups", "groups.txt", "groups.jpeg2"])
def test_another_ending_is_refused_before_anything_is_drawn(tmp_path, name):
    with pytest.raises(WrongUse, match=r"ends in \.png, \.svg or \.pdf"):
        figure_file(tmp_path / name)


def test_a_folder_that_is_not_there_is_refused(tmp_path):
    (tmp_path / "folder.png").mkdir()
    for file in (tmp_path / "nowhere" / "groups.png", tmp_path / "folder.png"):
        with pytest.raises(WrongUse, match="can't be written: name another file, in a folder that is there"):
            figure_file(file)


def test_without_matplotlib_the_remedy_is_named(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(WrongUse, match=re.escape(install_command("plots"))):
        figure_file(tmp_path / "groups.png")


@pytest.mark.parametrize("ending", BEGINS)
def test_the_ending_of_the_file_says_what_is_drawn_of_a_probe(tmp_path, ending):
    file = tmp_path / f"probe{ending}"
    draw_membership(PROBE, file)
    assert file.read_bytes().startswith(BEGINS[ending])
    assert file.stat().st_size > 5_000


def test_the_figure_of_a_probe_says_in_words_what_it_shows(tmp_path, monkeypatch):
    monkeypatch.setitem(__import__("matplotlib").rcParams, "svg.fonttype", "none")
    draw_membership(PROBE, tmp_path / "probe.svg")
    text = (tmp_path / "probe.svg").read_text()
    for words in (
        "before forgetting",
        "after forgetting",
        "never knew them",
        "a guess (0.5)",
        "shared parameters",
        "tell 1,200 erased people from 90 who were never learned",
    ):
        assert words in text


def test_people_who_are_still_there_are_named_so(tmp_path, monkeypatch):
    monkeypatch.setitem(__import__("matplotlib").rcParams, "svg.fonttype", "none")
    draw_membership(Probe("forgotten", FINDINGS, 3, 90, 5, 1, pretended=False, seconds=1.0), tmp_path / "probe.svg")
    assert "from 90 who are still there" in (tmp_path / "probe.svg").read_text()


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


def test_without_matplotlib_the_remedy_is_said(monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(WrongUse, match=re.escape(install_command("plots"))):
        figure_class()


def test_the_figure_of_a_comparison_shows_each_model_that_was_measured(tmp_path, monkeypatch):
    monkeypatch.setitem(__import__("matplotlib").rcParams, "svg.fonttype", "none")
    figures = {"ndcg@10": 0.3, "forget_cost": 0.0, "learn_seconds": 2.0, "forget_seconds": 0.5, "failed": None}
    rows = [{"model": "als:anchors=0.1", **figures}, {"model": "ease", **figures, "forget_cost": 0.7}]
    failed = {"model": "nmf", **dict.fromkeys(figures), "failed": "too few users"}
    draw_comparison(ModelComparison(pa.Table.from_pylist([*rows, failed]), {}, ()), tmp_path / "compared.svg")
    text = (tmp_path / "compared.svg").read_text()
    for words in ("NDCG@10", "cost of forgetting one person", "als:anchors=0.1", "ease", "seconds"):
        assert words in text
    assert "nmf" not in text
