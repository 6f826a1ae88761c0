import pytest

from erasable.evaluation.membership import LOOKS
from erasable.evaluation.membership_verdict import Finding, Interval
from erasable.experiments.membership_figure import draw_membership
from erasable.operations.audit import Probe

NEVER = Interval(0.5, 0.4, 0.6)
FINDINGS = tuple(
    Finding(*look, Interval(0.9, 0.8, 1.0), Interval(0.52, 0.45, 0.59), NEVER, Interval(0.02, -0.05, 0.09), "forgotten")
    for look in LOOKS
)
PROBE = Probe("forgotten", FINDINGS, people=1200, others=90, seeds=5, rounds=1, pretended=True, seconds=1.0)
BEGINS = {".png": b"\x89PNG", ".svg": b"<?xml", ".pdf": b"%PDF"}


@pytest.mark.parametrize("ending", BEGINS)
def test_the_ending_of_the_file_says_what_is_drawn(tmp_path, ending):
    file = tmp_path / f"probe{ending}"
    draw_membership(PROBE, file)
    assert file.read_bytes().startswith(BEGINS[ending])
    assert file.stat().st_size > 5_000


def test_the_figure_says_in_words_what_it_shows(tmp_path, monkeypatch):
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
