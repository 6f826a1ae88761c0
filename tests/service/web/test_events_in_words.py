"""Every event that the service writes, and every state, has words of its own."""

import ast
from pathlib import Path

import pytest

import erasable.requests
import erasable.service
from erasable.requests.request import STATES, Event
from erasable.service.web._pages import _SENTENCES, STATES_IN_WORDS, event_in_words

SOURCES = [
    path for unit in (erasable.requests, erasable.service) for path in sorted(Path(unit.__file__).parent.glob("*.py"))
]


def noted_names() -> set[str]:
    """The names of events that stand in the code as such."""
    calls = (node for path in SOURCES for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.Call))
    adding = ("note", "_note", "add_event")
    named = (node for node in calls if getattr(node.func, "attr", getattr(node.func, "id", "")) in adding)
    texts = (word for node in named for word in node.args if isinstance(word, ast.Constant))
    return {word.value for word in texts if isinstance(word.value, str) and word.value not in ("", "command")}


def test_every_state_has_words():
    assert {*STATES_IN_WORDS} == {*STATES}
    assert {*STATES} <= {*_SENTENCES}


def test_every_event_that_is_written_has_a_sentence():
    assert noted_names() >= {"extended", "revealed", "verification ended"}
    assert noted_names() <= {*_SENTENCES}


@pytest.mark.parametrize(
    ("name", "facts", "words"),
    [
        ("received", {"scope": "all data of one person"}, "Received: all data of one person"),
        ("erasing", {"requests": 3}, "Erasing began, in a batch of 3 requests"),
        (
            "planned",
            {"requests": 1, "stages_rerun": 2, "stages_total": 3},
            "Planned in a batch of 1 request; 2 of 3 stages to run again",
        ),
        (
            "planned",
            {"requests": 1, "stages_rerun": 1, "stages_total": 1},
            "Planned in a batch of 1 request; the model to be rebuilt",
        ),
        (
            "planned",
            {"requests": 1, "stages_rerun": 0, "stages_total": 1},
            "Planned in a batch of 1 request; the model stays as it is",
        ),
        ("erased", {"files_searched": 1}, "Certified: 1 file searched, nothing found"),
        ("failed", {"reason": "why", "retry_at": None}, "Failed: why (waits for someone to look at it)"),
        ("on hold", {}, "Put on hold"),
        ("something new", {}, "something new"),
        ("extended", {"reason": "{x.__class__}"}, "Extended by two months: {x.__class__}"),
    ],
)
def test_event_reads_as_a_sentence(clock, name, facts, words):
    assert event_in_words(Event(1, None, clock(), name, None, "worker", facts)) == words
