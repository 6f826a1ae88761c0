import sys

import numpy as np
import pytest

from erasable.errors import WrongUse
from erasable.experiments import GroupStudy, draw_groups, figure_file

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
    with pytest.raises(WrongUse, match=r"pip install 'erasable\[plots\]'"):
        figure_file(tmp_path / "groups.png")
